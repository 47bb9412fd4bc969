# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Scrub a part of a drive in service: read it in sequence at a limited rate, another part each time, and tell where it
can't be read (docs/in-service.md). The descriptor that is read through was opened for reading alone.
"""

from __future__ import annotations

import contextlib
import json
import mmap
import os
import time
import typing as t

from ..core.files import make_folders, own_slug, read_json, write_atomic
from ..core.host import Host
from ..core.sysfs import number
from ..records.base import to_json
from ..records.identity import Identity
from ..records.in_service import MIB, PlannedScrub, ScrubDetails, UnreadableBlock
from ..records.plan import PlannedTest
from .drive_context import Attempt, DriveContext
from .give_way import LOOK_S, GiveWay

# No chunk is larger, nor smaller: what a drive takes as one I/O, so that ours can be told from those of others.
MOST_CHUNK_BYTES, LEAST_CHUNK_BYTES, PAGE_BYTES = MIB, 128 << 10, 4096
# Where a chunk can't be read its blocks are read one by one.
BLOCK_BYTES = 4096
# Each costs the timeouts of several reads; what was found by then is enough to fail the drive.
MOST_UNREADABLE, MOST_TOLD = 100, 20
FOLDER = "scrubs"


class Place(t.NamedTuple):
    """Where the next part of a drive begins, kept beside the runs on its host.

    A run begins where the one before it ended, so that the nights together read all of the drive, whatever days they
    fall on. What the file of a drive says is a hint: a lost one begins with the first block again.
    """

    path: str
    size_bytes: int

    @classmethod
    def of(cls, state_dir: str, identity: Identity, drive: str) -> Place:
        """Return that of a drive. Raises OSError."""
        folder = os.path.join(state_dir, FOLDER)
        make_folders(folder)
        who = identity.serial or identity.wwn or drive
        return cls(os.path.join(folder, f"{own_slug(who)}.json"), identity.sizes()[0])

    def next_byte(self) -> int:
        """Return where to begin, in whole chunks."""
        with contextlib.suppress(OSError, ValueError, TypeError, KeyError, AttributeError):
            kept = read_json(self.path) or {}
            if kept.get("size_bytes") == self.size_bytes and 0 < int(kept["next_byte"]) < self.size_bytes:
                return int(kept["next_byte"]) // MOST_CHUNK_BYTES * MOST_CHUNK_BYTES
        return 0

    def keep(self, next_byte: int) -> None:
        """Note where the next run begins. Raises OSError."""
        begin = next_byte if next_byte < self.size_bytes else 0
        write_atomic(self.path, json.dumps({"next_byte": begin, "size_bytes": self.size_bytes}) + "\n")


def perform(station: DriveContext, test: PlannedTest, attempt: Attempt) -> None:
    """Do what the test asks for, if it asks for it, and note what came of it.

    Raises Busy, fio.Interrupted, Refused, Hangs, OSError.
    """
    if not test.scrub or not test.in_service:
        return
    station.guard("measure", phase="measure", time_left_s=test.scrub.duration_s + test.in_service.patience_s)
    place = Place.of(station.job.run_dir.state_dir, station.held.identity, station.drive)
    reading = Scrub(station, test.scrub, GiveWay(station, test.in_service), place.next_byte())
    try:
        reading.run()
    finally:
        # What was found stands, whatever ended the test.
        station.note("scrub", **to_json(reading.details()), **attempt._asdict())
        place.keep(reading.end)


def chunk_bytes(host: Host, name: str) -> int:
    """Return the largest power of two that a drive takes as one I/O, by the kernel's limits."""
    queue = f"/sys/block/{name}/queue/"
    sectors, segments = number(host, queue + "max_sectors_kb"), number(host, queue + "max_segments")
    limits = [1024 * sectors if sectors else 0, PAGE_BYTES * segments if segments else 0]
    most = min([MOST_CHUNK_BYTES, *(limit for limit in limits if limit)])
    return max(LEAST_CHUNK_BYTES, 1 << (most.bit_length() - 1))


class Scrub:
    """One part of a drive. begin: its first byte; end: up to where it was read."""

    def __init__(
        self,
        station: DriveContext,
        asked: PlannedScrub,
        give_way: GiveWay,
        begin: int,
        clock: t.Callable[[], float] = time.monotonic,
    ) -> None:
        size_bytes, block_bytes = station.held.identity.sizes()
        self._station, self._asked, self._give_way, self._clock = station, asked, give_way, clock
        self._block = max(BLOCK_BYTES, block_bytes)
        self._begin = self.end = begin
        self._until = min(size_bytes, begin + asked.part_bytes(size_bytes))
        self._chunk = chunk_bytes(station.job.host, station.name)
        self._buffer = mmap.mmap(-1, self._chunk)  # aligned, as O_DIRECT asks for
        self._found: list[UnreadableBlock] = []
        self._began_s = clock()
        self._seconds = 0.0

    def run(self) -> None:
        """Read it all, or up to the most unreadable blocks that are looked for."""
        try:
            self._give_way.wait()
            self._give_way.begin()
            while self.end < self._until and len(self._found) < MOST_UNREADABLE:
                began = self._clock()
                self._station.watchdog.call("read it", self._read_for_a_second)
                self._station.tick((self.end - self._begin) / (self._until - self._begin))
                if self._give_way.is_busy():
                    self._give_way.wait()
                    self._give_way.begin()
                elif self.end < self._until:
                    # A pace that is behind is not caught up with.
                    time.sleep(max(0.0, began + LOOK_S - self._clock()))
        finally:
            self._seconds = self._clock() - self._began_s
        self._station.look()

    def _read_for_a_second(self) -> None:
        """Read what is due in a second, evenly; a slow drive gets less."""
        began, first = self._clock(), self.end
        rate = self._asked.rate_mib_s * MIB
        while self.end < min(self._until, first + rate) and len(self._found) < MOST_UNREADABLE:
            length = min(self._chunk, self._until - self.end)
            self._read(self.end, length)
            self.end += length
            now = self._clock()
            if now - began >= LOOK_S:
                return
            time.sleep(max(0.0, began + (self.end - first) / rate - now))

    def _read(self, offset: int, length: int) -> None:
        """Read a chunk; where that fails, its blocks one by one."""
        if self._error(offset, length) is None:
            return
        for start in range(offset, offset + length, self._block):
            if len(self._found) >= MOST_UNREADABLE:
                return
            part = min(self._block, offset + length - start)
            error = self._error(start, part)
            if error is not None:
                self._found.append(UnreadableBlock(start, part, error))

    def _error(self, offset: int, length: int) -> str | None:
        """Return why it could not be read; None: it could."""
        why: str | None = None
        done = length
        try:
            done = os.preadv(self._station.held.descriptor(), [memoryview(self._buffer)[:length]], offset)
        except OSError as error:
            why = os.strerror(error.errno) if error.errno else str(error)
        self._give_way.did(1, length)
        return why if done == length else f"only {done} bytes came"

    def details(self) -> ScrubDetails:
        """Return what came of it."""
        return ScrubDetails(
            from_bytes=self._begin,
            to_bytes=self._until,
            bytes_read=self.end - self._begin,
            seconds=round(self._seconds, 3),
            paused_s=round(self._give_way.paused_s, 3),
            unreadable_blocks=len(self._found),
            complete=self.end >= self._until,
            first=self._found[:MOST_TOLD],
        )
