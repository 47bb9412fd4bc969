# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A drive, a state folder and any number of runs on it: what our own data is, and what somebody else's."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import cells
import own_machine
from command_log import destructive
from waiting import sizes, wait_until

from ansible_collections.ssdlab.fleet.plugins.module_utils.core import files, locks
from ansible_collections.ssdlab.fleet.plugins.module_utils.core.host import Host
from ansible_collections.ssdlab.fleet.plugins.module_utils.drive.entry import parse
from ansible_collections.ssdlab.fleet.plugins.module_utils.guard import guard_check
from ansible_collections.ssdlab.fleet.plugins.module_utils.job import engine
from ansible_collections.ssdlab.fleet.plugins.module_utils.run import folder as rundir
from ansible_collections.ssdlab.fleet.plugins.module_utils.tuning import settings
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan import render_plan as planning
from ansible_collections.ssdlab.fleet.tests.fixtures.plans import decided, rendered

COLLECTIONS = Path(__file__).resolve().parents[2] / "playbooks" / "collections"
# A host job of a process of its own, with locks of the test's.
JOB = (
    "import os, sys; from ansible_collections.ssdlab.fleet.plugins.module_utils.core import locks; "
    "from ansible_collections.ssdlab.fleet.plugins.module_utils.job import campaign, engine; "
    "locks.LOCK_DIR = sys.argv[1]; exec(sys.argv[3]); sys.exit(engine.main(['run', sys.argv[2]]))"
)
QUICK = dict(
    name="quick",
    purge={"method": "none"},
    precondition={"passes": 1},
    cells=[cells.writes(200, queue_depth=4)],
    steady_state=False,
    rounds={"max": 1},
)
# It fills the drive with random data, and then writes slowly until somebody ends it.
LONG = {
    "name": "long",
    "purge": {"method": "none"},
    "precondition": {"passes": 1},
    "cells": [cells.writes(50, runtime_s=60)],
    "steady_state": False,
    "rounds": {"max": 1},
}


class Lab:
    """One drive, one state folder, any number of runs."""

    def __init__(self, folder, drive):
        self.folder, self.drive, self.state = folder, drive, str(folder / "state")
        self.options = {}

    def inspect(self, state=True):
        (seen,) = guard_check.inspect(
            Host(), [parse(dict(self.drive.selector, **self.options))], state_dir=self.state if state else None
        )
        return seen

    def codes(self, **options):
        return [refusal["code"] for refusal in self.inspect(**options)["refusals"]]

    def prepare(self, run_id, tests=None, **changes):
        plan = rendered(
            tests or planning.step_plan("precondition", {"precondition_passes": 1}),
            run={"id": run_id, "name": "n"},
            host="h",
            boot_id=settings.boot_id(Host()),
            drives=[self.inspect()],
            engine_version="1",
            variables={"ssd_validity_limits": cells.ANY_MACHINE},
            tune={"cpu_dma_latency_us": None, "services_stopped": [], "sysfs": [], "keep": False},
        )
        run = rundir.RunDir(self.state, run_id)
        os.makedirs(run.path, exist_ok=True)
        files.write_atomic(run.plan, json.dumps(decided(plan, **changes)))
        return run

    def attach(self):
        """Attach the drive's file; it may get another number."""
        self.drive.path = subprocess.run(
            ["losetup", "--find", "--show", "--direct-io=on", str(self.drive.file)],
            check=True,
            capture_output=True,
            text=True,
        ).stdout.strip()

    def reattach(self):
        """Detach and attach: another diskseq, counters from zero."""
        self.drive.detach()
        self.attach()

    def put(self, offset, data):
        """Write through the device; what was there before."""
        with open(self.drive.path, "r+b", buffering=0) as device:
            was = os.pread(device.fileno(), len(data), offset)
            os.pwrite(device.fileno(), data, offset)
            os.fsync(device.fileno())
        return was

    def write_past(self, offset, data):
        """Write through the file behind the drive, which no counter sees."""
        with open(self.drive.file, "r+b") as file:
            file.seek(offset)
            file.write(data)

    def rewrite(self, **fields):
        (path,) = Path(self.state, "drives").glob("*.json")
        path.write_text(json.dumps(dict(json.loads(path.read_text()), **fields)))

    def refused(self, run_id, *codes):
        """Preflight refuses it with these codes, and so does the host job of a run; its data is what it was, and
        nothing was run that could change it.
        """
        digest, before = self.drive.digest(), len(self.commands(run_id))
        named = {refusal["code"] for refusal in self.inspect()["refusals"]}
        assert named == set(codes), self.inspect()["refusals"]
        outcome, journal = self.run(run_id)
        last = [record for record in journal if record["event"] == "guard"][-1]
        assert outcome == "refused" and {refusal["code"] for refusal in last["refusals"]} == set(codes)
        assert self.drive.digest() == digest
        ran = self.commands(run_id)[before:]
        assert ran and not [argv for argv in ran if destructive(argv)], ran

    def commands(self, run_id):
        path = Path(rundir.RunDir(self.state, run_id).path, "commands.jsonl")
        return [json.loads(line)["argv"] for line in path.read_text().splitlines()] if path.exists() else []

    def run(self, run_id, **changes):
        """Run a host job to its end; the drive's outcome and the run's journal."""
        run = self.prepare(run_id, **changes)
        engine.HostJob(run, Host()).run()
        (drive,) = run.read_status()["drives"]
        return drive["outcome"], rundir.read_journal(run.journal)

    def kill_one(self, run_id, *tests, dies="", **changes):
        """Start a run and kill its job with SIGKILL while it measures the test LONG, its last; or `dies`: what makes it
        end by itself.
        """
        run = self.prepare(run_id, planning.load_plan([*tests, *([] if dies else [LONG])]), **changes)
        argv = [sys.executable, "-c", JOB, str(self.folder / "locks"), run.path, dies]
        with subprocess.Popen(argv, env=dict(os.environ, PYTHONPATH=str(COLLECTIONS))) as job:
            try:

                def reached():
                    if job.poll() is not None:
                        assert dies and job.returncode == 9, Path(run.log).read_text()
                        return True
                    return any(
                        (record["event"], record.get("test")) == ("precondition", "long")
                        for record in rundir.read_journal(run.journal)
                    )

                wait_until(reached, "the long test", sizes((run.path, "journal*")))
            finally:
                job.send_signal(signal.SIGKILL)
        self.await_free()
        return run

    def await_free(self):
        """fio dies with its job, but not at once."""
        wait_until(lambda: not {"opened", "busy"} & set(self.codes()), "the free drive")

    def entry(self):
        (path,) = Path(self.state, "drives").glob("*.json")
        return json.loads(path.read_text())

    def has_entry(self):
        return any(Path(self.state, "drives").glob("*.json"))


@contextlib.contextmanager
def standing(folder, monkeypatch, loop_drive):
    """A lab with a drive of 32 MiB; locks are in its folder, and signals are handled as before afterwards."""
    monkeypatch.setattr(locks, "LOCK_DIR", own_machine.lock_folder(folder / "locks"))
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)}
    try:
        yield Lab(folder, loop_drive(size_bytes=32 << 20))
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def restore(run):
    """What systemd's ExecStopPost does after the job."""
    assert engine.main(["restore", run.path]) == 0
