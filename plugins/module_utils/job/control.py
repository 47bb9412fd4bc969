# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Start, attach to and stop the host job of a run: what the module `host_job` does on a host."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import shutil
import typing as t

from ..core import ownership
from ..core.files import write_atomic
from ..core.host import Host
from ..core.locks import Lock, Locked, host_lock
from ..guard import ledger, ledger_format
from ..purge.begun import may_be_running
from ..records import base, run_files
from ..records.plan import Plan
from ..records.tuning import Setting
from ..run import digests, engines, summary
from ..run.folder import RunDir, Status, read_journal, run_ids
from ..run.liveness import is_live, job_of, run_state
from ..run.states import ABSENT, FINAL_STATES, LIVE_STATES, STOPPED
from ..tuning import settings
from .launch import (
    START_TIMEOUT_S,
    await_start,
    changes,
    decide,
    launch,
    make_run_folders,
    write_starting,
)
from .restore import NotRestored, leftover, leftovers, refuse_unrestored, restore_leftovers, restore_run
from .stop_process import STOP_TIMEOUT_S, JobError, end_process

# What a start answers that needs the engine and was not sent it: it did nothing.
SEND_ENGINE = "send_engine"
UNTRUSTED = (
    "ssd_state_dir {0}: users other than root may write to it, and could put records or programs of their "
    "own there: {1}"
)


def start(host: Host, run_dir: RunDir, plan: Plan, engine: engines.Engine, check: bool = False) -> dict[str, t.Any]:
    """Like `start_alone`, one at a time: of two plays that start one run at the same moment the second attaches. Raises
    JobError.
    """
    try:
        with Lock("start", {"run": run_dir.run_id, "pid": os.getpid()}).acquire(wait_s=2 * START_TIMEOUT_S):
            return start_alone(host, run_dir, plan, engine, check)
    except Locked as error:
        raise JobError(f"another play is starting a run on this host: {error}") from None


def start_alone(
    host: Host, run_dir: RunDir, plan: Plan, engine: engines.Engine, check: bool = False
) -> dict[str, t.Any]:
    """Make sure that the run is under way or done: {changed, action, state, restored}. `engine`: the zipapp to run; the
    action is SEND_ENGINE where it neither lies here nor was sent.

    A record that a dead job left is restored first. Raises JobError, and Damaged for a plan that nobody can read.
    """
    wrong = digests.plan_problem(plan)
    if wrong:
        raise JobError(f"the plan is not the one that preflight approved: {wrong}; nothing was started")
    untrusted = ownership.problems(run_dir.state_dir)
    if untrusted:
        raise JobError(UNTRUSTED.format(run_dir.state_dir, "; ".join(untrusted)))
    state, _status = run_state(host, run_dir)
    action = decide(run_dir, state, plan)
    if check or action in ("attach", "nothing"):
        return {"changed": action in ("start", "resume"), "action": action, "state": state, "restored": []}
    _refuse_second_run(host, run_dir)
    if engine.data is None and not engines.lies(engine, run_dir.state_dir):
        return {"changed": False, "action": SEND_ENGINE, "state": state, "restored": []}
    with _host_to_itself(run_dir.run_id):
        restored = restore_leftovers(host, run_dir.state_dir)
    try:
        refuse_unrestored(restored)
    except NotRestored as error:
        raise JobError(str(error)) from None
    make_run_folders(run_dir)
    installed = engines.install(engine, run_dir.state_dir)
    # A resumed run gets the identities as seen in this boot; what is asked for is the same.
    plan = held_to_all(run_dir.read_plan(), plan)
    write_atomic(run_dir.plan, json.dumps(base.sparse_json(plan), indent=1) + "\n")
    write_starting(host, run_dir, plan)
    end = launch(host, run_dir, installed)
    state = await_start(host, run_dir, end)
    return {
        "changed": bool(restored) or changes(host, run_dir, plan),
        "action": action,
        "state": state,
        "restored": settings.reported(restored),
    }


def held_to_all(before: Plan | None, plan: Plan) -> Plan:
    """Return the plan with the criteria that the run was held to before: one that a play forgets would take the
    evidence away of a drive that missed it.
    """
    if before is None:
        return plan
    criteria, health_criteria = (
        now + [criterion for criterion in then if criterion not in now]
        for now, then in ((plan.criteria, before.criteria), (plan.health_criteria, before.health_criteria))
    )
    return dataclasses.replace(plan, criteria=criteria, health_criteria=health_criteria)


def _refuse_second_run(host: Host, run_dir: RunDir) -> None:
    for run_id in run_ids(run_dir.state_dir):
        if run_id != run_dir.run_id and is_live(host, RunDir(run_dir.state_dir, run_id)):
            raise JobError(
                f"locked: run {run_id} is under way on this host; wait for it (watch.yml) or end it (stop.yml)"
            )


@contextlib.contextmanager
def _host_to_itself(who: str, wait_s: float = 0.0) -> t.Iterator[None]:
    """No host job lives meanwhile: also none of another state folder, or whose status was lost. Raises JobError."""
    try:
        with host_lock({"run": who, "pid": os.getpid()}).acquire(wait_s):
            yield
    except Locked as error:
        raise JobError(
            "locked: another run is using this host; wait for it (watch.yml) or end it (stop.yml), with its "
            f"ssd_run_id, and its ssd_state_dir where that is not the inventory's: {error}"
        ) from None


