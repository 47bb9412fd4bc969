# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whose the events of the kernel's log are: a drive's own, or those of what it shares with others. Pure."""

from __future__ import annotations

import typing as t

from ..machine.kernel_names import SCSI_HOST, Names, is_usb
from ..machine.pcie import ADDRESS
from .kernel_log import GONE, HOST_FAULT, HOST_RESET, LINK_RESET, RESET, TIMEOUT, LogEvent

# What befalls several drives below one port or HBA within this time has one cause, which none of them is.
TOGETHER_S = 60.0
# A reset is tried again and told again; after so long it is another one.
SAME_RESET_S = 10.0
# Timeouts of several drives alone may be theirs, such as of a model that stalls: they end no test.
ENDING = (RESET, LINK_RESET, GONE)
FAULTS = (TIMEOUT, *ENDING)
HOST_RESETS = (RESET, LINK_RESET, HOST_RESET, HOST_FAULT)
OF_HOST = "a fault of the host, not of the drive"


class Faults(t.NamedTuple):
    """What a drive's measurement has of the kernel's log. own: its own events; of_host: those of what it shares with
    others; led_to: those of what it shares that its own faults, and no other drive's, came before; reason: of_host in a
    sentence, "" without any that ends the test; may_have_waited: whether the host, or what it did about another drive,
    may have kept its I/Os waiting.
    """

    own: list[LogEvent]
    of_host: list[LogEvent]
    led_to: list[LogEvent]
    reason: str
    may_have_waited: bool = False

    @property
    def timeouts(self) -> int:
        """How many of its I/Os timed out."""
        return sum(event.kind == TIMEOUT for event in self.own)

    @property
    def resets(self) -> int:
        """How often its own controller was reset."""
        return len(_apart(event for event in self.own if event.kind == RESET))

    @property
    def link_resets(self) -> int:
        """How often its SATA or SAS link, or the device behind it, was reset."""
        return len(_apart(event for event in self.own if event.kind == LINK_RESET))

    @property
    def host_resets(self) -> int:
        """How often what it shares with others was reset."""
        return len(_apart(event for event in self.of_host if event.kind in HOST_RESETS))

    @property
    def host_timeouts(self) -> int:
        """How many of its I/Os timed out when others' did, or when what it shares with them was reset."""
        return sum(event.kind == TIMEOUT for event in self.of_host)

    def counts(self) -> dict[str, int]:
        """Return how many there are of each, as HealthChange has them."""
        names = ("io_timeouts", "controller_resets", "link_resets", "host_resets", "host_timeouts")
        found = (self.timeouts, self.resets, self.link_resets, self.host_resets, self.host_timeouts)
        return dict(zip(names, found))

    @property
    def has_fault(self) -> bool:
        """Whether it has a fault of its own, which others may turn out to have had too."""
        return any(event.kind in FAULTS for event in self.own)

    @property
    def first_message(self) -> str | None:
        """What the kernel said of its first fault of its own."""
        return next((event.text for event in self.own if event.kind in FAULTS), None)

    @property
    def is_gone(self) -> bool:
        """Whether the kernel gave the drive up."""
        return any(event.kind == GONE for event in self.own)


def _apart(events: t.Iterable[LogEvent]) -> list[LogEvent]:
    found: list[LogEvent] = []
    last_s = 0.0
    for event in sorted(events, key=lambda event: event.time_s):
        if not found or event.time_s - last_s > SAME_RESET_S:
            found.append(event)
        last_s = event.time_s
    return found


def faults(
    name: str,
    measured: t.Sequence[LogEvent],
    others: t.Iterable[LogEvent],
    drives: dict[str, Names],
    of_ours: t.Sequence[LogEvent] = (),
) -> Faults:
    """Return what the log says of a drive.

    measured: all events from the start of its measurement to the end. others: events of other drives, before and after
    that too, but for those that purges and settings of a run may have caused; of_ours: these, while it was measured,
    which excuse the drive and are nobody's fault. drives: of the host, by kernel name.
    """
    mine = drives[name]
    about = [event for event in measured if event.name in mine.own or event.name in mine.above]
    # What the drive's own slot tells of its link is evidence of either, and no verdict.
    above = [event for event in about if event.name not in mine.own]
    own = [event for event in about if event.name in mine.own]
    told = _of_others(name, others, drives)
    led_to = _led_to(own, above, told, drives)
    of_host = [event for event in above if event not in led_to]
    excusing = of_host + [event for event in of_ours if event.name in mine.above and event.name not in mine.own]
    shared, sharing = _shared(
        [event for event in own if event.kind in FAULTS and not _is_near(event, led_to)],
        excusing,
        {drive: seen for drive, seen in told.items() if _common([mine, drives[drive]])},
    )
    reason = _of_above(of_host) or _of_several([drives[drive] for drive in sorted({name, *sharing} if sharing else ())])
    return Faults(
        [event for event in own if event not in shared],
        [event for event in about if event in of_host or event in shared],
        led_to,
        reason,
        bool(reason or excusing or shared or _held_up(name, own, [*measured, *of_ours], drives)),
    )


