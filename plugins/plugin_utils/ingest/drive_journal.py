# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The journal of a drive that was measured elsewhere, as a host job would have written it: from it, all figures,
verdicts and pages are made in the one way (run/reducer.py). Pure.
"""

from __future__ import annotations

import datetime
import typing as t
from dataclasses import dataclass

from ...module_utils.core.files import SCHEMA_VERSION
from ...module_utils.measure.histogram import RoundHistograms
from ...module_utils.records import base
from ...module_utils.records.base import Json
from ...module_utils.records.events import (
    Cell,
    DriveFinished,
    DriveStarted,
    JobFinished,
    JobStarted,
    MeasurementStarted,
    Precondition,
    Round,
    TestFinished,
    TestStarted,
)
from ...module_utils.records.events import Histogram as HistogramEvent
from ...module_utils.records.measurement import Chosen, Condition, PreconditionDetails
from ...module_utils.records.plan import PlannedTest
from ...module_utils.run.reducer import AttemptReducer
from .measured_run import MeasuredRun
from .rounds_by_time import IngestedTest

CAUSE = "elsewhere"
# What only a host job sees.
UNSEEN = (
    "its purge, other I/O to it, its temperature, health and link were not observed, and its identity is what the "
    "operator states"
)


@dataclass(frozen=True)
class StatedDrive:
    """Who a drive is, and where it was measured, by the operator's word. identity: keys of records/identity.py."""

    host: str
    # Its serial number.
    label: str
    system: str
    identity: Json


def time_text(seconds: float) -> str:
    """Return a time as records have it."""
    when = datetime.datetime.fromtimestamp(round(seconds, 3), datetime.timezone.utc)
    return when.strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"


def told(drive: StatedDrive, tools: t.Iterable[str]) -> str:
    """Return where a drive was measured, and by what."""
    return ", ".join([drive.system, *sorted(set(tools))])


