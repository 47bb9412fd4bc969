# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What lies on a drive: signatures at every offset that wipefs and blkid know, partitions and what is in them."""

from __future__ import annotations

import re
import typing as t

from ..core import sysfs, tool_json
from ..core.host import Host
from ..drive.identity import SYSFS_SECTOR_BYTES
from ..records.base import Json
from . import device_aliases, partition_tables, superblock_layout
from .block_reader import BlockReader, PlaceReader
from .facts import Extent, Facts, Hit, Mark, add
from .partition_tables import Partition

_WIPEFS_SAYS_NONE = (2, 37)  # before it, wipefs --json prints nothing at all where it finds nothing
_BLKID_NOTHING_FOUND = 2
_BLKID_AMBIVALENT = 8
# What blkid finds where several things contradict each other, as a kind.
AMBIVALENT = "ambivalent"
# What libblkid calls partition tables; every other signature is data.
TABLE_TYPES = frozenset("gpt PMBR dos mac sun sgi bsd minix aix ultrix unixware solaris_x86 atari dasd hybrid".split())
# Those of them whose partitions are read (tables). What lies in those of another is not known.
_READ_TABLES = frozenset("gpt PMBR dos hybrid".split())
# Tables in partitions, as the disk of a virtual machine has them: in a partition, and in one of its own partitions.
_MOST_NESTED = 2
# What the kernel shows of an extended partition: its first record, which libblkid takes for a table.
_EXTENDED_BYTES = 4096
# What libblkid calls file systems that several hosts share.
CLUSTER_TYPES = frozenset("VMFS VMFS_volume_member gfs gfs2 ocfs ocfs2 gpfs lustre oracleasm".split())
# What counts as data without a signature: (offset, length).
UNREADABLE = "the drive cannot read all of the {1} bytes from byte {0}, which counts as data"
# A signature's own block: what is behind it is somebody's data.
SIGNATURE_BYTES = 4096


def probe_wipefs(host: Host, facts: Facts) -> None:
    """wipefs finds every signature, those at the end and at an offset too."""
    result = host.run(["wipefs", "-n", "--json", facts.path])
    if result.rc != 0:
        facts.failed(result)
        return
    if not result.stdout.strip() and not result.stderr.strip() and _wipefs_is_silent(host):
        return
    kinds: list[str] = []
    try:
        listed = tool_json.read(result.stdout, "signatures")["signatures"]
        kinds = [str(entry["type"]) for entry in listed]
    except (ValueError, KeyError, TypeError):
        listed = None
    if not isinstance(listed, list):  # an empty mapping or text would look like no signature
        facts.failures.append(f"wipefs printed no list of signatures: {result.stdout!r:.80}")
        return
    for kind, entry in zip(kinds, listed):
        _add_signature(facts, kind)
        _add_mark(facts, kind, entry)


