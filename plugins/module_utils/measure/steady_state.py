# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Steady state after the SNIA PTS: range and slope of the tracked variable over the last rounds. A margin around the
average besides, where one is asked for (Micron TN-FD-15, Steady State).

Decided with exact numbers made from the decimal text of each value, since both limits are inclusive and
binary floats fall off the boundary. Floats are for display only.
"""

from __future__ import annotations

import math
import re
import typing as t
from decimal import Decimal
from fractions import Fraction

WINDOW = 5
RANGE_LIMIT = 0.20
SLOPE_LIMIT = 0.10

_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,6})?")
_NOT_FINITE = re.compile(r"[+-]?(nan|inf|infinity)", re.IGNORECASE)
_MOST_DIGITS = 400  # every float fits; a text such as 1e999999 must not become a number of a million digits


class _Window(t.NamedTuple):
    """Sums of one window of n values y in units of 1/scale; `twisted` is the sum of (2i - (n - 1)) * y over i = 0 …
    n-1, `farthest` the largest distance of n * y from `total`.
    """

    total: int
    twisted: int
    spread: int
    farthest: int
    size: int
    scale: int

    def average(self) -> Fraction:
        return Fraction(self.total, self.size * self.scale)

    def range_ratio(self) -> Fraction:
        return Fraction(self.size * self.spread, self.total)

    def margin_ratio(self) -> Fraction:
        """How far the value farthest from the average is from it, as a part of the average."""
        return Fraction(self.farthest, self.total)

    def slope(self) -> Fraction:
        """Of the least-squares line, per round; the sum of squared distances from the middle round is n(n² - 1)/12."""
        return Fraction(6 * self.twisted, self.size * (self.size * self.size - 1) * self.scale)

    def slope_ratio(self) -> Fraction:
        """How far the line rises or falls across the window, as a part of the average."""
        return Fraction(6 * abs(self.twisted), (self.size + 1) * self.total)


class _Limits(t.NamedTuple):
    """Each as a part of the average; no margin: None."""

    range: Fraction
    slope: Fraction
    margin: Fraction | None


def evaluate(
    values: t.Sequence[t.Any],
    window: int = WINDOW,
    range_limit: t.Any = RANGE_LIMIT,
    slope_limit: t.Any = SLOPE_LIMIT,
    margin: t.Any = None,
) -> dict[str, t.Any]:
    """Say whether and when the rounds reached steady state.

    `values`: one a round, oldest first; int, float, Decimal or a numeric text. Returns `steady`, `rounds` (the first
    round at which the window that ends there is steady, else the number given), and of that window (else of the last
    one): `window_values`, `average`, `range_ratio`, `slope` (per round), `slope_ratio`; and `reasons` why it is not
    steady. With a `margin` no value of the window may be farther from its average than this part of it. A figure that
    does not exist is None, so is a value that is NaN or infinite. Raises ValueError for what is no number.
    """
    exact = _exact_values(values)
    window = _whole_number("window", window)
    around = None if margin is None else _limit("margin", margin)
    limits = _Limits(_limit("range_limit", range_limit), _limit("slope_limit", slope_limit), around)
    found = _first_steady(exact, window, limits)
    rounds = found or len(exact)
    last = exact[max(0, rounds - window) : rounds]
    reasons = [] if found else _reasons(last, window, limits)
    return dict(
        {"steady": bool(found), "rounds": rounds, "window_values": [_display(value) for value in last]},
        **_figures(last),
        reasons=reasons,
    )


def by_rule(values: t.Sequence[t.Any], rule: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """`evaluate` by a test's steady_state."""
    return evaluate(values, rule["window"], rule["range_limit"], rule["slope_limit"], rule.get("margin"))


def _first_steady(exact: list[Fraction | None], window: int, limits: _Limits) -> int | None:
    scale = _common_denominator(exact)
    for end in range(window, len(exact) + 1):
        part = _finite(exact[end - window : end])
        if len(part) == window and _is_steady(_measure(part, scale), limits):
            return end
    return None


def _finite(part: list[Fraction | None]) -> list[Fraction]:
    return [value for value in part if value is not None]


def _is_steady(measured: _Window, limits: _Limits) -> bool:
    if measured.total <= 0:
        return False
    # The ratios multiplied out: no division, integers only.
    ratios = (
        (measured.size * measured.spread, 1, limits.range),
        (6 * abs(measured.twisted), measured.size + 1, limits.slope),
        (measured.farthest, 1, limits.margin),
    )
    return all(
        limit is None or above * limit.denominator <= limit.numerator * below * measured.total
        for above, below, limit in ratios
    )


