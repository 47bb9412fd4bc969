# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What fits every schema, is small, and still makes the controller work for hours or fill its memory: each would take
the report, or the preflight, from all other hosts.
"""

from __future__ import annotations

import contextlib
import json
import resource
import signal

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.records import base, results
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.answers import RunOnHost
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.plan import CollectedPlan
from ansible_collections.ssdlab.fleet.plugins.module_utils.run import drive_records, reducer
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.peers import host_diff
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.preflight import (
    decision,
    drive_list,
    duplicates,
    host_findings,
)
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.report import (
    chart_series,
    host_journal,
    interference,
    tables,
)
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.run_folder import runs
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.validation import module_answers, record_check, sanitizer
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.verdict import judge
from ansible_collections.ssdlab.fleet.tests.fixtures import answers as real
from ansible_collections.ssdlab.fleet.tests.fixtures import host_answers
from ansible_collections.ssdlab.fleet.tests.fixtures import planned as fixture
from ansible_collections.ssdlab.fleet.tests.unit.plugins.plugin_utils.preflight.fleets import FACTS, NOW
from ansible_collections.ssdlab.fleet.tests.unit.plugins.plugin_utils.verdict import judged_runs

TIME = "2026-11-23T13:00:00.000Z"
MIB = 1 << 20


@contextlib.contextmanager
def little(seconds=10.0, mib=400):
    """No more of this process's time and memory than that."""

    def ended(_number, _frame):
        raise AssertionError(f"it takes more than {seconds} s of the processor")

    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    with open("/proc/self/statm", encoding="ascii") as file:
        now = int(file.read().split()[0]) * resource.getpagesize()
    before = signal.signal(signal.SIGVTALRM, ended)
    try:
        resource.setrlimit(resource.RLIMIT_AS, (now + mib * MIB, hard))
        signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def test_record(**fields):
    """As a host sends it."""
    return {
        "schema_version": 1,
        "kind": "test",
        "time": "2026-11-22T12:00:00Z",
        "drive": "S1",
        "test": "wsat",
        "attempt": 1,
        "title": "WSAT",
        "started": "2026-11-22T11:00:00Z",
        "finished": None,
        "outcome": "complete",
        "reasons": [],
        "rounds": 5,
        "steady_state": [],
        "metrics": {"write_iops": 5.0},
        "purge": None,
        "precondition": None,
        "not_applicable": [],
        **fields,
    }


test_record.__test__ = False


def collected(record):
    (found,) = record_check.collected([record], "r1", "h1", TIME).records
    return found


def test_rounds_without_end_are_not_counted_one_by_one():
    """All of two milliard rounds disturbed, in 300 bytes."""
    most = (1 << 31) - 1
    cause = {"cause": "other_io", "level": "disturbs", "rounds": [[1, most]], "count": 1, "first": "x"}
    with little():
        found = collected(test_record(rounds=most, validity=[cause]))
        assert found["outcome"] == "complete"
        judge.judge(judged_runs.run_json(), [judged_runs.drive_record(), found])


ENVELOPE = {"schema_version": 1, "time": TIME, "run_id": "r1", "host": "h1"}
OF_TEST = {**ENVELOPE, "drive": "S1", "test": "wsat", "attempt": 1}
CELL = {"event": "cell", "cell": "c", "seed": 1, "seconds": 1, "gap_s": None, "causes": []}
CELL.update(write=None, raw="x", **OF_TEST)
READ = {"ios": 100, "bytes": 1, "bandwidth_bytes_per_s": 1, "mean_latency_us": 1, "max_latency_us": 1}
READ["percentiles_us"] = {}
STATUS = {
    "host": "h1",
    "updated": TIME,
    "drives": [{"drive": "S1", "outcome": "complete", "message": "", "path": None}],
}


def planned(**rule):
    """A plan of one test with a cell, whose rule takes what a rule may."""
    rule = {"window": 5, "range_limit": 1e-9, "slope_limit": 1e-9, "tracked": [TRACKED], **rule}
    test = {"name": "wsat", "cells": [{}], "rounds": {"max": 10**9}, "steady_state": rule}
    return fixture.collected({"tests": [test]})


def many_rounds(count, causes=()):
    """The events of rounds that are never steady."""
    yield {**OF_TEST, "event": "test_started", "title": ""}
    yield {**OF_TEST, "event": "measurement_started", "user_capacity_bytes": 1}
    for number in range(1, count + 1):
        yield {**CELL, "round": number, "read": {**READ, "iops": 100 + number % 2}, "causes": list(causes)}
        yield {**OF_TEST, "event": "round", "round": number, "elapsed_s": number}


TRACKED = {"cell": "c", "metric": "read_iops"}
UNFINISHED = {"event": "test_finished", "ended": None, "reasons": [], "disturbed": [], **OF_TEST}
UNFINISHED.update(conditions=[], vendor_settings=None, wear=None)


def record_of(plan, events):
    """The record of the test."""
    of_run = drive_records.RunReducer(plan)
    for event in events:
        of_run.take(event)
    return next(one for one in base.to_json(of_run.records(STATUS, "r1", False)) if one["kind"] == "test")


