# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Cells whose threads and depth are chosen here: by what a sweep before them measured on this drive, or by the CPUs
that fio has. Pure.
"""

from __future__ import annotations

import dataclasses
import typing as t

from ..measure import io_pattern
from ..records.attempt import AttemptResult
from ..records.measurement import Chosen
from ..records.plan import PlannedTest
from ..records.planned_cell import PlannedCell, PointOfSweep

# Of the cells whose load was chosen, by id.
Loads = t.Dict[str, Chosen]


class NoPoint(Exception):
    """No cell of the sweep is what was asked for; the message says so."""


def with_points(
    test: PlannedTest, tests: t.Sequence[PlannedTest], finished: t.Sequence[AttemptResult]
) -> tuple[PlannedTest, Loads]:
    """Return the test with the threads and depth of its points filled in, and these.

    tests: of the drive's plan; finished: results of its tests, the newest last.
    Raises NoPoint where no cell of the sweep qualifies.
    """
    loads = {cell.id: _settled(cell.id, cell.point, tests, finished) for cell in test.cells if cell.point}
    return with_loads(test, loads)


def on_cpus(test: PlannedTest, cpus: int) -> tuple[PlannedTest, Loads]:
    """Return the test with the threads and depth of its cells with per_cpu, where fio has so many CPUs, and these."""
    return with_loads(test, {cell.id: io_pattern.by_cpus(cell, cpus) for cell in test.cells if cell.per_cpu})


def with_loads(test: PlannedTest, loads: Loads) -> tuple[PlannedTest, Loads]:
    """Return the test with these threads and depths in its cells, and them."""
    cells = [_with_load(cell, loads[cell.id]) if cell.id in loads else cell for cell in test.cells]
    return dataclasses.replace(test, cells=cells), loads


def _with_load(cell: PlannedCell, load: Chosen) -> PlannedCell:
    return dataclasses.replace(cell, threads=load.threads, queue_depth=load.queue_depth)


def _settled(
    name: str, point: PointOfSweep, tests: t.Sequence[PlannedTest], finished: t.Sequence[AttemptResult]
) -> Chosen:
    sweep = next(test for test in tests if test.name == point.test)
    cells = next((result.cells for result in reversed(finished) if result.test == point.test), [])
    found = io_pattern.chosen(point, sweep.cells, {cell.cell: cell.metrics for cell in cells})
    if found is None:
        limit = point.mean_latency_below_us
        below = f" with a mean latency below {limit:g} us" if limit else ""
        raise NoPoint(f"cell {name}: {point.test} has no cell{below} to take threads and depth from")
    return found
