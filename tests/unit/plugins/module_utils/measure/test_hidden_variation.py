# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What averages hide, on rates and samples that are known."""

from __future__ import annotations

import random
import re

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.measure import hidden_variation
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.attempt import METRIC_PATTERN
from ansible_collections.ssdlab.fleet.tests.fixtures import planned


def numbered(values):
    return dict(enumerate(values, start=1))


@pytest.mark.parametrize(
    ("values", "pct"),
    [
        (numbered([600, 509, 600, 509, 600, 509]), 8.2),
        (numbered([600, 509, 600, 509, 600]), 8.1),
        # On a slope, and with a round left out, which has no neighbours.
        (numbered([600 - 5 * number - 91 * (number % 2) for number in range(10)]), 8.5),
        ({1: 600, 2: 509, 3: 600, 4: 509, 6: 509, 7: 600, 8: 509}, 8.4),
        (numbered([600] * 8), 0),
        (numbered([600, 600, 300, 600, 600]), 0),
        (numbered([100, 101, 102, 103, 104]), 0),
        (numbered([400, 300, 200, 150, 120, 110, 105]), 0),
        (numbered([600, 509, 600, 509]), None),
        ({1: 600, 3: 600, 5: 600, 7: 600, 9: 600}, None),
        ({}, None),
    ],
)
def test_rounds_that_alternate_are_told_by_how_much(values, pct):
    assert hidden_variation.alternation_pct(values) == (pct if pct is None else pytest.approx(pct, abs=0.2))


def test_noise_of_two_percent_is_no_remark():
    """Of 500 tests with each of these numbers of rounds."""
    noise = random.Random(1)
    for rounds in (5, 10, 25):
        found = [
            hidden_variation.alternation_pct(numbered([noise.gauss(100, 2) for _round in range(rounds)]))
            for _test in range(500)
        ]
        assert max(found) < hidden_variation.LIMITS[hidden_variation.ALTERNATION].most_pct


def curve(minutes, pct_an_hour=0.0, noise_pct=0.0):
    noise = random.Random(1)
    return [
        (60.0 * at, 500 * (1 + pct_an_hour / 100 * at / 60) + noise.gauss(0, 5 * noise_pct)) for at in range(minutes)
    ]


@pytest.mark.parametrize(
    ("values", "pct"),
    [
        (curve(150, -3), 3.1),
        (curve(150, 3), 2.9),
        (curve(150, -3, noise_pct=2), 3.1),
        (curve(150), 0),
        # Too short, too few, too noisy to tell.
        (curve(60, -3), None),
        (curve(150, -3)[::40], None),
        (curve(62, -3, noise_pct=4), None),
        ([], None),
    ],
)
def test_a_drift_is_told_for_an_hour(values, pct):
    assert hidden_variation.hourly_drift_pct(values) == (pct if pct is None else pytest.approx(pct, abs=0.5))


def samples(rate_at, length_s=10.0, at=0.0, late=(), busy=lambda _at_s: 1):
    """Samples of a drive that does 4 KiB I/Os from 0.4 s on. rate_at: its IOPS by the second, 1000 else; late: pairs of
    when the sampler does not run.
    """
    found, ios, now_s = [], 0.0, at
    while now_s < at + length_s + 0.8:
        if not any(begin <= now_s - at < end for begin, end in late):
            count = int(ios)
            found.append(hidden_variation.CounterSample(now_s, now_s + 0.001, 4096 * count, count, busy(now_s - at)))
        for _step in range(25):
            now_s += 0.01
            ios += 0.01 * rate_at.get(int(now_s - at), 1000) * (0.4 < now_s - at < length_s + 0.4)
    return found


@pytest.mark.parametrize(
    ("given", "ramp_s", "low", "high"),
    [
        (samples({}), 0, 0, 3),
        # Eightfold slower for a second.
        (samples({5: 125}), 0, 80, 88),
        (samples({5: 0}), 0, 95, 100),
        (samples({5: 0}, at=1e6), 0, 95, 100),
        # Neither the ramp nor the ends count.
        (samples({0: 100, 1: 100, 10: 0}), 2, 0, 3),
        # A sampler that comes late for three seconds sees no slow second.
        (samples({}, late=[(3, 6)]), 0, 0, 3),
        # The drive had nothing to do: the host was late.
        (samples({5: 0}, busy=lambda at_s: not 5 <= at_s < 6), 0, 0, 40),
    ],
)
def test_a_slow_second_inside_a_cell_shows(given, ramp_s, low, high):
    assert low <= hidden_variation.slowest_second_pct(given, ramp_s, 10 - ramp_s) <= high


@pytest.mark.parametrize(
    "given",
    [
        [],
        samples({})[:3],
        # Nobody counts I/Os in flight.
        samples({5: 0}, busy=lambda _at_s: 0),
        # Of 10 I/Os in a second, one more or less is what differs.
        samples(dict.fromkeys(range(20), 10)),
        samples({}, late=[(1, 20)]),
    ],
)
def test_what_samples_can_not_tell_is_unknown(given):
    assert hidden_variation.slowest_second_pct(given, 0, 10) is None


def test_a_cell_has_all_metrics_unknown_ones_too():
    rounds = [hidden_variation.Round(number, 60.0 * number, {"iops": 100.0}) for number in range(1, 4)]
    assert hidden_variation.metrics(rounds) == dict.fromkeys(hidden_variation.OF_CELL)
    told = [one._replace(figures={**one.figures, "slowest_second_pct": 30.0 * one.number}) for one in rounds[:2]]
    assert hidden_variation.metrics([*told, rounds[2]])["slowest_second_pct"] == 45.0


@pytest.mark.parametrize(
    ("throttled", "rounds", "is_known", "pct"),
    [(0, 0, True, None), (0, 8, True, 0), (2, 8, False, 25), (0, 8, False, None)],
)
def test_throttled_rounds_are_a_share(throttled, rounds, is_known, pct):
    assert hidden_variation.throttled_pct(throttled, rounds, is_known) == pct


@pytest.mark.parametrize(
    ("changes", "runtime_s", "found"),
    [
        ({"rounds": {"max": 25}, "steady_state": {"window": 5}}, 60, {"alternation_pct", "slowest_second_pct"}),
        ({"rounds": {"max": 3}}, 15, {"slowest_second_pct"}),
        ({"rounds": {"max": 5}}, 1, {"alternation_pct"}),
        ({"steady_state": {"window": 5, "sample_every": 30}}, 60, set(hidden_variation.OF_CELL)),
        ({"rounds": {"time_limit_s": 86400}}, 60, set(hidden_variation.OF_CELL)),
        ({"rounds": {"max": 480}, "last_rounds": 30}, 60, {"alternation_pct", "slowest_second_pct"}),
    ],
)
def test_a_plan_tells_what_its_rounds_can_show(changes, runtime_s, found):
    test = planned.spec(cells=[{"runtime_s": runtime_s}], **changes)
    assert hidden_variation.possible(test, test.cells[0]) == found


def test_the_metrics_may_have_a_figure_in_records():
    assert all(re.search(METRIC_PATTERN, name) for name in hidden_variation.LIMITS)
    assert not re.search(METRIC_PATTERN, "write_throttled_pct")
