# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import copy
import hashlib
import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.core import files, locks
from ansible_collections.ssdlab.fleet.plugins.module_utils.core.files import now, write_atomic
from ansible_collections.ssdlab.fleet.plugins.module_utils.core.host import Host
from ansible_collections.ssdlab.fleet.plugins.module_utils.job import control, launch, restore
from ansible_collections.ssdlab.fleet.plugins.module_utils.run import decision, engines, folder
from ansible_collections.ssdlab.fleet.plugins.module_utils.run.folder import queued
from ansible_collections.ssdlab.fleet.plugins.module_utils.run.liveness import pid_start
from ansible_collections.ssdlab.fleet.plugins.module_utils.tuning import settings as tuning

PLAN = {
    "schema_version": 1,
    "engine_version": "1",
    "boot_id": "one",
    "run": {"id": "r", "name": "n"},
    "host": "h",
    "parallel_drives": 1,
    "tune": {},
    "drives": [
        {"drive": "S1", "selector": {"serial": "S1"}, "expected": {"path": "/dev/a"}, "tests": [{"name": "wsat"}]}
    ],
}
DATA = b"the engine"
ENGINE = engines.Engine("engine-1-abc.pyz", hashlib.sha256(DATA).hexdigest())


@pytest.fixture
def run_dir(tmp_path):
    place = folder.RunDir(str(tmp_path), "r")
    (tmp_path / "runs" / "r").mkdir(parents=True)
    return place


def changed(**changes):
    return dict(copy.deepcopy(PLAN), **changes)


def other_drive(**changes):
    return changed(drives=[dict(PLAN["drives"][0], **changes)])


@pytest.mark.parametrize(
    "state, plan, action",
    [
        ("running", PLAN, "attach"),
        ("starting", PLAN, "attach"),
        ("running", changed(tune={"cpu": {}}, sample_interval_s=5), "attach"),
        ("dead", PLAN, "resume"),
        ("stopped", PLAN, "resume"),
        ("failed", PLAN, "resume"),
        ("finished", PLAN, "nothing"),
        # A reboot changes the boot and names below /dev, an update the engine; what was asked for stays.
        ("dead", changed(boot_id="two", engine_version="2"), "resume"),
        ("dead", other_drive(expected={"path": "/dev/b"}), "resume"),
        ("dead", other_drive(selector={"serial": "S1", "allow": ["signature"], "ssd_overwrite_data": True}), "resume"),
        ("finished", other_drive(tests=[{"name": "iops"}]), "nothing"),
    ],
)
def test_what_a_start_does(run_dir, state, plan, action):
    files.write_atomic(run_dir.plan, json.dumps(PLAN))
    assert control.decide(run_dir, state, plan) == action


@pytest.mark.parametrize(
    "state, plan",
    [
        ("dead", other_drive(tests=[{"name": "iops"}])),
        ("dead", other_drive(selector={"serial": "S2"})),
        ("dead", changed(parallel_drives=2)),
        ("dead", changed(tune={"cpu": {}})),
        ("dead", changed(sample_interval_s=5)),
        ("running", other_drive(tests=[{"name": "iops"}])),
    ],
)
def test_a_run_never_goes_on_with_another_plan(run_dir, state, plan):
    files.write_atomic(run_dir.plan, json.dumps(PLAN))
    with pytest.raises(control.JobError, match="another plan"):
        control.decide(run_dir, state, plan)


def test_an_unknown_run_is_started(run_dir):
    assert control.decide(run_dir, "dead", PLAN) == "start"


def test_check_mode_starts_nothing(run_dir):
    result = control.start(Host(), run_dir, dict(PLAN, decision=decision.made(PLAN)), ENGINE, check=True)
    assert (result["changed"], result["action"]) == (True, "start")
    assert files.read_json(run_dir.plan) is None


@pytest.mark.parametrize(
    "decided, told",
    [
        (None, "carries no decision"),
        (decision.made(PLAN, "plan"), "ssd_mode=plan"),
        (decision.made(other_drive(selector={"serial": "S2"})), "not those that preflight approved"),
        (decision.made(changed(run={"id": "other", "name": "n"})), "not those that preflight approved"),
    ],
)
def test_a_plan_that_preflight_did_not_decide_on_is_not_started(run_dir, decided, told):
    with pytest.raises(control.JobError, match=told):
        control.start(Host(), run_dir, dict(PLAN, decision=decided), ENGINE)
    assert files.read_json(run_dir.plan) is None


