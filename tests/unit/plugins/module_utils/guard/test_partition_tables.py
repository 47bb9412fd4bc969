# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which bytes are a partition table's own."""

from __future__ import annotations

import struct
import zlib

from ansible_collections.ssdlab.fleet.plugins.module_utils.guard import partition_tables

SIZE = 64 << 20


def header(first_block=2, count=128, entry_bytes=128):
    """A GPT header with its checksum (UEFI 2.10, table 5.5)."""
    data = struct.pack(
        "<8sIIIIQQQQ16sQIII",
        b"EFI PART",
        0x10000,
        92,
        0,
        0,
        1,
        SIZE // 512 - 1,
        34,
        SIZE // 512 - 34,
        b"g" * 16,
        first_block,
        count,
        entry_bytes,
        0,
    )
    return data[:16] + struct.pack("<I", zlib.crc32(data)) + data[20:]


def extents(block):
    drive = bytearray(SIZE)
    drive[512 : 512 + len(block)] = block
    return partition_tables.extents(lambda offset, length: bytes(drive[offset : offset + length]), SIZE)


def test_a_table_is_its_header_and_its_entries():
    assert extents(header()) == [(512, 512), (1024, 128 * 128)]


def test_a_damaged_header_says_nothing_of_where_its_entries_are():
    """It could call 4 MiB of somebody's data a table."""
    damaged = bytearray(header())
    struct.pack_into("<QII", damaged, 72, 4096, 1024, 4096)
    assert extents(bytes(damaged)) == []
