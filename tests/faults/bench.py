# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One host with drives of its own, on which host jobs meet faults: start a job, wait for its end, look at what it left.

Everything is real but the fault: fio, loop devices, a small tmpfs as the disk of the state folder, and the job as a
process of its own, started by `job.start` as the module does it. What is made here is taken down by `close`, also a
drive whose server was stopped.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import multiprocessing
import os
import shutil
import signal
import subprocess
import tempfile
import typing as t
from pathlib import Path

import product
from drives import LoopDrive, ServedDrive
from product import Host, cells, engines, entry, job, locks, planning, rundir, summary
from waiting import sizes, wait_until

from ansible_collections.ssdlab.fleet.plugins.module_utils.records import base
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.plan import Plan
from ansible_collections.ssdlab.fleet.tests.fixtures import run_results
from ansible_collections.ssdlab.fleet.tests.fixtures.plans import decided, rendered

HERE = Path(__file__).resolve().parent
MIB = 1 << 20
STATE_BYTES, STATE_INODES = 16 * MIB, 2000
SETTING = "/sys/block/{0}/queue/nomerges"
CELL = cells.writes(100)
FIRST = {
    "name": "first",
    "title": "First",
    "purge": {"method": "auto"},
    "precondition": {"passes": 1},
    "cells": [CELL],
    "rounds": {"max": 2},
}
SECOND = dict(FIRST, name="second", title="Second", precondition=False, rounds={"max": 1})
TESTS = ("first", "second")
STANDING = ("steady", "not_steady", "complete", "invalid", "error")

ENGINE = """import json, sys
sys.path.insert(0, {here!r})
import product, injector
spec = json.loads({spec!r})
product.locks.LOCK_DIR = {lock_dir!r}
for module, values in {settings!r}.items():
    for name, value in values.items():
        setattr(getattr(product, module), name, value)
injector.keep_told(product.rundir.Journal, {told!r})
if spec and sys.argv[1] == "run":
    injector.arm(spec)
sys.exit(product.engine.main())
"""


