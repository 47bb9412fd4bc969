# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a held drive keeps what it was given: the ActiveRange is written and read back, and what is wrong is read
again and judged by its contents (docs/integrity.md).
"""

from __future__ import annotations

import base64
import collections
import contextlib
import itertools
import json
import mmap
import os
import time
import typing as t

from ..core.deadline import STEP_TIMEOUT_S
from ..machine import cpus, memory_errors
from ..measure import fio, transfer
from ..measure.block_pattern import BLOCK_BYTES, Pattern, numbered
from ..measure.rounds import cell_s
from ..records.base import to_json
from ..records.identity import Identity
from ..records.measurement import IntegrityDetails, PassEnd, WrongBlock
from ..records.plan import MOST_PASSES, PlannedIntegrity, PlannedTest
from ..run.criteria import integrity_text, is_of_drive
from ..run.folder import NEWS_S
from . import wrong_blocks
from .before_read_back import BeforeReadBack
from .drive_context import Attempt, DriveContext
from .release_drive import LONGEST_REASON

# How often a wrong block is read again.
AGAIN = 3
# Beyond so many, counting says nothing more of a drive, and each may cost it its timeouts.
MOST_WRONG = 10_000
# Of these the contents are kept, and the record tells of the first.
MOST_KEPT, MOST_TOLD = 1000, 20
# Of the drive, for a map of where they lie.
PARTS = 100
# How often a pause shows that it goes on; a stop ends it at once.
PAUSE_NEWS_S = 5.0
# The parts of an identity that no two drives share.
_NAMES = ("serial", "wwn", "backing_file")


def drive_number(identity: Identity, drive: str) -> int:
    """Return the number of a drive that stands in the blocks that are written to it."""
    return numbered(32, *(str(getattr(identity, name)) for name in _NAMES), drive)


class OthersWrote(Exception):
    """Blocks are wrong, and somebody else wrote to the drive meanwhile: they say nothing of it."""


def write_and_read_back(station: DriveContext, test: PlannedTest, attempt: Attempt, time_left_s: float | None) -> bool:
    """Do what the test asks for, if it asks for it, and note what came of it; return whether no block was wrong.
    time_left_s: at most.

    Raises OthersWrote, NotPossible, fio.FioError where a pass could not be done or the host's memory erred,
    fio.Interrupted, Refused, Hangs.
    """
    if not test.integrity:
        return True
    reading = ReadBack(station, test, test.integrity, attempt)
    for number in itertools.takewhile(reading.is_due, itertools.count(1)):
        left_s = None if time_left_s is None else max(0.0, time_left_s - reading.elapsed_s())
        reading.heat(number, left_s)
        station.guard("integrity", phase="integrity", time_left_s=left_s)
        reading.one_pass(number)
    station.bench.settle()
    found = reading.note(reading.complete)
    if found.wrong_blocks and not is_of_drive(found, "complete"):
        if found.memory_errors:
            erred = f"the host counted memory errors that it could not correct ({found.memory_errors}) meanwhile"
            raise fio.FioError(f"{erred}, so nobody knows whose fault that is: {integrity_text(found)}")
        others = found.other_write_bytes
        wrote = "may have written" if others is None else f"wrote {others:,} bytes"
        text = "{0}; but somebody else {1} to the drive meanwhile, so nobody knows whose fault that is"
        raise OthersWrote(text.format(integrity_text(found), wrote))
    return not found.wrong_blocks


class ReadBack:
    """The passes of one test. asked: of it; complete: as of transfer.Done."""

    def __init__(self, station: DriveContext, test: PlannedTest, asked: PlannedIntegrity, attempt: Attempt) -> None:
        self._station, self._test, self._attempt = station, test, attempt
        self._asked = asked
        self._before = BeforeReadBack(station, asked, attempt)
        run_id = station.job.run_dir.run_id
        self._drive = drive_number(station.held.identity, station.drive)
        self._names = (run_id, station.drive, *attempt)
        self._size_bytes = station.active_bytes(test)
        self._patterns: list[Pattern] = []
        folder, name = station.job.run_dir.raw(station.drive), station.file(attempt, "wrong-blocks.jsonl")
        self._path = os.path.join(folder, name)
        self._first: list[WrongBlock] = []
        self._counts: t.Counter[str] = collections.Counter()
        self._by_part = [0] * PARTS
        # Those that can be read the second time too.
        self._unreadable = 0
        self._done = {writes: transfer.Done(True, 0, 0.0) for writes in (True, False)}
        self.complete = True
        self._by_pass: list[PassEnd] = []
        self._began_s = time.monotonic()
        # Between passes, by the kernel's count, or where there is none by fio's.
        self._heat_bytes = 0
        self._kernel_before = station.held.bytes_written()
        self._memory_before = memory_errors.read(station.job.host)

    def elapsed_s(self) -> float:
        """Return the time since the first pass began."""
        return time.monotonic() - self._began_s

    def is_due(self, number: int) -> bool:
        """Return whether the pass of this number is to be done."""
        asked = self._asked
        if not self.complete or (self._counts and asked.stop_at_first):
            return False
        is_further = number <= MOST_PASSES and self.elapsed_s() < asked.duration_s
        return number <= asked.passes or (is_further and not self._station.is_budget_spent(self._written_bytes()))

    def _written_bytes(self) -> int:
        return self._done[True].bytes + self._heat_bytes

    def heat(self, number: int, time_left_s: float | None) -> None:
        """Have the drive read and write at random before a pass other than the first, as long as the test asks for."""
        cell, station = self._asked.heat, self._station
        if cell is None or number == 1:
            return
        shown = {"time_left_s": time_left_s, "news_within_s": NEWS_S + 1.1 * cell_s(cell)}
        station.guard("integrity", phase="integrity", **shown)
        before = station.held.bytes_written()
        name = station.file(self._attempt, f"{number:04d}-heat")
        ran = station.bench.cell(name, cell, self._size_bytes, station.seed(self._attempt, number, "heat"))
        after, told = station.held.bytes_written(), ran.details.write
        by_fio = told.bytes if told else 0
        self._heat_bytes += by_fio if before is None or after is None else after - before

    def one_pass(self, number: int) -> None:
        """Write all of it, and read it back after what is to befall the drive before; odd passes in sequence, even ones
        in scattered order.
        """
        if number == 1:
            self._before.check()
        key = "/".join(map(str, (*self._names, number)))
        for pattern in self._patterns:
            pattern.forget()
        self._patterns.append(Pattern(key, self._drive, numbered(20, *self._names) << 10 | number))
        found_before = sum(self._counts.values())
        for writes in (True, False):
            wrong = sum(self._counts.values())
            try:
                self._transfer(number, writes)
                self._station.look()
                if writes:
                    self._pause(self._share(number - 0.5))
            except BaseException:
                # What is told of the passes before stands where the kernel's count is gone, or the disk is full.
                if sum(self._counts.values()) > wrong:
                    with contextlib.suppress(OSError, ValueError, IndexError):
                        self.note(False)
                raise
        new = sum(self._counts.values()) - found_before
        self._by_pass.append(PassEnd(round(self.elapsed_s(), 1), new))
        if new and (self._asked.duration_s or number < self._asked.passes):
            self.note(False)

    def _share(self, passes: float) -> float:
        """Return how far the test is after so many passes."""
        asked = self._asked
        return min(1.0, passes / asked.passes, self.elapsed_s() / asked.duration_s if asked.duration_s else 1.0)

    def _pause(self, share: float) -> None:
        """Reset the drive, and leave it alone at rest, as far and as long as the test asks for. share: of its passes,
        done.
        """
        self._before.reset()
        with self._before.resting():
            ends_s = time.monotonic() + self._asked.left_alone_s
            while time.monotonic() < ends_s:
                self._station.tick(share, news_within_s=None)
                self._station.job.stop.wait(min(PAUSE_NEWS_S, max(0.0, ends_s - time.monotonic())))

    def note(self, complete: bool) -> IntegrityDetails:
        """Note what all passes so far came to: that stands, whatever becomes of the test. complete: nothing is left
        to read.
        """
        station, before, after = self._station, self._kernel_before, self._station.held.bytes_written()
        ours = self._written_bytes()
        others = None if before is None or after is None else max(0, after - before - ours)
        found = self._details(others, complete)
        # The ledger first, as at the end of a test.
        if is_of_drive(found, "interrupted") and not station.held.evidence:
            station.held.keep_as_evidence(f"{self._test.name}: {integrity_text(found)}"[:LONGEST_REASON])
        station.note("integrity", **to_json(found), **self._attempt._asdict())
        return found

    def _transfer(self, number: int, writes: bool) -> None:
        station, done_before = self._station, number - 1 + 0.5 * (not writes)
        asked = transfer.Pass(
            handle=station.held.descriptor(),
            size_bytes=self._size_bytes,
            pattern=self._patterns[-1],
            writes=writes,
            scattered=number % 2 == 0,
            most_wrong=MOST_WRONG - sum(self._counts.values()),
            cpus=cpus.parse(station.bench.place.cpus or ""),
            most_unreadable=transfer.MOST_UNREADABLE - self._unreadable,
            enough_s=station.time_budget_ends_s,
        )

        def tick(share: float) -> None:
            station.tick(self._share(done_before + share / 2))

        done = transfer.run(asked, station.job.stop, tick, self._take, STEP_TIMEOUT_S)
        so_far = self._done[writes]
        self._done[writes] = transfer.Done(
            done.complete, so_far.bytes + done.bytes, round(so_far.seconds + done.seconds, 3)
        )
        self.complete = self.complete and done.complete

    def _take(self, wrong: transfer.WrongBlock) -> None:
        """Read a wrong block again, judge it, and keep what it held."""
        length = min(BLOCK_BYTES, self._size_bytes - wrong.offset)
        reads = self._station.watchdog.call(
            "read a block again", lambda: [self._read(wrong.offset, length) for _time in range(AGAIN)]
        )
        expected = self._patterns[-1].data(wrong.offset, length)
        right = sum(data == expected for data in reads)
        if wrong.found is None:
            self._unreadable += 1
            sectors, kind, told = 0, "unreadable", os.strerror(wrong.errno) if wrong.errno else "a short read"
        elif wrong.found == expected:
            raise fio.FioError(
                f"the block at byte {wrong.offset} was called wrong and is right: this host's memory or CPU errs"
            )
        else:
            judged = wrong_blocks.judge(
                wrong.found, wrong.offset, wrong_blocks.Written(self._patterns, self._size_bytes)
            )
            sectors, kind, told = judged.wrong_sectors, judged.kind, judged.told
        if right:
            kind, told = "transient", f"first {kind.replace('_', ' ')}: {told}"
        block = WrongBlock(len(self._patterns), wrong.offset, t.cast(t.Any, kind), told[:200], sectors, right)
        self._counts[kind] += 1
        self._by_part[wrong.offset * PARTS // self._size_bytes] += 1
        if len(self._first) < MOST_TOLD:
            self._first.append(block)
        if sum(self._counts.values()) <= MOST_KEPT:
            contents = {"expected": expected, "found": wrong.found or b""}
            kept = {name: base64.b64encode(data).decode() for name, data in contents.items()}
            with open(self._path, "a", encoding="ascii") as out:
                out.write(json.dumps({**to_json(block), **kept}) + "\n")

    def _read(self, offset: int, length: int) -> bytes:
        """Return a block as it reads now; nothing where it can't be read."""
        buffer = mmap.mmap(-1, BLOCK_BYTES)  # aligned, as O_DIRECT asks for
        try:
            return buffer[: os.preadv(self._station.held.descriptor(), [memoryview(buffer)[:length]], offset)]
        except OSError:
            return b""

    def _details(self, other_write_bytes: int | None, complete: bool) -> IntegrityDetails:
        """Return what all passes came to. other_write_bytes: of others, meanwhile; None: unknown."""
        written, read = self._done[True], self._done[False]
        return IntegrityDetails(
            passes=len(self._patterns),
            block_size_bytes=BLOCK_BYTES,
            bytes_written=written.bytes,
            bytes_read=read.bytes,
            write_s=written.seconds,
            read_s=read.seconds,
            other_write_bytes=other_write_bytes,
            wrong_blocks=dict(self._counts),
            complete=complete,
            resets=self._before.resets or None,
            power_state=self._before.power_state,
            by_pass=self._by_pass if self._asked.duration_s else None,
            memory_errors=memory_errors.new(self._memory_before, memory_errors.read(self._station.job.host)),
            first=sorted(self._first, key=lambda one: (one.pass_number, one.offset_bytes)),
            wrong_by_part=self._by_part if any(self._by_part) else None,
        )
