# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.ssdlab.fleet.plugins.module_utils.measure.pooled_moments import Moments, of_all, pooled

LATENCIES = st.lists(st.integers(0, 16 * 10**9), min_size=1, max_size=50)


def moments(values):
    return Moments(len(values), statistics.fmean(values), statistics.stdev(values) if len(values) > 1 else 0.0)


@given(st.lists(LATENCIES, min_size=1, max_size=5))
def test_groups_pooled_are_one_group_of_all(groups):
    whole = moments([value for group in groups for value in group])
    found = pooled([*map(moments, groups), Moments(0, 0.0, 0.0)])
    assert found == pytest.approx(whole, rel=1e-9, abs=1e-3)


def test_of_nothing_there_is_nothing():
    assert pooled([]) == Moments(0, 0.0, 0.0) and of_all(Moments(0, 0.0, 0.0)) == 0.0


@given(LATENCIES)
def test_the_deviation_of_all_is_that_of_the_population(values):
    assert of_all(moments(values)) == pytest.approx(statistics.pstdev(values), rel=1e-9, abs=1e-3)
