# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Capacity that a drive hides."""

from __future__ import annotations

import json

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.drive import hidden_capacity
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.identity import Identity

TB = 10**12
# What hdparm 9.65 -N prints.
OPEN = "\n/dev/sda:\n max sectors   = 976773168/976773168, HPA is disabled\n"
HIDDEN = "\n/dev/sda:\n max sectors   = 781418534/976773168, HPA is enabled\n"
ODD = (
    "\n/dev/sda:\n max sectors   = 976773168/14715056(18446744073321613488?), HPA setting seems invalid (buggy "
    "kernel device driver?)\n"
)


@pytest.mark.parametrize(
    "told, size, share",
    [
        ({"tnvmcap": TB}, TB, 0.0),
        ({"tnvmcap": str(TB)}, 8 * TB // 10, 0.2),  # nvme-cli 1 and 2 differ in how they write large numbers
        ({"tnvmcap": float(TB)}, 8 * TB // 10, 0.2),
        ({"tnvmcap": 0}, TB, None),
        ({}, TB, None),
        ({"tnvmcap": TB}, 2 * TB, None),
        ({"tnvmcap": TB}, None, None),
        ([], TB, None),
    ],
)
def test_nvme(fake, told, size, share):
    fake.answers["nvme id-ctrl"] = (0, json.dumps(told), "")
    found = hidden_capacity.read(fake, Identity(transport="nvme", path="/dev/nvme0n1", size_bytes=size))
    assert found.share == (None if share is None else pytest.approx(share))


@pytest.mark.parametrize(
    "text, share", [(OPEN, 0.0), (HIDDEN, 0.2), (ODD, None), ("", None), ("SG_IO: bad/missing sense data", None)]
)
def test_ata(fake, text, share):
    fake.answers["hdparm"] = (0, text, "")
    found = hidden_capacity.read(fake, Identity(transport="sata", path="/dev/sda"))
    assert found.share == (None if share is None else pytest.approx(share, abs=1e-3))
    assert fake.commands == [["hdparm", "-N", "/dev/sda"]]


def test_a_drive_of_4096_byte_blocks_is_told_in_bytes(fake):
    fake.answers["hdparm"] = (0, HIDDEN, "")
    found = hidden_capacity.read(fake, Identity(transport="sata", path="/dev/sda", logical_block_size_bytes=4096))
    assert (found.total_bytes, found.shown_bytes) == (976773168 * 4096, 781418534 * 4096)


def test_a_loop_device_is_not_asked(fake):
    assert hidden_capacity.read(fake, Identity(transport="loop")).share is None and fake.commands == []
