# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The health of drives that only their vendor's tool tells, as far as their checks judge it."""

from __future__ import annotations

import json

import emulator
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.ssdlab.fleet.plugins.module_utils.checks import health as check_health
from ansible_collections.ssdlab.fleet.plugins.module_utils.checks.base import CheckedDrive, HostFacts, Machine
from ansible_collections.ssdlab.fleet.plugins.module_utils.drive import health
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.identity import Identity
from ansible_collections.ssdlab.fleet.plugins.module_utils.vendors import iomemory, rssdm, vendor_health

MICRON = Identity(transport="pcie", kernel_name="rssda", path="/dev/rssda", serial="S1")
CARD = Identity(transport="pcie", kernel_name="fioa", path="/dev/fioa", serial="C1")


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    monkeypatch.setattr(rssdm, "BUSY_S", 0.0)


def found(told, identity=None):
    """{check: message} of the checks of a drive's health."""
    facts, drive = HostFacts(Machine()), CheckedDrive("S1", identity or MICRON, health=told)
    return {
        check.check: message
        for check in check_health.CHECKS
        for message in check.look(facts, drive)
        if check.check != "write_cache"
    }


def test_a_p420m_is_asked_by_rssdm(emulated):
    host = emulated(rssdm=[emulator.p420m(0, "OTHER"), emulator.p420m(1, "S1", temperature_c=51)])
    told = health.read(host, MICRON)
    assert [command[:2] for command in host.commands] == [["rssdm", "-L"], ["rssdm", "-S"]] and host.commands[1][
        -1
    ] == "1"
    expected = {
        "source": "rssdm",
        "temperature_c": 51,
        "passed": True,
        "used_pct": 3,
        "spare_pct": 100,
        "spare_threshold_pct": 10,
        "media_errors": 0,
    }
    assert {key: getattr(told, key) for key in expected} == expected and told.error == ""
    assert list(found(told)) == ["temperature_headroom"]  # no document at hand tells where it throttles


@pytest.mark.parametrize(
    "facts, check, says",
    [
        (
            {"status": "Drive is in write protect mode"},
            "health",
            "its self-assessment is: Drive is in write protect mode",
        ),
        ({"smart": {"Percentage Lifetime Used": 95}}, "wear", "95 % of its endurance is used"),
        ({"smart": {"Available Reserved Space": 10}}, "spare", "its spare is 10 %, at or below its threshold of 10 %"),
        ({"smart": {"Reported Uncorrectable Errors": 2}}, "media_errors", "it counted 2 media errors"),
    ],
)
def test_what_is_wrong_with_a_p420m_is_found(emulated, facts, check, says):
    host = emulated(rssdm=[emulator.p420m(0, "S1", **facts)])
    assert says in found(health.read(host, MICRON))[check]


def test_without_smart_values_the_list_still_counts(emulated):
    told = health.read(emulated(rssdm=[emulator.p420m(0, "S1", smart_fails=True)]), MICRON)
    assert (told.temperature_c, told.passed, told.error) == (47, True, "")
    assert found(told)["wear"] == "rssdm does not report its wear"


def test_rssdm_that_is_busy_is_asked_again(emulated):
    host = emulated(rssdm=[emulator.p420m(0, "S1")])
    for busy, error in ((2, False), (9, True)):
        with host.state() as machine:
            machine["rssdm"]["busy"] = busy
        assert bool(health.read(host, MICRON).error) is error


@pytest.mark.parametrize(
    "line, value",
    [
        ("202  Percentage Lifetime Used : 7", 7),
        ("  [202] Percentage Lifetime Used   7 %", 7),
        ("Percentage Lifetime Used : 7", 7),
        ("202 Percentage Lifetime Used 93 90 10 7", None),  # current, worst, threshold, raw? Nobody knows
        ("202 Percentage Lifetime Used 0x07", None),
        ("202 Percentage Lifetime Used", None),
        ("202 Percentage Lifetime Used : 7\n202 Percentage Lifetime Used : 8", None),
        ("202 Percentage Lifetime Used Since Format : 7", None),
    ],
)
def test_a_smart_line_counts_only_where_its_value_is_certain(line, value):
    assert rssdm.parse_smart(line).get("Percentage Lifetime Used") == value


