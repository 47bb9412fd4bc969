# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Latencies of a test: percentiles, shares within a time, histograms; of which cell and which rounds they are. Pure."""

from __future__ import annotations

import re
import typing as t

from ...module_utils.measure import histogram
from ...module_utils.measure.disturbances import DISTURBS
from ..common import units
from .host_journal import Measurement
from .thinning import significant

Mapping = t.Mapping[str, t.Any]

# Of fio's 64 bins for each power of two, so many make a bar: 16 bars, 4 % wide, are as fine as a screen shows.
BINS_A_BAR = 4
# As many times as a test may have (latency_targets_us); a host may send names of more.
MOST_SHARES = 8
WINDOW = "the window"
KNOWN = {percent.replace(".", "_") for percent in histogram.PERCENTILES}
DIRECTIONS = ("read", "write", "trim", "sync")
_SHARE = re.compile(r"(?:(?:read|write|trim|sync)_)?(within_\d+(?:us|ms)_pct)")
# Those of the job template alone: each other name of a host's would be one more column.
_PERCENTILE = re.compile(rf"(?:(read|write|trim|sync)_)?p({'|'.join(sorted(KNOWN))})_latency_us")


def cell_of(tracked: str | None, cells: t.Iterable[Mapping], measured: Measurement | None) -> str:
    """Return the cell whose figures are the test's: the tracked one, else the first that leads no round; "": nobody
    knows.

    tracked: the first of a test with a rule. cells: of the rendered test.
    """
    known = [entry["cell"] for entry in measured.averages] if measured else []
    own = (cell["id"] for cell in cells if not cell.get("lead") and cell["id"] in known)
    return tracked or next(own, "")


def figures_of(cell: str, record: Mapping, measured: Measurement | None) -> Mapping:
    """Return a cell's own figures: a test's maxima are the largest of all its cells. Those of its record where the
    journal is lost.
    """
    found = (entry.get("metrics") for entry in (measured.averages if measured else []) if entry["cell"] == cell)
    return next(found, None) or record.get("metrics") or {}


def span(record: Mapping, last_rounds: int | None) -> str:
    """Return what a test's figures are averages over: the window; without a rule all rounds, or the last ones
    of them.
    """
    if record.get("steady_state"):
        return WINDOW
    count = record.get("rounds") or 0
    # Some of its rounds may be disturbed, which don't count; of what is only told or unknown all do.
    clean = " clean" if any(item.get("level") == DISTURBS for item in record.get("validity") or []) else ""
    if last_rounds and last_rounds < count:
        return f"the last{clean or f' {last_rounds}'} rounds" if clean or last_rounds > 1 else "the last round"
    return "its one round" if count == 1 else f"all{clean or f' {count}'} rounds"


def captions(over: str, cell: str, alone: bool) -> Mapping:
    """Return what the figures of a test's latency are of: {latency, histogram}. over: its span; alone: no
    other cell.
    """
    name = f" of {cell}" if cell else ""
    ios = "from the window's first round to its last" if over == WINDOW else f"of {over}"
    return {
        "latency": f"Latency{'' if alone else name}, over {over}",
        "histogram": f"Latency histogram{name}, all I/O {ios}",
    }


def shares(metrics: Mapping) -> dict[str, float]:
    """Return the known shares of reads and writes together: {within_1ms_pct: 99.855 …}."""
    known = {name: metrics.get(name) for name in share_names(metrics)}
    return {name: value for name, value in known.items() if isinstance(value, (int, float))}


def share_names(metrics: t.Iterable[str]) -> list[str]:
    """within_1ms_pct … of whichever direction, the shortest time first, at most MOST_SHARES."""
    found = {match.group(1) for match in (_SHARE.fullmatch(name) for name in metrics) if match}
    return sorted(found, key=_limit_us)[:MOST_SHARES]


def share_label(name: str) -> str:
    """I/O ≤ 1 ms (%)"""
    limit_us = _limit_us(name)
    return f"I/O ≤ {limit_us} µs (%)" if limit_us % 1000 else f"I/O ≤ {limit_us // 1000} ms (%)"


def _limit_us(name: str) -> int:
    amount = name[len("within_") : -len("_pct")]
    return int(amount[:-2]) * (1000 if amount.endswith("ms") else 1)


def share_text(share_pct: t.Any) -> str:
    """99.855; what is not quite all or nothing never looks like it."""
    if not isinstance(share_pct, (int, float)):
        return "–"
    text = f"{share_pct:.3f}"
    if share_pct < 100 and text == "100.000":
        return "> 99.999"
    if share_pct > 0 and text == "0.000":
        return "< 0.001"
    return text.rstrip("0").rstrip(".")


