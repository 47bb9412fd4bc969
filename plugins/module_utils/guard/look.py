# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A look at what lies on a drive, with a chance that can be told: random blocks, others at each look, or all of them.

A drive that can be read whole in the time of a look is. Of another, `seconds` are spent on random blocks of 4 KiB; data
of D bytes, wherever it lies, is missed by n blocks with the chance (1 - D / size)ⁿ.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import time
import typing as t

from ..drive.capacity import SLOWEST_BYTES_PER_S
from . import chances, filler
from .blockreader import BlockReader
from .facts import Extent
from .places import AT_A_TIME, BLOCK_BYTES, aimed_offsets, random_offsets

PIECE_BYTES = 1 << 20
_PIECES = 8
# How much of a look may be spent beyond its time on reading whole what seemed to be readable in it.
_OVERTIME = 2.0
# How much of a look's time may be spent beyond it where the drive itself says that it holds something.
_AIMED = 0.5
_SHORT_STEP_S = 60.0
# What an erased drive returns; which of the two is its own choice, but it is one.
_FILLS = (0x00, 0xFF)
# (bytes of a piece, how many at a time) → a reader of them
Readers = t.Callable[[int, int], BlockReader]


class Stopped(Exception):
    """The job is to end: what was looked at so far says nothing."""


def never() -> bool:
    """Nobody asks to stop."""
    return False


class Terms(t.NamedTuple):
    """How long to look at a drive; None: until all of it is read. stop: whether to give up, asked between two reads."""

    seconds: float | None = 10.0
    stop: t.Callable[[], bool] = never


@dataclasses.dataclass
class Look:
    """What a look found. blocks: of 4 KiB, at random places, or all (whole); size_bytes: of the drive; aimed_blocks:
    beside these, where it may hold something.

    fills: which of 0x00 and 0xFF blank blocks held; filled: blocks of fio's random fill; foreign: where the first block
      that is neither lies.
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

    @property
    def blank(self) -> bool:
        """One and the same fill value everywhere."""
        return self.foreign is None and not self.filled and len(self.fills) < 2

    @property
    def only_fill(self) -> bool:
        """Nothing but blank blocks and fio's random fill: whoever wrote last wrote nothing that anybody could miss."""
        return self.foreign is None and len(self.fills) < 2

    def record(self) -> dict[str, t.Any]:
        """For the journal and the results: {blocks, aimed_blocks, size_bytes, seconds, whole, seen_bytes}."""
        seen = chances.seen_bytes(self.blocks, self.size_bytes, self.whole)
        blocks = {"blocks": self.blocks, "aimed_blocks": self.aimed_blocks}
        return dict(
            blocks, size_bytes=self.size_bytes, seconds=round(self.seconds, 2), whole=self.whole, seen_bytes=seen
        )


def longer_s(terms: Terms, size_bytes: int) -> float:
    """How much longer than any short step a look may take on a drive that answers; 0 where it is a short
    step itself.
    """
    longest_s = size_bytes / SLOWEST_BYTES_PER_S if terms.seconds is None else (1 + _OVERTIME + _AIMED) * terms.seconds
    return longest_s if longest_s > _SHORT_STEP_S else 0.0


def take(
    handle: int,
    size_bytes: int,
    terms: Terms,
    known: t.Sequence[Extent] = (),
    fill_counts: bool = True,
    aim: t.Sequence[Extent] = (),
    clock: t.Callable[[], float] = time.monotonic,
) -> Look:
    """Look at a drive through a descriptor opened with O_DIRECT; ends at the first foreign block. Raises OSError where
    it can't be read, and Stopped.

    known: what does not count. fill_counts: whether fio's fill counts as data, so that its first block ends the look
      too.
    aim: where the drive may hold something; the blocks that are read there come on top of the random ones.
    """
    began = clock()
    look = Look(size_bytes)
    seeing = _Seeing(look, known, fill_counts, terms.stop)
    reader = functools.partial(BlockReader, handle)
    _ends(reader, seeing)
    if not seeing.over:
        _whole_or_some(reader, seeing, terms, aim, clock)
    look.seconds = clock() - began
    return look


class _Seeing:
    """Sorts what was read."""

    def __init__(self, look: Look, known: t.Sequence[Extent], fill_counts: bool, stop: t.Callable[[], bool]) -> None:
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
        elif filler.is_fill(data):
            self.look.filled += 1
            self.look.first_filled = offset if self.look.first_filled is None else self.look.first_filled
        else:
            self.look.foreign = offset


@functools.lru_cache(maxsize=None)
def _blank(fill: int) -> bytes:
    """A piece of it; made once, as it takes longer than many a look."""
    return bytes([fill]) * PIECE_BYTES


