# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The cell of tests' own tests, and what makes any measurement of it valid: for tests that are not about figures."""

from __future__ import annotations

import typing as t

# Steady whatever the rates of the rounds are, so that such tests don't depend on the machine's.
ANY_RATES = {"range_limit": 1, "slope_limit": 1}
# Loop devices in memory answer before fio asks, and a busy machine keeps fio from its CPUs, and a round waiting.
ANY_MACHINE = {
    "in_flight_min": 0,
    "idle_gap_s": 3600,
    **dict.fromkeys(("steal_max", "throttled_max", "waited_max"), 1),
    **dict.fromkeys(("host_excess_max", "host_part_max"), 1),
}


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
