# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The cell of tests' own tests: slow random writes, so that a second of them means the same on any machine."""

from __future__ import annotations

import typing as t


def writes(rate_iops: int, queue_depth: int = 1, runtime_s: int = 1) -> dict[str, t.Any]:
    """Random writes of 4 KiB by one thread, at most so many a second."""
    return {
        "access": "random",
        "block_size": "4KiB",
        "read_pct": 0,
        "threads": 1,
        "queue_depth": queue_depth,
        "runtime_s": runtime_s,
        "rate_iops": rate_iops,
    }