def test_a_state_folder_that_others_write_starts_nothing(run_dir, tmp_path):
    tmp_path.chmod(0o777)
    with pytest.raises(control.JobError, match="not root's alone to write"):
        control.start(Host(), run_dir, dict(PLAN, decision=decision.made(PLAN)), ENGINE)


@pytest.fixture
def launched(monkeypatch, tmp_path_factory):
    """What was run instead of a host job: the content of the engine each time."""
    run = []
    monkeypatch.setattr(control, "launch", lambda _host, _run_dir, path: run.append(Path(path).read_bytes()))
    monkeypatch.setattr(control, "await_start", lambda _host, _run_dir: "running")
    monkeypatch.setattr(locks, "LOCK_DIR", str(tmp_path_factory.mktemp("locks")))
    return run


def start(run_dir, data=None):
    plan = dict(PLAN, decision=decision.made(PLAN))
    return control.start(Host(), run_dir, plan, ENGINE._replace(data=data))["action"]


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
    files.write_atomic(run_dir.plan, json.dumps(PLAN))
    assert start(run_dir) == "attach" and launched == []


def test_stop_and_remove_of_nothing_change_nothing(tmp_path):
    absent = folder.RunDir(str(tmp_path), "absent")
    assert control.stop(Host(), absent)["changed"] is False
    assert control.remove(Host(), absent)["changed"] is False
    assert control.restore(Host(), str(tmp_path))["changed"] is False


def test_a_run_whose_settings_are_not_back_is_not_removed(run_dir):
    files.write_atomic(run_dir.tuning, "{}")
    with pytest.raises(control.JobError, match="restore.yml"):
        control.remove(Host(), run_dir)


def test_what_tune_left_stays_for_a_later_run_and_goes_by_restore(run_dir):
    host = Host()
    files.write_atomic(run_dir.tuning, json.dumps({"boot_id": tuning.boot_id(host), "keep": True, "settings": []}))
    assert restore.restore_leftovers(host, run_dir.state_dir) == [] and os.path.exists(run_dir.tuning)
    assert control.restore(host, run_dir.state_dir)["changed"] is True
    assert not os.path.exists(run_dir.tuning)


def test_restore_lets_go_of_a_drive_that_is_gone_and_says_so(run_dir):
    """After a reboot no play may drop the record by itself; a dead drive must not keep its host from any run."""
    setting = {
        "kind": "write_cache",
        "name": "write_cache",
        "path": "write cache of /dev/nvme9n9",
        "wanted": "off",
        "before": "on",
        "device": "nvme9n9",
    }
    record = {"boot_id": "an earlier one", "keep": False, "settings": [dict(setting, selector={"serial": "GONE"})]}
    files.write_atomic(run_dir.tuning, json.dumps(record))
    with pytest.raises(restore.NotRestored, match="the drive GONE is not there"):
        restore.refuse_unrestored(restore.restore_leftovers(Host(), run_dir.state_dir))
    assert control.restore(Host(), run_dir.state_dir)["warnings"] == [
        "the drive GONE is not there; its write cache was on before, and stays off"
    ]
    assert not os.path.exists(run_dir.tuning)


def test_what_became_of_a_thousand_settings_is_told_in_a_few(tmp_path):
    """A result goes over the wire for each host: a server with 256 CPUs has 1,800 settings."""
    host, place = Host(str(tmp_path)), folder.RunDir(str(tmp_path), "r")
    paths = [f"/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor" for cpu in range(256)]
    for path, text in [(tuning.BOOT_ID, "boot")] + [(path, "powersave") for path in paths]:
        os.makedirs(os.path.dirname(host.path(path)), exist_ok=True)
        with open(host.path(path), "w") as out:
            out.write(text)
    os.makedirs(place.path)
    settings = [
        {"kind": "sysfs", "name": "governor", "path": path, "wanted": "performance", "device": None} for path in paths
    ]
    tuning.apply(host, settings, place.tuning)
    (told,) = control.restore(host, str(tmp_path))["restored"]
    assert (told["count"], told["effective"], told["outcome"]) == (256, "powersave", "restored")
    failed = [
        {"path": path, "name": "governor", "effective": "x", "outcome": "failed", "message": "no"} for path in paths
    ]
    with pytest.raises(restore.NotRestored, match=r"cpu0/cpufreq/scaling_governor \(and 255 more like it\): no$"):
        restore.refuse_unrestored(failed)


