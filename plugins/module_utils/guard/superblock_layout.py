# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Superblocks where a partition table that is gone put them, and the copies that file systems keep: what a drive's own
ends no longer tell.

Where each lies and what it looks like: libblkid's probers; ext2/3/4: sparse_super groups
(Documentation/filesystems/ext4); XFS: one superblock for each allocation group; btrfs: mirrors at 64 MiB and 256 GiB;
ZFS: uberblocks of the first two labels; md: 1.1, 1.2; LVM: a label in the first four sectors; what several hosts may
share (OCFS, OCFS2, GFS2, VMFS, Oracle ASM), since nothing lifts that.
"""

from __future__ import annotations

import struct
import typing as t

from ..tools.filesystems import sparse_groups

PIECE_BYTES = 4096
# How far from either end of a drive or a partition formats keep what tells of them: VMFS 2 MiB, the second header of
# LUKS2 up to 4 MiB.
WITHIN_BYTES = 5 << 20
_SECTOR, _MIB, _GIB = 512, 1 << 20, 1 << 30
# Where blkid itself is asked: a first partition of today, of an old MBR, of a GPT without alignment.
FIRST_PARTITIONS = (_MIB, 63 * _SECTOR, 34 * _SECTOR)
# Installers align partitions to whole MiB, and most of them lie at the front.
_EVERY_MIB_UP_TO = 2 * _GIB
_OLD_STARTS = (34 * _SECTOR, 40 * _SECTOR, 63 * _SECTOR, 64 * _SECTOR)
_MOST_XFS_GROUPS = 64  # mkfs.xfs makes 4, on flash as many as there are CPUs
_XFS_LARGEST_GROUP = (1 << 40) - 4096
_BTRFS_COPIES = (64 << 20, 256 << 30)

# Offsets → the pieces of PIECE_BYTES there, one after the other. Raises OSError.
ReadPieces = t.Callable[[t.Sequence[int]], bytes]


class Magic(t.NamedTuple):
    """kind: as libblkid calls it. at: offset of the text in a piece. holds: more that has to be so, of the piece."""

    kind: str
    at: int
    text: bytes
    holds: t.Callable[[bytes], bool] = lambda _piece: True


def _is_ext(piece: bytes, start: int, group: int = 0) -> bool:
    """Return a superblock of ext2/3/4 that begins there: block size of 1 to 64 KiB, clusters as large at least,
    revision 0 or 1, and it says which group's it is.
    """
    block, cluster = struct.unpack_from("<II", piece, start + 24)
    revision, own_group = struct.unpack_from("<I", piece, start + 76)[0], struct.unpack_from("<H", piece, start + 90)[0]
    return block <= 6 and block <= cluster <= 26 and revision <= 1 and (own_group == group or not revision)


def _is_one_of(form: str, at: int, *values: int) -> t.Callable[[bytes], bool]:
    return lambda piece: struct.unpack_from(form, piece, at)[0] in values


_BLOCK_SIZES = tuple(1 << shift for shift in range(9, 17))
_XFS = Magic("xfs", 0, b"XFSB", _is_one_of(">I", 4, *_BLOCK_SIZES))
# In the first 4 KiB of a partition.
STARTS = (
    Magic("ext", 1024 + 56, b"\x53\xef", lambda piece: _is_ext(piece, 1024)),
    _XFS,
    Magic("crypto_LUKS", 0, b"LUKS\xba\xbe"),
    Magic("ntfs", 3, b"NTFS    "),
    Magic("exfat", 3, b"EXFAT   "),
    Magic("vfat", 82, b"FAT32   "),
    Magic("vfat", 54, b"FAT16   "),
    Magic("swap", 4086, b"SWAPSPACE2"),
    Magic("BitLocker", 3, b"-FVE-FS-"),
    Magic("f2fs", 1024, b"\x10\x20\xf5\xf2", _is_one_of("<H", 1028, 1)),
    Magic("linux_raid_member", 0, b"\xfc\x4e\x2b\xa9", _is_one_of("<I", 4, 1)),
    Magic("zonefs", 0, b"SFOZ"),
    Magic("ceph_bluestore", 0, b"bluestore block device"),
    Magic("gpt", 512, b"EFI PART"),
    *(Magic("LVM2_member", _SECTOR * sector, b"LABELONE") for sector in range(4)),
    *(Magic("ocfs2", place, b"OCFSV2") for place in (1024, 2048)),
    Magic("oracleasm", 32, b"ORCLDISK"),
)
# At a place of their own behind the start of a partition.
LATER = (
    (4096, Magic("linux_raid_member", 0, b"\xfc\x4e\x2b\xa9", _is_one_of("<I", 4, 1))),
    (4096, Magic("bcache", 24, bytes.fromhex("c68573f64e1a45ca8265f57f48ba6d81"))),
    (4096, Magic("bcachefs", 24, bytes.fromhex("c68573f666ce90a9d96a60cf803df7ef"))),
    (65536, Magic("btrfs", 64, b"_BHRfS_M")),
    (65536, Magic("gfs2", 0, b"\x01\x16\x19\x70", _is_one_of(">I", 4, 1))),
    (65536, Magic("reiserfs", 52, b"ReIsEr")),
    (32768, Magic("jfs", 0, b"JFS1")),
    (131072, Magic("zfs_member", 0, b"\x0c\xb1\xba\x00\x00\x00\x00\x00")),
    (131072, Magic("zfs_member", 0, b"\x00\x00\x00\x00\x00\xba\xb1\x0c")),
    # In the third block, of 512 bytes to 4 KiB; mkfs.ocfs2 takes 4 KiB as a rule.
    *((place, Magic("ocfs2", 0, b"OCFSV2")) for place in (4096, 8192)),
    (8192, Magic("ocfs", 0, b"OracleCFS")),
    # A volume, and the file system in it; behind both the version.
    (_MIB, Magic("VMFS_volume_member", 0, b"\x0d\xd0\x01\xc0", _is_one_of("<I", 4, *range(1, 256)))),
    (2 * _MIB, Magic("VMFS", 0, b"\x5e\xf1\xab\x2f", _is_one_of("<I", 4, *range(1, 256)))),
)


class Found(t.NamedTuple):
    """A superblock, or a copy of one. kind: as libblkid calls it; offset: of the superblock's piece;
    what: for people.
    """

    kind: str
    offset: int
    what: str


class _Place(t.NamedTuple):
    """One piece to read, and what it would be."""

    offset: int
    magics: tuple[Magic, ...]
    what: str


def scan(read: ReadPieces, size_bytes: int, block_bytes: int = 512, at_a_time: int = 32) -> list[Found]:
    """Return every superblock and copy at the usual places, in the order of the places. Raises OSError where they can't
    be read.

    block_bytes: of the drive, which takes no read that begins elsewhere; no table can have put anything there either.
    """
    wanted: dict[int, list[_Place]] = {}
    for look in _places(size_bytes):
        if 0 <= look.offset <= size_bytes - PIECE_BYTES and not look.offset % block_bytes:
            wanted.setdefault(look.offset, []).append(look)
    found, offsets = [], sorted(wanted)
    for first in range(0, len(offsets), at_a_time):
        some = offsets[first : first + at_a_time]
        data = read(some)
        for place, offset in enumerate(some):
            piece = data[place * PIECE_BYTES : (place + 1) * PIECE_BYTES]
            found += [
                Found(magic.kind, offset, look.what)
                for look in wanted[offset]
                for magic in look.magics
                if _is(magic, piece)
            ]
    return found


def kinds_at(read: t.Callable[[int, int], bytes]) -> list[str]:
    """Return what begins at a place by the superblocks that are known here. read: (offset from there, length) → bytes.
    Raises OSError.
    """
    looks = [(0, STARTS), *((offset, (magic,)) for offset, magic in LATER)]
    pieces = [(magics, read(offset, PIECE_BYTES).ljust(PIECE_BYTES, b"\0")) for offset, magics in looks]
    return list(dict.fromkeys(magic.kind for magics, piece in pieces for magic in magics if _is(magic, piece)))


def _is(magic: Magic, piece: bytes) -> bool:
    return piece[magic.at : magic.at + len(magic.text)] == magic.text and magic.holds(piece)


def _places(size_bytes: int) -> t.Iterator[_Place]:
    """The start of the drive itself is wipefs's and blkid's; copies of a file system on the bare drive are looked for
    here.
    """
    for start in _starts(size_bytes):
        yield _Place(start, STARTS, f"at byte {start}")
        for offset, magic in LATER:
            yield _Place(start + offset, (magic,), f"at byte {start}")
    for start in (0, *_OLD_STARTS, _MIB, 2 * _MIB):
        yield from _copies(start, size_bytes)


def _starts(size_bytes: int) -> t.Iterable[int]:
    """Return where partitions begin: old ones, every MiB at the front, then every GiB with and without a MiB
    before it.
    """
    yield from _OLD_STARTS
    yield from range(_MIB, min(size_bytes, _EVERY_MIB_UP_TO), _MIB)
    for start in range(_EVERY_MIB_UP_TO, size_bytes, _GIB):
        yield from (start, start + _MIB)


def _copies(start: int, size_bytes: int) -> t.Iterator[_Place]:
    """Yield the copies that a file system keeps which begins at `start`."""
    for offset in _BTRFS_COPIES:
        yield _Place(start + offset, (Magic("btrfs", 64, b"_BHRfS_M"),), "a copy of the superblock")
    for group in sparse_groups((size_bytes - start) // (8 * _MIB)):
        for block_bytes in (1024, 2048, 4096):
            offset = start + group * 8 * block_bytes * block_bytes + (1024 if block_bytes == 1024 else 0)
            piece = offset // PIECE_BYTES * PIECE_BYTES
            within = offset - piece
            if within <= PIECE_BYTES - 1024:
                yield _Place(piece, (_ext_copy(within, group),), f"the copy of its superblock in group {group}")
    for end in (size_bytes, size_bytes - _MIB, size_bytes - 33 * _SECTOR, size_bytes - 34 * _SECTOR):
        for offset in _xfs_groups(start, (end - start) // 4096):
            yield _Place(offset, (_XFS,), "the superblock of an allocation group")


def _ext_copy(within: int, group: int) -> Magic:
    return Magic("ext", within + 56, b"\x53\xef", lambda piece: _is_ext(piece, within, group & 0xFFFF))


def _xfs_groups(start: int, blocks: int) -> list[int]:
    """Return where the second group begins, for every number of groups that mkfs.xfs makes."""
    sizes = {-(-blocks // count) * 4096 for count in range(2, _MOST_XFS_GROUPS + 1)} | {_XFS_LARGEST_GROUP}
    return [start + size for size in sizes if size > 0]
