# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How file systems are made and mounted: argument lists, stripe geometry, superblocks. Pure.

Options: mke2fs(8), mkfs.xfs(8), mount(8), ext4(5).
"""

from __future__ import annotations

import struct
import typing as t
import uuid

from ..records.storage_layers import PlannedFilesystem

LABEL = "ssdlab-fleet"  # XFS takes 12 bytes
# Nothing on the file system is to run, or to be a device.
SAFE_OPTIONS = ("nodev", "nosuid", "noexec")
PACKAGES = {"ext4": "e2fsprogs", "xfs": "xfsprogs"}
SUPERBLOCK_BYTES = 4096
_EXT_START, _EXT_MAGIC = 1024, 0xEF53
_EXT_SPARSE_SUPER, _EXT_64BIT = 0x1, 0x80
# What /proc/PID/mountinfo shows of an option that is in force; of the others it shows nothing.
_SHOWN = ("noatime", "discard", "lazytime")


class Geometry(t.NamedTuple):
    """In blocks of the file system: what one drive gets before the next one's turn, and what all data drives get."""

    stride: int
    stripe_width: int


class Superblock(t.NamedTuple):
    """kind: ext4 or xfs."""

    kind: str
    uuid: str


def data_drives(level: int, drives: int, sets: int | None = None) -> int:
    """Return how many drives of an array bear data (ioMemory guide, Setting Stride Size and Stripe Width). Raises
    ValueError.

    sets: of 10 the mirrored sets, of 50 the RAID 5 sets, each of which loses a drive. For 50 the guide prints
    "mirrored_sets - 1", which RAID 50 does not have.
    """
    least = {0: 2, 1: 2, 5: 3, 6: 4, 10: 4, 50: 6}
    if level not in least:
        raise ValueError(f"level {level} must be one of {', '.join(map(str, least))}")
    if drives < least[level]:
        raise ValueError(f"RAID {level} needs at least {least[level]} drives, not {drives}")
    parts = (drives // 2 if level == 10 else 2) if sets is None else sets
    most = {10: drives // 2, 50: drives // 3}.get(level)
    if most is not None and (not 2 <= parts <= most or drives % parts):
        raise ValueError(f"{drives} drives cannot form {parts} sets of RAID {level}")
    return {0: drives, 1: 1, 5: drives - 1, 6: drives - 2, 10: parts, 50: drives - parts}[level]


def geometry(chunk_bytes: int, block_bytes: int, data: int) -> Geometry:
    """stride = chunk / block, stripe width = stride x data drives: 256 KiB / 4 KiB = 64, and 320 of five. Raises
    ValueError.
    """
    if chunk_bytes % block_bytes or not chunk_bytes:
        raise ValueError(f"a chunk of {chunk_bytes} B is not a multiple of the file system's block of {block_bytes} B")
    stride = chunk_bytes // block_bytes
    return Geometry(stride, stride * data)


def mkfs_argv(spec: PlannedFilesystem, identifier: str, device: str) -> list[str]:
    """Return the command that makes it. It discards nothing, so that the drive stays as the test before left it, and
    does all of its work at once: what ext4 would leave to a thread of the kernel would be written while fio measures.
    """
    block, stripe = spec.block_size_bytes, spec.stripe
    if spec.type == "ext4":
        extended = ["nodiscard", "lazy_itable_init=0", "lazy_journal_init=0"]
        if stripe:
            extended += [f"stride={stripe.stride}", f"stripe_width={stripe.stripe_width}"]
        options = ["-q", "-F", "-b", str(block), "-L", LABEL, "-U", identifier, "-E", ",".join(extended)]
        return ["mkfs.ext4", *options, device]
    data = []
    if stripe:
        width = stripe.stripe_width // stripe.stride
        data = ["-d", f"su={stripe.stride * block},sw={width}"]
    options = ["-q", "-f", "-K", "-b", f"size={block}", "-L", LABEL, "-m", f"uuid={identifier}", *data]
    return ["mkfs.xfs", *options, device]


def mount_argv(spec: PlannedFilesystem, device: str, where: str) -> list[str]:
    """Return the command that mounts it."""
    return ["mount", "-t", spec.type, "-o", ",".join([*SAFE_OPTIONS, *spec.mount_options]), device, where]


class Mounted(t.NamedTuple):
    """A line of a mountinfo: the device's number, and every option that is in force."""

    major_minor: str
    options: tuple[str, ...]


def mounted(mountinfo: str, where: str) -> Mounted | None:
    """Return what is mounted on a place, the last to come; None for nothing (proc(5), /proc/PID/mountinfo)."""
    found = None
    for line in mountinfo.splitlines():
        own, _dash, of_super = line.partition(" - ")
        fields, last = own.split(" "), of_super.split(" ")
        if len(fields) > 5 and len(last) > 2 and _unescaped(fields[4]) == where:
            found = Mounted(fields[2], (*fields[5].split(","), *last[2].split(",")))
    return found


def missing_options(spec: PlannedFilesystem, found: Mounted) -> list[str]:
    """Return the options that were asked for and are not in force."""
    return [name for name in spec.mount_options if name in _SHOWN and name not in found.options]


def _unescaped(text: str) -> str:
    for code, sign in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        text = text.replace(code, sign)
    return text


def superblock(start: bytes) -> Superblock | None:
    """Return the superblock in the first SUPERBLOCK_BYTES of a drive; None for another, or none."""
    if len(start) < SUPERBLOCK_BYTES:
        return None
    if start[:4] == b"XFSB":
        return Superblock("xfs", str(uuid.UUID(bytes=start[32:48])))
    (magic,) = struct.unpack_from("<H", start, _EXT_START + 56)
    if magic != _EXT_MAGIC:
        return None
    return Superblock("ext4", str(uuid.UUID(bytes=start[_EXT_START + 104 : _EXT_START + 120])))


def superblock_places(start: bytes) -> list[int]:
    """Return the offsets of the SUPERBLOCK_BYTES in which a superblock and each of its copies lies. start: as of
    `superblock`, of a file system that we made: nothing else is sure to have a sensible number of groups.
    """
    return _xfs_places(start) if start[:4] == b"XFSB" else _ext4_places(start[_EXT_START:])


def _xfs_places(start: bytes) -> list[int]:
    """Each allocation group begins with one (xfs_format.h: sb_blocksize, sb_agblocks, sb_agcount)."""
    (block_bytes,) = struct.unpack_from(">I", start, 4)
    group_blocks, groups = struct.unpack_from(">II", start, 84)
    return [group * group_blocks * block_bytes for group in range(groups)]


def _ext4_places(block: bytes) -> list[int]:
    """Return the first group, and each that may begin with a copy (ext4_fs.h: s_blocks_count,
    s_first_data_block, …).
    """
    (blocks,), (first, shift) = struct.unpack_from("<I", block, 4), struct.unpack_from("<II", block, 20)
    (group_blocks,) = struct.unpack_from("<I", block, 32)
    incompatible, read_only = struct.unpack_from("<II", block, 96)
    if incompatible & _EXT_64BIT:
        blocks += struct.unpack_from("<I", block, 336)[0] << 32
    count = -(-(blocks - first) // (group_blocks or 1))
    groups = sparse_groups(count - 1) if read_only & _EXT_SPARSE_SUPER else list(range(1, count))
    places = [(first + group * group_blocks) * (1024 << shift) for group in groups if group < count]
    return [0, *(place // SUPERBLOCK_BYTES * SUPERBLOCK_BYTES for place in places)]


def sparse_groups(most: int) -> list[int]:
    """Return the groups of ext2/3/4, up to this one, that have a copy: 1, and the powers of 3, 5 and 7."""
    groups = {1}
    for base in (3, 5, 7):
        power = base
        while power <= most:
            groups.add(power)
            power *= base
    return sorted(groups)
