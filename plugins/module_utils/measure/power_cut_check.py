# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a drive holds after a power cut, against what it had acknowledged. Pure: of the seed, the log, what the blocks
held before the cycle, and what was read of them.

Of a block may be left what was made durable last (by a flush that was sent after the acknowledgement, or by FUA), or
anything that was written to it since. A trim leaves it blank, or as it was. What was not recorded may be there too.
"""

from __future__ import annotations

import collections
import typing as t
from array import array

from ..records.power_cut import CutFault, CutKind, PowerCutBlock
from .block_pattern import BLOCK_BYTES, SECTOR_BYTES
from .power_cut_log import BLANKED, FLUSHED, Log
from .power_cut_pattern import (
    PATTERNS,
    THREADS,
    TRIM,
    TRIMS,
    WRITE,
    Layout,
    Operation,
    Stream,
    Tags,
    make_generation,
    parse_generation,
    parse_stamp,
)

# What a block holds: a generation, nothing but 0x00 or 0xFF, or what nobody knows.
BLANK, UNKNOWN = 1 << 62, 1 << 63
# A thread goes ahead of its log by so many operations at most.
WINDOW = 1024
# Why a block can't have lost what was written last.
_BY_FLUSH, _BY_FUA, _BY_TRIM = "flush", "FUA", "trim"
PARTS = 100
MOST_TOLD = 20


class Atomicity(t.NamedTuple):
    """Which writes the drive promises to do whole or not at all. None: it does not tell; no boundary."""

    write_bytes: int | None = None
    boundary_bytes: int | None = None
    # Of these no part is ever written alone.
    logical_block_bytes: int = SECTOR_BYTES

    def holds(self, offset: int, length: int) -> bool:
        """Return whether a write is promised to be whole."""
        within = self.boundary_bytes
        crosses = bool(within) and offset // (within or 1) != (offset + length - 1) // (within or 1)
        return length <= max(self.write_bytes or 0, self.logical_block_bytes) and not crosses


class History:
    """What each block may hold after a cycle, by what was recorded of it.

    before: what each block held when the cycle began, which was durable; reads_are_stable: a trimmed block that was
    read as blank has to stay so until it is written.
    """

    def __init__(self, stream: Stream, log: Log, before: array[int], reads_are_stable: bool) -> None:
        self.stream, self._before = stream, before
        self.next_number = [0] * THREADS
        self.acknowledged = self.durable = 0
        # Only of blocks that an operation reached. What they may hold; what they hold if nothing was lost.
        self._allowed: dict[int, set[int]] = {}
        self._newest: dict[int, frozenset[int]] = {}
        self._why: dict[int, str] = {}
        # Writes that no flush covers, of which more than one block may be torn.
        self.open_writes: list[tuple[int, Operation]] = []
        self._take(log, reads_are_stable)
        self._maybe_blank = self._trims_in_flight()

    def _take(self, log: Log, reads_are_stable: bool) -> None:
        flushed = max((record.value for record in log.records() if record.kind == FLUSHED), default=0)
        for position, record in enumerate(log.records()):
            thread, number = record.thread, self.next_number[record.thread]
            self.next_number[thread] += 1
            if record.kind == FLUSHED:
                continue
            done = self.stream.operation(thread, number)
            is_flushed = position < flushed
            if done.kind == TRIM:
                for block in range(done.block, done.block + done.blocks):
                    self._trim(block, is_flushed, record.kind == BLANKED and reads_are_stable)
                continue
            self.acknowledged += 1
            self.durable += is_flushed or done.has_fua
            generation = self.generation(thread, number)
            why = _BY_FLUSH if is_flushed else _BY_FUA if done.has_fua else ""
            if not why and done.blocks > 1:
                self.open_writes.append((generation, done))
            for block in range(done.block, done.block + done.blocks):
                self._write(block, generation, why)

    def generation(self, thread: int, number: int) -> int:
        """Return the generation of an operation of this cycle."""
        return make_generation(self.stream.cycle, thread, number)

    def _write(self, block: int, generation: int, why: str) -> None:
        if why:
            self._allowed[block], self._why[block] = {generation}, why
        else:
            self.allowed(block, keep=True).add(generation)
        self._newest[block] = frozenset((generation,))

    def _trim(self, block: int, is_flushed: bool, is_blank: bool) -> None:
        newest = frozenset((BLANK,)) if is_blank and is_flushed else self.newest(block) | {BLANK}
        if is_flushed:
            self._allowed[block], self._why[block] = set(newest), _BY_TRIM if is_blank else _BY_FLUSH
        else:
            self.allowed(block, keep=True).add(BLANK)
        self._newest[block] = newest

    def allowed(self, block: int, keep: bool = False) -> set[int]:
        """Return what a block may hold, as far as it was recorded."""
        found = self._allowed.get(block)
        if found is None:
            found = {self._before[block]}
            if keep:
                self._allowed[block] = found
        return found

    def newest(self, block: int) -> frozenset[int]:
        """Return what a block holds if nothing was lost."""
        return self._newest.get(block) or frozenset((self._before[block],))

    def why(self, block: int) -> str:
        """Return what made durable what a block holds at least; "": nothing did, in this cycle."""
        return self._why.get(block, "")

    def _trims_in_flight(self) -> set[int]:
        """Return the blocks that may have been trimmed without a record."""
        found: set[int] = set()
        for thread, first in enumerate(self.next_number):
            for number in range(first, first + WINDOW):
                done = self.stream.operation(thread, number)
                if done.kind == TRIM:
                    found.update(range(done.block, done.block + done.blocks))
        return found

    def may_be_blank(self, block: int) -> bool:
        """Return whether a block may have been trimmed without a record."""
        return block in self._maybe_blank

    def is_later(self, block: int, generation: int) -> bool:
        """Return whether a generation is of a write to this block that was not recorded."""
        _cycle, thread, number = parse_generation(generation)
        return self.stream.writes(generation, block) and number >= self.next_number[thread]

    def is_beyond(self, generation: int) -> bool:
        """Return whether a generation is so late that records before it were lost after they were synced."""
        _cycle, thread, number = parse_generation(generation)
        return number >= self.next_number[thread] + WINDOW

    def writes_in_flight(self) -> t.Iterator[tuple[int, Operation]]:
        """Yield the writes of several blocks that may be there without a record."""
        for thread, first in enumerate(self.next_number):
            for number in range(first, first + WINDOW):
                done = self.stream.operation(thread, number)
                if done.kind == WRITE and done.blocks > 1:
                    yield self.generation(thread, number), done


class Checker:
    """Takes the blocks of a drive after a cut, each once and in any order, and judges them. keeps_all: the drive claims
    to keep what it acknowledged without a flush.
    """

    def __init__(self, history: History, tags: Tags, atomicity: Atomicity, keeps_all: bool) -> None:
        self._history, self._tags, self._atomicity = history, tags, atomicity
        self._faults = [*t.get_args(CutFault), *(["lost_acknowledged"] if keeps_all else [])]
        self._layout: Layout = history.stream.layout
        # What each block holds, for the next cycle.
        self.after = array("Q", [UNKNOWN]) * self._layout.blocks
        self.counts: t.Counter[str] = collections.Counter()
        self.lost_fua = self.unjudged = self.checked = 0
        self.records_lost = False
        self.first: list[PowerCutBlock] = []
        self.by_part = [0] * PARTS
        # Blank blocks, of which is told once it is known whether records were lost.
        self._blank: list[int] = []

    def take(self, block: int, found: bytes | None) -> None:
        """Judge a block by what was read of it; None: it can't be read."""
        self.checked += 1
        offset = self._layout.offset(block)
        if found is None:
            self._wrong(block, "unreadable", "a read error")
            return
        value = self._value(found, offset)
        if value is None:
            self._mixed(block, found, offset)
            return
        self.after[block] = value
        self._judge(block, value)

    def _value(self, found: bytes, offset: int) -> int | None:
        """Return what a whole block holds; None where it is no generation of this place and not blank either."""
        stamp = parse_stamp(found[:SECTOR_BYTES])
        if stamp.address == offset and (stamp.drive, stamp.writing) == (self._tags.drive, self._tags.writing):
            return stamp.generation if found == self._tags.data(stamp.generation, offset) else None
        return BLANK if is_blank(found) else None

    def _judge(self, block: int, value: int) -> None:
        history = self._history
        allowed = history.allowed(block)
        if value in history.newest(block):
            return
        if value == BLANK:
            self._blank.append(block)
        elif value in allowed:
            self._lost_acknowledged(block, value)
        elif history.is_later(block, value):
            self.records_lost = self.records_lost or history.is_beyond(value)
        elif UNKNOWN in allowed:
            self.unjudged += 1
        else:
            self._too_old(block, value)

    def _lost_acknowledged(self, block: int, value: int) -> None:
        self._wrong(block, "lost_acknowledged", f"{describe(value)}; it was written again since, unflushed")

    def _too_old(self, block: int, value: int) -> None:
        why = self._history.why(block)
        if value != BLANK and not self._is_known(block, value):
            self._wrong(block, "corrupt", f"{describe(value)}, which was never written there")
        elif why == _BY_TRIM:
            self._wrong(block, "resurrected", f"{describe(value)}; it was trimmed, flushed and read as blank since")
        elif why:
            self.lost_fua += why == _BY_FUA
            self._wrong(block, "lost_flushed", f"{describe(value)}; it was written again since, with a {why}")
        else:
            self._wrong(block, "stale", f"{describe(value)}; before the cycle it held something later")

    def _is_known(self, block: int, generation: int) -> bool:
        """Return whether a generation can be of this block at all: of a cycle before, nobody tells any more."""
        return parse_generation(generation)[0] < self._history.stream.cycle or self._history.stream.writes(
            generation, block
        )

    def _mixed(self, block: int, found: bytes, offset: int) -> None:
        """Judge a block whose sectors are not of one writing, by its worst sector."""
        values = []
        for place in range(0, BLOCK_BYTES, SECTOR_BYTES):
            sector = found[place : place + SECTOR_BYTES]
            kind, text = self._foreign(sector, offset + place)
            if kind:
                self._wrong(block, kind, text)
                return
            values.append(BLANK if is_blank(sector) else parse_stamp(sector).generation)
        wrong = [value for value in dict.fromkeys(values) if not self._is_allowed(block, value)]
        if wrong:
            if UNKNOWN in self._history.allowed(block):
                self.unjudged += 1
            else:
                self._too_old(block, wrong[0])
            return
        old = [value for value in values if value in self._history.allowed(block) - self._history.newest(block)]
        if old and not (old[0] == BLANK and self._history.may_be_blank(block)):
            self._lost_acknowledged(block, old[0])
        written = max((value for value in values if value != BLANK), default=BLANK)
        if self._is_torn(written, values):
            texts = " and ".join(describe(value) for value in dict.fromkeys(values))
            self._wrong(block, "torn", texts)

    def _is_allowed(self, block: int, value: int) -> bool:
        history = self._history
        if value == BLANK:
            return BLANK in history.allowed(block) or history.may_be_blank(block)
        return value in history.allowed(block) or history.is_later(block, value)

    def _is_torn(self, written: int, values: t.Sequence[int]) -> bool:
        """Return whether the drive promised that a block would not be mixed like this."""
        of_logical = self._atomicity.logical_block_bytes // SECTOR_BYTES
        pieces = [values[place : place + of_logical] for place in range(0, len(values), of_logical)]
        if any(len(set(piece)) > 1 for piece in pieces):
            return True
        cycle, thread, number = parse_generation(written)
        if written == BLANK or cycle != self._history.stream.cycle:
            return False
        done = self._history.stream.operation(thread, number)
        return self._atomicity.holds(self._layout.offset(done.block), done.blocks * BLOCK_BYTES)

    def _foreign(self, sector: bytes, offset: int) -> tuple[CutKind | None, str]:
        """Return what is wrong with a sector itself; None: it is of this place and test, or blank."""
        if is_blank(sector):
            return None, ""
        stamp = parse_stamp(sector)
        if not stamp.is_whole:
            return "corrupt", "damaged, or nothing that a power-cut test wrote"
        if (stamp.drive, stamp.writing) != (self._tags.drive, self._tags.writing):
            whose = "another drive" if stamp.drive != self._tags.drive else "another run or test"
            return "foreign", f"a block of {whose}, written to byte {stamp.address}"
        if sector != self._tags.data(stamp.generation, stamp.address, SECTOR_BYTES):
            return "corrupt", f"{describe(stamp.generation)} of byte {stamp.address}, damaged"
        if stamp.address != offset:
            return "misplaced", f"{describe(stamp.generation)} of byte {stamp.address}"
        return None, ""

    def end(self) -> None:
        """Judge what takes all blocks: blank ones, and writes of several blocks of which only some are there."""
        for block in self._blank:
            history = self._history
            allowed = history.allowed(block)
            if history.may_be_blank(block):
                continue
            if self.records_lost and self._may_be_trimmed(block):
                self.unjudged += 1
            elif BLANK in allowed:
                self._lost_acknowledged(block, BLANK)
            elif UNKNOWN in allowed:
                self.unjudged += 1
            else:
                self._too_old(block, BLANK)
        for generation, done in [*self._history.open_writes, *self._history.writes_in_flight()]:
            if self._atomicity.holds(self._layout.offset(done.block), done.blocks * BLOCK_BYTES):
                self._see_whether_torn(generation, done)

    def _may_be_trimmed(self, block: int) -> bool:
        return PATTERNS[self._layout.thread(block) % len(PATTERNS)] == TRIMS

    def _see_whether_torn(self, generation: int, done: Operation) -> None:
        held = {block: self.after[block] for block in range(done.block, done.block + done.blocks)}
        if generation not in held.values():
            return
        older = [block for block, value in held.items() if value < generation]
        if older:
            self._wrong(older[0], "torn", f"{describe(held[older[0]])}; other blocks of the next write are there")

    def _wrong(self, block: int, kind: CutKind, text: str) -> None:
        self.counts[kind] += 1
        if kind in self._faults:
            self.by_part[block * PARTS // self._layout.blocks] += 1
            if kind in ("misplaced", "foreign", "corrupt"):
                self.after[block] = UNKNOWN
        offset = self._layout.offset(block)
        told = PowerCutBlock(offset, kind, text[:200])
        if len(self.first) < MOST_TOLD:
            self.first.append(told)
        elif kind in self._faults:
            # What only is told makes room for what is wrong.
            for place, other in enumerate(self.first):
                if other.kind not in self._faults:
                    self.first[place] = told
                    break


def is_blank(data: bytes) -> bool:
    """Return whether data are nothing but 0x00, or nothing but 0xFF."""
    return data[:1] in (b"\0", b"\xff") and data.count(data[:1]) == len(data)


def describe(value: int) -> str:
    """Return what a block holds, for a person."""
    if value == BLANK:
        return "blank"
    cycle, thread, number = parse_generation(value)
    return f"write {number} of thread {thread} in cycle {cycle}" if cycle else "the fill before the first cycle"
