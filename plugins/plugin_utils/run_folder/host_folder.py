# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read what a host left in raw/<host>/ and reduce it to the records of its drives and tests."""

from __future__ import annotations

import os
import typing as t

from ...module_utils.records import base
from ...module_utils.records.attempt import MeasuredCell
from ...module_utils.records.events import KernelEvent, Sample
from ...module_utils.records.measurement import Calibration, TestEnd
from ...module_utils.records.plan import CollectedPlan
from ...module_utils.records.results import RECORDS, Brief
from ...module_utils.records.run_files import Status
from ...module_utils.run.drive_records import RunReducer
from ...module_utils.run.folder import JOURNAL, PLAN
from ...module_utils.run.states import LIVE_STATES
from ..validation import journal, sanitizer
from . import host_brief

Record = dict[str, t.Any]


class HostResults(t.NamedTuple):
    """`records`: of its drives and tests, as JSON has them. `snapshot`: what the host was (host_brief.brief).
    `calibration`: as the newest event has it. `damage`: sentences about files that are not whole; `problems`: about
    what does not pass the gate.
    """

    records: list[Record]
    snapshot: Brief | None
    calibration: Calibration | None
    damage: list[str]
    problems: list[str]


NOTHING = HostResults([], None, None, [], [])


def prepare() -> None:
    """Find how the events and records of a host are read, before Ansible forks a process for each host."""
    base.prepare(CollectedPlan, MeasuredCell, KernelEvent, Sample, TestEnd, *RECORDS.values())


def read(folder: str, run_id: str, state: str, status: t.Any) -> HostResults:
    """Return what a host's folder gives. state, status: as run_info reports them; status is not checked yet."""
    found = journal.Problems()
    reducer = RunReducer(journal.plan(os.path.join(folder, PLAN), found))
    for event in journal.events(os.path.join(folder, JOURNAL), found):
        reducer.take(event)
    records: list[Record] = []
    problems = [found.text()] if found.count else []
    try:
        passed = sanitizer.shape_of_record(Status).passed(status).value
        records = base.to_json(reducer.records(passed, run_id, state in LIVE_STATES))
    except sanitizer.Unfit as refused:
        problems.append(f"its status: {refused}")
    missing = [name for name in (PLAN, JOURNAL) if not os.path.exists(os.path.join(folder, name))]
    damage = [f"{', '.join(missing)}: not there, so no test has figures"] if missing and records else []
    damage += [f"{JOURNAL}: {found.torn} invalid line(s), the first is line {found.first_torn}"] if found.torn else []
    snapshot = host_brief.brief(reducer.snapshot) if reducer.snapshot else None
    return HostResults(records, snapshot, reducer.calibration, damage, problems)
