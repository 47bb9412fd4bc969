# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Our own data on real loop devices: a drive can be qualified night after night, an interrupted run goes on, foreign data is refused."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.core import files, locks
from ansible_collections.ssdlab.fleet.plugins.module_utils.core.host import Host
from ansible_collections.ssdlab.fleet.plugins.module_utils.guard import inspection, own_data
from ansible_collections.ssdlab.fleet.plugins.module_utils.job import engine
from ansible_collections.ssdlab.fleet.plugins.module_utils.run import decision
from ansible_collections.ssdlab.fleet.plugins.module_utils.run import folder as rundir
from ansible_collections.ssdlab.fleet.plugins.module_utils.tuning import settings
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan import render as planning

COLLECTIONS = Path(__file__).resolve().parents[2] / "playbooks" / "collections"
# A host job of a process of its own, with locks of the test's.
JOB = (
    "import sys; from ansible_collections.ssdlab.fleet.plugins.module_utils.core import locks; "
    "from ansible_collections.ssdlab.fleet.plugins.module_utils.job import engine; "
    "locks.LOCK_DIR = sys.argv[1]; sys.exit(engine.main(['run', sys.argv[2]]))"
)
# It fills the drive with random data, and then writes slowly until somebody ends it.
LONG = {
    "name": "long",
    "purge": {"method": "none"},
    "precondition": {"passes": 1},
    "cells": [{"access": "random", "block_size": "4KiB", "read_pct": 0, "threads": 1, "queue_depth": 1, "runtime_s": 60, "rate_iops": 50}],
    "steady_state": False,
    "rounds": {"max": 1},
}


class Lab:
    """One drive, one state folder, any number of runs."""

    def __init__(self, folder, drive):
        self.folder, self.drive, self.state = folder, drive, str(folder / "state")
        self.options = {}

    def inspect(self, state=True):
        (seen,) = inspection.inspect(Host(), [dict(self.drive.selector, **self.options)], state_dir=self.state if state else None)
        return seen

    def codes(self, **options):
        return [refusal["code"] for refusal in self.inspect(**options)["refusals"]]

    def prepare(self, run_id, tests=None, **changes):
        plan = planning.render(
            tests or planning.step_plan("precondition", {"precondition_passes": 1}),
            run={"id": run_id, "name": "n"},
            host="h",
            boot_id=settings.boot_id(Host()),
            drives=[self.inspect()],
            engine_version="1",
            variables={},
            tune={"cpu_dma_latency_us": None, "services_stopped": [], "sysfs": [], "keep": False},
        )
        run = rundir.RunDir(self.state, run_id)
        os.makedirs(run.path, exist_ok=True)
        files.write_atomic(run.plan, json.dumps(dict(plan, **changes, decision=decision.made(dict(plan, **changes)))))
        return run

    def run(self, run_id, **changes):
        """Run a host job to its end; the drive's outcome and the run's journal."""
        run = self.prepare(run_id, **changes)
        engine.HostJob(run, Host()).run()
        (drive,) = run.read_status()["drives"]
        return drive["outcome"], rundir.read_journal(run.journal)

    def kill_one(self, run_id):
        """Start a run and kill its job with SIGKILL while it measures."""
        run = self.prepare(run_id, planning.load_plan([LONG]))
        argv = [sys.executable, "-c", JOB, str(self.folder / "locks"), run.path]
        with subprocess.Popen(argv, env=dict(os.environ, PYTHONPATH=str(COLLECTIONS))) as job:
            try:
                deadline = time.monotonic() + 120
                while not any(record["event"] == "precondition" for record in rundir.read_journal(run.journal)):
                    assert time.monotonic() < deadline and job.poll() is None, Path(run.log).read_text()
                    time.sleep(0.1)
            finally:
                job.send_signal(signal.SIGKILL)
        self.await_free()
        return run

    def await_free(self):
        """fio dies with its job, but not at once."""
        deadline = time.monotonic() + 30
        while {"opened", "busy"} & set(self.codes()):
            assert time.monotonic() < deadline
            time.sleep(0.2)

    def entry(self):
        (path,) = Path(self.state, "drives").glob("*.json")
        return json.loads(path.read_text())


