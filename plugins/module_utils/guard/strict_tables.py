# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Partition tables that may be given up: whole, made for a device of exactly this size, with partitions of known types.

partition_tables.py finds whatever a table may tell, also a damaged one; here anything that is not as it was written is
a reason to keep the drive: a table that was made for a larger or a smaller device is that of an array, a controller's
volume or another drive.
"""

from __future__ import annotations

import struct
import typing as t
import zlib

from . import partition_tables
from .partition_tables import Partition, Read

# What these partitions hold describes itself, or is nothing that anybody could need elsewhere. LVM and md name their
# members: such a partition has to hold one.
MEMBERS = {
    "e6d6d379-f507-44c2-a23c-238f2a3df928": "LVM2_member",
    "a19d880f-05fc-4d3b-a006-743f0f84911e": "linux_raid_member",
    "0x8e": "LVM2_member",
    "0xfd": "linux_raid_member",
}
KNOWN = {
    *MEMBERS,
    "0fc63daf-8483-4772-8e79-3d69d8477de4",  # Linux data
    "c12a7328-f81f-11d2-ba4b-00a0c93ec93b",  # EFI system
    "bc13c2ff-59e6-4262-a352-b275fd6f7172",  # extended boot
    "21686148-6449-6e6f-744e-656564454649",  # BIOS boot
    "0657fd6d-a4ab-43c4-84e5-0933c84b4f4f",  # swap
    "ca7d7ccb-63ed-4c53-861c-1742536059cc",  # LUKS
    "933ac7e1-2eb4-4f13-b844-0e14e2aef915",  # /home
    "3b8f8425-20e0-4f3b-907f-1a25a76f98e8",  # /srv
    "4d21b016-b534-45c2-a9fb-5c16e091fd2d",  # /var
    "7ec6f557-3bc5-4aca-b293-16ef5df639d1",  # /var/tmp
    "4f68bce3-e8cd-4db1-96e7-fbcaf984b709",  # root of x86-64
    "b921b045-1df0-41c3-af44-4c6f280d3fae",  # root of ARM64
    "ebd0a0a2-b9e5-4433-87c0-68b6b72699c7",  # Microsoft basic data
    "e3c9e316-0b5c-4db8-817d-f92df00215ae",  # Microsoft reserved
    "de94bba4-06d1-4d40-a16a-bfd50179d6ac",  # Windows recovery
    *("0x01", "0x04", "0x06", "0x07", "0x0b", "0x0c", "0x0e", "0x27", "0x82", "0x83", "0xe8", "0xef"),
}
# So that the refusal says what it is.
_NAMES = {
    **partition_tables.CLUSTER,
    "6a898cc3-1dd2-11b2-99a6-080020736631": "ZFS",
    "516e7cba-6ecf-11d6-8ff8-00022d09712b": "ZFS of FreeBSD",
    "4fbd7e29-9d25-41b8-afd0-062c0ceff05d": "an OSD of Ceph",
    "cafecafe-9b03-4f30-b4c6-b4b80ceff106": "an OSD of Ceph",
    "45b0969e-9b03-4f30-b4c6-b4b80ceff106": "a journal of Ceph",
    "30cd0809-c2b2-499c-8879-2d6b78529876": "a database of Ceph (block.db)",
    "5ce17fce-4087-4169-b7ff-056cc58473f9": "a log of Ceph (block.wal)",
    "e75caf8f-f680-4cee-afa3-b001e56efc2d": "Windows Storage Spaces",
    "5808c8aa-7e8f-42e0-85d2-e1e90434cfb3": "a dynamic disk of Windows",
    "af9b60a0-1431-4f62-bc68-3311714a69ad": "a dynamic disk of Windows",
    "0x42": "a dynamic disk of Windows",
    "0xee": "the protection of a GPT that is lost",
}
_EXTENDED = ("0x05", "0x0f", "0x85")
_MOST_LOGICAL = 60


class Named(t.NamedTuple):
    """A partition; name: its own, "" without one."""

    part: Partition
    name: str


class Table(t.NamedTuple):
    """kinds: what libblkid may call it. problems: why it may not be given up."""

    kinds: frozenset[str]
    parts: list[Named]
    problems: list[str]


def read_table(read: Read, size_bytes: int, block_bytes: int) -> Table | None:
    """Return the drive's table; None without any trace of one. block_bytes: of the drive. Raises OSError."""
    found = [block for block in (512, 4096) for place in (block, size_bytes - block) if _is_gpt(read, place)]
    record = read(0, 512)
    entries = _entries(record)
    if found:
        blocks = sorted(set(found))
        table = _gpt(read, size_bytes, blocks[0], entries)
        several = ["it has tables of blocks of 512 and of 4096 bytes"] if len(blocks) > 1 else []
        return table._replace(problems=[*several, *table.problems])
    return _mbr(read, size_bytes, block_bytes, entries) if any(kind for kind, _start, _size in entries) else None


def _is_gpt(read: Read, place: int) -> bool:
    return place > 0 and read(place, 8) == b"EFI PART"


def _entries(record: bytes) -> list[tuple[int, int, int]]:
    """Return (type, first block, blocks) of the four entries of a record; none where it is no table."""
    if len(record) < 512 or record[510:512] != b"\x55\xaa" or any(record[at] not in (0, 0x80) for at in _PLACES):
        return []
    return [struct.unpack_from("<4xB3xII", record, at) for at in _PLACES]


