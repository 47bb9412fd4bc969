# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a plan says of drives that run at the same time: a number, or the reads by which the host finds it
(ssd_parallel_drives: auto). Pure but for the template.
"""

from __future__ import annotations

import typing as t

from ...module_utils.measure import parallelism_search
from ...module_utils.records.plan import ReadTogether
from ..common import values
from . import cells as celling
from .jobs import section_of, with_job

# One that asks most of the CPUs, and one that asks most of links and adapters.
READS: tuple[dict[str, t.Any], ...] = (
    {"access": "random", "block_size": "4KiB", "threads": 4, "queue_depth": 32},
    {"access": "sequential", "block_size": "128KiB", "threads": 1, "queue_depth": 32},
)
LENGTH = {"read_pct": 100, "ramp_s": 1, "runtime_s": 3}
Mapping = t.Mapping[str, t.Any]


def spec(settings: Mapping, number: int, any_test: bool) -> tuple[int, ReadTogether | None]:
    """Return parallel_drives of a plan with so many drives, with auto the most that there may be, and together."""
    asked = settings["ssd_parallel_drives"]
    most = values.drives_at_once(asked, number)
    if asked != values.AUTO or not any_test:
        return most, None
    cells = [celling.rendered({**read, **LENGTH}) for read in READS]
    # One thread in sequence, or any at random: their jobs are the same for every size of drive.
    jobs = [with_job(cell, settings["workload_ioengine"], [section_of(cell, 0)]) for cell in cells]
    return most, ReadTogether(parallelism_search.FEWEST_REPEATS, jobs)


def span_s(asked: ReadTogether | None, drives: int) -> tuple[float, float]:
    """Return the shortest and longest time that it takes a host to find the number of its drives; 0 where it does not.
    asked: `together` of its plan.
    """
    if not asked or drives < 2:
        return 0.0, 0.0
    # Where a drive alone is unsteady, that is all.
    group_s = parallelism_search.group_s(asked)
    return drives * group_s, parallelism_search.most_groups(drives) * group_s
