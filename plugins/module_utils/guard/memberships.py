# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What names further drives: a physical volume of LVM and a member of md, read from their own bytes. Pure.

Which parts belong together, and where on this drive what is built on them begins (`Inner`): that may need yet another
drive.

LVM: format_text/layout.h of LVM2; lib/config. md: md_p.h of the kernel, version 1.x.
"""

from __future__ import annotations

import re
import struct
import typing as t
import uuid

from .self_described import Content, Member, Read

_SECTOR = 512
_MOST_METADATA = 4 << 20
_MDA_MAGIC = b"\x20LVM2 x[5A%r0N*>"
_PV_IN_USE, _TELLS_USE_SINCE = 0x1, 2
_TOKEN = re.compile(r'\s+|#[^\n]*|("(?:[^"\\]|\\.)*")|([\[\]{}=,])|([^\s\[\]{}=,"#]+)')
_MD_MAGIC = 0xA92B4EFC
# With a bitmap or a list of bad blocks; not: a recovery, a replacement or a reshape that is under way, a journal, a
# cluster's bitmap.
_MD_KNOWN = 0x1 | 0x8
_MD_FAULTY = 0xFFFE
# The rest are microseconds.
_MD_SECONDS = (1 << 40) - 1


class Inner(t.NamedTuple):
    """A piece in which something else begins. is_start: else it ends there; length: of the piece; whole_bytes: of all
    of it; name: for people.
    """

    offset: int
    length: int
    whole_bytes: int
    name: str
    is_start: bool = True


class Membership(t.NamedTuple):
    """What was read; inner: what lies in it on this drive; paths: below /dev, by which a host may name it."""

    content: Content
    inner: list[Inner]
    paths: list[str] = []


def lvm(read: Read) -> Membership | None:
    """Return the physical volume that begins there. Raises OSError, and ValueError for one that is damaged."""
    labels = read(0, 4 * _SECTOR)
    sector = next((n for n in range(4) if labels[n * _SECTOR :][:8] == b"LABELONE"), None)
    if sector is None:
        return None
    label = labels[sector * _SECTOR : (sector + 1) * _SECTOR]
    offset, kind = struct.unpack_from("<I8s", label, 20)
    if kind != b"LVM2 001" or not 32 <= offset <= _SECTOR - 48:
        raise ValueError("its label is not known")
    own, size = label[offset : offset + 32].decode("ascii"), struct.unpack_from("<Q", label, offset + 32)[0]
    _data, place = _areas(label, offset + 40)
    areas, place = _areas(label, place)
    version, flags = struct.unpack_from("<II", label, place) if place + 8 <= len(label) else (0, 0)
    found = [_metadata(read, *area) for area in areas]
    texts = [text for text in found if text]
    content = Content("LVM2_member", 0, size, uuid=own)
    if not texts:
        # An older one does not say whether it is in a group whose metadata only its other drives have.
        is_orphan = areas and None not in found and version >= _TELLS_USE_SINCE and not flags & _PV_IN_USE
        problem = "" if is_orphan else "its volume group is not known"
        return Membership(content._replace(problem=problem), [])
    return _of_group(content, *max((_group(text) for text in texts), key=lambda group: int(group[1]["seqno"])))


def _areas(label: bytes, place: int) -> tuple[list[tuple[int, int]], int]:
    """Return a list of (offset, length) that ends with zeros, and where it ends."""
    found: list[tuple[int, int]] = []
    while True:
        offset, length = struct.unpack_from("<QQ", label, place)
        place += 16
        if not offset:
            return found, place
        found.append((offset, length))


def _metadata(read: Read, offset: int, length: int) -> str | None:
    """Return the newest text of a metadata area, which may go on at its start; "" for an empty one, None for one that
    LVM ignores (vgchange --metadatacopies).
    """
    header = read(offset, _SECTOR)
    if header[4:20] != _MDA_MAGIC:
        raise ValueError("its metadata is damaged")
    start, size, _crc, flags = struct.unpack_from("<QQII", header, 40)
    if flags & 1:
        return None
    if not start:
        return ""
    if not (_SECTOR <= start < length and 0 < size < min(length, _MOST_METADATA)):
        raise ValueError("its metadata is damaged")
    first = min(size, length - start)
    data = read(offset + start, first) + (read(offset + _SECTOR, size - first) if first < size else b"")
    return data.rstrip(b"\0").decode("utf-8")


def _group(text: str) -> tuple[str, dict[str, t.Any]]:
    """Return the name of the volume group that a text describes, and what it says, with the time of that text."""
    told = config(text)
    names = [name for name, value in told.items() if isinstance(value, dict)]
    if len(names) != 1:
        raise ValueError("its metadata names no single volume group")
    return names[0], {**told[names[0]], "changed_s": int(told.get("creation_time", 0))}


def config(text: str) -> dict[str, t.Any]:
    """Return LVM's configuration text as a mapping. Raises ValueError."""
    tokens, place = [], 0
    while place < len(text):
        match = _TOKEN.match(text, place)
        if match is None:
            raise ValueError("LVM's metadata cannot be read")
        place = match.end()
        if match.group().strip() and not match.group().startswith("#"):
            tokens.append(match.group())
    return _section(iter([*tokens, "}"]), 0)


