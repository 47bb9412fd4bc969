# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the kernel's log says of a drive while it is measured: from after its purge to the end of its test, fill and
rounds included. Purges, settings and what comes between two tests may reset a drive by themselves and count nowhere.
"""

from __future__ import annotations

import contextlib
import threading
import typing as t
from dataclasses import replace

from ..core.host import Host
from ..drive.attributes import VIRTUAL
from ..machine import cpus, kernel_names
from ..machine.kernel_names import Names
from ..measure import kernel_faults
from ..measure.disturbances import TOLD
from ..measure.journaled_health import MOST_NOTED
from ..measure.kernel_faults import Faults
from ..measure.kernel_log import LogEvent
from ..measure.kernel_log_reader import KernelLogReader
from ..records.base import Json
from ..records.health import HealthChange
from ..records.measurement import Condition, TestEnd

# After a fault of its own, what befell other drives by then too has been logged.
SETTLE_S = kernel_faults.TOGETHER_S
# Figures of health that a fault of the host changes too.
OF_EITHER = ("drive_gone", "link_degraded", "uncorrected_pcie_errors")
LONGEST = 500


class _Span(t.NamedTuple):
    """A part of the log, by its events. end: None while it goes on."""

    first: int
    end: int | None = None


class HostLog:
    """The kernel's log, as the campaigns of a host job share it."""

    def __init__(self, host: Host, reader: KernelLogReader) -> None:
        self._host, self.reader = host, reader
        # Of each drive that is measured, by kernel name, its part of the log.
        self._measured: dict[str, _Span] = {}
        # Of each drive, the parts in which a purge or a setting of ours may have caused its events.
        self._worked_on: dict[str, list[_Span]] = {}
        self._places: set[str] = set()

    def works_on(self, name: str) -> None:
        """Have a drive's events count for nothing from now on."""
        self._worked_on.setdefault(name, []).append(_Span(self.reader.position()))

    def leaves(self, name: str) -> None:
        """Have them count again, for others too."""
        spans = self._worked_on.setdefault(name, [])
        spans[-1:] = [span._replace(end=span.end or self.reader.position()) for span in spans[-1:]]

    def begin(self, name: str, place: str | None) -> None:
        """Note that a drive is measured from now on. place: the CPUs that fio works on."""
        self.leaves(name)
        self._measured[name] = _Span(self.reader.position())
        self._places.update([place] if place else [])
        self.reader.keep_off(cpus.without(",".join(sorted(self._places))))

    def end(self, name: str) -> None:
        """Note that a drive is measured no longer."""
        self._measured[name] = self._measured[name]._replace(end=self.reader.position())
        self.works_on(name)

    def _since(self, name: str, drives: t.Mapping[str, Names]) -> tuple[list[LogEvent], list[LogEvent]]:
        """Return all events since a drive began to be measured, but for those of itself while we worked on it; and of
        these, apart, those that our work on a neighbour may have caused above both.
        """
        span = self._measured[name]
        neighbours = [each for each in self._worked_on if each != name and each in drives]
        measured: list[LogEvent] = []
        of_ours: list[LogEvent] = []
        for position, event in enumerate(self.reader.events()[span.first : span.end], span.first):
            if event.name in drives[name].own and not self._counts(name, position):
                continue
            worked_on = [drives[each] for each in neighbours if not self._counts(each, position)]
            is_above = any(event.name in names.above for names in worked_on)
            (of_ours if is_above else measured).append(event)
        return measured, of_ours

    def names(self, drives: t.Iterable[str]) -> dict[str, Names]:
        """Return the names of all drives of the host, and of these."""
        return {**{name: kernel_names.of_drive(self._host, name) for name in drives}, **kernel_names.of_all(self._host)}

    def faults(self, name: str, drives: dict[str, Names]) -> Faults:
        """Return what the log says of a drive since it began to be measured."""
        measured, of_ours = self._since(name, drives)
        return kernel_faults.faults(name, measured, self._of_others(drives), drives, of_ours)

    def _of_others(self, drives: t.Mapping[str, Names]) -> list[LogEvent]:
        drive_of = {own: name for name, names in drives.items() for own in names.own}
        return [
            event
            for position, event in enumerate(self.reader.events())
            if self._counts(drive_of.get(event.name, ""), position)
        ]

    def _counts(self, name: str, position: int) -> bool:
        return not any(
            span.first <= position and (span.end is None or position < span.end)
            for span in self._worked_on.get(name, ())
        )


