# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Verdicts: pass is earned, and every reason says what, how much and which criterion."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.results import held_to, judge

WSAT_MIN = {"test": "wsat", "metric": "write_iops", "min": 500}
MODEL = "MTFDDAK960TDS"


def run_json(criteria=(WSAT_MIN,), tests=("wsat",), asked=(("h1", "S1"),)):
    about = {name: {"title": name.upper(), "tracked": [{"cell": "c", "metric": "write_iops"}]} for name in tests}
    return {
        "tests": about,
        "criteria": list(criteria),
        "asked": [{"host": host, "drive": drive} for host, drive in asked],
    }


def test_record(outcome="steady", iops=800.0, test="wsat", **fields):
    window = {
        "cell": "c",
        "metric": "write_iops",
        "steady": outcome == "steady",
        "reasons": [] if outcome == "steady" else ["range 31 % > 20 %"],
    }
    return {
        **{"kind": "test", "host": "h1", "drive": "S1", "test": test, "outcome": outcome, "rounds": 9, "reasons": []},
        **{
            "metrics": {"write_iops": iops, "write_bandwidth": iops * 4096, "write_p99_latency_us": 812.5},
            "steady_state": [window],
            **fields,
        },
    }


test_record.__test__ = False


def drive_record(outcome="complete", **fields):
    return {
        "kind": "drive",
        "host": "h1",
        "drive": "S1",
        "identity": {"model": MODEL, "serial": "S1"},
        "outcome": outcome,
        **fields,
    }


def host_record(state, message=""):
    return {"kind": "host", "host": "h1", "state": state, "message": message}


def one(records, **run):
    return judge.judge(run_json(**run), records)["drives"][0]


@pytest.mark.parametrize(("seen", "verdict"), [(MODEL, "pass"), ("OTHER", "invalid"), (None, "pass")])
def test_a_drive_stays_the_model_that_preflight_saw(seen, verdict):
    """Else a drive that tells another one escapes the criteria of its own."""
    run = run_json(criteria=[{"model": "OTHER*", "metric": "write_iops", "min": 9e6}])
    run["asked"][0].update({"model": seen} if seen else {})
    (judged,) = judge.judge(run, [drive_record(), test_record()])["drives"]
    said = f"its model is {MODEL} by its record, and preflight saw OTHER; check which drive was measured"
    assert judged["verdict"] == verdict and (judged["reasons"] == [said]) == (verdict == "invalid")


def test_a_drive_whose_time_did_not_suffice_for_a_criterions_test_does_not_pass():
    run = run_json(tests=("wsat", "iops"))
    run["asked"][0].update(tests=["iops"], left_out_tests=["wsat"])
    (judged,) = judge.judge(run, [drive_record(), test_record(test="iops")])["drives"]
    text = "criterion wsat write_iops min 500 was not looked at: ssd_time_budget left out wsat"
    assert (judged["verdict"], judged["reasons"]) == ("not_tested", [text])
    run["criteria"] = []
    assert judge.judge(run, [drive_record(), test_record(test="iops")])["drives"][0]["verdict"] == "pass"


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
            {"max_of_median": 1.1},
            700.0,
            "fail",
            "write_iops 800 > 770 (criterion wsat write_iops max_of_median 1.1: median)",
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
            {"max_of_baseline": 1, "baseline": "r1"},
            800.0,
            "pass",
            "write_iops 800 <= 800 (criterion wsat write_iops max_of_baseline 1 run r1: median)",
        ),
    ],
)
def test_a_limit_may_be_a_share_of_a_reference(criterion, reference, verdict, reason):
    run = run_json([{"test": "wsat", "metric": "write_iops", **criterion}])
    found = judge.judge(run, [drive_record(), test_record()], lambda *_of: held_to.Reference(reference, "median"))[
        "drives"
    ][0]
    assert (found["verdict"], found["reasons"]) == (verdict, ["wsat: " + reason])


