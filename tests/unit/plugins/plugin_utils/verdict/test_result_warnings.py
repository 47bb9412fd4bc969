# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Limits that are far from what was measured: probably in another unit."""

from __future__ import annotations

import json

import pytest

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.report import write_report
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.verdict import judge, result_warnings
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.watch import final_tables
from ansible_collections.ssdlab.fleet.tests.fixtures.report import fleets

CAUSE = {
    "cause": "other_io",
    "level": "unknown",
    "rounds": [[6, 6]],
    "count": 1,
    "first": "round 3, c: somebody wrote",
}
from ansible_collections.ssdlab.fleet.tests.unit.plugins.plugin_utils.verdict import judged_runs


def test_the_judge_warns_of_what_was_found_in_rounds():
    test = {
        "validity": [CAUSE],
        "rounds": 9,
        "steady_state": [{"window_rounds": [6, 8], "steady": True}],
        "kind": "test",
        "host": "h",
        "drive": "d",
        "test": "iops",
        "outcome": "steady",
        "reasons": [],
        "metrics": {"iops": 1.0},
    }
    drive = judged_runs.drive_record(host="h", drive="d", identity={})
    run = {
        "asked": [{"host": "h", "drive": "d"}],
        "tests": {"iops": {"title": "", "tracked": [{}]}},
        "criteria": [],
    }
    (told,) = judge.judge(run, [test, drive])["drives"]
    assert (told["verdict"], told["tests"][0]["warnings"]) == (
        "pass",
        ["other I/O in round 6 (1 in all): round 3, c: somebody wrote"],
    )


@pytest.mark.parametrize(
    ("window", "every", "says"),
    [
        ([], 1, []),
        ([1, 2, 3, 4, 5], 1, []),
        ([4, 5, 7], 1, ["1 disturbed round, measured again after it"]),
        ([4, 8, 9], 1, ["3 disturbed rounds, measured again after them"]),
        ([30, 60, 92], 30, ["2 disturbed rounds"]),
        ([30, 60, 90], 30, []),
        # Numbers of a record are never counted up to.
        ([4, 2 * 10**9], 1, ["1999999995 disturbed rounds"]),
    ],
)
def test_the_judge_tells_how_many_rounds_a_window_passes_over(window, every, says):
    about = {"steady_state": {"sample_every": every}}
    told = result_warnings.passed_over({"steady_state": [{"window_rounds": window}]}, about)
    assert len(told) == len(says) and all(part in text for part, text in zip(says, told))


@pytest.mark.parametrize(
    ("cell", "iops", "says"),
    [
        ("rand-4k-w100-tc1-qd4-200iops", 196.0, []),
        ("rand-4k-w100-tc1-qd4-200iops", 195.0, ["it did 195 of the 200 IOPS that the test asks for"]),
        # A whole number for each thread and direction: 4 x 8 and 4 x 16.
        ("rand-4k-r35-tc4-qd1-100iops", 95.0, []),
        ("rand-4k-r35-tc4-qd1-100iops", 90.0, ["it did 90 of the 96 IOPS that the test asks for"]),
        ("rand-4k-w100-tc1-qd4", 5.0, []),
        ("rand-4k-w100-tc1-qd4-200iops", None, []),
        ("jobs-web-3f2a", 5.0, []),
    ],
)
def test_a_cell_that_does_not_reach_its_rate_shows_another_load(cell, iops, says):
    told = result_warnings.below_rate({"cells": [{"cell": cell, "metrics": {"iops": iops}}]})
    assert told == [f"{cell}: {text}" for text in says]


@pytest.mark.parametrize(
    ("own", "cells", "says"),
    [
        ({"throttled_pct": 0.0}, {"a": {"alternation_pct": 5.0, "slowest_second_pct": 50, "hourly_drift_pct": 2}}, []),
        ({"throttled_pct": None}, {"a": {"alternation_pct": None}}, []),
        ({"throttled_pct": 12.5}, {}, ["12.5 % of its rounds were throttled (limit 0 %; throttled_pct)"]),
        (
            {},
            {"a": {"alternation_pct": 8.2}, "b": {"alternation_pct": 11}, "c": {"hourly_drift_pct": 3.1}},
            [
                "b: its rounds alternate by 11 % above and below their trend (limit 5 %, and above that in 1 more; "
                "alternation_pct)",
                "c: its rate changes by 3.1 % an hour (limit 2 %; hourly_drift_pct)",
            ],
        ),
        (
            {},
            {"a": {"slowest_second_pct": 76.4}},
            [
                "a: its slowest second was 76.4 % below its mean, on average over the rounds (limit 50 %; "
                "slowest_second_pct)"
            ],
        ),
    ],
)
def test_what_averages_hide_is_told_above_its_limit(own, cells, says):
    record = {"metrics": own, "cells": [{"cell": name, "metrics": figures} for name, figures in cells.items()]}
    assert result_warnings.hidden_variations(record) == says


def filled(name, fill=None, **cells):
    found = [{"cell": cell.replace("_", "-"), "metrics": {"write_bandwidth": rate}} for cell, rate in cells.items()]
    return {"test": name, "precondition": fill and {"bandwidth_bytes_per_s": fill}, "cells": found}


