# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Drives that are measured side by side: fewer of them once several throttle together, which tells that their host
can't cool so many. With ssd_parallel_drives: auto alone; a number that is given stays.
"""

from __future__ import annotations

import threading
import time
import typing as t

# How often a drive that waits looks whether the run is stopped.
LOOK_S = 1.0
# Heat of several drives is of one time if they throttle within so long.
TOGETHER_S = 900.0


class SideBySide:
    """Turns of the drives of a host job. note: is called with the number and why, once there are to be fewer."""

    def __init__(
        self, number: int, note: t.Callable[[int, str], None], clock: t.Callable[[], float] = time.monotonic
    ) -> None:
        self.number = number
        self._note, self._clock = note, clock
        self._changed = threading.Condition()
        self._running: set[str] = set()
        # In the order in which they came.
        self._waiting: list[str] = []
        # When each did last.
        self._throttled: dict[str, float] = {}

    def take_turn(self, drive: str, stop: threading.Event) -> None:
        """Wait, before a test that prepares the drive itself, until there is room; those that wait come first."""
        with self._changed:
            self._leave(drive)
            self._waiting.append(drive)
            while not stop.is_set() and drive not in self._next():
                self._changed.wait(LOOK_S)
            self._waiting.remove(drive)
            self._running.add(drive)

    def _next(self) -> list[str]:
        return self._waiting[: max(0, self.number - len(self._running))]

    def leave(self, drive: str) -> None:
        """The drive is done."""
        with self._changed:
            self._leave(drive)

    def _leave(self, drive: str) -> None:
        self._running.discard(drive)
        self._changed.notify_all()

    def throttled(self, drive: str) -> str:
        """A drive throttled in its test. Return what follows from that, as a sentence; "" if nothing."""
        with self._changed:
            now, running = self._clock(), len(self._running)
            self._throttled[drive] = now
            hot = sorted(name for name, at in self._throttled.items() if now - at <= TOGETHER_S)
            # Those that still run beyond the number began before it was lowered.
            if len(hot) < 2 or running > self.number or self.number < 2:
                return ""
            self.number = max(1, min(self.number, running) // 2)
            self._throttled.clear()
            why = f"{' and '.join(hot[:2])} throttled together, {running} side by side: look at this host's cooling"
            self._note(self.number, why)
        return f"{why}; from here on {self.number} at a time"
