# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Judging a run by other criteria than it was started with. run.json then has the new ones, and keeps the old ones with
the time, so that nobody takes one verdict for the other.
"""

from __future__ import annotations

import typing as t

from ..plan import criteria_files, health_criteria
from ..plan.testfiles import PlanError
from ..verdict import judged_criteria

Record = dict[str, t.Any]
Criteria = list[Record]
KEYS = ("criteria", "health_criteria")
# How a run left a drive that missed a criterion.
EVIDENCE = "evidence"
MOST_NAMED = 10


class RejudgeError(Exception):
    """Criteria that can't be applied; the message has one line for each."""


class Wanted(t.NamedTuple):
    """What the variables of a play hold a run to. of_health: by host, of those that the play knows."""

    criteria: Criteria
    of_health: t.Mapping[str, Criteria]


def wanted(criteria: t.Any, tests_dirs: t.Sequence[str], of_health: t.Mapping[str, t.Any]) -> Wanted:
    """Return what ssd_criteria, ssd_tests_dirs and, by host, ssd_health_criteria ask for. Raises RejudgeError."""
    given = criteria or []
    problems = [
        f"ssd_criteria: {problem}"
        for criterion in (given if isinstance(given, list) else [given])
        for problem in judged_criteria.criterion_problems(criterion)
    ]
    for host, value in of_health.items():
        if not health_criteria.is_of_right_kind(value):
            problems.append(f"{host}: ssd_health_criteria: {value!r} is not {health_criteria.WANTED}")
        problems += [f"{host}: ssd_health_criteria: {problem}" for problem in health_criteria.problems(value)]
    try:
        merged = [] if problems else criteria_files.merged({"ssd_criteria": given, "ssd_tests_dirs": tests_dirs})
    except PlanError as error:
        problems = error.problems
    if problems:
        raise RejudgeError("\n".join(problems))
    resolved = {host: health_criteria.resolved({"ssd_health_criteria": value}) for host, value in of_health.items()}
    return Wanted(merged, resolved)


def differences(run: Record, asked: Wanted) -> list[str]:
    """Return what a run would be held to besides, and no longer, as lines; none where it is the same."""
    now = _told(asked.criteria, {host: asked.of_health.get(host, own) for host, own in _of_health(run).items()})
    then = _told(run.get("criteria") or [], _of_health(run))
    return [f"+ {line}" for line in now if line not in then] + [f"- {line}" for line in then if line not in now]


def judged_by(run: Record, asked: Wanted, at: str) -> Record:
    """Return run.json with these criteria in place of its own, which it keeps in `rejudged`."""
    before = {"at": at, **{key: run[key] for key in KEYS if key in run}}
    hosts = {host: asked.of_health.get(host, own) for host, own in _of_health(run).items()}
    made = {**run, "criteria": asked.criteria, "rejudged": [*(run.get("rejudged") or []), before]}
    return {**made, "health_criteria": hosts} if "health_criteria" in run else made


def kept_as_evidence(run_id: str, records: t.Iterable[Record]) -> list[str]:
    """Return that other criteria release no drive which its host keeps for those before; [] where there is none."""
    kept = [
        f"{one['host']} {one['drive']}" for one in records if one["kind"] == "drive" and one.get("left") == EVIDENCE
    ]
    if not kept:
        return []
    who = f"{kept[0]} stays" if len(kept) == 1 else f"{', '.join(kept[:MOST_NAMED])}{_more(kept)} stay"
    return [f"{who} evidence on the host all the same; release_evidence: {run_id} in a drive's entry releases it"]


def _more(names: t.Sequence[str]) -> str:
    return f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""


def _of_health(run: Record) -> dict[str, Criteria]:
    return {host: own for host, own in (run.get("health_criteria") or {}).items() if isinstance(own, list)}


def _told(criteria: Criteria, of_health: t.Mapping[str, Criteria]) -> list[str]:
    told = [judged_criteria.describe_given(item) for item in criteria if isinstance(item, dict)]
    by_text: dict[str, list[str]] = {}
    for host, own in of_health.items():
        for item in own:
            by_text.setdefault(health_criteria.describe(item), []).append(host)
    return told + [
        f"health: {text}" + ("" if len(hosts) == len(of_health) else f" ({', '.join(sorted(hosts))})")
        for text, hosts in by_text.items()
    ]
