# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What cannot be computed again from a journal is said, and is no proof."""

from __future__ import annotations

import pytest

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.results import judge, proof, tail_laws
from ansible_collections.ssdlab.fleet.tests.unit.plugins.plugin_utils.results.proven_journals import (
    ALL,
    BODY,
    MS,
    RULE,
    SIZE,
    TAIL,
    TEST,
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


@pytest.mark.parametrize(
    ("lost", "says"),
    [
        ("cell", "its journal lacks cells of the rounds that count"),
        ("histogram", "no histogram was kept of it"),
        ("test_finished", "its journal was not collected"),
    ],
)
def test_what_cannot_be_computed_again_is_said(lost, says):
    events = journal()
    kept = [event for event in events if event["event"] != lost]
    record = record_of(events)
    record = {**record, "proof": proof.of(record, proved(kept))}
    assert says in " ".join(proof.lacking(record)) and proof.problem(record) == ""
    assert lost == "test_finished" or says in proof.problem(record, strict=True)


@pytest.mark.parametrize("lost", [(), ("limits",), ("kernel_bytes", "fio_bytes")])
def test_a_cell_that_lost_what_was_seen_of_it_is_not_taken_for_a_clean_one(lost):
    events = journal()
    cell = last(events, "cell")
    cell["seen"] = {key: value for key, value in cell["seen"].items() if lost and key not in lost}
    record = record_of(events)
    assert proof.NOT_SEEN in proof.lacking(record) and proof.problem(record) == ""
    assert proof.NOT_SEEN in proof.problem(record, strict=True)


def test_a_host_cannot_have_the_controller_count_up_to_any_number():
    far = 9 * 10**15
    for changes in ({"rounds": far}, {"rounds": far, "steady_state": []}):
        events = journal()
        events[-1].update(changes)
        assert proved(events).unproved
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
    for seconds, wrong in (([10], []), ([60], ["the host's plan has another length of cells: c 10 s"])):
        assert proved(journal(), test={**TEST, "runtimes_s": seconds}).wrong == wrong


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
