# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An array of real loop devices by a real host job: made where the kernel has md, and told of where it has none."""

from __future__ import annotations

import pytest
from host_jobs import MIB, events

from ansible_collections.ssdlab.fleet.plugins.module_utils.core.host import Host
from ansible_collections.ssdlab.fleet.plugins.module_utils.job import array_leftover
from ansible_collections.ssdlab.fleet.plugins.module_utils.tools import mdadm
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan import render_plan as planning
from ansible_collections.ssdlab.fleet.tests.fixtures import documents

CELL = {"block_size": "64KiB", "read_pct": 50, "queue_depth": 4, "runtime_s": 1, "rate_iops": 400}
ALONE = {
    "name": "alone",
    "purge": {"method": "deallocate"},
    "precondition": {"passes": 1},
    "cells": [CELL],
    "rounds": {"max": 1},
}
TOGETHER = {**ALONE, "name": "together", "purge": False, "array": {"chunk": "64KiB"}}


@pytest.mark.variants(1)
@pytest.mark.parametrize("at_once", [1, 2])
def test_an_array_is_the_last_thing_of_all_its_drives(jobs, loop_drive, at_once):
    drives = [loop_drive(f"drive{number}", 64 * MIB) for number in range(2)]
    plan = jobs.plan(drives, planning.load_plan([ALONE, TOGETHER]))
    plan["parallel_drives"] = at_once
    journal, status = jobs.run(plan)
    for record in journal:
        documents.validate(record, "journal")
    ends = {(record["drive"], record["test"]): record for record in jobs.ended()}
    first, last = (entry["drive"] for entry in plan["drives"])
    assert list(ends)[-1] == (last, "together") and set(ends) == {(first, "alone"), (last, "alone"), (last, "together")}
    assert [entry["outcome"] for entry in status["drives"]] == ["complete", "complete"]
    lacks = mdadm.missing_tools(Host(), 0)
    end = ends[last, "together"]
    if lacks:
        # Nothing was done for it: neither made, nor noted, nor a drive taken again.
        assert (end["outcome"], end["reasons"]) == ("invalid", [f"no array was made: {lacks}"])
        assert not events(journal, "array") and all(record["step"] != "array" for record in events(journal, "guard"))
    else:
        assert (end["outcome"], end["reasons"]) == ("complete", [])
        assert len(events(journal, "array_stopped")) == 1
    assert not list(jobs.folder.rglob(array_leftover.FILE))


def test_no_array_is_made_without_a_drive_that_the_run_left_out(jobs, loop_drive):
    drives = [loop_drive(f"drive{number}", 64 * MIB) for number in range(2)]
    plan = jobs.plan(drives, planning.load_plan([ALONE, TOGETHER]))
    plan["drives"][-1]["tests"][-1]["array"]["members"].append("GONE")
    journal, _status = jobs.run(plan)
    (end,) = [record for record in jobs.ended() if record["test"] == "together"]
    assert end["outcome"] == "invalid" and "GONE (it is not in the plan)" in end["reasons"][0]
    assert not events(journal, "array")