def percentiles(metrics: Mapping) -> list[Mapping]:
    """[{direction, points: [[label, µs]]}] from metrics such as write_p99_9_latency_us; the maximum is last."""
    found: dict[str, list[tuple[float, str, float | int]]] = {}
    for name, value in metrics.items():
        match = _PERCENTILE.fullmatch(name)
        figure = significant(value)
        if match and figure:
            percent = match.group(2).replace("_", ".")
            found.setdefault(match.group(1) or "", []).append((float(percent), percent, figure))
    result: list[Mapping] = []
    for direction, points in sorted(found.items(), reverse=True):
        most = significant(metrics.get(f"{direction}_max_latency_us" if direction else "max_latency_us"))
        ordered = [[label, figure] for _percent, label, figure in sorted(points)]
        result.append({"direction": direction, "points": ordered + ([["max", most]] if most else [])})
    return result


def bars(sides: t.Mapping[str, t.Mapping[int, int]]) -> list[Mapping]:
    """[{direction, from_us, to_us, share_pct}] of a cell's histograms: the share of I/O in each bar, without empty
    bars.
    """
    drawn: list[Mapping] = []
    for direction, bins in sorted(sides.items()):
        counts: dict[int, int] = {}
        for value, count in sorted(bins.items()):
            place = histogram.bin_of(value) // BINS_A_BAR
            counts[place] = counts.get(place, 0) + count
        total = histogram.ios(bins)
        edges = [[_edge_ns(place * BINS_A_BAR), _edge_ns((place + 1) * BINS_A_BAR)] for place in counts]
        drawn.append(
            {
                "direction": direction,
                "from_us": [significant(low / 1000) for low, _high in edges],
                "to_us": [significant(high / 1000) for _low, high in edges],
                "share_pct": [significant(100 * count / total) for count in counts.values()],
            }
        )
    return drawn


def _edge_ns(number: int) -> int:
    """Return where a bin of fio's begins."""
    return histogram.lowest_of(histogram.value_of(min(number, histogram.MOST_BINS - 1)))


def table(metrics: Mapping) -> Mapping | None:
    """{labels, rows: [(direction, texts in µs, then shares)]} of a test's own cell; None without latencies."""
    percents, names = _percents([metrics]), share_names(metrics)
    rows = [
        (side, _row(metrics, side, percents) + [share_text(metrics.get(f"{side}_{name}")) for name in names])
        for side in _directions(metrics)
    ]
    return {"labels": _labels(percents) + [share_label(name) for name in names], "rows": rows} if rows else None


def by_cell(specs: t.Sequence[Mapping], measured: Measurement | None) -> Mapping | None:
    """{labels, rows: [(cell, direction, texts in µs)]} of all cells, in the test's order; None where fewer than two
    have percentiles.
    """
    order = {cell["id"]: position for position, cell in enumerate(specs)}
    told = [(entry["cell"], entry.get("metrics") or {}) for entry in (measured.averages if measured else [])]
    cells = [(cell, metrics) for cell, metrics in told if _percents([metrics])]
    if len(cells) < 2:
        return None
    cells.sort(key=lambda item: order.get(item[0].partition(".")[0], len(order)))
    percents = _percents(metrics for _cell, metrics in cells)
    rows = [
        (cell, side, [text.partition(":")[0] for text in _row(metrics, side, percents)])
        for cell, metrics in cells
        for side in _directions(metrics)
    ]
    return {"labels": _labels(percents), "rows": rows}


def _directions(metrics: Mapping) -> list[str]:
    return [side for side in DIRECTIONS if f"{side}_mean_latency_us" in metrics]


def _percents(all_metrics: t.Iterable[Mapping]) -> list[str]:
    """50, 99, 99_9 … of whichever direction, in order."""
    matches = [_PERCENTILE.fullmatch(name) for metrics in all_metrics for name in metrics]
    return sorted({match.group(2) for match in matches if match}, key=lambda name: float(name.replace("_", ".")))


def _labels(percents: t.Iterable[str]) -> list[str]:
    return ["mean", *(name.replace("_", ".") + " %" for name in percents), "max"]


def _row(metrics: Mapping, side: str, percents: t.Iterable[str]) -> list[str]:
    return [_text(metrics, f"{side}_{name}_latency_us") for name in ("mean", *(f"p{one}" for one in percents), "max")]


def _text(metrics: Mapping, name: str) -> str:
    """Return a latency; of a percentile that cannot be known, why."""
    short = histogram.too_few(name, metrics)
    if short:
        return f"too few: {short[0]:,} of {short[1]:,} I/Os"
    value = metrics.get(name)
    return units.rounded(value) if isinstance(value, (int, float)) else "–"