class Bench:
    """A state folder on a small disk, locks, and drives of its own. `served`: the first drive's server
    can be stopped.
    """

    def __init__(self, drives: int = 1, served: bool = False) -> None:
        self._undo = contextlib.ExitStack()
        self.folder = Path(tempfile.mkdtemp(dir="/dev/shm", prefix="ssdlab-faults-"))
        self._undo.callback(shutil.rmtree, self.folder, ignore_errors=True)
        self.state = self.folder / "state"
        self.state.mkdir()
        subprocess.run(
            [
                "mount",
                "-t",
                "tmpfs",
                "-o",
                f"size={STATE_BYTES},nr_inodes={STATE_INODES},mode=755",
                "faults",
                self.state,
            ],
            check=True,
        )
        self._undo.callback(subprocess.run, ["umount", self.state], check=False)
        self.told = self.folder / "told.jsonl"
        self.filler = self.state / "filler"
        self._locks, locks.LOCK_DIR = locks.LOCK_DIR, str(self.folder / "locks")
        self._undo.callback(setattr, locks, "LOCK_DIR", self._locks)
        self.host = Host()
        self.drives: list[t.Any] = []
        for index in range(drives):
            kind = ServedDrive if served and index == 0 else LoopDrive
            self.drives.append(kind(self.folder, f"drive{index}"))
            self._undo.callback(self.drives[-1].detach)
            self.host.write(SETTING.format(self.drives[-1].name), "0")
        self.run = rundir.RunDir(str(self.state), "20260101T000000Z-faults")
        self._undo.callback(self._end_job)

    def __enter__(self) -> Bench:
        return self

    def __exit__(self, *_exception: t.Any) -> None:
        for drive in self.drives:
            drive.let_go_on()
        self._undo.close()

    def plan(self, tests: t.Sequence[t.Mapping[str, t.Any]] = (FIRST, SECOND), parallel: int = 1) -> Plan:
        """What a play would ask for now."""
        entries = [entry.parse(drive.selector) for drive in self.drives]
        seen = product.guard.inspect(self.host, entries, state_dir=str(self.state), run_id=self.run.run_id)
        plan = rendered(
            planning.load_plan(list(tests)),
            run={"id": self.run.run_id, "name": "faults"},
            host="bench",
            boot_id=product.tuning.boot_id(self.host),
            drives=seen,
            engine_version="bench",
            variables={"ssd_parallel_drives": parallel, "ssd_validity_limits": cells.ANY_MACHINE},
            tune={
                "cpu_dma_latency_us": None,
                "services_stopped": [],
                "keep": False,
                "sysfs": [{"name": "nomerges", "path": SETTING.format("@ssd_name@"), "value": "2"}],
            },
        )
        return base.parse(Plan, decided(plan))

    def engine(self, spec: t.Mapping[str, t.Any] | None = None, **settings: t.Mapping[str, t.Any]) -> engines.Engine:
        """A host job's program that meets this fault. settings: {module of product.py: {name: value}}."""
        text = ENGINE.format(
            here=str(HERE), spec=json.dumps(spec), lock_dir=locks.LOCK_DIR, told=str(self.told), settings=settings
        )
        name = "engine-{0}.pyz".format("faulty" if spec else "sound")
        return engines.Engine(name, hashlib.sha256(text.encode()).hexdigest(), text.encode())

    def start(self, plan: Plan, engine: engines.Engine) -> dict[str, t.Any]:
        """As the module `campaign` does it: in a process that is gone afterwards. Raises JobError."""
        ours, theirs = multiprocessing.Pipe()
        starter = multiprocessing.get_context("fork").Process(
            target=start_in_process, args=(theirs, self.run, plan, engine)
        )
        starter.start()
        theirs.close()
        try:
            done, problem = ours.recv()
        except EOFError:
            raise job.JobError("the module died") from None
        finally:
            starter.join()
        if problem:
            raise job.JobError(problem)
        return done

    def start_elsewhere(self) -> dict[str, t.Any]:
        """The same by a play that has another state folder. Raises JobError."""
        other = rundir.RunDir(str(self.folder / "elsewhere"), self.run.run_id)
        return job.start(Host(), other, self.plan(), self.engine())

    def wait(self) -> None:
        """Until no process works on the run any more, but for those that hang in the kernel."""
        wait_until(lambda: not self.processes(), "the end of the host job", sizes((self.run.path, "journal*")))
        # A killed job gives up its lock a moment after it has lost its command line.
        with contextlib.suppress(AssertionError):
            wait_until(lambda: self.state_now() != "running", "the lock of the host job", stall_s=60)

    def processes(self, hung: bool = False) -> list[int]:
        """Those of the run. `hung`: also those in an uninterruptible sleep that are told to end."""
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        return [pid for pid in self._named() if hung or not _is_hung(pid)]

    def _named(self) -> list[int]:
        found = []
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            with contextlib.suppress(OSError):
                if self.run.path.encode() in path.read_bytes() and int(path.parts[2]) != os.getpid():
                    found.append(int(path.parts[2]))
        return found

    def journal(self) -> list[dict[str, t.Any]]:
        return rundir.read_journal(self.run.journal)

    def told_records(self) -> list[dict[str, t.Any]]:
        """Every record of which the job was told that it is kept."""
        return [json.loads(line) for line in self.told.read_text().splitlines()] if self.told.exists() else []

    def state_now(self) -> str:
        """The run's state, as collect is told it."""
        return summary.read(self.host, self.run).state

    def outcomes(self) -> dict[tuple[str, str], dict[str, t.Any]]:
        """{(drive, test): its record}, as collect would bring them."""
        records = run_results.records(self.run, self.host)
        return {(self._label(record), record["test"]): record for record in records if record["kind"] == "test"}

    def drive_outcomes(self) -> dict[str, dict[str, t.Any]]:
        """{drive: its record}."""
        records = run_results.records(self.run, self.host)
        return {self._label(record): record for record in records if record["kind"] == "drive"}

    def _label(self, record: t.Mapping[str, t.Any]) -> str:
        return next(drive.label for drive in self.drives if str(drive.file) == record["drive"])

    def settings(self) -> list[str]:
        """The tuned setting of each drive; "0" is as it was."""
        return [self.host.read(SETTING.format(drive.name)) for drive in self.drives]

    def ledger(self, drive: LoopDrive) -> dict[str, t.Any]:
        """What the ledger says of a drive, {} where it says nothing."""
        entries = [json.loads(path.read_text()) for path in self.state.glob("drives/*.json")]
        return next((entry for entry in entries if entry["identity"]["backing_file"] == str(drive.file)), {})

    def make_room(self) -> None:
        """The disk is no longer full."""
        if self.filler.is_dir():
            shutil.rmtree(self.filler)
        self.filler.unlink(missing_ok=True)

    def strays(self) -> list[str]:
        """What a run must not leave: processes, locks, files written aside, changed settings. The kernel takes a killed
        job down in its own time.
        """
        with contextlib.suppress(AssertionError):
            wait_until(lambda: not self._strays(), "nothing that stays", stall_s=15)
        return self._strays()

    def _strays(self) -> list[str]:
        found = [f"process {pid}" for pid in self.processes()]
        for path in sorted(Path(locks.LOCK_DIR).glob("*.lock")) if os.path.isdir(locks.LOCK_DIR) else []:
            with contextlib.suppress(FileNotFoundError):
                try:
                    locks.Lock(path.stem, {}).acquire().release()
                except locks.Locked as error:
                    found.append(str(error))
        found += [f"file {path}" for path in sorted(Path(self.run.path).rglob(".*")) + sorted(self.state.glob(".*"))]
        found += [f"setting {value}" for value in self.settings() if value != "0"]
        return found + (["tuning.json"] if os.path.exists(self.run.tuning) else [])

    def _end_job(self) -> None:
        for drive in self.drives:
            drive.let_go_on()
        for pid in self.processes(hung=True):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(AssertionError):
            self.wait()


def start_in_process(pipe: t.Any, run: rundir.RunDir, plan: Plan, engine: engines.Engine) -> None:
    """Start a job, and send (what that gives, "") or (None, why it did not start)."""
    try:
        pipe.send((job.start(Host(), run, plan, engine), ""))
    except job.JobError as error:
        pipe.send((None, str(error)))


def _is_hung(pid: int) -> bool:
    """In an uninterruptible sleep with a SIGKILL that waits for its end, or a thread group of which only such threads
    are left.
    """
    states = set()
    try:
        threads = os.listdir(f"/proc/{pid}/task")
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return True
    for thread in threads:
        with contextlib.suppress(OSError):
            states.add(Path(f"/proc/{pid}/task/{thread}/stat").read_text().rpartition(")")[2].split()[0])
    pending = int(next(line.split()[1] for line in status.splitlines() if line.startswith("ShdPnd")), 16)
    shared = int(next(line.split()[1] for line in status.splitlines() if line.startswith("SigPnd")), 16)
    killed = (pending | shared) & (1 << (signal.SIGKILL - 1))
    return states <= {"Z", "X"} or ("D" in states and bool(killed))
