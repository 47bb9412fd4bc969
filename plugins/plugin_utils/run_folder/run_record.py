# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The files of a run on the controller, and its own record among them, run.json."""

from __future__ import annotations

import json
import os
import typing as t
from dataclasses import dataclass, field

from ...module_utils.core.files import read_json, write_atomic
from ...module_utils.records.base import Annotated, AnyTime, Count, Json, Limits, OrMissing, Positive, Text
from ...module_utils.records.criterion import Criterion
from ...module_utils.records.plan import Departure, PlannedRun
from ..validation import printable

RUN, RESULTS = "run.json", "results.jsonl"
# What `asked` keeps of the cells that a drive has.
OF_CELLS = ("preferred_write_bytes",)
SUMMARY = os.path.join("report", "summary.json")
# What run.json keeps of a test's definition, which is its file's: the keys of TestOfRun, and those that make it another
# test (comparability.COMPARED).
Definition = Json


@dataclass(frozen=True)
class MeasuredElsewhere:
    """That a drive was not measured by this collection (ingest.yml): where, and by what; its identity is what the
    operator stated.
    """

    system: Text
    tools: list[Text]


@dataclass(frozen=True)
class RequestedDrive:
    """A drive that the run was asked to test."""

    host: Text
    drive: Text
    # This drive's tests; without it, all tests of the run.
    tests: OrMissing[list[str]] = None
    # fio's ioengine: drives measured by different ones are no peers.
    engine: OrMissing[str] = None
    # ssd_validity_limits.
    validity_limits: OrMissing[Json] = None
    # ssd_rack: where its host stands; without it, nobody said.
    rack: OrMissing[str] = None
    # The size of its cells of the preferred write size, where a test has such.
    preferred_write_bytes: OrMissing[Positive] = None
    # What ssd_wear_budget lets the run write to it; without it, anything.
    wear_budget_bytes: OrMissing[Count] = None
    # As preflight saw it; without it, nobody knew.
    model: OrMissing[Text] = None
    # Tests that ssd_time_budget left out, and self-tests of a drive that has none: a criterion on one is not met by
    # that.
    left_out_tests: OrMissing[list[str]] = None
    # The cells of those tests, by test.
    left_out_cells: OrMissing[dict[str, list[str]]] = None
    # Why the drive was left out, as in quarantine; without it, it was not.
    left_out: OrMissing[Text] = None
    # Why a drive is bad by its own account: it fails, measured or not.
    sick: OrMissing[Text] = None
    # Of a second measurement: the tests whose result there counts for the run again_of.
    again: OrMissing[list[str]] = None
    # Without it, this collection measured it.
    measured_elsewhere: OrMissing[MeasuredElsewhere] = None


@dataclass(frozen=True)
class TestOfRun:
    """What the report takes of a test's definition."""

    title: str
    source: str | None = None
    # The variables that the rule of steady state looks at.
    tracked: list[t.Any] = field(default_factory=list)
    departs: OrMissing[Departure] = None


@dataclass(frozen=True)
class RunWarning:
    """What a check of a host found and did not stop the run for. level: ok if the inventory lets it pass."""

    host: Text
    check: Text
    # null: it is about the host.
    drive: str | None
    level: t.Literal["ok", "warning"]
    message: str
    remedy: str


@dataclass(frozen=True)
class Rejudged:
    """What a run was held to until it was judged by others (ssd_rejudge)."""

    at: AnyTime
    criteria: list[Annotated[Json, Limits(known=Criterion)]]
    health_criteria: dict[str, list[Annotated[Json, Limits(known=Criterion)]]] = field(default_factory=dict)


@dataclass(frozen=True)
class RunRecord:
    """run.json: what a run was asked to do. preflight writes it, so that a host that never answered is still
    asked for.
    """

    schema_version: t.Literal[1]
    run: PlannedRun
    started: AnyTime
    asked: list[RequestedDrive]
    # Those of files, then ssd_criteria.
    criteria: list[Annotated[Json, Limits(known=Criterion)]]
    # By name; with more of their definitions than the report takes.
    tests: dict[str, Annotated[Definition, Limits(known=TestOfRun)]]
    versions: dict[str, str | None]
    # The run whose drives this one measures again (ssd_retest); it is judged with that run.
    again_of: OrMissing[str] = None
    # Whether a cause that nobody could look for disturbs a round, or warns.
    unknown_causes: OrMissing[t.Literal["warn", "disturb"]] = None
    # What the checks of the hosts found and did not stop the run for.
    warnings: list[RunWarning] = field(default_factory=list)
    # Those of ssd_health_criteria, by host; they hold for every test, whatever became of it.
    health_criteria: dict[str, list[Annotated[Json, Limits(known=Criterion)]]] = field(default_factory=dict)
    # The criteria before those above, the oldest first.
    rejudged: OrMissing[list[Rejudged]] = None


