# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a power-cut test does to a drive: the operations of each of its threads, all of them told by a seed, and blocks
that tell their own place, drive, run and operation. Pure.

A sector is one of block_pattern.py, with one word more: the operation that wrote it. So the guard takes what a cut
leaves for what it is, and the contents of a block tell what happened to it.
"""

from __future__ import annotations

import functools
import hashlib
import typing as t
from array import array

from .block_pattern import (
    ADDRESS,
    BLOCK_BYTES,
    CHECK,
    DRIVE,
    MASK,
    MULTIPLES,
    SECTOR_BYTES,
    WORDS,
    WRITING,
    numbered,
)

# Of the ActiveRange, so that it is read back in seconds: in as many equal parts, spread over all of it.
MOST_BYTES = 1 << 30
PARTS = 64
# Each does one operation at a time, and each part is one thread's: the order of what is written to a block is known.
THREADS = 8
RANDOM, SEQUENTIAL, HOT, TRIMS = "random", "sequential", "hot", "trims"
PATTERNS = (RANDOM, SEQUENTIAL, HOT, TRIMS)
WRITE, TRIM, FLUSH = "write", "trim", "flush"
MOST_BLOCKS = 32
HOT_BLOCKS = 16
# A trim covers so many blocks, aligned.
TRIM_BLOCKS = 8
# A thread flushes once in so many operations; a write in a cycle with FUA has it once in so many.
FLUSH_EVERY, FUA_EVERY = 128, 4
# The word of a sector that has its operation: fio's scrambling sets it too.
OPERATION = 16
_CYCLE_BITS, _THREAD_BITS, _NUMBER_BITS = 15, 6, 26
MOST_CYCLES, MOST_NUMBER = (1 << _CYCLE_BITS) - 1, (1 << _NUMBER_BITS) - 1
# Of the fill before the first cycle.
FILL_CYCLE = 0
_SEEDS = 4096
_GOLDEN = 0x9E3779B97F4A7C15
_CHECK_MASK = (1 << 47) - 1


class TooSmall(ValueError):
    """A drive has too few blocks for the test."""


def mixed(value: int) -> int:
    """Return 64 bits that look random, always the same ones (splitmix64)."""
    value = (value + _GOLDEN) & MASK
    value = ((value ^ value >> 30) * 0xBF58476D1CE4E5B9) & MASK
    value = ((value ^ value >> 27) * 0x94D049BB133111EB) & MASK
    return value ^ value >> 31


class Layout:
    """Where the blocks of the test lie. Blocks are numbered from 0, part by part. Raises TooSmall."""

    def __init__(self, active_bytes: int) -> None:
        all_blocks = active_bytes // BLOCK_BYTES
        blocks = min(all_blocks, MOST_BYTES // BLOCK_BYTES)
        self.parts = min(PARTS, blocks // MOST_BLOCKS // THREADS * THREADS)
        if not self.parts:
            raise TooSmall(
                f"a power-cut test needs {THREADS * MOST_BLOCKS * BLOCK_BYTES:,} bytes, not {active_bytes:,}"
            )
        self.part_blocks = blocks // self.parts // TRIM_BLOCKS * TRIM_BLOCKS
        self._stride = all_blocks // self.parts
        self.blocks = self.parts * self.part_blocks
        self.thread_blocks = self.blocks // THREADS

    def offset(self, block: int) -> int:
        """Return the byte at which a block begins."""
        part, place = divmod(block, self.part_blocks)
        return (part * self._stride + place) * BLOCK_BYTES

    def block(self, offset: int) -> int | None:
        """Return the block that begins at a byte; None for none of the test's."""
        part, place = divmod(offset // BLOCK_BYTES, self._stride)
        is_block = offset % BLOCK_BYTES == 0 and part < self.parts and place < self.part_blocks
        return part * self.part_blocks + place if is_block else None

    def thread(self, block: int) -> int:
        """Return the thread whose block it is."""
        return block // self.part_blocks % THREADS

    def of_thread(self, thread: int, place: int) -> tuple[int, int]:
        """Return the block at a place of those of a thread, and how many follow in its part, itself among them."""
        part, within = divmod(place, self.part_blocks)
        return (part * THREADS + thread) * self.part_blocks + within, self.part_blocks - within


class Operation(t.NamedTuple):
    """What a thread does next. block: the first of so many; has_fua: of a write."""

    kind: str
    block: int = 0
    blocks: int = 0
    has_fua: bool = False


class Stream:
    """The operations of one cycle: those of a thread are numbered from 0, without end."""

    def __init__(self, seed: int, cycle: int, layout: Layout) -> None:
        self.cycle, self.layout = cycle, layout
        # A drive that honours the one and ignores the other is found by neither alone.
        self.flushes, self.has_fua = cycle % 3 != 2, cycle % 3 != 1
        self._bases = [mixed(seed ^ mixed(cycle << 8 | thread)) for thread in range(THREADS)]

    def operation(self, thread: int, number: int) -> Operation:
        """Return the operation of this number of a thread."""
        bits, pattern = mixed(self._bases[thread] + number), PATTERNS[thread % len(PATTERNS)]
        if self.flushes and bits % FLUSH_EVERY == 0:
            return Operation(FLUSH)
        bits //= FLUSH_EVERY
        has_fua, bits = self.has_fua and bits % FUA_EVERY == 0, bits // FUA_EVERY
        size = self.layout.thread_blocks
        if pattern == TRIMS:
            return self._trim_or_write(thread, bits, has_fua)
        if pattern == SEQUENTIAL:
            place, count = (self._bases[thread] + number * MOST_BLOCKS) % size, MOST_BLOCKS
        elif pattern == HOT:
            place, count = (self._bases[thread] + bits % HOT_BLOCKS * (size // HOT_BLOCKS)) % size, 1
        else:
            count, bits = (1, 1, 1, 4)[bits % 4], bits // 4
            place = bits % size
        block, left = self.layout.of_thread(thread, place)
        return Operation(WRITE, block, min(count, left), has_fua)

    def _trim_or_write(self, thread: int, bits: int, has_fua: bool) -> Operation:
        """Return an operation on a part of a unit, or a trim of all of it."""
        what, bits = bits % 8, bits // 8
        units = min(self.layout.thread_blocks // TRIM_BLOCKS, 64)
        block, _left = self.layout.of_thread(thread, bits % units * TRIM_BLOCKS)
        if what < 3:
            return Operation(TRIM, block, TRIM_BLOCKS)
        first = bits // units % TRIM_BLOCKS
        return Operation(WRITE, block + first, 1 if what < 6 else TRIM_BLOCKS - first, has_fua)

    def writes(self, generation: int, block: int) -> bool:
        """Return whether a generation is one of a write of this cycle to a block."""
        cycle, thread, number = parse_generation(generation)
        if cycle != self.cycle or thread != self.layout.thread(block):
            return False
        done = self.operation(thread, number)
        return done.kind == WRITE and done.block <= block < done.block + done.blocks


def fill_operation(layout: Layout, number: int) -> Operation | None:
    """Return an operation of the fill before the first cycle; None after the last one."""
    of_part = -(-layout.part_blocks // MOST_BLOCKS)
    part, chunk = divmod(number, of_part)
    if part >= layout.parts:
        return None
    first = chunk * MOST_BLOCKS
    return Operation(WRITE, part * layout.part_blocks + first, min(MOST_BLOCKS, layout.part_blocks - first))


def fill_generations(layout: Layout) -> array[int]:
    """Return the generation that the fill gives to each block."""
    found, number = array("Q"), 0
    while True:
        done = fill_operation(layout, number)
        if done is None:
            return found
        found.extend([make_generation(FILL_CYCLE, 0, number)] * done.blocks)
        number += 1


def make_generation(cycle: int, thread: int, number: int) -> int:
    """Return what a block says of its writing: a later one to the same block is the larger number."""
    return (cycle << _THREAD_BITS | thread) << _NUMBER_BITS | number


def parse_generation(value: int) -> tuple[int, int, int]:
    """Return (cycle, thread, number)."""
    cycle, thread = divmod(value >> _NUMBER_BITS, 1 << _THREAD_BITS)
    return cycle, thread, value & MOST_NUMBER


class Stamp(t.NamedTuple):
    """What a sector says of itself. is_whole: its check is right."""

    address: int
    drive: int
    writing: int
    generation: int
    is_whole: bool


def parse_stamp(sector: bytes) -> Stamp:
    """Return what a sector says of itself, whatever it holds."""
    words = memoryview(sector).cast("Q")
    drive, writing, operation = words[DRIVE], words[WRITING], words[OPERATION] >> 9
    check = words[CHECK]
    address = words[ADDRESS]
    is_whole = words[OPERATION] == operation << 9 and check == _checks(drive, writing, operation, (address,))[0]
    return Stamp(address, drive, writing, operation, is_whole)


def _checks(drive: int, writing: int, operation: int, addresses: t.Iterable[int]) -> array[int]:
    """Return the check of each sector of a write: of all that it says of itself."""
    of_write = _check_of(drive, writing, operation)
    return array("Q", [(of_write ^ address * _GOLDEN & _CHECK_MASK) << 9 for address in addresses])


@functools.lru_cache(maxsize=1024)
def _check_of(drive: int, writing: int, operation: int) -> int:
    return numbered(47, "power cut", drive, writing, operation)


class Tags:
    """What the blocks of a test of a drive hold. key: of their fill; drive: 32 bits; writing: of run and test, 30."""

    def __init__(self, key: str, drive: int, writing: int) -> None:
        self.drive, self.writing = drive, writing
        seeds = array("Q", hashlib.shake_256(key.encode()).digest(8 * _SEEDS))
        words = array("Q", [(seed | 1) * multiple & MASK for seed in seeds for multiple in MULTIPLES])
        words[DRIVE::WORDS] = array("Q", [drive]) * _SEEDS
        words[WRITING::WORDS] = array("Q", [writing]) * _SEEDS
        # So that what an operation writes is one piece of it, wherever that begins.
        words += words[: MOST_BLOCKS * BLOCK_BYTES // 8]
        self._sectors = memoryview(words).cast("B")

    def fill(self, target: memoryview, generation: int, offset: int) -> None:
        """Put into a buffer of whole sectors, of MOST_BLOCKS at most, what a write gives to an offset."""
        start = (mixed(generation) + offset // SECTOR_BYTES) % _SEEDS * SECTOR_BYTES
        length = len(target)
        target[:] = self._sectors[start : start + length]
        words, addresses = target.cast("Q"), range(offset, offset + length, SECTOR_BYTES)
        words[ADDRESS::WORDS] = memoryview(array("Q", addresses))
        words[OPERATION::WORDS] = memoryview(array("Q", [generation << 9]) * len(addresses))
        words[CHECK::WORDS] = memoryview(_checks(self.drive, self.writing, generation, addresses))

    def data(self, generation: int, offset: int, length: int = BLOCK_BYTES) -> bytes:
        """Return what a write gives to an offset."""
        found = bytearray(length)
        self.fill(memoryview(found), generation, offset)
        return bytes(found)
