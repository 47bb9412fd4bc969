# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The drive's world: what changes disturbs, what nobody can see is said, and what holds still is silent."""

from __future__ import annotations

import json
from dataclasses import replace

import emulator
import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.measure import drive_environment
from ansible_collections.ssdlab.fleet.plugins.module_utils.measure.disturbances import DISTURBS, TOLD, UNKNOWN
from ansible_collections.ssdlab.fleet.plugins.module_utils.records import base
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.environment import Environment, PowerState
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.identity import Identity
from ansible_collections.ssdlab.fleet.tests.fixtures import samples

FIRST = base.parse(
    Environment,
    {
        **samples.SAMPLE,
        "transport": "nvme",
        "highest_temperature_c": None,
        "warning_temperature_c": 70,
        "critical_temperature_c": 80,
        "throttle_s": {"t1": 9, "t2": 0},
        "media_errors": 2,
        "link_rate_gbit_s": None,
        "aer": {"0000:01:00.0": {"correctable": 1, "nonfatal": 0, "fatal": 0}},
        "link_policy": None,
        "pci_power": "D0",
        "power_state": {"number": 0, "works": True},
        "direct_io": None,
        "write_cache": "write back",
    },
)
SATA = replace(
    FIRST,
    transport="sata",
    critical_warning=None,
    warning_temp_min=None,
    critical_temp_min=None,
    throttle_counts=None,
    throttle_s=None,
    link_rate_gbit_s=6.0,
    link_policy="max_performance",
    power_state=PowerState(None, None),
    highest_temperature_c=50,
    counts_by_source={"media_errors": {"187 Reported_Uncorrect": 2}},
)
SAS = replace(SATA, transport="sas", link_rate_gbit_s=12.0, link_policy=None, counts_by_source=None)
LOOP = replace(
    Environment(**{**dict.fromkeys(vars(FIRST)), "aer": {}, "power_state": PowerState(None, None)}),
    transport="loop",
    error="loop drives report no health",
    direct_io=True,
)
ERRORS = {"0000:01:00.0": {"correctable": 4, "nonfatal": 0, "fatal": 0}}


def disturbed(first, **change):
    return [
        (item.cause, item.message)
        for item in drive_environment.changed(first, first, replace(first, **change))
        if item.level == DISTURBS
    ]


@pytest.mark.parametrize(
    "first, change, cause, says",
    [
        (
            FIRST,
            {"write_cache": "write through"},
            "write_cache",
            "its write cache changed from 'write back' to 'write through'",
        ),
        (FIRST, {"link_width": 2}, "link", "its link fell from 16 GT/s x4 to 16 GT/s x2"),
        (FIRST, {"link_speed_gts": None, "link_width": None}, "link", "can no longer be seen"),
        (SATA, {"link_rate_gbit_s": 3.0}, "link", "its link fell from 6 to 3 Gb/s"),
        (SATA, {"link_rate_gbit_s": None}, "link", "its link of 6 Gb/s can no longer be seen"),
        (SAS, {"link_rate_gbit_s": 6.0}, "link", "its link fell from 12 to 6 Gb/s"),
        (
            FIRST,
            {"power_state": PowerState(2, True)},
            "power_state",
            "its power state changed from 0 to 2",
        ),
        (FIRST, {"pci_power": "D3hot"}, "power_state", "its PCI power state changed from D0 to D3hot"),
        (
            SATA,
            {"link_policy": "med_power_with_dipm"},
            "power_state",
            "link power management changed from max_performance to med_power_with_dipm",
        ),
        (LOOP, {"direct_io": False}, "direct_io", "uses the page cache"),
    ],
)
def test_what_changed_disturbs_the_test(first, change, cause, says):
    ((found, message),) = disturbed(first, **change)
    assert found == cause and says in message


@pytest.mark.parametrize(
    "first, change",
    [
        *[(first, {}) for first in (FIRST, SATA, SAS, LOOP)],
        (FIRST, {"link_speed_gts": 32.0}),
        (SATA, {"link_rate_gbit_s": 12.0}),
        (FIRST, {"temperature_c": 69}),
        (replace(FIRST, warning_temperature_c=None, critical_temperature_c=None), {"temperature_c": 99}),
        (FIRST, {"power_state": PowerState(4, False)}),  # it idles
        (FIRST, {"power_state": PowerState(2, None)}),
        (replace(FIRST, power_state=PowerState(3, False)), {"power_state": PowerState(1, True)}),
        (replace(FIRST, power_state=PowerState(0, None)), {"power_state": PowerState(1, True)}),
        (replace(FIRST, power_state=PowerState(1, True)), {"power_state": PowerState(0, True)}),
        (replace(SATA, highest_temperature_c=75), {"highest_temperature_c": 75}),  # of long ago
        (FIRST, {"media_errors": None}),
    ],
)
def test_what_holds_still_or_gets_better_is_silent(first, change):
    assert disturbed(first, **change) == told(first, **change) == []