class Journal:
    """Builds the lines of one drive. raw: {name of a file: its path below the run's folder}."""

    def __init__(self, run_id: str, drive: StatedDrive, raw: t.Mapping[str, str]) -> None:
        self._run_id, self._drive, self._raw = run_id, drive, raw
        self.lines: list[Json] = []

    def _note(self, event: str, record: t.Any, seconds: float) -> Json:
        head = {"schema_version": SCHEMA_VERSION, "time": time_text(seconds), "run_id": self._run_id}
        line: Json = {**head, "host": self._drive.host, "event": event, **base.to_json(record)}
        self.lines.append(line)
        return line

    def write(self, tests: t.Sequence[IngestedTest], engine_version: str) -> list[Json]:
        """Return all lines of a drive with these tests."""
        runs = [run for one in tests for run in one.runs]
        tools = sorted({run.tool for run in runs})
        began_s, ended_s = min(run.began_s for run in runs), max(run.ended_s for run in runs)
        label = self._drive.label
        started = JobStarted(None, 1, engine_version, ", ".join(tools))
        self._note("job_started", started, began_s)
        path = next((run.device for run in runs if run.device), "")
        names = [one.test.name for one in tests]
        self._note("drive_started", DriveStarted(label, self._drive.identity, path, names), began_s)
        for one in sorted(tests, key=lambda test: min(run.began_s for run in test.runs)):
            self._test(one)
        failed = next((run.error for run in runs if run.error), "")
        self._note("drive_finished", DriveFinished(label, "error" if failed else "complete", failed), ended_s)
        self._note("job_finished", JobFinished("finished"), ended_s)
        return self.lines

    def _test(self, one: IngestedTest) -> None:
        test = one.test
        where: Json = {"drive": self._drive.label, "test": test.name, "attempt": 1}
        began_s = min(run.began_s for run in one.runs)
        self._note("test_started", TestStarted(**where, title=test.title), began_s)
        if one.fills:
            fill, ended_s = _whole_fill(one.fills), one.fills[-1].ended_s
            if fill:
                self._note("precondition", Precondition(**where, **vars(fill)), ended_s)
        reducer, tails = AttemptReducer(test), RoundHistograms()
        first = next(iter(one.rounds[0].values()))
        size_bytes = int(self._drive.identity["size_bytes"])
        begun = MeasurementStarted(**where, user_capacity_bytes=size_bytes)
        reducer.take(self._note("measurement_started", begun, first.began_s))
        failed = next((run for run in one.runs if run.error), None)
        ended_s = first.began_s
        for number, cells in enumerate(one.rounds, start=1):
            for name, run in cells.items():
                if run.error:
                    break
                reducer.take(self._cell(where, number, name, run, test))
            if any(run.error for run in cells.values()):
                break
            ended_s = max(run.ended_s for run in cells.values())
            reducer.take(self._note("round", Round(**where, round=number, elapsed_s=ended_s - first.began_s), ended_s))
            parts = {part or name: run.histograms[part] for name, run in cells.items() for part in run.histograms}
            tails.add(number, parts)
        if not failed:
            for histogram in tails.records(reducer.span(), reducer.latencies_left_out()):
                self._note("histogram", HistogramEvent(**where, **vars(histogram)), ended_s)
        reasons = [f"{failed.error} ({failed.place})"] if failed else []
        end = TestFinished(
            **where,
            ended="error" if failed else None,
            reasons=reasons,
            disturbed=[],
            conditions=self._conditions(one),
            vendor_settings=None,
            wear=None,
        )
        self._note("test_finished", end, ended_s)

    def _cell(self, where: Json, number: int, name: str, run: MeasuredRun, test: PlannedTest) -> Json:
        planned = next(cell for cell in test.cells if cell.id == name)
        by_host = planned.per_cpu or planned.auto_threads
        record = Cell(
            **where,
            round=number,
            cell=name,
            seed=0,
            causes=[],
            seconds=run.seconds,
            gap_s=None,
            read=run.read,
            write=run.write,
            trim=run.trim,
            sync=run.sync,
            streams=run.streams,
            raw=self._raw[run.place.path],
            started=time_text(run.began_s),
            chosen=Chosen(planned.threads, planned.queue_depth) if by_host else None,
        )
        return self._note("cell", record, run.ended_s)

    def _conditions(self, one: IngestedTest) -> list[Condition]:
        place = told(self._drive, (run.tool for run in one.runs))
        found = [Condition(CAUSE, "unknown", f"measured elsewhere ({place}), not by this collection: {UNSEEN}")]
        if one.test.precondition and not one.fills:
            text = "no result of its precondition was given, so nothing shows that the drive was filled"
            found.append(Condition("precondition", "unknown", text))
        if any(not run.histograms for cells in one.rounds for run in cells.values()):
            text = "its results have no histograms, so percentiles are unknown (fio: json+ with lat_percentiles=1)"
            found.append(Condition("no_histograms", "told", text))
        if one.partial:
            text = f"its last round was not ended (no result of {', '.join(one.partial[:5])}) and counts nowhere"
            found.append(Condition("partial_round", "told", text))
        return found


def _whole_fill(fills: t.Sequence[MeasuredRun]) -> PreconditionDetails | None:
    """Return a fill and the remainder below its block size as one; None where one of them failed."""
    done = [run.fill for run in fills]
    if not done or any(fill is None for fill in done):
        return None
    parts = [fill for fill in done if fill]
    main = max(parts, key=lambda fill: fill.bytes_written)
    rest = sum(fill.bytes_written for fill in parts) - main.bytes_written
    return PreconditionDetails(
        passes=main.passes,
        bytes_written=main.bytes_written + rest,
        seconds=sum(fill.seconds for fill in parts),
        bandwidth_bytes_per_s=main.bandwidth_bytes_per_s,
        remainder_bytes=rest // main.passes,
        block_size_bytes=main.block_size_bytes,
        data=main.data,
        kernel_bytes_written=None,
    )
