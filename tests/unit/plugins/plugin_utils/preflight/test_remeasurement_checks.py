# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A second measurement erases only what preflight of this very play decided to erase, and the same drives."""

from __future__ import annotations

import json

import pytest

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan import hostplan
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.preflight import (
    findings,
    remeasurement_checks,
    variable_rules,
)
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.preflight.findings import Run
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.run_folder import decision_record
from ansible_collections.ssdlab.fleet.tests.fixtures import host_answers, planned

IDENTITY = {"serial": "S1", "wwn": None, "model": "M", "size_bytes": 960}
AGAIN = {
    "run_id": "r1-again",
    "run_name": "qualify-again",
    "of": "r1",
    "drives": [{"serial": "S1"}],
    "tests": ["iops"],
    "counts": {"S1": ["iops"]},
    "identities": {"S1": IDENTITY},
}
RUN = Run("r1-again", "qualify-again", {})


def view(drive="S1", **identity):
    return host_answers.of("h1", {"ssd_again": AGAIN}, drives=[{"drive": drive, "identity": {**IDENTITY, **identity}}])


@pytest.fixture(name="results")
def fixture_results(tmp_path):
    """A results folder where this play decided to erase drives of h1 in r1."""
    (tmp_path / "r1").mkdir()
    decision_record.write(str(tmp_path / "r1"), {"h1": planned.plan_of(run={"id": "r1", "name": "n"})})
    return str(tmp_path)


def messages(view, results, run=RUN):
    return [finding.text() for finding in remeasurement_checks.findings([view], run, results)]


def test_the_same_drives_of_the_same_play_may_be_measured_again(results):
    assert messages(view(), results) == []


def test_no_second_measurement_has_nothing_to_say(results):
    assert (
        remeasurement_checks.findings([host_answers.of("h1", {})], RUN, results) == []
        and remeasurement_checks.counting_tests(host_answers.of("h1", {}), "S1") is None
    )


@pytest.mark.parametrize(
    "change, told",
    [
        ({"serial": "S9"}, "h1: drive S1: identity_changed: its serial"),
        ({"wwn": "naa.5"}, "identity_changed: its wwn"),
        ({"size_bytes": 961}, "identity_changed: its size_bytes"),
        ({"drive": "S2"}, "h1: drive S2: ssd_again: this drive is not one of those"),
    ],
)
def test_another_drive_is_refused(results, change, told):
    assert told in messages(view(**change), results)[0]


def test_what_another_play_decided_is_no_decision(results, tmp_path):
    path = tmp_path / "r1" / decision_record.FILE
    record = json.loads(path.read_text())
    path.write_text(json.dumps({**record, "play": {"pid": 1, "started": "0"}}))
    assert (
        "preflight of this play did not approve erasing drives of this host in run r1" in messages(view(), results)[0]
    )
    path.unlink()
    assert len(messages(view(), results)) == 1


def test_a_host_that_was_not_decided_on_is_refused(results):
    assert "h2: ssd_again: preflight of this play did not" in messages(view()._replace(name="h2"), results)[0]


def test_it_cannot_go_under_another_run(results):
    assert "r7 is not the second measurement of r1" in messages(view(), results, Run("r7", "q", {}))[0]


def test_the_plan_has_its_tests_alone():
    variables = {"ssd_step": "qualify", "ssd_plan": ["wsat", "iops"], "ssd_tests_dirs": [], "ssd_again": AGAIN}
    tests, _left_out = hostplan.choose_tests(hostplan.load_tests(variables), variables)
    assert [test.name for test in tests] == ["iops"]


@pytest.mark.parametrize("given, right", [(0, True), (1, True), ("1", True), (2, False), ("yes", False), (-1, False)])
def test_it_is_measured_again_once_or_never(given, right):
    assert (variable_rules.problems({"ssd_retest": given}) == []) is right


def test_plan_mode_says_so_where_a_criterion_is_relative():
    share = {"metric": "write_iops", "min_of_median": 0.9}
    views = [host_answers.of("h1", {"ssd_retest": 1})]
    assert remeasurement_checks.is_requested(views) and not remeasurement_checks.is_requested(
        [host_answers.of("h1", {"ssd_retest": 0})]
    )
    assert "(<run id>-again)" in remeasurement_checks.plan_lines(True, [share])[0]
    assert (
        remeasurement_checks.plan_lines(True, [{"metric": "write_iops", "min": 1}])
        == remeasurement_checks.plan_lines(False, [share])
        == []
    )


@pytest.mark.parametrize("state, others", [("finished", 0), (None, 1), ("failed", 1)])
def test_a_play_of_a_run_that_is_done_takes_up_its_second_measurement(state, others):
    """A controller that died while drives were measured again: the next play goes on."""
    working = host_answers.of("h1", {}, runs=[{"run_id": "r1-again", "state": "running", "run_name": "qualify-again"}])
    run = Run("r1", "qualify", {"h1": state} if state else {})
    assert len(findings.other_live_runs(working, run)) == others
