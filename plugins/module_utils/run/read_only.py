# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a plan for drives in service (ssd_mode: read_only) does nothing but read them. Pure. The controller looks at
what it renders, the host at what it was sent; measure/read_only_job.py looks at each job right before fio starts.
"""

from __future__ import annotations

import typing as t

from ..records.plan import Plan, PlannedTest, Tune
from ..records.planned_cell import AnyLoad, PlannedCell

MODE = "read_only"


def plan_problem(plan: Plan) -> str:
    """Return what of a plan for drives in service does more than read them; "" if nothing does."""
    found = [f"{drive.drive}: test {text}" for drive in plan.drives for test in drive.tests for text in more(test)]
    found += ["drives would be made blank at the end"] if plan.leave != "as_is" else []
    found += ["settings would be made"] if plan.tune != Tune() else []
    return f"it does more than read drives in service: {'; '.join(found[:5])}" if found else ""


def more(test: PlannedTest) -> list[str]:
    """Return what a test does beside reading, as "<test>: what"."""
    found = [
        "it purges" if test.purge.method != "none" else "",
        "it fills the drive" if test.precondition else "",
        "it writes blocks to read them back" if test.integrity else "",
        "it makes a file system" if test.filesystem else "",
        "it makes an array" if test.array else "",
        "it needs a state of the write cache" if test.write_cache else "",
        *(f"its cell {cell.id} writes" for cell in test.cells if writes(cell)),
        "its cells are not for drives in service (in_service)" if test.cells and not test.in_service else "",
    ]
    return [f"{test.name}: {text}" for text in found if text]


def writes(cell: PlannedCell) -> bool:
    """Return whether a cell does anything but read."""
    loads: t.Sequence[AnyLoad] = cell.jobs or [cell]
    return any(one.read_pct != 100 or getattr(one, "trim", False) or one.sync or one.fdatasync for one in loads)
