# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Small charts as SVG, for pages that do without a script: lines with axes, bars, a distribution in a strip. Pure;
every text is escaped here.
"""

from __future__ import annotations

import math
import typing as t

from markupsafe import Markup

from ..common import units

Mapping = t.Mapping[str, t.Any]
Points = t.Sequence[tuple[float, float]]

WIDTH, HEIGHT = 720, 240
_LEFT, _RIGHT, _TOP, _BOTTOM = 70, 16, 12, 40
_STRIP_WIDTH, _STRIP_HEIGHT, STRIP_BINS = 240, 34, 40


class Line(t.NamedTuple):
    """A curve: its points (x, y), what it is called, the classes that style it, and where it leads to ("": nowhere)."""

    points: Points
    label: str
    css: str = ""
    href: str = ""


def lines(
    drawn: t.Sequence[Line],
    x_title: str,
    y_title: str,
    limits: t.Sequence[tuple[float, str]] = (),
    about: str = "",
    named: bool = False,
    y_low: float = 0,
) -> Markup:
    """Curves over one pair of axes; "" where there is nothing to draw. limits: (y, text) of horizontal lines. about:
    for who cannot see it. named: each point is a dot and each curve has its label above. y_low: below all of it.
    """
    given = [line for line in drawn if line.points]
    if not given:
        return Markup("")
    xs = [x for line in given for x, _y in line.points]
    ys = [y for line in given for _x, y in line.points] + [limit for limit, _text in limits]
    x_low, x_ticks = min(xs), _ticks(min(xs), max(xs), 8)
    if all(float(x).is_integer() for x in xs):
        x_ticks = [x for x in x_ticks if abs(x - round(x)) < 1e-9]  # rounds and runs are counted
    y_ticks = _ticks(y_low, max(ys) * 1.05 or 1, 5)
    x_high, y_high = max(*xs, x_low + 1e-9), max(y_ticks[-1], max(ys) * 1.05)

    def across(x: float) -> float:
        return _LEFT + (x - x_low) / (x_high - x_low) * (WIDTH - _LEFT - _RIGHT)

    def up(y: float) -> float:
        return HEIGHT - _BOTTOM - (y - y_low) / (y_high - y_low) * (HEIGHT - _BOTTOM - _TOP)

    parts = [_axes(across, up, [x for x in x_ticks if x_low <= x <= x_high], y_ticks, x_title, y_title)]
    for line in given:
        path = " ".join(f"{across(x):.1f},{up(y):.1f}" for x, y in line.points)
        shape = Markup('<polyline class="{}" points="{}"><title>{}</title></polyline>').format(
            line.css, path, line.label
        )
        parts.append(Markup('<a href="{}">{}</a>').format(line.href, shape) if line.href else shape)
        parts += [_dot(line.css, across(x), up(y), line.label) for x, y in line.points] if named else []
    parts += _labels(given) if named else []
    for limit, text in limits:
        at = f"{up(limit):.1f}"
        parts.append(
            Markup('<line class="limit" x1="{}" x2="{}" y1="{}" y2="{}"/>').format(_LEFT, WIDTH - _RIGHT, at, at)
        )
        parts.append(
            Markup('<text class="limit" x="{}" y="{:.1f}" text-anchor="end">{}</text>').format(
                WIDTH - _RIGHT, up(limit) - 4, text
            )
        )
    return _svg("lines", WIDTH, HEIGHT, about, Markup("").join(parts))


def _dot(css: str, x: float, y: float, text: str) -> Markup:
    shape = '<circle class="{}" cx="{:.1f}" cy="{:.1f}" r="3.5"><title>{}</title></circle>'
    return Markup(shape).format(css, x, y, text)


def _labels(drawn: t.Sequence[Line]) -> list[Markup]:
    """Return the names of curves in a row from the left, where curves that rise to the right leave room."""
    parts, x = [], float(_LEFT + 12)
    for line in drawn:
        parts.append(_dot(line.css, x, _TOP + 6, line.label))
        parts.append(Markup('<text x="{:.1f}" y="{}">{}</text>').format(x + 8, _TOP + 10, line.label))
        x += 26 + 6.6 * len(line.label)
    return parts


def bars(drawn: t.Sequence[tuple[str, float]], x_title: str, y_title: str, about: str = "") -> Markup:
    """Return a bar for each (label, value), up or down from 0, with its value; "" where there is nothing to draw."""
    if not drawn:
        return Markup("")
    values = [value for _label, value in drawn]
    y_ticks = _ticks(min(0, *values) * 1.15, max(0, *values) * 1.15 or 1, 5)
    low, high = y_ticks[0] if min(values) < 0 else 0, y_ticks[-1]
    # Below the lowest bar there is room for its figure.
    low = min(low, min(values) - 0.1 * (high - min(values))) if min(values) < 0 else low

    def up(y: float) -> float:
        return HEIGHT - _BOTTOM - (y - low) / ((high - low) or 1) * (HEIGHT - _BOTTOM - _TOP)

    parts = [_axes(float, up, [], y_ticks, x_title, y_title)]
    step = (WIDTH - _LEFT - _RIGHT) / len(drawn)
    for number, (label, value) in enumerate(drawn):
        middle, top, foot = _LEFT + (number + 0.5) * step, min(up(0), up(value)), max(up(0), up(value))
        wide = min(step * 0.6, 60)
        shape = '<rect class="c{}" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}"><title>{}</title></rect>'
        parts.append(Markup(shape).format(0, middle - wide / 2, top, wide, foot - top, label))
        where = top - 4 if value >= 0 else foot + 13
        text = '<text class="limit" x="{:.1f}" y="{:.1f}" text-anchor="middle">{}</text>'
        parts.append(Markup(text).format(middle, where, f"{value:+.1f}".replace("-", "\u2212")))
        parts.append(
            Markup('<text x="{:.1f}" y="{}" text-anchor="middle">{}</text>').format(
                middle, HEIGHT - _BOTTOM + 16, label
            )
        )
    return _svg("lines", WIDTH, HEIGHT, about, Markup("").join(parts))


def steps(
    drawn: t.Mapping[str, t.Sequence[tuple[float, float, float]]], x_title: str, y_title: str, about: str = ""
) -> Markup:
    """Bars (from x, to x, y) of each label over log axes, all above 0; "" where there is nothing to draw."""
    steps_ = [step for each in drawn.values() for step in each]
    if not steps_:
        return Markup("")
    lefts, rights, heights = zip(*steps_)
    x_low, x_high = math.log10(min(lefts)), math.log10(max(rights))
    y_low, y_high = math.log10(min(heights) * 0.6), math.log10(max(heights) * 4)

    def across(x: float) -> float:
        return _LEFT + (math.log10(x) - x_low) / ((x_high - x_low) or 1) * (WIDTH - _LEFT - _RIGHT)

    def up(y: float) -> float:
        return HEIGHT - _BOTTOM - (math.log10(y) - y_low) / (y_high - y_low) * (HEIGHT - _BOTTOM - _TOP)

    parts = [_axes(across, up, _log_ticks(x_low, x_high), _log_ticks(y_low, y_high), x_title, y_title)]
    shape = '<rect class="{}" fill-opacity=".6" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}"/>'
    for number, each in enumerate(drawn.values()):
        for left, right, y in each:
            wide, high = across(right) - across(left), HEIGHT - _BOTTOM - up(y)
            parts.append(Markup(shape).format(f"c{number}", across(left), up(y), wide, high))
    parts += _labels([Line((), label, f"c{number}") for number, label in enumerate(drawn)])
    return _svg("lines", WIDTH, HEIGHT, about, Markup("").join(parts))


def _axes(
    across: t.Callable[[float], float],
    up: t.Callable[[float], float],
    xs: list[float],
    ys: list[float],
    x_title: str,
    y_title: str,
) -> Markup:
    parts = []
    for y in ys:
        parts.append(
            Markup('<line class="grid" x1="{}" x2="{}" y1="{y}" y2="{y}"/>').format(
                _LEFT, WIDTH - _RIGHT, y=f"{up(y):.1f}"
            )
        )
        parts.append(
            Markup('<text x="{}" y="{:.1f}" text-anchor="end">{}</text>').format(_LEFT - 6, up(y) + 4, units.rounded(y))
        )
    for x in xs:
        parts.append(
            Markup('<text x="{:.1f}" y="{}" text-anchor="middle">{}</text>').format(
                across(x), HEIGHT - _BOTTOM + 16, units.rounded(x)
            )
        )
    parts.append(
        Markup('<text class="title" x="{}" y="{}" text-anchor="middle">{}</text>').format(
            (_LEFT + WIDTH - _RIGHT) // 2, HEIGHT - 6, x_title
        )
    )
    middle = (HEIGHT - _BOTTOM + _TOP) // 2
    parts.append(
        Markup('<text class="title" transform="translate(12 {}) rotate(-90)" text-anchor="middle">{}</text>').format(
            middle, y_title
        )
    )
    return Markup("").join(parts)


def strip(counts: t.Sequence[int], middle: float | None, marks: t.Sequence[tuple[float, str]], about: str) -> Markup:
    """Return how many drives lie where: counts of equal bins, the median's place and marks (place, text), places from 0
    to 1 along the strip.
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
    return _svg("strip", _STRIP_WIDTH, _STRIP_HEIGHT, about, Markup("").join(parts))


