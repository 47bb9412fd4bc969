# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The charts of a test as pictures, for a page without scripts: what chart_series.test_series gives, as SVG. Pure."""

from __future__ import annotations

import typing as t

from markupsafe import Markup

from . import matrixplots, svg

Record = dict[str, t.Any]


# Where a log axis begins: a bar from 0 ns has no logarithm.
_LEAST_US = 0.001


def plots(series: Record, limits: list[Record]) -> Record:
    """{curve, latency, percentiles, histogram, fill, convergence: SVG, windows: [SVG]}, "" where nothing can be drawn.

    limits: of the test's criteria, in the units of its axes (drive_view.drive).
    """
    along, x_title = (
        (series["multiples"], "Written, multiples of the capacity")
        if series["saturating"] and series["multiples"]
        else (series["rounds"], "Round")
    )
    return {
        "curve": _curve(series["curves"], limits, along, x_title),
        "windows": [_window(window) for window in series["windows"]],
        "percentiles": _percentiles(series["percentiles"]),
        "histogram": _histogram(series["histogram"]),
        "latency": _latency(series["latency"], along, x_title),
        "fill": _fill(series["fill"]),
        "convergence": _convergence(series["convergence"], series["rounds"]),
    }


def _curve(curves: list[Record], limits: list[Record], along: list[float], x_title: str) -> Markup:
    if not curves:
        return Markup("")
    first = curves[0]
    drawn = [
        svg.Line(_points(along, curve["values"]), curve["label"], f"c{number % 4}")
        for number, curve in enumerate(curves)
    ]
    held = [
        (limit[end], f"{word} {limit[end]:,.6g}")
        for limit in limits
        for end, word in (("min", "at least"), ("max", "at most"))
        if limit[end] is not None and limit["metric"] == first["metric"]
    ]
    return svg.lines(drawn, x_title, _title(first), held, f"{first['metric']} over the test")


def _title(of: Record) -> str:
    name = of["metric"].replace("_", " ")
    return f"{name} ({of['unit']})" if of["unit"] else name


def _window(window: Record) -> Markup:
    """Return the values of the rounds that decided, their average, the fitted line, and the band of the range."""
    rounds, average, slope = window["rounds"], window["average"], window["slope"]
    drawn = [svg.Line(_points(rounds, window["values"]), window["metric"], "c0")]
    band: list[tuple[float, str]] = []
    ends = [rounds[0], rounds[-1]]
    if average is not None:
        half = (0.2 if window["range_limit"] is None else window["range_limit"]) / 2
        band = [(average * (1 + side * half), f"{100 * side * half:+g} %".replace("-", "−")) for side in (1, -1)]
        drawn.append(svg.Line(_points(ends, [average, average]), "average", "c1"))
    if average is not None and slope is not None:
        rise = slope * (len(rounds) - 1) / 2
        drawn.append(svg.Line(_points(ends, [average - rise, average + rise]), "fitted line", "c2"))
    known = [y for line in drawn for _x, y in line.points] + [y for y, _text in band]
    low = min(known, default=0) - 0.2 * (max(known, default=0) - min(known, default=0))
    about = f"{window['metric']} in the window; the figures are in the table below"
    return svg.lines(drawn, "Round", _title(window), band, about, named=True, y_low=low)


def _percentiles(sides: list[Record]) -> Markup:
    labels = list(dict.fromkeys(label for side in sides for label, _us in side["points"]))
    labels.sort(key=lambda label: float("inf") if label == "max" else float(label))
    found = [dict(side["points"]) for side in sides]
    values = [[known.get(label) for known in found] for label in labels]
    grid = matrixplots.Grid(labels[::-1], [side["direction"] for side in sides], values[::-1], "Latency (µs)")
    return matrixplots.over(grid, "Percentile (%)", "latency percentiles; the figures are in the table below")


def _histogram(sides: list[Record]) -> Markup:
    drawn = {
        side["direction"]: [
            (max(low, _LEAST_US), max(high, 2 * _LEAST_US), share)
            for low, high, share in zip(side["from_us"], side["to_us"], side["share_pct"])
            if low is not None and high is not None and share
        ]
        for side in sides
    }
    return svg.steps(drawn, "Latency (µs), log", "Share of I/O (%), log", "share of I/O by latency")


def _latency(latency: Record | None, along: list[float], x_title: str) -> Markup:
    named = [("mean_latency_us", "mean"), ("p99_9_latency_us", "99.9 %"), ("max_latency_us", "maximum")]
    drawn = [
        svg.Line(_points(along, (latency or {}).get(name) or []), label, f"c{number}")
        for number, (name, label) in enumerate(named)
    ]
    return svg.lines(drawn, x_title, "Latency (µs)", about="mean, 99.9 % and maximum latency over the test")


def _fill(fill: Record | None) -> Markup:
    lines = [svg.Line(_points(fill["written_gb"], fill["values"]), "bandwidth", "c0")] if fill else []
    return svg.lines(lines, "Written (GB)", "Bandwidth (MB/s)", about="bandwidth of the fill over what was written")


def _convergence(convergence: Record | None, rounds: list[float]) -> Markup:
    drawn = [
        svg.Line(_points(rounds, line["values"]), line["label"], f"c{number % 4}")
        for number, line in enumerate(convergence["lines"] if convergence else ())
    ]
    return svg.lines(drawn, "Round", "IOPS", about="IOPS of every block size over the rounds")


def _points(xs: t.Sequence[t.Any], ys: t.Sequence[t.Any]) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in zip(xs, ys) if x is not None and y is not None]