def _section(tokens: t.Iterator[str], depth: int) -> dict[str, t.Any]:
    found: dict[str, t.Any] = {}
    for name in tokens:
        if name == "}":
            return found
        follows = next(tokens, "")
        if depth > 8 or name in found or follows not in ("{", "="):
            raise ValueError("LVM's metadata cannot be read")
        found[name] = _section(tokens, depth + 1) if follows == "{" else _value(tokens)
    raise ValueError("LVM's metadata ends early")


def _value(tokens: t.Iterator[str]) -> t.Any:
    first = next(tokens, "")
    if first != "[":
        return first.strip('"')
    found: list[str] = []
    for token in tokens:
        if token == "]":
            return found
        if token != ",":
            found.append(token.strip('"'))
    raise ValueError("LVM's metadata ends early")


def _of_group(content: Content, name: str, group: dict[str, t.Any]) -> Membership:
    volumes = {key: one["id"].replace("-", "") for key, one in group["physical_volumes"].items()}
    own = next((key for key, number in volumes.items() if number == content.uuid), None)
    logical = group.get("logical_volumes", {})
    problem = "" if own else f"volume group {name} does not know it"
    problem = problem or _group_problem(name, group) or next(filter(None, map(_volume_problem, logical.items())), "")
    member = Member("LVM", group["id"], name, content.uuid, frozenset(volumes.values()))
    paths = [path for volume in logical for path in _paths(name, volume)]
    inner: list[Inner] = []
    if not problem and own:
        extent, first = int(group["extent_size"]), int(group["physical_volumes"][own]["pe_start"])
        for volume, told in logical.items():
            inner += _inner(f"{name}/{volume}", told, own, extent * _SECTOR, first * _SECTOR)
    told_of = content._replace(problem=problem, member=member, label=name, used_s=group["changed_s"])
    return Membership(told_of, inner, paths)


def _paths(name: str, volume: str) -> list[str]:
    return [f"/dev/{name}/{volume}", "/dev/mapper/{}-{}".format(name.replace("-", "--"), volume.replace("-", "--"))]


def _group_problem(name: str, group: dict[str, t.Any]) -> str:
    """Return why a volume group may be somebody else's: another host's, or one that several hosts share."""
    said = [*group.get("status", []), *group.get("flags", [])]
    if "EXPORTED" in said or "CLUSTERED" in said:
        return f"volume group {name} is exported, or a cluster's"
    if group.get("system_id") or group.get("lock_type", "none") != "none":
        return f"volume group {name} belongs to a host of its own, or to several (system_id, lock_type)"
    if "PARTIAL" in said:
        return f"volume group {name} lacks a drive"
    return ""


