# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What criteria make of a verdict: limits, shares, models, and figures that are not there."""

from __future__ import annotations

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.records.criterion import Criterion
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.verdict import judge, judged_criteria
from ansible_collections.ssdlab.fleet.tests.unit.plugins.plugin_utils.verdict.judged_runs import (
    MODEL,
    WSAT_MIN,
    drive_record,
    one,
    run_json,
    test_record,
)


@pytest.mark.parametrize(
    ("criterion", "reference", "verdict", "reason"),
    [
        (
            {"min_of_median": 0.9},
            800.0,
            "pass",
            "write_iops 800 >= 720 (criterion wsat write_iops min_of_median 0.9: median)",
        ),
        (
            {"min_of_median": 0.9},
            1000.0,
            "fail",
            "write_iops 800 < 900 (criterion wsat write_iops min_of_median 0.9: median)",
        ),
        (
            {"min_of_median": 0.9, "max_of_median": 1.1},
            700.0,
            "fail",
            "write_iops 800 > 770 (criterion wsat write_iops min_of_median 0.9 max_of_median 1.1: median)",
        ),
        (
            {"min": 900, "min_of_median": 0.1},
            800.0,
            "fail",
            "write_iops 800 < 900 (criterion wsat write_iops min 900 min_of_median 0.1: median)",
        ),
        (
            {"min": 900, "min_of_median": 0.9},
            None,
            "fail",
            "write_iops 800 < 900 (criterion wsat write_iops min 900 min_of_median 0.9: median)",
        ),
        (
            {"min": 700, "min_of_median": 0.9},
            None,
            "invalid",
            "median (criterion wsat write_iops min 700 min_of_median 0.9)",
        ),
        (
            {"min_of_baseline": 1, "baseline": "r1"},
            800.0,
            "pass",
            "write_iops 800 >= 800 (criterion wsat write_iops min_of_baseline 1 run r1: median)",
        ),
    ],
)
def test_a_limit_may_be_a_share_of_a_reference(criterion, reference, verdict, reason):
    run = run_json([{"test": "wsat", "metric": "write_iops", **criterion}])
    found = judge.judge(
        run, [drive_record(), test_record()], lambda *_of: judged_criteria.Reference(reference, "median")
    )["drives"][0]
    assert (found["verdict"], found["reasons"]) == (verdict, ["wsat: " + reason])


