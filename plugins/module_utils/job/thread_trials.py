# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Find the threads of a drive's cells with `threads: auto`, once for each shape of job, by trials that only read."""

from __future__ import annotations

import functools
import typing as t

from ..machine import cpus
from ..measure import fio, thread_choice
from ..measure.rounds import cell_s
from ..measure.thread_choice import Trial
from ..records import base
from ..records.measurement import Chosen
from ..records.plan import PlannedTest
from ..records.planned_cell import PlannedCell
from ..run.folder import NEWS_S, Event
from .drive_context import Attempt, DriveContext
from .operating_points import Loads, with_loads


class Shape(t.NamedTuple):
    """What the number of threads depends on. job: that of the trial."""

    job: str
    writes: bool
    array: bool
    filesystem: bool


def shape(test: PlannedTest, cell: PlannedCell) -> Shape:
    """Return the shape of a cell's job."""
    return Shape(cell.trial_job, cell.read_pct < 100, test.array is not None, test.filesystem is not None)


def chosen_before(tests: t.Iterable[PlannedTest], history: t.Iterable[Event]) -> dict[Shape, Chosen]:
    """Return what earlier jobs of the run found for a drive. history: its events."""
    shapes = {(test.name, cell.id): shape(test, cell) for test in tests for cell in test.cells if cell.auto_threads}
    cells = [event for event in history if event["event"] == "cell" and event.get("chosen")]
    found = {shapes.get((event["test"], event["cell"])): event["chosen"] for event in cells}
    return {known: base.parse(Chosen, given) for known, given in found.items() if known}


class ThreadTrials:
    """The trials of a drive, and what they showed."""

    def __init__(self, station: DriveContext) -> None:
        self._station = station
        self._chosen = chosen_before(station.plan.tests, station.history)
        # Reads and writes of a shape share them; by the trial's job and threads.
        self._seen: dict[tuple[Shape, int], Trial] = {}

    def with_threads(self, test: PlannedTest, attempt: Attempt) -> tuple[PlannedTest, Loads]:
        """Return the test with the threads and depth of its cells with threads: auto, and these.

        The drive is held, and filled where the test fills it. Raises FioError.
        """
        cells = [cell for cell in test.cells if cell.auto_threads]
        return with_loads(test, {cell.id: self._load(test, cell, attempt) for cell in cells})

    def _load(self, test: PlannedTest, cell: PlannedCell, attempt: Attempt) -> Chosen:
        station, kind = self._station, shape(test, cell)
        cpu_count, size_bytes = cpus.count(station.job.host, station.bench.place), station.active_bytes(test)
        known = self._chosen.get(kind)
        if known is None or known.threads not in thread_choice.counts(cell, cpu_count, size_bytes):
            run_trial = functools.partial(self._trial, kind._replace(writes=False), cell, size_bytes, attempt)
            known = self._chosen[kind] = thread_choice.choose(cell, cpu_count, size_bytes, run_trial)
        return known

    def _trial(self, kind: Shape, cell: PlannedCell, size_bytes: int, attempt: Attempt, threads: int) -> Trial:
        """Run the trial of a cell with so many threads, or return what it showed before."""
        if (kind, threads) not in self._seen:
            station, trial = self._station, thread_choice.trial_cell(cell, threads)
            step = f"threads{threads}-{cell.id}"
            station.show(cell=cell.id, news_within_s=NEWS_S + 1.1 * cell_s(trial))
            name, seed = station.file(attempt, step), station.seed(attempt, step)
            try:
                done = station.bench.trial(name, trial, size_bytes, seed).details
            except fio.FioError as error:
                raise type(error)(f"trial of cell {cell.id} with {threads} threads: {error}") from None
            cpu = thread_choice.thread_cpu(done.seen, threads) if done.seen else 0.0
            self._seen[kind, threads] = Trial(cpu, done.read.iops if done.read else 0.0)
        return self._seen[kind, threads]