def test_the_kernel_tells_a_thermal_shutdown_without_any_tool(fake):
    for status, bits in (("online", 0), ("thermal_shutdown", 2), ("write_protect", 8), ("something new", None)):
        fake.put("/sys/block/rssda/status", status + "\n")
        told = health.read(fake, MICRON)
        assert told.critical_warning == health.glance(fake, MICRON).critical_warning == bits
        assert "rssdm is not installed" in told.error and "smartctl is not installed" in told.error
    fake.put("/sys/block/rssda/status", "thermal_shutdown\n")
    assert found(health.read(fake, MICRON))["temperature"] == "it warns: the temperature is beyond a threshold"
    assert (
        health.glance(fake, CARD) == health.glance(fake, Identity(transport="sata", path="/dev/sda")) == health.Health()
    )


def test_a_card_is_asked_by_fio_status(emulated):
    host = emulated(cards=[emulator.card(0, "C1"), emulator.card(1, "C2", temperature_c=40)])
    told = health.read(host, CARD)
    expected = {
        "source": "fio-status",
        "temperature_c": 64,
        "warning_temperature_c": 78,
        "passed": True,
        "used_pct": 0,
        "spare_pct": 100,
        "spare_threshold_pct": 10,
        "volatile_write_cache": False,
        "error": "",
    }
    assert {key: getattr(told, key) for key in expected} == expected
    assert host.commands == [["fio-status", "-a"], ["fio-status", "-fj"]]
    assert health.read(host, CARD, limits=False).warning_temperature_c is None and len(host.commands) == 3
    assert list(found(told, CARD)) == ["media_errors"]  # fio-status counts none


@pytest.mark.parametrize(
    "facts, check, says",
    [
        ({"reserve": "Write-reduced", "reserves_pct": 4}, "health", "its self-assessment is: Write-reduced"),
        ({"reserves_pct": 9.99}, "spare", "its spare is 10 %, at or below its threshold of 10 %"),
        ({"writes_left_pct": 9.5}, "wear", "90 % of its endurance is used"),
        ({"temperature_c": 78.2}, "temperature", "it is at 78 °C, its limit is 78 °C"),
        ({"temperature_c": 70}, "temperature_headroom", "8 °C below its limit of 78 °C"),
        ({"temperature_c": 86, "old_driver": True}, "temperature", "its limit is 85 °C"),
    ],
)
def test_what_is_wrong_with_a_card_is_found(emulated, facts, check, says):
    host = emulated(cards=[emulator.card(0, "C1", **facts)])
    assert says in found(health.read(host, CARD), CARD)[check]


def test_a_warning_of_fio_status_counts_though_the_reserve_is_healthy():
    lines = [
        "fct0\tAttached",
        "ioDrive2, SN:C1",
        "ACTIVE WARNINGS: it is in a minimal state.",
        "Reserve space status: Healthy; Reserves: 100.00%",
    ]
    (card,) = iomemory.parse_status("\n\t".join(lines))
    told = health.Health(**vendor_health.from_card(card))
    assert told.passed is False and found(told, CARD)["health"].endswith("ACTIVE WARNINGS: it is in a minimal state.")


def test_a_reserve_above_its_threshold_is_not_told(emulated):
    assert "spare" not in found(health.read(emulated(cards=[emulator.card(0, "C1", reserves_pct=10.4)]), CARD), CARD)


def test_a_card_or_drive_that_its_tool_does_not_list_is_told(emulated):
    host = emulated(cards=[emulator.card(0, "C2")], rssdm=[emulator.p420m(0, "S2")])
    assert (
        "no cards with the serial C1" in health.read(host, CARD).error
        and "no drives with the serial S1" in health.read(host, MICRON).error
    )


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(["/dev/fioa", "78", "unavailable", ""]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["adapter", "iomemory", "vsu", "device_path", *vendor_health.THROTTLES_AT]),
            inner,
            max_size=5,
        )
    ),
    max_leaves=30,
)


@given(JSON)
def test_any_json_of_fio_status_gives_a_temperature_or_none(data):
    assert isinstance(vendor_health.throttle_c(json.dumps(data), "/dev/fioa"), (int, type(None)))


@given(st.text() | st.sampled_from(["[" * 5000, "{}", "null"]))
def test_what_is_no_json_tells_nothing(text):
    assert vendor_health.throttle_c(text, "/dev/fioa") is None
    assert all(isinstance(value, int) for value in rssdm.parse_smart(text).values())