def _without(known: t.Sequence[Extent], offset: int, data: bytes) -> bytes:
    """The data of a block without what is known. Extents may overlap: a table is found by wipefs and by
    its own bytes.
    """
    kept, place = [], 0
    for extent in sorted(known):
        kept.append(data[place : max(place, extent.offset - offset)])
        place = max(place, extent.offset + extent.length - offset)
    return b"".join([*kept, data[place:]])


def _ends(reader: Readers, seeing: _Seeing) -> None:
    """The first and the last MiB: tables, superblocks and labels are there."""
    size = seeing.look.size_bytes
    with reader(min(size, PIECE_BYTES), 1) as pieces:
        for offset in sorted({0, max(0, size - PIECE_BYTES)}):
            seeing.piece(offset, pieces.read([offset]))


def is_fill_where(handle: int, size_bytes: int, extents: t.Sequence[Extent]) -> bool:
    """Whether every block of both ends of a drive and of these extents is blank, all alike, or fio's random fill.
    Raises OSError.
    """
    seeing = _Seeing(Look(size_bytes), (), fill_counts=False, stop=lambda: False)
    reader = functools.partial(BlockReader, handle)
    _ends(reader, seeing)
    with reader(BLOCK_BYTES, 1) as blocks:
        for extent in extents:
            last = min(extent.offset + extent.length, size_bytes // BLOCK_BYTES * BLOCK_BYTES)
            for offset in range(extent.offset // BLOCK_BYTES * BLOCK_BYTES, last, BLOCK_BYTES):
                seeing.piece(offset, blocks.read([offset]))
    return seeing.look.only_fill  # a look ends early where zeros and ones were both seen


def _whole_or_some(
    reader: Readers, seeing: _Seeing, terms: Terms, aim: t.Sequence[Extent], clock: t.Callable[[], float]
) -> None:
    look, began = seeing.look, clock()
    left_s = math.inf if terms.seconds is None else terms.seconds
    if look.size_bytes <= 2 * PIECE_BYTES:
        look.whole, look.blocks = True, -(-look.size_bytes // BLOCK_BYTES)
        return
    with reader(PIECE_BYTES, _PIECES) as pieces:
        # How fast it reads: a few pieces anywhere tell, and are looked at too.
        for offsets in random_offsets(look.size_bytes, PIECE_BYTES, _PIECES, rounds=2):
            for offset, data in zip(offsets, _split(pieces.read(offsets), PIECE_BYTES)):
                seeing.piece(offset, data)
        rate = 2 * _PIECES * PIECE_BYTES / max(clock() - began, 1e-9)
        if (
            not seeing.over
            and whole_in_time(look.size_bytes, rate, left_s)
            and _all(pieces, seeing, began + _OVERTIME * left_s, clock)
        ):
            return
    with reader(BLOCK_BYTES, AT_A_TIME) as blocks:
        look.aimed_blocks = _some(blocks, seeing, aimed_offsets(look.size_bytes, aim), clock() + _AIMED * left_s, clock)
        look.blocks = _some(
            blocks, seeing, random_offsets(look.size_bytes, BLOCK_BYTES, AT_A_TIME), clock() + left_s, clock
        )


def _some(
    blocks: BlockReader, seeing: _Seeing, places: t.Iterable[list[int]], deadline: float, clock: t.Callable[[], float]
) -> int:
    """Look at blocks until it is late, or what was found ends it; how many."""
    count = 0
    for offsets in places:
        if seeing.over or clock() >= deadline:
            break
        for offset, data in zip(offsets, _split(blocks.read(offsets), BLOCK_BYTES)):
            seeing.piece(offset, data)
        count += len(offsets)
    return count


def whole_in_time(size_bytes: int, bytes_per_s: float, seconds: float) -> bool:
    return size_bytes / bytes_per_s <= seconds


def _all(pieces: BlockReader, seeing: _Seeing, deadline: float, clock: t.Callable[[], float]) -> bool:
    """Read all of it in sequence; whether that ended in time or by what was found. What is left behind the last whole
    piece is in the last MiB.
    """
    count = seeing.look.size_bytes // PIECE_BYTES
    for first in range(0, count, _PIECES):
        offsets = [place * PIECE_BYTES for place in range(first, min(count, first + _PIECES))]
        for offset, data in zip(offsets, _split(pieces.read(offsets), PIECE_BYTES)):
            seeing.piece(offset, data)
        if seeing.over:
            return True
        if clock() > deadline:
            return False
    seeing.look.whole, seeing.look.blocks = True, -(-seeing.look.size_bytes // BLOCK_BYTES)
    return True


def _split(data: bytes, length: int) -> t.Iterator[bytes]:
    return (data[start : start + length] for start in range(0, len(data), length))
