# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The records of drives and tests, reduced from the journal of a run's folder."""

from __future__ import annotations

import json

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.records import base
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.plan import CollectedPlan
from ansible_collections.ssdlab.fleet.plugins.module_utils.run import folder as rundir
from ansible_collections.ssdlab.fleet.plugins.module_utils.run.drive_records import RunReducer
from ansible_collections.ssdlab.fleet.tests.fixtures import documents, steady_test
from ansible_collections.ssdlab.fleet.tests.fixtures.journal_events import EVENTS
from ansible_collections.ssdlab.fleet.tests.unit.plugins.module_utils.run.written_folder import (
    BUSY,
    CUT,
    DONE,
    WAITING,
    Folder,
)

IDENTITY = {"serial": "A1", "model": "Sim"}
INTERRUPTED = steady_test.end("interrupted", ["interrupted: the run was stopped"])


def started(attempt=1, test="iops", drive="A1"):
    return "test_started", {"drive": drive, "test": test, "attempt": attempt, "title": "Random IOPS"}


def named(event, **names):
    return event["event"], {**{key: value for key, value in event.items() if key != "event"}, **names}


def steady(attempt=1, test="iops", drive="A1"):
    return [named(event, drive=drive, test=test, attempt=attempt) for event in steady_test.events()]


def interrupted(attempt=1):
    return [named(INTERRUPTED, drive="A1", test="iops", attempt=attempt)]


def guard(**fields):
    return "guard", dict(
        {"drive": "A1", "step": "start", "eligible": True, "refusals": [], "identity": IDENTITY}, **fields
    )


def records(folder):
    """Those of a run's folder, as the controller makes them of a collected one."""
    run = folder.read()
    with open(folder.run_dir.plan) as plan:
        reducer = RunReducer(base.parse(CollectedPlan, json.load(plan)))
    for event in rundir.read_journal(folder.run_dir.journal):
        reducer.take(event)
    return base.to_json(reducer.records(run.status, run.run_id, run.live))


@pytest.mark.parametrize("later", [{}, {"media_errors": 0, "available_spare_pct": 90}, {"media_errors": 7}])
def test_the_health_of_an_attempt_that_was_cut_short_counts(tmp_path, later):
    def with_health(event, **health):
        return event[0], {**event[1], "health": health}

    *rounds, end = steady(2)
    sick = with_health(interrupted()[0], media_errors=3, available_spare_pct=80)
    events = [started(), sick, started(2), *rounds, with_health(end, **later) if later else end]
    folder = Folder(tmp_path).plan().status("finished", drives=[("A1", DONE)]).journal(*events)
    (test,) = [record for record in records(folder) if record["kind"] == "test"]
    assert test["outcome"] == "steady" and test["metrics"]["write_iops"]
    assert test["metrics"]["media_errors"] == max(3, later.get("media_errors", 0))
    assert test["metrics"]["available_spare_pct"] == 80


def reset(name="nvme0", drive="A1", boot_s=100.0):
    told = {"kind": "reset", "name": name, "is_own": True, "boot_s": boot_s, "message": "resetting controller"}
    return "kernel_event", {"drive": drive, "test": "iops", "attempt": 1, **told}


JOB = "job_started", EVENTS["job_started"]


@pytest.mark.parametrize(
    "events, resets",
    [
        ([reset()], 1.0),
        # Of a run that nobody goes on with.
        ([reset(), None], 1.0),
        ([reset(), reset("nvme1", "B1")], None),
        # By the clock of another boot.
        ([reset(), JOB, reset("nvme1", "B1")], 1.0),
        ([reset("nvme1", "B1"), JOB, started(), reset()], 1.0),
    ],
)
def test_a_drive_that_took_its_host_down_is_held_to_what_was_noted(tmp_path, events, resets):
    goes_on = None not in events
    later = [JOB, started(2), *steady(2)] if goes_on else []
    folder = Folder(tmp_path).plan().status("finished", False, [("A1", DONE if goes_on else BUSY)])
    found = records(folder.journal(JOB, started(), *filter(None, events), *later))
    (test,) = [record for record in found if record["kind"] == "test"]
    assert (test["outcome"], test["metrics"].get("controller_resets")) == (
        "steady" if goes_on else "interrupted",
        resets,
    )