class DriveLog:
    """The kernel's log of one drive's tests. log: None where nobody reads it. note: writes a record of the drive into
    the journal.
    """

    def __init__(self, log: HostLog | None, note: t.Callable[..., None], stop: threading.Event) -> None:
        self._log, self._note, self._stop = log, note, stop
        self._attempt: Json = {}
        self._is_asked = False
        # What is measured, by kernel name: the drive, or the drives of its array. drives: of the host.
        self._names: list[str] = []
        self._drives: dict[str, Names] = {}
        # How many events were noted, and the place of the next one in the log.
        self._noted, self._next = 0, 0
        # Of the log itself, in the drive's campaign.
        self._told: set[str] = set()
        # Of the log, before the test that is under way; whether there were more in it.
        self._losses, self._lost = 0, False
        # Of the test that is under way, by kernel name once it has ended: of the drive itself first.
        self._found: dict[str, Faults] | None = None
        self._of_member = ""

    def begin_test(self, name: str, transport: str | None, attempt: Json) -> None:
        """Before its purge. A drive of software is not in the log. attempt: its fields in the journal."""
        self._names, self._found, self._noted, self._attempt = [], None, 0, attempt
        self._of_member = ""
        self._is_asked = self._log is not None and transport not in VIRTUAL
        if self._log and self._is_asked:
            self._log.works_on(name)

    def begin(self, names: t.Sequence[str], place: str | None) -> None:
        """Count the events of a drive, or of further ones of its array, from now on. place: the CPUs that fio works
        on.
        """
        new = [name for name in names if name not in self._names]
        if self._log and self._is_asked and new:
            self._names += new
            self._drives = self._log.names(self._names)
            for name in new:
                self._log.begin(name, place)
            if len(new) == len(self._names):
                self._losses = self._log.reader.losses
            self._next = self._next if len(new) < len(self._names) else self._log.reader.position()

    def let_go(self, name: str) -> None:
        """After the drive's campaign: what befalls it now is not our doing."""
        if self._log:
            self._log.leaves(name)

    def note_new(self) -> None:
        """Note the events that came since the last call."""
        if not self._log or not self._names:
            return
        mine, events = [self._drives[name] for name in self._names], self._log.reader.events()
        new, self._next = events[self._next :], len(events)
        for event in new:
            is_own = any(event.name in names.own for names in mine)
            if self._noted < MOST_NOTED and (is_own or any(event.name in names.above for names in mine)):
                self._noted += 1
                fields = {"kind": event.kind, "name": event.name, "is_own": is_own, "boot_s": event.time_s}
                self._note("kernel_event", **fields, message=event.text[:LONGEST], **self._attempt)

    @contextlib.contextmanager
    def by_us(self) -> t.Iterator[None]:
        """Have the drive's own events meanwhile count for nothing: they are our doing."""
        log, names = self._log, list(self._names)
        if log is None or not names:
            yield
            return
        self.note_new()
        for name in names:
            log.works_on(name)
        try:
            yield
        finally:
            for name in names:
                log.leaves(name)
            self._next = log.reader.position()

    def settle(self) -> None:
        """Wait until what else a fault brings, or befell others, has been told."""
        self._stop.wait(SETTLE_S)

    def end(self) -> str:
        """Stop counting; why what befell the test is the fault of its host or of another drive of its array, as a
        sentence, "" where it is none. A second call tells the same.
        """
        if self._log and self._names:
            found = self._faults()
            if any(one.has_fault for one in found.values()) and not any(one.reason for one in found.values()):
                self.settle()
                found = self._faults()
            self.note_new()
            for name in self._names:
                self._log.end(name)
            self._of_member = _of_member(found, self._names[0])
            self._names, self._found = [], found
            self._lost = self._log.reader.losses > self._losses
        return next((one.reason for one in (self._found or {}).values() if one.reason), self._of_member)

    def _faults(self) -> dict[str, Faults]:
        return {name: self._log.faults(name, self._drives) for name in self._names} if self._log else {}

    def told(self) -> list[Condition]:
        """Return what a test's owner is to know of the log, none of which bears on figures.

        kernel_log told: once for each drive, `/dev/kmsg` can't be read (in a container, as a rule), or had records that
          were overwritten before they were read; of a test, resets of its link, and timeouts beside those of other
          drives. Limit: none
        """
        if not self._log or self._found is None:
            return []
        of_log = [text for text in [self._missing(self._log.reader.missing)] if text and text not in self._told]
        self._told.update(of_log)
        return [Condition("kernel_log", TOLD, text) for text in (*of_log, *_remarks(list(self._found.values())))]

    def _missing(self, why: str) -> str:
        if why:
            return (
                f"controller_resets, link_resets and io_timeouts are unknown and not judged: {why}; give a "
                "container /dev/kmsg and CAP_SYSLOG"
            )
        lost = "records of the kernel's log were lost: there may be more timeouts and resets than were counted"
        return lost if self._lost else ""

    def counted(self, end: TestEnd) -> TestEnd:
        """Return a test's end with what was counted of its drive."""
        return replace(end, health=self.counted_of(next(iter(self._found)), end.health)) if self._found else end

    def counted_of(self, name: str, health: HealthChange | None) -> HealthChange | None:
        """Return what became of the health of a drive, or of another one of its array, with what was counted of it."""
        mine = (self._found or {}).get(name)
        if mine is None or not self._log or self._log.reader.missing:
            return health
        counts: dict[str, t.Any] = {**mine.counts()}
        may_have_waited = mine.may_have_waited
        if self._lost:  # none among those that are left is no count of none
            counts = {name: count or None for name, count in counts.items()}
            may_have_waited = may_have_waited or not mine.has_fault
        message = mine.first_message[:LONGEST] if mine.first_message else None
        health = replace(health or HealthChange(), **counts, kernel_message=message, may_have_waited=may_have_waited)
        if mine.reason or mine.host_resets:
            # What the host did to the drive speaks against nobody's drive.
            health = replace(health, **dict.fromkeys(OF_EITHER))
        if mine.is_gone:
            health = replace(health, drive_gone=True)
        return health


def _of_member(found: t.Mapping[str, Faults], lead: str) -> str:
    """Return which other drive of an array was reset or lost, as a sentence; that is none of the drive that carries the
    test.
    """
    sick = (
        f"a fault of {name}, another drive of the array, as the kernel's log says: {one.first_message}"
        for name, one in found.items()
        if name != lead and (one.resets or one.is_gone)
    )
    return next(sick, "")


def _remarks(found: t.Sequence[Faults]) -> t.Iterator[str]:
    resets, timeouts = found[0].link_resets, found[0].host_timeouts
    if resets:
        times = "once" if resets == 1 else f"{resets} times"
        yield f"its link or device was reset {times}: look at cable, backplane and HBA, and at interface_crc_errors"
    if timeouts and not any(one.reason for one in found):
        yield (
            f"{timeouts} of its I/Os timed out within a minute of those of other drives: look at what they share "
            "(HBA, switch, power), and at their model's firmware; longest_io_s is not judged"
        )
