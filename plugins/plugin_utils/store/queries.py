# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the long table is made of: the layouts of vectors, the tests' definitions, and the query of measurements."""

from __future__ import annotations

import typing as t

from ...module_utils.drive.entry import BY_ID
from ..verdict import comparability
from . import import_records
from .engine import Store
from .schema import tables
from .store_requirements import sa

if t.TYPE_CHECKING:
    import numpy


class Layout(t.NamedTuple):
    """Which of a vector's values to take (`at`), and what they are: codes into the lists of names."""

    size: int
    at: numpy.ndarray
    round: numpy.ndarray
    cell: numpy.ndarray
    metric: numpy.ndarray


class Layouts(t.NamedTuple):
    by_key: dict[int, Layout]
    cells: list[str]
    metrics: list[str]


def layouts(store: Store, metrics: t.Sequence[str] | None, rounds: bool, in_cells: bool = True) -> Layouts:
    """Of figures with these names (None: all); rounds, in_cells: with those of rounds, and of cells."""
    import numpy

    cells: dict[str, int] = {}
    names: dict[str, int] = {}
    by_key = {}
    with store.reading() as connection:
        found = connection.execute(sa.select(tables().layout.c.id, tables().layout.c.content)).all()
    for layout_key, content in found:
        figures = import_records.layout(content)
        kept = [
            (
                at,
                number,
                cells.setdefault(cell, len(cells)) if cell != import_records.NO_CELL else -1,
                names.setdefault(metric, len(names)),
            )
            for at, (number, cell, metric) in enumerate(figures)
            if (metrics is None or metric in metrics)
            and (rounds or number == import_records.NO_ROUND)
            and (in_cells or cell == import_records.NO_CELL)
        ]
        columns = [numpy.array(column, dtype=numpy.int32) for column in zip(*kept)] or [numpy.zeros(0, numpy.int32)] * 4
        by_key[layout_key] = Layout(len(figures), *columns)
    return Layouts(by_key, list(cells), list(names))


def definitions(store: Store, runs: t.Sequence[str] | None) -> dict[tuple[str, str], dict[str, str]]:
    """Return what made each test of a run what it was, by run and test."""
    table = tables().run
    query = sa.select(table.c.run_id, table.c.content)
    query = query if runs is None else query.where(table.c.run_id.in_(list(runs)))
    with store.reading() as connection:
        return {
            (run_id, test): definition
            for run_id, content in connection.execute(query)
            for test, definition in comparability.definitions(import_records.unpacked(content) or {}).items()
        }


def measurements(
    runs: t.Sequence[str] | None, tests: t.Sequence[str] | None, serials: t.Sequence[str] | None, valid: bool
) -> t.Any:
    """Return the query: a row for each measurement."""
    run, host, drive, test, part, campaign, measurement = (
        getattr(tables(), name) for name in ("run", "host", "drive", "test", "part", "campaign", "measurement")
    )
    joined = measurement.join(campaign, measurement.c.campaign_id == campaign.c.id).join(
        part, campaign.c.part_id == part.c.id
    )
    joined = (
        joined.join(run, part.c.run_id == run.c.id)
        .join(host, part.c.host_id == host.c.id)
        .join(test, measurement.c.test_id == test.c.id)
    )
    joined = joined.outerjoin(drive, campaign.c.drive_id == drive.c.id)
    label = campaign.c.label
    # As common/drives.py names one without a serial number.
    is_place = sa.and_(label.startswith("/", autoescape=True), sa.not_(label.startswith(BY_ID, autoescape=True)))
    serial = sa.func.coalesce(drive.c.serial, sa.case((is_place, host.c.name + " " + label), else_=label))
    query = sa.select(
        measurement.c.layout_id,
        measurement.c.figures,
        run.c.run_id,
        host.c.name,
        serial,
        drive.c.model,
        campaign.c.firmware,
        campaign.c.link,
        test.c.name,
        campaign.c.engine,
        campaign.c.label,
        campaign.c.capacity_bytes,
        campaign.c.lba_bytes,
        campaign.c.metadata_bytes,
        campaign.c.preferred_write_bytes,
        measurement.c.load,
    ).select_from(joined)
    query = query if runs is None else query.where(run.c.run_id.in_(list(runs)))
    query = query if tests is None else query.where(test.c.name.in_(list(tests)))
    query = query.where(measurement.c.counts == 1) if valid else query
    query = query if serials is None else query.where(serial.in_(list(serials)))
    return query.where(measurement.c.layout_id.is_not(None)).order_by(measurement.c.id)
