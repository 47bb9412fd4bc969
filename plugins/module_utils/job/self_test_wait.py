# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Self-tests that a drive runs for somebody else, such as smartd: waited for before the drive is purged and measured,
and a cause of the rounds that they fall into. No command of ours ends one. And how one is followed to its end, whoever
started it.
"""

from __future__ import annotations

import time
import typing as t

from ..drive import attributes, self_test
from ..drive.identity import node
from ..drive.self_test import SelfTest
from ..measure.disturbances import DISTURBS, SELF_TEST, TOLD
from ..purge.wait import pause
from ..records.identity import Identity
from ..records.measurement import Cause, Condition
from ..run.folder import NEWS_S
from .drive_context import DriveContext

# A drive that tells its progress in tenths shows the next one within a fifth of what an extended self-test takes.
STILL_S, STILL_SHARE = 3600.0, 0.2
# In all: of what the drive itself says that an extended one takes; whatever it says.
MOST_TIMES, MOST_S = 2, 12 * 3600.0


class SelfTestStuck(Exception):
    """A self-test does not end; the message says what its owner can do."""


class SelfTests:
    """The self-tests of the drives that a station measures: its own, or those of its array."""

    def __init__(
        self,
        station: DriveContext,
        clock: t.Callable[[], float] = time.monotonic,
        sleep: t.Callable[[float], None] = time.sleep,
    ) -> None:
        self._station = station
        self.clock = clock
        self.sleep = sleep
        # By kernel name.
        self._seen: dict[str, SelfTest] = {}
        self._waited: list[Condition] = []

    def told(self) -> list[Condition]:
        """Return what was waited for since the last call.

        self_test told: for how long the host job waited for one. Limit: none
        """
        waited, self._waited = self._waited, []
        return waited

    def settle(self) -> None:
        """Look, and wait for what is under way."""
        self._look()
        self.wait()

    def causes_since_last(self) -> list[Cause]:
        """Look; return what ran since the last look, or the end of the last wait.

        self_test disturbs: `nvme self-test-log`, `smartctl -l selftest`, after each round: one that is under way, or a
          new entry of one that ended. Limit: any
        """
        before = dict(self._seen)
        self._look()
        return [
            Cause(SELF_TEST, DISTURBS, f"its {text}" if name == self._station.name else f"{name}: its {text}")
            for name, seen in self._seen.items()
            for text in _ran(before.get(name, self_test.UNKNOWN), seen)
        ]

    def wait(self) -> float:
        """Wait for those that the last look saw under way; return for how long. Raises SelfTestStuck, Interrupted."""
        began = self.clock()
        for name, seen in self._seen.items():
            if seen.is_running:
                self._wait_for(name, seen)
        return self.clock() - began

    def _look(self) -> None:
        self._seen = {name: self._read(name) for name in self._station.members or [self._station.name]}

    def about(self, name: str) -> Identity:
        """Return what the tools need to know of a drive."""
        return Identity(transport=attributes.transport(self._station.job.host, name), path=node(name))

    def _read(self, name: str) -> SelfTest:
        host, before = self._station.job.host, self._seen.get(name, self_test.UNKNOWN)
        look = self._station.watchdog.call
        return look("look for its self-test", lambda: self_test.read(host, self.about(name), before))

    def look_at(self, name: str) -> SelfTest:
        """Return what a drive tells now."""
        self._seen[name] = self._read(name)
        return self._seen[name]

    def _wait_for(self, name: str, first: SelfTest) -> None:
        self._station.show(phase="self_test", cell=None, time_left_s=None)
        advice = f"wait for it, or end it ({self_test.abort_command(self.about(name))}), and start again"
        waited_s = self.follow(name, first, advice)
        text = f"the host job waited {waited_s / 60:.0f} min for the {self_test.name(first)} of {node(name)}"
        self._waited.append(Condition(SELF_TEST, TOLD, text))

    def follow(self, name: str, first: SelfTest, advice: str, kind: str = "") -> float:
        """Wait until it is no longer under way; for how long. advice: where it does not end; kind: of one that we
        started, whose time left is shown.
        """
        station, seen = self._station, first
        began = moved = now = self.clock()
        while seen.is_running:
            share = None if seen.left_pct is None else 1 - seen.left_pct / 100
            if kind:
                station.show(time_left_s=self_test.left_s(seen, kind))
            # A step of its progress may take hours.
            pause(now - began, lambda done: station.tick(done, news_within_s=None), share, self.sleep)
            before, seen = seen, self.look_at(name)
            now = self.clock()
            moved = moved if seen.left_pct == before.left_pct else now
            self._check(seen, now - began, now - moved, advice, bool(kind))
        station.show(last=None, news_within_s=NEWS_S)
        return now - began

    def _check(self, seen: SelfTest, elapsed_s: float, still_s: float, advice: str, is_ours: bool) -> None:
        """Raise SelfTestStuck where one of the limits is passed."""
        if not seen.is_running:
            return
        extended_s = seen.extended_s or 0
        most_s = max(STILL_S, MOST_TIMES * extended_s) if extended_s else MOST_S
        # Of a large drive one that was asked for may well take longer than a night.
        most_s = most_s if is_ours else min(most_s, MOST_S)
        # No longer than the whole run may take of the drive.
        most_s = min(most_s, self._station.job.time_budget_s or most_s)
        if elapsed_s > most_s:
            raise SelfTestStuck(f"its {self_test.text(seen)}, did not end within {most_s:g} s; {advice}")
        if seen.left_pct is not None and still_s > max(STILL_S, STILL_SHARE * extended_s):
            raise SelfTestStuck(f"its {self_test.text(seen)}, stood still for {still_s:.0f} s; {advice}")


def _ran(before: SelfTest, seen: SelfTest) -> list[str]:
    if seen.is_running:
        return [f"{self_test.text(seen)}, was under way; smartd or somebody else started it"]
    # Each tool tells an entry in its own form, and the other one may answer where the first does not.
    is_comparable = None not in (before.is_running, seen.is_running) and before.tool == seen.tool
    if not is_comparable or before.ended == seen.ended:
        return []
    return ["log has another self-test: one began and ended since the last look"]
