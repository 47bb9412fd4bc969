# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a host job comes to life: what a start is to do, the files that it needs, the detached process, and its first
sign of life.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import json
import os
import subprocess
import sys
import time
import typing as t

from ..core.files import make_folders, write_atomic
from ..core.host import TIMED_OUT, Host
from ..core.locks import Locked, host_lock
from ..drive.entry import GUARD_OPTIONS
from ..records.base import Json
from ..records.plan import Plan
from ..run.folder import RunDir, Status, read_journal
from ..run.liveness import Process, first_status, is_live, pid_start, starter, state_of
from ..run.states import FAILED, FINISHED, LIVE_STATES, STARTING
from .stop_process import STOP_TIMEOUT_S, JobError, end_process, end_unit

START_TIMEOUT_S = 30.0
# How long a start waits for a job that only tunes, to tell whether that changed anything.
TUNING_S = 60.0
# What of a plan may differ when a run goes on: where it runs now, and what says nothing about how it measures. Its
# drives are compared in part.
UNCOMPARED = {
    "boot_id",
    "engine_version",
    "decision",
    "look",
    "leave",
    "criteria",
    "health_criteria",
    "time_budget_s",
    "bios_settings",
    "drives",
}
UNIT_PREFIX = "ssdlab-fleet-"


def decide(run_dir: RunDir, state: str, plan: Plan) -> str:
    """Return what a start would do: start, resume, attach (it is live) or nothing (it is finished). Raises JobError."""
    stored = run_dir.read_plan()
    if stored is None:
        return "start"
    if state == FINISHED:
        return "nothing"
    # A job that lives goes on as it was started: how it tunes may have changed since, in the inventory or with the
    # collection.
    names = [field.name for field in dataclasses.fields(Plan) if field.name not in UNCOMPARED]
    keys = () if state in LIVE_STATES else tuple(names)
    if _comparable(stored, keys) != _comparable(plan, keys):
        raise JobError(
            f"run {run_dir.run_id} was started on this host with another plan; use another ssd_run_id, or stop it "
            "(stop.yml) and remove it (cleanup.yml)"
        )
    return "attach" if state in LIVE_STATES else "resume"


def _comparable(plan: Plan, keys: t.Collection[str]) -> t.Any:
    # Names below /dev may change between two plays; what is asked for may not.
    drives = [(_measured(drive.selector), drive.tests) for drive in plan.drives]
    return [getattr(plan, key) for key in keys], drives


def _measured(entry: Json) -> Json:
    """Return an entry of ssd_drives without what only says whether it may be erased."""
    return {key: value for key, value in entry.items() if key not in GUARD_OPTIONS}


def make_run_folders(run_dir: RunDir) -> None:
    """The run's folder, readable for everyone whatever the umask is: `watch` needs no privilege."""
    runs = os.path.dirname(run_dir.path)
    for path in (run_dir.state_dir, runs, run_dir.path):
        make_folders(path)
        os.chmod(path, 0o755)


def write_starting(host: Host, run_dir: RunDir, plan: Plan) -> None:
    """A first status, so that nobody finds a run without one. It is ours until the job writes its own."""
    status = first_status(host, plan, STARTING)
    write_atomic(run_dir.status, json.dumps(status, indent=1) + "\n")


def launch(host: Host, run_dir: RunDir, engine: str) -> t.Callable[[], None]:
    """Start the detached job: a systemd transient unit where systemd is PID 1, else a session of its own. Returns what
    ends it, which raises JobError where it lives on.
    """
    run = [sys.executable, engine, "run", run_dir.path, starter(run_dir.read_status())]
    if not host.exists("/run/systemd/system"):
        nowhere = subprocess.DEVNULL
        # It is to outlive us, so nobody waits for it.
        pid = subprocess.Popen(run, stdin=nowhere, stdout=nowhere, stderr=nowhere, cwd="/", start_new_session=True).pid
        start = pid_start(host, pid)
        return functools.partial(end_process, host, run_dir, Process(pid, start) if start else None)
    unit = UNIT_PREFIX + run_dir.run_id + ".service"
    restore = [sys.executable, engine, "restore", run_dir.path]
    properties = {
        "ExecStopPost": " ".join(_unit_word(word) for word in restore),
        "KillMode": "mixed",
        "TimeoutStopSec": f"{STOP_TIMEOUT_S:g}",
        "Environment": "SSDLAB_FLEET_UNIT=" + unit,
    }
    options = [f"--property={name}={value}" for name, value in properties.items()]
    result = host.run(["systemd-run", "--quiet", "--collect", "--unit=" + unit] + options + run)
    if result.rc == TIMED_OUT:
        with _given_up(run_dir, f"systemd-run gave no answer for {unit}"):
            end_unit(host, unit)  # systemd may have been asked already
    if result.rc:
        failed = f"systemd-run could not start {unit}: {result.stderr.strip()}"
        _mark_failed(run_dir, failed)
        raise JobError(failed)
    return functools.partial(end_unit, host, unit)


def _unit_word(word: str) -> str:
    """Return a word of a unit file's command line (systemd.service(5), Command lines)."""
    return '"' + word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$") + '"'


def await_start(host: Host, run_dir: RunDir, end: t.Callable[[], None]) -> str:
    """Wait until the job itself has written its status; the state then. One that does not in time is ended: the play
    takes its drives for idle. Raises JobError.
    """
    deadline = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline:
        state = _own_state(host, run_dir)
        if state:
            return state
        time.sleep(0.05)
    said = (host.get(run_dir.log) or "nothing")[-500:]
    late = f"the host job did not start within {START_TIMEOUT_S:g} s"
    try:
        with _given_up(run_dir, late):
            end()
    except JobError as error:
        raise JobError(f"{late}, and {error}") from None
    _mark_failed(run_dir, late)
    raise JobError(f"{late}, and was ended; {run_dir.log} says: {said}")


def _own_state(host: Host, run_dir: RunDir) -> str:
    """Return the state that the job itself gave; "" before it did. Raises JobError for one that has failed."""
    status = run_dir.read_status()
    if not status or status["pid"] == os.getpid():
        return ""
    state = state_of(host, status)
    if state == FAILED:
        raise JobError("the host job ended at once: {0}".format(status.get("message")))
    return state


@contextlib.contextmanager
def _given_up(run_dir: RunDir, message: str) -> t.Iterator[None]:
    """A start that could not be ended is void: its job does nothing, should it come after all (HostJob). Under the
    host's lock, which a job that is already at work has.
    """
    try:
        yield
    except JobError as error:
        with contextlib.suppress(Locked, OSError), host_lock({"run": run_dir.run_id, "pid": os.getpid()}):
            _mark_failed(run_dir, f"{message}, and {error}")
        raise


def _mark_failed(run_dir: RunDir, message: str) -> None:
    """A final state for a job that never wrote its own, so that no later play takes the run up by itself."""
    status = run_dir.read_status()
    if status and status["pid"] == os.getpid():
        Status(run_dir.status, status).set(state=FAILED, restored=True, message=message)


def changes(host: Host, run_dir: RunDir, plan: Plan) -> bool:
    """Return whether a job that was started changes the host or a drive. One that only tunes is done soon, and found
    perhaps all as it is to be.
    """
    if any(entry.tests for entry in plan.drives):
        return True
    deadline = time.monotonic() + TUNING_S
    while is_live(host, run_dir):
        if time.monotonic() > deadline:
            return True
        time.sleep(0.1)
    made = [
        item for record in read_journal(run_dir.journal) if record["event"] == "tuned" for item in record["settings"]
    ]
    return any(item["before"] != item["effective"] for item in made)
