# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Leave-one-out statistics against their definition, and the chances that they give. Wilcoxon's test against scipy's,
and against all signs where scipy has no exact one.
"""

from __future__ import annotations

import itertools

import numpy
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.peers import robust_statistics, trends
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.verdict.verdicts import UNKNOWN

VALUES = st.lists(st.integers(1, 50), min_size=2, max_size=30)


@given(VALUES)
def test_a_median_and_a_spread_never_include_the_drive_itself(values):
    numbers = np.array(values, dtype=float)
    rest = [np.delete(numbers, index) for index in range(len(numbers))]
    medians = robust_statistics.without_each(numbers)
    assert medians.tolist() == [np.median(others) for others in rest]
    wanted = [np.median(np.abs(others - np.median(others))) for others in rest]
    assert robust_statistics.spread_without_each(numbers, medians).tolist() == wanted


@pytest.mark.parametrize(
    ("metric", "bad", "by"),
    [
        ("write_iops", 80.0, 0.2),
        ("write_mean_latency_us", 120.0, 0.2),
        ("read_p99_9_latency_us", 120.0, 0.2),
        ("write_iops", 120.0, -0.2),
    ],
)
def test_only_the_bad_direction_is_worse_than_the_median(metric, bad, by):
    held = robust_statistics.score_leave_one_out(metric, [100.0] * 11 + [bad])
    assert held.by[-1] == pytest.approx(by) and held.median[-1] == pytest.approx(100)
    # Drives that are alike to the last digit have a spread of 0: the floor says how much is nothing.
    assert (held.z[-1] > robust_statistics.Z_LIMIT) == (by > 0) and abs(held.z[:-1]).max() == 0


def test_two_bad_drives_of_eight_do_not_hide_each_other():
    held = robust_statistics.score_leave_one_out("iops", [100, 101, 99, 100.5, 99.5, 100.2, 70, 69])
    assert held.z[-2:].min() > robust_statistics.Z_LIMIT > held.z[:-2].max()


def test_a_dead_drive_and_a_dead_group_give_figures():
    assert robust_statistics.score_leave_one_out("iops", [0.0] + [5.0] * 8).by[0] == 1
    assert robust_statistics.score_leave_one_out("iops", [0.0] * 9).z.tolist() == [0] * 9


@pytest.mark.parametrize("others", [7, 8, 15, 48])
def test_good_drives_are_as_seldom_as_bad_as_is_said(others):
    """A short sample of tests/bench/fleet_statistics.py: 1 % of good drives have a chance below 1 %."""
    noise = np.random.default_rng(others)
    fleets = noise.standard_normal((60_000, others + 1))
    median = np.median(fleets[:, 1:], axis=1)
    mad = np.median(np.abs(fleets[:, 1:] - median[:, None]), axis=1)
    z = 0.6745 * (fleets[:, 0] - median) / mad
    assert np.mean(robust_statistics.p_value(z, others) < 0.01) == pytest.approx(0.01, abs=0.002)


def test_discoveries_are_those_of_benjamini_and_hochberg():
    # The example of their paper (15 comparisons, 4 stand).
    chances = [
        0.0001,
        0.0004,
        0.0019,
        0.0095,
        0.0201,
        0.0278,
        0.0298,
        0.0344,
        0.0459,
        0.3240,
        0.4262,
        0.5719,
        0.6528,
        0.7590,
        1.0,
    ]
    assert robust_statistics.discoveries(chances).sum() == 4
    assert robust_statistics.discoveries(chances[:6], of=15).sum() == 4
    assert robust_statistics.discoveries([]).tolist() == []


def test_discoveries_are_those_of_scipy():
    from scipy.stats import false_discovery_control

    for seed in range(100):
        noise = np.random.default_rng(seed)
        chances = noise.random(noise.integers(1, 200)) ** 4
        assert robust_statistics.discoveries(chances).tolist() == (false_discovery_control(chances) <= 0.05).tolist()


@pytest.mark.parametrize(
    ("good", "groups", "reach"),
    [
        ([5.0, 4.0, 1.0], [0] * 3, [5.0]),
        # One that is far better than all others counts for little more than the second.
        ([50.0, 3.0, 1.0], [0] * 3, [3.9]),
        ([5.0, 1.0, 1.2], [0, 1, 1], [0.0, 1.2]),
        ([5.0], [0], [0.0]),
        ([], [], []),
    ],
)
def test_how_far_a_group_goes_on_the_good_side(good, groups, reach):
    found = robust_statistics.good_limit(
        np.array(good), np.array(groups, dtype=int), robust_statistics.SideLimit(0.5, 3.0)
    )
    wanted = [np.exp(0.5 + 3 / 10) * far for far in reach]
    assert found.tolist() == pytest.approx(wanted)


def test_a_long_tail_on_the_good_side_reaches_farther_on_the_bad_one():
    # Of 8, two of 4 and 2 beyond a third of 1; of 40, ten. The mean of their logarithms is Hill's.
    short, long = [4.0, 2.0] + [1.0] * 6, [8.0] * 2 + [4.0] * 8 + [2.0] * 30
    for far, tail in ((short, [1.3 * 2, 2]), (long, [4.0] * 2 + [2.0] * 8)):
        limit = robust_statistics.good_limit(
            np.array(far), np.zeros(len(far), dtype=int), robust_statistics.SideLimit(0.0, tails=2.0)
        )
        assert limit[0] == pytest.approx(min(far[0], 1.3 * far[1]) * np.exp(2 * np.mean(np.log(tail))))


def test_of_many_groups_a_drive_has_to_be_farther_off_to_stand_out():
    """One drive of 24 is a fifth beyond its limit, in one group of many, or in all of them."""

    def standing(groups, bad):
        far = np.full(24, -3.0)
        limit = min(
            robust_statistics.good_limit(-far, np.zeros(24, dtype=int), reach)[0]
            for reach in (robust_statistics.ALONE, robust_statistics.TOGETHER)
        )
        z = np.tile(far, groups)
        z[: 24 * bad : 24] = 1.2 * limit
        of_group = np.repeat(np.arange(groups), 24)
        return int(
            robust_statistics.stand_out(z, robust_statistics.p_value(z, 10**6), of_group, np.arange(len(z))).sum()
        )

    assert [standing(1, 1), standing(2, 1), standing(16, 1), standing(16, 16)] == [1, 1, 0, 16]


def stands_out(worse, best):
    """Which figures of the first of 24 drives do; those of the next two are so good, all others good by 1."""
    figures = np.full((24, 6), -1.0)
    figures[0, : len(worse)] = worse
    figures[1:3, : len(best)] = [-z for z in best]
    drives = np.repeat(np.arange(24), 6)
    z = figures.ravel()
    found = robust_statistics.stand_out(
        z, robust_statistics.p_value(z, 10**6), np.zeros(len(z), dtype=int), drives
    ).reshape(24, 6)
    assert not found[1:].any()
    return found[0].tolist()


def test_a_drive_stands_out_by_one_figure_or_by_all_of_its_own_together():
    assert stands_out([9.0], [3.0])[0]
    # Beyond chance, and no further off than twice what the good side does.
    assert not any(stands_out([6.0], [3.0] * 6))
    assert stands_out([6.0] * 4, [1.0] * 6) == [True] * 4 + [False] * 2
    # What is no figure of chance by itself is none with others.
    assert stands_out([20.0, 2.0], [1.0] * 6) == [True] + [False] * 5


@pytest.mark.parametrize("latency", ["write_mean_latency_us", "write_p50_latency_us"])
def test_a_rate_and_its_latency_are_as_far_off(latency):
    rates = 1000 * np.exp(0.1 * np.random.default_rng(4).standard_normal(24))
    one, other = (
        robust_statistics.score_leave_one_out("write_iops", rates),
        robust_statistics.score_leave_one_out(latency, 32e6 / rates),
    )
    assert one.z == pytest.approx(other.z) and one.p == pytest.approx(other.p)


def test_tails_are_even_on_a_log_scale():
    held = robust_statistics.score_leave_one_out("write_p99_9_latency_us", np.exp(np.arange(-6.0, 7.0)))
    assert held.z == pytest.approx(-held.z[::-1])


def test_a_drive_without_any_speed_stands_out():
    held = robust_statistics.score_leave_one_out("iops", [0.0, *np.linspace(99, 101, 11)])
    assert held.z[0] > 30 and held.by[0] == 1 and np.isfinite(held.z).all()


@pytest.mark.parametrize("metric", ["write_iops", "write_mean_latency_us", "write_p99_9_latency_us"])
@pytest.mark.parametrize("told", [2.0**64, 1e-5])
@pytest.mark.parametrize("liars", [1, 11])
def test_what_hosts_make_up_gives_figures_all_the_same(metric, told, liars):
    """As far as the gate lets numbers in: most of them from one drive, or from all but one."""
    values = [told] * liars + list(np.linspace(99, 101, 12 - liars))
    held = robust_statistics.score_leave_one_out(metric, values)
    assert all(np.isfinite(each).all() for each in held)
    groups, drives = np.zeros(12, dtype=int), np.arange(12)
    assert np.isfinite(robust_statistics.sides(held.z, drives, 12)).all()
    robust_statistics.stand_out(held.z, held.p, groups, drives)


SIDES = ("less", "greater", "two-sided")
# Small whole numbers are often equal or 0; the others are neither.
TIED = st.lists(st.integers(-4, 4), min_size=1, max_size=8)
APART = st.lists(st.floats(-1e6, 1e6).filter(bool), min_size=1, max_size=50, unique_by=abs)


@given(values=TIED)
def test_equal_differences_and_those_of_0_are_as_all_signs_say(values):
    counted = numpy.array([value for value in values if value], dtype=float)
    ranks = stats.rankdata(abs(counted))
    sums = numpy.array([ranks[list(signs)].sum() for signs in itertools.product((True, False), repeat=len(counted))])
    less, greater = (sums <= ranks[counted > 0].sum()).mean(), (sums >= ranks[counted > 0].sum()).mean()
    found = [robust_statistics.signed_rank_p_value(numpy.array(values, dtype=float), side) for side in SIDES]
    assert found == pytest.approx([less, greater, min(1, 2 * min(less, greater))])


@given(values=APART)
def test_others_are_as_scipy_says(values):
    for side in SIDES:
        expected = stats.wilcoxon(values, alternative=side, method="exact").pvalue
        assert robust_statistics.signed_rank_p_value(numpy.array(values), side) == pytest.approx(expected)


@pytest.mark.parametrize("side", SIDES)
def test_more_are_scipys(side):
    values = numpy.random.default_rng(8).normal(0.2, 1, robust_statistics.MOST_EXACT + 1)
    assert robust_statistics.signed_rank_p_value(values, side) == stats.wilcoxon(values, alternative=side).pvalue


def test_without_a_difference_nothing_is_shown():
    assert [robust_statistics.signed_rank_p_value(numpy.zeros(9), side) for side in SIDES] == [1, 1, 1]


def test_what_is_no_number_shows_nothing():
    """An infinite figure against itself: the ratio is no number, and must not make two nights the same."""
    assert numpy.isnan(robust_statistics.signed_rank_p_value(numpy.array([numpy.nan, *range(1, 10)]), "greater"))
    figures = [numpy.inf, *[1.0] * 9]
    with numpy.errstate(invalid="ignore"):
        assert trends.paired("latency_p99_us", figures, figures).verdict == UNKNOWN


def test_thirteen_drives_of_which_some_are_equal_need_no_scipy(monkeypatch):
    """It tried 8,192 signs for each figure."""
    monkeypatch.setattr(stats, "wilcoxon", lambda *_values, **_options: pytest.fail("asked scipy"))
    differences = numpy.array([0, 0, 0, 1, 1, 1, 2, 2, 3, 4, 5, 6, 7], dtype=float)
    assert robust_statistics.signed_rank_p_value(differences, "greater") == pytest.approx(2**-10)
