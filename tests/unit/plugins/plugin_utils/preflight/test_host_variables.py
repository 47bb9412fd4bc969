# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which variables preflight notes, and that each is evaluated once."""

from __future__ import annotations

import pytest
from ansible.errors import AnsibleError

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan import hostplan
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.preflight import approval_check, host_variables
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.preflight.findings import UNSET

PLAN = {"sha256": "abc", "lines": ["a template"]}


def evaluate(value):
    """A templating engine that knows three texts."""
    if value == "wrong":
        raise AnsibleError("'serial' is undefined")
    return {"a template": "its value", "the plan": PLAN}.get(value, value) if isinstance(value, str) else value


def test_every_variable_that_counts_is_noted():
    assert {*hostplan.VARIABLES, *hostplan.GIVEN, *approval_check.OVERRIDES, "ssd_drives", "tune_governor"} <= {
        *host_variables.names()
    }
    assert not {"ssd_store_url", "ssd_become", "ssd_ask_hosts"} & {*host_variables.names()}


def test_a_variable_that_nobody_has_set_is_noted_as_such():
    found = host_variables.evaluated({"ssd_mode": "a template"}, evaluate)
    assert found.pop("ssd_mode") == "its value" and found.pop(host_variables.BMC_PROBLEM).startswith("no vendor_bmc_")
    assert {*found, "ssd_mode"} == {*host_variables.names(), "ssd_approved_plan"}
    assert set(found.values()) == {UNSET}


def test_a_variable_is_evaluated_once():
    given = {name: [name] for name in [*host_variables.names(), "ssd_approved_plan", "ssd_store_url"]}
    evaluated = []
    host_variables.evaluated(given, lambda value: evaluated.append(value) or value)
    assert sorted(evaluated) == [[name] for name in host_variables.names()]


def test_an_error_names_the_variable():
    with pytest.raises(AnsibleError, match="^ssd_drives: 'serial' is undefined"):
        host_variables.evaluated({"ssd_drives": "wrong"}, evaluate)


@pytest.mark.parametrize(
    ("given", "noted"),
    [(PLAN, "abc"), ("the plan", "abc"), ("plan.json", "plan.json"), ({}, ""), ({"sha256": "a template"}, "its value")],
)
def test_of_the_approved_plan_the_digest_is_noted(given, noted):
    assert host_variables.evaluated({"ssd_approved_plan": given}, evaluate)["ssd_approved_plan"] == noted


def test_a_second_measurement_is_of_its_drives_alone():
    again = {"drives": ["S1"], "run_id": "r-again", "run_name": "n", "tests": []}
    given = {"ssd_again": again, "ssd_drives": ["S1", "S2"], "ssd_run_id": "", "ssd_run_name": "x"}
    found = host_variables.evaluated(given, evaluate)
    assert [found[f"ssd_{name}"] for name in ("drives", "run_id", "run_name")] == [["S1"], "r-again", "n"]


@pytest.mark.parametrize(
    ("programs", "found"),
    [
        ([{"path": "/opt/agent"}], [{"path": "/opt/own"}, {"path": "/opt/agent"}]),
        ([], [{"path": "/opt/own"}]),
        # What is malformed is told where all variables are checked.
        ("/opt/agent", [{"path": "/opt/own"}]),
        ([{"program": "agent"}], [{"path": "/opt/own"}]),
    ],
)
def test_each_drive_has_the_programs_of_its_site(programs, found):
    drives = [{"serial": "S1", "passing_programs": [{"path": "/opt/own"}]}, {"serial": "S2"}, "S3"]
    given = {"ssd_drives": drives, "ssd_passing_programs": programs}
    entries = host_variables.evaluated(given, evaluate)["ssd_drives"]
    assert entries[0]["passing_programs"] == found and entries[2] == "S3"
    assert entries[1].get("passing_programs", []) == found[1:]
