# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whose the events of the kernel's log are: a drive's own, or those of what it shares with others. Pure."""

from __future__ import annotations

import typing as t

from ..machine.kernel_names import Names
from ..machine.pcie import ADDRESS
from .kernel_log import GONE, HOST_RESET, LINK_RESET, RESET, TIMEOUT, LogEvent

# What befalls several drives of a host within this time has one cause, which none of them is.
TOGETHER_S = 60.0
# A reset is tried again and told again; after so long it is another one.
SAME_RESET_S = 10.0
# Timeouts of several drives alone may be theirs, such as of a model that stalls: they end no test.
ENDING = (RESET, LINK_RESET, GONE)
FAULTS = (TIMEOUT, *ENDING)
OF_HOST = "a fault of the host, not of the drive"


class Faults(t.NamedTuple):
    """What a drive's measurement has of the kernel's log. own: its own events; of_host: those of what it shares with
    others; reason: these in a sentence, "" without any that ends the test.
    """

    own: list[LogEvent]
    of_host: list[LogEvent]
    reason: str

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
        return len(_apart(event for event in self.of_host if event.kind in (RESET, LINK_RESET, HOST_RESET)))

    @property
    def host_timeouts(self) -> int:
        """How many of its I/Os timed out when others' did, or when what it shares with them was reset."""
        return sum(event.kind == TIMEOUT for event in self.of_host)

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


def faults(name: str, measured: t.Sequence[LogEvent], others: t.Iterable[LogEvent], drives: dict[str, Names]) -> Faults:
    """Return what the log says of a drive.

    measured: all events from the start of its measurement to the end. others: events of other drives, before and after
    that too, but for those that purges and settings of a run may have caused. drives: of the host, by kernel name.
    """
    mine = drives[name]
    about = [event for event in measured if event.name in mine.own or event.name in mine.above]
    # What the drive's own slot tells of its link is evidence of either, and no verdict.
    above = [event for event in about if event.name not in mine.own]
    own = [event for event in about if event.name in mine.own]
    told = {drive: [event for event in others if event.name in names.own] for drive, names in drives.items()}
    shared, sharing = _with_others(name, {**told, name: own})
    shared += [event for event in own if event.kind in FAULTS and _is_near(event, above)]
    reason = _of_above(above) or _of_several([drives[drive] for drive in sharing])
    return Faults(
        [event for event in own if event not in shared],
        [event for event in about if event in above or event in shared],
        reason,
    )


def _is_near(event: LogEvent, others: t.Iterable[LogEvent]) -> bool:
    return any(abs(event.time_s - other.time_s) <= TOGETHER_S for other in others)


def _with_others(name: str, events: t.Mapping[str, t.Sequence[LogEvent]]) -> tuple[list[LogEvent], set[str]]:
    """Return those of a drive's events that others had too, each within a minute of the next, and whose those are that
    end a test.
    """
    found: list[LogEvent] = []
    sharing: set[str] = set()
    for kind in FAULTS:
        told = [(event.time_s, drive, event) for drive, seen in events.items() for event in seen if event.kind == kind]
        for group in _groups(sorted(told)):
            drives = {drive for _time_s, drive, _event in group}
            if name in drives and len(drives) > 1:
                found += [event for _time_s, drive, event in group if drive == name]
                sharing |= drives if kind in ENDING else set()
    return found, sharing


_Told = t.Tuple[float, str, LogEvent]


def _groups(told: t.Iterable[_Told]) -> list[list[_Told]]:
    groups: list[list[_Told]] = []
    for item in told:
        if groups and item[0] - groups[-1][-1][0] <= TOGETHER_S:
            groups[-1].append(item)
        else:
            groups.append([item])
    return groups


def _of_above(events: t.Sequence[LogEvent]) -> str:
    return f"{OF_HOST}, as the kernel's log says: {events[0].text}" if events else ""


def _of_several(drives: t.Sequence[Names]) -> str:
    if not drives:
        return ""
    common = (part for part in drives[0].above if ADDRESS.fullmatch(part) and all(part in one.above for one in drives))
    below = next((f", all below {part}" for part in common), "")
    return f"{OF_HOST}: {len(drives)} of its drives were reset or lost within a minute{below}"
