# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From the runs of cells to tests with rounds, by their times. Pure."""

from __future__ import annotations

import re
import typing as t
from dataclasses import dataclass, replace

from ...module_utils.records.plan import PlannedPurge, PlannedTest, RoundLimits
from ...module_utils.records.planned_cell import PlannedCell
from ..plan.platforms import PlatformTest
from ..plan.test_record import Test
from .fio_results import FILLS
from .measured_run import IngestError, MeasuredRun, Place

# Between two runs fio and the operator take some time; a clock that is read in whole seconds less.
SLACK_S = 1.5


@dataclass(frozen=True)
class IngestedTest:
    """A test with the runs that were found of it. rounds: whole ones, {cell: run} each. partial: of the last one, which
    was not ended; its figures count nowhere.
    """

    test: PlannedTest
    fills: t.Sequence[MeasuredRun]
    rounds: t.Sequence[t.Mapping[str, MeasuredRun]]
    partial: t.Sequence[str] = ()

    @property
    def runs(self) -> list[MeasuredRun]:
        """All that count, in the order of their times."""
        return [*self.fills, *(run for cells in self.rounds for run in cells.values())]


def of_plan(runs: t.Sequence[MeasuredRun], tests: t.Sequence[PlatformTest]) -> list[IngestedTest]:
    """Return the tests of a rendered plan that have runs. Raises IngestError."""
    mine: dict[str, list[MeasuredRun]] = {}
    jobs = RenderedJobs(tests)
    for run in runs:
        mine.setdefault(jobs.test(run.name, run.place).folder, []).append(run)
    found = []
    for one in tests:
        given = sorted(mine.get(one.folder, []), key=lambda run: run.ended_s)
        if given:
            fills = [run for run in given if run.fill or run.name in FILLS]
            # Who measures by hand keeps the order of the files.
            test = replace(one.test, cell_order=None)
            found.append(_in_rounds(test, fills, [run for run in given if run not in fills]))
    return found


class RenderedJobs:
    """The job files of a rendered plan, by the names of fio's jobs and of Iometer's access specifications."""

    def __init__(self, tests: t.Sequence[PlatformTest]) -> None:
        self._tests = tests

    def has(self, name: str) -> bool:
        """Return whether a test of the plan has a cell or a fill of this name."""
        return any(name in _names(one) for one in self._tests)

    def test(self, name: str, place: Place) -> PlatformTest:
        """Return the test that a result is of: by its cell, and where several have that, by the folder that it is in.
        Raises IngestError.
        """
        having = [one for one in self._tests if name in _names(one)]
        parts = {part.lower() for part in re.split(r"[\\/]", place.path)}
        named = [one for one in having if parts & {one.folder.lower(), one.test.name.lower()}]
        if len(having) == 1 or len(named) == 1:
            return (named if len(named) == 1 else having)[0]
        if not having:
            raise IngestError(
                f"{place}: no test of the plan has a cell {name}: give the plan that was rendered (ssd_plan), or none "
                "to take results as they are"
            )
        folders = ", ".join(one.folder for one in having)
        raise IngestError(f"{place}: {name} is of several tests; keep it in the folder of its test: {folders}")

    def text(self, name: str, place: Place) -> str:
        """Return the job file of a result. Raises IngestError."""
        jobs = self.test(name, place).jobs
        return next((job for file, job in jobs.items() if file[4:] == name), "")


class NoJobs:
    """No plan was rendered."""

    def has(self, name: str) -> bool:
        """Return False."""
        return False

    def text(self, name: str, place: Place) -> str:
        """Return no job file."""
        return ""


def _names(one: PlatformTest) -> set[str]:
    return {cell.id for cell in one.test.cells} | {file[4:] for file in one.jobs}


