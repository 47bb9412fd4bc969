# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a drive holds, and whether that is its own alone: everything recognised on it has to be on a list of formats
that describe themselves fully, and to be where, and as large as, they say. Reads only.

`examine` reads what lies at the starts of the drive, of its partitions and of what is built on these; `account` sees,
once the whole drive was looked at, that nothing else was recognised anywhere.
"""

from __future__ import annotations

import datetime
import struct
import typing as t

from ..core import sysfs
from ..core.host import Host
from ..drive.identity import SYSFS_SECTOR_BYTES
from . import memberships, on_disk_signatures, self_described, strict_tables, superblock_layout
from .block_reader import PlaceReader
from .facts import Extent, Facts, Hit, Holdings
from .memberships import Membership
from .self_described import KINDS, Content

_MOST_NESTED = 3
_EXTENDED_BYTES = 4096
# How far behind the end of a file system an array of md keeps its superblock, and how much of a drive's end is
# searched.
_BEHIND, _AT_END = 256 << 10, 3 << 20
_PIECE = 4096
# What names further drives, and within how many bytes of either end it keeps its labels.
_MEMBERS, _LABELS = ("LVM2_member", "linux_raid_member"), 16384
# What does not say where its data end.
_OPEN_ENDED = ("crypto_LUKS", "linux_raid_member")
# Labels that members keep at their end, at multiples of 512 bytes: md 1.x and 0.90, DDF, Intel's.
_END_LABELS = (
    ("md", struct.pack("<II", 0xA92B4EFC, 1)),
    ("md", struct.pack("<III", 0xA92B4EFC, 0, 90)),
    ("md", struct.pack(">III", 0xA92B4EFC, 0, 90)),
    ("a RAID controller (DDF)", b"\xde\x11\xde\x11"),
    ("Intel's RAID", b"Intel Raid ISM Cfg Sig."),
    ("ZFS", b"\x0c\xb1\xba\x00\x00\x00\x00\x00"),
    ("ZFS", b"\x00\x00\x00\x00\x00\xba\xb1\x0c"),
)


class _Region(t.NamedTuple):
    """A piece of the drive. whole_bytes: of what begins there, which may go on elsewhere; wanted: which kind it has to
    hold, "" any; is_start: whether something may begin there.
    """

    offset: int
    length: int
    where: str
    whole_bytes: int
    wanted: str = ""
    is_start: bool = True


def examine(host: Host, facts: Facts, reader: PlaceReader) -> None:
    """Fill facts.holdings from what lies at the starts. Raises OSError where the drive cannot be read."""
    for region in _regions(host, facts, reader):
        _region(host, facts, reader, region, 0)


def _regions(host: Host, facts: Facts, reader: PlaceReader) -> list[_Region]:
    """Return the drive's partitions, or the drive itself."""
    size = reader.size_bytes
    table = strict_tables.read_table(reader.read, size, facts.identity.logical_block_size_bytes or 512)
    if table is None or not (facts.tables or "gpt" in table.kinds):
        if facts.tables or facts.partitions:
            facts.holdings.problems.append("it has a partition table, or partitions, that are not read here")
        return [_Region(0, size, "", size)]
    facts.holdings.problems += table.problems
    facts.holdings.tables = table.kinds
    if "dos" in table.kinds:
        facts.holdings.end_bytes = max((part.start_bytes + part.size_bytes for part, _name in table.parts), default=0)
    known = {(part.start_bytes, part.size_bytes) for part, _name in table.parts}
    for name in facts.partitions:
        start, length = (sysfs.number(host, f"/sys/class/block/{name}/{file}") for file in ("start", "size"))
        place = ((start or 0) * SYSFS_SECTOR_BYTES, (length or 0) * SYSFS_SECTOR_BYTES)
        if place not in known and place[1] > _EXTENDED_BYTES:
            facts.holdings.problems.append(f"the kernel has a partition {name} that its table does not have")
    found = []
    for number, (part, name) in enumerate(table.parts, start=1):
        where = f"partition {number}" + (f' "{name}"' if name else "")
        wanted = strict_tables.MEMBERS.get(part.type, "")
        found.append(_Region(part.start_bytes, part.size_bytes, where, part.size_bytes, wanted))
    return found


