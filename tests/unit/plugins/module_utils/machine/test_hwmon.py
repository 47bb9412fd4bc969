# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fans and the inlet, as Linux' Documentation/hwmon/sysfs-interface has them."""

from __future__ import annotations

from ansible_collections.ssdlab.fleet.plugins.module_utils.machine import hwmon

PLACE = "/sys/class/hwmon/hwmon"


def test_fans_that_turn_and_the_inlet_are_read(fake):
    for path, text in {
        "0/name": "nct6779",
        "0/fan1_input": "4200",
        "0/fan2_input": "0",
        "0/temp1_label": "SYSTIN",
        "0/temp1_input": "41000",
        "1/name": "power_meter",
        "1/fan1_input": "9000",
        "1/fan1_label": "Fan 1A",
        "1/temp3_label": "Inlet Temp",
        "1/temp3_input": "23500",
    }.items():
        fake.put(f"{PLACE}{path}", f"{text}\n")
    assert hwmon.read(fake) == ({"nct6779 fan1": 4200, "Fan 1A": 9000}, 23.5)


def test_what_only_the_bmc_sees_is_unknown(fake):
    assert hwmon.read(fake) == ({}, None)
