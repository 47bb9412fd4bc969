# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Counters of memory errors, as the kernel shows them."""

from __future__ import annotations

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.machine import memory_errors

CONTROLLER = "/sys/devices/system/edac/mc/mc"
INTERRUPTS = """           CPU0       CPU1
  0:         42          0   IO-APIC   2-edge      timer
NMI:          3          4   Non-maskable interrupts
MCE:          1          2   Machine check exceptions
MCP:         17         17   Machine check polls
DFR:          0          5   Deferred Error APIC interrupts
ERR:          0
"""


def test_what_could_not_be_corrected_is_counted(fake):
    fake.put(CONTROLLER + "0/ue_count", "0\n")
    fake.put(CONTROLLER + "0/ce_count", "99\n")
    fake.put(CONTROLLER + "1/ue_count", "4\n")
    fake.put("/proc/interrupts", INTERRUPTS)
    assert memory_errors.read(fake) == {CONTROLLER + "0/ue_count": 0, CONTROLLER + "1/ue_count": 4, "MCE": 3, "DFR": 5}


def test_a_host_that_counts_nothing_says_nothing(fake):
    assert memory_errors.read(fake) == {}
    fake.put(CONTROLLER + "0/ue_count", "unknown\n")
    assert memory_errors.read(fake) == {}


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [
        ({"MCE": 3}, {"MCE": 3}, 0),
        ({"MCE": 3, "DFR": 0}, {"MCE": 4, "DFR": 0}, 1),
        # The same error in both.
        ({"MCE": 0, "a": 1}, {"MCE": 2, "a": 3}, 2),
        # A driver that was loaded meanwhile, or again.
        ({"MCE": 0}, {"MCE": 0, "a": 7}, 0),
        ({"MCE": 0, "a": 7}, {"MCE": 0, "a": 0}, 0),
        ({"a": 7}, {"MCE": 0}, None),
        ({}, {}, None),
    ],
)
def test_what_came_between_two_looks(before, after, found):
    assert memory_errors.new(before, after) == found