def _region(host: Host, facts: Facts, reader: PlaceReader, region: _Region, depth: int) -> None:
    """Note what begins in a region, and what is built on that."""
    holdings = facts.holdings
    if region.offset < 0 or region.length <= 0 or region.offset + region.length > reader.size_bytes:
        holdings.problems.append(f"{_at(region)}is not within the drive")
        return
    at = (region.offset, region.length)
    kinds = {hit.kind for hit in facts.hits if (hit.offset, hit.length) == at}
    if not region.where:
        kinds |= {hit.kind for hit in facts.hits if not hit.length}  # wipefs's, of the bare drive
    if not kinds:
        _raw(holdings, reader, region)
        return
    unknown = sorted(kind for kind in kinds if kind not in KINDS)
    if unknown or len({KINDS[kind] for kind in kinds}) > 1 or not region.is_start:
        holdings.problems.append(f"{_at(region)}{', '.join(unknown or sorted(kinds))} is not given up so")
        return
    kind = KINDS[kinds.pop()]
    if region.wanted not in ("", kind):
        holdings.problems.append(f"{_at(region)}it holds {kind}, and its type says {region.wanted}")
    if depth > _MOST_NESTED:
        holdings.problems.append(f"{_at(region)}it is built on too many layers")
        return
    member = _read(facts, reader, region, kind)
    holdings.contents.append(member.content)
    if not region.where and kind not in _OPEN_ENDED:
        holdings.end_bytes = member.content.length
    holdings.claims.append((member.content.kind, Extent(region.offset, region.length)))
    for inner in member.inner:
        piece = Extent(region.offset + inner.offset, inner.length)
        where = f"{region.where}, {inner.name}" if region.where else inner.name
        on_disk_signatures.blkid(host, facts, f"{where}: ", piece)
        within = _Region(piece.offset, piece.length, where, inner.whole_bytes, "", inner.is_start)
        if piece.offset + piece.length > region.offset + region.length:
            holdings.problems.append(f"{_at(within)}is not within {region.where or 'the drive'}")
        else:
            _region(host, facts, reader, within, depth + 1)


def _at(region: _Region) -> str:
    return region.where + ": " if region.where else ""


def _raw(holdings: Holdings, reader: PlaceReader, region: _Region) -> None:
    """See that a region in which nothing was recognised holds nothing that libblkid may not know yet (bcachefs)."""
    holdings.has_raw = True
    known = superblock_layout.kinds_at(lambda offset, length: reader.read(region.offset + offset, length))
    holdings.problems += [f"{_at(region)}it holds {kind}, or what is left of it" for kind in known]
    if region.wanted:
        holdings.problems.append(f"{_at(region)}its type says {region.wanted}, and none is found there")


def _read(facts: Facts, reader: PlaceReader, region: _Region, kind: str) -> Membership:
    """Return what lies in a region, placed, with why it can't be given up."""

    def read(offset: int, length: int) -> bytes:
        return reader.read(region.offset + offset, min(length, max(0, region.length - offset)))

    member: Membership | None = None
    try:
        if kind == "LVM2_member":
            member = memberships.lvm(read)
        elif kind == "linux_raid_member":
            member = memberships.md(read, region.length)
        else:
            content = self_described.parse(kind, read)
            member = Membership(content, []) if content else None
    except (ValueError, struct.error, KeyError, IndexError, TypeError, AttributeError, RecursionError) as error:
        member = Membership(Content(kind, 0, 0, problem=str(error) or "it is damaged"), [])
    if member is None:
        member = Membership(Content(kind, 0, 0, problem="what it says of itself was not found"), [])
    content, inner = member.content, member.inner
    if not content.problem and content.length > region.whole_bytes:
        told = f"it says that it has {content.length} bytes, and there are {region.whole_bytes}"
        content, inner = content._replace(problem=f"{told}: it is a part of something larger"), []
    facts.tags |= set(member.paths)
    placed = content._replace(offset=region.offset, where=region.where)
    if placed.problem:
        facts.holdings.problems.append(f"{_at(region)}{placed.kind}: {placed.problem}")
    return Membership(placed, inner, member.paths)


def account(facts: Facts, reader: PlaceReader) -> None:
    """See that all that was recognised is known by now, and look for what members keep at ends. To be called once the
    whole drive was looked at. Raises OSError.
    """
    for hit in dict.fromkeys(facts.hits):
        _account_hit(facts, reader, hit)
    ends = [(one.offset + one.length, _BEHIND) for one in facts.holdings.contents if one.length and not _is_layer(one)]
    for start, length in [*ends, (max(0, reader.size_bytes - _AT_END), _AT_END)]:
        _search_labels(facts, reader, start, length)
    _see_end(facts.holdings, reader)


def _is_layer(content: Content) -> bool:
    """Return whether something else is on it, which has its own end."""
    return bool(content.member and not content.member.parts)


def _see_end(holdings: Holdings, reader: PlaceReader) -> None:
    """See that nothing is behind what was described: a RAID controller keeps there what makes a drive its member."""
    size = reader.size_bytes
    if holdings.end_bytes and size - holdings.end_bytes >= _PIECE:
        start = max(holdings.end_bytes, size - _AT_END)
        data = reader.read(start, size - start)
        if data.strip(data[:1]) or data[:1] not in (b"\x00", b"\xff"):
            holdings.problems.append(
                f"behind byte {holdings.end_bytes}, where that ends, there is more, as RAID controllers leave"
            )


