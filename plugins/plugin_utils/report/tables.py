# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The tables of a test: block sizes by R/W mixes, all cells. Pure; texts, not escaped."""

from __future__ import annotations

import math
import typing as t

from ..common import units
from . import chart_series, latencies, thinning
from .host_journal import Measurement

Record = dict[str, t.Any]
Figures = t.Sequence[t.Sequence[float | None]]

LEAST_FILLED = 0.25
# Beyond the PTS' 56 a picture of bars says nothing; the table has them all.
MOST_BARS = 100
CELL_METRICS = ("iops", "bandwidth", "mean_latency_us", "max_latency_us")
# What the PTS reports of each tracked kind; of a percentile the slower direction's.
MATRIX_METRICS = {"mean_latency_us": ("mean_latency_us", "p99_999_latency_us", "max_latency_us")}
TITLES = {
    "iops": "IOPS",
    "bandwidth": "Bandwidth (MB/s)",
    "mean_latency_us": "Mean latency (µs)",
    "p99_999_latency_us": "99.999 % latency (µs)",
    "max_latency_us": "Maximum latency (µs)",
}


def matrices(cells: list[Record], measured: Measurement | None, about: Record, over: str) -> list[Record]:
    """Block sizes (rows) by R/W mixes (columns) of what the test tracks, average over its rounds; of latencies mean,
    99.999 % and maximum. [] when it is no matrix. over: those rounds, as latencies.span names them.

    Returns [{metric, unit, caption, mixes: [...], rows: [{block_size, values: [{text, heat (0…1) or None}]}], plots}].
    """
    by_place = {(cell["block_size_bytes"], cell["read_pct"]): cell["id"] for cell in cells if not cell.get("jobs")}
    sizes, mixes = (
        sorted({size for size, _mix in by_place}, reverse=True),
        sorted({mix for _size, mix in by_place}, reverse=True),
    )
    if not measured or len(by_place) < len(cells) or len(sizes) < 2 or len(mixes) < 2:
        return []
    if is_sparse(len(by_place), sizes, mixes):
        return []
    tracked = (about.get("tracked") or [{}])[0].get("metric") or "iops"
    metric = next((name for name in ("bandwidth", "mean_latency_us") if tracked.endswith(name)), "iops")
    places = [[by_place.get((size, mix), "") for mix in mixes] for size in sizes]
    heads = [chart_series.block_size(size) for size in sizes], [f"{mix}/{100 - mix}" for mix in mixes]
    figures = {entry["cell"]: entry.get("metrics") or {} for entry in measured.averages}
    found = (_matrix(name, places, heads, figures, over) for name in MATRIX_METRICS.get(metric, (metric,)))
    return [one for one in found if one]


def _matrix(
    metric: str,
    places: list[list[str]],
    heads: tuple[list[str], list[str]],
    figures: t.Mapping[str, Record],
    over: str,
) -> Record | None:
    """One table of `matrices`; None without a figure. places: the cell of each place of it."""
    unit, divisor = units.unit(metric)
    sizes, mixes = heads
    values = [[_of_cell(figures.get(cell, {}), metric) for cell in row] for row in places]
    known = [value for row in values for value in row if value and value > 0]
    if not known:
        return None
    rows = [
        {
            "block_size": size,
            "values": [{"text": units.rounded(v / divisor) if v else "–", "heat": _heat(v, known)} for v in row],
        }
        for size, row in zip(sizes, values)
    ]
    scaled = [[thinning.significant(v / divisor) if v and v > 0 else None for v in row] for row in values]
    return {
        "metric": metric,
        "unit": unit,
        "caption": f"{TITLES[metric]} by block size and R/W mix, average over {over}",
        "mixes": mixes,
        "rows": rows,
        "plots": plots(sizes, mixes, scaled, TITLES[metric]),
    }


