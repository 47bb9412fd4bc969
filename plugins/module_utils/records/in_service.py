# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Drives in service: what a test that only reads asks for, and what a scrub found."""

from __future__ import annotations

import typing as t
from dataclasses import dataclass

from .base import Annotated, Count, Limits, NotNegative, Positive

MIB = 1 << 20
_Seconds = Annotated[int, Limits(minimum=1, maximum=86400)]


@dataclass(frozen=True)
class PlannedInService:
    """A test of a drive that holds data: it only reads, and gives way to I/O of others beyond one of these rates."""

    busy_iops: Positive
    busy_mib_s: Positive
    # How long it waits in all for others to do less, before it gives up.
    patience_s: Annotated[int, Limits(minimum=0, maximum=86400)]


@dataclass(frozen=True)
class PlannedScrub:
    """A part of the drive is read in sequence, at a limited rate, for so long."""

    rate_mib_s: Annotated[int, Limits(minimum=1, maximum=100_000)]
    duration_s: _Seconds

    def part_bytes(self, size_bytes: int) -> int:
        """Return how much of a drive of this size is read at a time."""
        return min(size_bytes, self.rate_mib_s * MIB * self.duration_s)

    def nights(self, size_bytes: int) -> int:
        """Return in how many runs all of it is read."""
        return -(-size_bytes // self.part_bytes(size_bytes))


@dataclass(frozen=True)
class UnreadableBlock:
    """Where a drive could not be read. error: the kernel's."""

    offset_bytes: Count
    length_bytes: Positive
    error: Annotated[str, Limits(max_length=100)]


@dataclass(frozen=True)
class ScrubDetails:
    """What a scrub read, and where it could not."""

    # The part that was to be read.
    from_bytes: Count
    to_bytes: Positive
    # Of it; unreadable blocks are in it.
    bytes_read: Count
    # Reading, and waiting for others on top.
    seconds: NotNegative
    paused_s: NotNegative
    unreadable_blocks: Count
    # False: it ended before all of the part was read.
    complete: bool
    # The first of them.
    first: Annotated[t.List[UnreadableBlock], Limits(max_items=20)]
