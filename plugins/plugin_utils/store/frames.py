# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The store as pandas tables. `long` and `wide` are how results are read, in a notebook as in the judgement across
hosts; they are made from the layouts of vectors, the tests' definitions and the query of measurements.
"""

from __future__ import annotations

import typing as t

from ...module_utils.drive.entry import BY_ID
from ..common import units
from ..verdict import comparability
from . import import_records
from .database import Store, opened
from .schema import tables
from .store_requirements import StoreError, missing, sa

if t.TYPE_CHECKING:
    import numpy
    import pandas


# Of the long table, in this order, with what they hold.
COLUMNS = {
    "run": "the run's id",
    "host": "name in the inventory",
    "serial": "the drive's, else its name in the inventory, after its host where that is the path of a file",
    "model": "the drive's",
    "firmware": "the drive's",
    "capacity_bytes": "Int64",
    "link": 'as in the first sample ("8 GT/s x4"), else the transport',
    "test": "name of the test",
    "round": (
        "0: averaged over the steady window; otherwise the round in which a tracked variable had this value, which "
        "`rounds=False` omits"
    ),
    "cell": "missing for a figure of the test as a whole",
    "metric": "name of the figure",
    "unit": "the base unit: bytes/s, µs, IOPS",
    "value": "a float in that unit",
}
LONG = tuple(COLUMNS)
# What else there is, for those who compare: peers need the first four alike, other nights `conditions`
# (verdict/comparability.py).
MORE_COLUMNS = {
    "lba_bytes": "Int64",
    "metadata_bytes": "Int64, of a block",
    "engine": "fio's ioengine",
    "load": "of how many drives an array was; threads and depth, where the host chose them",
    "drive": "its name in the inventory",
    "conditions": "must be equal before figures of two runs may be compared",
}
MORE = tuple(MORE_COLUMNS)
# What tells one measurement from another in the wide table.
MEASUREMENT = ("run", "host", "serial", "model", "firmware", "capacity_bytes", "link", "test")
# What of a measurement comes with its row, and what with its layout.
_TEXTS = ("run", "host", "serial", "model", "firmware", "link", "test", "engine", "drive", "load", "conditions")
# Texts and numbers of a row of the query, by their places in it.
_SIZES = ("capacity_bytes", "lba_bytes", "metadata_bytes")
_PLACES = ("layout", "figures", *_TEXTS[:-2], *_SIZES, "preferred_write_bytes", "load")
_UNDER = [_PLACES.index(name) for name in ("run", "test", *comparability.NAMES)]
# Rows that are held at a time beside the table that is made of them.
_ROWS = 20_000


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


def read_layouts(store: Store, metrics: t.Sequence[str] | None, rounds: bool, in_cells: bool = True) -> Layouts:
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


def read_definitions(store: Store, runs: t.Sequence[str] | None) -> dict[tuple[str, str], dict[str, str]]:
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


def query_measurements(
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


def long(
    url: str,
    runs: t.Sequence[str] | None = None,
    tests: t.Sequence[str] | None = None,
    metrics: t.Sequence[str] | None = None,
    rounds: bool = True,
    valid: bool = False,
    columns: t.Sequence[str] = LONG,
    serials: t.Sequence[str] | None = None,
    cells: bool = True,
) -> pandas.DataFrame:
    """Return every figure of the store, one a row, in the columns LONG.

    url: of the store (database.resolve makes it of ssd_store_url). runs: run ids; tests, metrics: names; serials: of
      drives; None takes all.
    rounds: with what was tracked round by round; without, only what counts: a test's figures and its cells', averaged
      over the steady window. cells: with the figures of each cell; without, a test's own alone.
    valid: only of measurements that count: of drives that were asked for, and not `invalid` but for want of peers or a
      baseline. columns: those of LONG and MORE to read; of many runs each costs two to eight bytes a row.
    Texts are categories (missing where unknown), sizes are Int64, round int32, value float64 in
    the base unit that `unit` names (bytes/s, µs, IOPS). A drive without a serial has the name that the inventory uses
    in its place, after its host where that is the path of a file.
    Raises StoreError.
    """
    lacks = missing(url, tables=True)
    if lacks:
        raise StoreError(lacks[0])
    with opened(url) as store:
        layouts = read_layouts(store, metrics, rounds, cells)
        defined = read_definitions(store, runs) if "conditions" in columns else {}
        return _Long(layouts, columns, defined).read(store, query_measurements(runs, tests, serials, valid))


def started(url: str) -> dict[str, str]:
    """When each run of the store began, by its id; "" where nobody knows. Raises StoreError."""
    with opened(url) as store, store.reading() as connection:
        return {
            run_id: at or ""
            for run_id, at in connection.execute(sa.select(tables().run.c.run_id, tables().run.c.started))
        }


def wide(table: pandas.DataFrame) -> pandas.DataFrame:
    """Return a long table with one measurement a row and its own figures as columns (`write_iops`), those of its cells
    as `<cell> <metric>`.

    Rounds are left out. The columns before the figures are MEASUREMENT.
    """
    import pandas

    chosen = table[table["round"] == import_records.NO_ROUND]
    cells = chosen["cell"].astype(object)
    names = (
        chosen["metric"]
        .astype(object)
        .where(cells.isna(), cells.fillna("").astype(str) + " " + chosen["metric"].astype(str))
    )
    # Unknown is a value here: without it a drive of unknown firmware would have no row.
    alike = chosen.groupby(list(MEASUREMENT), observed=True, dropna=False, sort=False).ngroup()
    # Two drives of a host that tell one serial number are two measurements.
    of_which = pandas.DataFrame({"row": alike, "name": names}).groupby(["row", "name"], sort=False).cumcount()
    rows = alike + of_which * (int(alike.max()) + 1 if len(alike) else 0)
    figures = pandas.DataFrame({"row": rows, "name": names, "value": chosen["value"]}).pivot(
        index="row", columns="name", values="value"
    )
    about = chosen[list(MEASUREMENT)].assign(row=rows).drop_duplicates("row").set_index("row")
    return about.join(figures[sorted(figures.columns)]).reset_index(drop=True)


class _Codes(dict[t.Any, int]):
    """The code of the text that each value is told by, in the order in which they come; -1 of None."""

    def __init__(self, text: t.Callable[[t.Any], str]) -> None:
        super().__init__({None: -1})
        self._text = text
        self.names: dict[str, int] = {}

    def __missing__(self, value: t.Any) -> int:
        self[value] = self.names.setdefault(self._text(value), len(self.names))
        return self[value]


class _Long:
    """Makes the long table while it reads, so that the rows and the table are never there at once."""

    def __init__(
        self,
        layouts: Layouts,
        columns: t.Sequence[str],
        defined: t.Mapping[tuple[str, str], t.Mapping[str, str]],
    ) -> None:
        self._layouts = layouts
        self._defined = defined
        self._columns = [name for name in (*LONG, *MORE) if name in columns]
        self._codes = {name: _Codes(self._conditions if name == "conditions" else str) for name in _TEXTS}
        # A unit is known by its metric.
        self._pieces: dict[str, list[numpy.ndarray]] = {
            "metric" if name == "unit" else name: [] for name in self._columns
        }

    def read(self, store: Store, query: t.Any) -> pandas.DataFrame:
        """Return the whole table."""
        with store.reading() as connection:
            for rows in connection.execution_options(yield_per=_ROWS).execute(query).partitions():
                alike: dict[int, list[t.Any]] = {}
                for row in rows:
                    alike.setdefault(row[0], []).append(row)
                for layout_key, some in alike.items():
                    self._take(some, self._layouts.by_key[layout_key])
        return self._table()

    def _take(self, rows: t.Sequence[t.Any], layout: Layout) -> None:
        """Rows of one layout."""
        import numpy

        if not len(layout.at):
            return
        if "value" in self._pieces:
            values = numpy.frombuffer(b"".join(row[1] for row in rows), dtype="<f8").reshape(len(rows), layout.size)
            self._pieces["value"].append(numpy.ascontiguousarray(values[:, layout.at]).ravel())
        for name, type_ in (("round", numpy.int32), ("cell", numpy.int16), ("metric", numpy.int16)):
            if name in self._pieces:
                self._pieces[name].append(numpy.tile(getattr(layout, name).astype(type_), len(rows)))
        columns = list(zip(*rows))
        for name, codes in self._codes.items():
            if name in self._pieces:
                given = columns[_PLACES.index(name)] if name in _PLACES else zip(*(columns[at] for at in _UNDER))
                found = numpy.fromiter(map(codes.__getitem__, given), numpy.int32, len(rows))
                self._pieces[name].append(
                    numpy.repeat(found.astype(numpy.int16) if len(codes.names) < 1 << 15 else found, len(layout.at))
                )
        for name in _SIZES:
            if name in self._pieces:
                known = columns[_PLACES.index(name)]
                sizes = numpy.fromiter((-1 if size is None else size for size in known), numpy.int64, len(rows))
                self._pieces[name].append(numpy.repeat(sizes, len(layout.at)))

    def _conditions(self, under: tuple[t.Any, ...]) -> str:
        found = dict(zip((_PLACES[at] for at in _UNDER), under))
        return comparability.conditions_key(found, self._defined.get((found["run"], found["test"])))

    def _joined(self, name: str, default: str) -> numpy.ndarray:
        """Return a column; its pieces are given up."""
        import numpy

        pieces = self._pieces.pop(name)
        return numpy.concatenate(pieces) if pieces else numpy.zeros(0, default)

    def _table(self) -> pandas.DataFrame:
        import pandas

        columns: dict[str, t.Any] = {}
        if "metric" in self._pieces:
            metric = self._joined("metric", "int16")
            columns["metric"] = pandas.Categorical.from_codes(metric, self._layouts.metrics)
            columns["unit"] = _units(metric, self._layouts.metrics) if "unit" in self._columns else None
        names: dict[str, t.Iterable[str]] = {"cell": self._layouts.cells} | {
            name: codes.names for name, codes in self._codes.items()
        }
        for name in list(self._pieces):
            if name in names:
                columns[name] = pandas.Categorical.from_codes(self._joined(name, "int16"), list(names[name]))
            elif name in _SIZES:
                sizes = self._joined(name, "int64")
                columns[name] = pandas.arrays.IntegerArray(sizes, sizes < 0)
            else:
                columns[name] = self._joined(name, {"round": "int32", "value": "float64"}[name])
        return pandas.DataFrame({name: columns[name] for name in self._columns}, copy=False)


def _units(metric: numpy.ndarray, names: t.Sequence[str]) -> pandas.Categorical:
    """Return the unit of each figure."""
    import numpy
    import pandas

    known = [units.base(name) for name in names]
    distinct = sorted(set(known))
    codes = numpy.array([distinct.index(unit) for unit in known], dtype=numpy.int8)
    return pandas.Categorical.from_codes(codes[metric] if len(codes) else numpy.zeros(0, "int8"), distinct)
