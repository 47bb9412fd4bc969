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
from ansible_collections.ssdlab.fleet.plugins.module_utils.checks.base import CheckedDrive, HostFacts, Machine, Unknown
from ansible_collections.ssdlab.fleet.plugins.module_utils.drive import health

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
    return CheckedDrive("S1", {"transport": "sata"}, health=health.from_smartctl(printed))


@pytest.mark.parametrize(
    "attribute",
    [
        (233, "Media_Wearout_Indicator", 15, 0),
        (177, "Wear_Leveling_Count", 91, 1661),
        (202, "Percent_Lifetime_Remain", 99, 1),
        (231, "SSD_Life_Left", 98, 98),
        (169, "Remaining_Lifetime_Perc", 100, 96),
        (245, "Percent_Life_Remaining", 100, 100),
    ],
    ids=lambda attribute: attribute[1],
)
def test_wear_that_only_a_named_attribute_has_is_not_read(attribute):
    """Wrong: without page 7 of the device statistics the drive's wear counts as unknown."""
    assert health.from_smartctl(smartctl(attribute)).used_pct is None


@pytest.mark.parametrize(
    "name, before, after, counted",
    [
        # Wrong: this attribute flips between 0 and 1 on a healthy drive.
        ("Current_Pending_ECC_Cnt", (100, 0), (100, 1), 1),
        # Right: sectors that can't be read.
        ("Current_Pending_Sector", (100, 0), (100, 1), 1),
    ],
)
def test_attribute_197_counts_whatever_its_name_is(name, before, after, counted):
    first, last = (
        health.from_smartctl(smartctl((187, "Reported_Uncorrect", 100, 0), (197, name, *value))).media_errors
        for value in (before, after)
    )
    assert last - first == counted


def test_attribute_198_counts_whatever_its_name_is():
    """Wrong: on an enterprise drive it is Host_Reads_GiB, so each GiB read is a media error."""
    assert health.from_smartctl(smartctl((198, "Host_Reads_GiB", 100, 5000))).media_errors == 5000


def test_a_spare_that_smartctl_guessed():
    """Wrong: smartctl 7.5 makes it of attribute 5, without a threshold where that is 0; the drive reports no spare."""
    printed = json.loads((FIXTURES / "smartctl-7.5-sat-guessed-spare.json").read_text(encoding="utf-8"))
    (finding,) = health_checks.spare(HOST, checked(printed))
    assert isinstance(finding, Unknown) and finding == "smartctl does not report its spare's threshold"


def test_a_drive_in_a_slower_port():
    """Wrong: its port can do no more (ata_link/*/hw_sata_spd_limit); on PCI Express that only warns, here it blocks."""
    speeds = {
        "max": {"sata_value": 14, "string": "6.0 Gb/s", "units_per_second": 60, "bits_per_unit": 100000000},
        "current": {"sata_value": 2, "string": "3.0 Gb/s", "units_per_second": 30, "bits_per_unit": 100000000},
    }
    (check,) = (check for check in link.CHECKS if check.check == "sata_link")
    found = check.look(HOST, checked(smartctl(interface_speed=speeds)))
    assert (check.level, found) == ("blocks", ["its SATA link runs at 3 Gb/s; the drive can do 6 Gb/s"])
