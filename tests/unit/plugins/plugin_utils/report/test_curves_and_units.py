# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Curves are thinned and compared, and figures written with their units."""

from __future__ import annotations

import re
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.common import units
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.report import thinning
from ansible_collections.ssdlab.fleet.tests.fixtures.report import generator
from ansible_collections.ssdlab.fleet.tests.unit.plugins.plugin_utils.report.built import all_pages, made


@given(
    st.lists(st.one_of(st.none(), st.floats(min_value=0, max_value=1e9)), min_size=1, max_size=400),
    st.integers(min_value=2, max_value=120),
)
def test_thinning_keeps_the_extremes_and_the_order(values, most):
    xs, ys = thinning.thin(list(range(len(values))), values, most)
    assert len(ys) <= max(most, 2) and xs == sorted(xs)
    assert all(values[x] == y for x, y in zip(xs, ys))
    known = [value for value in values if value is not None]
    if known:
        assert max(known) in ys and min(known) in ys


@pytest.mark.parametrize(
    ("values", "window", "expected"),
    [
        (
            [90, 91, 90, 60, 45, 41, 40, 40, 40, 40],
            range(5, 10),
            {"fresh_end": 3, "level_start": 5, "window_start": 5, "window_end": 9},
        ),
        (
            [90, 91, 50, 90, 60, 41, 40, 40, 40, 40, 40],
            range(6, 11),
            {"fresh_end": 4, "level_start": 5, "window_start": 6, "window_end": 10},
        ),
        ([40, 41, 40, 40, 40], range(5), {"fresh_end": 0, "level_start": 0, "window_start": 0, "window_end": 4}),
        ([40, 41], range(3, 8), None),
        ([None, None], [0, 1], None),
        ([], [], None),
    ],
)
def test_phases(values, window, expected):
    assert thinning.phases(values, list(window)) == expected


def test_the_median_curve_of_the_others_ends_when_most_have_ended():
    curves = [([1, 2, 3], [1, 2, 3], [10, 20, 30]), ([1, 2], [1, 2], [12, 22]), ([1], [1], [50])]
    found = thinning.medians_without(curves, 100)
    assert [(indexes, columns[2]) for indexes, columns in found] == [
        ([0, 1], [31, 22]),
        ([0, 1], [30, 20]),
        ([0, 1], [11, 21]),
    ]


@given(st.lists(st.floats(min_value=-1e6, max_value=1e6), min_size=2, max_size=20))
def test_the_median_without_a_drive_is_that_of_the_others(values):
    for index, value in enumerate(values):
        others = values[:index] + values[index + 1 :]
        assert thinning.median_without(sorted(values), value) == pytest.approx(statistics.median(others))
    assert thinning.median_without(sorted(values), None) == pytest.approx(statistics.median(values))


@pytest.mark.parametrize(
    ("rates", "distances"),
    [
        # With itself in it the median of the nine would be 20,000, and the middle one would be at no distance.
        ([40_000] * 4 + [20_000] + [10_000] * 4, [(0, "below"), *[(50, "below")] * 4, *[(150, "above")] * 4]),
        # Too few to judge by.
        ([40_000] * 3 + [10_000] * 4, []),
    ],
)
def test_a_drive_is_compared_with_the_others_where_they_are_enough(tmp_path, rates, distances):
    drives = [generator.Drive("h", f"S{n}", generator.MODEL, 90_000, iops, "steady") for n, iops in enumerate(rates)]
    run_dir = generator.make(tmp_path, drives)
    made(run_dir)
    said = re.findall(r"([0-9.]+) % (above|below) the median of the others of its model", "".join(all_pages(run_dir)))
    # Against 25,000, 30,000 and 15,000: 20 % and 67 % below, 167 % above, in steps of 50 as there is noise.
    assert sorted((50 * round(float(figure) / 50), side) for figure, side in said) == distances


@pytest.mark.parametrize(
    ("value", "short"),
    [
        (41234.567, 41235),
        (0.0123456, 0.012346),
        (0, 0),
        (float("nan"), None),
        (float("inf"), None),
        (1e300, None),
        (-(10**400), None),
        (None, None),
        (True, None),
        ("1", None),
    ],
)
def test_significant(value, short):
    assert thinning.significant(value) == short


@pytest.mark.parametrize(
    ("metric", "value", "text"),
    [
        ("write_iops", 41200.5, "41,200 IOPS"),
        ("bandwidth", 512_345_678, "512.3 MB/s"),
        ("read_p99_latency_us", 89.123, "89.12 µs"),
        ("iops", 0, "0 IOPS"),
        ("other", 0.07131, "0.07131"),
    ],
)
def test_figures_have_units_and_separators(metric, value, text):
    assert units.show(metric, value) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.04, "0.04 s"),
        (59, "59 s"),
        (250.4, "4 min 10 s"),
        (3600, "1 h 0 min"),
        (25500, "7 h 5 min"),
        (59.99, "1 min 0 s"),
    ],
)
def test_durations(seconds, text):
    assert units.duration(seconds) == text


@given(st.floats(min_value=1e-3, max_value=1e12), st.floats(min_value=1e-3, max_value=1e12))
def test_different_figures_never_look_the_same(value, limit):
    texts = units.format_distinct("write_iops", value, limit)
    assert (texts[0] == texts[1]) <= (abs(value - limit) <= 1e-9 + 1e-14 * limit)
