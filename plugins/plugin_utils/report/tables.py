# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The tables of a test: block sizes by R/W mixes, all cells, latencies. Pure; texts, not escaped."""

from __future__ import annotations

import typing as t

from ...module_utils.measure import histogram
from ..common import units
from . import curves
from . import series as report_series
from .raw import Measurement

Mapping = t.Dict[str, t.Any]

LEAST_FILLED = 0.25
CELL_METRICS = ("iops", "bandwidth", "mean_latency_us", "max_latency_us")


def matrix(cells: list[Mapping], measured: Measurement | None, about: Mapping) -> Mapping | None:
    """Block sizes (rows) by R/W mixes (columns) of what the test tracks, averaged over the window; None when it is no
    matrix.

    Returns {metric, unit, mixes: [...], rows: [{block_size, values: [{text, heat (0…1) or None}]}]}.
    """
    by_place = {(cell["block_size_bytes"], cell["read_pct"]): cell["id"] for cell in cells if not cell.get("jobs")}
    sizes, mixes = (
        sorted({size for size, _mix in by_place}, reverse=True),
        sorted({mix for _size, mix in by_place}, reverse=True),
    )
    if not measured or len(by_place) < len(cells) or len(sizes) < 2 or len(mixes) < 2:
        return None
    if is_sparse(len(by_place), sizes, mixes):
        return None
    tracked = (about.get("tracked") or [{}])[0].get("metric") or "iops"
    metric = next((name for name in ("bandwidth", "mean_latency_us") if tracked.endswith(name)), "iops")
    unit, divisor = units.unit(metric)
    averages = {entry["cell"]: (entry.get("metrics") or {}).get(metric) for entry in measured.averages}
    known = [value for value in averages.values() if value and value > 0]
    rows = []
    for size in sizes:
        values = [averages.get(by_place.get((size, mix), "")) for mix in mixes]
        shown = [{"text": units.rounded(v / divisor) if v else "–", "heat": _heat(v, known)} for v in values]
        rows.append({"block_size": report_series.block_size(size), "values": shown})
    return (
        {"metric": metric, "unit": unit, "mixes": [f"{mix}/{100 - mix}" for mix in mixes], "rows": rows}
        if known
        else None
    )


def is_sparse(cells: int, rows: t.Sized, columns: t.Sized) -> bool:
    """Whether so few of a table's places have a cell that it is none: a host's plan of 500 cells may span 250,000."""
    return cells < LEAST_FILLED * len(rows) * len(columns)


def _heat(value: float | None, known: list[float]) -> float | None:
    if not value or value < 0:
        return None
    low, high = min(known), max(known)
    return round(curves.log_share(value, low, high), 3)


def cells(specs: list[Mapping], measured: Measurement | None) -> list[Mapping]:
    """[{cell, figures: [texts of CELL_METRICS], steady: text}] averaged over the window."""
    if not measured or len(measured.averages) < 2:
        return []
    order = {cell["id"]: position for position, cell in enumerate(specs)}
    averages = sorted(measured.averages, key=lambda entry: order.get(entry["cell"].partition(".")[0], len(order)))
    return [
        {
            "cell": entry["cell"],
            "figures": [_figure(entry.get("metrics") or {}, name) for name in CELL_METRICS],
            "steady": _own_steadiness(entry),
        }
        for entry in averages
    ]


def _figure(metrics: Mapping, name: str) -> str:
    """A figure of a cell; of a stream that only trims, that of its trims."""
    return _shown(metrics, name if name in metrics or "iops" in metrics else f"trim_{name}")


def _own_steadiness(entry: Mapping) -> str:
    """Whether a cell was steady by itself, tracked or not: "steady", or how far it ranged and moved; "–" where the test
    has no rule.
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


def _shown(metrics: Mapping, name: str) -> str:
    value = metrics.get(name)
    return units.rounded(value / units.unit(name)[1]) if isinstance(value, (int, float)) else "–"


def latency_table(metrics: Mapping) -> Mapping | None:
    """{labels, shares, rows: [(direction, texts in µs, then in %)]} of the tracked cell."""
    directions = [side for side in ("read", "write", "trim", "sync") if f"{side}_mean_latency_us" in metrics]
    if not directions:
        return None
    names = ["mean", *report_series.percentile_names(metrics), "max"]
    shares = report_series.share_names(metrics)
    rows = [
        (
            side,
            [_tail(metrics, f"{side}_{name}_latency_us") for name in names]
            + [_shown(metrics, f"{side}_{name}") for name in shares],
        )
        for side in directions
    ]
    labels = [name if name in ("mean", "max") else name[1:].replace("_", ".") + " %" for name in names]
    return {"labels": labels, "shares": [report_series.share_label(name) for name in shares], "rows": rows}


def _tail(metrics: Mapping, name: str) -> str:
    """A latency as a text; of a percentile that cannot be known, why."""
    short = histogram.too_few(name, metrics)
    return f"too few: {short[0]:,} of {short[1]:,} I/Os" if short else _shown(metrics, name)
