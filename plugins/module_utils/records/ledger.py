# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The ledger: a file for each drive that a run wrote to, with what it left there (guard/ledger_format.py)."""

from __future__ import annotations

import typing as t
from dataclasses import dataclass

from .base import SCALARS_BESIDE, Annotated, Count, Json, Limits, OrMissing

_Short = t.Optional[Annotated[str, Limits(max_length=40)]]
LedgerState = t.Literal["writing", "released", "evidence"]


@dataclass(frozen=True)
class Written:
    """How much the kernel has written to a drive since it was attached, which attachment that is, and whether it
    counts.
    """

    boot_id: t.Optional[str]
    # The kernel's number of the attachment.
    diskseq: t.Optional[int]
    # Of 512 bytes: those written, those discarded.
    sectors: t.List[int]
    iostats: bool


@dataclass(frozen=True)
class NotedBlock:
    """A block that a purge was to be proved with. sha256: of its data."""

    offset: Count
    length: Count
    sha256: str


@dataclass(frozen=True)
class NotedFilesystem:
    """A test's file system that is yet to be wiped, noted before it is made. reason: why it was not wiped."""

    kind: str
    uuid: str
    run_id: str
    reason: str


@dataclass(frozen=True)
class LedgerEntry:
    """What the last run that wrote to a drive left there."""

    run_id: str
    # writing until the run lets go of it; evidence: it is to be kept as it is.
    state: LedgerState
    # The drive's names.
    identity: t.Dict[str, t.Optional[str]]
    schema_version: t.Literal[1]
    # When the run let go of it; null: it has not.
    released: t.Optional[str] = None
    # Why it is to be kept as evidence; empty if it is not.
    reason: t.Optional[str] = None
    # It was seen to hold nothing after the run's last write.
    blank: OrMissing[bool] = None
    # When the run let go of it; null: not known, and then only its content can prove what lies there.
    written: t.Optional[Written] = None
    # Of a purge that was under way.
    sentinels: OrMissing[t.List[NotedBlock]] = None
    filesystem: t.Optional[NotedFilesystem] = None
    # The host no longer knows the run.
    removed: OrMissing[t.Literal[True]] = None


@dataclass(frozen=True)
class RetiredUse:
    """A run erased a drive whose entry said `retired`: that statement is used up (guard/retired.py)."""

    run_id: str
    time: str
    # The drive's names.
    identity: t.Dict[str, t.Optional[str]]
    # As the entry had it: true, or a date.
    statement: str
    # Which parts of arrays and volume groups were on it, and are gone.
    members: t.List[str]
    schema_version: t.Literal[1]


@dataclass(frozen=True)
class OwnData:
    """What the ledger has about the data on a drive, for those who may erase it."""

    # The run that wrote last.
    run_id: t.Optional[Annotated[str, Limits(max_length=200)]]
    # writing until the run releases the drive, then released, or evidence if it missed a criterion.
    state: _Short
    # What proves that nobody else's data is on it: the kernel's count of writes, or the look; empty: nothing.
    proved: t.Literal["", "counters", "content", None]
    # When the run released the drive.
    released: _Short = None
    # Why the drive is kept as evidence; empty when it is not.
    reason: t.Optional[str] = None
    # The host no longer knows the run.
    removed: OrMissing[bool] = None

    JSON_SCHEMA: t.ClassVar[Json] = SCALARS_BESIDE