def _held_up(
    name: str, own: t.Sequence[LogEvent], events: t.Iterable[LogEvent], drives: t.Mapping[str, Names]
) -> list[LogEvent]:
    """Return the faults of other drives for which the kernel held up all I/O of a SCSI host that a drive hangs on
    (Documentation/scsi/scsi_eh.rst), but for those that its own came before.
    """
    mine = drives[name]
    hosts = [part for part in mine.above if SCSI_HOST.fullmatch(part)]
    mates = [
        names.own for drive, names in drives.items() if drive != name and any(map(names.above.__contains__, hosts))
    ]
    return [
        event
        for event in events
        if event.kind in FAULTS
        and any(event.name in names - mine.own for names in mates)
        and not _is_before(own, event)
    ]


def _of_others(name: str, events: t.Iterable[LogEvent], drives: t.Mapping[str, Names]) -> dict[str, list[LogEvent]]:
    """Return the faults of each other drive. USB resets its devices for reasons of its own, and says nothing of others;
    a namespace of the same controller is no other drive.
    """
    faults_of = [event for event in events if event.kind in FAULTS and event.name not in drives[name].own]
    return {
        drive: [event for event in faults_of if event.name in names.own]
        for drive, names in drives.items()
        if drive != name and not is_usb(names)
    }


def _led_to(
    own: t.Sequence[LogEvent],
    above: t.Sequence[LogEvent],
    told: t.Mapping[str, t.Sequence[LogEvent]],
    drives: t.Mapping[str, Names],
) -> list[LogEvent]:
    """Return those events above a drive, each within a minute of the next, that it led to: in the minute before the
    first, no other drive below had a fault. What says that it failed itself, nobody led to.
    """
    found: list[LogEvent] = []
    for burst in _bursts(above):
        first = burst[0]
        others = [event for drive, seen in told.items() if first.name in drives[drive].above for event in seen]
        has_failed = any(event.kind == HOST_FAULT for event in burst)
        if _is_before(own, first) and not _is_before(others, first) and not has_failed:
            found += burst
    return found


def _bursts(events: t.Iterable[LogEvent]) -> list[list[LogEvent]]:
    found: list[list[LogEvent]] = []
    for event in sorted(events, key=lambda event: event.time_s):
        if found and event.time_s - found[-1][-1].time_s <= TOGETHER_S:
            found[-1].append(event)
        else:
            found.append([event])
    return found


def _is_before(events: t.Iterable[LogEvent], first: LogEvent) -> bool:
    return any(event.kind in FAULTS and 0 < first.time_s - event.time_s <= TOGETHER_S for event in events)


def _is_near(event: LogEvent, others: t.Iterable[LogEvent]) -> bool:
    return any(abs(event.time_s - other.time_s) <= TOGETHER_S for other in others)


def _shared(
    own: t.Iterable[LogEvent], above: t.Sequence[LogEvent], told: t.Mapping[str, t.Sequence[LogEvent]]
) -> tuple[list[LogEvent], set[str]]:
    """Return those of a drive's faults that something above it or another drive had within a minute, and which other
    drives had some that end a test. Its own never excuse each other.
    """
    found: list[LogEvent] = []
    sharing: set[str] = set()
    for event in own:
        near = {
            drive for drive, seen in told.items() if _is_near(event, [each for each in seen if each.kind == event.kind])
        }
        found += [event] if near or _is_near(event, above) else []
        sharing |= near if event.kind in ENDING else set()
    return found, sharing


def _of_above(events: t.Sequence[LogEvent]) -> str:
    return f"{OF_HOST}, as the kernel's log says: {events[0].text}" if events else ""


def _of_several(drives: t.Sequence[Names]) -> str:
    if not drives:
        return ""
    common = _common(drives)
    below = f", all below {common}" if common else ""
    return f"{OF_HOST}: {len(drives)} of its drives were reset or lost within a minute{below}"


def _common(drives: t.Sequence[Names]) -> str:
    """Return the nearest PCI function above all of these drives, such as an HBA or a port; "" without any."""
    shared = (part for part in drives[0].above if ADDRESS.fullmatch(part) and all(part in one.above for one in drives))
    return next(shared, "")
