# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which run a play is about. What hosts say of runs counts only for runs that the controller itself asked of them. Pure
but for its reading of the results folder."""

from __future__ import annotations

import functools
import json
import os
import typing as t
from pathlib import Path

from ...module_utils.records.answers import RunOnHost
from ...module_utils.run.folder import RUN_ID_PATTERN
from ...module_utils.run.states import FINISHED, UNFINISHED_STATES
from . import run_record

NAMING = "name it with -e ssd_run_id=…"
# {host: the runs that it reports}
Answers = t.Mapping[str, t.Sequence[RunOnHost]]


class RunError(Exception):
    """No run, or more than one; the message says what to do."""


class KnownRun(t.NamedTuple):
    """A run of this controller, by its run.json. started: the controller's time. hosts: those with a drive that is not
    left out. folder: of its results.
    """

    id: str
    name: str
    started: str
    hosts: frozenset[str]
    folder: str = ""


class ClaimedRun(t.NamedTuple):
    """A run that a host calls unfinished, and that is not gone on with for that.

    why: as a sentence's end. by_host: that is another host's word.
    """

    host: str
    run_id: str
    why: str
    by_host: bool = False


def on_controller(results_dir: str) -> list[KnownRun]:
    """Return the runs with a folder of results; what is damaged is left out, `preflight` says so where it matters."""
    found = []
    for path in sorted(Path(results_dir).glob("*/run.json")):
        try:
            record = run_record.read_run(os.fspath(path.parent)) or {}
            run_id, hosts = str(record["run"]["id"]), frozenset(hosts_with_drives(record["asked"]))
            if run_id == path.parent.name and RUN_ID_PATTERN.fullmatch(run_id):
                found.append(
                    KnownRun(run_id, str(record["run"]["name"]), str(record["started"]), hosts, os.fspath(path.parent))
                )
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return found


def unfinished(name: str, answers: Answers, own: t.Sequence[KnownRun]) -> tuple[list[str], list[ClaimedRun]]:
    """Return the runs of a name to go on with, and the claims that do not suffice for it.

    A host could bring an old run back by its word, whose verdicts would then be taken for new ones.
    """
    asked, folders = {run.id: run.hosts for run in own}, {run.id: run.folder for run in own}
    ended = {
        run.run_id
        for host, runs in answers.items()
        for run in runs
        if run.state == FINISHED and host in asked.get(run.run_id, ())
    }
    open_ids, claims = [], []
    kept_whole = functools.lru_cache(maxsize=None)(has_whole_host)
    for host, runs in answers.items():
        for run in {run.run_id: run for run in runs}.values():
            if run.run_name != name or run.state not in UNFINISHED_STATES:
                continue
            if host not in asked.get(run.run_id, ()):
                claims.append(ClaimedRun(host, run.run_id, "which this controller has no record of having asked of it"))
            elif kept_whole(folders[run.run_id]):
                claims.append(ClaimedRun(host, run.run_id, "of which this controller has a host's whole results"))
            elif run.run_id in ended:
                claims.append(ClaimedRun(host, run.run_id, "which other hosts have finished", by_host=True))
            else:
                open_ids.append(run.run_id)
    return sorted(set(open_ids)), claims


def hosts_without(folder: str, run_id: str, answers: Answers) -> list[str]:
    """Return the hosts that a run began without, and that have not begun it since."""
    try:
        record = run_record.read_run(folder) or {}
    except ValueError:  # the report, which can't judge the run then, says so
        return []
    begun = {host for host, told in answers.items() if any(run.run_id == run_id for run in told)}
    asked = record.get("asked") or []
    return sorted({str(entry["host"]) for entry in asked} - hosts_with_drives(asked) - begun)


def hosts_with_drives(asked: t.Sequence[t.Mapping[str, t.Any]]) -> set[str]:
    """Return the hosts of which a drive was not left out."""
    return {str(entry["host"]) for entry in asked if not entry.get("left_out")}


def has_whole_host(folder: str) -> bool:
    """Return whether results.jsonl has a host as done with the run: cleanup.yml removes from honest hosts what
    would tell so.
    """
    states: dict[t.Any, t.Any] = {}
    try:
        with open(os.path.join(folder, run_record.RESULTS), "rb") as source:
            for line in source:
                # Records of drives and tests are many, and not asked for here.
                record = _decoded(line) if b'"state"' in line else {}
                if record.get("kind") == "host":
                    states[str(record.get("host"))] = record.get("state")
    except OSError:
        return False
    return "ok" in states.values()


def _decoded(line: bytes) -> t.Mapping[str, t.Any]:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return record if isinstance(record, dict) else {}


def choose(
    run_id: str, name: str, answers: Answers, own: t.Sequence[KnownRun], is_complete: bool = False
) -> tuple[str, str]:
    """Id and name of the run given by its id, else of the one unfinished run of that name, else of the newest by the
    controller's time. is_complete: a run that neither answers nor own have does not exist. Raises RunError.
    """
    if run_id:
        if not RUN_ID_PATTERN.fullmatch(run_id):
            raise RunError(
                f"ssd_run_id: {run_id!r} is not a valid id: use up to 100 of A-Z a-z 0-9 . _ - and begin with a "
                "letter or "
                "a digit"
            )
        known = name_of(run_id, answers, own)
        if not known and is_complete:
            raise RunError(
                f"ssd_run_id: neither these hosts nor ssd_results_dir have a run {run_id}; correct the id, or leave it "
                f"out for the newest run named {name}"
            )
        return run_id, known or name
    open_ids, claims = unfinished(name, answers, own)
    if len(open_ids) > 1:
        raise RunError(
            f"several unfinished runs are named {name}: {', '.join(open_ids)}; say which with -e ssd_run_id=…"
        )
    if open_ids:
        return open_ids[0], name
    named = [run for run in own if run.name == name]
    if named:
        return max(named, key=lambda run: (run.started, run.id)).id, name
    told = "".join(f"; {claim.host} has {claim.run_id}, {claim.why}: {NAMING}" for claim in claims[:3])
    raise RunError(
        f"no run of this controller is named {name} (in ssd_results_dir); start one, or give -e ssd_run_id=…{told}"
    )


def name_of(run_id: str, answers: Answers, own: t.Sequence[KnownRun]) -> str:
    """Return the name of a run: the controller's own record, else what hosts say; "" where nobody knows it."""
    known = [run.name for run in own if run.id == run_id]
    return next(
        iter(
            known + [run.run_name for runs in answers.values() for run in runs if run.run_id == run_id and run.run_name]
        ),
        "",
    )