_PLACES = range(446, 510, 16)


def _gpt(read: Read, size_bytes: int, block: int, entries: t.Sequence[tuple[int, int, int]]) -> Table:
    kinds = frozenset(("gpt", "PMBR"))
    if sorted(kind for kind, _start, _size in entries) != [0, 0, 0, 0xEE]:
        return Table(kinds, [], ["its MBR does not protect the GPT, or is a table of its own"])
    last = size_bytes // block - 1
    first_header, second_header = (_header(read, number * block, number) for number in (1, last))
    if first_header is None or second_header is None:
        whole = first_header or second_header
        told = f"a device of {(max(whole[0], whole[1]) + 1) * block} bytes" if whole else "it is damaged"
        return Table(kinds, [], [f"its GPT is not whole, or was made for another device ({told}, not {size_bytes})"])
    if first_header[:2] != (1, last) or second_header[:2] != (last, 1) or first_header[4] != second_header[4]:
        return Table(kinds, [], ["its two GPTs are not of one table and of this device"])
    tables = [_entry_bytes(read, header, block) for header in (first_header, second_header)]
    if tables[0] is None or tables[0] != tables[1]:
        return Table(kinds, [], ["the entries of its GPT are damaged, or not the same in both"])
    parts = list(_gpt_parts(tables[0], first_header[7], block))
    return Table(kinds, parts, _part_problems(parts, first_header[2] * block, (first_header[3] + 1) * block))


# (own block, other's, first usable, last usable, GUID, first block of entries, count, bytes of an entry, their CRC)
_Header = t.Tuple[int, int, int, int, bytes, int, int, int, int]


def _header(read: Read, place: int, number: int) -> _Header | None:
    """Return a GPT's header that is as it was written, and in its own place."""
    data = read(place, 92)
    if not partition_tables.is_whole(data) or data[:8] != b"EFI PART":
        return None
    header: _Header = struct.unpack_from("<QQQQ16sQIII", data, 24)
    fits = header[0] == number and header[7] in (128, 256, 512) and 0 < header[6] <= 1024
    return header if fits else None


def _entry_bytes(read: Read, header: _Header, block: int) -> bytes | None:
    data = read(header[5] * block, header[6] * header[7])
    return data if zlib.crc32(data) == header[8] else None


def _gpt_parts(table: bytes, entry_bytes: int, block: int) -> t.Iterator[Named]:
    for start in range(0, len(table), entry_bytes):
        entry = table[start : start + entry_bytes]
        if any(entry[:16]):
            name = entry[56:128].decode("utf-16-le", "replace").split("\0")[0]
            yield Named(partition_tables.of_entry(entry, block), "".join(filter(str.isprintable, name)))


def _mbr(read: Read, size_bytes: int, block: int, entries: t.Sequence[tuple[int, int, int]]) -> Table:
    kinds = frozenset(("dos",))
    if block != 512:
        return Table(kinds, [], [f"an MBR on a drive of blocks of {block} bytes is not read here"])
    primary = [(f"0x{kind:02x}", first * 512, blocks * 512) for kind, first, blocks in entries if kind]
    parts = [Named(Partition(*one), "") for one in primary if one[0] not in _EXTENDED]
    extended = [one for one in primary if one[0] in _EXTENDED]
    problems = ["it has several extended partitions"] if len(extended) > 1 else []
    for _kind, start, size in extended[:1]:
        logical, wrong = _logical(read, start, size)
        parts += logical
        problems += wrong
    return Table(kinds, parts, [*problems, *_part_problems(parts, 512, size_bytes)])


def _logical(read: Read, start: int, size: int) -> tuple[list[Named], list[str]]:
    """Return the partitions in an extended one, and why its chain is not whole."""
    found: list[Named] = []
    place, damaged = start, ["the chain of its extended partition is not whole"]
    for _hop in range(_MOST_LOGICAL):
        own, more = [], []
        entries = _entries(read(place, 512))
        for kind, first, blocks in entries:
            name = f"0x{kind:02x}"
            if kind and name in _EXTENDED:
                more.append(start + first * 512)
            elif kind:
                own.append(Named(Partition(name, place + first * 512, blocks * 512), ""))
        too_far = any(one.part.start_bytes + one.part.size_bytes > start + size for one in own)
        if not entries or len(own) > 1 or len(more) > 1 or too_far:
            return found, damaged
        found += own
        if not more:
            return found, []
        if not place < more[0] < start + size:
            return found, damaged
        place = more[0]
    return found, damaged


def _part_problems(parts: t.Sequence[Named], first: int, end: int) -> list[str]:
    """Return why partitions may be more than the drive's own: of an unknown type, outside of it, or one in another."""
    found = []
    for number, (part, _name) in enumerate(parts, start=1):
        if part.type not in KNOWN:
            kind = _NAMES.get(part.type, "of a type that is not known here")
            found.append(f"partition {number} is {kind} ({part.type})")
        if part.size_bytes <= 0 or part.start_bytes < first or part.start_bytes + part.size_bytes > end:
            found.append(f"partition {number} is not within the drive: it belongs to something larger")
    ordered = sorted((one.part.start_bytes, one.part.size_bytes) for one in parts)
    if any(start + size > after for (start, size), (after, _size) in zip(ordered, ordered[1:])):
        found.append("its partitions lie in one another")
    return found
