# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How often a kernel takes fio's random fill for a partition table: block/partitions/atari.c, which Debian, Ubuntu and
Proxmox build in, applied to sectors of fio's law. tests/integration/test_known_faults.py: such a drive is still ours.
"""

from __future__ import annotations

import random
import string
import struct

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.guard.fio_data import LAWS
from ansible_collections.ssdlab.fleet.tests.fixtures.fio_data import filled

SECTORS = 40_000
# struct rootsector: four partitions of a flag, a name of three characters, start and size.
FIRST_ENTRY, ENTRY_BYTES, ENTRIES = 0x1C6, 12, 4
NAME_BYTES = frozenset((string.ascii_letters + string.digits).encode())


@pytest.fixture(name="sectors", scope="module")
def fixture_sectors():
    """First sectors of many fills, the same each time."""
    chance = random.Random(5)
    return [filled(LAWS[0], chance.getrandbits(64)) for _number in range(SECTORS)]


def is_entry(entry, drive_sectors):
    """Whether the kernel takes it for a partition (VALID_PARTITION)."""
    start, size = struct.unpack(">II", entry[4:])
    inside = start <= drive_sectors and (start + size) % 2**32 <= drive_sectors
    return bool(entry[0] & 1) and NAME_BYTES.issuperset(entry[1:4]) and inside


def is_table(sector, drive_sectors):
    entries = (sector[FIRST_ENTRY + ENTRY_BYTES * number :][:ENTRY_BYTES] for number in range(ENTRIES))
    return any(is_entry(entry, drive_sectors) for entry in entries)


@pytest.mark.parametrize(
    "capacity_bytes, tables",
    [
        (480103981056, 55),
        (960197124096, 212),
        (1920383410176, 883),
        (3840755982336, 648),
        (7681501126656, 279),
        (15362991415296, 1140),
    ],
)
def test_a_fill_is_a_table_by_chance(sectors, capacity_bytes, tables):
    """Of 0.1 to 2.9 % of fills."""
    drive_sectors = capacity_bytes // 512 % 2**32  # hd_size is a u32
    assert sum(is_table(sector, drive_sectors) for sector in sectors) == tables
