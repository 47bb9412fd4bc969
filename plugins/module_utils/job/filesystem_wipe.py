# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What becomes of a test's file system at its end: wiped from the drive, and only where nobody else can have used it.

Each copy of its superblock is zeroed, the first one last, so that what a job leaves which dies meanwhile is still known
for what it is; then the drive is discarded. docs/internals/filesystems.md.
"""

from __future__ import annotations

import mmap
import os
import time
import typing as t
from dataclasses import replace

from ..guard import probe, write_counters
from ..guard.block_reader import PlaceReader
from ..purge import generic
from ..purge.method import PurgeError
from ..records import base
from ..records.ledger import Written
from ..tools import filesystems
from .drive_context import DriveContext

# A stop gives the whole job a minute.
DISCARD_AT_STOP_S = 15.0
# Of all copies of a superblock, and of the scan: of large drives there are thousands.
ZERO_S = 300.0


class _Enough(Exception):
    """The job is to stop: the rest is not discarded."""


class Wipe:
    """Of the file system with this UUID on the drive of a station."""

    def __init__(self, station: DriveContext, identifier: str) -> None:
        self._station, self._id = station, identifier
        self._host = station.job.host
        self._written: Written | None = None
        # mkfs ended well; before that there may be no superblock yet.
        self.made = False
        # Names beside those that the test made: somebody mounted it too.
        self.foreign: t.Collection[str] = ()
        # Why it still lies there; "" once it does not.
        self.reason = "it was not unmounted"

    def begin(self, plain: int) -> None:
        """Note what the kernel counts by now: nobody of ours writes any more. plain: a descriptor. Raises OSError."""
        os.fsync(plain)  # what a mkfs that was killed left in the page cache
        self._written = write_counters.written(self._host, base.to_json(self._station.held.identity))

    def run(self, node: str) -> None:
        """Wipe it through the descriptor that is exclusive again, or keep the reason why not. node: of our own, for the
        scan. Raises Hangs.
        """
        held = self._station.held
        if self._written is not None:
            try:
                self.reason = self._wipe(node)
            except OSError as error:
                self.reason = f"the drive cannot be read or written: {error}"
        known = held.filesystem
        held.note_filesystem(replace(known, reason=self.reason) if known and self.reason else None)

    def _wipe(self, node: str) -> str:
        bounded = self._station.watchdog.call
        reason = bounded("wipe its file system", lambda: self._zero(node), ZERO_S)
        if reason:
            self._station.held.doubt()
            return reason
        if self._station.held.identity.max_discard_bytes:
            self._discard()
        return bounded("scan what is left", lambda: self._scan(node), ZERO_S)

    def _zero(self, node: str) -> str:
        """Take away its superblocks; why that may not be done."""
        held = self._station.held
        if self.foreign:
            return f"{len(self.foreign)} files or folders on it are not the test's: somebody mounted it meanwhile"
        now = write_counters.written(self._host, base.to_json(held.identity))
        if not (now.iostats and any(now.sectors)):  # drivers that don't count say 0
            return "the kernel does not count the drive's writes, so somebody may have used it since it was unmounted"
        if now != self._written:
            return "somebody wrote to it since it was unmounted"
        size, block = held.identity.sizes()
        start = PlaceReader(held.descriptor(), size, block).read(0, filesystems.SUPERBLOCK_BYTES)
        found = filesystems.superblock(start)
        if found is None and not self.made:
            return self._scan(node)
        if found is None or found.uuid != self._id:
            seen = "{0} with the UUID {1}".format(*found) if found else "no superblock"
            return f"{seen} lies there, not the file system that was made ({self._id})"
        places = [place for place in filesystems.superblock_places(start) if place <= size - len(start)]
        with mmap.mmap(-1, filesystems.SUPERBLOCK_BYTES) as zeros:  # page-aligned, as O_DIRECT asks for
            for place in sorted(places, reverse=True):
                os.pwrite(held.descriptor(), zeros, place)
        os.fsync(held.descriptor())
        return ""

    def _discard(self) -> None:
        station, stop = self._station, self._station.job.stop
        stopped_s: list[float] = []

        def tick(_share: float) -> None:
            if stop.is_set():
                stopped_s.append(time.monotonic())
                if stopped_s[-1] - stopped_s[0] > DISCARD_AT_STOP_S:
                    raise _Enough()

        try:
            held, bounded = station.held, station.watchdog.call
            path, size = str(held.identity.path), held.identity.sizes()[0]
            generic.discard(self._host, held.descriptor(), path, size, bounded, tick)
        except (_Enough, PurgeError):
            pass  # without its superblocks it is no file system any more

    def _scan(self, node: str) -> str:
        """Return what the guard's own scan finds."""
        held = self._station.held
        return "; ".join(probe.superblocks(self._host, held.identity, node, held.descriptor()))
