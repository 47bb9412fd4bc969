# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What became of the newest run of a name, for a message that another play sends: a night that was refused has no
report, and must not be taken for the night before.
"""

from __future__ import annotations

import json
import os
import typing as t

from ...module_utils.core.files import read_json, write_atomic
from ...module_utils.run.folder import RUN_ID_PATTERN
from ..validation import printable
from . import runs

FOLDER, REPORT = "_nights", "report"


class Word(t.NamedTuple):
    """decided_s: when preflight decided, since 1970. run_id: empty where no run was begun or gone on with. text: why
    none was, or that it goes on with one; else empty.
    """

    decided_s: float
    run_id: str = ""
    text: str = ""


class Message(t.NamedTuple):
    """text: for people. page: the first page of the run's report; empty where there is none."""

    text: str
    page: str = ""


def write(results_dir: str, run_name: str, word: Word) -> None:
    """Keep what preflight decided. Raises OSError."""
    if RUN_ID_PATTERN.fullmatch(run_name):  # preflight tells what else a name is
        os.makedirs(os.path.join(results_dir, FOLDER), exist_ok=True)
        write_atomic(_path(results_dir, run_name), json.dumps(word._asdict(), indent=1) + "\n")


def _path(results_dir: str, run_name: str) -> str:
    return os.path.join(results_dir, FOLDER, f"{run_name}.json")


def read(results_dir: str, run_name: str) -> Word | None:
    """Return what preflight decided last; None where it never did, or that can't be read."""
    try:
        found = printable.writable(read_json(_path(results_dir, run_name))) or {}
        return Word(float(found["decided_s"]), str(found["run_id"]), str(found["text"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def message(results_dir: str, run_id: str, run_name: str, since_s: float = 0.0, plans_only: bool = False) -> Message:
    """Return the message of a run, or, without its id, of what preflight decided last for a run of that name, but not
    before since_s; else of the newest run of that name. plans_only: the play before was in plan mode, which decides
    nothing.
    """
    if run_id:
        return _of_run(results_dir, run_id)
    word = read(results_dir, run_name)
    if since_s and plans_only:
        return Message(f"{run_name}: nothing was begun: with ssd_mode=plan the play only prints the plan")
    if since_s and (word is None or word.decided_s < since_s):
        return Message(f"{run_name}: nothing was begun: the play ended before preflight decided; its output says why")
    if word and word.run_id:
        reported = _of_run(results_dir, word.run_id)
        return reported._replace(text=f"{word.text}\n{reported.text}" if word.text else reported.text)
    if word and word.text:
        return Message(word.text)
    own = [run for run in runs.on_controller(results_dir) if run.name == run_name]
    newest = max(own, key=lambda run: (run.started, run.id), default=None)
    return _of_run(results_dir, newest.id) if newest else Message(f"{run_name}: no run of this name in {results_dir}")


def _of_run(results_dir: str, run_id: str) -> Message:
    folder = os.path.join(results_dir, run_id, REPORT)
    try:
        if not RUN_ID_PATTERN.fullmatch(run_id):
            raise ValueError(run_id)
        with open(os.path.join(folder, "message.txt"), encoding="utf-8") as file:
            return Message(file.read().rstrip("\n"), os.path.join(folder, "index.html"))
    except (OSError, ValueError):
        return Message(f"{run_id}: no report in {results_dir}; the play or the jobs before this one say why")
