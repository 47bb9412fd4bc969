# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What collect makes of a host's folder: its records, its snapshot and its calibration."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.core.host import Host
from ansible_collections.ssdlab.fleet.plugins.module_utils.machine import snapshot
from ansible_collections.ssdlab.fleet.plugins.module_utils.records import base
from ansible_collections.ssdlab.fleet.plugins.module_utils.run.folder import queued
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.run_folder import host_brief, host_folder
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.validation import record_check
from ansible_collections.ssdlab.fleet.tests.fixtures import planned
from ansible_collections.ssdlab.fleet.tests.fixtures.journal_events import RECORDS
from ansible_collections.ssdlab.fleet.tests.fixtures.report import generator
from ansible_collections.ssdlab.fleet.tests.unit.plugins.plugin_utils.validation import test_entrances as entrances

CALIBRATION = {
    "parallel_drives": 3,
    "kept_share": 0.98,
    "why": "S1 is slow",
    "trials": [],
    "drives": ["SIM0002"],
    "cells": ["c"],
    "seconds": 80.5,
}


@pytest.fixture(name="folder")
def fixture_folder(tmp_path):
    return generator.make(tmp_path, rounds=6) / "raw" / entrances.BAD.host


def read(folder, state="finished", status=None):
    return host_folder.read(str(folder), generator.RUN_ID, state, status or entrances.status_of_bad())


def add(folder, event, **fields):
    envelope = {"schema_version": 1, "time": entrances.TIME, "run_id": generator.RUN_ID, "host": entrances.BAD.host}
    with (folder / "journal.jsonl").open("a") as file:
        file.write(json.dumps({**envelope, "event": event, **fields}) + "\n")


def test_a_host_tells_its_snapshot_in_short_the_newest(folder):
    assert read(folder).snapshot is None
    seen = base.to_json(snapshot.gather(Host()))
    add(folder, "snapshot", **{**seen, "kernel": {"release": "old"}})
    add(folder, "snapshot", **seen)
    assert read(folder).snapshot == host_brief.brief(seen)


@pytest.mark.parametrize(
    ("plan", "calibrated", "ran"),
    [
        (
            {
                "parallel_drives": 4,
                "together": {"repeats": 3, "cells": [], "alone": ["A"], "numbers": [4], "otherwise": 1},
            },
            False,
            None,
        ),
        (
            {
                "parallel_drives": 4,
                "together": {"repeats": 3, "cells": [], "alone": ["A"], "numbers": [4], "otherwise": 1},
            },
            True,
            3,
        ),
        # A number that was given, and fewer drives than that.
        ({"parallel_drives": 2, "drives": 4}, True, 2),
        ({"parallel_drives": 4, "drives": 2}, True, 2),
    ],
)
def test_each_test_says_how_many_drives_ran(folder, plan, calibrated, ran):
    path = folder / "plan.json"
    (drive,) = json.loads(path.read_text())["drives"]
    drives = [drive] + [{"drive": f"S{number}", "tests": []} for number in range(1, plan.pop("drives", 4))]
    path.write_text(json.dumps({**plan, "drives": drives}))
    if calibrated:
        add(folder, "calibration", **CALIBRATION)
    found = read(folder)
    assert base.to_json(found.calibration) == (CALIBRATION if calibrated else None)
    assert [record["parallel_drives"] for record in found.records if record["kind"] == "test"] == [ran]


def test_without_its_plan_the_figures_of_a_test_are_unknown(folder):
    (folder / "plan.json").unlink()
    found = read(folder)
    test, drive = found.records
    assert (test["outcome"], test["metrics"], drive["outcome"]) == ("invalid", {}, "complete")
    assert found.damage == ["plan.json: not there, so no test has figures"]
    assert "lacks this test" in test["reasons"][0]


def test_a_torn_line_is_damage_and_no_lie(folder):
    with (folder / "journal.jsonl").open("a") as file:
        file.write('{"event": "ro')
    found = read(folder)
    lines = (folder / "journal.jsonl").read_text().count("\n") + 1
    assert found.damage == [f"journal.jsonl: 1 invalid line(s), the first is line {lines}"] and not found.problems
    assert [record["outcome"] for record in found.records] == ["steady", "complete"]


@pytest.mark.parametrize("state", ["running", "finished"])
def test_what_goes_on_has_no_record_yet(folder, state):
    status = entrances.status_of_bad()
    status["drives"][0].update(phase="measure", outcome=None)
    kept = (folder / "journal.jsonl").read_text().splitlines()
    (folder / "journal.jsonl").write_text("\n".join(line for line in kept if "test_finished" not in line) + "\n")
    outcomes = [record["outcome"] for record in read(folder, state, status).records]
    assert outcomes == ([] if state == "running" else ["interrupted", "interrupted"])


def test_a_status_of_another_shape_is_told(folder):
    found = read(folder, status={"drives": 7})
    assert found.records == [] and found.problems[0].startswith("its status: ")