def told(first, hottest_c=None, **change):
    return drive_environment.remarks(first, first, replace(first, **change), hottest_c, 7200.0)


@pytest.mark.parametrize(
    "first, change, cause, level, says",
    [
        (FIRST, {"aer": ERRORS}, "pcie_errors", TOLD, "errors rose by 3 correctable at 0000:01:00.0; 1.5 an hour"),
        (FIRST, {"critical_warning": 4}, "health", TOLD, "its reliability is degraded"),
        (FIRST, {"media_errors": 3}, "media_errors", TOLD, "it counted 1 more media errors (2 to 3)"),
        (SAS, {"media_errors": 5}, "media_errors", TOLD, "it counted 3 more media errors"),
        (
            SATA,
            {"counts_by_source": {"media_errors": {"187 Reported_Uncorrect": 5}}},
            "media_errors",
            TOLD,
            "it counted 3 more media errors (187 Reported_Uncorrect 2 to 5)",
        ),
        (FIRST, {"media_errors": 0}, "media_errors", UNKNOWN, "fell (2 to 0), so it was reset"),
        (FIRST, {"aer": {"0000:01:00.0": dict.fromkeys(ERRORS["0000:01:00.0"], 0)}}, "pcie_errors", UNKNOWN, "reset"),
        (FIRST, {"temperature_c": 70}, "temperature", UNKNOWN, "it reached 70 °C, its own limit is 70 °C"),
        (FIRST, {"hottest_c": 71}, "temperature", UNKNOWN, "it reached 71 °C, its own limit is 70 °C"),
        (FIRST, {"warning_temp_min": 6}, "temperature", UNKNOWN, "above its warning temperature for 1 min more"),
        (FIRST, {"critical_warning": 2}, "health", TOLD, "the temperature is beyond a threshold"),
        (FIRST, {"throttle_counts": {"t1": 4, "t2": 0}}, "throttled", TOLD, "throttled by thermal management 1"),
        (
            replace(SATA, warning_temperature_c=None),
            {"temperature_c": 81},
            "temperature",
            UNKNOWN,
            "it reached 81 °C, its own limit is 80 °C; whether it slowed down by itself then nobody counts",
        ),
        (SATA, {"highest_temperature_c": 72}, "temperature", UNKNOWN, "it reached 72 °C"),
    ],
)
def test_what_was_placed_in_time_or_costs_nothing_is_told(first, change, cause, level, says):
    (found,) = told(first, **change)
    assert (found.cause, found.level) == (cause, level) and says in found.message
    change.pop("hottest_c", None)
    assert disturbed(first, **change) == []


def test_states_are_held_against_the_baseline_and_counters_against_the_look_before():
    """An error of the first test is not the second's; a link that fell then still is down."""
    fell = replace(FIRST, link_width=1, media_errors=5, aer=ERRORS)
    assert [item.cause for item in drive_environment.changed(FIRST, fell, fell)] == ["link"]


def unknowns(first, **change):
    return {item.cause for item in drive_environment.unknown(first, replace(first, **change)) if item.level == UNKNOWN}


def test_what_cannot_be_read_is_unknown_and_said():
    assert unknowns(FIRST) == unknowns(SATA) == unknowns(SAS) == set()
    assert unknowns(FIRST, aer={}) == {"pcie_errors"}
    assert unknowns(FIRST, throttle_counts=None) == {"throttled"}
    assert unknowns(FIRST, link_width=None) == {"link"}
    assert unknowns(FIRST, media_errors=None) == {"media_errors"}
    assert (
        unknowns(FIRST, temperature_c=None)
        == unknowns(FIRST, warning_temperature_c=None, critical_temperature_c=None)
        == {"temperature"}
    )
    assert unknowns(FIRST, power_state=PowerState(None, None)) == {"power_state"}
    assert unknowns(SATA, highest_temperature_c=None) == {"throttled"}
    assert unknowns(SATA, link_rate_gbit_s=None) == {"link"}
    assert unknowns(FIRST, error="smartctl is not installed") == {"health"}


@pytest.mark.parametrize(("unseen_s", "told"), [(0.0, set()), (600.0, set()), (601.0, {"samples"})])
def test_a_drive_that_nobody_looked_at_for_long_is_unknown(unseen_s, told):
    assert {item.cause for item in drive_environment.unknown(FIRST, FIRST, unseen_s)} == told
    assert {item.cause for item in drive_environment.unknown(LOOP, LOOP, unseen_s)} == {"world"}


