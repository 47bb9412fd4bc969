# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a purge method is, and what it gets to work with. A family of methods is a file `purge/<family>.py`, and
a line of `FAMILIES` (purge/methods.py).
"""

from __future__ import annotations

import threading
import time
import typing as t
from dataclasses import dataclass

from ..core.host import Host, Result, Running
from ..core.progress import Progress
from ..drive.device_nodes import strangers
from ..drive.held_drive import HeldDrive
from ..drive.hidden_capacity import SLOWEST_BYTES_PER_S
from ..records.identity import Identity
from ..records.plan import PlannedPurge
from ..records.purge import Capabilities, LbaFormat, PurgeClass
from ..records.vendor_tools import CardFormat
from .wait import Stuck, watch

PTS: PurgeClass = "pts"
NOT_PTS: PurgeClass = "not_pts"
Kind = t.TypeVar("Kind", bound=Capabilities)
Command = t.List[str]

# Without a figure of the drive's own: what the shortest purge may take, and how long its progress may stand still.
_LEAST_TIMEOUT_S = 1800.0
_LEAST_STUCK_S = 900.0
_STUCK_S_PER_TB = 120.0
TICK_S = 1.0


class PurgeError(Exception):
    """The purge could not be done; the message says what to do. `code`: one of the guard's, where it could not even
    begin.
    """

    def __init__(self, message: str, code: str = "") -> None:
        super().__init__(message)
        self.code = code


def timeout_s(size_bytes: int, options: PlannedPurge, bytes_per_s: float = SLOWEST_BYTES_PER_S) -> float:
    """Return how long a purge may take: the option `timeout_s`, else by the capacity. `bytes_per_s`: the slowest that
    is right.
    """
    return float(options.timeout_s or round(_LEAST_TIMEOUT_S + size_bytes / bytes_per_s))


def stuck_s(size_bytes: int, options: PlannedPurge) -> float:
    """Return how long the progress may stand still: the option `stuck_s`, else by the capacity."""
    return float(options.stuck_s or round(_LEAST_STUCK_S + _STUCK_S_PER_TB * size_bytes / 1e12))


@dataclass(frozen=True)
class Done:
    """What a method knows of a purge that it did, for the journal's purge record; None: nothing."""

    # Whether it had to wait for a sanitize or a format that ran already.
    waited_for_another: bool | None = None
    # By fio.
    bytes_written: int | None = None
    # In use before it, and after it.
    lba_format_before: LbaFormat | CardFormat | None = None
    lba_format_after: LbaFormat | CardFormat | None = None


def _nobody(_capabilities: Capabilities) -> str:
    return ""


def _nothing(_work: Work, _found: Capabilities) -> Done:
    return Done()


def _by_capacity(capabilities: Capabilities, options: PlannedPurge) -> float:
    return timeout_s(capabilities.size_bytes or 0, options)


@dataclass(frozen=True)
class Method(t.Generic[Kind]):
    """One way to purge. All but `run`, `progress` and `read_again` are pure: the controller calls them with what the
    host reported. These get it as read right before the purge.

    strength: `auto` takes the highest that is supported and hits nothing else. supported: "" or why the drive can't.
    commands: exactly what `run` would run, in order; raises PurgeError for options that the drive can't do. run: does
    it; raises PurgeError. hits_others: "" or what else it would erase. unknown: "" or why nobody knows whether the
    drive has it: then only who names it gets it. timeout_s: how long it may take. progress: how far such a purge is
    that goes on in the drive by itself, for one that was left behind; None: it ends with its command. read_again: what
    is known of one that was left behind, by what the drive tells now; it gets the capabilities before it; raises
    PurgeError. sets_lba_size: whether it can do the option lba_size_bytes. slow: it writes or erases block by block, so
    it takes as long as a full overwrite, as far as anybody can tell before. is_hint: no drive need do it, so old data
    after it is told of, where the test writes the drive itself. what: the command, as its standard names it
    (docs/purge.md).
    """

    name: str
    family: str
    purge_class: PurgeClass
    strength: int
    supported: t.Callable[[Kind], str]
    commands: t.Callable[[Kind, PlannedPurge], list[Command]]
    run: t.Callable[[Work, Kind], Done]
    hits_others: t.Callable[[Kind], str] = _nobody
    unknown: t.Callable[[Kind], str] = _nobody
    timeout_s: t.Callable[[Kind, PlannedPurge], float] = _by_capacity
    progress: t.Callable[[Work, Kind], Progress] | None = None
    read_again: t.Callable[[Work, Kind], Done] = _nothing
    sets_lba_size: bool = False
    slow: bool = False
    is_hint: bool = False
    what: str = ""


