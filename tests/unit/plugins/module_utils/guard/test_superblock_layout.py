# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Superblocks at their usual places, and what only looks like one."""

from __future__ import annotations

import random
import struct

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.guard import superblock_layout

MIB = 1 << 20


def scan(pieces, size=4 << 30, block_bytes=512):
    data = dict(pieces)

    def read(offsets):
        found = []
        for offset in offsets:
            piece = bytearray(4096)
            for place, text in data.items():
                start = place - offset
                if -len(text) < start < 4096:
                    cut = text[max(0, -start) : 4096 - start]
                    piece[max(0, start) : max(0, start) + len(cut)] = cut
            found.append(piece)
        return b"".join(found)

    return [(one.kind, one.offset) for one in superblock_layout.scan(read, size, block_bytes)]


def ext(group=0, block=2):
    """The fields of an ext superblock that are looked at: block and cluster size, magic, revision, its own group."""
    data = bytearray(1024)
    struct.pack_into("<II", data, 24, block, block)
    struct.pack_into("<H", data, 56, 0xEF53)
    struct.pack_into("<I", data, 76, 1)
    struct.pack_into("<H", data, 90, group)
    return bytes(data)


@pytest.mark.parametrize(
    "pieces, kind",
    [
        ({MIB + 1024: ext()}, "ext"),
        ({63 * 512 + 1024: ext()}, "ext"),
        ({513 * MIB + 1024: ext()}, "ext"),
        ({128 * MIB: ext(1)}, "ext"),
        ({MIB + 3 * 128 * MIB: ext(3)}, "ext"),
        ({8193 * 1024: ext(1, 0)}, "ext"),
        ({MIB: b"XFSB" + struct.pack(">I", 4096)}, "xfs"),
        ({1 << 30: b"XFSB" + struct.pack(">I", 4096)}, "xfs"),
        ({513 * MIB + 32: b"ORCLDISK"}, "oracleasm"),
        ({513 * MIB + 8192: b"OCFSV2"}, "ocfs2"),
        ({513 * MIB + 8192: b"OracleCFS"}, "ocfs"),
        ({514 * MIB: struct.pack("<II", 0xC001D00D, 24)}, "VMFS_volume_member"),
        ({515 * MIB: struct.pack("<II", 0x2FABF15E, 5)}, "VMFS"),
        ({MIB + 65536 + 64: b"_BHRfS_M"}, "btrfs"),
        ({(64 << 20) + 64: b"_BHRfS_M"}, "btrfs"),
        ({MIB + 512: b"LABELONE"}, "LVM2_member"),
        ({MIB + 4096: struct.pack("<II", 0xA92B4EFC, 1)}, "linux_raid_member"),
        ({MIB: struct.pack("<II", 0xA92B4EFC, 1)}, "linux_raid_member"),
        ({MIB + 4086: b"SWAPSPACE2"}, "swap"),
        ({MIB: b"LUKS\xba\xbe\0\2"}, "crypto_LUKS"),
        ({MIB + 131072: struct.pack("<Q", 0x00BAB10C)}, "zfs_member"),
        ({2 * MIB + 3: b"NTFS    "}, "ntfs"),
        ({MIB + 65536: struct.pack(">II", 0x01161970, 1)}, "gfs2"),
    ],
)
def test_a_superblock_is_found_at_each_usual_place(pieces, kind):
    assert kind in {found for found, _offset in scan(pieces)}


@pytest.mark.parametrize(
    "pieces", [{}, {MIB + 1024: ext(7)}, {128 * MIB: ext(3)}, {MIB: b"XFSB"}, {MIB + 1024 + 56: b"\x53\xef" * 20}]
)
def test_what_only_looks_like_one_is_none(pieces):
    assert scan(pieces) == []


def test_random_data_holds_none():
    noise = random.Random(1)  # in other noise there is one by chance, once in thousands of drives
    assert superblock_layout.scan(lambda offsets: noise.randbytes(4096 * len(offsets)), 1 << 33) == []


def test_a_drive_with_large_blocks_is_asked_for_whole_ones():
    seen = []
    superblock_layout.scan(lambda offsets: seen.extend(offsets) or bytes(4096 * len(offsets)), 1 << 30, 4096)
    assert seen and all(offset % 4096 == 0 for offset in seen)