INTEGRITY = {
    "event": "integrity",
    "passes": 1,
    "block_size_bytes": 4096,
    "bytes_written": 1 << 20,
    "bytes_read": 1 << 20,
    "write_s": 1.0,
    "read_s": 1.0,
    "other_write_bytes": 0,
    "wrong_blocks": {"unreadable": 2},
    "complete": True,
    "first": [],
}


def test_wrong_blocks_and_the_health_of_an_arrays_drives_are_told(folder):
    of_test = {"drive": entrances.BAD.serial, "test": read(folder).records[0]["test"], "attempt": 1}
    sick = {**RECORDS["member_health"], **of_test, "test": "raid"}
    wrong = {**{key: value for key, value in sick.items() if key != "health"}, **of_test, **INTEGRITY}
    path = folder / "journal.jsonl"
    lines = path.read_text().splitlines()
    end = next(place for place, line in enumerate(lines) if json.loads(line)["event"] == "test_finished")
    path.write_text("\n".join([*lines[:end], json.dumps(wrong), *lines[end:], json.dumps(sick)]) + "\n")
    found = read(folder)
    test, drive = found.records
    assert not found.problems and test["integrity"]["wrong_blocks"] == {"unreadable": 2}
    assert [told["health"]["media_errors"] for told in drive["in_arrays"]] == [2]


LACKS = "the run's plan.json lacks this test"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda test: test.pop("rounds"), LACKS),
        (lambda test: test.pop("cells"), LACKS),
        (lambda test: test["cells"][0].pop("runtime_s"), LACKS),
        (lambda test: test["steady_state"]["tracked"][0].update(cell="other"), "is damaged"),
    ],
)
def test_a_plan_that_cannot_be_computed_with_makes_its_test_invalid(folder, change, said):
    path = folder / "plan.json"
    plan = json.loads(path.read_text())
    change(plan["drives"][0]["tests"][0])
    path.write_text(json.dumps(plan))
    found = read(folder)
    assert [record["outcome"] for record in found.records] == ["invalid", "complete"]
    assert said in found.records[0]["reasons"][0] and bool(found.problems) == (said == LACKS)


def test_a_round_that_misses_makes_its_test_invalid(folder):
    path = folder / "journal.jsonl"
    kept = [line for line in path.read_text().splitlines() if not ('"round"' in line and '"round": 3,' in line)]
    path.write_text("\n".join(kept) + "\n")
    (test, _drive) = read(folder).records
    assert test["outcome"] == "invalid" and "round 4 follows round 2" in test["reasons"][0]


def test_a_test_without_rounds_is_invalid(folder):
    path = folder / "journal.jsonl"
    kept = [line for line in path.read_text().splitlines() if json.loads(line)["event"] != "round"]
    path.write_text("\n".join(kept) + "\n")
    (test, _drive) = read(folder).records
    assert (test["outcome"], test["reasons"]) == ("invalid", ["no round was completed"])


def test_what_is_made_of_any_event_of_the_contract_is_taken(tmp_path):
    """A key that an event's class lacks is dropped here, and the record that is made of it refused."""
    plan = planned.plan_json(drives=[{"drive": "A1", "tests": [{"name": "iops", "cells": [{"read_pct": 0}]}]}])
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    (tmp_path / "journal.jsonl").write_text("".join(json.dumps(record) + "\n" for record in RECORDS.values()))
    status = {**entrances.status_of_bad(), "drives": [{**queued("A1"), "phase": "done", "outcome": "complete"}]}
    results = host_folder.read(str(tmp_path), "r1", "finished", status)
    checked = record_check.collected(results.records, "r1", "h1", entrances.TIME)
    assert (results.problems, checked.problems) == ([], [])
    (of_test,) = [record for record in checked.records if record["kind"] == "test"]
    assert of_test["outcome"] != "error", of_test["reasons"]
    assert [len(of_test[part]) > 2 for part in ("purge", "precondition", "array", "filesystem")] == [True] * 4
    assert [{**member, **other} for member, other in zip(of_test["array"]["members"], RECORDS["array"]["members"])] == (
        of_test["array"]["members"]
    )


FIND_NO_MORE = """
import json, sys, typing
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.run_folder import host_folder
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.validation import journal
journal.prepare()
host_folder.prepare()
def find(kind, *_more, **_named):
    raise AssertionError(f"a worker has to find out what {kind} is made of")
typing.get_type_hints = find
folder, run_id, status = sys.argv[1:]
found = host_folder.read(folder, run_id, "finished", json.loads(status))
print(found.problems, sorted({record["kind"] for record in found.records}))
"""


def test_what_records_are_made_of_is_known_before_a_worker_reads_a_folder(folder):
    """In a process of its own, as others have read folders in this one."""
    add(folder, "snapshot", **base.to_json(snapshot.gather(Host())))
    add(folder, "calibration", **CALIBRATION)
    command = [sys.executable, "-c", FIND_NO_MORE, str(folder), generator.RUN_ID, json.dumps(entrances.status_of_bad())]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "[] ['drive', 'test']\n", "")
