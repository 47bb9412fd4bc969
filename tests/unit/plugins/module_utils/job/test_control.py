# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import dataclasses
import hashlib
import json
from dataclasses import replace
from pathlib import Path

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.core import files, locks
from ansible_collections.ssdlab.fleet.plugins.module_utils.core.host import Host
from ansible_collections.ssdlab.fleet.plugins.module_utils.job import control, launch, restore
from ansible_collections.ssdlab.fleet.plugins.module_utils.records import base
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.plan import PlannedRun, Tune
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.tuning import Setting
from ansible_collections.ssdlab.fleet.plugins.module_utils.run import digests, engines, folder
from ansible_collections.ssdlab.fleet.tests.fixtures import planned

PLAN = planned.plan_of(boot_id="one", drives=[{"expected": {"path": "/dev/a"}, "tests": [{"name": "wsat"}]}])
DECIDED = dataclasses.replace(PLAN, decision=digests.decision(PLAN))
DATA = b"the engine"
ENGINE = engines.Engine("engine-1-abc.pyz", hashlib.sha256(DATA).hexdigest())


def changed(**changes):
    return dataclasses.replace(PLAN, **changes)


def other_drive(**changes):
    return changed(drives=[dataclasses.replace(PLAN.drives[0], **changes)])


@pytest.mark.parametrize(
    "state, plan, action",
    [
        ("running", PLAN, "attach"),
        ("starting", PLAN, "attach"),
        ("running", changed(tune=Tune(cpu_dma_latency_us=0), sample_interval_s=5), "attach"),
        ("dead", PLAN, "resume"),
        ("stopped", PLAN, "resume"),
        ("failed", PLAN, "resume"),
        ("finished", PLAN, "nothing"),
        # A reboot changes the boot and names below /dev, an update the engine; what was asked for stays.
        ("dead", changed(boot_id="two", engine_version="2"), "resume"),
        ("dead", other_drive(expected={"path": "/dev/b"}), "resume"),
        ("dead", other_drive(selector={"serial": "S1", "allow": ["signature"], "ssd_overwrite_data": True}), "resume"),
        ("finished", other_drive(tests=[planned.spec(name="iops")]), "nothing"),
    ],
)
def test_what_a_start_does(run_dir, state, plan, action):
    files.write_atomic(run_dir.plan, json.dumps(base.sparse_json(PLAN)))
    assert control.decide(run_dir, state, plan) == action


@pytest.mark.parametrize(
    "state, plan",
    [
        ("dead", other_drive(tests=[planned.spec(name="iops")])),
        ("dead", other_drive(selector={"serial": "S2"})),
        ("dead", changed(parallel_drives=2)),
        ("dead", changed(tune=Tune(cpu_dma_latency_us=0))),
        ("dead", changed(sample_interval_s=5)),
        ("running", other_drive(tests=[planned.spec(name="iops")])),
    ],
)
def test_a_run_never_goes_on_with_another_plan(run_dir, state, plan):
    files.write_atomic(run_dir.plan, json.dumps(base.sparse_json(PLAN)))
    with pytest.raises(control.JobError, match="another plan"):
        control.decide(run_dir, state, plan)


def test_an_unknown_run_is_started(run_dir):
    assert control.decide(run_dir, "dead", PLAN) == "start"


def test_check_mode_starts_nothing(run_dir):
    result = control.start(Host(), run_dir, DECIDED, ENGINE, check=True)
    assert (result["changed"], result["action"]) == (True, "start")
    assert files.read_json(run_dir.plan) is None


@pytest.mark.parametrize(
    "decided, told",
    [
        (None, "carries no decision"),
        (digests.decision(PLAN, "plan"), "ssd_mode=plan"),
        (digests.decision(other_drive(selector={"serial": "S2"})), "not what preflight approved"),
        (digests.decision(changed(run=PlannedRun("other", "n"))), "not what preflight approved"),
    ],
)
def test_a_plan_that_preflight_did_not_decide_on_is_not_started(run_dir, decided, told):
    with pytest.raises(control.JobError, match=told):
        control.start(Host(), run_dir, changed(decision=decided), ENGINE)
    assert files.read_json(run_dir.plan) is None


