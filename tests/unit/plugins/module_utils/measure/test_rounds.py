# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.ssdlab.fleet.plugins.module_utils.measure.histogram import RoundHistograms
from ansible_collections.ssdlab.fleet.plugins.module_utils.measure.rounds import Done, Rounds, bound_s
from ansible_collections.ssdlab.fleet.plugins.module_utils.measure.steady_state import evaluate
from ansible_collections.ssdlab.fleet.plugins.module_utils.records import base
from ansible_collections.ssdlab.fleet.tests.fixtures import planned

CELL = "rand-4k-w100"


def make_test(every=1, tracked=1, after=0, **limits):
    items = [{"cell": CELL, "metric": "write_iops"}, {"cell": CELL, "metric": "iops"}][:tracked]
    rule = {"tracked": items, "window": 5, "range_limit": 0.2, "slope_limit": 0.1, "sample_every": every}
    return {
        "cells": [{"id": CELL, "runtime_s": 60}],
        "rounds": limits or {"max": 25},
        "steady_state": rule if tracked else None,
        "after_steady_rounds": after,
    }


def rounds_of(test, size_bytes):
    return Rounds(planned.spec(**test), size_bytes)


def saturation_test(least=2, confirm=1, settle_s=0, **limits):
    test = make_test(**(limits or {"max": 99}))
    test["steady_state"].update(min_capacity_multiple=least, confirm_windows=confirm, settle_s=settle_s)
    return test


def within(margin, **limits):
    test = make_test(**limits)
    test["steady_state"]["margin"] = margin
    return test


def run(test, values, size_bytes=1000):
    rounds = rounds_of(test, size_bytes)
    for number, value in enumerate(values, start=1):
        if rounds.finished():
            break
        sample = value if isinstance(value, dict) else {"write_iops": value, "iops": value}
        rounds.add({CELL: sample}, bytes_written=number * 100, elapsed_s=number * 60.0)
    return rounds


FALLING = [400, 300, 200, 150, 120]
STEADY = [100, 101, 99, 100, 100]


@pytest.mark.parametrize(
    "test, values, count, outcome, window",
    [
        (make_test(), STEADY + [1], 5, "steady", [1, 2, 3, 4, 5]),
        (make_test(), FALLING + STEADY, 10, "steady", [6, 7, 8, 9, 10]),
        (make_test(after=2), STEADY * 3, 7, "steady", [1, 2, 3, 4, 5]),
        (make_test(max=6), [100, 200] * 3, 6, "not_steady", [2, 3, 4, 5, 6]),
        (make_test(max=3), STEADY, 3, "not_steady", [1, 2, 3]),
        (make_test(every=3, max=99), [7, 7, 100] * 9, 15, "steady", [3, 6, 9, 12, 15]),
        (make_test(capacity_multiple=0.8), FALLING * 9, 8, "not_steady", [4, 5, 6, 7, 8]),
        (make_test(time_limit_s=120), STEADY, 2, "not_steady", [1, 2]),
        (make_test(tracked=0, max=4), STEADY, 4, "complete", [1, 2, 3, 4]),
        # Micron TN-FD-15: each round within a tenth of the baseline, which a range of 20 % is not.
        (make_test(), [97, 97, 112, 97, 97], 5, "steady", [1, 2, 3, 4, 5]),
        (within(0.1), [97, 97, 112, 97, 97, 97, 97, 97], 8, "steady", [4, 5, 6, 7, 8]),
        (within(0.1, max=5), [97, 97, 112, 97, 97], 5, "not_steady", [1, 2, 3, 4, 5]),
        # Both tracked variables must be steady over the same window.
        (
            make_test(tracked=2),
            [{"write_iops": w, "iops": i} for w, i in zip(STEADY * 2, FALLING + STEADY)],
            10,
            "steady",
            [6, 7, 8, 9, 10],
        ),
    ],
)
def test_rounds_end_where_the_rule_or_a_limit_says(test, values, count, outcome, window):
    rounds = run(test, values)
    assert rounds.finished()
    assert (rounds.count, rounds.outcome()[0], rounds.window_rounds()) == (count, outcome, window)
    assert bool(rounds.outcome()[1]) == (outcome == "not_steady")


def test_a_curve_that_is_the_result_counts_and_says_why_it_is_not_steady():
    test = make_test(max=6)
    told = run(test, [100, 200] * 3).outcome()[1]
    test["steady_state"]["required"] = False
    assert run(test, [100, 200] * 3).outcome() == ("complete", told) and told
    assert run(test, STEADY).outcome() == ("steady", [])
    assert run_disturbed(test, {1, 2, 3, 4, 5, 6, 7, 8}).outcome()[0] == "invalid"


