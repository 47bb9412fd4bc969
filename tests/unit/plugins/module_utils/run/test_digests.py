# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A plan is what preflight decided on, or nothing is done."""

from __future__ import annotations

import dataclasses

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.records import base
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.plan import Plan
from ansible_collections.ssdlab.fleet.plugins.module_utils.run import digests
from ansible_collections.ssdlab.fleet.tests.fixtures import planned

PLAN = planned.plan_json(
    boot_id="one", drives=[{"expected": {"serial": "S1", "diskseq": 3}, "tests": [{"name": "wsat", "cells": [{}]}]}]
)
MADE = planned.plan_of(**PLAN)


def decided(**changes):
    return base.parse(Plan, {**PLAN, "decision": base.sparse_json(digests.decision(MADE)), **changes})


def test_the_plan_as_it_was_decided_on_also_after_its_way_to_the_host():
    assert digests.plan_problem(decided()) == ""
    assert (
        digests.plan_problem(decided(boot_id="two", tune={"services_stopped": ["x"]})) == ""
    )  # nothing that is done to a drive


@pytest.mark.parametrize(
    "key, value",
    [("drive", "S2"), ("selector", {"serial": "S2"}), ("expected", {"serial": "S1", "diskseq": 4}), ("tests", [])],
)
def test_another_drive_or_test_is_another_decision(key, value):
    assert "not what preflight approved" in digests.plan_problem(
        decided(drives=[dict(PLAN["drives"][0], **{key: value})])
    )


@pytest.mark.parametrize(
    "changes",
    [
        {"run": {"id": "other", "name": "n"}},
        {"host": "other"},
        {"drives": PLAN["drives"] * 2},
        {"drives": []},
        {"parallel_drives": 24},
        {"together": {"repeats": 3, "cells": [], "alone": ["S1"], "numbers": [2], "otherwise": 1}},
    ],
)
def test_another_run_host_or_number_at_a_time_is_another_decision(changes):
    assert digests.plan_problem(decided(**changes))


@pytest.mark.parametrize(
    "known",
    [
        None,
        digests.decision(MADE, "plan"),
        digests.PlanDecision("destructive", digests.plan_digest(MADE, "plan")),
    ],
)
def test_what_is_no_decision(known):
    assert digests.plan_problem(dataclasses.replace(MADE, decision=known))


def test_how_often_everything_is_read_back_is_part_of_a_decision_and_of_a_test():
    drives = ([{"tests": [{"name": "integrity", "integrity": {"passes": passes}}]}] for passes in (1, 2))
    once, twice = (planned.plan_of(**{**PLAN, "drives": each}) for each in drives)
    assert digests.decision(once) != digests.decision(twice)
    assert digests.digests_of_tests(once) != digests.digests_of_tests(twice)