@pytest.mark.parametrize(
    ("criterion", "verdict", "reason"),
    [
        ({"metric": "write_iops", "min": 900}, "fail", "wsat: write_iops 800 < 900 (criterion write_iops min 900)"),
        ({"metric": "write_iops", "min": "900"}, "fail", "wsat: write_iops 800 < 900 (criterion write_iops min 900)"),
        (
            {"test": "ws*", "metric": "write_p99_latency_us", "max": 800},
            "fail",
            "wsat: write_p99_latency_us 812.5 µs > 800 µs (criterion ws* write_p99_latency_us max 800)",
        ),
        (
            {"metric": "write_bandwidth", "min": 4e6},
            "fail",
            "wsat: write_bandwidth 3.277 MB/s < 4 MB/s (criterion write_bandwidth min 4000000)",
        ),
        (
            {"metric": "write_iops", "min": 700, "max": 790},
            "fail",
            "wsat: write_iops 800 > 790 (criterion write_iops min 700 max 790)",
        ),
        (
            {"metric": "write_iops", "min": 700, "max": 800},
            "pass",
            "wsat: write_iops 800 >= 700 (criterion write_iops min 700 max 800)",
        ),
        ({"metric": "write_iops", "min": 900, "model": "INTEL*"}, "pass", "no criterion applied"),
        (
            {"metric": "write_iops", "min": 900, "model": "MTFD*"},
            "fail",
            "wsat: write_iops 800 < 900 (criterion write_iops min 900 (model MTFD*))",
        ),
        (
            {"metric": "write_iops", "min": 900, "cell": "c2"},
            "fail",
            "wsat: write_iops 70 < 900 (criterion c2 write_iops min 900)",
        ),
        (
            {"metric": "wirte_iops", "min": 1},
            "error",
            "criterion wirte_iops min 1 has no figure to compare with: wsat gave no wirte_iops",
        ),
        (
            {"metric": "write_iops", "min": 1, "cell": "c9"},
            "error",
            "criterion c9 write_iops min 1 has no figure to compare with: wsat gave no write_iops of cell c9",
        ),
        (
            {"test": "iops", "metric": "write_iops", "min": 1},
            "error",
            "criterion iops write_iops min 1 names no test of this drive's plan (wsat)",
        ),
        (
            {"metric": "write_iops"},
            "error",
            "criterion write_iops has no limit; give one of min, max, min_of_median, max_of_median, min_of_baseline, "
            "max_of_baseline",
        ),
        ({"metric": "write_iops", "min": "many"}, "error", "criterion write_iops min many: min is not a number"),
        ({"metric": "write_iops", "min": float("nan")}, "error", "criterion write_iops min nan: min is not a number"),
        ({"metric": "write_iops", "minimum": 1, "max": 1e9}, "error", None),
        # A limit that only another unit explains.
        (
            {"metric": "write_bandwidth", "min": 500},
            "error",
            (
                "criterion write_bandwidth min 500: min: 500 bytes/s is less than any drive does; bandwidths are in "
                "bytes/s (500 MB/s: 500e6)"
            ),
        ),
        (
            {"metric": "write_p99_latency_us", "max": 0.8},
            "error",
            (
                "criterion write_p99_latency_us max 0.8: max: 0.8 µs is less than any drive takes; latencies are in µs "
                "(2 ms: 2000)"
            ),
        ),
        (
            {"metric": "write_p99_latency_ms", "max": 2},
            "error",
            "criterion write_p99_latency_ms max 2 has no figure to compare with: wsat gave no write_p99_latency_ms",
        ),
        ({"metric": "write_iops", "min": 800}, "pass", None),
        ({"metric": "write_iops", "min": 1, "max": 800}, "pass", None),
        ({"metric": "write_iops", "min": 800.0000001}, "fail", None),
        (
            {"metric": "write_iops", "min": 900, "max": 700},
            "error",
            "criterion write_iops min 900 max 700: min is above max, so no figure can meet it",
        ),
        ({"metric": "write_iops", "min": 800, "max": 800}, "pass", None),
        (
            {"metric": "write_iops", "max": -1},
            "error",
            "criterion write_iops max -1: max is below 0, which no figure can be",
        ),
        (
            {"metric": "write_iops", "min": 10**400},
            "error",
            f"criterion write_iops min {10**400}: min is not a number",
        ),
        (
            {"metric": "write_mean_latency_us_fitted_end", "max": 0.8},
            "error",
            (
                "criterion write_mean_latency_us_fitted_end max 0.8: max: 0.8 µs is less than any drive takes; "
                "latencies are in µs (2 ms: 2000)"
            ),
        ),
        ({"metric": "write_iops", "min": True}, "error", "criterion write_iops min True: min is not a number"),
        ({"metric": "write_iops", "min": "inf"}, "error", "criterion write_iops min inf: min is not a number"),
        (
            "write_iops > 500",
            "error",
            "criterion 'write_iops > 500' is not a mapping with the keys metric and min or max",
        ),
    ],
)
def test_criteria(criterion, verdict, reason):
    cells = [{"cell": "c2", "metrics": {"write_iops": 70}}]
    judged = one([drive_record(), test_record(cells=cells)], criteria=[criterion])
    assert judged["verdict"] == verdict
    assert reason in judged["reasons"] or reason is None


def test_a_missed_criterion_outweighs_an_error_elsewhere():
    records = [drive_record("error"), test_record(iops=1), test_record("error", test="iops")]
    assert one(records, tests=("wsat", "iops"))["verdict"] == "fail"


def test_a_criterion_is_no_error_while_its_test_was_not_measured():
    judged = one([drive_record(), test_record("not_steady", metrics={})])
    assert judged["verdict"] == "invalid"
    assert not [reason for reason in judged["reasons"] if "no figure" in reason]


TAIL = {"test": "wsat", "metric": "write_p99_9999_latency_us", "max": 9000}


@pytest.mark.parametrize(
    ("criterion", "iops", "verdict"),
    [
        (TAIL, 800, "invalid"),
        ({**TAIL, "test": "*"}, 800, "invalid"),
        ({**TAIL, "cell": "c2"}, 800, "invalid"),
        (TAIL, 400, "fail"),
    ],
)
def test_a_percentile_that_too_few_ios_lie_beyond_is_invalid_and_no_error(criterion, iops, verdict):
    metrics = {"write_iops": iops, "write_ios": 2_100_000, "write_p99_9999_latency_us": None}
    record = test_record(metrics=metrics, cells=[{"cell": "c2", "metrics": metrics}])
    found = one([drive_record(), record], criteria=[WSAT_MIN, criterion])
    assert found["verdict"] == verdict
    if verdict == "invalid":
        (reason,) = found["reasons"]
        assert (
            "2,100,000 I/Os in the window are too few, 10,000,000 are needed" in reason
            and judged_criteria.describe_given(criterion) in reason
        )