def curve(count, disturbed=(), every=3, least=0):
    test = make_test(every=every, max=count)
    test["steady_state"].update(required=False, min_capacity_multiple=least)
    return run_disturbed(test, set(disturbed))


@pytest.mark.parametrize(
    ("count", "disturbed", "outcome"),
    [
        # Ten rounds are three samples, and a window has five: the limits came first.
        (10, [], "complete"),
        (10, [4], "complete"),
        (10, range(1, 21), "invalid"),
        (10, range(3, 21), "invalid"),
        (30, range(16, 61), "steady"),
        (30, range(15, 61), "invalid"),
    ],
)
def test_a_curve_of_disturbed_rounds_does_not_count(count, disturbed, outcome):
    assert curve(count, disturbed).outcome()[0] == outcome


def test_a_curve_that_ends_in_the_fresh_state_has_no_steady_figures():
    (fresh,) = curve(9, least=2).averages()
    assert {name: value for name, value in fresh.metrics.items() if value is not None} == {"max_latency_us": 900}
    assert fresh.metrics.keys() >= {"write_iops", "iops", "alternation_pct"}
    (late,) = curve(9, least=0.1).averages()
    assert late.metrics["write_iops"] == 100


def test_a_ramp_takes_its_time_too():
    test = make_test(max=4)
    test["cells"][0]["ramp_s"] = 5
    assert run(test, [100]).time_left_s() == 3 * 65


def test_averages_are_of_the_window_and_maxima_stay_maxima():
    values = [{"write_iops": v, "iops": v, "max_latency_us": v} for v in (900, 96, 98, 100, 102, 104)]
    (average,) = run(make_test(), values).averages()
    steady = {"metric": "iops", "steady": True, "range_ratio": 0.08, "slope_ratio": 0.08}
    unknown = {"slowest_second_pct": None, "hourly_drift_pct": None}
    assert base.to_json(average) == {
        "cell": CELL,
        "metrics": {"write_iops": 100, "iops": 100, "max_latency_us": 104, "alternation_pct": 0, **unknown},
        "steady": steady,
    }


@pytest.mark.parametrize(
    "test, worst_at, seen",
    [
        # The window is rounds 6 to 10: nothing before it counts, but for a saturation test.
        (make_test(), 10, True),
        (make_test(), 5, False),
        # Sampled are 3, 6, 9, 12, 15.
        (make_test(every=3, max=99), 7, True),
        (make_test(every=3, max=99), 1, True),
        (saturation_test(least=0.5, confirm=0), 2, True),
    ],
)
def test_a_maximum_covers_rounds_that_are_no_sample_and_all_of_a_saturation_test(test, worst_at, seen):
    values = [100] * 15 if test["steady_state"]["sample_every"] == 3 else FALLING + STEADY
    samples = [
        {"write_iops": v, "iops": v, "write_max_latency_us": 9000 if number == worst_at else 10}
        for number, v in enumerate(values, 1)
    ]
    rounds = run(test, samples)
    assert rounds.outcome()[0] == "steady"
    (average,) = rounds.averages()
    assert (average.metrics["write_max_latency_us"] == 9000) == seen


def test_percentiles_are_those_of_all_ios_from_the_windows_first_round_to_its_last():
    """Rounds 3, 6 … 15 are sampled; the bad one, 7, is none of them. Rounds before the window are in nothing."""
    good, bad = {100_864: 9980, 501_760: 20}, {100_864: 9900, 8_060_928: 100}
    rounds, tails = rounds_of(dict(make_test(every=3, max=99), latency_targets_us=[1000]), 1000), RoundHistograms()
    for number in range(1, 16):
        rounds.add({CELL: {"write_iops": 100, "iops": 100}}, number * 100, number * 60.0)
        tails.add(number, {CELL: {"write": bad if number in (1, 7) else good}})
    (record,) = tails.records(rounds.span())
    rounds.histograms = {CELL: {"write": {int(ns): count for ns, count in record.bins.items()}}}
    (average,) = rounds.averages()
    assert rounds.window_rounds() == [3, 6, 9, 12, 15] and rounds.span() == list(range(3, 16))
    found = {
        name: average.metrics[name]
        for name in ("write_ios", "write_p99_9_latency_us", "write_within_1ms_pct", "write_p99_999_latency_us")
    }
    assert found == {
        "write_ios": 130_000,
        "write_p99_9_latency_us": 501.76,
        "write_within_1ms_pct": 100 * (1 - 100 / 130_000),
        "write_p99_999_latency_us": None,
    }
    assert (record.cell, record.direction, record.first_round, record.last_round, record.ios) == (
        CELL,
        "write",
        3,
        15,
        130_000,
    )
    assert record.bins == {"100864": 12 * 9980 + 9900, "501760": 240, "8060928": 100}


