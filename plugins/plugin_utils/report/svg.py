# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Small pictures in a line of text or a cell of a table, as SVG: sparklines, and a distribution in a strip. Pure; every
text is escaped here. Charts are data that templates/charts.js.j2 draws.
"""

from __future__ import annotations

import math
import typing as t

from markupsafe import Markup

from .thinning import Values, thin

_STRIP_WIDTH, _STRIP_HEIGHT, STRIP_BINS = 240, 34, 40


def sparkline(
    xs: Values, ys: Values, x_most: float, y_most: float, width: int = 120, most: int = 60, digits: int = 1
) -> str:
    """Return the points of an SVG polyline of 28 px, at most `most` of them, from 0 to the given maxima; "" when there
    is nothing to draw.
    """
    xs, ys = thin(xs, ys, most)
    points = [(x, y) for x, y in zip(xs, ys) if x is not None and y is not None]
    if len(points) < 2 or x_most <= 0 or y_most <= 0:
        return ""
    return " ".join(f"{x / x_most * width:.{digits}f},{1 + 26 * (1 - y / y_most):.{digits}f}" for x, y in points)


def strip(counts: t.Sequence[int], middle: float | None, marks: t.Sequence[tuple[float, str]], about: str) -> Markup:
    """Return how many drives, or blocks of one, lie where: counts of equal bins, the median's place and marks (place,
    text), places from 0 to 1 along the strip.
    """
    most = max(counts, default=0) or 1
    floor, wide = _STRIP_HEIGHT - 8, _STRIP_WIDTH / max(len(counts), 1)
    # Roots: one drive apart from ten thousand is still seen.
    bars = "".join(
        f"M{index * wide:.1f} {floor}v-{math.sqrt(count / most) * (floor - 1):.1f}h{wide - 0.6:.1f}V{floor}z"
        for index, count in enumerate(counts)
        if count
    )
    parts = [
        Markup('<path class="bars" d="{}"/><line class="grid" x1="0" x2="{}" y1="{y}" y2="{y}"/>').format(
            bars, _STRIP_WIDTH, y=floor
        )
    ]
    if middle is not None:
        parts.append(
            Markup('<line class="median" x1="{x}" x2="{x}" y1="0" y2="{}"/>').format(
                floor + 3, x=f"{middle * _STRIP_WIDTH:.1f}"
            )
        )
    for place, text in marks:
        x = f"{4 + place * (_STRIP_WIDTH - 8):.1f}"
        parts.append(
            Markup('<circle class="outlier" cx="{}" cy="{}" r="4"><title>{}</title></circle>').format(x, floor, text)
        )
    shape = '<svg class="strip" viewBox="0 0 {0} {1}" width="{0}" height="{1}" role="img" aria-label="{2}">{3}</svg>'
    return Markup(shape).format(_STRIP_WIDTH, _STRIP_HEIGHT, about, Markup("").join(parts))
