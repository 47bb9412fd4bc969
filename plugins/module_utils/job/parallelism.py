# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""ssd_parallel_drives: auto. How many of the host's drives are measured at the same time: as the plan says by what they
share or, where that does not decide, by short reads before the first purge, of some alone and of several together.
Nothing is written: fio itself refuses to.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import functools
import time
import typing as t
from dataclasses import replace

from ..core.deadline import Hangs
from ..guard.data_scan import Terms
from ..measure import fio, io_pattern, parallelism_search
from ..records import base
from ..records.measurement import Calibration
from ..records.plan import Plan, PlannedDrive, ReadTogether
from ..records.planned_cell import PlannedCell
from .drive_context import Attempt, DriveContext, Job
from .side_by_side import SideBySide

# A short look is enough before reads; the campaign looks again, as it was asked to, before it writes.
LOOK_S = 1.0
MOST_WHY = 500
Found = t.TypeVar("Found")


class NotDone(Exception):
    """Why there is no calibration."""


def drives_at_once(job: Job, plan: Plan) -> int:
    """Return how many drives to work on at a time: what the plan says or, where it leaves that to the host, what reads
    tell, noted and shown. Raises Interrupted, and OSError where it can't be noted.

    A run that goes on keeps the number that it began with: its figures are of one kind.
    """
    if not plan.parallel_why:
        return plan.parallel_drives
    known = [record for record in job.history if record["event"] == "calibration"]
    if not known:
        found = Calibrating(job, plan.drives, plan.together).record() if plan.together else _by_plan(plan)
        record = base.to_json(found)
        job.journal.add("calibration", **record)
        known = [record]
    number: int = max(1, min(known[-1]["parallel_drives"], len(plan.drives)))
    job.status.set(parallel_drives=number, calibration={"left_s": 0, "why": str(known[-1].get("why") or "")})
    return number


def _by_plan(plan: Plan) -> Calibration:
    return _without_trial(plan, plan.parallel_drives, plan.parallel_why)


def _without_trial(plan: Plan, number: int, why: str) -> Calibration:
    drives = [drive.drive for drive in plan.drives]
    return Calibration(number, parallelism_search.KEPT_SHARE, why[:MOST_WHY], [], drives, [], 0)


def turns(job: Job, plan: Plan, number: int) -> SideBySide | None:
    """Return what lets fewer drives run once several throttle together; None where a number was given, or arrays wait
    for all their drives.
    """
    if not plan.parallel_why or any(test.array for drive in plan.drives for test in drive.tests):
        return None

    def note(fewer: int, why: str) -> None:
        job.journal.add("calibration", **base.to_json(_without_trial(plan, fewer, why)))
        job.status.set(parallel_drives=fewer, calibration={"left_s": 0, "why": why})

    return SideBySide(number, note)