def test_a_metric_that_a_cell_lacks_is_never_steady():
    rounds = run(make_test(), [{"iops": 100}] * 25)
    assert rounds.outcome()[0] == "not_steady"


@given(st.lists(st.integers(1, 1000), min_size=5, max_size=40))
def test_sliding_equals_the_rule_over_the_whole_series(values):
    rounds = run(make_test(max=len(values)), values)
    whole = evaluate(values)
    assert (rounds.steady_at is not None) == whole.steady
    assert rounds.count == whole.rounds
    assert rounds.steady_state()[0].window_values == whole.window_values


@pytest.mark.parametrize(
    ("limits", "rounds", "only_repeats"),
    [
        ({"max": 3}, [0, 0], False),
        ({"max": 3}, [0, 1, 0], True),
        ({"max": 3}, [1, 1, 1, 0], True),
        ({"time_limit_s": 600}, [1, 1, 1, 0], False),
        # 100 bytes a round: three rounds count once 200 of 1000 are written.
        ({"max": 3, "least_capacity_multiple": 0.2}, [1, 0, 1, 0], False),
        ({"max": 3, "least_capacity_multiple": 0.2}, [1, 0, 1, 0, 0], True),
    ],
)
def test_what_is_due_after_the_limit_makes_good_for_disturbed_rounds(limits, rounds, only_repeats):
    made = Rounds(planned.spec(rounds=limits, steady_state=None), 1000)
    for number, disturbed in enumerate(rounds, start=1):
        assert not made.finished()
        made.add({"c": {"iops": 1.0}}, 100 * number, 60.0 * number, bool(disturbed))
    assert made.only_repeats() is only_repeats


LEAST = {"max": 25, "least_capacity_multiple": 2}


@pytest.mark.parametrize(
    "limits, done, expected",
    [
        ({"max": 25}, {}, 1500),
        ({"max": 25}, {"undisturbed": 20}, 300),
        # On a busy host rounds take longer than planned, and disturbed ones are measured again, at most as many.
        ({"max": 25}, {"undisturbed": 5, "rounds": 5, "elapsed_s": 450.0}, 20 * 90),
        ({"max": 25}, {"undisturbed": 5, "rounds": 8, "elapsed_s": 480.0}, 20 * 1.5 * 60),
        ({"max": 25}, {"undisturbed": 0, "rounds": 40, "elapsed_s": 2400.0}, 10 * 60),
        ({"max": 25, "time_limit_s": 90}, {"elapsed_s": 60.0}, 30),
        ({"capacity_multiple": 4}, {}, None),
        ({"capacity_multiple": 4}, {"bytes_written": 1000, "elapsed_s": 10.0}, 30),
        ({"max": None}, {}, None),
        # 100 bytes a second: the limits count once 2000 are written.
        (LEAST, {"counted_from": None}, None),
        (LEAST, {"undisturbed": 3, "bytes_written": 500, "elapsed_s": 5.0, "counted_from": None}, 15 + 1500),
        (LEAST, {"undisturbed": 12, "bytes_written": 2500, "elapsed_s": 25.0, "counted_from": (10, 11, 20.0)}, 23 * 60),
        (
            {**LEAST, "max": None, "time_limit_s": 90},
            {"undisturbed": 12, "bytes_written": 2500, "elapsed_s": 25.0, "counted_from": (10, 11, 20.0)},
            85,
        ),
        ({**LEAST, "capacity_multiple": 3}, {"bytes_written": 500, "elapsed_s": 5.0, "counted_from": None}, 25),
    ],
)
def test_the_time_left_is_the_nearest_limit(limits, done, expected):
    assert bound_s(planned.spec(rounds=limits).rounds, 60, 1000, Done(**done)) == expected


# A drive of 1000 bytes that writes 100 a round: a plateau while it is fresh, then half of it.
PLATEAU = [100] * 20 + [50] * 40


