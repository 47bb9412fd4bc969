# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which run a play is about that does not start one: watch, collect, report."""

from __future__ import annotations

import json
import typing as t
from pathlib import Path

from ...module_utils.run.folder import UNFINISHED_STATES


class RunError(Exception):
    """No run, or more than one; the message says what to do."""


class Known(t.NamedTuple):
    """A run that somebody knows. time: when it last changed, or was started."""

    id: str
    name: str
    state: str
    time: str


def on_hosts(answers: t.Mapping[str, t.Sequence[t.Mapping[str, t.Any]]]) -> list[Known]:
    """The runs that hosts know: {host: run_info's runs}."""
    return [
        Known(run["run_id"], run.get("run_name") or "", run["state"], run.get("updated") or "") for runs in answers.values() for run in runs
    ]


def on_controller(results_dir: str) -> list[Known]:
    """The runs with a folder of results."""
    found = []
    for path in sorted(Path(results_dir).glob("*/run.json")):
        try:
            record = json.loads(path.read_text(encoding="utf-8"))
            found.append(Known(str(record["run"]["id"]), str(record["run"]["name"]), "", str(record["started"])))
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return found


def choose(run_id: str, name: str, known: t.Sequence[Known]) -> Known:
    """The run given by its id, else the one unfinished run of that name, else its newest. Raises RunError."""
    if run_id:
        return next((run for run in known if run.id == run_id), Known(run_id, name, "", ""))
    named = [run for run in known if run.name == name]
    unfinished = sorted({run.id for run in named if run.state in UNFINISHED_STATES})
    if len(unfinished) > 1:
        raise RunError(f"several unfinished runs are named {name}: {', '.join(unfinished)}; say which with -e ssd_run_id=…")
    if unfinished:
        return next(run for run in named if run.id == unfinished[0])
    if not named:
        raise RunError(f"no run is named {name}, neither on the hosts asked nor in the results folder; start one, or give -e ssd_run_id=…")
    return max(named, key=lambda run: (run.time, run.id))