class Calibrating:
    """The reads, on drives that are held as for a campaign and let go of at the end. asked: what to read."""

    def __init__(self, job: Job, drives: t.Sequence[PlannedDrive], asked: ReadTogether) -> None:
        job = job._replace(terms=Terms(LOOK_S, job.terms.stop))
        self._job = job
        self._asked = asked
        self._cells = asked.cells
        # Stations of their own: what these cells leave in a workbench is no part of a test.
        self._stations = {drive.drive: DriveContext(job, drive, reads_only=True) for drive in drives}
        self._drives = list(self._stations)
        self._groups_left = parallelism_search.most_groups(asked, len(self._drives))

    def record(self) -> Calibration:
        """Return what was found. Raises Interrupted."""
        began, why = time.monotonic(), ""
        decided = parallelism_search.decide(self._drives, self._asked, {}, [])
        try:
            self._show_left()
            decided = self._decided()
        except fio.Interrupted:
            raise
        except NotDone as error:
            why = str(error)
        except Exception as error:  # The tests themselves can be done, with as many drives as surely may.
            why = f"{type(error).__name__}: {error}"
        finally:
            self._let_go()
        cells, seconds = [cell.id for cell in self._cells], round(time.monotonic() - began, 3)
        why = f"not calibrated: {why}" if why else decided.why
        return replace(decided, why=why[:MOST_WHY], cells=cells, seconds=seconds)

    def _decided(self) -> Calibration:
        writing = [cell.id for cell in self._cells if io_pattern.sides(cell) != {"read"}]
        if writing:
            raise NotDone(f"the plan's {writing[0]} also writes or trims")
        if any(record["event"] == "drive_started" for record in self._job.history):
            raise NotDone("an earlier job of this run started without calibration")
        self._each(self._drives, _hold)
        alone: dict[str, dict[str, list[float]]] = {cell.id: {} for cell in self._cells}
        for drive in self._asked.alone:
            for cell, figures in self._figures([drive]).items():
                alone[cell].update(figures)
        trials: list[parallelism_search.Trial] = []
        number = parallelism_search.next_number(self._asked, alone, trials)
        while number is not None:
            trials.append(self._trial(alone, number))
            number = parallelism_search.next_number(self._asked, alone, trials)
        return parallelism_search.decide(self._drives, self._asked, alone, trials)

    def _trial(self, alone: parallelism_search.Figures, number: int) -> parallelism_search.Trial:
        parts: list[parallelism_search.Figures] = []
        for group in parallelism_search.groups(self._drives, number, self._asked.alone):
            parts.append(self._figures(group))
            if not parallelism_search.is_rate_kept(alone, parts[-1]):
                break
        return parallelism_search.Trial(number, parts)

    def _show_left(self) -> None:
        """How much longer it takes at most; nobody knows before how many groups it needs."""
        left_s = self._groups_left * parallelism_search.group_s(self._asked)
        self._job.status.set(calibration={"left_s": round(left_s, 1), "why": ""})

    def _figures(self, group: t.Sequence[str]) -> dict[str, dict[str, list[float]]]:
        """IOPS of drives that read at the same time: {cell: {drive: [of each repetition]}}."""
        found: dict[str, dict[str, list[float]]] = {cell.id: {drive: [] for drive in group} for cell in self._cells}
        for drive in group:
            self._stations[drive].bench.begin_test()
        for number in range(1, self._asked.repeats + 1):
            for cell in self._cells:
                name = f"together-{len(group)}-{self._drives.index(group[0]) + 1:04d}-{cell.id}"
                step = functools.partial(_read, cell=cell, name=f"{name}-{number}")
                for drive, iops in self._each(group, step).items():
                    found[cell.id][drive] += [iops] if iops is not None else []
        self._groups_left = max(0, self._groups_left - 1)
        self._show_left()
        return found

    def _each(self, drives: t.Sequence[str], step: t.Callable[[DriveContext], Found]) -> dict[str, Found]:
        """Return what a step returns for each of the drives, at the same time. Raises NotDone, which names the drive,
        and Interrupted.
        """
        with concurrent.futures.ThreadPoolExecutor(len(drives)) as pool:
            futures = {drive: pool.submit(step, self._stations[drive]) for drive in drives}
        errors = {drive: future.exception() for drive, future in futures.items()}
        for drive, error in errors.items():  # also where the job is stopped: its release would hang as well
            if isinstance(error, Hangs):
                _abandon(self._stations.pop(drive), error)
        for error in errors.values():
            if isinstance(error, fio.Interrupted):
                raise error
        for drive, error in errors.items():
            if error is not None:
                raise NotDone(f"{drive}: {error}")
        return {drive: future.result() for drive, future in futures.items()}

    def _let_go(self) -> None:
        """Of all at the same time, as each may hang for as long as a step may take."""
        for drive in self._drives:
            self._job.tuned.leave_place(drive)
        with concurrent.futures.ThreadPoolExecutor(max(1, len(self._stations))) as pool:
            list(pool.map(_release, self._stations.values()))


def _release(station: DriveContext) -> None:
    station.bench.close()
    try:
        with contextlib.suppress(OSError):
            station.watchdog.call("release", station.held.release)
    except Hangs as error:
        _abandon(station, error)


def _abandon(station: DriveContext, error: Hangs) -> None:
    """Also its campaign leaves it alone."""
    station.job.hung[station.drive] = str(error)
    station.held.abandon(str(error))


def _hold(station: DriveContext) -> None:
    station.guard("calibration")
    # All drives have their places: alone a drive has no more CPUs than together.
    station.bench.place = station.job.tuned.take_place(station.drive)


def _read(station: DriveContext, cell: PlannedCell, name: str) -> float | None:
    """Return the IOPS of a cell; None where something else disturbed it."""
    value = station.seed(Attempt("calibration", 1), name)
    result = station.bench.cell(name, cell, station.held.identity.sizes()[0], value)
    disturbed = any(cause.level == "disturbs" for cause in result.details.causes)
    read = result.details.read
    return None if disturbed or not read else float(read.iops)