def _svg(css: str, width: int, height: int, about: str, inside: Markup) -> Markup:
    # A picture with links inside is a group of them; one without is an image.
    role = "group" if "<a " in inside else "img"
    shape = Markup('viewBox="0 0 {0} {1}" width="{0}" height="{1}"').format(width, height)
    head = Markup('<svg class="{}" {} role="{}" aria-label="{}">').format(css, shape, role, about)
    return head + inside + Markup("</svg>")


def _ticks(low: float, high: float, about: int) -> list[float]:
    """Round numbers from `low` to `high` or just above, at most about so many."""
    span = high - low
    if span <= 0 or not math.isfinite(span):
        return [low]
    power = 10 ** math.floor(math.log10(span / about))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= span / about)
    first = math.ceil(low / step - 1e-9)
    return [number * step for number in range(first, math.ceil(high / step - 1e-9) + 1)]


def _log_ticks(low: float, high: float) -> list[float]:
    """1, 2, 5, 10 … between two powers of ten; over many decades 1, 10, 100 …, or fewer of them."""
    powers = range(math.floor(low), math.floor(high) + 1)
    step = math.ceil(len(powers) / 8)
    found = [factor * 10.0**power for power in powers[::step] for factor in ((1, 2, 5) if len(powers) < 4 else (1,))]
    return [value for value in found if low <= math.log10(value) <= high]
