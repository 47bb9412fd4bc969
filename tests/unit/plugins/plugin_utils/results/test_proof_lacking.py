# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What cannot be computed again from a journal is said, and is no proof."""

from __future__ import annotations

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.measure.limits import Limits
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.results import figures, judge, proof, tail_laws, taken
from ansible_collections.ssdlab.fleet.tests.fixtures import samples
from ansible_collections.ssdlab.fleet.tests.unit.plugins.plugin_utils.results.proven_journals import (
    ALL,
    BODY,
    CELL,
    COMMON,
    MS,
    RULE,
    SIZE,
    TAIL,
    TEST,
    about,
    forged,
    journal,
    last,
    proved,
    record_of,
    seen,
    told_everywhere,
)


def test_rounds_of_an_older_engine_are_held_to_what_they_tell():
    events = journal()
    for event in events:
        if event["event"] == "cell":
            del event["write"]["min_latency_us"], event["write"]["stddev_latency_us"]
    made = proved(events)
    assert made.wrong == [] and made.unproved == [tail_laws.NOT_TOLD.format("min_latency_us, stddev_latency_us")]
    forged(ALL, (100 * MS, BODY + TAIL - 1), (240 * MS, 1))(events)
    assert "the mean latency of its rounds" in "; ".join(proved(events).wrong)


def test_what_cannot_be_computed_again_is_said():
    events = journal()
    record = record_of(events)
    record = {**record, "proof": proof.of(record, proved(events[:-1]))}
    assert "its journal was not collected" in " ".join(proof.lacking(record)) and proof.problem(record) == ""
    assert "its journal was not collected" in proof.problem(record, strict=True)


@pytest.mark.parametrize(
    ("lost", "says"),
    [
        (("cell", 6), "its journal lacks c of round 6"),
        (("cell", None), "its journal lacks c of round 1"),
        (("round", 6), "14 rounds are reported, its journal has 13"),
        (("histogram", None), "are reported, but its journal lacks the histogram of it"),
    ],
)
def test_a_journal_that_lacks_what_the_engine_wrote_before_the_end_was_changed(lost, says):
    """What comes after it is there: no power loss does that."""
    events = journal()
    kind, number = lost
    kept = [event for event in events if event["event"] != kind or number not in (None, event.get("round"))]
    assert says in "; ".join(proved(kept).wrong)


def test_without_the_hosts_plan_nobody_knows_what_a_cell_was_asked_for():
    made = proof.Proof({}, TEST, Limits())
    for event in journal():
        made.take(event)
    assert taken.NO_PLAN in made.unproved


@pytest.mark.parametrize(
    "lost", [(), ("limits",), ("kernel_bytes", "fio_bytes"), ("between_bytes",), ("suspended_s",), ("run_s", "queued")]
)
def test_a_cell_that_lost_what_was_seen_of_it_is_not_taken_for_a_clean_one(lost):
    events = journal()
    cell = last(events, "cell")
    cell["seen"] = {key: value for key, value in cell["seen"].items() if lost and key not in lost}
    if "run_s" in lost:
        cell["seen"].update(run_s=None, queued=None)
    record = record_of(events)
    assert taken.NOT_SEEN in proof.lacking(record) and proof.problem(record) == ""
    assert taken.NOT_SEEN in proof.problem(record, strict=True)


def test_a_host_cannot_have_the_controller_count_up_to_any_number():
    far = 9 * 10**15
    for changes in ({"rounds": far}, {"rounds": far, "steady_state": []}):
        events = journal()
        events[-1].update(changes)
        assert proved(events).wrong
    events = journal()
    for event in events[2:4]:
        event["round"] = far
    events[-1]["steady_state"][0]["window_rounds"] = [1, far]
    assert proved(events).wrong and proved(events).unproved


def test_without_the_limits_of_the_run_causes_are_not_looked_for_again():
    events = journal()
    seen({"in_flight": 0.1})(events)
    assert proved(events).wrong and proved(events, limits=None).wrong == []


def test_a_host_that_measured_cells_of_another_length_is_found_out():
    for seconds, wrong in (([10], []), ([60], ["the host's plan has other cell runtimes: c 10 s"])):
        assert proved(journal(), test={**TEST, "runtimes_s": seconds}).wrong == wrong


def test_a_side_without_an_io_does_not_hide_what_spoilt_its_cell():
    events = journal()
    nothing = dict.fromkeys(("iops", "ios", "bytes", "bandwidth_bytes_per_s", "mean_latency_us", "max_latency_us"), 0)
    cell = last(events, "cell")
    cell["seen"].update(kernel_bytes={"read": 0, "write": 2 << 30, "discard": 0})
    cell["trim"] = {**nothing, "percentiles_us": {}}
    wrong = "; ".join(proved(events).wrong)
    assert "trims without an I/O" in wrong and "another process wrote" in wrong


