# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a drive can't do is told in plan mode, before anything is purged for it, and costs no other drive its run."""

from __future__ import annotations

import dataclasses

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.records import base
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.preflight import drive_feasibility
from ansible_collections.ssdlab.fleet.tests.fixtures import host_answers, planned
from ansible_collections.ssdlab.fleet.tests.unit.plugins.plugin_utils.preflight.fleets import NVME, decide

ATA = {
    "path": "/dev/sda",
    "size_bytes": 1 << 30,
    "sanitize": [],
    "sanitize_state": None,
    "sanitize_problem": "",
    "security": {
        **dict.fromkeys(("supported", "enabled", "locked", "frozen", "expired", "enhanced"), False),
        "erase_min": None,
        "enhanced_erase_min": None,
    },
    "direct": True,
}
RESET, REST = ({"integrity": {"passes": 2, key: True}} for key in ("reset", "low_power"))
SELF_TEST = {"self_test": "short"}


def told(test, transport, expected=None, **capabilities):
    """The texts of what a drive of a host can't do."""
    entry = {"drive": "S1", "selector": {"serial": "S1"}, "path": "/dev/x", "purge_capabilities": capabilities}
    view = host_answers.of("h1", asked={}, drives=[entry])
    drive = planned.drive(
        expected={"transport": transport, **(expected or {})},
        tests=[{"name": "one", **test}, {"name": "two", **test}],
    )
    plan = dataclasses.replace(planned.plan_of(), drives=[drive])
    found = drive_feasibility.findings([view], {"h1": plan})
    assert all(finding.concerns == "S1" for finding in found)
    return [finding.text() for finding in found]


def nvme(**facts):
    return {"nvme": {**NVME, **facts}}


@pytest.mark.parametrize(
    ("zone_model", "test", "why"),
    [
        (
            "host-managed",
            {"cells": [{}]},
            "it is zoned, and the plan has tests that don't go by zone (one, two); ssd_plan: zoned ",
        ),
        (
            None,
            {"zoned": True, "cells": [{}]},
            "it has no zones, and the plan has tests by zone (one, two); ssd_plan: nightly",
        ),
        ("host-managed", {"zoned": True, "cells": [{}]}, ""),
    ],
)
def test_a_plan_by_zone_is_for_zoned_drives_alone(zone_model, test, why):
    found = told(test, "nvme", expected={"zone_model": zone_model})
    assert len(found) == bool(why) and all(
        f"S1: wrong_zones: the plan is not for this drive: {why}" in text for text in found
    )


@pytest.mark.parametrize("transport", ["loop", "sata", "sas", "usb", "nvme-tcp", None])
@pytest.mark.parametrize(("test", "key"), [(RESET, "reset"), (REST, "low_power")])
def test_only_nvme_drives_are_reset_or_put_to_rest(test, key, transport):
    (text,) = told(test, transport)
    assert text.startswith(f"h1: drive S1: test one: integrity.{key}: only NVMe ")
    assert text.endswith(f"; take integrity.{key} out of the test, or measure this drive in a run without it")
    assert transport is None or f"this drive is {transport}" in text


@pytest.mark.parametrize("transport", ["loop", "usb", "pcie", "virtio", None])
def test_only_drives_that_a_tool_can_ask_test_themselves(transport):
    (text,) = told(SELF_TEST, transport)
    assert text.endswith("; take one out of the plan, or measure this drive in a run without it")
    assert text.startswith("h1: drive S1: test one: self_test: only NVMe, SATA and SAS drives test themselves, and ")


def test_no_state_of_its_write_cache_is_asked_of_a_loop_device():
    (text,) = told({"write_cache": "off"}, "loop")
    assert text.startswith("h1: drive S1: test one: write_cache: a loop device does not tell ")
    assert text.endswith("; take write_cache out of the test, or measure this drive in a run without it")