def elsewhere(run: t.Mapping[str, t.Any]) -> list[str]:
    """Return where and by what a run's drives were measured, if it was not by this collection (ingest.yml); else
    none.
    """
    stated = [entry["measured_elsewhere"] for entry in run.get("asked") or [] if entry.get("measured_elsewhere")]
    return sorted({", ".join([str(one["system"]), *map(str, one["tools"])]) for one in stated})


def results_size(folder: str) -> int:
    """Return how many bytes a run's results.jsonl has; 0 where there is none."""
    try:
        return os.path.getsize(os.path.join(folder, RESULTS))
    except OSError:
        return 0


def read_run(folder: str) -> dict[str, t.Any] | None:
    """run.json, None when there is none. Raises ValueError for a damaged one."""
    try:
        record = read_json(os.path.join(folder, RUN))
    except OSError as error:
        raise ValueError(error.strerror) from error
    if record is not None and not (
        isinstance(record, dict) and isinstance(record.get("asked"), list) and isinstance(record.get("tests"), dict)
    ):
        raise ValueError("it is not a run's record")
    # An inventory may call a host or a rack anything.
    sound: dict[str, t.Any] | None = printable.writable(record)
    return sound


def write_run(folder: str, record: t.Mapping[str, t.Any], is_decision: bool = False) -> bool:
    """Write run.json; what other plays of the same run asked for stays (a --limit, a job slice). is_decision: preflight
    decided it just now, so its criteria count, however often the run was judged by others. Whether it changed. Raises
    OSError.
    """
    path = os.path.join(folder, RUN)
    before = read_json(path)
    if is_decision and before and before.get("rejudged"):
        record = {**record, "rejudged": before["rejudged"]}
    return replace_run(folder, merge_run(before, record))


def replace_run(folder: str, record: t.Mapping[str, t.Any]) -> bool:
    """Write run.json as it is given. Whether it changed. Raises OSError."""
    path = os.path.join(folder, RUN)
    content = json.dumps(record, indent=1, sort_keys=True) + "\n"
    os.makedirs(folder, exist_ok=True)
    if _read(path) == content:
        return False
    write_atomic(path, content)
    return True


def merge_run(before: t.Mapping[str, t.Any] | None, now: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """Return the record of a run that is gone on with: its start, its warnings, and the drives, tests and health
    criteria of hosts that are not asked now stay.
    """
    if not before:
        return dict(now)
    hosts = {entry["host"] for entry in now["asked"]}
    kept = [entry for entry in before["asked"] if entry["host"] not in hosts]
    # A run that is under way keeps the cells that it began with, whatever a format made of the drive since.
    cells = {
        (entry["host"], entry["drive"]): {key: entry[key] for key in OF_CELLS if key in entry}
        for entry in before["asked"]
    }
    merged = {
        **now,
        # Slices of one run come in any order.
        "started": min(filter(None, (before["started"], now["started"])), default=None),
        "asked": kept + [{**cells.get((entry["host"], entry["drive"]), {}), **entry} for entry in now["asked"]],
        "tests": {**before["tests"], **now["tests"]},
    }
    criteria = {**(before.get("health_criteria") or {}), **(now.get("health_criteria") or {})}
    merged.update({"health_criteria": criteria} if criteria else {})
    if len(before.get("rejudged") or []) > len(now.get("rejudged") or []):
        # Another copy of the record, of before it was judged by others.
        merged.update({key: before[key] for key in ("criteria", "health_criteria", "rejudged") if key in before})
    warned = list(before.get("warnings") or [])
    warned += [item for item in now.get("warnings") or [] if item not in warned]
    return {**merged, "warnings": warned} if warned else merged


def _read(path: str) -> str | None:
    try:
        with open(path, encoding="utf-8") as source:
            return source.read()
    except FileNotFoundError:
        return None
