# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Wilcoxon's test against scipy's, and against all signs where scipy has no exact one."""

from __future__ import annotations

import itertools

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.peers import trends, wilcoxon
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.verdict.verdicts import UNKNOWN

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
    found = [wilcoxon.p_value(numpy.array(values, dtype=float), side) for side in SIDES]
    assert found == pytest.approx([less, greater, min(1, 2 * min(less, greater))])


@given(values=APART)
def test_others_are_as_scipy_says(values):
    for side in SIDES:
        expected = stats.wilcoxon(values, alternative=side, method="exact").pvalue
        assert wilcoxon.p_value(numpy.array(values), side) == pytest.approx(expected)


@pytest.mark.parametrize("side", SIDES)
def test_more_are_scipys(side):
    values = numpy.random.default_rng(8).normal(0.2, 1, wilcoxon.MOST_EXACT + 1)
    assert wilcoxon.p_value(values, side) == stats.wilcoxon(values, alternative=side).pvalue


def test_without_a_difference_nothing_is_shown():
    assert [wilcoxon.p_value(numpy.zeros(9), side) for side in SIDES] == [1, 1, 1]


def test_what_is_no_number_shows_nothing():
    """An infinite figure against itself: the ratio is no number, and must not make two nights the same."""
    assert numpy.isnan(wilcoxon.p_value(numpy.array([numpy.nan, *range(1, 10)]), "greater"))
    figures = [numpy.inf, *[1.0] * 9]
    with numpy.errstate(invalid="ignore"):
        assert trends.paired("latency_p99_us", figures, figures).verdict == UNKNOWN


def test_thirteen_drives_of_which_some_are_equal_need_no_scipy(monkeypatch):
    """It tried 8,192 signs for each figure."""
    monkeypatch.setattr(stats, "wilcoxon", lambda *_values, **_options: pytest.fail("asked scipy"))
    differences = numpy.array([0, 0, 0, 1, 1, 1, 2, 2, 3, 4, 5, 6, 7], dtype=float)
    assert wilcoxon.p_value(differences, "greater") == pytest.approx(2**-10)
