# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a test was preconditioned, for whoever compares its figures with others. Pure."""

from __future__ import annotations

import typing as t

Record = dict[str, t.Any]
KEYS = ("passes", "bytes_written", "block_size_bytes", "data", "bandwidth_bytes_per_s", "kernel_bytes_written")


def kind(record: t.Mapping[str, t.Any]) -> Record | None:
    """Return the KEYS of a test record's fill, each None where it is unknown; None without a fill."""
    done = record.get("precondition")
    return {key: done.get(key) for key in KEYS} if done else None
