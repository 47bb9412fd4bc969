# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is seen of a drive, piece by piece: sorted into blank, fio's random data and foreign.

fio's data are recognised by what they are (fio_data.py). It costs the measurement nothing: the job is as it was. (A
header in each block, verify=crc32c, takes three times the CPU of a write: docs/internals/guard.md.)
"""

from __future__ import annotations

import dataclasses
import functools
import typing as t

from ..records.guard import Look
from . import fio_data, scan_offsets
from .facts import Extent
from .scan_offsets import BLOCK_BYTES

PIECE_BYTES = 1 << 20
# What an erased drive returns; which of the two is its own choice, but it is one.
_FILLS = (0x00, 0xFF)


class Stopped(Exception):
    """The job is to end: what was looked at so far says nothing."""


@dataclasses.dataclass
class DataScan:
    """What a look found. blocks: of 4 KiB, at random places, or all (whole); size_bytes: of the drive; aimed_blocks:
    beside these, where it may hold something.

    fills: which of 0x00 and 0xFF blank blocks held; filled: blocks of fio's random data; foreign: where the first block
      that is neither lies; unreadable: that is there because the drive cannot give it, and may hold anything.
    """

    size_bytes: int
    blocks: int = 0
    seconds: float = 0.0
    whole: bool = False
    aimed_blocks: int = 0
    filled: int = 0
    fills: set[int] = dataclasses.field(default_factory=set)
    first_filled: int | None = None
    foreign: int | None = None
    unreadable: Extent | None = None

    @property
    def blank(self) -> bool:
        """One and the same fill value everywhere."""
        return self.foreign is None and not self.filled and len(self.fills) < 2

    @property
    def only_fill(self) -> bool:
        """Nothing but blank blocks and fio's random data: whoever wrote last wrote nothing that anybody could miss."""
        return self.foreign is None and len(self.fills) < 2

    def record(self, allocated_bytes: int | None = None) -> Look:
        """For the journal and the results. allocated_bytes: what the drive itself reports as in use."""
        return Look(
            blocks=self.blocks,
            size_bytes=self.size_bytes,
            seconds=round(self.seconds, 2),
            whole=self.whole,
            seen_bytes=scan_offsets.seen_bytes(self.blocks, self.size_bytes, self.whole),
            aimed_blocks=self.aimed_blocks,
            allocated_bytes=allocated_bytes,
        )


class BlockClassifier:
    """Sorts what was read."""

    def __init__(
        self, look: DataScan, known: t.Sequence[Extent], fill_counts: bool, stop: t.Callable[[], bool]
    ) -> None:
        self.look, self._known, self._fill_counts, self._stop = look, known, fill_counts, stop

    @property
    def over(self) -> bool:
        """Whether nothing that may come could change the verdict."""
        look = self.look
        return look.foreign is not None or len(look.fills) > 1 or bool(look.filled and self._fill_counts)

    def piece(self, offset: int, data: bytes) -> None:
        """What lies at an offset, in one piece. Raises Stopped."""
        if self._stop():
            raise Stopped()
        if data[:1] in (b"\x00", b"\xff") and data == _blank(data[0])[: len(data)]:
            self.look.fills.add(data[0])
            return
        for place in range(0, len(data), BLOCK_BYTES):
            if not self.over:
                self._block(offset + place, data[place : place + BLOCK_BYTES])

    def _block(self, offset: int, data: bytes) -> None:
        data = _without(self._known, offset, data)
        if not data:
            return
        fill = data[0]
        if fill in _FILLS and data == _blank(fill)[: len(data)]:
            self.look.fills.add(fill)
        elif fio_data.is_random(data):
            self.look.filled += 1
            self.look.first_filled = offset if self.look.first_filled is None else self.look.first_filled
        else:
            self.look.foreign = offset


@functools.lru_cache(maxsize=None)
def _blank(fill: int) -> bytes:
    """Return a piece of it; made once, as it takes longer than many a look."""
    return bytes([fill]) * PIECE_BYTES


def _without(known: t.Sequence[Extent], offset: int, data: bytes) -> bytes:
    """Return the data of a block without what is known. Extents may overlap: a table is found by wipefs and by
    its own bytes.
    """
    kept, place = [], 0
    for extent in sorted(known):
        kept.append(data[place : max(place, extent.offset - offset)])
        place = max(place, extent.offset + extent.length - offset)
    return b"".join([*kept, data[place:]])
