# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Physical volumes of LVM and members of md arrays as bytes, with all that tells which drives belong together: neither
needs device-mapper or the md driver so.
"""

from __future__ import annotations

import struct
import time
import uuid

from on_disk import _crc32_lvm

SECTOR, MIB = 512, 1 << 20
_EXTENT_SECTORS = 2048


def volume_group(name, drives, volumes, more="", size_bytes=48 * MIB):
    """The pieces [(offset, bytes)] of each drive of a volume group. drives: how many; volumes: {name: (drive, extents,
    lines of its own)}, each at its drive's first free extent of 1 MiB.
    """
    ids = [uuid.uuid4().hex for _drive in range(drives)]
    listed = "".join(
        f'pv{number} {{\nid = "{_dashed(one)}"\ndevice = "/dev/none"\npe_start = 2048\npe_count = 40\n}}\n'
        for number, one in enumerate(ids)
    )
    text = f'{name} {{\nid = "{_dashed(uuid.uuid4().hex)}"\nseqno = 3\nformat = "lvm2"\nstatus = ["RESIZEABLE"]\n{more}'
    text += f"extent_size = {_EXTENT_SECTORS}\nphysical_volumes {{\n{listed}}}\nlogical_volumes {{\n"
    for volume, (drive, extents, lines) in volumes.items():
        segment = f'start_extent = 0\nextent_count = {extents}\ntype = "striped"\nstripe_count = 1'
        segment += f'\nstripes = ["pv{drive}", 0]'
        text += f'{volume} {{\nid = "{_dashed(uuid.uuid4().hex)}"\nsegment_count = 1\n{lines}\n'
        text += f"segment1 {{\n{segment}\n}}\n}}\n"
    text += '}\n}\ncontents = "Text Format Volume Group"\nversion = 1\n'
    text += f"creation_time = {int(time.time())}\t# now\n"
    return [_physical_volume(one, text.encode() + b"\0", size_bytes) for one in ids]


def _dashed(digits):
    """As LVM's metadata writes a UUID of 32 characters."""
    cuts = (6, 10, 14, 18, 22, 26, 32)
    return "-".join(digits[start:end] for start, end in zip((0, *cuts), cuts))


def alone(extension=(2, 0), is_ignored=False, size_bytes=48 * MIB):
    """The pieces of a physical volume without a text of its group. extension: (version, flags) of its label's; None:
    it has none. is_ignored: LVM keeps the text on other drives.
    """
    return _physical_volume(uuid.uuid4().hex, b"", size_bytes, extension, is_ignored)


def _physical_volume(own, text, size_bytes, extension=(2, 1), is_ignored=False):
    areas = struct.pack("<QQ", MIB, 0) + bytes(16) + struct.pack("<QQ", 4096, MIB - 4096) + bytes(16)
    tail = struct.pack("<I8s", 32, b"LVM2 001") + own.encode() + struct.pack("<Q", size_bytes) + areas
    tail += struct.pack("<II", *extension) if extension else b""
    tail = tail.ljust(SECTOR - 20, b"\0")
    label = b"LABELONE" + struct.pack("<QI", 1, _crc32_lvm(tail)) + tail
    area = b"\x20LVM2 x[5A%r0N*>" + struct.pack("<IQQ", 1, 4096, MIB - 4096)
    if text or is_ignored:
        area += struct.pack("<QQII", SECTOR, len(text) or 1400, _crc32_lvm(text), is_ignored)
    area = area.ljust(SECTOR - 4, b"\0")
    return [(SECTOR, label), (4096, struct.pack("<I", _crc32_lvm(area)) + area + text)]


def array(level, disks, own, group=None, data_sectors=2048, size_sectors=40 * MIB // SECTOR, name="server:0", **more):
    """The pieces of one member of an array (metadata 1.2). more: roles, events, flags and used_s."""
    block = bytearray(512)
    struct.pack_into("<III", block, 0, 0xA92B4EFC, 1, more.get("flags", 0))
    block[16:32] = (group or uuid.uuid4()).bytes
    block[32 : 32 + len(name)] = name.encode()
    struct.pack_into("<iIQII", block, 72, level, 0, size_sectors, 1024, disks)
    struct.pack_into("<QQQ", block, 128, data_sectors, size_sectors, 8)
    struct.pack_into("<I", block, 160, own)
    block[168:184] = uuid.uuid4().bytes
    struct.pack_into("<I", block, 220, 128)
    struct.pack_into("<QQ", block, 192, more.get("used_s", 0), more.get("events", 0))
    roles = more.get("roles", range(disks))
    struct.pack_into("<128H", block, 256, *roles, *[0xFFFF] * (128 - len(roles)))
    total = sum(struct.unpack("<128I", bytes(block)))
    struct.pack_into("<I", block, 216, ((total & 0xFFFFFFFF) + (total >> 32)) & 0xFFFFFFFF)
    return [(4096, bytes(block))]
