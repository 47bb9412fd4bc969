# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What describes itself on a drive: file systems and the like of which the superblock alone says how large they are and
whether they need any other drive. Pure, over bytes.

Only what is listed here may be given up with a retired drive (retired.py). Each parser says why its format is not what
it seems: one that keeps its log, its data or a further member elsewhere is somebody else's too.

ext: Documentation/filesystems/ext4; XFS: xfs_format.h; btrfs: ctree.h; LUKS: the LUKS1 and LUKS2 on-disk formats; NTFS,
FAT, exFAT: their boot sectors; swap: mm/swapfile.c; ISO 9660: ECMA-119.
"""

from __future__ import annotations

import json
import struct
import typing as t
import uuid

# (offset in the piece that it describes, length) → bytes, fewer at the end; raises OSError
Read = t.Callable[[int, int], bytes]


class Member(t.NamedTuple):
    """A part of something that lies on several drives. group: what identifies that; own: this part of it; needed: all
    parts. kind, name: for people. events: how often the whole was changed, as this part has it; 0: it does not say.
    parts: how many there are, where none names the others; else 0.
    """

    kind: str
    group: str
    name: str
    own: str
    needed: frozenset[str]
    events: int = 0
    parts: int = 0

    @property
    def key(self) -> str:
        """Return what names this part among all groups."""
        return f"{self.of_group}{self.own}"

    @property
    def of_group(self) -> str:
        """Return what the keys of all parts of the whole begin with."""
        return f"{self.kind} {self.group} "

    @property
    def state(self) -> str:
        """Return what the note of a part that was erased ends with: how far the whole had come then; "" of what does
        not say.
        """
        return f" {self.events}" if self.events else ""

    @property
    def missing_keys(self) -> dict[str, str]:
        """Return the keys of the other parts, each with its name for people."""
        return {f"{self.of_group}{part}": part for part in sorted(self.needed) if part != self.own}


class Content(t.NamedTuple):
    """Something recognised. kind: of KINDS; offset: of its start on the drive; length: in bytes, as it declares itself.

    used_s: when it was mounted or written last, in seconds since 1970, 0 where it does not say. problem: why it can't
    be given up as it is. where: for people.
    """

    kind: str
    offset: int
    length: int
    label: str = ""
    uuid: str = ""
    used_s: int = 0
    problem: str = ""
    member: Member | None = None
    where: str = ""


# What libblkid and superblock_layout call the kinds that are parsed here.
KINDS = {
    "ext": "ext",
    "ext2": "ext",
    "ext3": "ext",
    "ext4": "ext",
    "xfs": "xfs",
    "btrfs": "btrfs",
    "swap": "swap",
    "vfat": "vfat",
    "exfat": "exfat",
    "ntfs": "ntfs",
    "iso9660": "iso9660",
    "crypto_LUKS": "crypto_LUKS",
    "LVM2_member": "LVM2_member",
    "linux_raid_member": "linux_raid_member",
}
_EXT_KNOWN_INCOMPAT = 0x2 | 0x4 | 0x10 | 0x40 | 0x80 | 0x200 | 0x400 | 0x2000 | 0x4000 | 0x8000 | 0x10000 | 0x20000
_EXT_NAMES = {
    0x8: "it is the journal of a file system elsewhere",
    0x100: "it is protected for several hosts (MMP)",
    0x1000: "it is of Lustre",
}
_BTRFS_SEED = 1 << 32
_SWAP_PAGES = (4096, 8192, 16384, 65536)


def parse(kind: str, read: Read) -> Content | None:
    """Return what lies at the start of a piece, with offset 0; None where it is no such thing. kind: of KINDS' values,
    of this module. Raises OSError.
    """
    try:
        return _PARSERS[kind](read)
    except (struct.error, ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError) as error:
        return Content(kind, 0, 0, problem=f"its superblock cannot be read ({type(error).__name__})")


def _text(data: bytes) -> str:
    """Return a label up to its end, as one line of printable characters."""
    read = data.split(b"\0")[0].decode("utf-8", "replace")
    return "".join(letter if letter.isprintable() else "?" for letter in read).strip()


def ext(block: bytes) -> Content | None:
    """Return the file system of a superblock of ext2/3/4, of 1024 bytes."""
    if len(block) < 1024 or block[56:58] != b"\x53\xef":
        return None
    blocks, shift = struct.unpack_from("<I", block, 4)[0], struct.unpack_from("<I", block, 24)[0]
    compat, incompat = struct.unpack_from("<II", block, 92)
    mounted, written = struct.unpack_from("<II", block, 44)
    mounted += block[0x275] << 32
    written += block[0x274] << 32
    if incompat & 0x80:
        blocks += struct.unpack_from("<I", block, 0x150)[0] << 32
    unknown = incompat & ~_EXT_KNOWN_INCOMPAT
    problem = next((text for bit, text in _EXT_NAMES.items() if unknown & bit), "")
    if unknown and not problem:
        problem = f"it has features that are not known here (incompat {unknown:#x})"
    if compat & 0x4 and (struct.unpack_from("<I", block, 228)[0] or any(block[208:224])):
        problem = problem or "its journal is on another device"
    if shift > 6 or not blocks:
        problem = problem or "its size is not known"
    used_s = max(mounted, written)
    label, own = _text(block[120:136]), str(uuid.UUID(bytes=block[104:120]))
    return Content("ext", 0, blocks * (1024 << min(shift, 6)), label, own, used_s, problem)


def _ext(read: Read) -> Content | None:
    return ext(read(1024, 1024))


def _xfs(read: Read) -> Content | None:
    block = read(0, 512)
    if block[:4] != b"XFSB":
        return None
    block_bytes, data_blocks, realtime_blocks = struct.unpack_from(">IQQ", block, 4)
    (log_start,) = struct.unpack_from(">Q", block, 48)
    problem = "" if log_start else "its log is on another device"
    if realtime_blocks:
        problem = problem or "a part of it is on another device (realtime)"
    own = str(uuid.UUID(bytes=block[32:48]))
    return Content("xfs", 0, block_bytes * data_blocks, _text(block[108:120]), own, problem=problem)


def _btrfs(read: Read) -> Content | None:
    return btrfs(read(65536, 4096))


def btrfs(block: bytes) -> Content | None:
    """Return the file system of a superblock of btrfs, or of a copy of it."""
    if len(block) < 4096 or block[64:72] != b"_BHRfS_M":
        return None
    (flags,) = struct.unpack_from("<Q", block, 56)
    (devices,) = struct.unpack_from("<Q", block, 136)
    device_id, own_bytes = struct.unpack_from("<QQ", block, 201)
    own, label = str(uuid.UUID(bytes=block[32:48])), _text(block[299:555])
    problem = "other file systems may be built on it (a seed device)" if flags & _BTRFS_SEED else ""
    if not devices or not own_bytes:
        problem = problem or "it does not say how many devices it has"
    member = None
    if devices > 1:
        problem = problem or _btrfs_doubt(block, device_id)
        # The file system counts a device that is missing too, and each commit gives all that are there one generation.
        (generation,) = struct.unpack_from("<Q", block, 72)
        part = str(uuid.UUID(bytes=block[267:283]))
        member = Member("btrfs", own, label or own, part, frozenset([part]), generation, devices)
    return Content("btrfs", 0, own_bytes, label, own, problem=problem, member=member, where=f"device {device_id}")


def _btrfs_doubt(block: bytes, device_id: int) -> str:
    """Return why the superblock of one of several devices does not tell how many there are."""
    if not device_id:
        return "it takes the place of another device (btrfs replace)"
    if struct.unpack_from("<H", block, 196)[0]:
        return "it is one of several devices, and its checksum is of a kind that is not known here"
    wrong = struct.unpack_from("<I", block)[0] != _crc32c(block[32:4096])
    return "it is one of several devices, and the checksum of its superblock is wrong" if wrong else ""


def _crc32c(data: bytes) -> int:
    """Return the CRC-32C of some KiB."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _bit in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def _swap(read: Read) -> Content | None:
    for page in _SWAP_PAGES:
        if read(page - 10, 10) == b"SWAPSPACE2":
            version, last = struct.unpack("<II", read(1024, 8))
            names = read(1036, 32)
            problem = "" if version == 1 else "its version is not known"
            own = str(uuid.UUID(bytes=names[:16]))
            return Content("swap", 0, (last + 1) * page, _text(names[16:]), own, problem=problem)
    return None