class Work:
    """What a method works with.

    options: of the test. tick(share or None): shows progress and raises fio.Interrupted on a stop. note(event,
    **fields): into the journal. fill(tick): overwrites the drive once through fio, and returns how many bytes it wrote.
    bounded(what, step): does I/O of our own, which may hang with the drive; raises Hangs then.
    """

    def __init__(
        self,
        *,
        host: Host,
        held: HeldDrive,
        options: PlannedPurge,
        tick: t.Callable[[float | None], None],
        note: t.Callable[..., None],
        fill: t.Callable[[t.Callable[[float | None], None]], int],
        clock: t.Callable[[], float] = time.monotonic,
        sleep: t.Callable[[float], None] = time.sleep,
        bounded: t.Callable[[str, t.Callable[[], t.Any]], t.Any] = lambda _what, step: step(),
    ) -> None:
        self.host = host
        self.held = held
        self.options = options
        self.tick = tick
        self.note = note
        self.fill = fill
        self.clock = clock
        self.sleep = sleep
        self.bounded = bounded

    @property
    def identity(self) -> Identity:
        """The drive's identity as the guard last saw it."""
        return self.held.identity

    @property
    def path(self) -> str:
        """Its device node."""
        return str(self.held.identity.path)

    @property
    def kernel_name(self) -> str:
        """The kernel's name of it."""
        return str(self.held.identity.kernel_name)

    @property
    def size_bytes(self) -> int:
        """Its capacity, which is known of a drive that is held."""
        return self.held.identity.sizes()[0]

    @property
    def lba_size_bytes(self) -> int:
        """The size of its logical block, which is known of a drive that is held."""
        return self.held.identity.sizes()[1]

    @property
    def handle(self) -> int:
        """The descriptor that we hold. It is another one after `lend`, so never keep it. Raises Refused when nothing is
        held.
        """
        return self.held.descriptor()

    def lend(self, may_change: t.Collection[str] = ()) -> t.ContextManager[None]:
        """While inside, the drive is closed for a tool that needs it itself, and its lock is kept; then it is opened
        and identified again. may_change: keys of the identity that the tool changes. Raises Refused when it is another
        drive.
        """
        return self.held.lend(may_change)

    def prove(self, argv: t.Sequence[str]) -> None:
        """That the drive is held, and that the device nodes a command names lead to it now. To be called right before
        it starts.

        Raises Refused where nothing is held, else PurgeError.
        """
        self.handle  # nothing destructive starts on a drive that is not held
        found = strangers(self.host, self.held.identity, argv)
        if found:
            raise PurgeError("; ".join(found) + "; nothing was run", "identity_changed")

    def watch(self, progress: t.Callable[[], Progress], limit_s: float) -> None:
        """Wait for a purge that goes on in the drive by itself. Raises PurgeError for one that is stuck or failed."""
        still_s = stuck_s(self.size_bytes, self.options)
        try:
            watch(progress, limit_s, still_s, self.tick, self.clock, self.sleep)
        except Stuck as error:
            raise PurgeError(str(error)) from None

    def command(
        self,
        argv: t.Sequence[str],
        timeout: float,
        stdin: str | None = None,
        share: t.Callable[[], float | None] | None = None,
    ) -> Result:
        """Run a command that takes its time, ticking once a second. `share`: asked for the progress while it runs.

        Raises fio.Interrupted on a stop. The command is ended first, since it may not have begun yet (nvme format waits
        for 10 s): nothing may start on a drive that we no longer hold. What the drive itself has begun goes on.
        """
        self.prove(argv)
        command = Running(self.host, argv)
        return wait_for(lambda: command.run(timeout, stdin), lambda: self.tick(share() if share else None), command.end)


def wait_for(
    function: t.Callable[[], Result], tick: t.Callable[[], None], end: t.Callable[[], None] | None = None
) -> Result:
    """Return what `function` returns or raises; `tick` is called once a second meanwhile. When `tick` raises, `end` is
    to end it.
    """
    thread = _Answer(function)
    thread.start()
    try:
        while not thread.wait(TICK_S):
            tick()
    except BaseException:
        if end is not None:
            end()
            thread.wait(TICK_S)
        raise
    return thread.result()


class _Answer(threading.Thread):
    """Calls a function in a thread of its own, which ends with the process."""

    def __init__(self, function: t.Callable[[], Result]) -> None:
        super().__init__(daemon=True)
        self._function = function
        self._result: Result | None = None
        self._error: BaseException | None = None

    def run(self) -> None:
        try:
            self._result = self._function()
        except BaseException as error:  # handed over to the thread that waits
            self._error = error

    def wait(self, seconds: float) -> bool:
        """Return whether it is done within that time."""
        self.join(seconds)
        return not self.is_alive()

    def result(self) -> Result:
        """Return what the function returned or raised."""
        if self._error is not None:
            raise self._error
        return t.cast(Result, self._result)
