# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The first status of a run, which names its process, and whether that process still is the one that wrote it."""

from __future__ import annotations

import os
import typing as t

from ..core.files import SCHEMA_VERSION, now
from ..core.host import BOOT_ID, Host
from ..core.locks import host_holder
from ..records.plan import Plan
from .folder import RunDir, queued
from .states import DAMAGED, DEAD, FINAL_STATES, LIVE_STATES, RUNNING, STARTING


class Files(t.Protocol):
    """What tells whether a process lives: a host's files, or copies of them."""

    def get(self, path: str) -> str | None:
        """Return a file's content; None without it."""


def pid_start(host: Files, pid: int) -> str | None:
    """When a process started, in clock ticks since boot (proc(5), stat, field 22); None when there is no
    such process.
    """
    stat = host.get(f"/proc/{pid}/stat")
    if stat is None:
        return None
    # The second field, the command's name, may hold blanks and brackets: count from its end.
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] in ("Z", "X") else fields[19]


def first_status(host: Host, plan: Plan, state: str, unit: str | None = None) -> dict[str, t.Any]:
    """Return what status.json holds at first, written by this very process: no drive of the plan has begun. `unit`: its
    systemd unit.
    """
    return {
        "schema_version": SCHEMA_VERSION,
        "run_id": plan.run.id,
        "run_name": plan.run.name,
        "host": plan.host,
        "boot_id": host.get(BOOT_ID),
        "pid": os.getpid(),
        "pid_start": pid_start(host, os.getpid()),
        "unit": unit,
        "engine_version": plan.engine_version,
        "state": state,
        "started": now(),
        "updated": now(),
        "restored": False,
        "message": "",
        # Where the host is to find the number, one until it has.
        "parallel_drives": 1 if plan.together else plan.parallel_drives,
        "drives": [queued(drive.drive) for drive in plan.drives],
    }


def starter(status: t.Mapping[str, t.Any] | None) -> str:
    """Return which start a status is of, that no job has answered yet; "" for any other status."""
    if not status or status.get("state") != STARTING:
        return ""
    return "{0}-{1}".format(status.get("pid"), status.get("pid_start"))


def state_of(host: Files, status: t.Mapping[str, t.Any] | None) -> str:
    """Return the state that status.json gives, or `dead` when its job ended without saying so."""
    if status is None:
        return DEAD
    state: str = status["state"]
    if state in FINAL_STATES:
        return state
    alive = (
        status.get("boot_id") == host.get(BOOT_ID)
        and status.get("pid_start") is not None
        and pid_start(host, status["pid"]) == status["pid_start"]
    )
    return status["state"] if alive else DEAD


def run_state(host: Host, run_dir: RunDir) -> tuple[str, dict[str, t.Any] | None]:
    """Return a run's state and its status; the state of a run without a status is `dead`, or `damaged` where nobody can
    read it.

    A job that ended while we looked had written its last status by then, so look again. A job whose status was lost
    still has the host's lock.
    """
    status = run_dir.read_status()
    if state_of(host, status) == DEAD:
        status = run_dir.read_status()
    state = state_of(host, status)
    if state == DEAD and job_of(host, run_dir, None) is not None:
        return RUNNING, status
    return (DAMAGED if state == DEAD and run_dir.status_damage() else state), status


def is_live(host: Host, run_dir: RunDir) -> bool:
    """Return whether a host job works on this run now."""
    return run_state(host, run_dir)[0] in LIVE_STATES


class Process(t.NamedTuple):
    """A process, which a number alone does not name: the kernel uses it again."""

    pid: int
    start: str


def job_of(host: Host, run_dir: RunDir, status: t.Mapping[str, t.Any] | None) -> Process | None:
    """Return the living process that works on a run: that of its status, or else, where that is lost, the one that has
    the host's lock for it.
    """
    holder = host_holder() or {}
    named = [status or {}] + ([holder] if holder.get("folder") == os.path.realpath(run_dir.path) else [])
    for each in named:
        pid, start = each.get("pid"), each.get("pid_start")
        if isinstance(pid, int) and start is not None and pid_start(host, pid) == start:
            return Process(pid, start)
    return None
