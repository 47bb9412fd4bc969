# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The health of SATA drives that number their attributes in their own way, in ports of their own speed.

A line that begins with "Wrong:" names a known fault (tests/machines/README.md).
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.checks import health as health_checks
from ansible_collections.ssdlab.fleet.plugins.module_utils.checks import link
from ansible_collections.ssdlab.fleet.plugins.module_utils.checks.base import CheckedDrive, HostFacts, Machine
from ansible_collections.ssdlab.fleet.plugins.module_utils.drive import ata_health, health
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.identity import Identity

FIXTURES = Path(__file__).resolve().parents[4] / "fixtures" / "health"
HOST = HostFacts(Machine())


def smartctl(*attributes, **more):
    """What smartctl prints of a SATA drive with these attributes: (number, name, value, raw value)."""
    table = [
        {
            "id": number,
            "name": name,
            "value": value,
            "thresh": 0,
            "when_failed": "",
            "raw": {"value": raw, "string": str(raw)},
        }
        for number, name, value, raw in attributes
    ]
    return {"smart_status": {"passed": True}, "ata_smart_attributes": {"table": table}, **more}


def checked(printed):
    return CheckedDrive("S1", Identity(transport="sata"), health=health.from_smartctl(printed))


PAGE_7 = {"pages": [{"table": [{"name": "Percentage Used Endurance Indicator", "value": 7}]}]}


@pytest.mark.parametrize(
    "attribute, used_pct",
    [
        ((233, "Media_Wearout_Indicator", 15, 0), 85),
        ((177, "Wear_Leveling_Count", 91, 1661), 9),
        ((202, "Percent_Lifetime_Remain", 99, 1), 1),
        ((231, "SSD_Life_Left", 98, 98), 2),
        ((169, "Remaining_Lifetime_Perc", 100, 96), 4),
        ((245, "Percent_Life_Remaining", 100, 100), 0),
        ((202, "Percent_Lifetime_Used", 99, 12), 12),
        # Not of a hundred, of another meaning, or of no meaning that is known.
        ((177, "Wear_Leveling_Count", 200, 1661), None),
        ((230, "Media_Wearout_Indicator", 1, 0), None),
        ((202, "Data_Address_Mark_Errs", 99, 1), None),
        ((231, "Unknown_SSD_Attribute", 98, 98), None),
    ],
    ids=str,
)
def test_wear_is_in_the_attribute_that_is_named_so(attribute, used_pct):
    assert health.from_smartctl(smartctl(attribute)).used_pct == used_pct
    assert health.from_smartctl(smartctl(attribute, ata_device_statistics=PAGE_7)).used_pct == 7


def test_of_two_attributes_the_one_that_is_a_percentage_counts():
    rows = [(177, "Wear_Leveling_Count", 91, 1661), (202, "Percent_Lifetime_Remain", 80, 20)]
    assert health.from_smartctl(smartctl(*rows)).used_pct == 20


@pytest.mark.parametrize(
    "number, name, counter",
    [
        (187, "Reported_Uncorrect", "media_errors"),
        (195, "Uncorrectable_Error_Cnt", "media_errors"),
        (198, "Uncor_Read_Error_Ct", "media_errors"),
        (160, "UECC_Sector_Count", "media_errors"),
        (13, "Lifetime_UECC_Ct", "media_errors"),
        (197, "Total_Unc_Read_Failures", "media_errors"),
        (199, "UDMA_CRC_Error_Count", "interface_crc_errors"),
        (218, "CRC_Error_Count", "interface_crc_errors"),
        (174, "Unexpect_Power_Loss_Ct", "unsafe_shutdowns"),
        (192, "Unsafe_Shutdown_Count", "unsafe_shutdowns"),
    ],
)
def test_a_counter_is_the_attribute_that_is_named_so(number, name, counter):
    found = health.from_smartctl(smartctl((number, name, 100, 3)))
    assert getattr(found, counter) == 3
    assert sum(getattr(found, other) is not None for other in ata_health.COUNTERS) == 1


@pytest.mark.parametrize(
    "attribute",
    [
        (197, "Current_Pending_ECC_Cnt", 100, 1),
        (197, "Current_Pending_Sector", 100, 1),
        (198, "Offline_Uncorrectable", 100, 1),
        (198, "Host_Reads_GiB", 100, 5000),
        (187, "Unknown_Attribute", 100, 5),
        (199, "Host_Writes_32MiB", 100, 5),
        # Several figures in one.
        (187, "Reported_Uncorrect", 100, 0x000300000002),
    ],
)
def test_what_flips_or_has_another_name_counts_nothing(attribute):
    found = health.from_smartctl(smartctl(attribute))
    assert [getattr(found, counter) for counter in ata_health.COUNTERS] == [None] * 3