def refuse_foreign(state_dir: str) -> None:
    """Raise JobError for a state folder where somebody else than root may write: what lies there is run, and followed,
    as root.
    """
    foreign = ownership.problems(state_dir)
    if foreign:
        raise JobError(
            "ssd_state_dir: {0}; make it and its parent folders writable by root only, or name another folder".format(
                "; ".join(foreign)
            )
        )


def stop(host: Host, run_dir: RunDir, check: bool = False) -> dict[str, t.Any]:
    """End the run's job cleanly and see that the host is back: {changed, action, state, restored}. Raises JobError.

    A run whose job died is put back and marked as stopped, so that no later play takes it up by itself.
    """
    state, status = run_state(host, run_dir)
    state = state if os.path.isdir(run_dir.path) else ABSENT
    if state == ABSENT or state in FINAL_STATES:
        return {"changed": False, "action": "nothing", "state": state, "restored": []}
    if check:
        return {"changed": True, "action": "stop", "state": state, "restored": []}
    if state in LIVE_STATES:
        end_process(host, run_dir, job_of(host, run_dir, status))
    with _host_to_itself("stop of " + run_dir.run_id, STOP_TIMEOUT_S):
        restored = restore_run(host, run_dir)
        _mark_stopped(host, run_dir)
        ledger.close(run_dir.state_dir, run_dir.run_id, _still_written(run_dir))
    return {
        "changed": True,
        "action": "stop",
        "state": run_state(host, run_dir)[0],
        "restored": settings.reported(restored),
    }


def _still_written(run_dir: RunDir) -> list[str]:
    """Return the ledger's files of drives in which a purge of the run goes on by itself: a later job of the run
    waits for it.
    """
    history = read_journal(run_dir.journal)
    found = []
    for name in {record["drive"] for record in history if record.get("drive")}:
        own = [record for record in history if record.get("drive") == name]
        identity = next((record["identity"] for record in reversed(own) if record.get("identity")), None)
        if identity and may_be_running(own):
            found.append(ledger_format.path_of(run_dir.state_dir, identity))
    return found


def _mark_stopped(host: Host, run_dir: RunDir) -> None:
    """A final state for a run whose job died; of a lost or damaged status what the plan and the journal still tell."""
    status = run_dir.read_status()
    if status is None:
        known = summary.read(host, run_dir).status
        status = known if not base.problem(run_files.Status, known) else None
    if status and status["state"] not in FINAL_STATES:
        Status(run_dir.status, status).set(state=STOPPED, message="the host job had died")


def restore(host: Host, state_dir: str, check: bool = False, run_id: str | None = None) -> dict[str, t.Any]:
    """Put back what ended runs left on this host: {changed, action, state, restored}. Raises JobError while one lives.

    run_id: nothing, unless the dead job of this run left some; what tune.yml set stays.
    """
    left = [
        each
        for each in leftovers(host, state_dir)
        if run_id is None or (each.run_dir.run_id == run_id and not each.keeps)
    ]
    # Whoever asks for one run that left nothing is not told of another that works.
    for run_dir in [RunDir(state_dir, each) for each in run_ids(state_dir)] if left or run_id is None else []:
        if is_live(host, run_dir):
            message = "run {0} is under way and will restore this host itself; wait for it or end it (stop.yml)"
            raise JobError(message.format(run_dir.run_id))
    restored: list[Setting] = []
    if left and not check:
        with _host_to_itself("restore", STOP_TIMEOUT_S):
            restored = restore_leftovers(host, state_dir, kept=run_id is None)
    failed = settings.failures(restored)
    if failed:
        raise JobError("could not put back: " + "; ".join(failed))
    warnings = [item.message for item in restored if item.outcome == "not_applicable" and item.selector is not None]
    return {
        "changed": bool(left),
        "action": "restore" if left else "nothing",
        "state": "restored",
        "restored": settings.reported(restored),
        "warnings": warnings,
    }


def remove(host: Host, run_dir: RunDir, check: bool = False) -> dict[str, t.Any]:
    """Remove an ended run's folder from the host. Raises JobError while it lives or the host is not restored."""
    there = os.path.isdir(run_dir.path)
    if is_live(host, run_dir):
        raise JobError(f"run {run_dir.run_id} is under way; end it first (stop.yml)")
    if there and leftover(run_dir):
        raise JobError(f"the host still has the settings of run {run_dir.run_id}; restore it first (restore.yml)")
    if there and not check:
        with _host_to_itself("removal of " + run_dir.run_id, STOP_TIMEOUT_S):
            ledger.close(run_dir.state_dir, run_dir.run_id, removed=True)
            shutil.rmtree(run_dir.path)
        run_dir.sweep_archives()
        if os.path.exists(run_dir.archive):
            os.unlink(run_dir.archive)
    return {"changed": there, "action": "remove" if there else "nothing", "state": ABSENT, "restored": []}