LARGE = "seq_128k_w100_tc1_qd32"


@pytest.mark.parametrize(
    ("record", "others", "told"),
    [
        (filled("t", 2.5e9, **{LARGE: 5e8}), [], "2,500 MB/s, 5.0 times"),
        (filled("t", 2.5e9), [filled("o", **{LARGE: 5e8}), filled("p", **{LARGE: 4e8})], "(500 MB/s, o seq-128k"),
        (filled("t", 9e8, **{LARGE: 5e8}), [], ""),
        (filled("t", None, **{LARGE: 5e8}), [], ""),
        (filled("t", 2.5e9), [], ""),
        (filled("t", 2.5e9, **{LARGE: None}), [], ""),
        # What does not write as a fill does shows nothing.
        (filled("t", 2.5e9, seq_4k_w100_tc1_qd256=5e8), [], ""),
        (filled("t", 2.5e9, seq_128k_w100_tc1_qd1=5e8), [], ""),
        (filled("t", 2.5e9, seq_128k_w100_tc1_qd32_100iops=5e8), [], ""),
        (filled("t", 2.5e9, rand_128k_w100_tc1_qd32=5e8), [], ""),
        ({**filled("t", 2.5e9), "array": {"level": 0}}, [filled("o", **{LARGE: 5e8})], ""),
        (filled("t", 2.5e9), [{**filled("o", **{LARGE: 5e8}), "filesystem": {}}], "5.0 times"),
        (filled("t", 2.5e9), [{**filled("o", **{LARGE: 5e8}), "filesystem": {"type": "xfs"}}], ""),
    ],
)
def test_a_fill_faster_than_the_drives_own_writes_is_told(record, others, told):
    found = result_warnings.fast_fill(record, [record, *others])
    assert [told in text for text in found] == [True] * bool(told)


@pytest.mark.parametrize(("required", "verdict"), [(True, "invalid"), (False, "pass")])
def test_a_curve_that_is_the_result_counts_and_the_judge_tells_that_it_is_not_steady(required, verdict):
    window = {"window_rounds": [6, 8], "steady": False, "reasons": ["the range is 30 %"], "cell": "c", "metric": "iops"}
    test = judged_runs.test_record(outcome="complete", reasons=["24 h were over"], steady_state=[window], rounds=9)
    drive = judged_runs.drive_record(host=test["host"], drive=test["drive"], identity={})
    run = {
        "asked": [{"host": test["host"], "drive": test["drive"]}],
        "tests": {test["test"]: {"title": "", "tracked": [{}], "steady_state": {"required": required}}},
        "criteria": [],
    }
    (told,) = judge.judge(run, [test, drive])["drives"]
    text = "steady state was not attained: its curve counts, its figures are those of the last window (24 h were over)"
    assert told["verdict"] == verdict and (text in told["tests"][0]["remarks"])


@pytest.mark.parametrize(
    ("limits", "says"),
    [
        ({}, []),
        ({"other_io_share": 0.001, "queued_min": 0.95}, []),
        ({"other_io_share": 1}, ["cells were checked with looser limits than usual: other_io_share 1 (usual 0.01)"]),
        ({"queued_min": 0}, ["cells were checked with looser limits than usual: queued_min 0 (usual 0.9)"]),
        ({"device_depth": 1}, ["cells were checked with looser limits than usual: device_depth 1 (usual 31)"]),
        ({"device_depth": 64}, []),
    ],
)
def test_looser_limits_are_told_beside_the_verdict(limits, says):
    assert result_warnings.loosened(limits) == says
    run = {"tests": {"t": {}}, "criteria": [], "asked": [{"host": "h", "drive": "d", "validity_limits": limits}]}
    drive = judged_runs.drive_record(host="h", drive="d", identity={})
    made = {"kind": "test", "host": "h", "drive": "d", "test": "t", "outcome": "complete"}
    assert judge.judge(run, [drive, made])["drives"][0]["tests"][0]["remarks"] == says


PTS = {
    "tracked": [{"cell": "rand-4k-w100-tc4-qd32", "metric": "write_iops"}],
    "window": 5,
    "range_limit": 0.2,
    "slope_limit": 0.1,
    "min_capacity_multiple": 2,
}
READ = [{"cell": "rand-4k-r100-tc4-qd32", "metric": "read_iops"}]


