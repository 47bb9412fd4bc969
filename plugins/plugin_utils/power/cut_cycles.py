# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The cycles of a power-cut test on one host, as the controller plays them: wait until all of its drives are written
to, cut the power at a random time, wait for the host, and have its job go on, which reads back and writes anew.

The host's journal alone says at which cycle it is, so a controller that dies, or a host, changes nothing: whoever plays
on begins by asking.
"""

from __future__ import annotations

import time
import typing as t
from dataclasses import dataclass

from ...module_utils.records.plan import PlannedPowerCut
from ...module_utils.records.run_files import DriveStatus, Status
from ...module_utils.run import states
from ..watch.remote_status import HostStatus
from .switches import NotCut, PowerSwitch

LOOK_EVERY_S = 1.0
# A job that dies so often without a cut is not started again.
MOST_DEATHS = 3
WRITING = "writing"


class CutHost(t.Protocol):
    """The host whose power is cut."""

    def look(self) -> HostStatus | None:
        """Return how the run stands on it; None: it gave no answer in its time."""

    def go_on(self) -> str:
        """Have the run's job started again; return "", or why that did not work."""

    def forget(self) -> None:
        """Give up connections to the boot before."""


class Played(t.NamedTuple):
    """What came of it. problem: why it ended before the job did; "": it did not. is_back: whether the host answers."""

    cuts: int
    problem: str = ""
    is_back: bool = True


@dataclass
class Cycles:
    """Those of one host. tell: prints a line; note: keeps a record of a cut, {cycle, …}."""

    host: CutHost
    switch: PowerSwitch
    asked: PlannedPowerCut
    tell: t.Callable[[str], None]
    note: t.Callable[[dict[str, t.Any]], None]
    uniform: t.Callable[[float, float], float]
    clock: t.Callable[[], float] = time.monotonic
    sleep: t.Callable[[float], None] = time.sleep

    def play(self) -> Played:
        """Play them until the run's job has ended, or something keeps it from that. Never leaves a host off that it
        can switch on.
        """
        cuts, deaths, waits_since = 0, 0, self.clock()
        while True:
            seen = self.host.look()
            if seen is None:
                if self.clock() - waits_since > self.asked.back_s:
                    return Played(cuts, self._silent(cuts), is_back=False)
                self.sleep(LOOK_EVERY_S)
                continue
            waits_since = self.clock()
            if seen.state in states.FINAL_STATES:
                return Played(cuts)
            if seen.state not in states.LIVE_STATES or seen.status is None:
                deaths += 1
                why = self._start(deaths, seen)
                if why:
                    return Played(cuts, why)
                continue
            cycle = ready_cycle(seen.status)
            if cycle is None:
                self.sleep(LOOK_EVERY_S)
                continue
            self.sleep(self.uniform(self.asked.min_write_s, self.asked.max_write_s))
            again = self.host.look()
            # Meanwhile a stop may have come, or a drive ended.
            if again is None or again.status is None or ready_cycle(again.status) != cycle:
                continue
            problem = self._cut(cycle, again)
            if problem:
                return problem._replace(cuts=cuts + problem.cuts)
            cuts, deaths, waits_since = cuts + 1, 0, self.clock()

    def _silent(self, cuts: int) -> str:
        after = "after its power was cut" if cuts else "although its power was not cut by this play"
        return f"the host gave no answer for {self.asked.back_s:g} s {after}; {self._console()}"

    def _console(self) -> str:
        """Return where to look, and what the BMC tells of it."""
        told = self.switch.last_line()
        return f"look at its console; {told}" if told else "look at its console"

    def _start(self, deaths: int, seen: HostStatus) -> str:
        """Have the job go on; return why that is of no use."""
        if seen.state == states.ABSENT:
            return "the host knows no such run"
        if deaths > MOST_DEATHS:
            return f"the host job died {MOST_DEATHS} times although the power was on; see its job.log"
        until, why = self.clock() + self.asked.back_s, ""
        while self.clock() <= until:
            why = self.host.go_on()
            if not why:
                return ""
            self.sleep(LOOK_EVERY_S)
        return f"the host is back, and its job does not start: {why}"

    def _cut(self, cycle: int, before: HostStatus) -> Played | None:
        """Cut the power, and wait until the host is back in another boot; what came of it where it is not."""
        self.tell(f"cut {cycle} of {self.asked.cycles}: now")
        record: dict[str, t.Any] = {"cycle": cycle, "mode": self.asked.mode, "boot_id": before.boot_id}
        try:
            self.switch.cut()
        except NotCut as error:
            self.note({**record, "problem": str(error)})
            return Played(0, f"cut {cycle}: {error}", is_back=not error.is_off)
        self.host.forget()
        on_at = self.clock()
        seen: HostStatus | None = None
        while self.clock() - on_at <= self.asked.back_s:
            seen = self.host.look()
            if seen is not None and seen.boot_id and seen.boot_id != before.boot_id:
                back_s = round(self.clock() - on_at, 1)
                self.tell(f"cut {cycle} of {self.asked.cycles}: the host is back after {back_s:.0f} s")
                self.note({**record, "back_s": back_s, "boot_id_after": seen.boot_id})
                return None
            self.sleep(LOOK_EVERY_S)
        if seen is not None:
            why = "the host answers, and has not booted anew: it was not its power that was cut"
        else:
            why = f"the host did not come back within {self.asked.back_s:g} s (power_cut.back_s); {self._console()}"
        self.note({**record, "problem": why})
        return Played(1, f"cut {cycle}: {why}", is_back=seen is not None)


def ready_cycle(status: Status) -> int | None:
    """Return the cycle of a host all of whose drives are written to, as it may be cut; None where one is not there yet,
    or none is left. Of several drives the highest counts: one may have fewer behind it.
    """
    active = [drive for drive in status.drives if drive.phase not in ("queued", "done")]
    if not active or not all(map(_is_written, active)):
        return None
    return max(drive.power_cut.cycle for drive in active if drive.power_cut)


def _is_written(drive: DriveStatus) -> bool:
    return drive.phase == "power_cut" and drive.power_cut is not None and drive.power_cut.step == WRITING