@pytest.mark.parametrize(
    ("ios", "rounds", "steady_state", "is_disturbance"),
    [
        # All 5 rounds would have had enough: 4 of them were disturbed.
        (2_100_000, 5, [], True),
        # Nor would all of them.
        (1_900_000, 5, [], False),
        # The window is as long as it is, whatever was disturbed.
        (2_100_000, 5, None, False),
    ],
)
def test_a_percentile_that_disturbed_rounds_left_too_few_ios_for_names_what_disturbed(
    ios, rounds, steady_state, is_disturbance
):
    busy = {"cause": "host_limited", "level": "disturbs", "rounds": [[1, 4]], "count": 4, "first": "round 1, c: busy"}
    metrics = {"write_iops": 800, "write_ios": ios, "write_p99_9999_latency_us": None}
    more = {} if steady_state is None else {"steady_state": steady_state}
    record = test_record(**{"rounds": rounds, "metrics": metrics, "validity": [busy], **more})
    (reason,) = judged_criteria.unresolved_percentile(Criterion(**TAIL), record, "criterion")
    assert ("is unknown: host busy in 4 of 5 rounds (round 1, c: busy); the" in reason) == is_disturbance
    assert ("measure longer" in reason) != is_disturbance


def test_a_host_cannot_make_up_a_percentile_of_too_few_ios():
    record = test_record(metrics={"write_iops": 800, "write_ios": 2_100_000, "write_p99_9999_latency_us": 12.0})
    assert one([drive_record(), record], criteria=[TAIL])["verdict"] == "invalid"


def test_a_share_within_a_time_is_a_figure_like_others():
    record = test_record(metrics={"write_iops": 800, "write_within_1ms_pct": 99.93})
    found = one([drive_record(), record], criteria=[{"metric": "write_within_1ms_pct", "min": 99.95}])
    assert (found["verdict"], found["reasons"][0].startswith("wsat: write_within_1ms_pct 99.93 % < 99.95 %")) == (
        "fail",
        True,
    )


def test_a_criterion_without_a_test_needs_one_test_that_has_the_metric():
    records = [drive_record(), test_record(), test_record(test="tp", metrics={"read_iops": 5})]
    judged = one(records, tests=("wsat", "tp"), criteria=[{"metric": "write_iops", "min": 500}])
    assert [test["verdict"] for test in judged["tests"]] == ["pass", "pass"]
    assert judged["verdict"] == "pass"


@pytest.mark.parametrize("value", [None, float("nan"), "none"])
@pytest.mark.parametrize("named", [{}, {"test": "wsat"}])
def test_a_figure_that_is_not_there_is_no_pass(named, value):
    """Without a named test one with a figure is enough only where the others don't have the metric at all."""
    other = test_record(test="iops")
    records = [drive_record(), test_record(metrics={"write_iops": value}), other]
    found = one(records, tests=("wsat", "iops"), criteria=[{"metric": "write_iops", "min": 500, **named}])
    assert found["verdict"] == "invalid" and "write_iops has no figure" in found["reasons"][0]


def test_a_percentile_that_the_host_left_too_few_rounds_for_is_invalid_with_that_reason():
    """The rate counts, and only what needs percentiles does not."""
    first = "round 6, c: the host took 5% more of each latency than in quiet rounds: no percentiles of this round"
    left_out = {"cause": "no_percentiles", "level": "told", "rounds": [[6, 8]], "count": 3, "first": first}
    record = test_record(metrics={"write_iops": 600, "write_p99_latency_us": None}, validity=[left_out])
    rate = {"metric": "write_iops", "min": 500}
    assert one([drive_record(), record], criteria=[rate])["verdict"] == "pass"
    found = one([drive_record(), record], criteria=[rate, {"metric": "write_p99_latency_us", "max": 900}])
    assert found["verdict"] == "invalid"
    assert (
        "write_p99_latency_us is unknown: too few rounds are left (no percentiles in rounds 6-8" in found["reasons"][0]
    )
    assert first in found["reasons"][0]


@pytest.mark.parametrize(
    ("identity", "verdict"),
    [
        (None, "invalid"),
        ({}, "invalid"),
        ({"serial": "S1", "model": None}, "invalid"),
        ({"serial": "S1", "model": "", "transport": "nvme"}, "invalid"),
        ({"model": None, "transport": "loop"}, "pass"),
        ({"model": "Other", "transport": "nvme"}, "pass"),
        ({"model": MODEL}, "fail"),
    ],
)
def test_a_drive_without_a_model_does_not_escape_the_criteria_of_models(identity, verdict):
    criteria = [{**WSAT_MIN, "min": 100}, {**WSAT_MIN, "min": 5000, "model": "MTFD*"}]
    found = one([drive_record(identity=identity), test_record()], criteria=criteria)
    assert found["verdict"] == verdict
    assert verdict != "invalid" or "has no model" in found["reasons"][0]
    # What is for every model needs none.
    assert one([drive_record(identity=identity), test_record()])["verdict"] == "pass"
