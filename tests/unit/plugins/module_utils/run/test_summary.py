# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.core import files
from ansible_collections.ssdlab.fleet.plugins.module_utils.core.host import BOOT_ID, Host
from ansible_collections.ssdlab.fleet.plugins.module_utils.run import digests, drive_records, liveness, summary
from ansible_collections.ssdlab.fleet.plugins.module_utils.run import folder as rundir
from ansible_collections.ssdlab.fleet.plugins.module_utils.run.liveness import pid_start

RUN = "20261121T130000Z-qualify"
HOST = Host()
SCHEMAS = Path(__file__).parents[5] / "plugins" / "plugin_utils" / "common" / "schemas"
STEADY = {
    "outcome": "steady",
    "reasons": [],
    "rounds": 7,
    "steady_state": [],
    "metrics": {"write_iops": 41200.0},
    "cells": [{"cell": "c", "metrics": {}}],
}
INTERRUPTED = dict(STEADY, outcome="interrupted", reasons=["interrupted: the run was stopped"], metrics={})
IDENTITY = {"serial": "A1", "model": "Sim"}


class Folder:
    """A run's folder, written as the host job does."""

    def __init__(self, state_dir, run_id=RUN):
        self.run_dir = rundir.RunDir(str(state_dir), run_id)
        os.makedirs(self.run_dir.path)

    def status(self, state="running", alive=True, drives=(), **more):
        pid = os.getpid() if alive else 2**22 + 1
        fields = {
            "run_id": self.run_dir.run_id,
            "run_name": "qualify",
            "host": "rack1-07",
            "boot_id": HOST.get(BOOT_ID),
            "pid": pid,
            "pid_start": pid_start(HOST, os.getpid()),
            "unit": None,
            "engine_version": "0.1.0",
            "state": state,
            "started": files.now(),
            "restored": False,
            "message": "",
            "drives": [dict(rundir.queued(name), **entry) for name, entry in drives],
        }
        rundir.Status(self.run_dir.status, fields).set(**more)
        return self

    def journal(self, *events):
        journal = rundir.Journal(self.run_dir.journal, run_id=self.run_dir.run_id, host="rack1-07")
        for event, fields in events:
            journal.add(event, **fields)
        journal.close()
        return self

    def plan(self, **test):
        drives = [{"drive": "A1", "tests": [dict({"name": "iops"}, **test)]}]
        files.write_atomic(self.run_dir.plan, json.dumps({"run": {"id": RUN, "name": "planned"}, "drives": drives}))
        return self

    def read(self):
        return summary.read(HOST, self.run_dir)


def started(attempt=1, test="iops", drive="A1"):
    return "test_started", {"drive": drive, "test": test, "attempt": attempt, "title": "Random IOPS"}


def ended(result, attempt=1, test="iops", drive="A1"):
    return "test_finished", dict(result, drive=drive, test=test, attempt=attempt)


def guard(**fields):
    return "guard", dict(
        {"drive": "A1", "step": "start", "eligible": True, "refusals": [], "identity": IDENTITY}, **fields
    )


def kinds(run):
    return [(record["kind"], record["drive"], record["outcome"]) for record in drive_records.records(run)]


WAITING, BUSY = {}, {"phase": "measure"}
DONE, CUT = {"phase": "done", "outcome": "complete"}, {"phase": "done", "outcome": "interrupted"}


