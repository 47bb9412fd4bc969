# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests of drives that hold data (docs/in-service.md): that they only read, and in which ssd_mode a plan of them is
run. Pure.
"""

from __future__ import annotations

import typing as t

from ...module_utils.records.in_service import MIB
from ...module_utils.records.plan import PlannedTest
from ...module_utils.records.planned_cell import PlannedCell, PlannedStream
from ...module_utils.run.read_only import MODE

# The key of a test that is for drives in service.
KEY = "in_service"
Mapping = t.Mapping[str, t.Any]
# No cause of such a test: it is not of a prepared drive, and its users may do as they please, up to what is busy.
_ANYTHING = 1e18
_NOT_BESIDE = {
    "precondition": "give it precondition: false",
    "filesystem": "give it no file system",
    "array": "give it no array",
    "integrity": "use scrub, which only reads",
    "steady_state": "give it steady_state: false; a drive in use has no steady state",
    "write_cache": "leave the write cache as it is",
    "self_test": "self-tests need no in_service",
    "each_cell": "list its cells instead",
}


def test_problems(test: Mapping) -> list[str]:
    """Return what keeps a test for drives in service from only reading. test: as a site wrote it, with its cells."""
    if not test[KEY]:
        return ["scrub: is for drives in service; add in_service: true"] if test["scrub"] else []
    purges = (test["purge"] or {"method": "none"})["method"] != "none"
    found = [f"{KEY}: cannot be combined with {key}; {remedy}" for key, remedy in _NOT_BESIDE.items() if test[key]]
    found += [f"{KEY}: cannot be combined with purge; give it purge: false"] if purges else []
    cells: t.Sequence[PlannedCell] = test["cells"]
    found += [f"{KEY}: cell {one.id} writes; such a test only reads (read_pct: 100)" for one in cells if _writes(one)]
    found += [
        f"{KEY}: cell {cell.id} has no limit; give it rate_iops, as the drive has other users"
        for cell in cells
        if not cell.jobs and not cell.rate_iops
    ]
    return found


def _writes(cell: PlannedCell) -> bool:
    loads: t.Sequence[PlannedCell | PlannedStream] = cell.jobs or [cell]
    return any(one.read_pct != 100 or one.sync or one.fdatasync or getattr(one, "trim", None) for one in loads)


def is_for(tests: t.Sequence[PlannedTest]) -> bool:
    """Return whether a plan is for drives in service. tests: of load_plan."""
    return any(test.in_service for test in tests)


def only_reads(test: PlannedTest) -> bool:
    """Return whether a test may be in a plan for drives in service: it says so, or the drive does all of it itself."""
    return bool(test.in_service) or bool(test.self_test and test.purge.method == "none")


def is_service(tests: t.Sequence[PlannedTest], mode: t.Any) -> bool:
    """Return whether a run of these tests is of ssd_service_drives; with ssd_mode: plan the tests tell."""
    return mode == MODE or (mode == "plan" and is_for(tests))


def mode_problem(tests: t.Sequence[PlannedTest], mode: t.Any, step: t.Any) -> str:
    """Return why a plan can't be run with this ssd_mode; "" if it can."""
    if mode == MODE and step != "qualify":
        return f"ssd_mode: {MODE} runs plans alone, and {step} changes drives or hosts; use ssd_mode=destructive"
    ours = [test.name for test in tests if test.in_service]
    others = [test.name for test in tests if not only_reads(test)]
    if ours and others:
        return (
            f"ssd_plan: {', '.join(others)} may write, and {', '.join(ours)} are for drives in service, which are only "
            f"read; make two plans of them, and run each by itself (ssd_mode=destructive, ssd_mode={MODE})"
        )
    if mode == MODE and others:
        return (
            f"ssd_mode: {MODE} only reads, and {', '.join(others)} may write; use ssd_plan=in-service, or another mode"
        )
    if mode == "destructive" and ours:
        return f"ssd_mode: destructive, and {', '.join(ours)} are for drives in service; use ssd_mode={MODE}"
    return ""


def limits(tests: t.Sequence[PlannedTest]) -> dict[str, float]:
    """Return what a cell beside other users is held to, as ssd_validity_limits: what they do up to a busy drive is no
    cause, nor is an idle drive.
    """
    asked = [(test.in_service, cell) for test in tests if test.in_service for cell in test.cells]
    if not asked:
        return {}
    most_bytes = max(one.busy_mib_s * MIB * cell.runtime_s for one, cell in asked)
    return {
        "other_io_share": 0.0,
        "other_read_bytes": float(most_bytes),
        "other_write_bytes": float(most_bytes),
        "other_discard_bytes": _ANYTHING,
        "idle_gap_s": _ANYTHING,
    }