def _vfat(read: Read) -> Content | None:
    block = read(0, 512)
    is_32 = block[82:90] == b"FAT32   "
    if not is_32 and block[54:59] not in (b"FAT12", b"FAT16", b"FAT  "):
        return None
    (sector,) = struct.unpack_from("<H", block, 11)
    (small,), (large,) = struct.unpack_from("<H", block, 19), struct.unpack_from("<I", block, 32)
    place = 67 if is_32 else 39
    label, number = _text(block[place + 4 : place + 15]), struct.unpack_from("<I", block, place)[0]
    problem = "" if sector in (512, 1024, 2048, 4096) and (small or large) else "its size is not known"
    return Content("vfat", 0, sector * (small or large), label, f"{number >> 16:04X}-{number & 0xFFFF:04X}", 0, problem)


def _exfat(read: Read) -> Content | None:
    block = read(0, 512)
    if block[3:11] != b"EXFAT   ":
        return None
    (sectors,), (number,) = struct.unpack_from("<Q", block, 72), struct.unpack_from("<I", block, 100)
    shift = block[108]
    problem = "" if 9 <= shift <= 12 and sectors else "its size is not known"
    own = f"{number >> 16:04X}-{number & 0xFFFF:04X}"
    return Content("exfat", 0, sectors << min(shift, 12), "", own, problem=problem)