def test_a_state_folder_that_others_write_starts_nothing(run_dir, tmp_path):
    tmp_path.chmod(0o777)
    with pytest.raises(control.JobError, match="users other than root may write to it"):
        control.start(Host(), run_dir, DECIDED, ENGINE)


@pytest.fixture
def launched(monkeypatch, tmp_path_factory):
    """What was run instead of a host job: the content of the engine each time."""
    run = []
    monkeypatch.setattr(control, "launch", lambda _host, _run_dir, path: run.append(Path(path).read_bytes()))
    monkeypatch.setattr(control, "await_start", lambda _host, _run_dir, _end: "running")
    monkeypatch.setattr(locks, "LOCK_DIR", str(tmp_path_factory.mktemp("locks")))
    return run


def start(run_dir, data=None):
    return control.start(Host(), run_dir, DECIDED, ENGINE._replace(data=data))["action"]


def test_an_engine_that_lies_there_need_not_be_sent(run_dir, tmp_path, launched):
    (tmp_path / ENGINE.name).write_bytes(DATA)
    assert start(run_dir) == "start" and launched == [DATA]


@pytest.mark.parametrize("lies_there", [None, b"another engine"])
def test_without_its_engine_nothing_is_started_and_nothing_changed(run_dir, tmp_path, launched, lies_there):
    if lies_there is not None:
        (tmp_path / ENGINE.name).write_bytes(lies_there)
    before = sorted(tmp_path.rglob("*"))
    assert start(run_dir) == control.SEND_ENGINE
    assert launched == [] and sorted(tmp_path.rglob("*")) == before
    assert start(run_dir, DATA) == "start" and launched == [DATA]


def test_a_host_that_has_the_run_under_way_needs_no_engine(run_dir, launched):
    launch.write_starting(Host(), run_dir, PLAN)
    files.write_atomic(run_dir.plan, json.dumps(base.sparse_json(PLAN)))
    assert start(run_dir) == "attach" and launched == []


def test_stop_and_remove_of_nothing_change_nothing(tmp_path):
    absent = folder.RunDir(str(tmp_path), "absent")
    assert control.stop(Host(), absent)["changed"] is False
    assert control.remove(Host(), absent)["changed"] is False
    assert control.restore(Host(), str(tmp_path))["changed"] is False


def test_no_run_starts_on_settings_that_could_not_be_put_back():
    failed = Setting("sysfs", "x", "/sys/x", "b", effective="a", outcome="failed", message="Invalid argument")
    with pytest.raises(restore.NotRestored, match="/sys/x: Invalid argument"):
        restore.refuse_unrestored([replace(failed, outcome="restored"), failed])


def test_a_live_run_is_neither_removed_nor_restored(run_dir):
    launch.write_starting(Host(), run_dir, PLAN)
    with pytest.raises(control.JobError, match="stop.yml"):
        control.remove(Host(), run_dir)
    with pytest.raises(control.JobError, match="restore this host itself"):
        control.restore(Host(), run_dir.state_dir)
    assert control.restore(Host(), run_dir.state_dir, run_id="another")["action"] == "nothing"


def test_a_run_that_goes_on_is_held_to_what_it_began_with():
    began = changed(criteria=[{"metric": "write_iops", "min": 500}, {"metric": "read_iops", "min": 1}])
    now = changed(criteria=[{"metric": "read_iops", "min": 1}])
    assert control.held_to_all(began, now).criteria == [*now.criteria, began.criteria[0]]
    for before in (None, PLAN, now):
        assert control.held_to_all(before, now) == now
    sick = changed(health_criteria=[{"metric": "media_errors", "max": 0}])
    assert control.held_to_all(sick, now).health_criteria == sick.health_criteria
