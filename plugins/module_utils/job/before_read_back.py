# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What befalls a held drive between the writing of an integrity test and its reading back, besides time: its controller
is reset, and it rests in a power state in which it does no I/O (docs/integrity.md).
"""

from __future__ import annotations

import contextlib
import typing as t

from ..drive import attributes, entry, power
from ..guard.controller_reset import InUse, alone_on_controller
from ..measure import fio
from ..measure.disturbances import TOLD
from ..records.measurement import Condition
from ..records.plan import PlannedIntegrity
from .drive_context import Attempt, DriveContext

# A controller that has I/O timeouts before it is ready again takes that long (CAP.TO is 127.5 s at most).
RESET_S = 180.0


class NotPossible(Exception):
    """The drive can't do what the test asks for, or somebody else would notice; the message says why."""


class BeforeReadBack:
    """resets: how many there were; power_state: the one in which it rested, None: in none. attempt: whose it is."""

    def __init__(self, station: DriveContext, asked: PlannedIntegrity, attempt: Attempt) -> None:
        self._station, self._asked, self._attempt = station, asked, attempt
        self.resets = 0
        self.power_state: int | None = None

    def check(self) -> None:
        """See, before anything is written, that all of it can be done. Raises NotPossible."""
        if self._asked.reset:
            with self._alone("be reset"):
                pass
        if self._asked.low_power:
            with self.resting():
                pass

    def reset(self) -> None:
        """Reset the controller, if the test asks for it. Raises NotPossible, FioError where it does not come back."""
        if not self._asked.reset:
            return
        host = self._station.job.host
        self._station.guard("integrity")
        with self._alone("be reset") as node, self._station.kernel_log.by_us():
            # The kernel waits until the controller is ready again.
            argv = ["nvme", "reset", node]
            answer = self._station.watchdog.call("reset the controller", lambda: host.run(argv, RESET_S), RESET_S)
        if answer.rc != 0:
            raise fio.FioError(f"its controller was not reset: {answer.ended()}")
        self.resets += 1
        self._station.look()
        # What the drive keeps only until then, such as its write cache's state, is to hold for the next pass too.
        self._station.make_settings_again(self._attempt)

    @contextlib.contextmanager
    def resting(self) -> t.Iterator[None]:
        """Have the drive rest meanwhile in its power state of least power, if the test asks for it. It is its
        controller's, so nobody may use another of its namespaces. Raises NotPossible.
        """
        if not self._asked.low_power:
            yield
            return
        host, path = self._station.job.host, self._station.held.path
        is_nvme = attributes.transport(host, self._station.name) == "nvme"
        before, deepest = (power.read(host, path), power.deepest(host, path)) if is_nvme else (None, None)
        if before is None or before.number is None or deepest is None:
            raise NotPossible("the drive can't rest: it tells of no power state in which it does no I/O")
        with self._alone("rest") as node:
            problem = power.enter(host, node, deepest)
            try:
                if problem:
                    raise NotPossible(f"the drive does not rest: {problem}")
                self.power_state = deepest
                yield
                self._see_whether_it_stayed(node, deepest)
            finally:
                power.enter(host, node, before.number if before.works is not False else 0)

    def _see_whether_it_stayed(self, node: str, deepest: int) -> None:
        now = power.reported(self._station.job.host, node)
        text = f"it was put to rest in power state {deepest}, and did not stay there: it reported "
        told = Condition("power_state", TOLD, text + power.named(now))
        if now != deepest and told not in self._station.told:
            self._station.told.append(told)

    @contextlib.contextmanager
    def _alone(self, what: str) -> t.Iterator[str]:
        try:
            programs = entry.parse(self._station.plan.selector).options.passing_programs
            with alone_on_controller(self._station.job.host, self._station.name, programs) as node:
                yield node
        except InUse as error:
            raise NotPossible(f"its controller can't {what}: {error}") from None
