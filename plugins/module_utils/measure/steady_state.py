# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Steady state after the SNIA PTS: range and slope of the tracked variable over the last rounds. A margin around the
average besides, where one is asked for (Micron TN-FD-15, Steady State).
"""

from __future__ import annotations

import math
import re
import typing as t
from dataclasses import dataclass
from decimal import Decimal

from ..records.plan import SteadyStateRule

WINDOW = 5
RANGE_LIMIT = 0.20
SLOPE_LIMIT = 0.10
# All limits are inclusive, and binary floats fall off a boundary: 1.1 - 0.9 > 0.2.
TOLERANCE = 1e-9

_NOT_FINITE = r"nan|inf|infinity"
_NUMBER = re.compile(rf"[+-]?(([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?|{_NOT_FINITE})", re.IGNORECASE)


@dataclass(frozen=True)
class Evaluation:
    """Whether a series is steady. A figure that does not exist is None, so is a value that is NaN or infinite."""

    steady: bool
    # The first at which the window that ends there is steady, else the number given.
    rounds: int
    # Of that window, else of the last one, as all that follows.
    window_values: list[float | None]
    average: float | None
    # Largest less smallest value, as a part of the average.
    range_ratio: float | None
    # Per round.
    slope: float | None
    slope_ratio: float | None
    # Why it is not steady.
    reasons: list[str]


class _Window(t.NamedTuple):
    """What is tracked of one window, as parts of its average but for `average` and `slope`."""

    average: float
    slope: float
    range_ratio: float
    slope_ratio: float
    margin_ratio: float


class _Limits(t.NamedTuple):
    """Each as a part of the average; no margin: None."""

    range: float
    slope: float
    margin: float | None


def evaluate(
    values: t.Sequence[t.Any],
    window: int = WINDOW,
    range_limit: t.Any = RANGE_LIMIT,
    slope_limit: t.Any = SLOPE_LIMIT,
    margin: t.Any = None,
) -> Evaluation:
    """Say whether and when the rounds reached steady state.

    `values`: one a round, oldest first; int, float, Decimal or a numeric text. With a `margin` no value of the window
    may be farther from its average than this part of it. Raises ValueError for what is no number.
    """
    numbers = _numbers(values)
    window = _whole_number("window", window)
    around = None if margin is None else _limit("margin", margin)
    limits = _Limits(_limit("range_limit", range_limit), _limit("slope_limit", slope_limit), around)
    ends = range(window, len(numbers) + 1)
    found = next((end for end in ends if not _reasons(numbers[end - window : end], window, limits)), None)
    rounds = found or len(numbers)
    last = numbers[max(0, rounds - window) : rounds]
    reasons = [] if found else _reasons(last, window, limits)
    return Evaluation(bool(found), rounds, [_display(value) for value in last], *_figures(last), reasons)


def by_rule(values: t.Sequence[t.Any], rule: SteadyStateRule) -> Evaluation:
    """`evaluate` by a test's steady_state."""
    return evaluate(values, rule.window, rule.range_limit, rule.slope_limit, rule.margin)


def _measure(values: t.Sequence[float]) -> _Window:
    """Of two or more finite values. A figure may be infinite or NaN where a sum leaves a float's range."""
    size = len(values)
    average = sum(values) / size
    # The sum of squared distances from the middle round is n(n² - 1)/12.
    slope = 6 * sum((2 * index - size + 1) * value for index, value in enumerate(values)) / (size * (size * size - 1))
    if average <= 0:
        return _Window(average, slope, math.nan, math.nan, math.nan)
    farthest = max(abs(value - average) for value in values)
    spread = max(values) - min(values)
    return _Window(average, slope, spread / average, abs(slope) * (size - 1) / average, farthest / average)


def _figures(part: t.Sequence[float]) -> tuple[float | None, float | None, float | None, float | None]:
    """Return average, range_ratio, slope and slope_ratio of a window."""
    if not part or not all(map(math.isfinite, part)):
        return None, None, None, None
    if len(part) == 1:
        return part[0], None, None, None
    found = _measure(part)
    return _display(found.average), _display(found.range_ratio), _display(found.slope), _display(found.slope_ratio)


def _reasons(part: t.Sequence[float], window: int, limits: _Limits) -> list[str]:
    """Return why a window is not steady; empty when it is."""
    reasons = []
    if len(part) < window:
        reasons.append(f"{len(part)} of the {window} rounds that the window needs")
    if not all(map(math.isfinite, part)):
        reasons.append("a value in the window is NaN or infinite")
    if reasons:
        return reasons
    measured = _measure(part)
    if measured.average <= 0:
        return [f"the average of the window is {_digits(measured.average, 6)}, not above zero"]
    return [
        f"{what} {_above(ratio, limit)}"
        for what, ratio, limit in (
            ("the range of the window is", measured.range_ratio, limits.range),
            ("the fitted line moves across the window by", measured.slope_ratio, limits.slope),
            ("a value is off the window's average by", measured.margin_ratio, limits.margin),
        )
        if limit is not None and not _is_within(ratio, limit)
    ]


def _is_within(ratio: float, limit: float) -> bool:
    """NaN is not."""
    return ratio <= limit or math.isclose(ratio, limit, rel_tol=TOLERANCE, abs_tol=TOLERANCE / 1000)


def _above(ratio: float, limit: float) -> str:
    """`23.4 % of its average, limit 20 %`, with as many digits as it takes to see the difference."""
    shown = allowed = ""
    for digits in (3, 6, 12):
        shown, allowed = _digits(100 * ratio, digits), _digits(100 * limit, digits)
        if shown != allowed:
            break
    return f"{shown} % of its average, limit {allowed} %"


def _digits(number: float, digits: int) -> str:
    return f"{number:.{digits}g}" if math.isfinite(number) else "beyond 1e308"


def _numbers(values: t.Sequence[t.Any]) -> list[float]:
    if isinstance(values, (str, bytes)) or not isinstance(values, t.Sequence):
        raise ValueError(f"values must be a list of numbers, not {values!r}")
    return [_number(f"values[{index}]", value) for index, value in enumerate(values)]


def _number(name: str, value: t.Any) -> float:
    """Return a float, also for NaN and infinity. Raises ValueError, naming it."""
    text = str(value).strip()
    if isinstance(value, bool) or not isinstance(value, (int, float, Decimal, str)) or _NUMBER.fullmatch(text) is None:
        raise ValueError(f"{name} is not a number: {value!r}")
    number = float(text)
    if math.isinf(number) and "inf" not in text.lower():
        raise ValueError(f"{name} is out of range: {text:.40}")
    return number


def _limit(name: str, value: t.Any) -> float:
    number = _number(name, value)
    if not 0 <= number < math.inf:
        raise ValueError(f"{name} must be zero or more, as a part of the average (0.2 is 20 %), not {value!r}")
    return number


def _whole_number(name: str, value: t.Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 2:
        raise ValueError(f"{name} must be a whole number of rounds, 2 or more, not {value!r}")
    return value


def _display(value: float) -> float | None:
    """Return what JSON can hold; None for NaN and infinity."""
    return value if math.isfinite(value) else None
