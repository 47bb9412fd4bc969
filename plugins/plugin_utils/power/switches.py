# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How the power of a host is cut: by its BMC, or by a reset that leaves it on."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
import typing as t

from ...module_utils.records.host_snapshot import CutReach
from . import bmc_proof
from .bmc import OFF, ON, Bmc, BmcAccess, BmcError, problem
from .ipmi import IpmiBmc
from .redfish import RedfishBmc

# A BMC may take its time to do what it was asked for, and to say so.
SWITCH_S = 120.0
# A host that is off stays off unless somebody switches it on.
ON_S = 600.0
ASK_EVERY_S = 1.0


class NotCut(Exception):
    """The power was not cut; the message says why. is_off: the host may be without power."""

    def __init__(self, message: str, is_off: bool = False) -> None:
        super().__init__(message)
        self.is_off = is_off


class PowerSwitch(t.Protocol):
    """What cuts the power. Both raise NotCut."""

    def prove(self) -> None:
        """Check that it is this host's power that would be cut, and that it can be."""

    def cut(self) -> None:
        """Cut it, and bring it back."""

    def last_line(self) -> str:
        """Return what is on record of a host that did not come back; "": nothing."""


def bmc_of(access: BmcAccess) -> Bmc:
    """Return the BMC that a host's variables name."""
    return IpmiBmc(access) if access.protocol == "ipmi" else RedfishBmc(access)


class Mark(t.Protocol):
    """What tells of a host that is switched off, should this process end before it is on again."""

    def set(self) -> None:
        """Make it. Raises OSError."""

    def clear(self) -> None:
        """Take it back."""


class BmcSwitch:
    """The power of a host, by its BMC. reach: as the host told it while it was on. mark: of a host that is cut."""

    def __init__(
        self,
        access: BmcAccess,
        reach: CutReach,
        off_s: float,
        mark: Mark | None = None,
        bmc: Bmc | None = None,
        clock: t.Callable[[], float] = time.monotonic,
        sleep: t.Callable[[float], None] = time.sleep,
    ) -> None:
        self._access, self._reach, self._off_s = access, reach, off_s
        self._mark, self._bmc, self._clock, self._sleep = mark, bmc, clock, sleep

    def prove(self) -> None:
        """Check, anew before each cut as addresses move, that the BMC is this host's. Raises NotCut."""
        missing = problem(self._access)
        if missing:
            raise NotCut(f"{missing}: a hard power cut needs the host's BMC")
        try:
            self._bmc = self._bmc or bmc_of(self._access)
            told = self._bmc.identity()
        except BmcError as error:
            raise NotCut(f"the BMC {self._access.address} did not say whose it is: {error}") from None
        why = bmc_proof.problem(told, self._reach.uuid, list(self._reach.serials))
        if why:
            raise NotCut(f"the BMC {self._access.address} is not proved to be this host's: {why}")

    def cut(self) -> None:
        """Switch off hard, wait, and switch on again. Raises NotCut."""
        self.prove()
        bmc = t.cast(Bmc, self._bmc)
        if self._mark:
            try:
                self._mark.set()
            except OSError as error:
                raise NotCut(f"{error.filename or 'its mark'} can't be written: {error.strerror}") from None
        with _signals_held():
            self._switch(bmc.force_off, OFF, SWITCH_S)
            self._sleep(self._off_s)
            self._switch(bmc.switch_on, ON, ON_S)
        if self._mark:
            self._mark.clear()

    def last_line(self) -> str:
        """Return what the BMC has last on record of the host."""
        try:
            return self._bmc.last_line() if self._bmc else ""
        except BmcError:
            return ""

    def switch_on(self) -> None:
        """Switch on a host that was left off, where the BMC is still its own. Raises NotCut."""
        self.prove()
        self._switch(t.cast(Bmc, self._bmc).switch_on, ON, ON_S)

    def _switch(self, order: t.Callable[[], None], state: str, limit_s: float) -> None:
        """Give an order until the BMC says that it was done: it may be late, or lose one."""
        until, said = self._clock() + limit_s, "no answer"
        while True:
            try:
                order()
            except BmcError as error:
                said = str(error)
            for _look in range(10):
                try:
                    power = t.cast(Bmc, self._bmc).power()
                except BmcError as error:
                    said = str(error)
                else:
                    if power == state:
                        return
                    said = f"it says that the power is {power}"
                if self._clock() >= until:
                    what = f"the BMC {self._access.address} did not switch the power {state} within {limit_s:g} s"
                    raise NotCut(f"{what}: {said}", is_off=state == ON)
                self._sleep(ASK_EVERY_S)


@contextlib.contextmanager
def _signals_held() -> t.Iterator[None]:
    """Keep back what ends a play until its host is on again."""
    if threading.current_thread() is not threading.main_thread():
        yield  # Python's handlers run in the main thread alone
        return
    came: list[int] = []
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    handlers = {number: signal.signal(number, lambda *received: came.append(received[0])) for number in numbers}
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        for late in came:
            signal.raise_signal(late)


class ResetSwitch:
    """A reset of the host by its own kernel: its power stays, so what a drive's cache holds may stay too."""

    def __init__(self, reset: t.Callable[[], None]) -> None:
        self._reset = reset

    def prove(self) -> None:
        """The host does it itself."""

    def cut(self) -> None:
        """Have the kernel reset the machine."""
        self._reset()

    def last_line(self) -> str:
        """Return "": nobody is asked."""
        return ""