def _ntfs(read: Read) -> Content | None:
    block = read(0, 512)
    if block[3:11] != b"NTFS    ":
        return None
    (sector,), (sectors,) = struct.unpack_from("<H", block, 11), struct.unpack_from("<Q", block, 40)
    problem = "" if sector in (512, 1024, 2048, 4096) and sectors else "its size is not known"
    own = f"{struct.unpack_from('<Q', block, 72)[0]:016X}"
    return Content("ntfs", 0, sector * sectors, "", own, problem=problem)


def _iso9660(read: Read) -> Content | None:
    block = read(32768, 2048)
    if block[:6] != b"\x01CD001":
        return None
    (blocks,), (of_set,) = struct.unpack_from("<I", block, 80), struct.unpack_from("<H", block, 120)
    (block_bytes,) = struct.unpack_from("<H", block, 128)
    problem = "it is one of several volumes" if of_set > 1 else ""
    return Content("iso9660", 0, blocks * block_bytes, _text(block[40:72]), problem=problem)


def _luks(read: Read) -> Content | None:
    """Return a closed one: what it holds can't be seen. Its data must lie behind its own header: a header alone opens
    another device.
    """
    block = read(0, 4096)
    if block[:6] != b"LUKS\xba\xbe":
        return None
    (version,), own = struct.unpack_from(">H", block, 6), _text(block[168:208])
    if version == 1:
        data, length, label = struct.unpack_from(">I", block, 104)[0] * 512, 0, ""
    elif version == 2:
        (header,) = struct.unpack_from(">Q", block, 8)
        if not 4096 < header <= 4 << 20:
            return Content("crypto_LUKS", 0, 0, uuid=own, problem="its header is damaged")
        told = json.loads(read(4096, header - 4096).split(b"\0")[0])
        segments = list(told["segments"].values())
        data = min(int(segment["offset"]) for segment in segments)
        ends = [int(one["offset"]) + int(one["size"]) for one in segments if one["size"] != "dynamic"]
        length, label = max(ends, default=0), _text(block[24:72])
    else:
        return Content("crypto_LUKS", 0, 0, uuid=own, problem=f"its version {version} is not known")
    problem = "" if data else "it is the header of another device"
    owner = _text(block[208:256]) if version == 2 else ""
    if owner:
        problem = problem or f"it is a part of something larger, which calls itself {owner} (subsystem)"
    return Content("crypto_LUKS", 0, max(length, data + 4096), label, own, problem=problem)


_PARSERS: dict[str, t.Callable[[Read], Content | None]] = {
    "ext": _ext,
    "xfs": _xfs,
    "btrfs": _btrfs,
    "swap": _swap,
    "vfat": _vfat,
    "exfat": _exfat,
    "ntfs": _ntfs,
    "iso9660": _iso9660,
    "crypto_LUKS": _luks,
}