def test_a_rule_of_wide_windows_over_rounds_without_end_is_given_up(monkeypatch):
    """A round of a few bytes would have thousands of figures looked at: a journal of them takes days."""
    monkeypatch.setattr(reducer, "MOST_FIGURES", 500_000)
    wide = planned(window=100, confirm_windows=10, tracked=[TRACKED] * 50)
    with little():
        found = record_of(wide, many_rounds(20_000))
    assert found["outcome"] == "invalid" and "figures to hold to rules of steady state" in found["reasons"][0]


def test_the_attempts_of_a_journal_share_what_may_be_looked_at(monkeypatch):
    monkeypatch.setattr(reducer, "MOST_FIGURES", 5 * 30)
    twice = [{**event, "attempt": attempt} for attempt in (1, 2) for event in [*many_rounds(20), UNFINISHED]]
    assert record_of(planned(), twice)["outcome"] == "invalid"
    assert record_of(planned(), twice[len(twice) // 2 :])["outcome"] == "not_steady"


def test_disturbed_rounds_are_looked_up_and_not_searched_for():
    disturbs = {"cause": "other_io", "level": "disturbs", "message": "somebody wrote"}
    with little(20, 2000):
        found = record_of(planned(settle_s=1e9), [*many_rounds(60_000, [disturbs]), UNFINISHED])
    assert found["validity"][0]["count"] == 60_000


def test_a_test_that_ends_again_and_again_is_summed_up_once():
    events = [*many_rounds(2000), *[UNFINISHED] * 20_000]
    measured = host_journal.Measurement(planned().drives[0].tests[0])
    with little():
        found = record_of(planned(), events)
        for event in events[1:]:
            measured.take(event)
    assert (found["outcome"], found["rounds"]) == ("not_steady", 2000)
    assert measured.averages[0]["metrics"]["read_iops"] == 100.4


def test_a_window_of_many_rounds_is_looked_up_and_not_searched_for():
    """The lines of 300,000 rounds are 30 MiB of a journal."""
    measured = host_journal.Measurement()
    measured.rounds = [
        {"round": number, "elapsed_s": 1.0, "bytes_written": 1, "tracked": {("c", "write_iops"): 1.0}}
        for number in range(1, 300_001)
    ]
    window = {"cell": "c", "metric": "write_iops", "steady": True, "window_rounds": [300_000] * 50_000}
    record = test_record(steady_state=[window])
    with little(20, 2000):
        chart_series.test_series(record, {}, {}, measured, None)


def test_a_record_is_no_larger_than_one_of_ours():
    """results.jsonl is the whole fleet's."""
    large = test_record(reasons=["x" * 4096] * 1000)
    found = collected(large)
    assert found["outcome"] == "error" and "characters and values" in found["reasons"][0]
    assert len(json.dumps(found)) < 5000
    many = collected(test_record(not_applicable=[{"id": "c", "reason": "r"}] * 50_000))
    assert many["outcome"] == "error" and len(json.dumps(many)) < 5000
    whole = collected(test_record(not_applicable=[{"id": "c" * 100, "reason": "r" * 100}] * 500))
    assert whole["outcome"] == "complete"


def test_what_a_host_says_it_is_is_short():
    """A report compares each name in it with those of all other hosts."""
    tools = {f"tool{number}": "1" for number in range(50_000)}
    strange = {f"key{number}": "x" * 4000 for number in range(40_000)}
    kept = sanitizer.shape_of_record(results.Brief).passed({**strange, "cpu": "X", "kernel": "y" * 5000}).value
    assert set(kept) == {"cpu", "kernel"} and len(kept["kernel"]) == 1000
    host = {"schema_version": 1, "kind": "host", "time": TIME, "run_id": "r1", "host": "h1", "state": "ok"}
    stored = record_check.stored({**host, "message": "", "snapshot": {"cpu": "X", "tools": tools}})
    assert stored["state"] == "failed"
    stored = record_check.stored({**host, "message": "", "snapshot": strange})
    assert stored["state"] == "ok" and host_diff.flat(stored["snapshot"]) == {}


def test_a_plan_spans_no_table_that_it_does_not_fill():
    """50,000 cells, each of another size and mix, would be a table of millions of places."""
    cells = [{"id": f"c{number}", "block_size_bytes": 512 + number, "read_pct": number % 101} for number in range(500)]
    told = fixture.plan_json(drives=[{"tests": [{"cells": cells * 11}]}])
    with pytest.raises(sanitizer.Unfit):
        sanitizer.shape_of_record(CollectedPlan).passed(told)
    measured = host_journal.Measurement()
    measured.averages = [{"cell": "c1", "metrics": {"iops": 5.0, interference.METRIC: 5.0}}]
    rates = [{"name": "r", "read_pct": 100}, {"name": "w", "read_pct": 0}]
    streams = [
        {"id": f"c{n}", "jobs": [{**job, "rate_iops": n + 1} for job in rates], "block_size_bytes": 512, "read_pct": 50}
        for n in range(5000)
    ]
    with little(5):
        assert tables.matrices(cells * 10, measured, {}, "all 5 rounds") == []
        assert interference.table(streams, measured) is None


def drives(number, **same_for_all):
    return [
        {
            **host_answers.DRIVE,
            "selector": {"serial": f"S{each}"},
            "drive": f"S{each}",
            "path": "/dev/x",
            "identity": {
                "serial": f"S{each}",
                "model": "M",
                "firmware": f"{each}" * 50,
                "size_bytes": 64 * MIB,
                "logical_block_size_bytes": 512,
                **same_for_all,
            },
            "eligible": True,
            "refusals": [],
        }
        for each in range(number)
    ]


def test_drives_that_nobody_asked_for_are_compared_with_nothing(fleet):
    """Ten thousand that say they are one drive: each would be compared with all others."""
    good = fleet(ssd_mode="plan", model="M")
    bad = host_answers.replaced(fleet("h2", ["S2"], ssd_mode="plan"), drives=drives(10_000, serial="S1"))
    with little(20):
        found = decision.decide(decision.Request([good, bad], False, NOW))
    assert found.hosts_left_out == {
        "h2": "ssd_drives: the host answered about other drives than those, so its answer is ignored; check who else "
        "is root on this host (docs/trust.md)"
    }
    assert not [line for line in found.warnings if "firmware" in line]
    assert found.plan_text[0].startswith("Plan of run 20261121T130000Z-qualify:") and len(found.plan_text) < 60


def test_names_that_may_mean_one_drive_are_joined_once():
    """A fleet's drives whose serial numbers are one and whose models begin alike."""
    views = [
        host_answers.of(f"h{number}", {}, (), FACTS, [{**drives(1, serial="S", model="M" * number)[0], "drive": "S"}])
        for number in range(1, 250)
    ]
    with little(5):
        (found,) = duplicates.same_drives(views)
    assert found.host == "h1" and "h249 (S)" in found.message


def test_governors_that_no_kernel_has_cost_no_hours():
    answer = real.of("host_checks")
    tunables = {**answer["snapshot"]["tunables"], "governors": ["performanse" * 300] * 50_000}
    told = module_answers.passed("host_checks", {**answer, "snapshot": {**answer["snapshot"], "tunables": tunables}})
    assert told["failed"] and "governors" in told["msg"]


def test_no_hosts_warnings_push_others_away():
    """run.json keeps them, and every later play reads it."""
    bad = {"check": "link", "drive": None, "level": "warning", "remedy": "r"}
    checks = [{**bad, "message": f"m{number}"} for number in range(10_000)]
    views = [host_answers.of("h1", {}, checks=checks), host_answers.of("h2", {}, checks=[{**bad, "message": "mine"}])]
    found = host_findings.warnings(views, None)
    assert len(found) == host_findings.MOST_WARNINGS + 2
    assert found[-2].message == "and 9800 more warnings of this host" and found[-1].message == "mine"
    assert len(host_findings.lines(found)) == len(found)


def test_discover_shows_no_more_drives_of_a_host_than_it_can_have():
    many = drives(10_000)
    for drive in many[::2]:
        drive.update(eligible=False, refusals=[{"code": "mounted", "message": "no"}] * 1000)
    with little(10):
        shown = drive_list.render({"bad": {"drives": many}, "good": {"drives": drives(1)}})
    assert len(shown.splitlines()) < 5000 and "and 9800 more drives, which are not shown" in shown
    assert "and 980 more reasons" in shown and '- serial: "S0"' in shown.partition("    good:")[2]


def test_one_run_that_is_claimed_ten_thousand_times_is_looked_at_once(tmp_path, monkeypatch):
    """Each look reads the run's results.jsonl, which may have hundreds of MiB."""
    looked = []
    monkeypatch.setattr(runs, "has_whole_host", lambda folder: bool(looked.append(folder)))
    claimed = RunOnHost("a", "qualify", "dead")
    own = [runs.KnownRun("a", "qualify", "2026", frozenset(["h", "i"]), str(tmp_path))]
    assert runs.unfinished("qualify", {"h": [claimed] * 10_000, "i": [claimed]}, own) == (["a"], [])
    assert len(looked) == 1


@pytest.mark.parametrize("field", ["reasons", "message"])
def test_a_reason_is_a_sentence(field):
    """Each page and file of the report has it."""
    record = judged_runs.test_record(outcome="invalid", reasons=[f"is reported as {[1.5] * 40_000}"])
    of_drive = judged_runs.drive_record(outcome="error", message="x" * 250_000)
    told = [judged_runs.drive_record(), record] if field == "reasons" else [of_drive]
    drive = judged_runs.one(told)
    assert drive["verdict"] != "pass" and max(map(len, drive["reasons"])) <= judge.MOST_REASON
    assert all(len(reason) <= judge.MOST_REASON for test in drive["tests"] for reason in test["reasons"])