@pytest.mark.parametrize(
    "test, values, steady_at, window",
    [
        (saturation_test(least=0, confirm=0), PLATEAU, 5, [1, 2, 3, 4, 5]),
        # Round 21 is the first that begins with 2 x 1000 bytes written.
        (saturation_test(confirm=0), PLATEAU, 25, [21, 22, 23, 24, 25]),
        (saturation_test(), PLATEAU, 30, [26, 27, 28, 29, 30]),
        # A plateau before a fall is not the end: the window after it does not agree.
        (saturation_test(), [100] * 27 + [50] * 40, 37, [33, 34, 35, 36, 37]),
        # Five windows that are steady each, and fall by a fifth from one to the next.
        (saturation_test(least=0), [100] * 5 + [80] * 5 + [64] * 5 + [51] * 5 + [41] * 10, 30, [26, 27, 28, 29, 30]),
        (saturation_test(least=0, confirm=0, settle_s=600), [100] * 20, 15, [11, 12, 13, 14, 15]),
        (saturation_test(least=0, confirm=2), [100] * 20, 15, [11, 12, 13, 14, 15]),
    ],
)
def test_a_window_counts_once_the_drive_can_have_left_its_fresh_state(test, values, steady_at, window):
    rounds = run(test, values)
    assert (rounds.steady_at, rounds.window_rounds(), rounds.outcome()[0]) == (steady_at, window, "steady")


def test_what_ends_before_the_drive_can_be_steady_is_not_steady_and_says_so():
    rounds = run(saturation_test(max=19), PLATEAU)
    outcome, reasons = rounds.outcome()
    assert (
        outcome == "not_steady"
        and "2 x the user capacity (2000 bytes)" in reasons[1]
        and "1900 bytes were" in reasons[1]
    )
    assert rounds.saturation().written_before_bytes < 2000


def test_the_record_shows_what_was_written_before_the_windows():
    shown = run(saturation_test(), PLATEAU).saturation()
    assert (shown.written_before_bytes, shown.user_capacity_bytes, shown.averages) == (
        2000,
        1000,
        [[50.0], [50.0]],
    )
    assert run(make_test(), STEADY).saturation() is None


def test_the_fitted_end_of_a_falling_window_lies_below_its_average():
    (found,) = run(make_test(), [104, 102, 100, 98, 96]).steady_state()
    assert (found.average, found.fitted_end) == (100, 96)


@given(st.lists(st.floats(1, 1e6), min_size=1, max_size=60), st.integers(0, 5), st.integers(0, 2))
def test_no_steady_window_begins_too_early(values, least, confirm):
    rounds = run(saturation_test(least=least, confirm=confirm), values)
    if rounds.steady_at is not None:
        first = rounds.steady_at - 5 * (1 + confirm) + 1
        assert first >= 1 and (first - 1) * 100 >= least * 1000
        assert all(item.steady for item in rounds.steady_state())


def run_disturbed(test, disturbed, disturbed_value=100):
    rounds = rounds_of(test, 1000)
    while not rounds.finished():
        number = rounds.count + 1
        value, longest_us = (disturbed_value, 9000) if number in disturbed else (100, 900)
        metrics = {"write_iops": value, "iops": value, "max_latency_us": longest_us}
        rounds.add({CELL: metrics}, number * 100, number * 60.0, disturbed=number in disturbed)
    return rounds


@pytest.mark.parametrize(
    "test, disturbed, outcome, window",
    [
        (make_test(), {3}, "steady", [1, 2, 4, 5, 6]),
        (make_test(), {1, 7}, "steady", [2, 3, 4, 5, 6]),
        (make_test(), {2, 4, 5, 9}, "steady", [1, 3, 6, 7, 8]),
        # As many disturbed rounds as undisturbed ones are allowed are measured again.
        (make_test(max=5), {1, 2, 3, 4, 5}, "steady", [6, 7, 8, 9, 10]),
        (make_test(max=5), {1, 2, 3, 4, 5, 8}, "invalid", [6, 7, 9, 10]),
        (make_test(max=9), set(range(1, 19)), "invalid", [14, 15, 16, 17, 18]),
        # One in two of the undisturbed ones is a sample.
        (make_test(every=2, max=30), {1, 5}, "steady", [3, 6, 8, 10, 12]),
        (make_test(tracked=0, max=4), {2}, "complete", [1, 3, 4, 5]),
        (make_test(tracked=0, max=4), {2, 4, 5, 6, 7}, "complete", [1, 3, 8]),
        (make_test(tracked=0, max=2), {1, 2, 3, 4}, "invalid", []),
        # The last rounds are those of its end: what was clean long before shows another state of the drive.
        ({**make_test(tracked=0, max=9), "last_rounds": 2}, {8, 9}, "complete", [10, 11]),
        ({**make_test(tracked=0, max=9), "last_rounds": 2}, set(range(8, 19)) - {15}, "complete", [15]),
        ({**make_test(tracked=0, max=9), "last_rounds": 2}, set(range(8, 19)), "invalid", []),
    ],
)
def test_windows_pass_over_disturbed_rounds(test, disturbed, outcome, window):
    rounds = run_disturbed(test, disturbed)
    assert (rounds.outcome()[0], rounds.window_rounds()) == (outcome, window)
    assert not disturbed.intersection(rounds.window_rounds()) or outcome == "invalid"


