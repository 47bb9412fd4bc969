# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Give way to those who use a drive in service: wait while they do much I/O, and give up when that does not end."""

from __future__ import annotations

import time
import typing as t

from ..measure import kernel_counters
from ..records.in_service import MIB, PlannedInService
from .drive_context import DriveContext

# Others' rates are those of so long; a second is long for a drive and short for a user.
LOOK_S = 1.0
SECTOR_BYTES = 512


class Busy(Exception):
    """The host's own I/O on the drive did not end."""


class OfOthers(t.NamedTuple):
    """What others did on the drive, for each second."""

    iops: float
    bytes_per_s: float

    def is_beyond(self, asked: PlannedInService) -> bool:
        """Return whether that is more than the test may be beside."""
        return self.iops > asked.busy_iops or self.bytes_per_s > asked.busy_mib_s * MIB


class _Count(t.NamedTuple):
    time_s: float
    ios: int
    bytes: int


class GiveWay:
    """What others do on one drive during one test. asked: of the test; clock, sleep: for tests of this."""

    def __init__(
        self,
        station: DriveContext,
        asked: PlannedInService,
        clock: t.Callable[[], float] = time.monotonic,
        sleep: t.Callable[[float], None] = time.sleep,
    ) -> None:
        self._station, self._asked = station, asked
        self._clock, self._sleep = clock, sleep
        # Our own, by whoever does it.
        self._own_ios, self._own_bytes = 0, 0
        self._last: _Count | None = None
        self._others: OfOthers | None = None
        self.paused_s = 0.0

    def did(self, ios: int, length: int) -> None:
        """Note I/O of our own, which the kernel counts as well."""
        self._own_ios += ios
        self._own_bytes += length

    def is_due(self) -> bool:
        """Return whether it is time for a look."""
        return self._last is None or self._clock() - self._last.time_s >= LOOK_S

    def begin(self) -> None:
        """Let what was done until now count for nobody."""
        self._last = self._count()

    def look(self) -> OfOthers | None:
        """Return what others did since the last look; None where the kernel does not count, or there was none."""
        last, now = self._last, self._count()
        self._last = now
        if last is None or now is None or now.time_s <= last.time_s:
            return None
        seconds = now.time_s - last.time_s
        # What is under way is counted when it ends.
        return OfOthers(max(0, now.ios - last.ios) / seconds, max(0, now.bytes - last.bytes) / seconds)

    def is_busy(self) -> bool:
        """Look; return whether others did more than the test may be beside. Where nobody counts, they did not."""
        self._others = self.look()
        return self._others is not None and self._others.is_beyond(self._asked)

    def wait(self) -> float:
        """Look for a second, and wait as long as others are busy; for how long, the look included.

        Raises Busy once the patience of the test is over, and Interrupted.
        """
        began = looked = self._clock()
        self.begin()
        while True:
            self._sleep(LOOK_S)
            self._station.tick(None)
            if not self.is_busy():
                break
            self.paused_s, looked = self.paused_s + self._clock() - looked, self._clock()
            if self.paused_s >= self._asked.patience_s:
                raise self._busy()
        # What others wrote meanwhile is none of the next cell.
        self._station.bench.settle()
        return self._clock() - began

    def _busy(self) -> Busy:
        others = self._others or OfOthers(0, 0)
        return Busy(
            f"the drive was busy with the host's own I/O: others did {others.iops:,.0f} I/Os and "
            f"{others.bytes_per_s / MIB:,.1f} MiB a second, more than {self._asked.busy_iops:,} or "
            f"{self._asked.busy_mib_s:,} MiB, and went on for the {self._asked.patience_s:,} s that the test waits"
        )

    def _count(self) -> _Count | None:
        """Return what the kernel counted of all, less our own."""
        text = self._station.job.host.get(f"/sys/block/{self._station.name}/stat") or ""
        if self._station.job.host.get(f"/sys/block/{self._station.name}/queue/iostats") == "0":
            return None
        stat = kernel_counters.counters(text)
        if stat is None:
            return None
        sectors = sum(stat[kernel_counters.SECTORS[way]] for way in ("read", "write"))
        ios = sum(stat[place] for place in kernel_counters.IOS)
        return _Count(self._clock(), ios - self._own_ios, sectors * SECTOR_BYTES - self._own_bytes)
