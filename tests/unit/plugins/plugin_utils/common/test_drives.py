# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.common import drives


@pytest.mark.parametrize(
    ("serial", "label", "name"),
    [
        ("22123A", "/var/ssd0", "22123A"),
        (None, "/var/ssd0", "h1 /var/ssd0"),
        ("", "naa.5000c500a1b2c3d4", "naa.5000c500a1b2c3d4"),
        (None, "/dev/disk/by-id/nvme-X_1", "/dev/disk/by-id/nvme-X_1"),
    ],
)
def test_a_place_names_a_drive_with_its_host_alone(serial, label, name):
    assert drives.name(serial, "h1", label) == name


@pytest.mark.parametrize(
    "names",
    [
        ["drive1", "drive2", "drive10"],
        ["rack2-9", "rack10-1", "rack10-02", "rack10-11"],
        ["", "007", "7a", "A", "a", "a0", "b"],
        ["10.0.0.9", "10.0.0.10", "10.0.1.1"],
        ["x" + "9" * 5000, "x1" + "0" * 5000],
        ["b²1", "²"],
    ],
)
def test_names_are_sorted_as_people_count(names):
    assert sorted(names[::-1], key=drives.order) == names


def test_the_hosts_name_counts_first():
    pairs = [("h2", "S10"), ("h10", "S1"), ("h10", "S2")]
    assert sorted(pairs[::-1], key=lambda pair: drives.order(*pair)) == pairs
