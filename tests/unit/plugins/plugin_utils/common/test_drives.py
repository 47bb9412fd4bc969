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
