# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The steady-state rule against a least-squares fit of its own, in fractions."""

from __future__ import annotations

import json
import math
import time
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.ssdlab.fleet.plugins.module_utils.measure.steady_state import evaluate

# Near the limits, so that both verdicts happen: an average of 100 with steps of half a per cent.
NEAR = st.integers(180, 220).map(lambda step: step / 2)
SERIES = st.lists(NEAR, min_size=5, max_size=12)
ANY = st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=12)


def close(expected):
    """Of figures that are sums and quotients of numbers around 100."""
    return pytest.approx(expected, rel=1e-12, abs=1e-12)


def oracle(window, range_limit=Fraction(1, 5), slope_limit=Fraction(1, 10)):
    """Textbook least squares over (x, y), with x = 1 … n."""
    points = [(Fraction(x), Fraction(repr(y))) for x, y in enumerate(window, 1)]
    count = len(points)
    mean_x = sum(x for x, _y in points) / count
    mean_y = sum(y for _x, y in points) / count
    slope = sum((x - mean_x) * (y - mean_y) for x, y in points) / sum((x - mean_x) ** 2 for x, _y in points)
    values = [y for _x, y in points]
    steady = (
        mean_y > 0
        and max(values) - min(values) <= range_limit * mean_y
        and abs(slope) * (count - 1) <= slope_limit * mean_y
    )
    return steady, mean_y, slope


@pytest.mark.parametrize(
    "values, steady",
    [
        ([96, 98, 100, 102, 104], True),
        ([95, 97.5, 100, 102.5, 105], True),  # the slope is exactly 10 %
        ([94, 97, 100, 103, 106], False),
        ([103, 103, 87.5, 103, 103], True),
        ([89, 111, 100, 89, 111], False),
        ([90, 110, 100, 110, 90], True),  # the range is exactly 20 %
        ([0.9, 1.1, 1.0, 1.1, 0.9], True),  # 1.1 - 0.9 > 0.2 in binary floats
        ([0.095, 0.0975, 0.1, 0.1025, 0.105], True),
        ([90, 110, 100, 110, 89.99999999999999], True),  # beyond by less than the tolerance
        ([90, 110, 100, 110, 89.999999], False),
        (["90", "110", "1e2", "110.0", "90"], True),
        ([90, 110, 100, 110, "89.999999"], False),
        ([Decimal("90"), 110, 100, 110, 90], True),
        ([5e-324] * 5, True),
        ([0, 0, 0, 0, 0], False),
        ([-100, -100, -100, -100, -100], False),
        ([100, 100, 100, 100], False),
        ([], False),
        ([100, 100, math.nan, 100, 100], False),
        ([100, 100, 100, 100, math.inf], False),
        ([100, 100, 100, 100, "-Infinity"], False),
    ],
)
def test_windows_that_separate_implementations(values, steady):
    result = evaluate(values)
    assert result.steady is steady
    assert bool(result.reasons) is not steady
    json.dumps(vars(result), allow_nan=False)


@pytest.mark.parametrize(
    "arguments, named",
    [
        ({"values": [1, None]}, "values[1]"),
        ({"values": [True]}, "values[0]"),
        ({"values": [1, 2, "fast"]}, "values[2]"),
        ({"values": ["1_000"]}, "values[0]"),
        ({"values": ["0x10"]}, "values[0]"),
        ({"values": ["1/3"]}, "values[0]"),
        ({"values": ["\u0661"]}, "values[0]"),
        ({"values": [[1]]}, "values[0]"),
        ({"values": ["1e999999"]}, "values[0]"),
        ({"values": [10**400]}, "values[0]"),
        ({"values": "12345"}, "values"),
        ({"values": None}, "values"),
        ({"values": [1], "window": 1}, "window"),
        ({"values": [1], "window": 2.5}, "window"),
        ({"values": [1], "window": True}, "window"),
        ({"values": [1], "range_limit": -0.1}, "range_limit"),
        ({"values": [1], "slope_limit": math.nan}, "slope_limit"),
        ({"values": [1], "slope_limit": "steep"}, "slope_limit"),
        ({"values": [1], "margin": -0.1}, "margin"),
        ({"values": [1], "margin": math.inf}, "margin"),
    ],
)
def test_names_what_is_not_usable(arguments, named):
    with pytest.raises(ValueError, match="^" + named.replace("[", r"\[").replace("]", r"\]") + " "):
        evaluate(**arguments)


def test_figures_are_those_of_the_first_steady_window():
    result = evaluate([200, 150, 100, 100, 100, 100, 100, 7, 8])
    assert (result.steady, result.rounds, result.window_values) == (True, 7, [100.0] * 5)
    result = evaluate([96, 98, 100, 102, 104])
    assert (result.average, result.range_ratio, result.slope, result.slope_ratio) == (
        100.0,
        0.08,
        2.0,
        0.08,
    )


def test_without_a_steady_window_the_last_one_is_shown():
    result = evaluate([100, 100, 100, 10, 100, 100])
    assert (result.steady, result.rounds, result.window_values) == (
        False,
        6,
        [100.0, 100.0, 10.0, 100.0, 100.0],
    )
    assert result.reasons == ["the range of the window is 110 % of its average, limit 20 %"]


