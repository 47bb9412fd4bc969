# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Damaged files of a run whose job is gone: a state of that run, said in words, and nothing that is still readable is
lost.
"""

from __future__ import annotations

import itertools
import json
import os
import tarfile
import threading

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.core import files, locks
from ansible_collections.ssdlab.fleet.plugins.module_utils.core.host import BOOT_ID, Host
from ansible_collections.ssdlab.fleet.plugins.module_utils.job import control
from ansible_collections.ssdlab.fleet.plugins.module_utils.run import (
    archive,
    engines,
    folder,
    liveness,
    summary,
)
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.run_folder import host_folder
from ansible_collections.ssdlab.fleet.tests.fixtures import planned, plans, run_results, steady_test

DRIVE = "A1"
PLAN = planned.plan_json(
    run={"id": "r", "name": "n"},
    host="h",
    drives=[{"drive": DRIVE, "selector": {"serial": DRIVE}, "tests": [steady_test.planned_json("t")]}],
)
PLAN = plans.decided(PLAN)
TEST = {"drive": DRIVE, "test": "t", "attempt": 1}
FILES = ("status", "plan", "tuning", "journal")
DAMAGES = {
    "empty": "",
    "torn": '{"state": "runn',
    "other": "{}",
    "list": "[]",
    "null": "null",
    "number": "7",
    "deep": "[" * 100000,
    "nul": "\0" * 4096,
    "types": json.dumps(
        {"state": 5, "drives": [1], "run": [], "settings": {}, "boot_id": [], "event": {}, "host": None}
    ),
    "inner": json.dumps(
        {
            "state": "running",
            "drives": [{"drive": {}}],
            "run": {"id": 1, "name": 2},
            "settings": [3],
            "boot_id": "b",
            "event": "tuned",
        }
    ),
    "mapping of mappings": json.dumps(
        {"state": {"a": 1}, "drives": {"a": {}}, "event": "test_started", "time": "x", "drive": DRIVE}
    ),
    "binary": "\udcff\udcfe{",
}


def start(run_dir):
    engine = engines.Engine("engine-1.pyz", "")
    return control.start(Host(), run_dir, plans.typed(PLAN), engine, check=True)


ACTS = {
    "start": start,
    "stop": lambda run_dir: control.stop(Host(), run_dir),
    "restore": lambda run_dir: control.restore(Host(), run_dir.state_dir),
    "restore one": lambda run_dir: control.restore(Host(), run_dir.state_dir, run_id=run_dir.run_id),
    "remove": lambda run_dir: control.remove(Host(), run_dir),
    "list": lambda run_dir: summary.runs(Host(), run_dir.state_dir, definitions_of=run_dir.run_id),
    "collect": lambda run_dir: (run_results.records(run_dir), archive.pack(run_dir)),
}


@pytest.fixture
def run_dir(tmp_path, monkeypatch):
    """A run whose job died after its test was measured; it had changed one setting."""
    monkeypatch.setattr(locks, "LOCK_DIR", str(tmp_path / "locks"))
    place = folder.RunDir(str(tmp_path / "state"), "r")
    os.makedirs(place.path)
    setting = tmp_path / "setting"
    setting.write_text("2")
    item = {"kind": "sysfs", "name": "nomerges", "path": str(setting), "before": "0", "wanted": "2", "device": None}
    files.write_atomic(place.plan, json.dumps(PLAN))
    files.write_atomic(
        place.tuning,
        json.dumps(
            {"boot_id": Host().get(BOOT_ID), "keep": False, "order": 1, "made": files.now(), "settings": [item]}
        ),
    )
    status = dict(liveness.first_status(Host(), plans.typed(PLAN), "running"), pid=2**22, pid_start="1")
    files.write_atomic(place.status, json.dumps(status))
    journal = folder.Journal(place.journal, run_id="r", host="h")
    journal.add("job_started", boot_id=Host().get(BOOT_ID), pid=1, engine_version="1", fio_version="fio-3.33")
    journal.add(
        "tuned",
        settings=[dict(item, effective="2", outcome="changed", message="")],
        side_effects=[],
        keep=False,
        order=1,
    )
    journal.add("drive_started", drive=DRIVE, identity={}, path="/dev/null", tests=["t"])
    journal.add("test_started", title="T", **TEST)
    for event in steady_test.events():
        journal.add(**event, **TEST)
    journal.close()
    place.setting = setting
    return place


def damage(run_dir, name, text):
    with open(getattr(run_dir, name), "a" if name == "journal" else "w", errors="surrogateescape") as out:
        out.write(text)


@pytest.mark.parametrize("act", ACTS)
@pytest.mark.parametrize("name, kind", list(itertools.product(FILES, DAMAGES)))
def test_damage_is_told_and_never_a_traceback(run_dir, name, kind, act):
    damage(run_dir, name, DAMAGES[kind])
    try:
        ACTS[act](run_dir)
    except (control.JobError, files.Damaged) as error:
        assert os.path.basename(getattr(run_dir, name)) in str(error) or act in ("restore", "stop", "remove"), error


@pytest.mark.parametrize("kind", DAMAGES)
def test_a_damaged_status_is_a_state_of_its_own_and_loses_no_result(run_dir, kind):
    damage(run_dir, "status", DAMAGES[kind])
    run = summary.read(Host(), run_dir)
    assert run.state == "damaged" and "status.json" in run.damage[0]
    assert [(r["kind"], r["outcome"]) for r in run_results.records(run_dir)] == [
        ("test", "steady"),
        ("drive", "interrupted"),
    ]
    (listed,) = summary.runs(Host(), run_dir.state_dir)
    assert (listed["state"], listed["run_name"]) == ("damaged", "n")
    assert control.stop(Host(), run_dir)["state"] == "stopped" and run_dir.setting.read_text() == "0"


@pytest.mark.parametrize("kind", DAMAGES)
def test_a_damaged_record_of_settings_is_made_up_for_by_the_journal(run_dir, kind):
    damage(run_dir, "tuning", DAMAGES[kind])
    done = control.restore(Host(), run_dir.state_dir)
    assert [item["outcome"] for item in done["restored"]] == ["restored"]
    assert run_dir.setting.read_text() == "0" and not os.path.exists(run_dir.tuning)
    assert control.restore(Host(), run_dir.state_dir)["changed"] is False


def test_without_the_journal_too_a_damaged_record_is_a_failure_that_says_so(run_dir):
    damage(run_dir, "tuning", "")
    os.truncate(run_dir.tuning, 3)
    os.unlink(run_dir.journal)
    with pytest.raises(control.JobError, match="tuning.json is damaged"):
        control.restore(Host(), run_dir.state_dir)
    assert os.path.exists(run_dir.tuning)


@pytest.mark.parametrize("kind", DAMAGES)
def test_a_damaged_line_of_the_journal_costs_that_line(run_dir, kind):
    before = folder.read_journal(run_dir.journal)
    damage(run_dir, "journal", DAMAGES[kind])
    journal = folder.Journal(run_dir.journal, run_id="r", host="h")
    added = journal.add("job_finished", state="failed")
    journal.close()
    assert folder.read_journal(run_dir.journal) == before + [added]
    found = host_folder.read(run_dir.path, "r", "dead", summary.read(Host(), run_dir).status)
    assert bool(found.damage or found.problems) is bool(DAMAGES[kind])


def test_records_are_put_back_in_the_order_in_which_they_were_made_whatever_the_clock_said(tmp_path, run_dir):
    """The clock was set back between two jobs: the older record has the later time."""
    second = folder.RunDir(run_dir.state_dir, "a-second")
    os.makedirs(second.path)
    item = {
        "kind": "sysfs",
        "name": "nomerges",
        "path": str(run_dir.setting),
        "before": "2",
        "wanted": "1",
        "device": None,
    }
    record = {
        "boot_id": Host().get(BOOT_ID),
        "keep": False,
        "order": 2,
        "made": "1999-01-01T00:00:00.000Z",
        "settings": [item],
    }
    files.write_atomic(second.tuning, json.dumps(record))
    run_dir.setting.write_text("1")
    control.restore(Host(), run_dir.state_dir)
    assert run_dir.setting.read_text() == "0"


def test_somebody_elses_state_folder_is_refused(run_dir):
    """Its tuning.json would be followed, and its engine run, as root."""
    if os.geteuid() != 0:
        pytest.skip("needs root to give a folder away")
    control.refuse_foreign(run_dir.state_dir)
    os.chown(run_dir.state_dir, 65534, 65534)
    with pytest.raises(control.JobError, match="belongs to user 65534"):
        control.refuse_foreign(run_dir.state_dir)


def test_locks_are_their_owners_alone(run_dir):
    os.makedirs(locks.LOCK_DIR, mode=0o755)
    with locks.host_lock({"run": "r"}) as lock:
        assert oct(os.stat(lock.path).st_mode & 0o777) == "0o600"
        assert oct(os.stat(locks.LOCK_DIR).st_mode & 0o777) == "0o700"
    if os.geteuid() == 0:
        os.chown(locks.LOCK_DIR, 65534, 65534)
        with pytest.raises(locks.Locked, match="belongs to user 65534"):
            locks.host_lock({"run": "r"}).acquire()


def test_an_archive_of_a_living_run_is_whole(run_dir):
    """Raw files come and go, and grow, while it is packed."""
    raw = run_dir.raw(DRIVE)
    stop = []

    def churn():
        number = 0
        while not stop:
            number += 1
            path = os.path.join(raw, f"c-{number % 7}.json")
            with open(path, "w") as out:
                out.write("x" * (number * 997 % 200000))
            os.truncate(path, 5)
            os.rename(path, path + ".gz")
            os.unlink(path + ".gz")

    thread = threading.Thread(target=churn)
    thread.start()
    try:
        for _attempt in range(25):
            packed = archive.pack(run_dir)
            with tarfile.open(packed.path) as tar:
                assert "journal.jsonl" in tar.getnames()
            os.unlink(packed.path)
    finally:
        stop.append(True)
        thread.join()