@pytest.mark.parametrize(
    ("test", "transport", "capabilities", "why"),
    [
        (REST, "nvme", nvme(can_rest=False), "it has no power state in which it does no I/O"),
        (REST, "nvme", nvme(controllers=2), "its NVM subsystem has 2 controllers"),
        (RESET, "nvme", nvme(controllers=2), "its NVM subsystem has 2 controllers"),
        (SELF_TEST, "nvme", nvme(has_self_tests=False), "the drive has no self-tests"),
        (SELF_TEST, "sata", {"ata": {**ATA, "has_self_tests": False}}, "the drive has no self-tests"),
    ],
)
def test_what_the_drive_itself_says_counts(test, transport, capabilities, why):
    (text,) = told(test, transport, **capabilities)
    assert f": {why}; take " in text


@pytest.mark.parametrize(
    ("test", "transport", "capabilities"),
    [
        (RESET, "nvme", nvme()),
        (REST, "nvme", nvme(can_rest=True)),
        (REST, "nvme", nvme()),
        (REST, "nvme", {"nvme": {"error": "nvme-cli is not installed"}}),
        (REST, "nvme", {}),
        (SELF_TEST, "nvme", nvme(has_self_tests=True)),
        (SELF_TEST, "nvme", {}),
        (SELF_TEST, "sata", {"ata": ATA}),
        (SELF_TEST, "sata", {"ata": {**ATA, "has_self_tests": True}}),
        (SELF_TEST, "sas", {}),
        ({"integrity": {"passes": 2, "pause_s": 60}}, "loop", {}),
        ({}, "loop", {}),
        ({"write_cache": "off"}, "nvme", {}),
        ({"write_cache": "off"}, "usb", {}),
    ],
)
def test_what_it_can_do_and_what_nobody_knows_is_no_finding(test, transport, capabilities):
    assert told(test, transport, **capabilities) == []


def test_one_odd_drive_does_not_stop_the_others(fleet):
    asked = {"ssd_plan": [{"base": "integrity", "integrity": {"passes": 2, "reset": True}}], "ssd_criteria": []}
    views = fleet(drives=["S1", "S2"], **asked), fleet("h2", ["S3"], **asked)
    h1, h2 = (host_answers.with_identity(view, transport="nvme") for view in views)
    odd = host_answers.with_drive(h1, 1, identity={**base.to_json(h1.drives[1].identity), "transport": "sata"})
    decided = decide(odd, h2)
    assert decided.findings == [] and decided.left_out == {"h1": ["S2"]}
    assert [drive.drive for made in decided.plans.values() for drive in made.drives] == ["S1", "S3"]
    (line,) = decided.leaves
    assert line.startswith("h1: drive S2: test integrity: integrity.reset: only NVMe controllers are reset")


def test_a_drive_without_self_tests_goes_without_that_test_alone(fleet):
    asked = {"ssd_plan": ["self-test-short", "wsat"], "ssd_criteria": []}
    h1 = host_answers.with_identity(fleet(drives=["S1", "S2"], **asked), transport="nvme")
    h1 = host_answers.with_drive(h1, 1, purge_capabilities=nvme(has_self_tests=False))
    decided = decide(h1)
    assert decided.findings == [] and decided.leaves == [] and decided.record
    planned_, recorded = decided.plans["h1"].drives, decided.record.asked
    for drives in (planned_, recorded):
        tests = [[getattr(test, "name", test) for test in drive.tests] for drive in drives]
        assert tests[0] == ["self-test-short", *tests[1]] and tests[1], tests
    assert recorded[1].left_out_tests == ["self-test-short"] and recorded[0].left_out_tests is None
    (line,) = [line for line in decided.warnings if "self_test" in line]
    assert line.startswith("h1: drive S2: self_test: left out: self-test-short: the drive has no self-tests. To fix")


def test_a_drive_that_would_have_no_test_left_is_refused(fleet):
    asked = {"ssd_plan": ["self-test-short"], "ssd_criteria": []}
    h1 = host_answers.with_identity(fleet(drives=["S1", "S2"], **asked), transport="nvme")
    decided = decide(host_answers.with_drive(h1, 1, purge_capabilities=nvme(has_self_tests=False)))
    assert decided.left_out == {"h1": ["S2"]}, decided
    assert "take self-test-short out of the plan" in decided.leaves[0]
