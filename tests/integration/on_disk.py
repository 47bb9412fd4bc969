# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What file systems, volume managers and clusters leave on a drive, as bytes: where no tool here makes it, its
superblock by hand.

Offsets and magic values are those that util-linux 2.38 looks for (libblkid), so each is found as the real thing is.
`PIECES`: {name that libblkid gives it: [(offset, bytes)]}; a negative offset counts from the drive's end.
"""

from __future__ import annotations

import struct
import uuid
import zlib

KIB = 1 << 10
MIB = 1 << 20
GPFS_PARTITION = "37AFFC90-EF7D-4E96-91C3-2D7AE055B174"
_BCACHE_MAGIC = bytes.fromhex("c68573f64e1a45ca8265f57f48ba6d81")
_BCACHEFS_MAGIC = bytes.fromhex("c68573f666ce90a9d96a60cf803df7ef")


def _crc32_lvm(data):
    """LVM's CRC starts from a value of its own and is not inverted."""
    return zlib.crc32(data, 0xF597A6CF ^ 0xFFFFFFFF) ^ 0xFFFFFFFF


def _crc64(data):
    """CRC-64/WE, as bcache has it: the ECMA-182 polynomial, most significant bit first, inverted before and after."""
    value, mask = (1 << 64) - 1, (1 << 64) - 1
    for byte in data:
        value ^= byte << 56
        for _bit in range(8):
            value = ((value << 1) ^ (0x42F0E1EBA9EA3693 if value >> 63 else 0)) & mask
    return value ^ mask


def lvm_label(size_bytes):
    """A physical volume's label in its sector 1."""
    tail = struct.pack("<I8s", 32, b"LVM2 001") + uuid.uuid4().hex.encode() + struct.pack("<Q", size_bytes)
    tail = tail.ljust(512 - 20, b"\0")
    return b"LABELONE" + struct.pack("<QI", 1, _crc32_lvm(tail)) + tail


def md_superblock(sector):
    """Version 1.x of an md member: magic, major, feature map, padding, set uuid … super_offset and checksum."""
    block = bytearray(256)
    struct.pack_into("<III", block, 0, 0xA92B4EFC, 1, 0)
    block[16:32] = uuid.uuid4().bytes
    struct.pack_into("<Q", block, 144, sector)
    total = sum(struct.unpack("<64I", bytes(block)))
    struct.pack_into("<I", block, 216, ((total & 0xFFFFFFFF) + (total >> 32)) & 0xFFFFFFFF)
    return bytes(block)


def _bcache():
    """A backing device's superblock at 4 KiB (version 1), which names its own sector."""
    names = _BCACHE_MAGIC + uuid.uuid4().bytes + _BCACHE_MAGIC
    body = struct.pack("<QQ", 8, 1) + names + bytes(32 + 16 + 24 + 40) + struct.pack("<Q", 16) + bytes(8)
    return struct.pack("<Q", _crc64(body)) + body + bytes(8 * 256)


def _bcachefs():
    """bcachefs' superblock at 4 KiB, of a release that libblkid 2.38 does not know: no signature, but data."""
    names = _BCACHEFS_MAGIC + uuid.uuid4().bytes * 2 + b"pool".ljust(32, b"\0")
    return bytes(16) + struct.pack("<HHI", 20, 20, 0) + names + struct.pack("<QQ", 8, 1) + bytes(512)


def _gfs2():
    """A superblock at 64 KiB: meta header, formats 1801 and 1900, 4 KiB blocks, lock_dlm, all big-endian."""
    header = struct.pack(">IIQII", 0x01161970, 1, 0, 100, 0)
    body = struct.pack(">IIIIII", 1801, 1900, 0, 4096, 12, 0) + bytes(48)
    return (
        header
        + body
        + b"lock_dlm".ljust(64, b"\0")
        + b"cluster:shared".ljust(64, b"\0")
        + bytes(32)
        + uuid.uuid4().bytes
    )


PIECES = {
    "zfs_member": [
        ((slot - 128) * KIB, struct.pack("<Q", 0x00BAB10C)) for slot in range(8)
    ],  # the last label's uberblocks only
    "bcache": [(4 * KIB, _bcache())],
    "ceph_bluestore": [(0, b"bluestore block device\n" + str(uuid.uuid4()).encode() + b"\n")],
    "crypto_LUKS": [
        (
            0,
            b"LUKS\xba\xbe\0\x01"
            + b"aes".ljust(32, b"\0")
            + b"xts-plain64".ljust(32, b"\0")
            + bytes(88 + 40)
            + b"\0" * 8,
        )
    ],
    "oracleasm": [(32, b"ORCLDISKDATA01".ljust(32, b"\0"))],
    "VMFS_volume_member": [(MIB, struct.pack("<II", 0xC001D00D, 5).ljust(512, b"\0"))],
    "VMFS": [
        (
            2 * MIB,
            struct.pack("<IIB", 0x2FABF15E, 5, 5) + uuid.uuid4().bytes + bytes(4) + b"datastore1".ljust(128, b"\0"),
        )
    ],
    "gfs2": [(64 * KIB, _gfs2())],
    "ocfs2": [(8 * KIB, b"OCFSV2".ljust(512, b"\0"))],
    "ocfs": [(8 * KIB, b"OracleCFS".ljust(512, b"\0"))],
}
# At one offset of each kind: bcachefs is not known to libblkid 2.38 and so counts as data without a signature there.
BCACHEFS = [(4 * KIB, _bcachefs())]


def erofs():
    """An empty file system of EROFS, in two blocks: its superblock at 1 KiB, the root's inode at 2 KiB, its folder."""
    block = struct.pack("<IIIBBHQQIIII", 0xE0F5E1E2, 0, 0, 12, 0, 64, 1, 0, 0, 2, 0, 0)
    inode = struct.pack("<HHHHIIIIHHI", 0, 0, 0o040755, 2, 27, 0, 1, 1, 0, 0, 0)
    folder = struct.pack("<QHBBQHBB", 64, 24, 2, 0, 64, 25, 2, 0) + b"..."
    return [(KIB, (block + uuid.uuid4().bytes).ljust(128, b"\0")), (2 * KIB, inode), (4 * KIB, folder)]
