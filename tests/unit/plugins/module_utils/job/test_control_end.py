# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How host jobs end: stopped, restored and removed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.core import files
from ansible_collections.ssdlab.fleet.plugins.module_utils.core.files import now, write_atomic
from ansible_collections.ssdlab.fleet.plugins.module_utils.core.host import Host
from ansible_collections.ssdlab.fleet.plugins.module_utils.job import control, restore, stop_process
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.tuning import Setting
from ansible_collections.ssdlab.fleet.plugins.module_utils.run import folder
from ansible_collections.ssdlab.fleet.plugins.module_utils.run.folder import queued
from ansible_collections.ssdlab.fleet.plugins.module_utils.run.liveness import pid_start
from ansible_collections.ssdlab.fleet.plugins.module_utils.tuning import settings as tuning
from ansible_collections.ssdlab.fleet.tests.fixtures.journal_events import RECORDS


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
    settings = [Setting("sysfs", "governor", path, "performance") for path in paths]
    tuning.apply(host, settings, place.tuning)
    (told,) = control.restore(host, str(tmp_path))["restored"]
    assert (told["count"], told["effective"], told["outcome"]) == (256, "powersave", "restored")
    failed = [Setting("sysfs", "governor", path, "y", outcome="failed", message="no") for path in paths]
    with pytest.raises(restore.NotRestored, match=r"cpu0/cpufreq/scaling_governor \(and 255 more like it\): no$"):
        restore.refuse_unrestored(failed)


def test_an_older_record_waits_for_the_newer_one_that_could_not_be_put_back(tmp_path, monkeypatch):
    host, places = Host(str(tmp_path)), [folder.RunDir(str(tmp_path), name) for name in ("first", "second")]
    for path, text in ((tuning.BOOT_ID, "boot"), ("/sys/x", "0"), ("/sys/y", "0")):
        os.makedirs(os.path.dirname(host.path(path)), exist_ok=True)
        with open(host.path(path), "w") as out:
            out.write(text)
    for value, (place, paths) in enumerate(zip(places, (["/sys/x"], ["/sys/x", "/sys/y"])), start=1):
        os.makedirs(place.path)
        wanted = [Setting("sysfs", path, path, str(value)) for path in paths]
        tuning.apply(host, wanted, place.tuning, keep=True, order=value)
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
def test_what_was_set_last_is_put_back_first_whatever_the_runs_are_called(tmp_path, names):
    host = Host(str(tmp_path))
    for path, text in ((tuning.BOOT_ID, "boot"), ("/sys/x", "0")):
        os.makedirs(os.path.dirname(host.path(path)), exist_ok=True)
        with open(host.path(path), "w") as out:
            out.write(text)
    for value, name in enumerate(names, start=1):
        place = folder.RunDir(str(tmp_path), name)
        os.makedirs(place.path)
        wanted = [Setting("sysfs", "x", "/sys/x", str(value))]
        tuning.apply(host, wanted, place.tuning, order=value)
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
    left = restore.journalled(history)
    assert [item.path for item in (left.settings if left else [])] == failed


@pytest.fixture
def deaf(run_dir, monkeypatch):
    """A job that does not heed SIGTERM while its only drive is in a phase, with the journal of that drive."""
    monkeypatch.setattr(stop_process, "STOP_TIMEOUT_S", 3.0)
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
                "schema_version": 1,
                "unit": None,
                "engine_version": "0.1.0",
                "started": now(),
                "message": "",
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
                out.writelines(json.dumps({**RECORDS[event], "drive": "A"}) + "\n" for event in events)
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
    return {**RECORDS[name], "drive": drive, "test": "t", "identity": {"serial": drive}, **more}


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
    paths = [control.ledger_format.path_of(str(tmp_path), {"serial": name}) for name in expected]
    assert control._still_written(run_dir) == paths
