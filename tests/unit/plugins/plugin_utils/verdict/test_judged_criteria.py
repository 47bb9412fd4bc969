# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A criterion that every drive meets, or the worst ones, is a slip and no criterion."""

from __future__ import annotations

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.records.criterion import Criterion
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.verdict import judged_criteria


@pytest.mark.parametrize(
    ("criterion", "says"),
    [
        ({"metric": "write_iops", "max": 800}, "a rate or a share with a max alone passes the slowest drive"),
        ({"metric": "bandwidth", "max": 800e6}, "a rate or a share with a max alone passes the slowest drive"),
        ({"metric": "write_within_1ms_pct", "max": 99}, "a rate or a share with a max alone"),
        ({"metric": "write_mean_latency_us", "min": 100}, "a latency with a min alone passes the slowest drive"),
        ({"metric": "write_iops", "max_of_median": 1.1}, "with a max_of_median alone passes the slowest drive"),
        ({"metric": "write_p99_latency_us", "min_of_median": 0.9}, "did you mean max_of_median?"),
        ({"metric": "bandwidth", "max": 8e8, "max_of_median": 1.1}, "a rate or a share with a max alone passes"),
        ({"metric": "write_p99_latency_us", "max": 2e7}, "beyond what the histogram resolves"),
        ({"metric": "write_within_1ms_pct", "min": 0.999}, "shares are in % (99.9 %: 99.9)"),
        ({"metric": "write_iops", "min": 0}, "every figure is at least 0"),
        ({"metric": "alternation_pct", "min": 5}, "a min alone passes the worst drive; give max"),
        ({"metric": "slowest_second_pct", "max_of_median": 1.5}, "it is 0 on most drives"),
        ({"metric": "throttled_pct", "max": 101}, "above 100 %"),
        ({"metric": "write_p99_latency_us", "max_of_median": 120}, "120 of it is met by all; 120 % is 1.2"),
    ],
)
def test_what_every_drive_meets_is_no_criterion(criterion, says):
    (problem,) = judged_criteria.criterion_problems(criterion)
    assert says in problem


@pytest.mark.parametrize(
    "criterion",
    [
        {"metric": "write_iops", "min": 700, "max": 800},
        {"metric": "write_iops", "min_of_median": 0.9, "max_of_median": 1.1},
        {"metric": "write_p99_latency_us", "max_of_median": 1.5},
        {"metric": "write_mean_latency_us", "min": 100, "max": 900},
        {"metric": "write_max_latency_us", "max": 3e7},
        {"metric": "write_p99_latency_us", "max": 5e6},
        {"metric": "write_within_1ms_pct", "min": 99.9},
        {"metric": "write_iops", "min": 5},
        {"metric": "hourly_drift_pct", "max": 0.5},
        {"metric": "throttled_pct", "max": 0},
    ],
)
def test_what_a_drive_can_miss_is_one(criterion):
    assert judged_criteria.criterion_problems(criterion) == []


@pytest.mark.parametrize(("left_out", "names"), [(["wsat"], "wsat"), (["iops", "wsat-8k"], "wsat-8k"), (["iops"], "")])
def test_a_criterion_on_what_the_time_budget_left_out_is_said(left_out, names):
    found = judged_criteria.of_left_out(Criterion(test="wsat*", metric="write_iops", min=500), left_out, {})
    assert found == (
        [f"criterion wsat* write_iops min 500 was not judged: ssd_time_budget left out {names}"] if names else []
    )


@pytest.mark.parametrize("criterion", [{}, {"test": "*"}, {"test": None}])
def test_a_criterion_that_names_no_test_is_one_on_what_was_left_out_too(criterion):
    found = judged_criteria.of_left_out(Criterion(**criterion, metric="write_iops", min=500), ["wsat"], {})
    assert len(found) == 1 and found[0].endswith("was not judged: ssd_time_budget left out wsat")
    assert judged_criteria.of_left_out(Criterion(**criterion, metric="write_iops", min=500), [], {}) == []


WRITES, MIXES = "rand-4k-w100-tc1-qd4", "rand-4k-r65-tc1-qd4"


@pytest.mark.parametrize(
    ("criterion", "cells", "counts"),
    [
        ({"metric": "read_iops"}, [WRITES], False),
        ({"metric": "read_iops"}, [WRITES, MIXES], True),
        ({"metric": "read_iops", "cell": WRITES}, [WRITES, MIXES], False),
        ({"metric": "read_iops", "cell": MIXES}, [WRITES], False),
        ({"metric": "write_iops"}, [WRITES], True),
        ({"metric": "iops"}, [WRITES], True),
        # A name that tells nothing of its load.
        ({"metric": "read_iops"}, ["streams"], True),
    ],
)
def test_a_criterion_without_a_test_is_on_those_left_out_that_could_have_its_figure(criterion, cells, counts):
    assert bool(judged_criteria.of_left_out(Criterion(**criterion, min=1), ["t"], {"t": cells})) is counts