def test_only_what_counts_is_valid():
    records = [test_record(), test_record("invalid", test="iops"), test_record("complete", test="hir", steady_state=[])]
    assert judge.valid_tests(run_json(tests=("wsat", "iops")), records) == {("h1", "S1", "wsat"), ("h1", "S1", "hir")}
    assert judge.valid_tests(run_json(asked=(("h2", "S1"),)), records) == set()


@pytest.mark.parametrize(
    ("records", "verdict", "reason"),
    [
        ([drive_record(), test_record()], "pass", "wsat: write_iops 800 >= 500 (criterion wsat write_iops min 500)"),
        (
            [drive_record(), test_record(iops=352)],
            "fail",
            "wsat: write_iops 352 < 500 (criterion wsat write_iops min 500)",
        ),
        (
            [drive_record(), test_record(iops=499.99999)],
            "fail",
            "wsat: write_iops 499.99999 < 500 (criterion wsat write_iops min 500)",
        ),
        (
            [drive_record(), test_record(iops=500)],
            "pass",
            "wsat: write_iops 500 >= 500 (criterion wsat write_iops min 500)",
        ),
        (
            [drive_record(), test_record("not_steady", iops=352)],
            "invalid",
            "wsat: steady state was not attained after 9 rounds: range 31 % > 20 %",
        ),
        (
            [drive_record(), test_record("complete")],
            "invalid",
            "wsat: steady state was not attained after 9 rounds: range 31 % > 20 %",
        ),
        (
            [drive_record(), test_record("steady", steady_state=[])],
            "invalid",
            "wsat: steady state was not attained after 9 rounds",
        ),
        ([drive_record(), test_record("invalid", reasons=["link at 8 GT/s"])], "invalid", "wsat: link at 8 GT/s"),
        (
            [drive_record("interrupted"), test_record("interrupted", reasons=["interrupted: the run was stopped"])],
            "invalid",
            "wsat: interrupted after 9 rounds: the run was stopped",
        ),
        (
            [drive_record("error"), test_record("error", reasons=["fio: rc 1"])],
            "error",
            "wsat: the test ended with an error after 9 rounds: fio: rc 1",
        ),
        (
            [drive_record("error", message="OSError: gone")],
            "error",
            "the campaign of S1 on h1 ended with an error: OSError: gone",
        ),
        ([drive_record(), test_record("strange")], "not_tested", "wsat: the test has not finished (outcome 'strange')"),
        ([], "not_tested", "nothing was collected from h1: run collect.yml with this ssd_run_id"),
        ([host_record("unreachable", "timed out")], "not_tested", "h1 was unreachable: timed out"),
        ([host_record("failed", "no job")], "not_tested", "h1 failed: no job"),
        ([host_record("ok")], "not_tested", "h1 reported no result for S1"),
        (
            [host_record("unfinished", "still at work on S1"), test_record()],
            "not_tested",
            (
                "h1 had not finished when its results were collected: still at work on S1; run watch.yml and "
                "collect.yml with this ssd_run_id"
            ),
        ),
        (
            [drive_record("refused", refusals=[{"code": "mounted", "message": "/dev/sdb1 is mounted on /data"}])],
            "not_tested",
            "S1 was refused on h1: mounted (/dev/sdb1 is mounted on /data)",
        ),
        ([drive_record()], "not_tested", "wsat: not measured: h1 reported no result for S1"),
    ],
)
def test_verdict_and_its_reason(records, verdict, reason):
    if (
        not any(record["kind"] == "host" for record in records)
        and len(records) == 1
        and records[0].get("outcome") == "complete"
    ):
        records = [*records, host_record("ok")]
    judged = one(records)
    assert (judged["verdict"], judged["reasons"][0]) == (verdict, reason)


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
        ({"metric": "write_iops"}, "error", "criterion write_iops has neither min nor max"),
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


def test_an_interruption_is_told_once():
    cut = test_record("interrupted", reasons=["interrupted: the run was stopped"])
    judged = one([drive_record("interrupted", message="the run was stopped"), cut], tests=("wsat", "iops"))
    assert (judged["verdict"], judged["reasons"]) == (
        "invalid",
        ["wsat: interrupted after 9 rounds: the run was stopped"],
    )
    between = one([drive_record("interrupted", message="the run was stopped"), test_record()], tests=("wsat", "iops"))
    assert between["reasons"] == ["the campaign of S1 on h1 was interrupted: the run was stopped"]


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
            and held_to.describe(criterion) in reason
        )


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


