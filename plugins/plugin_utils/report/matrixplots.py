# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Block sizes by R/W mixes as the PTS reports them: a 2-D plot (a line for each mix) and a 3-D plot (a bar for each
cell), both on a log scale. SVG, so that paper and a page without scripts have them too. Pure.
"""

from __future__ import annotations

import math
import typing as t

from markupsafe import Markup, escape

from ..common import units

# Beyond the PTS' 56 a picture of bars says nothing; the table has them all.
MOST_BARS = 100
COLORS = 8
_WIDTH = 720
_FLAT_HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 280, 70, 16, 30, 40
# The floor of the 3-D plot: half its diagonals, where its back corner is, and the height of the highest bar.
_HALF_WIDTH, _HALF_DEPTH, _BACK_X, _BACK_Y, _HIGH = 250.0, 105.0, 360.0, 200.0, 170.0
_BAR = 0.72
_LOW_COLOR, _HIGH_COLOR = (0, 114, 178), (240, 200, 70)
_SHADES = (1.0, 0.82, 0.64)
_MOST_TICKS = 6
# No drive's rate or latency, in any unit that is drawn, lies beyond.
_LEAST, _MOST = 1e-9, 1e18

Values = t.Sequence[t.Sequence[float | None]]
Point = tuple[float, float]


class Grid(t.NamedTuple):
    """A figure by block size and R/W mix. sizes, mixes: labels of the rows and columns of `values`; what is not above 0
    is not drawn. title: what it is a figure of, with its unit.
    """

    sizes: t.Sequence[str]
    mixes: t.Sequence[str]
    values: Values
    title: str


def both(grid: Grid) -> dict[str, Markup]:
    """{flat, solid}: the 2-D and the 3-D plot; {} where there is nothing to draw, or too much."""
    known = [value for row in grid.values for value in row if value and value > 0]
    if not known or len(grid.sizes) * len(grid.mixes) > MOST_BARS:
        return {}
    scale = _Scale(min(known), max(known))
    flat = _flat(grid, scale, "Block size", f"{grid.title} over the block size, a line for each R/W mix")
    return {"flat": flat, "solid": _solid(_turned(grid), scale)}


def over(grid: Grid, x_title: str, about: str) -> Markup:
    """Return a 2-D plot of other rows and columns: a line for each column over the rows, the last on the left; "" where
    there is nothing to draw.
    """
    known = [value for row in grid.values for value in row if value and value > 0]
    return _flat(grid, _Scale(min(known), max(known)), x_title, about) if known else Markup("")


class _Scale:
    """A log scale from the power of ten below all values to just above them."""

    def __init__(self, low: float, high: float) -> None:
        self.low = math.floor(_log(low) - 0.05)
        self.high = max(_log(high) + 0.02, self.low + 0.5)
        step = max(1, math.ceil((self.high - self.low) / _MOST_TICKS))
        self.ticks = [10.0**power for power in range(self.low, math.floor(self.high) + 1, step)]

    def share(self, value: float) -> float:
        """Return where a value lies, from 0 to 1."""
        return (_log(value) - self.low) / (self.high - self.low)


def _log(value: float) -> float:
    """A host may send any figure: one that no drive has is drawn at the edge."""
    return math.log10(min(max(value, _LEAST), _MOST))


def _flat(grid: Grid, scale: _Scale, x_title: str, about: str) -> Markup:
    """Return a line for each mix over the block sizes, the smallest on the left."""
    sizes, rows = grid.sizes[::-1], grid.values[::-1]
    step = (_WIDTH - _LEFT - _RIGHT) / len(sizes)

    def up(value: float) -> float:
        return _FLAT_HEIGHT - _BOTTOM - scale.share(value) * (_FLAT_HEIGHT - _BOTTOM - _TOP)

    parts = []
    for tick in scale.ticks:
        parts.append(
            f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{up(tick):.1f}" y2="{up(tick):.1f}"/>'
            f'<text x="{_LEFT - 6}" y="{up(tick) + 4:.1f}" text-anchor="end">{units.rounded(tick)}</text>'
        )
    xs = [_LEFT + (place + 0.5) * step for place in range(len(sizes))]
    parts += [_text(x, _FLAT_HEIGHT - _BOTTOM + 16, label, "middle") for x, label in zip(xs, sizes)]
    parts.append(_text((_LEFT + _WIDTH - _RIGHT) / 2, _FLAT_HEIGHT - 6, x_title, "middle", "title"))
    parts.append(_upright((_FLAT_HEIGHT - _BOTTOM + _TOP) / 2, f"{grid.title}, log"))
    across = float(_LEFT + 12)
    for column, mix in enumerate(grid.mixes):
        css = f"c{column % COLORS}"
        points = [(x, up(row[column] or 0), label) for x, row, label in zip(xs, rows, sizes) if (row[column] or 0) > 0]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y, _label in points)
        parts.append(f'<polyline class="{css}" points="{path}"><title>{escape(mix)}</title></polyline>')
        parts += [
            f'<circle class="{css}" cx="{x:.1f}" cy="{y:.1f}" r="3.5"><title>{escape(f"{label}, {mix}")}</title>'
            "</circle>"
            for x, y, label in points
        ]
        parts.append(f'<circle class="{css}" cx="{across:.1f}" cy="14" r="3.5"/>')
        parts.append(_text(across + 8, 18, mix, "start"))
        across += 30 + 7 * len(mix)
    return _svg(_FLAT_HEIGHT, about, parts)


def _turned(grid: Grid) -> Grid:
    """Rows and columns in the order in which low bars stand in front of high ones."""
    sizes, mixes, values = list(grid.sizes), list(grid.mixes), [list(row) for row in grid.values]
    if _mean(values[0]) < _mean(values[-1]):
        sizes, values = sizes[::-1], values[::-1]
    if _mean([row[0] for row in values]) < _mean([row[-1] for row in values]):
        mixes, values = mixes[::-1], [row[::-1] for row in values]
    return grid._replace(sizes=sizes, mixes=mixes, values=values)


def _mean(values: t.Sequence[float | None]) -> float:
    known = [math.log10(value) for value in values if value and value > 0]
    return sum(known) / len(known) if known else -math.inf


def _solid(grid: Grid, scale: _Scale) -> Markup:
    """Return a bar for each cell: mixes from the back to the right, block sizes from the back to the left."""
    rows, columns = len(grid.sizes), len(grid.mixes)

    def place(column: float, row: float, high: float = 0.0) -> Point:
        right, left = column / columns, row / rows
        return (
            _BACK_X + (right - left) * _HALF_WIDTH,
            _BACK_Y + (right + left) * _HALF_DEPTH - high * _HIGH,
        )

    parts = []
    for tick in scale.ticks:
        wall = [place(0, rows, scale.share(tick)), place(0, 0, scale.share(tick)), place(columns, 0, scale.share(tick))]
        parts.append(f'<path class="wall" d="M{_joined(wall)}"/>')
        parts.append(_text(wall[0][0] - 6, wall[0][1] + 4, units.rounded(tick), "end"))
    floor = [place(0, 0), place(columns, 0), place(columns, rows), place(0, rows)]
    parts.append(f'<path class="wall" d="M{_joined(floor)}z"/>')
    # From the back to the front: what is nearer covers what is behind it.
    for column, row in sorted(((c, r) for c in range(columns) for r in range(rows)), key=sum):
        value = grid.values[row][column]
        if value and value > 0:
            about = f"{grid.sizes[row]}, {grid.mixes[column]}: {units.rounded(value)}"
            parts.append(_bar(place, column, row, scale.share(value), about))
    for column, mix in enumerate(grid.mixes):
        x, y = place(column + 0.5, rows)
        parts.append(_text(x - 6, y + 14, mix, "end"))
    for row, size in enumerate(grid.sizes):
        x, y = place(columns, row + 0.5)
        parts.append(_text(x + 6, y + 14, size, "start"))
    parts.append(_text(*_moved(place(columns / 2, rows), -90, 34), "R/W", "middle", "title"))
    parts.append(_text(*_moved(place(columns, rows / 2), 100, 34), "Block size", "middle", "title"))
    parts.append(_upright(_BACK_Y + _HALF_DEPTH - _HIGH / 2, f"{grid.title}, log"))
    height = int(_BACK_Y + 2 * _HALF_DEPTH + 30)
    return _svg(
        height, f"{grid.title} by block size and R/W mix in three dimensions; the figures are in the table", parts
    )


def _bar(place: t.Callable[[float, float, float], Point], column: int, row: int, high: float, about: str) -> str:
    """Return its three faces that are seen: on top, to the left, to the right."""
    edge = (1 - _BAR) / 2
    near, far = (column + edge, row + edge), (column + 1 - edge, row + 1 - edge)
    right, front, left = (far[0], near[1]), far, (near[0], far[1])
    faces = (
        [place(*corner, high) for corner in (near, right, front, left)],
        [place(*left, high), place(*front, high), place(*front, 0.0), place(*left, 0.0)],
        [place(*front, high), place(*right, high), place(*right, 0.0), place(*front, 0.0)],
    )
    drawn = "".join(
        f'<path fill="{_color(high, shade)}" d="M{_joined(face)}z"/>' for face, shade in zip(faces, _SHADES)
    )
    return f'<g class="solid">{drawn}<title>{escape(about)}</title></g>'


def _color(share: float, shade: float) -> str:
    mixed = (low + (high - low) * min(1.0, max(0.0, share)) for low, high in zip(_LOW_COLOR, _HIGH_COLOR))
    return "#" + "".join(f"{round(part * shade):02x}" for part in mixed)


def _joined(points: t.Iterable[Point]) -> str:
    return "L".join(f"{x:.1f} {y:.1f}" for x, y in points)


def _moved(point: Point, x: float, y: float) -> Point:
    return point[0] + x, point[1] + y


def _text(x: float, y: float, text: str, anchor: str, css: str = "") -> str:
    kind = f' class="{css}"' if css else ""
    return f'<text{kind} x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _upright(y: float, text: str) -> str:
    turned = f'transform="translate(12 {y:.0f}) rotate(-90)"'
    return f'<text class="title" {turned} text-anchor="middle">{escape(text)}</text>'


def _svg(height: int, about: str, parts: t.Sequence[str]) -> Markup:
    head = f'<svg class="lines" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}" role="img"'
    return Markup(f'{head} aria-label="{escape(about)}">{"".join(parts)}</svg>')
