# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Verdicts: pass is earned, and every reason says what, how much and which criterion."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.verdict import judge
from ansible_collections.ssdlab.fleet.tests.unit.plugins.plugin_utils.verdict.judged_runs import (
    COMMON,
    MODEL,
    drive_record,
    one,
    run_json,
    test_record,
)


def host_record(state, message=""):
    return {**COMMON, "kind": "host", "state": state, "message": message}


@pytest.mark.parametrize(("seen", "verdict"), [(MODEL, "pass"), ("OTHER", "invalid"), (None, "pass")])
def test_a_drive_stays_the_model_that_preflight_saw(seen, verdict):
    """Else a drive that tells another one escapes the criteria of its own."""
    run = run_json(criteria=[{"model": "OTHER*", "metric": "write_iops", "min": 9e6}])
    run["asked"][0].update({"model": seen} if seen else {})
    (judged,) = judge.judge(run, [drive_record(), test_record()])["drives"]
    said = f"its record has the model {MODEL}, but preflight saw OTHER; check which drive was measured"
    assert judged["verdict"] == verdict and (judged["reasons"] == [said]) == (verdict == "invalid")


def test_a_drive_whose_time_did_not_suffice_for_a_criterions_test_does_not_pass():
    run = run_json(tests=("wsat", "iops"))
    run["asked"][0].update(tests=["iops"], left_out_tests=["wsat"])
    (judged,) = judge.judge(run, [drive_record(), test_record(test="iops")])["drives"]
    text = "criterion wsat write_iops min 500 was not judged: ssd_time_budget left out wsat"
    assert (judged["verdict"], judged["reasons"]) == ("not_tested", [text])
    run["criteria"] = []
    assert judge.judge(run, [drive_record(), test_record(test="iops")])["drives"][0]["verdict"] == "pass"


@pytest.mark.parametrize(
    "records, own",
    [
        ([drive_record("error", message="it hangs", drive_fault=True)], True),
        ([drive_record("error", message="no purge")], None),
        # What it missed before weighs more, and is the verdict.
        ([drive_record("error", drive_fault=True), test_record(iops=352)], None),
        ([drive_record("complete", drive_fault=True), test_record()], None),
    ],
)
def test_an_error_of_the_drives_own_is_told(records, own):
    judged = one(records)
    assert judged.get("drive_fault") is own and (judged["verdict"] == "error") == (
        records[0]["outcome"] == "error" and len(records) == 1
    )


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
        ([host_record("failed", "no job")], "not_tested", "the run failed on h1: no job"),
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


def test_an_interruption_is_told_once():
    cut = test_record("interrupted", reasons=["interrupted: the run was stopped"])
    judged = one([drive_record("interrupted", message="the run was stopped"), cut], tests=("wsat", "iops"))
    assert (judged["verdict"], judged["reasons"]) == (
        "invalid",
        ["wsat: interrupted after 9 rounds: the run was stopped"],
    )
    between = one([drive_record("interrupted", message="the run was stopped"), test_record()], tests=("wsat", "iops"))
    assert between["reasons"] == ["the campaign of S1 on h1 was interrupted: the run was stopped"]


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


def integrity_record(**found):
    whole = {"bytes_written": 2 << 30, "bytes_read": 2 << 30, "write_s": 1.0, "read_s": 1.0, "other_write_bytes": 0}
    told = {"passes": 2, "block_size_bytes": 4096, "complete": True, "first": [], "wrong_blocks": {}}
    return test_record("complete", test="integrity", metrics={}, steady_state=[], integrity={**whole, **told, **found})


WRONG = {
    "pass_number": 2,
    "offset_bytes": 8192,
    "kind": "stale",
    "found": "what was written there by pass 1",
    "wrong_sectors": 8,
    "read_right": 0,
}


@pytest.mark.parametrize(
    ("found", "verdict", "reason"),
    [
        ({}, "pass", "integrity: all 1,073,741,824 bytes were read back as written 2 times"),
        (
            {"wrong_blocks": {"stale": 2, "bit_flips": 1}, "first": [WRONG]},
            "fail",
            "integrity: 3 blocks of 4,096 bytes not read back as written (2 stale, 1 bit flips); first at byte 8192 in "
            "pass 2: what was written there by pass 1",
        ),
        # Nothing of a list that a host left out, nor a count that it makes up.
        (
            {"wrong_blocks": {"transient": 10000}, "complete": False},
            "fail",
            "integrity: at least 10,000 blocks of 4,096 bytes not read back as written (10,000 transient)",
        ),
    ],
)
def test_a_drive_passes_an_integrity_test_only_if_every_block_was_right(found, verdict, reason):
    run = run_json(criteria=[], tests=[])
    run["tests"] = {"integrity": {"title": "Integrity"}}
    (judged,) = judge.judge(run, [drive_record(), integrity_record(**found)])["drives"]
    assert (judged["verdict"], judged["reasons"]) == (verdict, [reason])


@pytest.mark.parametrize(
    ("outcome", "wrong", "others", "verdict"),
    [
        ("complete", {"stale": 1}, 0, "fail"),
        ("complete", {}, 0, "invalid"),
        ("invalid", {"stale": 1}, 512, "invalid"),
        ("invalid", {"stale": 1}, None, "invalid"),
        # Whatever ended the test.
        ("error", {"stale": 1}, 0, "fail"),
        ("error", {"unreadable": 1}, 0, "error"),
    ],
)
def test_a_wrong_block_fails_a_drive_of_which_something_is_unknown(outcome, wrong, others, verdict):
    """But for one that others may have written."""
    run = {**run_json(criteria=[], tests=[]), "unknown_causes": "disturb"}
    record = integrity_record(wrong_blocks=wrong, other_write_bytes=others)
    unknown = {"cause": "link", "level": "unknown", "message": "the speed of its link is unknown"}
    record = {**record, "outcome": outcome, "conditions": [unknown]}
    (judged,) = judge.judge(run, [drive_record(), record])["drives"]
    assert judged["verdict"] == verdict


