# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a host's run folder holds once it is on the controller: its journal line by line, and its plan."""

from __future__ import annotations

import contextlib
import functools
import typing as t

from ...module_utils.records import base
from ...module_utils.records.plan import CollectedPlan
from ...module_utils.records.run_files import Status
from ...module_utils.run import drive_records, reducer
from ...module_utils.run.folder import JOURNAL, PLAN
from ..common import json_schema
from . import sanitizer

# What the records and the report are made of; all other events stay in the file.
OF_TESTS = (*reducer.EVENTS, "fill_curve")
EVENTS = (
    *drive_records.OF_RUN,
    *drive_records.OF_DRIVE,
    *drive_records.OF_ATTEMPT,
    *OF_TESTS,
    "job_started",
    "tuned",
    "restored",
)
# A cell's figures or a snapshot of a large host are some 100 KiB.
MOST_LINE_BYTES = 16 << 20
MOST_FILE_BYTES = 1 << 30
# The plan of a host with 24 drives and all tests is some 10 MiB.
MOST_PLAN_BYTES = 128 << 20
MOST_TOLD = 3
# A job that is killed tears one; a line of two letters takes as long to refuse as one of hundreds of them.
MOST_TORN = 10_000

Record = dict[str, t.Any]


class Problems:
    """How many lines did not pass, and the first of them. torn: lines of no JSON, which are none; first_torn: the
    number of the first.
    """

    def __init__(self) -> None:
        self.count = self.torn = self.first_torn = 0
        self.first: list[str] = []

    def add(self, where: str, why: object) -> None:
        """One more."""
        self.count += 1
        if len(self.first) < MOST_TOLD:
            self.first.append(f"{where}: {why}")

    def text(self) -> str:
        """In a sentence; "" without any."""
        more = f"; {self.count - len(self.first)} more" if self.count > len(self.first) else ""
        return f"left out, as it cannot be trusted: {'; '.join(self.first)}{more}" if self.count else ""


def events(path: str, problems: Problems) -> t.Iterator[Record]:
    """Yield the events of a journal.jsonl that the report knows and that pass. A line torn by a power loss is no
    problem.
    """
    try:
        with open(path, "rb") as source:
            for number, line in enumerate(iter(lambda: source.readline(MOST_LINE_BYTES + 1), b""), 1):
                if len(line) > MOST_LINE_BYTES or source.tell() > MOST_FILE_BYTES:
                    problems.add(f"journal.jsonl from line {number} on", "it is too long")
                    return
                if problems.torn > MOST_TORN:
                    problems.add(f"journal.jsonl from line {number} on", "too many of its lines are not JSON")
                    return
                event = _event(line, number, problems)
                if event is not None:
                    yield event
    except FileNotFoundError:
        return
    except OSError as error:  # a folder of that name
        problems.add(JOURNAL, error.strerror)


def _event(line: bytes, number: int, problems: Problems) -> Record | None:
    try:
        record = sanitizer.decoded(line)
    except sanitizer.Unfit:
        record = None
    kind = record.get("event") if isinstance(record, dict) else None
    if not isinstance(kind, str):
        problems.torn += 1
        problems.first_torn = problems.first_torn or number
        return None
    if kind not in EVENTS:
        return None
    try:
        passed: Record = _of_event(kind).passed(record, explained=problems.count < MOST_TOLD).value
        return passed
    except sanitizer.Unfit as refused:
        problems.add(f"journal.jsonl line {number} ({kind})", refused)
        return None


def prepare() -> None:
    """Make the shapes of all events, the plan and the status, before Ansible forks a process for each host."""
    with contextlib.suppress(ImportError):  # told where a host answers
        for event in EVENTS:
            _of_event(event)
        for kind in (CollectedPlan, Status):
            sanitizer.shape_of_record(kind)


@functools.cache
def _of_event(event: str) -> sanitizer.Shape:
    """Return the shape of one event: asking them all for each line would take ten times as long."""
    return sanitizer.Shape(json_schema.of_event(event))


def plan(path: str, problems: Problems) -> CollectedPlan | None:
    """Return what the report takes of a host's plan.json; None where there is none or it does not pass."""
    try:
        with open(path, "rb") as source:
            content = source.read(MOST_PLAN_BYTES + 1)
        if len(content) > MOST_PLAN_BYTES:
            raise sanitizer.Unfit(["it is too long"])
        return base.parse(
            CollectedPlan, sanitizer.shape_of_record(CollectedPlan).passed(sanitizer.decoded(content)).value
        )
    except FileNotFoundError:
        return None
    except (OSError, sanitizer.Unfit) as error:
        problems.add(PLAN, getattr(error, "strerror", error))
        return None