@pytest.mark.parametrize(
    "state, alive, entry, events, told",
    [
        ("running", True, BUSY, [], []),
        ("running", True, BUSY, [started()], []),
        ("running", True, BUSY, [started(), ended(STEADY)], [("test", "A1", "steady")]),
        # A live job takes up again what another one left.
        ("running", True, BUSY, [started(), ended(INTERRUPTED)], []),
        ("running", True, BUSY, [started(), ended(STEADY), started(test="wsat")], [("test", "A1", "steady")]),
        ("running", True, BUSY, [started(), ended(INTERRUPTED), started(2)], []),
        ("running", True, DONE, [started(), ended(STEADY)], [("test", "A1", "steady"), ("drive", "A1", "complete")]),
        ("running", False, BUSY, [started()], [("test", "A1", "interrupted"), ("drive", "A1", "interrupted")]),
        ("running", False, WAITING, [], [("drive", "A1", "interrupted")]),
        (
            "running",
            False,
            BUSY,
            [started(), ended(INTERRUPTED), started(2), ended(STEADY, 2)],
            [("test", "A1", "steady"), ("drive", "A1", "interrupted")],
        ),
        (
            "stopped",
            False,
            CUT,
            [started(), ended(INTERRUPTED)],
            [("test", "A1", "interrupted"), ("drive", "A1", "interrupted")],
        ),
        ("failed", False, BUSY, [started()], [("test", "A1", "interrupted"), ("drive", "A1", "interrupted")]),
        ("finished", False, DONE, [started(), ended(STEADY)], [("test", "A1", "steady"), ("drive", "A1", "complete")]),
        # The journal of a resumed run whose drive was done before has no second start of it.
        (
            "finished",
            False,
            {"phase": "done", "outcome": "refused"},
            [guard(eligible=False)],
            [("drive", "A1", "refused")],
        ),
    ],
)
def test_records_tell_what_stands(tmp_path, state, alive, entry, events, told):
    folder = Folder(tmp_path).status(state, alive, [("A1", entry)]).journal(*events)
    assert kinds(folder.read()) == told


def test_a_test_record_merges_its_events_without_the_cells(tmp_path):
    purge = ("purge", {"drive": "A1", "test": "iops", "attempt": 1, "method": "deallocate", "seconds": 1.5})
    events = [started(), purge, ("cell", {"drive": "A1", "test": "iops", "attempt": 1, "round": 1}), ended(STEADY)]
    skipped = [{"id": "rand-512", "reason": "below the logical block size"}]
    folder = Folder(tmp_path).plan(not_applicable=skipped).status("finished", drives=[("A1", DONE)]).journal(*events)
    record = drive_records.records(folder.read())[0]
    assert record["purge"] == {"method": "deallocate", "seconds": 1.5}
    assert record["precondition"] is None and "cells" not in record
    assert (record["test"], record["attempt"], record["title"], record["rounds"]) == ("iops", 1, "Random IOPS", 7)
    assert record["started"] <= record["finished"] == record["time"]
    assert record["not_applicable"] == skipped


def test_an_unfinished_test_says_so_and_counts_its_rounds(tmp_path):
    events = [started(), *[("round", {"drive": "A1", "test": "iops", "attempt": 1, "round": n}) for n in (1, 2)]]
    record = drive_records.records(Folder(tmp_path).status(alive=False, drives=[("A1", BUSY)]).journal(*events).read())[
        0
    ]
    assert record["finished"] is None and record["rounds"] == 2 and record["reasons"][0].startswith("interrupted")


def test_a_drive_record_carries_who_it_is_and_why_it_was_refused(tmp_path):
    refusals = [{"code": "mounted", "message": "mounted on /"}]
    entry = {"phase": "done", "outcome": "refused", "message": "mounted on /", "path": "/dev/loop9"}
    folder = (
        Folder(tmp_path)
        .status("finished", drives=[("A1", entry)])
        .journal(guard(), guard(eligible=False, refusals=refusals, identity=None))
    )
    record = drive_records.records(folder.read())[0]
    assert (record["identity"], record["refusals"], record["message"], record["path"]) == (
        IDENTITY,
        refusals,
        "mounted on /",
        "/dev/loop9",
    )


def test_a_drive_record_carries_its_own_logs_and_its_power_cycles(tmp_path):
    once, again = ({"boot_id": f"b{count}", "power_cycles": count} for count in (7, 8))
    kept = {"reason": "missed", "logs": [{"log": "telemetry", "file": "", "size_bytes": None, "message": "none"}]}
    begun = {"drive": "A1", "identity": IDENTITY, "path": "/dev/nvme0n1", "tests": ["iops"]}
    events = [("drive_started", dict(begun, power=once)), ("drive_started", dict(begun, power=again))]
    folder = Folder(tmp_path).status("finished", drives=[("A1", DONE)])
    folder.journal(*events, ("logs_kept", dict(kept, drive="A1")))
    record = drive_records.records(folder.read())[-1]
    assert (record["power"], record["logs"]) == ({"first": once, "last": again}, kept)
    # A run of an older release tells neither.
    old = Folder(tmp_path, "r0").status("finished", drives=[("A1", DONE)]).journal(("drive_started", begun))
    assert (drive_records.records(old.read())[-1]["power"], drive_records.records(old.read())[-1]["logs"]) == (
        None,
        None,
    )