@pytest.mark.parametrize(
    ("changes", "filled", "says"),
    [
        ({}, False, ""),
        ({"window": 10, "range_limit": 0.05}, False, ""),
        ({"min_capacity_multiple": 0}, True, ""),
        ({"min_capacity_multiple": 0, "tracked": READ}, False, ""),
        (
            {"range_limit": 0.5, "window": 3},
            False,
            "looser than that of the SNIA PTS: range_limit 0.5 (0.2), window 3 (5)",
        ),
        ({"slope_limit": "0.3"}, True, "slope_limit 0.3 (0.1)"),
        ({"min_capacity_multiple": 0.5}, False, "its window may begin after 0.5 x the user capacity (2 is usual)"),
    ],
)
def test_a_rule_that_is_looser_than_the_pts_is_told_beside_the_verdict(changes, filled, says):
    """A test of the site's own may be called after the PTS, and have any rule."""
    about = {
        "purge": {"method": "auto"},
        "precondition": {"passes": 2} if filled else None,
        "steady_state": {**PTS, **changes},
    }
    told = result_warnings.looser_rule(about)
    assert says in "; ".join(told) and bool(told) == bool(says)
    run = {"tests": {"t": about}, "criteria": [], "asked": [{"host": "h", "drive": "d"}]}
    drive = judged_runs.drive_record(host="h", drive="d", identity={})
    made = {"kind": "test", "host": "h", "drive": "d", "test": "t", "outcome": "complete"}
    assert judge.judge(run, [drive, made])["drives"][0]["tests"][0]["remarks"] == told


@pytest.mark.parametrize(("steady", "told"), [(False, 1), (True, 0), (None, 0)])
def test_a_cell_that_a_criterion_names_and_that_was_not_steady_itself_is_told(steady, told):
    cells = [
        {"cell": "c", "metrics": {"iops": 900.0}, "steady": {"metric": "iops", "steady": steady, "range_ratio": 1.4}}
    ]
    criteria = [{"cell": "c", "metric": "iops", "min": 500}]
    run = {"tests": {"t": {}}, "criteria": criteria, "asked": [{"host": "h", "drive": "d"}]}
    drive = judged_runs.drive_record(host="h", drive="d", identity={"model": "M"})
    made = {"kind": "test", "host": "h", "drive": "d", "test": "t", "outcome": "complete", "cells": cells}
    (test,) = judge.judge(run, [drive, made])["drives"][0]["tests"]
    said = "c: its own iops was not steady over the window (range 140% of the average)"
    assert (test["verdict"], test["remarks"]) == ("pass", [said] * told)


FAR = {"metric": "write_iops", "min": 500}
TOLD = (
    "criterion write_iops min 500: 500 IOPS is 200 times less than what was measured, 100,000 IOPS (median of 24 "
    "figures); check its unit"
)


@pytest.mark.parametrize(
    ("criterion", "told"),
    [
        (FAR, TOLD),
        ({"metric": "write_iops", "min": 1000}, None),
        ({"metric": "write_iops", "min": 90_000}, None),
        ({"metric": "write_iops", "min": 11e6}, "11,000,000 IOPS is 110 times more than what was measured"),
        ({"metric": "write_mean_latency_us", "max": 320_000}, "320,000 µs is 1,000 times more than what was measured"),
        ({"metric": "write_mean_latency_us", "max": 2}, "2 µs is 160 times less than what was measured"),
        # A share has no unit.
        ({"metric": "write_iops", "min_of_median": 0.001}, None),
        ({"metric": "write_iops", "min_of_median": 0.9, "min": 500}, "500 IOPS is 200 times less"),
        ({"metric": "write_iops", "min": 500, "model": "OTHER*"}, None),
        ({"metric": "none", "min": 500}, None),
        ({"metric": "write_iops", "least": 500}, None),
        ("write_iops", None),
    ],
)
def test_a_limit_that_is_over_a_hundred_times_away(criterion, told):
    run, records = fleets.fleet(noise=0, criteria=[criterion])
    found = result_warnings.implausible_limits(run, judge.judge(run, records))
    assert len(found) == (told is not None) and all(told in text for text in found)


def test_figures_of_zero_and_an_empty_run_say_nothing():
    run, records = fleets.fleet(noise=0, criteria=[FAR])
    for record in records:
        if record["kind"] == "test":
            record["metrics"] = {"write_iops": 0}
    assert result_warnings.implausible_limits(run, judge.judge(run, records)) == []
    assert result_warnings.implausible_limits({}, {"drives": []}) == []


@pytest.mark.parametrize("value", [5e-324, 1e-300, 1e300, 1.7e308])
@pytest.mark.parametrize("limit", [1e-20, 500, 1e20])
def test_figures_that_no_drive_has_give_a_short_sentence(value, limit):
    run, records = fleets.fleet(noise=0, criteria=[{"metric": "write_iops", "min": limit}])
    for record in records:
        if record["kind"] == "test":
            record["metrics"] = {"write_iops": value}
    (told,) = result_warnings.implausible_limits(run, judge.judge(run, records))
    assert "over 1,000,000 times" in told and len(told) < 200


def test_the_page_the_summary_and_the_callback_say_it(tmp_path):
    run, records = fleets.fleet(noise=0, criteria=[FAR], run_id="20261122T010000Z-qualify")
    folder = fleets.write(tmp_path, run, records)
    write_report.make(str(tmp_path), folder.name)
    summary = json.loads((folder / "report" / "summary.json").read_text())
    assert summary["warnings"] == [TOLD] and summary["verdicts"]["pass"] == 24
    assert TOLD[1:] in (folder / "report" / "index.html").read_text()
    assert f"warning: {TOLD}" in final_tables.lines(run, records, summary)
