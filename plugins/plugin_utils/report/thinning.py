# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Curves for the report: phases of a write-saturation curve, thinning, medians. Pure, for display only: no verdict."""

from __future__ import annotations

import bisect
import math
import statistics
import typing as t

Values = t.Sequence[float | None]
# No drive's rate or latency, in any unit that is drawn, is as large; infinity and NaN are not below it either.
MOST = 1e18


def significant(value: t.Any, digits: int = 5) -> float | int | None:
    """Return a figure short enough for a page that carries many; what is no number that a drive can have is None (a
    gap in the curve).
    """
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) < MOST:
        return None
    if value == 0:
        return 0
    short = round(value, digits - 1 - math.floor(math.log10(abs(value))))
    return int(short) if short == int(short) else short


def _value(point: tuple[float, int]) -> float:
    return point[0]


def thin(xs: Values, ys: Values, most: int) -> tuple[list[float | None], list[float | None]]:
    """At most `most` points that keep each stretch's lowest and highest value, so that dips stay visible."""
    if len(ys) <= most:
        return list(xs), list(ys)
    buckets = max(1, most // 2)
    kept: list[int] = []
    for bucket in range(buckets):
        begin, end = bucket * len(ys) // buckets, (bucket + 1) * len(ys) // buckets
        part = [(y, i) for i, y in enumerate(ys[begin:end], begin) if y is not None]
        if part:
            kept += sorted({min(part, key=_value)[1], max(part, key=_value)[1]})
    return [xs[i] for i in kept], [ys[i] for i in kept]


def phases(values: Values, window: t.Sequence[int]) -> dict[str, int] | None:
    """Return where a curve from a fresh drive leaves its fresh level, reaches the steady one, and has its steady
    window: indexes into `values`.

    `window`: indexes of the steady window. Returns {fresh_end, level_start, window_start, window_end}. fresh_end is 0
      when
    the curve shows no fresh level that is clearly (20 %) above the steady one; from level_start on, up to the window,
    every value lies within 10 % of the window's average. None when the window is unknown.
    """
    known = [value for value in values if value is not None]
    if not window or not known or window[-1] >= len(values):
        return None
    steady = statistics.fmean(values[i] or 0.0 for i in window)
    level = statistics.median([value for value in values[:3] if value is not None] or [0.0])
    fresh_end = 0
    if level > 1.2 * steady:
        # Two rounds in a row below: a single dip is noise.
        threshold = level - 0.15 * (level - steady)
        below = [value is not None and value < threshold for value in values]
        fresh_end = next((i for i in range(1, len(below)) if below[i] and (i + 1 == len(below) or below[i + 1])), 0)
    level_start = window[0]
    while level_start > fresh_end and abs((values[level_start - 1] or 0.0) - steady) <= 0.1 * steady:
        level_start -= 1
    return {
        "fresh_end": min(fresh_end, window[0]),
        "level_start": level_start,
        "window_start": window[0],
        "window_end": window[-1],
    }


def medians_without(
    curves: t.Sequence[tuple[Values, Values, Values]], most: int
) -> list[tuple[list[int], list[list[float | None]]]]:
    """For each of several curves the median of the others, as long as at least half of all go on, at most about `most`
    points.

    A curve: three series of one length. Returns for each (indexes, [the median of each of the three series there]).
    """
    lengths = sorted((len(curve[2]) for curve in curves), reverse=True)
    length = lengths[(len(lengths) - 1) // 2] if lengths else 0
    indexes = list(range(0, length, max(1, length // most)))
    found: list[list[list[float | None]]] = [[[], [], []] for _curve in curves]
    for index in indexes:
        for series in range(3):
            values = [curve[series][index] if index < len(curve[series]) else None for curve in curves]
            ordered = sorted(value for value in values if value is not None)
            for own, value in enumerate(values):
                found[own][series].append(median_without(ordered, value))
    return [(indexes, columns) for columns in found]


def median_without(ordered: t.Sequence[float], value: float | None) -> float | None:
    """Return the median of sorted numbers, one of them left out: `value`, or none where it is None. None where nothing
    is left.
    """
    count = len(ordered) - (value is not None)
    if count < 1:
        return None
    place = len(ordered) if value is None else bisect.bisect_left(ordered, value)
    low, high = (ordered[middle + (middle >= place)] for middle in ((count - 1) // 2, count // 2))
    return (low + high) / 2


def log_share(value: float, low: float, high: float) -> float:
    """Return where a positive value lies between two others on a log scale: 0 at `low`, 1 at `high`."""
    return (math.log(value) - math.log(low)) / (math.log(high) - math.log(low)) if high > low else 0.5
