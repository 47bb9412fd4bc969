# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a host tells about its runs: a line for each, and what the folder of one holds (shapes: docs/internals.md)."""

from __future__ import annotations

import typing as t

from ..core.files import SCHEMA_VERSION, Damaged, now
from ..core.host import Host
from ..records.plan import Plan
from . import digests
from .folder import Event, RunDir, queued, run_ids, scan_journal
from .liveness import run_state
from .states import ABSENT, LIVE_STATES, RUNNING, UNFINISHED_STATES

# Of a run whose status and plan are both lost.
UNKNOWN = "unknown"

Record = t.Dict[str, t.Any]


class RunState(t.NamedTuple):
    """What a run's folder says of it. `state`: as status.json says, `dead` when its job ended without saying so,
    `damaged` when nobody can read it, or `absent`.

    damage: a sentence for each file that is not what it should be; what status.json lacks is made up for from the
      others, as far as they go.
    """

    run_id: str
    state: str
    status: Record
    damage: list[str] = []

    @property
    def live(self) -> bool:
        """Whether a host job works on it now."""
        return self.state in LIVE_STATES

    @property
    def unfinished(self) -> list[str]:
        """The drives that a live job has yet to finish."""
        return [entry["drive"] for entry in self.status.get("drives", []) if self.live and entry["outcome"] is None]


def runs(host: Host, state_dir: str, run_name: str | None = None, definitions_of: str | None = None) -> list[Record]:
    """Return every run that this host knows, by id: [{run_id, run_name, state, drives, updated, definitions}]; drives:
    how many.

    definitions: see digests.digests_of_tests; of unfinished runs and of the run `definitions_of`, {} for others: they
    are many.
    """
    found = [_brief(host, RunDir(state_dir, run_id), definitions_of) for run_id in run_ids(state_dir)]
    return [run for run in found if run_name is None or run["run_name"] == run_name]


def _brief(host: Host, run_dir: RunDir, definitions_of: str | None) -> Record:
    state, status = run_state(host, run_dir)
    known: Record = status or {}
    told = state in UNFINISHED_STATES or run_dir.run_id == definitions_of
    plan = _plan(run_dir) if told or not known.get("run_name") else None
    name = known.get("run_name") or (plan.run.name if plan else None)
    return {
        "run_id": run_dir.run_id,
        "run_name": name,
        "state": state,
        "drives": len(known.get("drives") or []),
        "updated": known.get("updated"),
        "definitions": digests.digests_of_tests(plan) if told and plan else {},
    }


def read(host: Host, run_dir: RunDir) -> RunState:
    """One run; without a status where its folder has nothing to make it of."""
    if run_dir.run_id not in run_ids(run_dir.state_dir):
        return RunState(run_dir.run_id, ABSENT, {})
    # The state first: a job that ends meanwhile is then told as live with all it wrote, never as dead with a part.
    state, status = run_state(host, run_dir)
    damage = run_dir.status_damage()
    if not status:
        status = _status_from(run_dir, _plan(run_dir), scan_journal(run_dir.journal)[0])
    return RunState(run_dir.run_id, state, status, [damage] if damage else [])


def _plan(run_dir: RunDir) -> Plan | None:
    """Return plan.json; None where there is none that can be read."""
    try:
        return run_dir.read_plan()
    except Damaged:
        return None


def _status_from(run_dir: RunDir, plan: Plan | None, journal: list[Event]) -> Record:
    """Return what a lost status.json would say, as far as the plan and the journal know: {} where they know nothing."""
    drives = [queued(drive.drive) for drive in (plan.drives if plan else ())] or [
        queued(name) for name in _names(journal)
    ]
    if not drives:
        return {}
    for entry in drives:
        history = [record for record in journal if record.get("drive") == entry["drive"]]
        started, ended = last(history, "drive_started"), last(history, "drive_started", "drive_finished")
        if started:
            entry.update(phase="guard", path=started.get("path"))
        if ended and ended["event"] == "drive_finished":
            entry.update(phase="done", outcome=ended.get("outcome"), message=ended.get("message") or "")
    host = plan.host if plan else next((record["host"] for record in journal if record.get("host")), UNKNOWN)
    name = plan.run.name if plan else UNKNOWN
    # A process without a start time is nobody's.
    job: Record = {
        "boot_id": None,
        "pid": 1,
        "pid_start": None,
        "unit": None,
        "engine_version": plan.engine_version if plan else UNKNOWN,
        "state": RUNNING,
    }
    times = [record["time"] for record in journal] or [now()]
    about = {
        "run_id": run_dir.run_id,
        "run_name": name,
        "host": host,
        "started": times[0],
        "updated": times[-1],
        "restored": False,
    }
    return dict(job, schema_version=SCHEMA_VERSION, **about, message="", drives=drives)


def _names(journal: list[Event]) -> list[str]:
    return list(dict.fromkeys(record["drive"] for record in journal if record.get("drive")))


def last(history: t.Iterable[Event], *events: str) -> Event | None:
    """Return the newest journal record of these events; None where there is none."""
    found = [record for record in history if record["event"] in events]
    return found[-1] if found else None
