# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Cells whose threads and depth are chosen here: by what a sweep before them measured on this drive, or by the CPUs
that fio has. Pure.
"""

from __future__ import annotations

import typing as t

from ..measure import io_pattern

Mapping = t.Mapping[str, t.Any]


class NoPoint(Exception):
    """No cell of the sweep is what was asked for; the message says so."""


def with_points(test: Mapping, tests: t.Sequence[Mapping], finished: t.Sequence[Mapping]) -> Mapping:
    """Return the test with the threads and depth of its points filled in; each has `chosen`, of io_pattern.chosen.

    tests: of the drive's plan; finished: results of its tests, the newest last.
    Raises NoPoint where no cell of the sweep qualifies.
    """
    if not any(cell.get("point") for cell in test["cells"]):
        return test
    return dict(test, cells=[_settled(cell, tests, finished) if cell.get("point") else cell for cell in test["cells"]])


def on_cpus(test: Mapping, cpus: int) -> Mapping:
    """Return the test with the threads and depth of its cells with per_cpu, where fio has so many CPUs; each has
    `chosen`, of io_pattern.by_cpus.
    """
    cells = [
        dict(cell, threads=found["threads"], queue_depth=found["queue_depth"], chosen=found) if found else cell
        for cell in test["cells"]
        for found in [io_pattern.by_cpus(cell, cpus) if cell.get("per_cpu") else None]
    ]
    return dict(test, cells=cells)


def _settled(cell: Mapping, tests: t.Sequence[Mapping], finished: t.Sequence[Mapping]) -> Mapping:
    name = cell["point"]["test"]
    sweep = next(test for test in tests if test["name"] == name)
    averages: t.Sequence[Mapping] = next(
        (record["cells"] for record in reversed(finished) if record["test"] == name), []
    )
    found = io_pattern.chosen(cell["point"], sweep["cells"], averages)
    if found is None:
        limit = cell["point"].get("mean_latency_below_us")
        below = f" with a mean latency below {limit:g} us" if limit else ""
        raise NoPoint("cell {0}: {1} has no cell{2} to take threads and depth from".format(cell["id"], name, below))
    return dict(cell, threads=found["threads"], queue_depth=found["queue_depth"], chosen=found)
