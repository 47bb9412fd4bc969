# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.drive import health
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.identity import Identity

NVME, SATA = Identity(transport="nvme", path="/dev/nvme0n1"), Identity(transport="sata", path="/dev/sda")


@pytest.mark.parametrize(
    "identity, told, count",
    [
        (NVME, {"power_cycles": 25}, 25),
        # nvme-cli writes 128 bits as a text or a double, depending on its version.
        (NVME, {"power_cycles": "25"}, 25),
        (NVME, {"power_cycles": 25.0}, 25),
        (NVME, {}, None),
        (NVME, {"power_cycles": -1}, None),
        (SATA, {"power_cycle_count": 12}, 12),
        (SATA, {"power_cycle_count": "many"}, None),
        (Identity(transport="loop", path="/dev/loop0"), {"power_cycles": 1}, None),
    ],
)
def test_the_drives_own_count(fake, identity, told, count):
    fake.answers["nvme smart-log"] = fake.answers["smartctl"] = (0, json.dumps(told), "")
    assert health.power_cycles(fake, identity) == count


def test_without_the_tool_it_is_unknown(fake):
    fake.answers["nvme smart-log"] = (127, "", "cannot run nvme")
    assert health.power_cycles(fake, NVME) is None