def _volume_problem(item: tuple[str, dict[str, t.Any]]) -> str:
    """Return why a logical volume can't be looked into, or is a cluster's."""
    name, volume = item
    if name.startswith("osd-") or any(str(tag).startswith("ceph.") for tag in volume.get("tags", [])):
        return (
            f"logical volume {name} is an OSD of Ceph; remove it from the cluster, then ceph-volume lvm zap --destroy"
        )
    kinds = {one["type"] for one in _segments(volume) if one["type"] != "striped" or one["stripe_count"] != "1"}
    return f"logical volume {name} is {', '.join(sorted(kinds))}; remove it by hand (lvremove)" if kinds else ""


def _segments(volume: dict[str, t.Any]) -> list[dict[str, t.Any]]:
    """Return a volume's segments in their order."""
    found = [value for key, value in volume.items() if key.startswith("segment") and isinstance(value, dict)]
    if len(found) != int(volume["segment_count"]) or not found:
        raise ValueError("its metadata does not tell all segments")
    return sorted(found, key=lambda segment: int(segment["start_extent"]))


def _inner(name: str, volume: dict[str, t.Any], own: str, extent_bytes: int, first: int) -> list[Inner]:
    """Return where a volume begins and ends, if that is on this drive."""
    segments = _segments(volume)
    whole = sum(int(one["extent_count"]) for one in segments) * extent_bytes
    found = []
    for number in sorted({0, len(segments) - 1}):
        drive, extent = segments[number]["stripes"]
        if drive == own:
            length = int(segments[number]["extent_count"]) * extent_bytes
            found.append(Inner(first + int(extent) * extent_bytes, length, whole, name, number == 0))
    return found


def md(read: Read, size_bytes: int) -> Membership | None:
    """Return the member of an array of metadata 1.x. Raises OSError, and ValueError for one that is not known."""
    for place in (0, 4096, (size_bytes // _SECTOR - 16) // 8 * 8 * _SECTOR):
        block = read(place, 4096)
        if len(block) == 4096 and struct.unpack_from("<II", block) == (_MD_MAGIC, 1):
            break
    else:
        return None
    flags = struct.unpack_from("<I", block, 8)[0]
    level, _layout, _size, _chunk, disks = struct.unpack_from("<iIQII", block, 72)
    data, data_size, own_place = struct.unpack_from("<QQQ", block, 128)
    number, most = struct.unpack_from("<I", block, 160)[0], struct.unpack_from("<I", block, 220)[0]
    group, name = str(uuid.UUID(bytes=block[16:32])), block[32:64].split(b"\0")[0].decode("utf-8", "replace")
    if own_place * _SECTOR != place or not 0 < disks <= most <= 1920 or number >= most:
        raise ValueError("its superblock is damaged, or of another place")
    roles = struct.unpack_from(f"<{most}H", block, 256)
    needed = frozenset(map(str, range(disks)))
    role = roles[number]
    own = str(role) if role < disks else f"spare {uuid.UUID(bytes=block[168:184])}"
    used_s, events = struct.unpack_from("<QQ", block, 192)
    problem = "" if not flags & ~_MD_KNOWN else f"its array is not at rest, or has features not known here ({flags:#x})"
    if level not in (0, 1, 4, 5, 6, 10, -1):
        problem = problem or f"its array is of level {level}"
    if role == _MD_FAULTY or not set(range(disks)) <= set(roles):
        problem = problem or "its array is degraded: a member that failed or was replaced may be in use elsewhere"
    member = Member("md", group, name or group, own, needed | {own}, events)
    content = Content(
        "linux_raid_member", 0, (data + data_size) * _SECTOR, name, group, used_s & _MD_SECONDS, problem, member
    )
    whole = data_size * _SECTOR if level == 1 else data_size * disks * _SECTOR
    inner = [Inner(data * _SECTOR, data_size * _SECTOR, whole, f"array {name or group}")] if role < disks else []
    return Membership(content, inner)