def test_a_miss_by_little_is_told_apart_from_the_limit():
    assert evaluate([90, 110, 100, 110, 89.99999]).reasons == [
        "the range of the window is 20.0000104 % of its average, limit 20 %"
    ]


# A range of at most 20 %, and one value much farther from the average than a tenth of it.
SPIKE = [97.0, 97.0, 112.0, 97.0, 97.0]


@pytest.mark.parametrize(
    ("values", "steady"),
    [
        ([90, 110, 100, 110, 90], True),  # exactly a tenth
        ([0.9, 1.1, 1.0, 1.1, 0.9], True),  # 1.1 - 1 > 0.1 in binary floats
        ([90, 110, 100, 110, 89.999999], False),
        (SPIKE, False),
        ([103.0] * 4 + [88.0], False),
    ],
)
def test_a_margin_around_the_average_is_a_rule_of_its_own(values, steady):
    """TN-FD-15: within 10 % of a baseline. It counts besides the other two; wide open, these leave it alone."""
    result = evaluate(values, range_limit=1, slope_limit=1, margin=0.1)
    assert result.steady is steady and bool(result.reasons) is not steady


def test_a_value_off_the_margin_is_told():
    assert evaluate(SPIKE).steady
    assert evaluate(SPIKE, margin=0.1).reasons == [
        "a value is off the window's average by 12 % of its average, limit 10 %"
    ]


@given(SERIES, st.integers(5, 20).map(lambda step: Fraction(step, 100)))
def test_a_margin_agrees_with_the_oracle(values, margin):
    window = values[:5]
    exact = [Fraction(repr(value)) for value in window]
    average = sum(exact) / len(exact)
    within = all(abs(value - average) <= margin * average for value in exact)
    assert evaluate(window, margin=float(margin)).steady is (oracle(window)[0] and within)


@given(SERIES, st.integers(2, 7))
def test_agrees_with_the_oracle(values, window):
    ends = [end for end in range(window, len(values) + 1) if oracle(values[end - window : end])[0]]
    result = evaluate(values, window=window)
    assert (result.steady, result.rounds) == (bool(ends), ends[0] if ends else len(values))
    if len(values) >= window:
        _steady, average, slope = oracle(values[result.rounds - window : result.rounds])
        assert (result.average, result.slope) == close((average, slope))
        assert result.slope_ratio == close(abs(slope) * (window - 1) / average)


@given(st.lists(NEAR, min_size=5, max_size=5), st.integers(-20, 20))
def test_scaling_by_powers_of_two_changes_no_verdict(values, power):
    assert evaluate([value * 2.0**power for value in values]).steady == evaluate(values).steady


@given(st.lists(NEAR, min_size=5, max_size=5))
def test_reversal_changes_no_verdict(values):
    forward, backward = evaluate(values), evaluate(values[::-1])
    assert forward.steady == backward.steady
    assert forward.slope == close(-backward.slope)


@given(st.floats(min_value=1e-300, max_value=1e300), st.integers(2, 9))
def test_constants_are_steady(value, window):
    assert evaluate([value] * window, window=window).rounds == window


@given(SERIES, SERIES)
def test_the_first_steady_round_stays_when_rounds_are_appended(values, more):
    before = evaluate(values)
    if before.steady:
        after = evaluate(values + more)
        assert after.steady and after.rounds == before.rounds


@given(SERIES, st.data())
def test_nan_in_every_window_is_never_steady(values, data):
    values = values[:5]
    values[data.draw(st.integers(0, 4))] = data.draw(st.sampled_from([math.nan, math.inf, -math.inf, "NaN"]))
    assert evaluate(values).steady is False


@given(st.lists(st.integers(90, 110), min_size=5, max_size=9))
def test_int_float_and_text_give_the_same(values):
    results = [evaluate([kind(value) for value in values]) for kind in (int, float, str, Decimal)]
    assert all(result == results[0] for result in results)


@settings(max_examples=200)
@given(ANY, st.integers(2, 6))
def test_any_floats_give_a_verdict_that_json_can_hold(values, window):
    json.dumps(vars(evaluate(values, window=window)), allow_nan=False)


@given(st.integers(1, 10**6), st.integers(1, 1000), st.sampled_from(["range", "slope"]))
def test_exactly_on_the_boundary_is_steady_and_a_hair_beyond_is_not(base, unit, kind):
    # Windows that lie on one limit by construction, in decimal.
    shape = {"range": (90, 110, 100, 110, 90), "slope": (95, Decimal("97.5"), 100, Decimal("102.5"), 105)}[kind]
    window = [Decimal(base) * Decimal(part) / Decimal(10) ** (unit % 7) for part in shape]
    assert evaluate(window).steady
    beyond = window[4] * (1 + (1 if kind == "slope" else -1) * Decimal("1e-8"))
    assert not evaluate([*window[:4], beyond]).steady


def test_a_day_of_minutes_takes_no_time():
    values = [1000 + (index * 7919) % 997 for index in range(1440)]
    started = time.perf_counter()
    assert not evaluate(values).steady
    assert time.perf_counter() - started < 1