def test_complete_is_valid_where_no_steady_state_was_asked():
    run = {"tests": {"hir": {"title": "", "tracked": []}}, "criteria": [], "asked": [{"host": "h1", "drive": "S1"}]}
    assert judge.judge(run, [drive_record(), test_record("complete", test="hir", steady_state=[])])["all_passed"]


def test_every_tracked_variable_has_to_be_steady():
    windows = [
        {"cell": "c", "metric": "write_iops", "steady": True},
        {"cell": "d", "metric": "read_iops", "steady": False, "reasons": ["d: slope 12 % > 10 %"]},
    ]
    judged = one([drive_record(), test_record(steady_state=windows)])
    assert judged["reasons"] == ["wsat: steady state was not attained after 9 rounds: d: slope 12 % > 10 %"]


def test_each_drive_is_asked_for_its_own_tests():
    run = run_json(tests=("wsat", "iops"))
    run["asked"][0]["tests"] = ["wsat"]
    assert [test["test"] for test in judge.judge(run, [drive_record(), test_record()])["drives"][0]["tests"]] == [
        "wsat"
    ]


def test_a_fleet_without_drives_did_not_pass():
    assert judge.judge(run_json(asked=()), [])["all_passed"] is False


def test_drives_with_records_that_nobody_asked_for_are_judged_too():
    judged = judge.judge(run_json(asked=()), [drive_record(), test_record(iops=1)])
    assert [(drive["drive"], drive["verdict"]) for drive in judged["drives"]] == [("S1", "fail")]


OUTCOMES = st.sampled_from(["steady", "not_steady", "complete", "invalid", "error", "interrupted", None])
CAMPAIGNS = st.sampled_from(["complete", "refused", "error", "interrupted", None])


@given(st.lists(st.tuples(CAMPAIGNS, OUTCOMES, st.floats(allow_nan=True)), max_size=6))
def test_only_a_complete_steady_drive_that_meets_the_criterion_passes(drives):
    asked = [("h1", f"S{index}") for index in range(len(drives))]
    records = []
    for (_host, drive), (campaign, outcome, iops) in zip(asked, drives):
        records += [drive_record(campaign, drive=drive)] if campaign else []
        records += [test_record(outcome, iops, drive=drive)] if outcome else []
    result = judge.judge(run_json(asked=asked), records)
    assert sum(result["verdicts"].values()) == len(drives)
    for judged, (campaign, outcome, iops) in zip(result["drives"], drives):
        earned = campaign == "complete" and outcome == "steady" and 500 <= iops < float("inf")
        assert (judged["verdict"] == "pass") == earned
        assert judged["reasons"] and all(isinstance(reason, str) and reason for reason in judged["reasons"])


@pytest.mark.parametrize(
    ("before", "verdict"),
    [
        ([test_record()], "pass"),
        ([test_record(outcome="not_steady")], "invalid"),
        ([test_record(reasons=["throttled"], outcome="invalid")], "invalid"),
        ([], "invalid"),
    ],
)
def test_what_goes_on_from_a_state_counts_only_with_it(before, verdict):
    run = run_json([], tests=("wsat", "wsat-wait", "wsat-back"))
    run["tests"]["wsat-wait"].update(follows="wsat", tracked=[])
    run["tests"]["wsat-back"].update(follows="wsat-wait", tracked=[])
    after = [test_record("complete", test=name, steady_state=[]) for name in ("wsat-wait", "wsat-back")]
    found = {test["test"]: test for test in judge.judge(run, [drive_record(), *before, *after])["drives"][0]["tests"]}
    assert (found["wsat-wait"]["verdict"], found["wsat-back"]["verdict"]) == (verdict, verdict)
    if verdict == "invalid":
        assert found["wsat-back"]["reasons"] == [
            "it builds on the drive state that test wsat-wait leaves, and that test is invalid"
        ]
