# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A short sample of tests/bench/fleet_statistics.py, whose tables are in docs/fleet.md."""

from __future__ import annotations

import numpy as np
import pytest

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.peers import outliers
from ansible_collections.ssdlab.fleet.tests.bench import fleet_statistics as bench


@pytest.mark.parametrize("drives", [8, 24])
def test_good_fleets_are_flagged_no_more_often_than_is_said(drives):
    rates = bench.clean(100, drives, bench.Noise("normal", 0.03), seed=7)
    # At most 5 of 100 are expected; 12 would come by chance once in a thousand such samples.
    assert rates.by_chance_alone < 0.12 and rates.drive < 0.12 and rates.host < 0.12


@pytest.mark.parametrize("kind", ["t", "lognormal"])
def test_noise_with_long_tails_is_flagged_no_more_often(kind):
    # The same 12 of 100. Before the good side was looked at a third of the fleets with noise of Student's t had one.
    assert bench.clean(100, 24, bench.Noise(kind, 0.1), seed=7).drive < 0.12


@pytest.mark.parametrize("kind", ["normal", "t", "lognormal"])
def test_what_is_counted_is_what_the_judge_says(kind):
    values = bench.good(np.random.default_rng(3), 24, bench.Noise(kind, 0.02))
    values[0, 5] *= 0.2
    judged = outliers.held(bench.table(values))
    assert bench.flagged(values)[0].tolist() == judged["outlier"].tolist() and judged["outlier"].any()


def test_a_bad_drive_and_a_bad_host_are_found():
    assert bench.power(20, 24, bench.Noise("normal", 0.01), 0.15) == (1.0, 1.0)
    assert bench.power(20, 24, bench.Noise("normal", 0.01), 0.0)[0] < 0.2