def _account_hit(facts: Facts, reader: PlaceReader, hit: Hit) -> None:
    holdings, kind = facts.holdings, KINDS.get(hit.kind, hit.kind)
    if hit.kind in holdings.tables and _is_tables(hit, reader.size_bytes):
        return
    if kind == on_disk_signatures.AMBIVALENT:
        holdings.problems.append(f"at byte {hit.offset} it has signatures that contradict each other")
        return
    if any(kind == own and _is_claimed(hit.offset, own, claim) for own, claim in holdings.claims):
        return
    found = None if hit.offset < 0 else _stray(reader, kind, hit.offset)
    if found is None:
        holdings.problems.append(f"at byte {hit.offset} it holds {hit.kind}, or what is left of it")
        return
    if any((one.kind, one.uuid) == (found.kind, found.uuid) for one in holdings.contents):
        return
    where = f"what is left at byte {hit.offset}"
    is_larger = found.length > reader.size_bytes and not any(
        _is_in(hit.offset, claim) for own, claim in holdings.claims if own in _MEMBERS
    )
    problem = found.problem or ("it is a part of something larger than the drive" if is_larger else "")
    if found.member:
        # A copy, such as an image in a file, stands for no device: that may be in use elsewhere.
        problem = problem or "it is, or is a copy of, one of several devices"
    holdings.contents.append(found._replace(offset=hit.offset, where=where, problem=problem))
    if problem:
        holdings.problems.append(f"{where}: {found.kind}: {problem}")


def _is_tables(hit: Hit, size_bytes: int) -> bool:
    """Return whether a table was recognised where the drive's own lies, and not one in it."""
    if hit.length:
        return (hit.offset, hit.length) == (0, size_bytes)
    return hit.offset in (0, 510, 512, 4096, size_bytes - 512, size_bytes - 4096)


def _is_claimed(offset: int, kind: str, claim: Extent) -> bool:
    """Return whether a place is of what was read there; of a member its own labels alone."""
    if kind not in _MEMBERS:
        return _is_in(offset, claim)
    return any(
        _is_in(offset, Extent(start, _LABELS))
        for start in (claim.offset, max(claim.offset, claim.offset + claim.length - _LABELS))
    )


def _is_in(offset: int, extent: Extent) -> bool:
    return extent.offset <= offset < extent.offset + extent.length


def _stray(reader: PlaceReader, kind: str, offset: int) -> Content | None:
    """Return a file system whose superblock, or a copy of it, lies in the piece there; None for what names other
    drives, and what is not known.
    """
    block = reader.read(offset, _PIECE)
    if kind == "ext":
        return self_described.ext(block[:1024]) or self_described.ext(block[1024:2048])
    if kind == "btrfs":
        return self_described.btrfs(block) or self_described.btrfs(reader.read(offset + 65536, _PIECE))
    if kind in _MEMBERS or kind not in KINDS.values():
        return None
    return self_described.parse(kind, lambda place, length: reader.read(offset + place, length))


def _search_labels(facts: Facts, reader: PlaceReader, start: int, length: int) -> None:
    """Look for what a member of an array keeps at its end, where no table tells that end."""
    data = reader.read(start, min(length, max(0, reader.size_bytes - start)))
    for name, magic in _END_LABELS:
        place = data.find(magic)
        while place >= 0:
            offset = start + place
            known = any(own == "linux_raid_member" and _is_in(offset, claim) for own, claim in facts.holdings.claims)
            if not offset % 512 and not known:
                text = f"at byte {offset} is what a member of {name} keeps at its end"
                if text not in facts.holdings.problems:
                    facts.holdings.problems.append(text)
                return
            place = data.find(magic, place + 1)


def lines(holdings: Holdings) -> list[str]:
    """Return what a drive holds, for people: once each."""
    found = [_line(one) for one in holdings.contents]
    tables = {"gpt": "a GPT", "dos": "an MBR"}
    table = [text for kind, text in tables.items() if kind in holdings.tables]
    return list(dict.fromkeys([*table, *found]))


def _line(one: Content) -> str:
    names = [f"label {one.label}" * bool(one.label), f"UUID {one.uuid}" * bool(one.uuid), used(one)]
    where = one.where + ": " if one.where else ""
    return where + ", ".join([one.kind, *filter(None, names)])


def used(one: Content) -> str:
    """Return when it was mounted or written last, as it says itself."""
    if not one.used_s:
        return ""
    day = datetime.datetime.fromtimestamp(one.used_s, datetime.timezone.utc)
    return f"last used {day:%Y-%m-%d %H:%M} UTC"
