# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A drive that is bad by its own health fails, whatever became of its tests."""

from __future__ import annotations

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.measure import health_metrics
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.peers import host_fault
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.verdict import judge, judged_criteria
from ansible_collections.ssdlab.fleet.tests.unit.plugins.plugin_utils.verdict.judged_runs import (
    WSAT_MIN,
    drive_record,
    run_json,
    test_record,
)

DEFAULT = [dict(item) for item in health_metrics.DEFAULT_CRITERIA]
SAID = "it counted 3 more media errors (media_errors, max 0)"
FIGURES = {"write_iops": 800.0}


def judged(record, criteria=(WSAT_MIN,), health_criteria=DEFAULT, drive=None):
    run = {**run_json(criteria=criteria), "health_criteria": {"h1": health_criteria}}
    return judge.judge(run, [drive or drive_record(), record])["drives"][0]


def measured(outcome="steady", metrics=(), **fields):
    return test_record(outcome, **{"metrics": {**FIGURES, **dict(metrics)}, "health": {}, **fields})


@pytest.mark.parametrize(
    "outcome, more",
    [
        ("steady", []),
        ("invalid", ["link at 8 GT/s"]),
        ("error", ["the test ended with an error after 9 rounds: link at 8 GT/s"]),
        ("not_steady", ["steady state was not attained after 9 rounds: link at 8 GT/s"]),
    ],
)
def test_a_drive_that_counted_media_errors_fails_whatever_became_of_its_test(outcome, more):
    reasons = [] if outcome == "steady" else ["link at 8 GT/s"]
    drive = drive_record("error" if outcome == "error" else "complete")
    found = judged(measured(outcome, {"media_errors": 3.0}, reasons=reasons), drive=drive)
    (test,) = found["tests"]
    assert (found["verdict"], test["verdict"], test["health"]) == ("fail", "fail", [SAID])
    assert test["reasons"] == [SAID, *more] and found["reasons"][0] == f"wsat: {SAID}"
    # A figure that counts is one for peers too; the others are none.
    assert test["counts"] == (outcome == "steady")
    # It missed nothing that it has no figure for.
    assert not any("has no figure" in reason for reason in found["reasons"])


@pytest.mark.parametrize("health_criteria", [[], [{"metric": "media_errors", "max": 3}]])
def test_none_or_a_looser_list_lets_it_pass(health_criteria):
    found = judged(measured(metrics={"media_errors": 3.0}), health_criteria=health_criteria)
    assert found["verdict"] == "pass" and "health" not in found["tests"][0]


def test_each_host_has_its_own():
    records = [
        {**record, "host": host}
        for host in ("h1", "h2")
        for record in (drive_record(), measured(metrics={"media_errors": 3.0}))
    ]
    run = run_json(criteria=[], asked=[("h1", "S1"), ("h2", "S1")])
    found = judge.judge({**run, "health_criteria": {"h1": DEFAULT, "h2": []}}, records)["drives"]
    assert [(drive["host"], drive["verdict"]) for drive in found] == [("h1", "fail"), ("h2", "pass")]
    assert found[1]["reasons"] == [judged_criteria.NO_CRITERION]


@pytest.mark.parametrize("metrics", [{}, {"media_errors": None, "longest_io_s": None, "drive_gone": None}])
def test_what_is_unknown_says_nothing(metrics):
    found = judged(measured(metrics=metrics))
    assert found["verdict"] == "pass" and found["tests"][0]["reasons"][0] not in judged_criteria.UNJUDGED


def test_a_drive_that_is_held_to_them_alone_says_so():
    found = judged(measured(metrics={"media_errors": 0.0}), criteria=[])
    assert (found["verdict"], found["reasons"]) == ("pass", [judged_criteria.HEALTH_ALONE])
    found = judged(measured(metrics={"media_errors": 0.0}), criteria=[], health_criteria=[])
    assert (found["verdict"], found["reasons"]) == ("pass", [judged_criteria.NO_CRITERION])


@pytest.mark.parametrize(
    "health, health_criteria, says",
    [
        ({"media_errors": 3}, DEFAULT, [f"raid: {SAID}"]),
        ({"media_errors": 3}, [], []),
        ({"media_errors": 0, "io_timeouts": 2}, DEFAULT, []),
        (
            {"controller_resets": 1, "kernel_message": "nvme1: reset"},
            DEFAULT,
            ['raid: its controller was reset once, the kernel\'s log says "nvme1: reset" (controller_resets, max 0)'],
        ),
    ],
)
def test_a_drive_fails_by_what_became_of_it_in_an_array_that_another_drive_carries(health, health_criteria, says):
    drive = {**drive_record(), "in_arrays": [{"test": "raid", "attempt": 1, "health": health}]}
    found = judged(measured(), health_criteria=health_criteria, drive=drive)
    assert found["verdict"] == ("fail" if says else "pass") and (found["reasons"] == says or not says)
    # Its own test is as good as before.
    assert found["tests"][0]["verdict"] == "pass" and found["tests"][0]["counts"]


@pytest.mark.parametrize("timeout_s, verdict", [(30.0, "pass"), (10.0, "fail"), (None, "pass")])
def test_the_kernels_timeout_limits_an_io(timeout_s, verdict):
    found = judged(measured(metrics={"longest_io_s": 12.0}, health={"io_timeout_s": timeout_s}))
    assert found["verdict"] == verdict


def test_of_a_run_before_there_was_health_nothing_is_missed():
    record = test_record()
    assert judge.judge(run_json(), [drive_record(), record])["drives"][0]["verdict"] == "pass"


def test_no_slow_host_is_to_blame_for_a_sick_drive():
    relative = {"test": "wsat", "metric": "write_iops", "min_of_median": 0.9}
    run = {**run_json(criteria=[relative]), "health_criteria": {"h1": DEFAULT}}

    def half(*_of):
        return judged_criteria.Reference(1600.0, "the median")

    for metrics, suspected in (({}, True), ({"media_errors": 1.0}, False)):
        found = judge.judge(run, [drive_record(), measured(metrics=metrics)], half)
        assert found["drives"][0]["verdict"] == "fail"
        assert bool(host_fault.suspects(run, found)) == suspected


@pytest.mark.parametrize(
    "criterion, says",
    [
        ({"metric": "media_errors", "max": 0}, ""),
        ({"metric": "available_spare_pct", "min": 20}, ""),
        ({"metric": "media_errors", "min": 1}, "more of it is worse"),
        ({"metric": "available_spare_pct", "max": 20}, "less of it is worse"),
        ({"metric": "write_amplification", "max_of_median": 1.2}, "a drive's health is not compared with others"),
    ],
)
def test_an_ordinary_criterion_may_be_on_health_too(criterion, says):
    found = judged_criteria.criterion_problems(criterion)
    assert len(found) == bool(says) and all(says in text for text in found)
