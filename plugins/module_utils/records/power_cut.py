# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The shape of a power-cut test's records: what was armed before the first write of a cycle, and what the drive held
after its cut.
"""

from __future__ import annotations

import typing as t
from dataclasses import dataclass

from .base import Annotated, Count, Limits, NotNegative, Number, OrMissing, Positive, Size, Time
from .plan import PowerCutMode

# lost_flushed: acknowledged and flushed (or written with FUA), and gone; stale: what it held before the cycle is gone,
# or a block that was not written changed; resurrected: a trimmed block that had read back as blank, and was flushed,
# holds data again; foreign: another run's or another drive's data.
CutFault = t.Literal["lost_flushed", "stale", "resurrected", "misplaced", "foreign", "corrupt", "unreadable"]
# Allowed: lost_acknowledged, but of a drive that claims power-loss protection; torn, as drives' statements are poor.
CutKind = t.Literal[
    "lost_flushed",
    "stale",
    "resurrected",
    "misplaced",
    "foreign",
    "corrupt",
    "unreadable",
    "lost_acknowledged",
    "torn",
]


@dataclass(frozen=True)
class CutCounters:
    """What a drive counts and shows before a cut, and after it; null: it does not tell."""

    unsafe_shutdowns: t.Optional[Size]
    power_cycles: t.Optional[Size]
    media_errors: t.Optional[Size]
    # "16 GT/s x4" or "6 Gbit/s".
    link: t.Optional[Annotated[str, Limits(max_length=40)]]


@dataclass(frozen=True)
class CutPromises:
    """What a drive states of its cache and its writes."""

    # Its volatile write cache: whether it has one, and whether it is on; null: unknown.
    vwc: t.Optional[bool]
    write_cache: t.Optional[t.Literal["on", "off"]]
    # It has no volatile write cache, or its entry says `plp: true`.
    plp_claimed: bool
    # A write of no more is whole or not there after a power cut; null: it does not tell.
    atomic_write_bytes: t.Optional[Positive]
    # But for writes across a multiple of this; null: it has no such boundary.
    atomic_boundary_bytes: t.Optional[Positive]
    # Who sees to FUA: the drive, or the kernel by a flush after the write.
    fua: t.Optional[t.Literal["drive", "kernel"]]
    # The kernel sends flushes to a drive that it takes for one with a volatile cache alone.
    gets_flushes: t.Optional[bool]


@dataclass(frozen=True)
class PowerCutArmed(CutPromises):
    """A cycle that is about to write. All that is to be compared after the cut follows from it and the log."""

    # Counted from 1, of all that were armed in this attempt.
    cycle: Number
    mode: PowerCutMode
    seed: Size
    boot_id: t.Optional[Annotated[str, Limits(max_length=100)]]
    # The ActiveRange.
    active_bytes: Positive
    before: CutCounters


@dataclass(frozen=True)
class PowerCutBlock:
    """A block that is not as it should be. found: what it holds, for a person."""

    offset_bytes: Size
    kind: CutKind
    found: Annotated[str, Limits(max_length=200)]


@dataclass(frozen=True)
class PowerCutCycle:
    """What a drive held after a cut, against what it had acknowledged. Null: unknown."""

    cycle: Number
    mode: PowerCutMode
    seed: Size
    # Whether the power went, as far as the boot tells. Else the job died, and this is no cycle.
    cut: bool
    # Whether the drive came back.
    found: bool
    armed: Time
    # The last acknowledgement that was recorded.
    cut_at: t.Optional[Time]
    # When its reading began.
    back: t.Optional[Time]
    # From the start of the kernel until the drive was there.
    time_to_ready_s: t.Optional[NotNegative]
    unsafe_shutdowns_before: t.Optional[Size]
    unsafe_shutdowns_after: t.Optional[Size]
    power_cycles_before: t.Optional[Size]
    power_cycles_after: t.Optional[Size]
    media_errors_before: t.Optional[Size]
    media_errors_after: t.Optional[Size]
    link_before: t.Optional[Annotated[str, Limits(max_length=40)]]
    link_after: t.Optional[Annotated[str, Limits(max_length=40)]]
    # Unsafe shutdowns did not rise; null: not counted.
    clean: t.Optional[bool]
    write_cache: t.Optional[t.Literal["on", "off"]]
    vwc: t.Optional[bool]
    plp_claimed: bool
    atomic_write_bytes: t.Optional[Positive]
    fua: t.Optional[t.Literal["drive", "kernel"]]
    gets_flushes: t.Optional[bool]
    # Of which an acknowledgement was recorded; and those that a flush or FUA made durable.
    writes_acknowledged: Count
    writes_flushed: Count
    blocks_checked: Count
    # Blocks, by what is wrong with them.
    lost_flushed: Count
    lost_acknowledged: Count
    stale: Count
    resurrected: Count
    misplaced: Count
    foreign: Count
    torn: Count
    corrupt: Count
    unreadable: Count
    # Of lost_flushed those that FUA alone made durable.
    lost_fua: Count
    # Of which it is not known what they should hold.
    unjudged: Count
    # The system drive lost records that it had acknowledged itself: then a blank block may be a trim.
    records_lost: bool
    # How many wrong blocks lie in each of so many equal parts of what was checked; not there: none.
    wrong_by_part: OrMissing[Annotated[t.List[Count], Limits(min_items=1, max_items=100)]] = None
    first: OrMissing[Annotated[t.List[PowerCutBlock], Limits(max_items=20)]] = None


@dataclass(frozen=True)
class PowerCutDetails:
    """All cycles of a power-cut test."""

    mode: PowerCutMode
    requested_cycles: Positive
    cycles: Annotated[t.List[PowerCutCycle], Limits(max_items=20000)]
