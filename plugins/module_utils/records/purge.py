# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a drive could be purged, and how it was: what it reported to each family of methods, the methods that are offered
by that, and what a purge did.

A host reports them to the controller, and a purge keeps them in the journal: it is what a later job compares with.
"""

from __future__ import annotations

import typing as t
from dataclasses import dataclass

from .base import Code, Commands, Count, Json, NotNegative, OrMissing, Positive, Text
from .vendor_tools import Card

PurgeClass = t.Literal["pts", "not_pts"]
# What a block reads as that was deallocated.
DeallocatedRead = t.Literal["zeros", "ones"]


@dataclass(frozen=True)
class OfferedPurge:
    """A method of purging, as it would run without a test's options."""

    method: Code
    supported: bool
    # Why it is not; empty if it is.
    reason: str
    # What else it would erase; empty if nothing.
    hits_others: str
    purge_class: PurgeClass
    commands: Commands
    # How long it may take; null if it is not supported.
    timeout_s: t.Optional[NotNegative]
    # Why it is the one, where the controller chose.
    why: OrMissing[str] = None
    # Why nobody knows whether the drive has it: it is taken only by its name.
    unknown: OrMissing[str] = None


@dataclass(frozen=True)
class NotQueried:
    """Why nothing is known of a family."""

    error: str


@dataclass(frozen=True)
class AnyDrive:
    """What the kernel takes of any drive."""

    path: t.Optional[str]
    size_bytes: t.Optional[int]
    # Of one discard; 0: it supports none.
    max_discard_bytes: t.Optional[int]


@dataclass(frozen=True)
class ZonedDrive:
    """What the kernel tells of a host-managed zoned drive."""

    path: t.Optional[str]
    size_bytes: t.Optional[int]
    zone_bytes: t.Optional[int]


@dataclass(frozen=True)
class LbaFormat:
    """One way to divide a namespace into blocks. performance: 0 is the best."""

    index: int
    data_bytes: int
    metadata_bytes: int
    performance: int


@dataclass(frozen=True)
class NvmeDrive:
    """An NVMe namespace, by the controller that means this very one. fna, sanicap, flbas and dps are the bit fields of
    the specification.
    """

    path: str
    size_bytes: int
    # Its node.
    controller: str
    serial: str
    namespace_id: int
    # Hexadecimal; empty: it has none.
    eui64: str
    nguid: str
    uuid: str
    # Ids of all in the subsystem that can be known, its own included.
    namespaces: t.List[int]
    # How many the subsystem has.
    controllers: int
    # Whether no namespace can be hidden.
    shows_all: bool
    can_format: bool
    fna: int
    sanicap: int
    # The index in use.
    lba_format: int
    lba_formats: t.List[LbaFormat]
    flbas: int
    dps: int
    # None: no format goes on.
    format_left_pct: t.Optional[int]
    # By DLFEAT; not there: it promises nothing, as in the other families.
    deallocated_read: OrMissing[DeallocatedRead] = None
    # Whether it has the Device Self-test command.
    has_self_tests: OrMissing[bool] = None
    # Whether it has a power state in which it does no I/O.
    can_rest: OrMissing[bool] = None


@dataclass(frozen=True)
class AtaSecurity:
    """The security feature set. Minutes: the drive's own estimate of an erase, None without one; 508 and 65532 mean
    "more than".
    """

    supported: bool
    enabled: bool
    locked: bool
    frozen: bool
    expired: bool
    enhanced: bool
    erase_min: t.Optional[int]
    enhanced_erase_min: t.Optional[int]


@dataclass(frozen=True)
class AtaDrive:
    """A SATA drive."""

    path: str
    size_bytes: t.Optional[int]
    # The operations of its sanitize.
    sanitize: t.List[str]
    sanitize_state: t.Optional[str]
    # Why the state is not known; empty if it is.
    sanitize_problem: str
    security: AtaSecurity
    # Whether it is on an AHCI port.
    direct: bool
    # By DRAT and RZAT.
    deallocated_read: OrMissing[DeallocatedRead] = None
    # Whether it has SMART self-tests.
    has_self_tests: OrMissing[bool] = None


@dataclass(frozen=True)
class ScsiDrive:
    """A SAS drive."""

    path: str
    size_bytes: t.Optional[int]
    lba_size_bytes: t.Optional[int]
    # None: it is unknown.
    protection_type: t.Optional[int]
    # The methods whose command it has.
    commands: t.List[str]
    # Those of which it does not tell, and why that is.
    unknown: OrMissing[t.Dict[str, str]] = None
    # By LBPRZ.
    deallocated_read: OrMissing[DeallocatedRead] = None


@dataclass(frozen=True)
class MicronDrive:
    """A P320h or P420m, as rssdm lists it."""

    drive_id: str
    serial: str
    model: str
    # P320h or P420m; None: neither.
    family: t.Optional[str]
    pci_address: str
    status: str
    size_bytes: t.Optional[int]


Capabilities = t.Union[AnyDrive, ZonedDrive, NvmeDrive, AtaDrive, ScsiDrive, MicronDrive, Card]
# By the family of methods; those that have nothing to do with the drive are not there.
Found = t.Dict[str, t.Union[Capabilities, NotQueried]]


@dataclass(frozen=True)
class Sentinels:
    """The blocks that a purge is verified by."""

    size_bytes: Positive
    block_bytes: Positive
    seed: Text
    # Not there: of an older engine, which chose them in another way.
    count: OrMissing[Positive] = None


@dataclass(frozen=True)
class PurgeStart:
    """How a drive is about to be purged."""

    method: str
    why: str
    commands: Commands
    timeout_s: NotNegative
    purge_class: PurgeClass
    capabilities: Json
    sentinels: Sentinels


@dataclass(frozen=True)
class Verification:
    """How many sentinels survived a purge. promise: what the drive says that a deallocated block reads as; unlike: how
    many read as something else, those that survived among them.
    """

    sentinels: Count
    survived: Count
    unreadable: OrMissing[Count] = None
    promise: OrMissing[DeallocatedRead] = None
    unlike: OrMissing[Count] = None


@dataclass(frozen=True)
class PurgeDetails:
    """How a drive was purged."""

    method: str
    seconds: NotNegative
    verified: bool
    verification: Verification
    purge_class: PurgeClass
    # Why this method: named, or auto and what stood against stronger ones.
    why: OrMissing[str] = None
    commands: OrMissing[Commands] = None
    timeout_s: OrMissing[NotNegative] = None
    # What the drive reported to the method's family.
    capabilities: OrMissing[Json] = None
    # Begun by a job that was interrupted, waited for and verified by a later one.
    resumed: OrMissing[bool] = None
    lba_format_before: OrMissing[Json] = None
    lba_format_after: OrMissing[Json] = None


@dataclass(frozen=True)
class PurgeEnd(PurgeDetails):
    """How a drive was purged, as the journal has it."""

    # It had to wait for a sanitize or a format that ran already.
    waited_for_another: OrMissing[bool] = None
    # By fio.
    bytes_written: OrMissing[Count] = None
