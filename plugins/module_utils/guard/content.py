# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What lies on a drive: signatures at every offset that wipefs and blkid know, partitions and what is in them, sampled blocks."""
from __future__ import annotations

import json
import re
from typing import Iterable, List, Tuple

from ..core.host import Host
from . import names, tables
from .blocks import EDGE_BYTES, SAMPLE_BYTES, Reader, is_blank, spread
from .facts import Facts, add

_WIPEFS_SAYS_NONE = (2, 37)  # before it, wipefs --json prints nothing at all where it finds nothing
_BLKID_NOTHING_FOUND = 2
_BLKID_AMBIVALENT = 8
# What libblkid calls partition tables; every other signature is data.
TABLE_TYPES = frozenset("gpt PMBR dos mac sun sgi bsd minix aix ultrix unixware solaris_x86 atari dasd hybrid".split())
# What libblkid calls file systems that several hosts share.
CLUSTER_TYPES = frozenset("VMFS VMFS_volume_member gfs gfs2 ocfs ocfs2 gpfs lustre oracleasm".split())
_SAMPLES = 1024
_MOST_LOOKED_INTO = 32


def probe_wipefs(host: Host, facts: Facts) -> None:
    """wipefs finds every signature, those at the end and at an offset too."""
    result = host.run(["wipefs", "-n", "--json", facts.path])
    if result.rc != 0:
        facts.failed(result)
        return
    if not result.stdout.strip() and not result.stderr.strip() and _wipefs_is_silent(host):
        return
    kinds: List[str] = []
    try:
        listed = json.loads(result.stdout)["signatures"]
        kinds = [str(entry["type"]) for entry in listed]
    except (ValueError, KeyError, TypeError, RecursionError):
        listed = None
    if not isinstance(listed, list):  # an empty mapping or text would look like no signature
        facts.failures.append("wipefs gave no list of signatures: %.80r" % result.stdout)
        return
    for kind in kinds:
        _add_signature(facts, kind)


def _wipefs_is_silent(host: Host) -> bool:
    match = re.search(r"util-linux (\d+)\.(\d+)", host.run(["wipefs", "--version"]).stdout)
    return bool(match) and (int(match.group(1)), int(match.group(2))) < _WIPEFS_SAYS_NONE


def probe_blkid(host: Host, facts: Facts) -> None:
    """blkid sees what wipefs does not, and what contradicts itself."""
    _blkid(host, facts, "")


def _blkid(host: Host, facts: Facts, where: str, *place: str) -> None:
    result = host.run(["blkid", "-p", "-o", "export", *place, facts.path])
    if result.rc == _BLKID_AMBIVALENT:
        add(facts.signatures, where + "several that contradict each other")
        return
    if result.rc == _BLKID_NOTHING_FOUND and not result.stdout.strip() and not result.stderr.strip():
        return
    answers = dict(line.split("=", 1) for line in result.stdout.splitlines() if "=" in line)
    found = [answers[key] for key in ("PTTYPE", "TYPE") if key in answers]
    if result.rc != 0 or not (found or place):  # within a partition, its entry in the table alone is an answer
        facts.failed(result)
    for kind in found:
        _add_signature(facts, kind, where)
    names.add_tags(facts, answers)


def _add_signature(facts: Facts, kind: str, where: str = "") -> None:
    if kind in CLUSTER_TYPES:
        add(facts.cluster, where + kind)
    if kind in TABLE_TYPES:
        add(facts.tables, where + kind)
    else:
        add(facts.signatures, where + kind)


# --- what the blocks themselves say --------------------------------------------------------------------------------------------------


def probe_blocks(host: Host, facts: Facts, reader: Reader) -> None:
    """Partitions by the tables' own bytes and what lies in them, then samples. Raises OSError where it cannot be read."""
    for number, part in enumerate(tables.partitions(reader.read, reader.size_bytes), start=1):
        where = "partition %d: " % number
        add(facts.tables, *([] if facts.tables else ["%s of type %s" % (where[:-2], part.type)]))
        if part.type in tables.EFI_SYSTEM:
            add(facts.efi, "at byte %d" % part.start_bytes)
        if part.type in tables.CLUSTER:
            add(facts.cluster, where + tables.CLUSTER[part.type])
        names.add_tags(facts, {"PART_ENTRY_UUID": part.guid or ""})
        if number <= _MOST_LOOKED_INTO and part.size_bytes and part.start_bytes + part.size_bytes <= reader.size_bytes:
            _blkid(host, facts, where, "--offset", str(part.start_bytes), "--size", str(part.size_bytes))
    if not facts.signatures:  # else it is known whose data it is
        _sample(facts, reader)


def _sample(facts: Facts, reader: Reader) -> None:
    for offset, length in _places(reader.size_bytes, edges=not facts.tables):
        if not is_blank(reader.read(offset, length)):
            add(facts.unsigned, "the block at byte %d is not blank" % offset)
            return


def _places(size_bytes: int, edges: bool) -> Iterable[Tuple[int, int]]:
    """Both ends, where a partition table has its own data, and a block at random in each part: others at each look, so that little is missed for ever."""
    if edges:
        yield 0, EDGE_BYTES
        yield max(0, size_bytes - EDGE_BYTES), EDGE_BYTES
    yield from ((offset, SAMPLE_BYTES) for offset in spread(size_bytes, _SAMPLES) if edges or EDGE_BYTES <= offset < size_bytes - EDGE_BYTES)