@pytest.mark.parametrize(
    "test, disturbed, says",
    [
        (make_test(max=5), {1, 2, 3, 4, 5, 8}, "too few others are left for a window; the drive itself was steady"),
        (make_test(tracked=0, max=2), {1, 2, 3, 4}, "no other is left that counts"),
    ],
)
def test_a_test_that_is_too_disturbed_says_whether_the_drive_was_steady(test, disturbed, says):
    assert run_disturbed(test, disturbed).outcome() == ("invalid", [says])
    slower = run_disturbed(test, disturbed, disturbed_value=10).outcome()
    assert slower == ("invalid", [says.replace("; the drive itself was steady", "")])


@given(st.sets(st.integers(1, 40)), st.integers(1, 3), st.integers(0, 1))
def test_what_is_disturbed_changes_no_figure_of_a_window(disturbed, every, confirm):
    """As if those rounds had not been measured."""
    test = make_test(every=every, max=40)
    test["steady_state"]["confirm_windows"] = confirm
    values = iter([500, 400, 300, 200] + [100] * 200)
    rounds, clean = rounds_of(test, 1000), rounds_of(test, 1000)
    while not rounds.finished():
        is_disturbed = rounds.count + 1 in disturbed
        metrics = {"write_iops": 7 if is_disturbed else next(values)}
        rounds.add({CELL: metrics}, rounds.count, rounds.count * 60.0, disturbed=is_disturbed)
        if not is_disturbed:
            clean.add({CELL: metrics}, clean.count, clean.count * 60.0)
    assert (rounds.steady_at is None) == (clean.steady_at is None)
    assert rounds.averages() == clean.averages()


def test_the_time_left_counts_undisturbed_rounds_and_as_many_disturbed_ones_as_so_far():
    rounds = rounds_of(make_test(max=9), 1000)
    for number in (1, 2, 3):
        rounds.add({CELL: {"write_iops": 100}}, number, number, disturbed=number == 2)
    assert rounds.time_left_s() == pytest.approx(7 * 4 / 3 * 60)


def test_a_test_that_is_not_steady_in_clean_windows_is_not_steady():
    rounds = rounds_of(make_test(max=12), 1000)
    for number in range(1, 13):
        rounds.add({CELL: {"write_iops": 100 * number}}, number, number, disturbed=number == 1)
    assert rounds.outcome()[0] == "not_steady"


@pytest.mark.parametrize("disturbed", [{3}, {1}, set(range(1, 19))])
@pytest.mark.parametrize("every", [1, 2])
def test_a_maximum_counts_disturbed_rounds_too(disturbed, every):
    """What disturbs a round excuses no I/O that was stuck in it, wherever the window lies."""
    (cell,) = run_disturbed(make_test(max=9, every=every), disturbed).averages()
    assert cell.metrics["max_latency_us"] == 9000


def test_a_disturbed_round_is_not_the_reason_where_no_window_could_count_anyway():
    test = make_test(max=9)
    test["steady_state"]["min_capacity_multiple"] = 10_000
    outcome, reasons = run_disturbed(test, {3}).outcome()
    assert outcome == "not_steady" and not any("disturbed" in reason for reason in reasons)


def test_without_a_rule_the_last_rounds_may_make_the_figures():
    rounds = run({**make_test(tracked=0, max=6), "last_rounds": 2}, [900, 500, 300, 200, 110, 90])
    assert rounds.outcome() == ("complete", []) and rounds.window_rounds() == [5, 6]
    assert rounds.averages()[0].metrics["write_iops"] == 100


def test_what_leads_every_round_is_not_the_tests_figure():
    test = make_test(tracked=0, max=1)
    test["cells"] = [{"id": "lead", "runtime_s": 300, "lead": True}, *test["cells"]]
    rounds = rounds_of(test, 1000)
    rounds.add({"lead": {"iops": 9}, CELL: {"iops": 5}}, bytes_written=1, elapsed_s=1.0)
    assert [item.cell for item in rounds.averages()] == [CELL, "lead"]