def _in_rounds(test: PlannedTest, fills: t.Sequence[MeasuredRun], runs: t.Sequence[MeasuredRun]) -> IngestedTest:
    """Return the rounds: one begins where a cell comes again. Raises IngestError for a gap."""
    due = [cell.id for cell in test.cells]
    rounds: list[dict[str, MeasuredRun]] = []
    for run in runs:
        if not rounds or run.name in rounds[-1]:
            lacking = [name for name in due if rounds and name not in rounds[-1]]
            if lacking:
                raise IngestError(
                    f"{run.place}: round {len(rounds)} of test {test.name} has no result of {lacking[0]}, and the next "
                    "round begins here: add its file, or remove those of that round"
                )
            rounds.append({})
        rounds[-1][run.name] = run
    partial = [name for name in due if rounds and name not in rounds[-1]]
    whole = rounds[:-1] if partial else rounds
    if not whole:
        lacks = f"has no result of {partial[0]}" if partial else "has no results but of its precondition"
        raise IngestError(f"test {test.name} {lacks}: run it, or remove the test's other results")
    ordered = [{name: cells[name] for name in due} for cells in whole]
    return IngestedTest(test, fills, ordered, partial)


def without_plan(runs: t.Sequence[MeasuredRun], name: str) -> list[IngestedTest]:
    """Return one test of all runs as they are: each load is a cell, and a load that comes again a round. Raises
    IngestError.
    """
    named: list[MeasuredRun] = []
    cells: dict[str, PlannedCell] = {}
    jobs: dict[str, set[str]] = {}
    for run in runs:
        if run.cell is None:
            raise IngestError(
                f"{run.place}: nothing in the file says what the load of {run.name} was; keep Iometer's access "
                "specifications in its results (Results file: all)"
            )
        jobs.setdefault(run.cell.id, set()).add(run.name)
    for run in sorted(runs, key=lambda one: one.ended_s):
        cell = t.cast(PlannedCell, run.cell)
        # Of jobs that differ in more than a cell's name tells.
        several = len(jobs[cell.id]) > 1
        identity = f"{cell.id}-{re.sub('[^A-Za-z0-9]+', '_', run.name)}"[:119] if several else cell.id
        cells.setdefault(identity, replace(cell, id=identity))
        named.append(replace(run, name=identity))
    return [_in_rounds(own_test(name, list(cells.values())), [], named)]


def own_test(name: str, cells: t.Sequence[PlannedCell]) -> Test:
    """Return a test that nobody planned: its cells, and no rule."""
    return Test(
        name=name,
        title="Measured elsewhere, by jobs of its own",
        origin="ingest.yml",
        source="",
        purge=PlannedPurge("none"),
        precondition=None,
        active_range_pct=100,
        cells=list(cells),
        not_applicable=[],
        rounds=RoundLimits(None, None, None),
        steady_state=None,
        after_steady_rounds=0,
        latency_targets_us=[1000, 2000],
        last_rounds=None,
        write_cache=None,
        follows=None,
    )


def check_together(runs: t.Sequence[MeasuredRun]) -> None:
    """Raise IngestError unless runs can be of one drive: of one device, by one tool, one after the other."""
    for what in ("device", "engine"):
        first: dict[str, MeasuredRun] = {}
        for run in runs:
            value = getattr(run, what)
            first.setdefault(value, run) if value or what == "engine" else None
        if len(first) > 1:
            told = " and ".join(f"{value} ({run.place})" for value, run in list(first.items())[:2])
            raise IngestError(f"files: they are of {len(first)} {what}s, {told}: give those of one drive alone")
    before: MeasuredRun | None = None
    for run in sorted(runs, key=lambda one: one.ended_s):
        if before and run.began_s < before.ended_s - SLACK_S:
            raise IngestError(
                f"{run.place}: it began {before.ended_s - run.began_s:.0f} s before {before.place} had ended, so both "
                "measured the same drive at the same time, or one is a copy or an interim report (--status-interval) "
                "of the other: remove one"
            )
        before = run