@pytest.fixture
def lab(tmp_path, monkeypatch, loop_drive):
    monkeypatch.setattr(locks, "LOCK_DIR", str(tmp_path / "locks"))
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)}
    yield Lab(tmp_path, loop_drive(size_bytes=32 << 20))
    for number, handler in before.items():
        signal.signal(number, handler)


def test_a_drive_can_be_qualified_night_after_night(lab):
    for night in ("one", "two", "three"):
        assert lab.run(night)[0] == "complete"
        assert lab.codes() == [] and lab.codes(state=False) == ["unsigned_data"]
        assert (lab.inspect()["own_data"]["run_id"], lab.entry()["state"]) == (night, "released")


def test_one_byte_of_somebody_else_makes_the_data_foreign_until_the_entry_gives_it_up(lab):
    lab.run("one")
    sample = lab.entry()["samples"][100]
    with open(lab.drive.file, "r+b") as file:
        file.seek(sample["offset"] + 7)
        file.write(b"foreign")
    digest = lab.drive.digest()
    assert lab.codes() == ["unsigned_data"]
    outcome, journal = lab.run("two")
    assert outcome == "refused" and lab.drive.digest() == digest
    assert not any(record["event"] == "precondition" for record in journal)
    lab.options = {"ssd_overwrite_data": True}
    assert lab.codes() == []
    outcome, journal = lab.run("three")
    found = [record["overridden"] for record in journal if record["event"] == "guard"]
    assert outcome == "complete" and [item["code"] for item in found[0]] == ["unsigned_data"]
    lab.options = {}
    assert lab.codes() == []


def test_a_write_that_no_sample_shows_makes_the_data_foreign(lab):
    lab.run("one")
    sampled = {(sample["offset"] // 4096) for sample in lab.entry()["samples"]}
    free = next(block for block in range(1024, 4096) if block not in sampled)
    with open(lab.drive.path, "r+b") as device:
        device.seek(free * 4096)
        device.write(os.urandom(4096))
    assert lab.codes() == ["unsigned_data"]


def test_a_ledger_that_somebody_else_may_write_does_not_count(lab):
    lab.run("one")
    os.chmod(lab.state, 0o777)
    assert lab.codes() == ["unsigned_data"]


def test_a_killed_run_goes_on_and_no_other_run_may(lab):
    lab.kill_one("one")
    assert lab.entry()["state"] == "writing" and lab.codes() == ["unsigned_data"]
    assert lab.inspect()["own_data"]["run_id"] == "one"
    digest = lab.drive.digest()
    assert lab.run("two")[0] == "refused" and lab.drive.digest() == digest
    # As after a reboot: another boot id, and names may be others.
    assert lab.run("one", boot_id="another-boot")[0] == "complete"
    assert lab.codes() == []


def restore(run):
    """What systemd's ExecStopPost does after the job."""
    assert engine.main(["restore", run.path]) == 0


def test_what_a_killed_job_left_is_noted_right_after_it(lab):
    run = lab.kill_one("one")
    restore(run)
    assert (lab.entry()["state"], lab.entry()["run_id"]) == ("released", "one")
    assert lab.codes() == [] and lab.run("two")[0] == "complete"


def test_what_a_killed_job_left_is_not_noted_after_a_reboot_or_while_somebody_holds_it(lab):
    run = lab.kill_one("one")
    status = run.read_status()
    handle = os.open(lab.drive.path, os.O_RDONLY | os.O_EXCL)
    restore(run)
    os.close(handle)
    assert lab.entry()["state"] == "writing"
    files.write_atomic(run.status, json.dumps(dict(status, boot_id="another-boot")))
    restore(run)
    assert lab.entry()["state"] == "writing"


def test_a_refused_drive_is_never_claimed(lab):
    subprocess.run(["mkfs.ext4", "-q", lab.drive.path], check=True)
    assert lab.run("one")[0] == "refused"
    assert own_data.read(lab.state, lab.inspect()["identity"]) is None