@pytest.mark.parametrize(
    "counter, rows, count",
    [
        # Of what falls as its sectors are written again nothing is taken from the other.
        ("media_errors", [(187, "Reported_Uncorrect", 100, 5), (198, "Offline_Uncorrectable", 100, 8)], 5),
        ("media_errors", [(160, "Uncorrectable_Sectors", 100, 4), (187, "Reported_Uncorrect", 100, 5)], 5),
        ("unsafe_shutdowns", [(174, "Unexpect_Power_Loss_Ct", 100, 7), (192, "Unsafe_Shutdown_Count", 100, 7)], 7),
    ],
)
def test_of_several_attributes_an_event_counts_once(counter, rows, count):
    assert getattr(health.from_smartctl(smartctl(*rows)), counter) == count


def test_each_place_that_counts_is_kept_by_itself():
    rows = [(174, "Unsafe_Shutdown_Count", 100, 7), (192, "Unsafe_Shutdown_Count", 100, 8)]
    table = [{"name": ata_health.STATISTICS["media_errors"], "value": 9}]
    printed = smartctl(*rows, (187, "Reported_Uncorrect", 100, 0), ata_device_statistics={"pages": [{"table": table}]})
    found = health.from_smartctl(printed)
    assert found.counts_by_source == {
        "media_errors": {"187 Reported_Uncorrect": 0, ata_health.STATISTICS["media_errors"]: 9},
        "unsafe_shutdowns": {"174 Unsafe_Shutdown_Count": 7, "192 Unsafe_Shutdown_Count": 8},
    }
    assert (found.media_errors, found.unsafe_shutdowns) == (9, 8)


def test_of_a_model_that_smartctl_does_not_know_only_the_standards_statistics_count():
    rows = [
        (187, "Reported_Uncorrect", 100, 9),
        (199, "UDMA_CRC_Error_Count", 100, 9),
        (233, "Media_Wearout_Indicator", 2, 0),
    ]
    unknown = smartctl(*rows, in_smartctl_database=False)
    found = health.from_smartctl(unknown)
    assert (found.media_errors, found.interface_crc_errors, found.used_pct) == (None, None, None)
    hint = "smartctl's database does not have this model: update-smart-drivedb may help"
    for look, what in ((health_checks.media_errors, "media errors"), (health_checks.wear, "wear")):
        assert look(HOST, checked(unknown)) == [f"smartctl does not report its {what}; {hint}"]
        assert hint not in "".join(look(HOST, checked({**unknown, "in_smartctl_database": True})))
    table = [{"name": name, "value": 2} for name in ata_health.STATISTICS.values()]
    found = health.from_smartctl({**unknown, "ata_device_statistics": {"pages": [{"table": table}]}})
    assert (found.media_errors, found.interface_crc_errors) == (2, 2)


def test_a_spare_that_one_version_of_smartctl_guesses_is_none():
    """smartctl 7.5 makes it of attribute 5, without a threshold where that is 0; the drive reports no spare."""
    printed = json.loads((FIXTURES / "smartctl-7.5-sat-guessed-spare.json").read_text(encoding="utf-8"))
    found = checked(printed)
    assert health_checks.spare(HOST, found) == [] and found.health.spare_pct is None
    assert found.health.used_pct is None


SPEEDS = {
    "max": {"sata_value": 14, "string": "6.0 Gb/s", "units_per_second": 60, "bits_per_unit": 100000000},
    "current": {"sata_value": 2, "string": "3.0 Gb/s", "units_per_second": 30, "bits_per_unit": 100000000},
}


@pytest.mark.parametrize(
    "port_gbit_s, found",
    [
        (None, {"sata_link": ("blocks", ["its SATA link runs at 3 Gb/s; the drive can do 6 Gb/s"])}),
        (6.0, {"sata_link": ("blocks", ["its SATA link runs at 3 Gb/s; the drive can do 6 Gb/s"])}),
        # As on PCI Express: the slot's limit is no fault of the drive.
        (3.0, {"sata_port": ("warning", ["its SATA port can do 3 Gb/s; the drive can do 6 Gb/s"])}),
    ],
)
def test_a_drive_in_a_slower_port(port_gbit_s, found):
    drive = checked(smartctl(interface_speed=SPEEDS))._replace(sata_port_gbit_s=port_gbit_s)
    looks = {check.check: (check.level, check.look(HOST, drive)) for check in link.CHECKS if check.check[:4] == "sata"}
    assert {name: told for name, told in looks.items() if told[1]} == found
