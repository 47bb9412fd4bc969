# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a host reports of the runs in its state folder."""

from __future__ import annotations

import os

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.run import digests, liveness, summary
from ansible_collections.ssdlab.fleet.plugins.module_utils.run import folder as rundir
from ansible_collections.ssdlab.fleet.tests.fixtures import planned
from ansible_collections.ssdlab.fleet.tests.unit.plugins.module_utils.run.written_folder import (
    BUSY,
    DONE,
    HOST,
    RUN,
    WAITING,
    Folder,
)


def test_runs_lists_every_run_with_its_state(tmp_path):
    Folder(tmp_path, "b-run").status(drives=[("A1", {}), ("B2", {})])
    Folder(tmp_path, "a-run").status(alive=False)
    Folder(tmp_path, "c-run").plan()
    found = summary.runs(HOST, str(tmp_path))
    assert [(run["run_id"], run["run_name"], run["state"], run["drives"]) for run in found] == [
        ("a-run", "qualify", "dead", 0),
        ("b-run", "qualify", "running", 2),
        ("c-run", "planned", "dead", 0),
    ]
    assert [run["run_id"] for run in summary.runs(HOST, str(tmp_path), "planned")] == ["c-run"]


def test_no_state_folder_means_no_runs(tmp_path):
    assert summary.runs(HOST, str(tmp_path / "none")) == []
    run = summary.read(HOST, rundir.RunDir(str(tmp_path), RUN))
    assert (run.state, run.status) == ("absent", {}) and run.unfinished == []


def test_a_job_that_ends_while_we_look_is_not_dead(tmp_path, monkeypatch):
    folder = Folder(tmp_path).status(drives=[("A1", BUSY)])

    def job_ends(host, status):
        if status["state"] == "running":
            folder.status("finished", drives=[("A1", DONE)])
            return "dead"
        return status["state"]

    monkeypatch.setattr(liveness, "state_of", job_ends)
    assert folder.read().state == "finished"


def test_a_lost_status_is_made_of_the_plan_and_the_journal(tmp_path):
    end = {"drive": "A1", "outcome": "error", "message": "it hangs"}
    folder = Folder(tmp_path).plan().status("finished").journal(("drive_finished", end))
    os.unlink(folder.run_dir.status)
    run = folder.read()
    (entry,) = run.status["drives"]
    assert (run.status["run_name"], entry["drive"], entry["outcome"]) == ("planned", "A1", "error")


def test_unfinished_names_the_drives_of_a_live_job_only(tmp_path):
    folder = Folder(tmp_path).status(drives=[("A1", DONE), ("B2", BUSY), ("C3", WAITING)])
    run = folder.read()
    assert run.unfinished == ["B2", "C3"]
    run = folder.status(alive=False, drives=[("B2", BUSY)]).read()
    assert run.unfinished == []


@pytest.mark.parametrize(
    "state, asked_for, told", [("running", None, True), ("finished", None, False), ("finished", RUN, True)]
)
def test_a_run_tells_how_its_tests_are_defined_where_that_counts(tmp_path, state, asked_for, told):
    Folder(tmp_path).status(state).plan(cells=[planned.cell_json(read_pct=0)], rounds={**planned.ROUNDS, "max": 5})
    (run,) = summary.runs(HOST, str(tmp_path), definitions_of=asked_for)
    assert list(run["definitions"]) == (["iops"] if told else [])


def test_a_definition_is_the_same_for_drives_that_cannot_do_all_cells():
    small = {"cells": [{"id": "a"}], "not_applicable": [{"id": "b", "reason": "r"}]}
    whole = {"cells": [{"id": "a"}, {"id": "b"}]}
    one, both = [
        digests.digests_of_tests(planned.plan_of(drives=[{"tests": [test]} for test in tests]))
        for tests in ([small], [small, whole])
    ]
    assert one == both
    assert one != digests.digests_of_tests(planned.plan_of(drives=[{"tests": [dict(whole, rounds={"max": 2})]}]))
