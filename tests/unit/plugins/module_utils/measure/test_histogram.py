# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.ssdlab.fleet.plugins.module_utils.measure import histogram

LATENCIES = st.lists(st.integers(1, 10**10), min_size=1, max_size=300)
LAST_NS = histogram.highest_of(histogram.value_of(histogram.MOST_BINS - 1))


def counted(latencies):
    return histogram.merge({histogram.value_of(histogram.bin_of(ns)): 1} for ns in latencies)


def test_the_bins_lie_side_by_side_and_are_told_by_their_middle():
    """As fio 3.33 tells them: 1 ns wide below 128, then 64 bins for each power of two."""
    lowest = 0
    for number in range(histogram.MOST_BINS):
        value = histogram.value_of(number)
        assert histogram.bin_of(value) == number and histogram.lowest_of(value) == lowest
        lowest = histogram.highest_of(value) + 1
        assert histogram.bin_of(lowest - 1) == number
    assert lowest == 1 << 34 and histogram.bin_of(1 << 40) == histogram.MOST_BINS - 1
    # Seen in the output of fio: a longest read of 10,844,787 ns, a shortest of 1,602.
    assert (histogram.value_of(histogram.bin_of(10_844_787)), histogram.value_of(histogram.bin_of(1602))) == (
        10_813_440,
        1608,
    )


@given(st.lists(LATENCIES, min_size=1, max_size=6))
def test_merging_loses_and_adds_nothing(rounds):
    assert histogram.merge(counted(latencies) for latencies in rounds) == counted(
        [ns for latencies in rounds for ns in latencies]
    )


@given(LATENCIES, st.sampled_from(histogram.PERCENTILES))
def test_a_percentile_is_the_bin_of_that_very_io(latencies, percent):
    ordered = sorted(latencies)
    rank = -(-Fraction(float(percent)) * len(ordered) // 100)
    assert histogram.bin_of(ordered[int(rank) - 1]) == histogram.bin_of(
        histogram.percentile_ns(counted(latencies), percent)
    )


@given(LATENCIES, st.integers(1, 20_000_000))
def test_a_share_counts_no_io_that_took_longer(latencies, limit_us):
    bins = counted(latencies)
    share = histogram.share_within_pct(bins, limit_us)
    true = 100 * sum(ns <= limit_us * 1000 for ns in latencies) / len(latencies)
    nearly = 100 * sum(ns * (1 + 1 / 64) + 1 <= limit_us * 1000 for ns in latencies) / len(latencies)
    assert nearly - 1e-9 <= share <= true + 1e-9


@pytest.mark.parametrize(
    "percent, needed", [("50", 20), ("99", 1000), ("99.9", 10_000), ("99.99", 100_000), ("99.9999", 10_000_000)]
)
def test_ten_ios_lie_beyond_a_percentile_or_it_is_null(percent, needed):
    assert histogram.needed_ios(percent) == needed
    for ios, known in ((needed - 1, False), (needed, True)):
        assert (histogram.percentiles_us({80_384: ios - 1, 897_024: 1})[percent] is not None) == known


def test_one_bad_round_of_five_is_not_averaged_away():
    """Four rounds with a p99.9 of 500 µs and one of 8,000: the mean of the five is 2,000, but that of all their I/Os is
    8,000.
    """
    good, bad = counted([100_000] * 9980 + [500_000] * 20), counted([100_000] * 9900 + [8_000_000] * 100)
    own = [histogram.metrics({"write": bins})["write_p99_9_latency_us"] for bins in (good, good, good, good, bad)]
    assert sum(own) / 5 == pytest.approx(2000, rel=0.01)
    pooled = histogram.metrics({"write": histogram.merge([good, good, good, good, bad])}, [1000, 2500])
    assert pooled["write_p99_9_latency_us"] == pytest.approx(8000, rel=0.01)
    assert (pooled["write_ios"], pooled["write_within_1ms_pct"], pooled["within_2500us_pct"]) == (50_000, 99.8, 99.8)
    assert pooled["write_p99_99_latency_us"] is None and histogram.too_few("write_p99_99_latency_us", pooled) == (
        50_000,
        100_000,
    )
    assert (
        histogram.too_few("write_p99_latency_us", pooled) is None
        and histogram.too_few("read_p99_latency_us", pooled) is None
    )


@pytest.mark.parametrize(
    "bins", [{"50433": 1}, {"-1": 1}, {"x": 1}, {"50432": -1}, {"50432": 1.5}, {"50432": True}, {str(LAST_NS): 1}]
)
def test_what_is_no_histogram_is_refused(bins):
    with pytest.raises(ValueError):
        histogram.parse_bins({"bins": bins})


def test_empty_bins_of_older_fio_are_left_out():
    assert histogram.parse_bins({"897024": 1, "80384": 2, "50432": 0}) == {80_384: 2, 897_024: 1}
