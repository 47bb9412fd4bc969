# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A look at what lies on a drive, with a chance that can be told: random blocks, others at each look, or all of them.

A drive that can be read whole in the time of a look is. Of another, `seconds` are spent on random blocks of 4 KiB; data
of D bytes, wherever it lies, is missed by n blocks with the chance (1 - D / size)ⁿ.
"""

from __future__ import annotations

import functools
import math
import time
import typing as t

from ..drive.hidden_capacity import SLOWEST_BYTES_PER_S
from .block_classifier import PIECE_BYTES, BlockClassifier, DataScan
from .block_reader import BlockReader, Unreadable
from .facts import Extent
from .scan_offsets import AT_A_TIME, BLOCK_BYTES, aimed_offsets, random_offsets

_PIECES = 8
# How much of a look may be spent beyond its time on reading whole what seemed to be readable in it.
_OVERTIME = 2.0
# How much of a look's time may be spent beyond it where the drive itself says that it holds something.
_AIMED = 0.5
_SHORT_STEP_S = 60.0
# (bytes of a piece, how many at a time) → a reader of them
Readers = t.Callable[[int, int], BlockReader]


def never() -> bool:
    """Nobody asks to stop."""
    return False


class Terms(t.NamedTuple):
    """How long to look at a drive; None: until all of it is read. stop: whether to give up, asked between two reads."""

    seconds: float | None = 10.0
    stop: t.Callable[[], bool] = never


def longer_s(terms: Terms, size_bytes: int) -> float:
    """Return how much longer than any short step a look may take on a drive that answers; 0 where it is a short
    step itself.
    """
    longest_s = size_bytes / SLOWEST_BYTES_PER_S if terms.seconds is None else (1 + _OVERTIME + _AIMED) * terms.seconds
    return longest_s if longest_s > _SHORT_STEP_S else 0.0


def scan(
    handle: int,
    size_bytes: int,
    terms: Terms,
    known: t.Sequence[Extent] = (),
    fill_counts: bool = True,
    aim: t.Sequence[Extent] = (),
    clock: t.Callable[[], float] = time.monotonic,
) -> DataScan:
    """Look at a drive through a descriptor opened with O_DIRECT; ends at the first foreign block, and at one that it
    cannot give, which counts as foreign. Raises OSError where it gives no other either, and Stopped.

    known: what does not count. fill_counts: whether fio's data count too, so that their first block ends the look.
    aim: where the drive may hold something; the blocks that are read there come on top of the random ones.
    """
    began = clock()
    look = DataScan(size_bytes)
    seeing = BlockClassifier(look, known, fill_counts, terms.stop)
    reader = functools.partial(BlockReader, handle)
    try:
        _ends(reader, seeing)
        if not seeing.over:
            _whole_or_some(reader, seeing, terms, aim, clock)
    except Unreadable as error:
        _another_block(reader, size_bytes, error.offset)
        look.foreign, look.unreadable = error.offset, Extent(error.offset, error.length)
    look.seconds = clock() - began
    return look


def _ends(reader: Readers, seeing: BlockClassifier) -> None:
    """The first and the last MiB: tables, superblocks and labels are there."""
    size = seeing.look.size_bytes
    with reader(min(size, PIECE_BYTES), 1) as pieces:
        for offset in sorted({0, max(0, size - PIECE_BYTES)}):
            seeing.piece(offset, pieces.read([offset]))


def _another_block(reader: Readers, size_bytes: int, offset: int) -> None:
    """See that the drive still answers: one that is gone says of every block that it cannot give it. Raises OSError."""
    length = min(size_bytes, BLOCK_BYTES)
    with reader(length, 1) as blocks:
        blocks.read([0 if offset else (size_bytes - length) // BLOCK_BYTES * BLOCK_BYTES])


def is_fill_where(handle: int, size_bytes: int, extents: t.Sequence[Extent]) -> bool:
    """Return whether every block of both ends of a drive and of these extents is blank, all alike, or fio's random
    data. Raises OSError.
    """
    seeing = BlockClassifier(DataScan(size_bytes), (), fill_counts=False, stop=lambda: False)
    reader = functools.partial(BlockReader, handle)
    try:
        _ends(reader, seeing)
        with reader(BLOCK_BYTES, 1) as blocks:
            for extent in extents:
                last = min(extent.offset + extent.length, size_bytes // BLOCK_BYTES * BLOCK_BYTES)
                for offset in range(extent.offset // BLOCK_BYTES * BLOCK_BYTES, last, BLOCK_BYTES):
                    seeing.piece(offset, blocks.read([offset]))
    except Unreadable:
        return False
    return seeing.look.only_fill  # a look ends early where zeros and ones were both seen


def _whole_or_some(
    reader: Readers, seeing: BlockClassifier, terms: Terms, aim: t.Sequence[Extent], clock: t.Callable[[], float]
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
    blocks: BlockReader,
    seeing: BlockClassifier,
    places: t.Iterable[list[int]],
    deadline: float,
    clock: t.Callable[[], float],
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


def _all(pieces: BlockReader, seeing: BlockClassifier, deadline: float, clock: t.Callable[[], float]) -> bool:
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