def test_a_loop_device_has_one_sentence():
    (found,) = drive_environment.unknown(LOOP, LOOP)
    assert found.cause == "world" and "whether the conditions held is unknown" in found.message
    assert unknowns(LOOP, direct_io=None) == {"world", "direct_io"}


@pytest.mark.parametrize("dio, seen", [("1\n", True), ("0\n", False), (None, None)])
def test_direct_io_of_a_loop_device(fake, dio, seen):
    block = fake.loop(3, "/x")
    if dio:
        fake.put(block + "/loop/dio", dio)
    assert drive_environment.read_environment(fake, Identity(transport="loop", path="/dev/loop3")).direct_io is seen
    assert drive_environment.direct_io(fake, "nvme0n1") is None


def test_a_look_at_an_nvme_drive_has_all_of_it(fake):
    function = fake.pci("0000:00:01.0", bridge=True, aer=(0, 0, 0)) and fake.pci(
        "0000:00:01.0",
        "0000:01:00.0",
        aer=(1, 0, 0),
        current_link_speed="16.0 GT/s PCIe",
        current_link_width="4",
        power_state="D0",
    )
    fake.link(fake.disk("nvme0n1", "259:0", function + "/nvme/nvme0") + "/device", function + "/nvme/nvme0")
    counts = {
        "thm_temp1_trans_count": 0,
        "thm_temp2_trans_count": 0,
        "thm_temp1_total_time": 0,
        "thm_temp2_total_time": 0,
    }
    fake.nvme_says(
        "smart-log", {"temperature": 313, "media_errors": 0, "warning_temp_time": 0, "critical_comp_time": 0, **counts}
    )
    fake.nvme_says("id-ctrl", {"wctemp": 343, "cctemp": 353, "psds": [{"flags": 0}]})
    fake.answers["nvme get-feature"] = (0, "get-feature:0x2 (Power Management), Current value:00000000", "")
    seen = drive_environment.read_environment(fake, Identity(transport="nvme", path="/dev/nvme0n1"))
    assert (seen.link_width, seen.pci_power, seen.power_state, drive_environment.limit_c(seen)) == (
        4,
        "D0",
        PowerState(0, True),
        70,
    )
    assert set(seen.aer) == {"0000:00:01.0", "0000:01:00.0"} and set(vars(seen)) == set(vars(FIRST))
    assert drive_environment.unknown(seen, seen) == [] and drive_environment.changed(seen, seen, seen) == []
    fake.put(function + "/current_link_width", "1\n")
    assert [
        item.cause
        for item in drive_environment.changed(
            seen, seen, drive_environment.read_environment(fake, Identity(transport="nvme", path="/dev/nvme0n1"))
        )
    ] == ["link"]


def test_a_sata_drives_own_limits_are_smartctls(fake):
    told = {
        "ata_smart_attributes": {"table": []},
        "temperature": {"current": 41, "power_cycle_max": 55, "op_limit_max": 70, "limit_max": 80},
    }
    fake.answers["smartctl"] = (0, json.dumps(told), "")
    fake.disk("sda", "8:0", "/sys/devices/pci0000:00/0000:00:1f.2/ata3/host2/target2:0:0/2:0:0:0")
    seen = drive_environment.read_environment(fake, Identity(transport="sata", path="/dev/sda"))
    assert (seen.temperature_c, seen.highest_temperature_c, drive_environment.limit_c(seen)) == (41, 55, 70)


def test_an_iomemory_card_that_reached_its_throttling_temperature_in_between(emulated):
    """It throttles at 78 °C: the card keeps the highest that it had, which a look after the test still shows."""
    host, identity = (
        emulated(cards=[emulator.card(0, "C1", temperature_c=60.0, highest_c=65.0)]),
        Identity(transport="pcie", kernel_name="fioa", path="/dev/fioa", serial="C1"),
    )
    host.block("fioa", "252:0", "04:00.0")
    first = drive_environment.read_environment(host, identity)
    assert (drive_environment.limit_c(first), drive_environment.changed(first, first, first)) == (78, [])
    with host.state() as machine:
        machine["iomemory"]["cards"][0]["highest_c"] = 79.4
    now = drive_environment.read_environment(host, identity)
    (found,) = drive_environment.remarks(first, first, now, None, 60.0)
    assert (found.cause, found.level) == ("temperature", "unknown")
    assert found.message.startswith("it reached 79 °C, its own limit is 78 °C; ")


def test_the_baseline_of_another_boot_keeps_its_states_and_takes_the_counters_of_now():
    now = replace(FIRST, link_width=1, aer={}, throttle_counts={"t1": 0, "t2": 0})
    assert drive_environment.carried(FIRST, now, same_boot=True) == FIRST
    other = drive_environment.carried(FIRST, now, same_boot=False)
    assert (other.link_width, other.aer, other.throttle_counts) == (4, {}, {"t1": 0, "t2": 0})
