# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which run it is: a new one, or one to go on with; and what a play of one that is there already would take away from
how its drives are judged.

A run is judged as a whole, by the last play: one that forgot the criteria would have every drive pass.
"""

from __future__ import annotations

import datetime
import typing as t

from ...module_utils.records.answers import RunOnHost
from ...module_utils.records.base import Json
from ...module_utils.run.states import LIVE_STATES
from ..common import argument_specs
from ..plan import health_criteria
from ..run_folder import runs
from ..run_folder.run_record import RunWarning
from ..verdict import judged_criteria
from .begun_run import BegunRun
from .findings import Finding, HostAnswer, Run, host_list, shared_value

CRITERIA_CHECK = "criteria"


def choose(
    views: t.Sequence[HostAnswer], now: datetime.datetime, own: t.Sequence[runs.KnownRun] = ()
) -> tuple[Run | None, list[Finding]]:
    """Return the run: the one given by ssd_run_id, else the one unfinished run of ssd_run_name, else a new one.
    `settings` has passed.

    own: the controller's runs. A run that a host calls unfinished, and that must not be taken up for its word, is to be
      named.
    """
    name, run_id = str(shared_value(views, "ssd_run_name")), shared_value(views, "ssd_run_id")
    known = [(view.name, one) for view in views for one in view.runs or ()]
    answers = {view.name: view.runs for view in views if view.runs}
    found: list[Finding] = []
    if not run_id:
        open_ids, claims = runs.unfinished(name, answers, own)
        if len(open_ids) > 1:
            return None, [Finding(_several(name, open_ids, known))]
        found = [Finding(_claimed(claim), claim.host) for claim in claims]
        run_id = open_ids[0] if open_ids else f"{now:%Y%m%dT%H%M%SZ}-{name}"
    attach = {host: one.state for host, one in known if one.run_id == run_id}
    return Run(str(run_id), runs.name_of(str(run_id), answers, own) or name, attach), found


def overlap(views: t.Sequence[HostAnswer], run: Run | None) -> tuple[str, str]:
    """Return what ssd_overlap makes of a run of that name that hosts still work on: (attach, skip or fail; the sentence
    that says so), or two empty texts.

    Not of a run that is given by its id: that was chosen.
    """
    busy = [host for host, state in (run.attach if run else {}).items() if state in LIVE_STATES]
    if run is None or not busy or shared_value(views, "ssd_run_id"):
        return "", ""
    chosen = str(shared_value(views, "ssd_overlap") or argument_specs.default("ssd_overlap"))
    does = {
        "attach": "this play attaches to it",
        "skip": "nothing is started",
        "fail": "wait for it (watch.yml), or stop it (stop.yml)",
    }
    return chosen, f"run {run.id} is still at work on {host_list(busy)}: {does.get(chosen, '')} (ssd_overlap: {chosen})"


def held_back(views: t.Sequence[HostAnswer], own: t.Sequence[runs.KnownRun], run: Run | None) -> list[Finding]:
    """Hosts that have another run of that name which can't be continued, also where the run is given by its id: what a
    plan left out for that, the start that gets the plan's id leaves out too. Another host's word leaves out nobody.
    """
    answers = {view.name: view.runs for view in views if view.runs}
    _open, claims = runs.unfinished(str(shared_value(views, "ssd_run_name")), answers, own)
    return [
        Finding(_claimed(claim), claim.host)
        for claim in claims
        if not claim.by_host and claim.run_id != (run.id if run else "")
    ]


def _claimed(claim: runs.ClaimedRun) -> str:
    return (
        f"ssd_run_id: this host reports run {claim.run_id} as unfinished, {claim.why}; resume it with "
        f"-e ssd_run_id={claim.run_id}, or stop it (stop.yml -e ssd_run_id={claim.run_id})"
    )


def _several(name: str, open_ids: t.Sequence[str], known: t.Sequence[tuple[str, RunOnHost]]) -> str:
    where = [f"{run_id} ({host_list([host for host, one in known if one.run_id == run_id])})" for run_id in open_ids]
    listed = ", ".join(where)
    return (
        f"ssd_run_id: several unfinished runs are named {name}: {listed}; choose one with -e ssd_run_id=…, or stop "
        "those you do not want (stop.yml)"
    )


def dropped_criteria(before: BegunRun, criteria: t.Any, unknown_causes: t.Any) -> list[str]:
    """Return what the run was begun with and would be held to no longer, in words."""
    now = [judged_criteria.describe_given(item) for item in criteria or [] if isinstance(item, dict)]
    then = [judged_criteria.describe_given(item) for item in before.criteria]
    strict = before.unknown_causes == "disturb" and (unknown_causes or "warn") != "disturb"
    return [text for text in then if text not in now] + ["ssd_unknown_causes disturb"] * strict


def dropped_criteria_warnings(
    views: t.Sequence[HostAnswer],
    run: Run | None,
    before: BegunRun,
    criteria: t.Any,
    of_health: t.Mapping[str, t.Sequence[Json]],
) -> list[RunWarning]:
    """Warn of criteria that the run began with. A single step is judged by nothing. of_health: by host."""
    if run is None or shared_value(views, "ssd_step") != "qualify":
        return []
    lost = "; ".join(dropped_criteria(before, criteria, shared_value(views, "ssd_unknown_causes")))
    began, remedy = f"that run {run.id} began with", "give the values that the run was started with"
    found = []
    for host in [view.name for view in views if view.asked is not None]:
        now = [health_criteria.describe(item) for item in of_health.get(host, ())]
        then = map(health_criteria.describe, before.health_criteria.get(host, ()))
        lost_of_host = "; ".join(text for text in then if text not in now)
        messages = [f"this play drops criteria {began}, for all of its drives: {lost}"] if lost else []
        if lost_of_host:
            messages.append(f"this play drops health criteria {began}, for all drives of this host: {lost_of_host}")
        found += [
            RunWarning(host, CRITERIA_CHECK, None, "warning", message, f"{remedy}, or use another ssd_run_id")
            for message in messages
        ]
    return found