@pytest.mark.parametrize("outcome, told", [("error", True), ("interrupted", None)])
def test_a_drive_record_says_whose_error_it_is(tmp_path, outcome, told):
    ended = {"drive": "A1", "outcome": outcome, "message": "it hangs", "drive_fault": True}
    folder = Folder(tmp_path).status("finished", drives=[("A1", dict(DONE, outcome=outcome))])
    folder.journal(("drive_finished", ended))
    assert drive_records.records(folder.read())[-1].get("drive_fault") == told


def test_reading_twice_gives_the_same_records(tmp_path):
    folder = Folder(tmp_path).status(alive=False, drives=[("A1", BUSY), ("B2", WAITING)]).journal(started())
    assert drive_records.records(folder.read()) == drive_records.records(folder.read())


def test_records_are_valid(tmp_path):
    jsonschema = pytest.importorskip("jsonschema")
    entries = [("A1", BUSY), ("B2", WAITING), ("C3", {"phase": "done", "outcome": "error", "message": "fio"})]
    failed = [guard(drive="C3"), started(drive="C3"), ended(dict(STEADY, outcome="error"), drive="C3")]
    run = Folder(tmp_path).status(alive=False, drives=entries).journal(guard(), started(), *failed).read()
    schema = json.loads((SCHEMAS / "results.schema.json").read_text())
    for record in drive_records.records(run):
        jsonschema.Draft202012Validator(schema).validate(record)


def test_a_test_record_tells_the_loads_that_followed_the_cpus(tmp_path):
    jsonschema = pytest.importorskip("jsonschema")
    loads = [{"cell": "rand-4k-w100-tc1to8-load256", "threads": 4, "queue_depth": 64, "cpus": 4}]
    events = [guard(), started(), ended(dict(STEADY, loads=loads)), started(test="wsat"), ended(STEADY, test="wsat")]
    run = Folder(tmp_path).status("finished", drives=[("A1", DONE)]).journal(*events).read()
    iops, wsat, _drive = drive_records.records(run)
    assert iops["loads"] == loads and "loads" not in wsat
    jsonschema.Draft202012Validator(json.loads((SCHEMAS / "results.schema.json").read_text())).validate(iops)


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
    assert run.state == "absent" and drive_records.records(run) == [] and drive_records.unfinished(run) == []


def test_a_job_that_ends_while_we_look_is_not_dead(tmp_path, monkeypatch):
    folder = Folder(tmp_path).status(drives=[("A1", BUSY)])

    def job_ends(host, status):
        if status["state"] == "running":
            folder.status("finished", drives=[("A1", DONE)])
            return "dead"
        return status["state"]

    monkeypatch.setattr(liveness, "state_of", job_ends)
    assert folder.read().state == "finished"


def test_unfinished_names_the_drives_of_a_live_job_only(tmp_path):
    folder = Folder(tmp_path).status(drives=[("A1", DONE), ("B2", BUSY), ("C3", WAITING)])
    assert drive_records.unfinished(folder.read()) == ["B2", "C3"]
    assert drive_records.unfinished(folder.status(alive=False, drives=[("B2", BUSY)]).read()) == []


@pytest.mark.parametrize(
    "state, asked_for, told", [("running", None, True), ("finished", None, False), ("finished", RUN, True)]
)
def test_a_run_tells_how_its_tests_are_defined_where_that_counts(tmp_path, state, asked_for, told):
    Folder(tmp_path).status(state).plan(cells=[{"id": "c", "runtime_s": 1}], rounds={"max": 5})
    (run,) = summary.runs(HOST, str(tmp_path), definitions_of=asked_for)
    assert list(run["definitions"]) == (["iops"] if told else [])


def test_a_definition_is_the_same_for_drives_that_cannot_do_all_cells():
    small = {"name": "iops", "cells": [{"id": "a", "runtime_s": 1}], "not_applicable": [{"id": "b", "reason": "r"}]}
    whole = {"name": "iops", "cells": [{"id": "a", "runtime_s": 1}, {"id": "b", "runtime_s": 1}], "not_applicable": []}
    one, both = [
        digests.of_tests({"drives": [{"tests": [test]} for test in tests]}) for tests in ([small], [small, whole])
    ]
    assert one == both
    assert one != digests.of_tests({"drives": [{"tests": [dict(whole, rounds={"max": 2})]}]})
