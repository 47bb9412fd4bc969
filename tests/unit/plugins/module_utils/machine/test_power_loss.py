# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What drives state and show of power cuts."""

from __future__ import annotations

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.core.host import Host
from ansible_collections.ssdlab.fleet.plugins.module_utils.machine import power_loss


@pytest.mark.parametrize(
    ("controller", "namespace", "expected"),
    [
        ({"vwc": 7, "awupf": 7}, {"nsfeat": 0, "nawupf": 31, "nabspf": 15}, (True, 4096, None)),
        ({"vwc": 6, "awupf": 0}, {"nsfeat": 2, "nawupf": 31, "nabspf": 63}, (False, 16384, 32768)),
        ({"vwc": "0x1", "awupf": 0}, {"nsfeat": 2, "nawupf": 0, "nabspf": 0}, (None, 512, None)),
        ({}, {}, (None, None, None)),
    ],
)
def test_the_namespaces_atomicity_counts_where_it_has_its_own(controller, namespace, expected):
    assert power_loss.parse_statements(controller, namespace, 512) == expected


def test_what_the_kernel_and_udev_show(tmp_path):
    files = {
        "sys/block/nvme0n1/queue/fua": "1",
        "sys/block/nvme0n1/queue/write_cache": "write through",
        "sys/class/block/nvme0n1/dev": "259:0",
        "run/udev/data/b259:0": "S:disk/by-id/nvme-x\nI:4512345\nE:ID_MODEL=x\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    host = Host(str(tmp_path))
    assert power_loss.fua(host, "nvme0n1") == "drive" and power_loss.gets_flushes(host, "nvme0n1") is False
    assert power_loss.ready_after_s(host, "nvme0n1") == 4.512345
    assert (power_loss.fua(host, "sda"), power_loss.gets_flushes(host, "sda")) == (None, None)
    assert power_loss.ready_after_s(host, "sda") is None and power_loss.link(host, "sda") is None