def _measure(part: t.Sequence[Fraction], scale: int) -> _Window:
    size = len(part)
    whole = [value.numerator * (scale // value.denominator) for value in part]
    twisted = sum((2 * index - size + 1) * value for index, value in enumerate(whole))
    total = sum(whole)
    farthest = max(abs(size * value - total) for value in whole)
    return _Window(total, twisted, max(whole) - min(whole), farthest, size, scale)


def _figures(part: list[Fraction | None]) -> dict[str, float | None]:
    figures: dict[str, float | None] = {"average": None, "range_ratio": None, "slope": None, "slope_ratio": None}
    finite = _finite(part)
    if not finite or len(finite) < len(part):
        return figures
    measured = _measure(finite, _common_denominator(finite))
    figures["average"] = _display(measured.average())
    if measured.size > 1:
        figures["slope"] = _display(measured.slope())
    if measured.size > 1 and measured.total > 0:
        figures["range_ratio"] = _display(measured.range_ratio())
        figures["slope_ratio"] = _display(measured.slope_ratio())
    return figures


def _reasons(part: list[Fraction | None], window: int, limits: _Limits) -> list[str]:
    reasons = []
    if len(part) < window:
        reasons.append(f"{len(part)} of the {window} rounds that the window needs")
    finite = _finite(part)
    if len(finite) < len(part):
        reasons.append("a value in the window is NaN or infinite")
    if reasons:
        return reasons
    measured = _measure(finite, _common_denominator(finite))
    if measured.total <= 0:
        return [f"the average of the window is {_digits(measured.average(), 6)}, not above zero"]
    for what, ratio, limit in (
        ("the range of the window is", measured.range_ratio(), limits.range),
        ("the fitted line moves across the window by", measured.slope_ratio(), limits.slope),
        ("a value is off the window's average by", measured.margin_ratio(), limits.margin),
    ):
        if limit is not None and ratio > limit:
            reasons.append(f"{what} {_above(ratio, limit)}")
    return reasons


def _above(ratio: Fraction, limit: Fraction) -> str:
    """`23.4 % of its average, limit 20 %`, with as many digits as it takes to see the difference."""
    for digits in (3, 6, 12, 17):
        shown, allowed = _digits(100 * ratio, digits), _digits(100 * limit, digits)
        if shown != allowed:
            return f"{shown} % of its average, limit {allowed} %"
    return f"just above {_digits(100 * limit, 6)} % of its average, the limit"


def _digits(number: Fraction, digits: int) -> str:
    shown = _display(number)
    return "beyond 1e308" if shown is None else f"{shown:.{digits}g}"


def _exact_values(values: t.Sequence[t.Any]) -> list[Fraction | None]:
    if isinstance(values, (str, bytes)) or not isinstance(values, t.Sequence):
        raise ValueError(f"values must be a list of numbers, not {values!r}")
    return [_exact(f"values[{index}]", value) for index, value in enumerate(values)]


def _exact(name: str, value: t.Any) -> Fraction | None:
    """The number exactly as its decimal text says it; None for NaN and infinity. Raises ValueError, naming it."""
    text = _decimal_text(value)
    if text is not None and _NOT_FINITE.fullmatch(text):
        return None
    if text is None or _NUMBER.fullmatch(text) is None:
        raise ValueError(f"{name} is not a number: {value!r}")
    digits, _mark, exponent = text.lower().partition("e")
    if max(abs(int(exponent or 0)), len(digits)) > _MOST_DIGITS:
        raise ValueError(f"{name} is out of range: {text:.40}")
    return Fraction(text)


def _decimal_text(value: t.Any) -> str | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, float):
        return float.__repr__(value)
    if isinstance(value, (int, Decimal, str)):
        return str(value).strip()
    return None


def _limit(name: str, value: t.Any) -> Fraction:
    exact = _exact(name, value)
    if exact is None or exact < 0:
        raise ValueError(f"{name} must be zero or more, as a part of the average (0.2 is 20 %), not {value!r}")
    return exact


def _whole_number(name: str, value: t.Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 2:
        raise ValueError(f"{name} must be a whole number of rounds, 2 or more, not {value!r}")
    return value


def _common_denominator(part: t.Sequence[Fraction | None]) -> int:
    common = 1
    for value in part:
        if value is not None:
            common = common // math.gcd(common, value.denominator) * value.denominator
    return common


def _display(value: Fraction | None) -> float | None:
    """A float for people and JSON; None for what a float cannot hold."""
    try:
        return None if value is None else float(value)
    except OverflowError:
        return None
