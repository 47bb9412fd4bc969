# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Partition tables as bytes: where partitions lie and of which type they are, also where the kernel did not look.

GPT: UEFI Specification 2.10, 5.3 (a header in the second block, a copy in the last one). MBR: the same, 5.2.1.
"""

from __future__ import annotations

import struct
import typing as t
import uuid
import zlib

EFI_SYSTEM = ("c12a7328-f81f-11d2-ba4b-00a0c93ec93b", "0xef")
# Partitions of what several hosts share: VMFS, vSAN, VMware's reserved and dump areas, GPFS.
CLUSTER = {
    "aa31e02a-400f-11db-9590-000c2911d1b8": "VMFS",
    "9198effc-31c0-11db-8f78-000c2911d1b8": "VMware reserved",
    "9d275380-40ad-11db-bf97-000c2911d1b8": "VMware dump",
    "37affc90-ef7d-4e96-91c3-2d7ae055b174": "GPFS",
    "381cfccc-7288-11e0-92ee-000c2911d0b2": "vSAN",
    "77719a0c-a4a0-11e3-a47e-000c29745a24": "VMware virsto",
    "0xfb": "VMFS",
    "0xfc": "VMware dump",
}
_PROTECTIVE = "0xee"
_EXTENDED = ("0x05", "0x0f", "0x85")
_SIGNATURE = b"EFI PART"
_BLOCK_BYTES = (512, 4096)  # a table may have been made with another block size than the drive has now
_MOST_ENTRIES = 1024
_MOST_EXTENDED = 64

# (offset, length) → bytes, fewer at the end; raises OSError
Read = t.Callable[[int, int], bytes]


class Partition(t.NamedTuple):
    """type: a GUID, or 0x and two digits, in lower case. guid: of the partition itself, None in an MBR."""

    type: str
    start_bytes: int
    size_bytes: int
    guid: str | None = None


def partitions(read: Read, size_bytes: int) -> list[Partition]:
    """Return every partition that a table at the start or at the end of the drive has, each once. Raises OSError."""
    found: list[Partition] = []
    for block_bytes in _BLOCK_BYTES:
        for header in (block_bytes, size_bytes - block_bytes):
            found += _gpt(read, header, block_bytes)
    found += _mbr(read)
    return list(dict.fromkeys(found))


def extents(read: Read, size_bytes: int) -> list[tuple[int, int]]:
    """(offset, length) of the tables' own bytes: of an MBR its partition entries and boot code, of a whole GPT its
    headers and entries. Raises OSError.
    """
    found = [(0, 512)] if read(510, 2) == b"\x55\xaa" else []
    for block_bytes in _BLOCK_BYTES:
        for offset in (block_bytes, size_bytes - block_bytes):
            header = read(offset, 92) if offset > 0 else b""
            if header[:8] == _SIGNATURE and is_whole(header):
                first_block, count, entry_bytes = struct.unpack_from("<QII", header, 72)
                length = -(-min(count, _MOST_ENTRIES) * min(entry_bytes, 4096) // 512) * 512
                found += [(offset, block_bytes), (first_block * block_bytes, length)]
    return found


def is_whole(header: bytes) -> bool:
    """Return whether a GPT header is as it was written: one that is damaged could call any part of the drive its
    entries.
    """
    if len(header) < 92:
        return False
    length, checksum = struct.unpack_from("<II", header, 12)
    return bool(length == 92 and checksum == zlib.crc32(header[:16] + bytes(4) + header[20:92]))


def _gpt(read: Read, offset: int, block_bytes: int) -> list[Partition]:
    """Return the entries of one header; a damaged one counts as far as it can be read, since it once was a table."""
    header = read(offset, 92) if offset > 0 else b""
    if header[:8] != _SIGNATURE or len(header) < 92:
        return []
    first_block, count, entry_bytes = struct.unpack_from("<QII", header, 72)
    if entry_bytes < 128 or entry_bytes > 4096:
        return []
    table = read(first_block * block_bytes, min(count, _MOST_ENTRIES) * entry_bytes)
    found = []
    for start in range(0, len(table) - 127, entry_bytes):
        if any(table[start : start + 16]):
            found.append(of_entry(table[start : start + 128], block_bytes))
    return found


def of_entry(entry: bytes, block_bytes: int) -> Partition:
    """Return the partition of a GPT's entry."""
    kind, guid, first, last = struct.unpack_from("<16s16sQQ", entry)
    size = max(0, last - first + 1) * block_bytes
    return Partition(str(uuid.UUID(bytes_le=kind)), first * block_bytes, size, str(uuid.UUID(bytes_le=guid)))


def _mbr(read: Read) -> list[Partition]:
    found = _entries(read(0, 512), 0)
    extended = next((part.start_bytes for part in found if part.type in _EXTENDED), None)
    place = extended
    for _hop in range(_MOST_EXTENDED):
        if place is None:
            break
        more = _entries(read(place, 512), place)
        found += [part for part in more if part.type not in _EXTENDED]
        following = [part.start_bytes - place for part in more if part.type in _EXTENDED]
        place = extended + following[0] if following and extended is not None else None
    return [part for part in found if part.type != _PROTECTIVE and part.type not in _EXTENDED]


def _entries(sector: bytes, base: int) -> list[Partition]:
    """Return the four entries of one record; starts count from `base`, in blocks of 512 bytes."""
    if len(sector) < 512 or sector[510:512] != b"\x55\xaa":
        return []
    found = []
    for place in range(446, 510, 16):
        status, kind, first, blocks = struct.unpack_from("<B3xB3xII", sector, place)
        if kind and blocks and status in (0x00, 0x80):
            found.append(Partition(f"0x{kind:02x}", base + first * 512, blocks * 512))
    return found