def test_what_became_of_a_drive_in_an_array_is_in_its_own_record(tmp_path):
    events = [
        ("member_health", {"drive": "A1", "test": "raid", "attempt": attempt, "health": {"media_errors": errors}})
        for attempt, errors in ((1, 2), (2, 0))
    ]
    drives = [("A1", DONE), ("B1", DONE)]
    folder = Folder(tmp_path).plan().status("finished", drives=drives).journal(started(), *steady(), *events)
    found = {record["drive"]: record["in_arrays"] for record in records(folder) if record["kind"] == "drive"}
    assert [(told["test"], told["health"]["media_errors"]) for told in found["A1"]] == [("raid", 2), ("raid", 0)]
    assert found["B1"] == []
    assert [record["test"] for record in records(folder) if record["kind"] == "test"] == ["iops"]


@pytest.mark.parametrize(
    "state, alive, entry, events, told",
    [
        ("running", True, BUSY, [], []),
        ("running", True, BUSY, [started()], []),
        ("running", True, BUSY, [started(), *steady()], [("test", "A1", "steady")]),
        # A live job takes up again what another one left.
        ("running", True, BUSY, [started(), *interrupted()], []),
        ("running", True, BUSY, [started(), *steady(), started(test="wsat")], [("test", "A1", "steady")]),
        ("running", True, BUSY, [started(), *interrupted(), started(2)], []),
        ("running", True, DONE, [started(), *steady()], [("test", "A1", "steady"), ("drive", "A1", "complete")]),
        ("running", False, BUSY, [started()], [("test", "A1", "interrupted"), ("drive", "A1", "interrupted")]),
        ("running", False, WAITING, [], [("drive", "A1", "interrupted")]),
        (
            "running",
            False,
            BUSY,
            [started(), *interrupted(), started(2), *steady(2)],
            [("test", "A1", "steady"), ("drive", "A1", "interrupted")],
        ),
        (
            "stopped",
            False,
            CUT,
            [started(), *interrupted()],
            [("test", "A1", "interrupted"), ("drive", "A1", "interrupted")],
        ),
        ("failed", False, BUSY, [started()], [("test", "A1", "interrupted"), ("drive", "A1", "interrupted")]),
        ("finished", False, DONE, [started(), *steady()], [("test", "A1", "steady"), ("drive", "A1", "complete")]),
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
    folder = Folder(tmp_path).plan().status(state, alive, [("A1", entry)]).journal(*events)
    assert [(record["kind"], record["drive"], record["outcome"]) for record in records(folder)] == told


def test_a_test_record_merges_its_events_without_the_cells(tmp_path):
    done = {
        "method": "deallocate",
        "seconds": 1.5,
        "verified": True,
        "verification": {"sentinels": 8, "survived": 0},
        "purge_class": "pts",
    }
    purge = ("purge", {"drive": "A1", "test": "iops", "attempt": 1, **done})
    events = [started(), purge, *steady()]
    skipped = [{"id": "rand-512", "reason": "below the logical block size"}]
    folder = Folder(tmp_path).plan(not_applicable=skipped).status("finished", drives=[("A1", DONE)]).journal(*events)
    record = records(folder)[0]
    assert record["purge"] == done
    assert record["precondition"] is None and "cells" not in record
    assert (record["test"], record["attempt"], record["title"], record["rounds"]) == ("iops", 1, "Random IOPS", 5)
    assert record["started"] <= record["finished"] == record["time"]
    assert record["not_applicable"] == skipped


def test_an_unfinished_test_says_so_and_counts_its_rounds(tmp_path):
    # Until the second of five rounds, each of one cell.
    events = [started(), *steady()[:5]]
    folder = Folder(tmp_path).plan().status(alive=False, drives=[("A1", BUSY)]).journal(*events)
    record = records(folder)[0]
    assert record["finished"] is None and record["rounds"] == 2 and record["reasons"][0].startswith("interrupted")


def test_a_drive_record_carries_who_it_is_and_why_it_was_refused(tmp_path):
    refusals = [{"code": "mounted", "message": "mounted on /"}]
    entry = {"phase": "done", "outcome": "refused", "message": "mounted on /", "path": "/dev/loop9"}
    folder = (
        Folder(tmp_path)
        .plan()
        .status("finished", drives=[("A1", entry)])
        .journal(guard(), guard(eligible=False, refusals=refusals, identity=None))
    )
    record = records(folder)[0]
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
    folder = Folder(tmp_path).plan().status("finished", drives=[("A1", DONE)])
    folder.journal(*events, ("logs_kept", dict(kept, drive="A1")))
    record = records(folder)[-1]
    assert (record["power"], record["logs"]) == ({"first": once, "last": again}, kept)


@pytest.mark.parametrize("outcome, told", [("error", True), ("interrupted", None)])
def test_a_drive_record_says_whose_error_it_is(tmp_path, outcome, told):
    ended = {"drive": "A1", "outcome": outcome, "message": "it hangs", "drive_fault": True}
    folder = Folder(tmp_path).plan().status("finished", drives=[("A1", dict(DONE, outcome=outcome))])
    folder.journal(("drive_finished", ended))
    assert records(folder)[-1].get("drive_fault") == told


def test_reading_twice_gives_the_same_records(tmp_path):
    folder = Folder(tmp_path).plan().status(alive=False, drives=[("A1", BUSY), ("B2", WAITING)]).journal(started())
    assert records(folder) == records(folder)


def test_records_are_valid(tmp_path):
    entries = [("A1", BUSY), ("B2", WAITING), ("C3", {"phase": "done", "outcome": "error", "message": "fio"})]
    ended = named(steady_test.end("error", ["fio"]), drive="C3", test="iops", attempt=1)
    events = [guard(), started(), *steady(), guard(drive="C3"), started(drive="C3"), ended]
    folder = Folder(tmp_path).plan().status(alive=False, drives=entries).journal(*events)
    made = records(folder)
    assert [record["kind"] for record in made] == ["test", "drive", "drive", "test", "drive"]
    for record in made:
        documents.validate(record, "results")


def test_a_test_that_the_plan_lacks_is_invalid_and_says_so(tmp_path):
    folder = Folder(tmp_path).plan(name="other").status("finished", drives=[("A1", DONE)])
    record = records(folder.journal(started(), *steady()))[0]
    assert record["outcome"] == "invalid" and "plan.json lacks this test" in record["reasons"][0]
    documents.validate(record, "results")


def test_a_journal_that_lost_a_line_gives_no_figures(tmp_path):
    events = steady()
    for lost in range(1, 10):
        folder = Folder(tmp_path, f"r{lost}").plan().status("finished", drives=[("A1", DONE)])
        record = records(folder.journal(started(), *events[:lost], *events[lost + 1 :]))[0]
        assert record["outcome"] == "invalid" and record["metrics"] == {}, (events[lost], record)
        assert "its journal is damaged" in record["reasons"][0]


@pytest.mark.parametrize("chosen_by", ["per_cpu", "auto_threads"])
def test_a_test_record_has_the_loads_that_the_host_chose(tmp_path, chosen_by):
    cell = {**steady_test.planned_json()["cells"][0], chosen_by: True}
    load = {"threads": 4, "queue_depth": 64, "cpus": 4}
    events = [(kind, {**fields, "chosen": load} if kind == "cell" else fields) for kind, fields in steady()]
    folder = Folder(tmp_path).plan(cells=[cell]).status("finished", drives=[("A1", DONE)])
    record = records(folder.journal(started(), *events))[0]
    assert record["loads"] == [{"cell": steady_test.CELL, **load}]
    documents.validate(record, "results")
