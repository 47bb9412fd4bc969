# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The facts that the guard's rules look at. The probes (device_users.py, on_disk_signatures.py, …) fill them;
lists hold texts for the operator.
"""

from __future__ import annotations

import dataclasses
import typing as t

from ..core import packages
from ..core.host import COMMAND_NOT_FOUND, TIMED_OUT, Result
from ..records.base import Scalar
from ..records.guard import Look
from ..records.identity import Identity
from ..records.ledger import LedgerState, OwnData
from .self_described import Content

# A drive's identity (drive/identity.py), of which the ledger takes the names.
Names = t.Mapping[str, Scalar]
WRITING: LedgerState = "writing"
RELEASED: LedgerState = "released"
EVIDENCE: LedgerState = "evidence"


class Mount(t.NamedTuple):
    """One line of a mountinfo. number: its id, which no other mount of the host has, in whatever namespace; root: what
    of its file system is mounted.
    """

    major_minor: str
    source: str
    where: str
    kind: str = ""
    options: str = ""
    number: str = ""
    root: str = "/"


class HostFile(t.NamedTuple):
    """A file of the host and what it says; parsed: it is also read by its own rules (configured)."""

    path: str
    data: bytes
    parsed: bool = False


class Extent(t.NamedTuple):
    """A piece of a drive, in bytes."""

    offset: int
    length: int


class Mark(t.NamedTuple):
    """The bytes of a signature, or of a partition table, themselves. is_table: which of the two."""

    offset: int
    length: int
    is_table: bool = False


class Hit(t.NamedTuple):
    """Something that was recognised. kind: as libblkid calls it; offset: of it, or of the piece that was asked about,
    in bytes, -1 where that is not known. length: of that piece, 0 for a single place.
    """

    kind: str
    offset: int
    length: int = 0


class Reference(t.NamedTuple):
    """How a file names a device. line: the whole line, where it is one of fstab, crypttab or mdadm.conf that names no
    other device; where: for people.
    """

    where: str
    spec: str
    line: str = ""


@dataclasses.dataclass
class Holdings:
    """What a drive holds, as its own bytes describe it (holdings.py). problems: why it is not only the drive's own to
    give up; tables: what its whole table may be called; claims: (kind, where) of what was read whole.
    """

    contents: list[Content] = dataclasses.field(default_factory=list)
    problems: list[str] = dataclasses.field(default_factory=list)
    tables: frozenset[str] = frozenset()
    claims: list[tuple[str, Extent]] = dataclasses.field(default_factory=list)
    # A place for something has nothing that is recognised.
    has_raw: bool = False
    # Where what is described ends, of a format that keeps nothing of its own at the drive's end; 0: not known.
    end_bytes: int = 0


@dataclasses.dataclass
class Machine:
    """Facts of the host that every drive shares."""

    mounts: list[Mount] = dataclasses.field(default_factory=list)
    swaps: list[str] = dataclasses.field(default_factory=list)
    # (kernel name of the user, path that it uses): loop devices, zram writeback
    stacked: list[tuple[str, str]] = dataclasses.field(default_factory=list)
    # device number → kernel name of every block device
    names: dict[str, str] = dataclasses.field(default_factory=dict)
    # Kernel names below each of several devices of one file system (btrfs)
    groups: list[set[str]] = dataclasses.field(default_factory=list)
    # kernel name → the system's place that lies on it, at any depth
    system: dict[str, str] = dataclasses.field(default_factory=dict)
    # (key, where, whether in our own namespace) of block devices' nodes and files that are mounted on another place
    bound: list[tuple[str, str, bool]] = dataclasses.field(default_factory=list)
    # By key (openers.key_of): who uses what is open, and who only passes by
    openers: dict[str, list[str]] = dataclasses.field(default_factory=dict)
    passing: dict[str, list[str]] = dataclasses.field(default_factory=dict)
    # kernel name of a drive → keys of its other nodes and of the file behind it
    keys: dict[str, set[str]] = dataclasses.field(default_factory=dict)
    # why the state folder, with our ledger, is not root's alone to write
    untrusted: list[str] = dataclasses.field(default_factory=list)
    # why not all processes of the machine could be seen
    unseen: list[str] = dataclasses.field(default_factory=list)
    # (who names a device, how), in the order found
    exports: list[tuple[str, str]] = dataclasses.field(default_factory=list)
    configured: list[Reference] = dataclasses.field(default_factory=list)
    resume: list[tuple[str, str]] = dataclasses.field(default_factory=list)
    # Files below /etc in which a drive may be named; why not all of them, "" for all
    texts: list[HostFile] = dataclasses.field(default_factory=list)
    texts_cut: str = ""
    failures: list[str] = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Facts:
    """Facts of one drive. `kind`: drive, partition or stacked.

    family: the drive, its partitions and all that is stacked on them, by kernel name; numbers: their device numbers;
    keys: of the drive's other nodes and of the file behind it (drive/device_nodes.py);
    tags: how else they can be named (UUID=…, LABEL=…, links). hangs: a tool got no answer. block_backing: the block
    device behind a loop device. own_data: what the ledger knows of the drive, None when it does not know it. marks: the
    bytes of signatures and tables themselves; pieces: its partitions. hits: all that was recognised; holdings: what it
    holds, as far as that can be given up; lines: of fstab and the like that name it alone, which are not in
    `configured`. look: what was looked at, None when nothing was.
    allocated: where the drive itself says that it holds something, allocated_bytes: how much; None where it does not
    tell (of all).
    """

    name: str
    path: str
    kind: str
    identity: Identity
    family: list[str] = dataclasses.field(default_factory=list)
    numbers: set[str] = dataclasses.field(default_factory=set)
    keys: set[str] = dataclasses.field(default_factory=set)
    tags: set[str] = dataclasses.field(default_factory=set)
    read_only: list[str] = dataclasses.field(default_factory=list)
    placeholder: list[str] = dataclasses.field(default_factory=list)
    system: list[str] = dataclasses.field(default_factory=list)
    partitions: list[str] = dataclasses.field(default_factory=list)
    holders: list[str] = dataclasses.field(default_factory=list)
    mounts: list[str] = dataclasses.field(default_factory=list)
    swaps: list[str] = dataclasses.field(default_factory=list)
    hibernation: list[str] = dataclasses.field(default_factory=list)
    opened: list[str] = dataclasses.field(default_factory=list)
    passing: list[str] = dataclasses.field(default_factory=list)
    unseen: list[str] = dataclasses.field(default_factory=list)
    untrusted: list[str] = dataclasses.field(default_factory=list)
    exported: list[str] = dataclasses.field(default_factory=list)
    configured: list[str] = dataclasses.field(default_factory=list)
    mentioned: list[str] = dataclasses.field(default_factory=list)
    tables: list[str] = dataclasses.field(default_factory=list)
    efi: list[str] = dataclasses.field(default_factory=list)
    signatures: list[str] = dataclasses.field(default_factory=list)
    cluster: list[str] = dataclasses.field(default_factory=list)
    unsigned: list[str] = dataclasses.field(default_factory=list)
    evidence: list[str] = dataclasses.field(default_factory=list)
    shared: list[str] = dataclasses.field(default_factory=list)
    reserved: list[str] = dataclasses.field(default_factory=list)
    fabric: list[str] = dataclasses.field(default_factory=list)
    transport: list[str] = dataclasses.field(default_factory=list)
    removable: list[str] = dataclasses.field(default_factory=list)
    raid_volume: list[str] = dataclasses.field(default_factory=list)
    zoned: list[str] = dataclasses.field(default_factory=list)
    hard_disk: list[str] = dataclasses.field(default_factory=list)
    sanitizing: list[str] = dataclasses.field(default_factory=list)
    sanitize_failed: list[str] = dataclasses.field(default_factory=list)
    ata_security: list[str] = dataclasses.field(default_factory=list)
    ata_frozen: bool = False
    opal: list[str] = dataclasses.field(default_factory=list)
    busy: bool = False
    changed: list[str] = dataclasses.field(default_factory=list)
    block_backing: str | None = None
    hangs: bool = False
    own_data: OwnData | None = None
    marks: list[Mark] = dataclasses.field(default_factory=list)
    hits: list[Hit] = dataclasses.field(default_factory=list)
    holdings: Holdings = dataclasses.field(default_factory=Holdings)
    lines: list[str] = dataclasses.field(default_factory=list)
    pieces: list[Extent] = dataclasses.field(default_factory=list)
    look: Look | None = None
    allocated: list[Extent] = dataclasses.field(default_factory=list)
    allocated_bytes: int | None = None
    failures: list[str] = dataclasses.field(default_factory=list)

    def failed(self, result: Result, problem: str = "") -> None:
        """Keep that a command gave no answer that can be used, and which package it is from when it is missing."""
        tool = result.argv[0]
        if result.rc == COMMAND_NOT_FOUND:
            self.failures.append(
                f"{tool} is missing, and this drive cannot be checked without it; install {packages.of_tool(tool)}"
            )
            return
        said = (result.stderr.strip() or result.stdout.strip() or "nothing").splitlines()[0]
        self.failures.append(problem or f"{' '.join(result.argv)} ended with {result.rc} and said: {said:.160}")
        self.hangs = self.hangs or result.rc == TIMED_OUT


def add(place: list[str], *texts: str) -> None:
    """Add findings, each once."""
    place.extend(text for text in texts if text not in place)