def test_an_older_record_waits_for_the_newer_one_that_could_not_be_put_back(tmp_path, monkeypatch):
    times = iter(("2026-11-21T13:00:00.000Z", "2026-11-21T14:00:00.000Z"))
    monkeypatch.setattr(tuning, "now", lambda: next(times))
    host, places = Host(str(tmp_path)), [folder.RunDir(str(tmp_path), name) for name in ("first", "second")]
    for path, text in ((tuning.BOOT_ID, "boot"), ("/sys/x", "0"), ("/sys/y", "0")):
        os.makedirs(os.path.dirname(host.path(path)), exist_ok=True)
        with open(host.path(path), "w") as out:
            out.write(text)
    for value, (place, paths) in enumerate(zip(places, (["/sys/x"], ["/sys/x", "/sys/y"])), start=1):
        os.makedirs(place.path)
        wanted = [{"kind": "sysfs", "name": path, "path": path, "wanted": str(value), "device": None} for path in paths]
        tuning.apply(host, wanted, place.tuning, keep=True)
    write = host.write
    monkeypatch.setattr(host, "write", lambda path, text: path == "/sys/y" or write(path, text))
    with pytest.raises(control.JobError, match="/sys/y: 2"):
        control.restore(host, str(tmp_path))
    monkeypatch.setattr(host, "write", write)
    control.restore(host, str(tmp_path))
    assert (host.read("/sys/x"), host.read("/sys/y")) == ("0", "0") and not any(
        os.path.exists(place.tuning) for place in places
    )


@pytest.mark.parametrize(
    "names", [("a", "b"), ("b", "a"), ("20261121T130000Z-tune", "mine"), ("mine", "20261121T130000Z-tune")]
)
def test_what_was_set_last_is_put_back_first_whatever_the_runs_are_called(tmp_path, names, monkeypatch):
    times = iter(("2026-11-21T13:00:00.000Z", "2026-11-21T14:00:00.000Z"))
    monkeypatch.setattr(tuning, "now", lambda: next(times))
    host = Host(str(tmp_path))
    for path, text in ((tuning.BOOT_ID, "boot"), ("/sys/x", "0")):
        os.makedirs(os.path.dirname(host.path(path)), exist_ok=True)
        with open(host.path(path), "w") as out:
            out.write(text)
    for value, name in enumerate(names, start=1):
        place = folder.RunDir(str(tmp_path), name)
        os.makedirs(place.path)
        tuning.apply(
            host, [{"kind": "sysfs", "name": "x", "path": "/sys/x", "wanted": str(value), "device": None}], place.tuning
        )
    restore.restore_leftovers(host, str(tmp_path))
    assert host.read("/sys/x") == "0"


@pytest.mark.parametrize("failed", [[], ["/sys/x"], ["/sys/x", "/sys/y"]])
def test_the_journal_tells_of_settings_that_its_job_could_not_put_back(failed):
    settings = [
        {"kind": "sysfs", "name": "n", "path": path, "before": "0", "wanted": "1", "effective": "1"}
        for path in ("/sys/x", "/sys/y")
    ]
    done = [dict(item, outcome="failed" if item["path"] in failed else "restored") for item in settings]
    history = [
        {"event": "job_started", "boot_id": "b"},
        {"event": "tuned", "time": "t", "settings": settings},
        {"event": "restored", "settings": done},
    ]
    assert [item["path"] for item in (restore.journalled(history) or {"settings": []})["settings"]] == failed


def test_no_run_starts_on_settings_that_could_not_be_put_back():
    failed = {"path": "/sys/x", "message": "Invalid argument", "effective": "a", "outcome": "failed"}
    with pytest.raises(restore.NotRestored, match="/sys/x: Invalid argument"):
        restore.refuse_unrestored([dict(failed, outcome="restored"), failed])