def plots(sizes: list[str], mixes: list[str], values: Figures, title: str) -> Record | None:
    """Return a matrix as the PTS draws it, both on a log scale: {flat: a line for each mix over the block sizes, the
    smallest left, solid: {title, sizes, mixes, values}, a bar for each cell}. None where that is too much. values: rows
    of sizes, the largest first; None is not drawn.
    """
    if len(sizes) * len(mixes) > MOST_BARS:
        return None
    columns = [list(column) for column in zip(*values)]
    lines = [{"label": mix, "x": sizes[::-1], "y": column[::-1]} for mix, column in zip(mixes, columns)]
    flat = {"x_title": "Block size", "y_title": f"{title}, log", "log": True, "lines": lines}
    # Rows and columns in the order in which low bars stand in front of high ones.
    if _mean(values[0]) < _mean(values[-1]):
        sizes, values = sizes[::-1], values[::-1]
    if _mean(columns[0]) < _mean(columns[-1]):
        mixes, values = mixes[::-1], [row[::-1] for row in values]
    return {"flat": flat, "solid": {"title": f"{title}, log", "sizes": sizes, "mixes": mixes, "values": values}}


def _mean(values: t.Sequence[float | None]) -> float:
    known = [math.log10(value) for value in values if value]
    return sum(known) / len(known) if known else -math.inf


def _of_cell(metrics: Record, metric: str) -> float | None:
    """Return a figure of a cell; of a percentile, which each direction has by itself, the slower one's."""
    sides = [metrics.get(f"{side}_{metric}") for side in ("read", "write") if metric not in metrics]
    known = [value for value in sides if value is not None]
    return metrics.get(metric) if metric in metrics else max(known, default=None)


def is_sparse(cells: int, rows: t.Sized, columns: t.Sized) -> bool:
    """Return whether so few of a table's places have a cell that it is none: a host's plan of 500 cells may span
    250,000.
    """
    return cells < LEAST_FILLED * len(rows) * len(columns)


def _heat(value: float | None, known: list[float]) -> float | None:
    if not value or value < 0:
        return None
    low, high = min(known), max(known)
    return round(thinning.log_share(value, low, high), 3)


def cells(specs: list[Record], measured: Measurement | None) -> list[Record]:
    """[{cell, figures: [texts of CELL_METRICS], shares: [(label, text)] of I/O within a time, steady: text}] averaged
    over the rounds that count.
    """
    if not measured or len(measured.averages) < 2:
        return []
    order = {cell["id"]: position for position, cell in enumerate(specs)}
    averages = sorted(measured.averages, key=lambda entry: order.get(entry["cell"].partition(".")[0], len(order)))
    shares = latencies.share_names(name for entry in averages for name in entry.get("metrics") or {})
    return [
        {
            "cell": entry["cell"],
            "figures": [_figure(entry.get("metrics") or {}, name) for name in CELL_METRICS],
            "shares": [(latencies.share_label(name), _share(entry.get("metrics") or {}, name)) for name in shares],
            "steady": _own_steadiness(entry),
        }
        for entry in averages
    ]


def _figure(metrics: Record, name: str) -> str:
    """Return a figure of a cell; of a stream that only trims, that of its trims."""
    return _shown(metrics, name if name in metrics or "iops" in metrics else f"trim_{name}")


def _share(metrics: Record, name: str) -> str:
    """Return a share of a cell's reads and writes; of a stream that only trims, of its trims."""
    return latencies.share_text(metrics.get(name if name in metrics or "iops" in metrics else f"trim_{name}"))


def _own_steadiness(entry: Record) -> str:
    """Return whether a cell was steady by itself, tracked or not: "steady", or how far it ranged and moved; "–" where
    the test has no rule.
    """
    found = entry.get("steady") or {}
    if not found or found.get("steady"):
        return "steady" if found else "–"
    ratios = [
        f"{name} {found[key]:.0%}"
        for name, key in (("range", "range_ratio"), ("slope", "slope_ratio"))
        if found.get(key) is not None
    ]
    return " ".join(["not steady:", ", ".join(ratios)]) if ratios else "not steady"


def _shown(metrics: Record, name: str) -> str:
    value = metrics.get(name)
    return units.rounded(value / units.unit(name)[1]) if isinstance(value, (int, float)) else "–"
