# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How severe a finding is, how versions are matched, and that the table of checks is well formed."""

from __future__ import annotations

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.checks import table
from ansible_collections.ssdlab.fleet.plugins.module_utils.checks.base import (
    LEVELS,
    Check,
    HostFacts,
    Unknown,
    matches,
)
from ansible_collections.ssdlab.fleet.plugins.module_utils.machine import pcie
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.check_finding import CheckFinding
from ansible_collections.ssdlab.fleet.tests.unit.plugins.module_utils.checks.machines import (
    GOOD_MACHINE,
    REQUIRED,
    drive,
)


def test_levels_are_the_inventorys_choice():
    facts = HostFacts(GOOD_MACHINE, REQUIRED, [drive({"width": 2}, told={"media_errors": 1, "passed": None})])
    by_check = {item.check: item.level for item in table.run(facts, {})}
    remedies = {item.check: item.remedy for item in table.run(facts, {})}
    assert remedies["health"] == table.UNKNOWN_REMEDY and "reseat" in remedies["pcie_link"]
    # pcie_link blocks by itself, media_errors warns, and what could not be read warns though health blocks.
    assert by_check == {"pcie_link": "blocks", "media_errors": "warning", "health": "warning"}
    chosen = {
        item.check: item.level
        for item in table.run(facts, {"pcie_link": "ok", "media_errors": "blocks", "health": "blocks"})
    }
    assert chosen == {"pcie_link": "ok", "media_errors": "blocks", "health": "blocks"}


@pytest.mark.parametrize(
    "error, remedy",
    [
        ("smartctl is not installed", "install smartmontools"),
        ("nvme is not installed; smartctl is not installed", "install nvme-cli"),
        ("nvme smart-log failed with exit code 1; smartctl is not installed", "install smartmontools"),
        ("smartctl -a failed with exit code 1", table.UNKNOWN_REMEDY),
    ],
)
def test_of_a_tool_that_is_not_installed_the_remedy_is_its_package(error, remedy):
    found = table.run(HostFacts(GOOD_MACHINE, REQUIRED, [drive(told={"error": error})]), {})
    assert found and {item.remedy for item in found} == {remedy}


def test_errors_under_traffic_take_fio():
    one = drive(aer_rose=None, traffic="fio is not installed")
    (found,) = table.run(HostFacts(GOOD_MACHINE, REQUIRED, [one]), {})
    assert (found.check, found.remedy) == ("pcie_errors", "install fio")


def test_a_vendors_findings_keep_their_level_unless_the_inventory_says_otherwise():
    vendor = [CheckFinding("pcie_bandwidth", None, "blocks", "m", "r")]
    facts = HostFacts(GOOD_MACHINE, REQUIRED)
    assert table.run(facts, {}, vendor) == vendor
    assert table.run(facts, {"pcie_bandwidth": "warning"}, vendor)[0].level == "warning"


def test_the_table_is_well_formed():
    assert len(set(check.check for check in table.TABLE)) == len(table.TABLE)
    for check in table.TABLE:
        assert check.level in LEVELS and check.remedy and (check.look is None) is not (check.look_host is None), (
            check.check
        )
        assert check.check in table.CODES


@pytest.mark.parametrize(
    "wanted, actual, expected",
    [
        (">=3.28", "3.28", True),
        (">=3.28", "3.9", False),
        (">= 3.28", "fio-3.33-12-gabc", True),
        ("E2MU*", "E2MU110", True),
        (["1.0", "2.0"], "2.0", True),
        (["1.0", "2.0"], "2.0.1", False),
        ("FW1", "fw1", False),
        (">=2.6.25", "6.1.0-31-amd64", True),
        (">=2", "unknown", False),
        (">=3.28.0", "3.28", True),
        (">=3", "3.0", True),
        (">=3.0.1", "3", False),
    ],
)
def test_version_rules(wanted, actual, expected):
    assert matches(wanted, actual) is expected


def test_an_unknown_is_a_text_of_its_own_kind():
    assert isinstance(Unknown("x"), str) and table.level(Check("c", "blocks", "r"), Unknown("x"), {}) == "warning"
    assert table.level(Check("c", "blocks", "r"), "x", {}) == "blocks" and pcie.is_bridge("0x060400")