def test_a_live_run_is_neither_removed_nor_restored(run_dir):
    launch.write_starting(Host(), run_dir, PLAN)
    with pytest.raises(control.JobError, match="stop.yml"):
        control.remove(Host(), run_dir)
    with pytest.raises(control.JobError, match="restore this host itself"):
        control.restore(Host(), run_dir.state_dir)
    assert control.restore(Host(), run_dir.state_dir, run_id="another")["action"] == "nothing"


@pytest.fixture
def deaf(run_dir, monkeypatch):
    """A job that does not heed SIGTERM while its only drive is in a phase, with the journal of that drive."""
    monkeypatch.setattr(control, "STOP_TIMEOUT_S", 0.5)
    with subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import signal, time; signal.signal(15, lambda *_: None); print(flush=True); time.sleep(60)",
        ],
        stdout=subprocess.PIPE,
    ) as process:
        process.stdout.readline()

        def stop(phase, events):
            boot_id, started = Host().get("/proc/sys/kernel/random/boot_id"), pid_start(Host(), process.pid)
            drive = dict(queued("A"), phase=phase)
            status = {
                "run_id": "r",
                "run_name": "n",
                "host": "h",
                "updated": now(),
                "state": "running",
                "boot_id": boot_id,
                "pid": process.pid,
                "pid_start": started,
                "restored": True,
                "drives": [drive],
            }
            write_atomic(run_dir.status, json.dumps(status))
            with open(run_dir.journal, "w") as out:
                out.writelines(
                    json.dumps({"event": event, "drive": "A", "time": now(), "method": "m"}) + "\n" for event in events
                )
            threading.Thread(
                target=process.wait, daemon=True
            ).start()  # else it stays a zombie, which has a start time too
            return control.stop(Host(), run_dir)

        yield stop, process
        process.kill()


def test_a_job_is_not_killed_while_a_security_erase_runs(deaf):
    """Its password would stay on the drive. It ends by itself when the erase is over."""
    stop, process = deaf
    with pytest.raises(control.JobError, match="security erase of A.*run stop.yml again"):
        stop("purge", ["purge_started", "ata_password_set"])
    assert process.poll() is None


@pytest.mark.parametrize(
    "phase, events",
    [
        ("measure", ["ata_password_set"]),
        ("purge", ["purge_started"]),
        ("purge", ["ata_password_set", "ata_password_cleared"]),
    ],
)
def test_any_other_job_that_does_not_listen_is_killed(deaf, phase, events):
    stop, process = deaf
    assert stop(phase, events)["state"] == "stopped"
    assert process.wait(5) == -9


def event(name, drive="A", **more):
    return {
        "event": name,
        "time": files.now(),
        "drive": drive,
        "test": "t",
        "attempt": 1,
        "identity": {"serial": drive},
        **more,
    }


@pytest.mark.parametrize(
    "history, expected",
    [
        ([event("drive_started")], []),
        ([event("drive_started"), event("purge_started", method="nvme_sanitize_block", test="t")], ["A"]),
        ([event("purge_started", method="nvme_sanitize_block", test="t"), event("purge")], []),
        # Else preflight would take our password for somebody else's, and the run could not go on.
        (
            [
                event("purge_started", method="ata_security_erase", test="t"),
                event("ata_password_set"),
                event("drive_started", "B"),
            ],
            ["A"],
        ),
    ],
)
def test_what_a_purge_left_half_done_is_still_being_written(tmp_path, history, expected):
    run_dir = control.RunDir(str(tmp_path), "r")
    (tmp_path / "runs" / "r").mkdir(parents=True)
    with open(run_dir.journal, "w") as out:
        out.writelines(json.dumps(record) + "\n" for record in history)
    paths = [control.ledger_file.path_of(str(tmp_path), {"serial": name}) for name in expected]
    assert control._still_written(run_dir) == paths  # pylint: disable=protected-access


def test_a_run_that_goes_on_is_held_to_what_it_began_with():
    began = {"criteria": [{"metric": "write_iops", "min": 500}, {"metric": "read_iops", "min": 1}]}
    now = {"run": {}, "criteria": [{"metric": "read_iops", "min": 1}]}
    assert control.held_to_all(began, now)["criteria"] == [*now["criteria"], began["criteria"][0]]
    for before in (None, {}, {"criteria": []}, now):
        assert control.held_to_all(before, now) is now