def judged_drives(*found):
    """The verdict and first reason of each drive of h1, S1 and so on, by what was read back of it."""
    records = []
    for number, blocks in enumerate(found, 1):
        place = {"host": blocks.pop("host", "h1"), "drive": f"S{number}"}
        records += [{**drive_record(), **place}, {**integrity_record(**blocks), **place}]
    run = run_json(criteria=[], tests=[], asked=[(r["host"], r["drive"]) for r in records if r["kind"] == "drive"])
    run["tests"] = {"integrity": {"title": "Integrity"}}
    return [(drive["verdict"], drive["reasons"][0]) for drive in judge.judge(run, records)["drives"]]


BLANK, UNREADABLE = {"blank": 1}, {"unreadable": 1}


@pytest.mark.parametrize(
    ("found", "verdicts"),
    [
        ([{"wrong_blocks": BLANK}, {}], ["fail", "pass"]),
        ([{"wrong_blocks": BLANK}, {"wrong_blocks": {"stale": 3}}, {}], ["error", "error", "pass"]),
        # Of different hosts.
        ([{"wrong_blocks": BLANK}, {"wrong_blocks": BLANK, "host": "h2"}], ["fail", "fail"]),
        # A drive that says itself that it can't read a block is at fault, and only wrong ones excuse another drive.
        ([{"wrong_blocks": BLANK}, {"wrong_blocks": UNREADABLE}], ["fail", "fail"]),
        ([{"wrong_blocks": BLANK}, {"wrong_blocks": {**BLANK, **UNREADABLE}}], ["error", "fail"]),
        # Nor does one whose blocks others wrote, or the host's memory.
        ([{"wrong_blocks": BLANK}, {"wrong_blocks": BLANK, "other_write_bytes": 512}], ["fail", "invalid"]),
        ([{"wrong_blocks": BLANK}, {"wrong_blocks": BLANK, "memory_errors": 1}], ["fail", "invalid"]),
    ],
)
def test_wrong_blocks_on_several_drives_are_held_against_their_host(found, verdicts):
    judged = judged_drives(*found)
    assert [verdict for verdict, _reason in judged] == verdicts


def test_its_reason_says_how_to_tell():
    (_verdict, reason), _other = judged_drives({"wrong_blocks": BLANK}, {"wrong_blocks": {"stale": 3}})
    assert "2 drives of h1 have wrong blocks (S1, S2)" in reason and "test one of them in another host" in reason
    assert reason.endswith(": 1 block of 4,096 bytes not read back as written (1 blank)")


@pytest.mark.parametrize(
    ("outcome", "result", "verdict", "reason"),
    [
        ("complete", "passed", "pass", "its short self-test passed: as the drive says"),
        ("complete", "failed", "fail", "its short self-test failed: as the drive says"),
        # Whatever became of the test.
        ("invalid", "failed", "fail", "its short self-test failed: as the drive says"),
        ("error", "aborted", "error", "the test ended with an error after 9 rounds: why"),
        ("invalid", "passed", "invalid", "why"),
    ],
)
def test_what_a_drive_finds_in_itself_is_part_of_its_verdict(outcome, result, verdict, reason):
    found = {"kind": "short", "result": result, "message": "as the drive says", "seconds": 3}
    record = test_record(outcome, test="self-test-short", metrics={}, steady_state=[], reasons=["why"], self_test=found)
    run = run_json(criteria=[], tests=[])
    run["tests"] = {"self-test-short": {"title": "Self-test"}}
    (judged,) = judge.judge(run, [drive_record(), record])["drives"]
    assert (judged["verdict"], judged["reasons"]) == (verdict, [f"self-test-short: {reason}"])


@pytest.mark.parametrize(
    ("outcome", "blocks", "verdict", "reason"),
    [
        ("complete", [], "pass", "bytes 0 to 4,096,000 could be read"),
        (
            "invalid",
            [8192],
            "fail",
            "1 unreadable block in bytes 0 to 4,096,000, the first at byte 8192 (4096 bytes: Input/output error)",
        ),
        ("invalid", [], "invalid", "the drive was busy with the host's own I/O"),
    ],
)
def test_what_a_scrub_could_not_read_fails_the_drive_with_its_place(outcome, blocks, verdict, reason):
    first = [{"offset_bytes": place, "length_bytes": 4096, "error": "Input/output error"} for place in blocks]
    found = {"from_bytes": 0, "to_bytes": 4096000, "bytes_read": 4096000, "seconds": 3, "paused_s": 0, "complete": True}
    found.update(unreadable_blocks=len(blocks), first=first)
    reasons = ["the drive was busy with the host's own I/O"]
    record = test_record(outcome, test="scrub", metrics={}, steady_state=[], reasons=reasons, scrub=found)
    run = run_json(criteria=[], tests=[])
    run["tests"] = {"scrub": {"title": "Scrub", "in_service": {}}}
    (judged,) = judge.judge(run, [drive_record(), record])["drives"]
    assert (judged["verdict"], judged["reasons"]) == (verdict, [f"scrub: {reason}"])