def test_the_judge_asks():
    run = {"tests": {"t": {"steady_state": RULE}}, "criteria": [], "asked": [{"host": "h", "drive": "d"}]}
    drive = {
        "kind": "drive",
        "host": "h",
        "drive": "d",
        "outcome": "complete",
        "identity": {"model": "M", "size_bytes": SIZE},
    }
    events = journal()
    honest = {"kind": "test", "host": "h", "drive": "d", "test": "t", **record_of(events)}
    assert judge.judge(run, [drive, honest])["drives"][0]["verdict"] == "pass"
    told_everywhere("write_p90_latency_us", 500.0)(events)
    lying = {"kind": "test", "host": "h", "drive": "d", "test": "t", **record_of(events)}
    found = judge.judge(run, [drive, lying])["drives"][0]
    assert found["verdict"] == "invalid" and "the host's data give" in found["reasons"][0]


def test_a_record_of_an_attempt_that_its_journal_does_not_have_does_not_count():
    events = journal()
    record = {**record_of(events), "attempt": 7}
    assert proof.of(record, None) == {
        "wrong": [],
        "unproved": [figures.NOT_AGAIN.format("its journal was not collected")],
    }
    assert "none with the number 7" in proof.problem({**record, "proof": proof.of(record, None, [proved(events)])})


SAMPLE = {**COMMON, "event": "sample", **samples.SAMPLE}


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({}, ""),
        ({"temperature_c": 60}, ""),
        ({"throttle_counts": {"t1": 4, "t2": 0}}, "by its samples it was throttled by thermal management 1"),
        ({"link_width": 2}, "by its samples its link fell from 16 GT/s x4 to 16 GT/s x2"),
        ({"aer": {}, "throttle_s": None}, ""),
    ],
)
def test_what_the_samples_of_a_journal_show_cannot_be_left_out_of_its_conditions(change, says):
    events = journal()
    events[3:3] = [dict(SAMPLE), {**SAMPLE, **change}, dict(SAMPLE)]
    wrong = "; ".join(proved(events).wrong)
    assert says in wrong and bool(wrong) == bool(says)


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ({"not_applicable": {}}, True),
        ({"not_applicable": {"t": ["small"]}}, False),
        # A run before the controller kept that.
        ({}, False),
    ],
)
def test_without_its_hosts_plan_a_test_has_the_cells_that_the_controller_asked_for(asked, found):
    """A host that keeps its plan back would measure the fast cells alone."""
    tests = {"t": dict(about(TEST), cells=["c", "small"])}
    run = {"tests": tests, "asked": [{"host": "h", "drive": "d", **asked}]}
    made = proof.begin(run, "h", {}, proof.Attempt("r", "d", "t", 1), {})
    for event in journal():
        made.take(event)
    assert ("its journal lacks small of round 1" in made.wrong) is found


def attempts(*outcomes, chain=False):
    """The proofs of so many attempts at one test, each with a whole journal that ends like this."""
    test = dict(TEST, steady_state=None, rounds={"max": 3})
    tests = {"t": about(test), **({"t-after": {"follows": "t"}} if chain else {})}
    run = {"tests": tests, "asked": [{"host": "h", "drive": "d", "not_applicable": {}, "validity_limits": {}}]}
    found = []
    for number, outcome in enumerate(outcomes, 1):
        made = proof.begin(run, "h", {"cells": [CELL]}, proof.Attempt("r", "d", "t", number), {})
        for event in journal(test):
            made.take({**event, "attempt": number, **({"outcome": outcome} if "outcome" in event else {})})
        found.append(made)
    return found


@pytest.mark.parametrize(
    ("outcomes", "chain", "told", "says"),
    [
        (["interrupted", "complete"], False, 2, ""),
        (["complete", "complete"], False, 2, "an earlier result of the same test"),
        (["complete", "complete"], False, 1, "a newer attempt, number 2"),
        (["not_steady", "complete"], False, 2, "an earlier result of the same test"),
        # What goes on from its state was interrupted, so the state is made again.
        (["complete", "complete"], True, 2, ""),
        (["complete", "complete"], True, 1, "a newer attempt, number 2"),
        (["complete", "interrupted"], False, 1, "a newer attempt, number 2"),
    ],
)
def test_a_host_does_not_measure_several_times_to_report_the_best(outcomes, chain, told, says):
    made = attempts(*outcomes, chain=chain)
    record = dict(made[told - 1].told, attempt=told)
    found = "; ".join(proof.of(record, made[told - 1], made)["wrong"])
    assert says in found and bool(says) == ("attempt" in found or "earlier result" in found), found


def test_a_second_measurement_by_the_controllers_order_is_no_earlier_result():
    first, again = attempts("complete"), attempts("complete")
    again[0].place = again[0].place._replace(run_id="r-again")
    assert "result" not in " ".join(proof.of(dict(again[0].told, attempt=2), again[0], first + again)["wrong"])