def _add_mark(facts: Facts, kind: str, entry: Json) -> None:
    """Where a signature's own bytes lie, as far as wipefs says so: the block of it, and of a table the sector."""
    offset = re.fullmatch(r"0x([0-9a-f]{1,16})", str(entry.get("offset")))
    facts.hits.append(Hit(kind, int(offset.group(1), 16) if offset else -1))
    if offset:
        length = 512 if kind in TABLE_TYPES else SIGNATURE_BYTES
        facts.marks.append(Mark(int(offset.group(1), 16) // length * length, length, kind in TABLE_TYPES))


def _wipefs_is_silent(host: Host) -> bool:
    match = re.search(r"util-linux (\d+)\.(\d+)", host.run(["wipefs", "--version"]).stdout)
    return match is not None and (int(match.group(1)), int(match.group(2))) < _WIPEFS_SAYS_NONE


def probe_blkid(host: Host, facts: Facts) -> None:
    """blkid sees what wipefs does not, and what contradicts itself."""
    blkid(host, facts, "")


def blkid(host: Host, facts: Facts, where: str, piece: Extent | None = None) -> list[str]:
    """Note what blkid finds on the drive, or in a piece of it; the kinds of it."""
    place = ["--offset", str(piece.offset), "--size", str(piece.length)] if piece else []
    result = host.run(["blkid", "-p", "-o", "export", *place, facts.path])
    noted = piece or Extent(0, facts.identity.size_bytes or 0)
    if result.rc == _BLKID_AMBIVALENT:
        facts.hits.append(Hit(AMBIVALENT, noted.offset, noted.length))
        add(facts.signatures, where + "several tables that contradict each other")
        return []
    if result.rc == _BLKID_NOTHING_FOUND and not result.stdout.strip() and not result.stderr.strip():
        return []
    answers = dict(line.split("=", 1) for line in result.stdout.splitlines() if "=" in line)
    found = [answers[key] for key in ("PTTYPE", "TYPE") if key in answers]
    if result.rc != 0 or not (found or place):  # within a partition, its entry in the table alone is an answer
        facts.failed(result)
    for kind in found:
        _add_signature(facts, kind, where)
        facts.hits.append(Hit(kind, noted.offset, noted.length))
    device_aliases.add_tags(facts, answers)
    return found


def _add_signature(facts: Facts, kind: str, where: str = "") -> None:
    """where: a place within the drive; a table there is somebody's data, such as the disk of a virtual machine."""
    if kind in CLUSTER_TYPES:
        add(facts.cluster, where + kind)
    if kind in TABLE_TYPES and not where:
        add(facts.tables, kind)
        add(facts.signatures, *([] if kind in _READ_TABLES else [f"{kind}, whose partitions are not read"]))
    else:
        add(facts.signatures, where + kind)


def has_known_table(facts: Facts) -> bool:
    """Return whether a table was found that no random data makes: one whose partitions are read has a checksum, or
    flags and a magic number at several places. Others are told by as little as four bytes (atari).
    """
    return not TABLE_TYPES.difference(_READ_TABLES).issuperset(facts.tables)


def probe_blocks(host: Host, facts: Facts, reader: PlaceReader) -> None:
    """Partitions by the tables' own bytes and by the kernel, and what lies in each of them. Raises OSError where it
    cannot be read.
    """
    found = partition_tables.partitions(reader.read, reader.size_bytes)
    for number, part in enumerate(found, start=1):
        add(facts.tables, *([] if facts.tables else [f"partition {number} of type {part.type}"]))
        _probe_partition(host, facts, reader, part, f"partition {number}")
    for name, part in of_kernel(host, facts, found):
        _probe_partition(host, facts, reader, part, name)
    facts.marks.extend(
        Mark(offset, length, True) for offset, length in partition_tables.extents(reader.read, reader.size_bytes)
    )


def of_kernel(host: Host, facts: Facts, found: t.Sequence[Partition]) -> list[tuple[str, Partition]]:
    """Partitions that the kernel alone has, by name: of a table that we do not read, or added by hand."""
    known = {(part.start_bytes, part.size_bytes) for part in found}
    listed = []
    for name in facts.partitions:
        start, size = (sysfs.number(host, f"/sys/class/block/{name}/{file}") for file in ("start", "size"))
        if start is not None and size is not None:
            listed.append((name, Partition("", start * SYSFS_SECTOR_BYTES, size * SYSFS_SECTOR_BYTES)))
    return [
        (name, part)
        for name, part in listed
        if (part.start_bytes, part.size_bytes) not in known and part.size_bytes > _EXTENDED_BYTES
    ]


def _probe_partition(host: Host, facts: Facts, reader: PlaceReader, part: Partition, name: str, depth: int = 0) -> None:
    """What a partition is, and what lies in it; of a table in it the same. Raises OSError where it cannot be read."""
    if part.type in partition_tables.EFI_SYSTEM:
        add(facts.efi, f"at byte {part.start_bytes}")
    if part.type in partition_tables.CLUSTER:
        add(facts.cluster, f"{name}: {partition_tables.CLUSTER[part.type]}")
    device_aliases.add_tags(facts, {"PART_ENTRY_UUID": part.guid or ""})
    length = min(part.size_bytes, reader.size_bytes - part.start_bytes)  # a table may tell of more than the drive has
    if length <= 0:
        return
    facts.pieces.append(Extent(part.start_bytes, length))
    kinds = blkid(host, facts, f"{name}: ", Extent(part.start_bytes, length))
    if depth >= _MOST_NESTED or not TABLE_TYPES.intersection(kinds):
        return
    nested = partition_tables.partitions(lambda offset, count: reader.read(part.start_bytes + offset, count), length)
    for number, inner in enumerate(nested, start=1):
        moved = inner._replace(start_bytes=part.start_bytes + inner.start_bytes)
        _probe_partition(host, facts, reader, moved, f"{name}, partition {number}", depth + 1)


def probe_places(host: Host, facts: Facts, handle: int, size_bytes: int, block_bytes: int) -> None:
    """What a table that is gone, or a file system without its start, leaves behind. Raises OSError where it cannot be
    read.
    """
    with BlockReader(handle, superblock_layout.PIECE_BYTES) as pieces:
        for found in superblock_layout.scan(pieces.read, size_bytes, block_bytes):
            add(facts.cluster if found.kind in CLUSTER_TYPES else facts.signatures, f"{found.kind}, {found.what}")
            facts.marks.append(Mark(found.offset, superblock_layout.PIECE_BYTES))
            facts.hits.append(Hit(found.kind, found.offset))
    for start in superblock_layout.FIRST_PARTITIONS:
        if start < size_bytes:
            blkid(host, facts, f"at byte {start}: ", Extent(start, size_bytes - start))


def read_ends(facts: Facts, reader: PlaceReader) -> None:
    """Read all places at either end of the drive, and of each partition, where a format keeps what tells of it: wipefs
    and blkid end at a block that they can't read as if nothing were there. Raises OSError.
    """
    for piece in dict.fromkeys([Extent(0, reader.size_bytes), *facts.pieces]):
        count = min(piece.length, superblock_layout.WITHIN_BYTES)
        for offset in (piece.offset, piece.offset + piece.length - count):
            reader.read(offset, count)
