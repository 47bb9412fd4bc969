# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the journal tells of a drive's health in an attempt at a test at whose end nobody looked, as its host or its job
died: the lines of the kernel's log and the samples that were noted until then. Pure.
"""

from __future__ import annotations

import typing as t

from ..drive.health import TOO_HOT
from ..machine.kernel_names import Names
from ..records.events import KernelEvent, Sample
from ..records.health import HealthChange
from . import kernel_faults
from .kernel_faults import TOGETHER_S
from .kernel_log import MEDIUM_ERROR, LogEvent

# The journal's events that it is made of, by name.
EVENTS: t.Mapping[str, t.Any] = {"kernel_event": KernelEvent, "sample": Sample}
# Of one attempt the host job notes no more kernel_events; of a whole job a forged journal may have any number.
MOST_NOTED = 200
MOST_OF_JOB = 5_000
# Of the job, by drive.
LinesOfHost = t.Mapping[str, t.Sequence[KernelEvent]]
# The journal does not tell what is above each drive: here all of a host's share one function.
_SHARED = "0000:00:00.0"
_MINE = ""


class JournaledHealth:
    """Of one attempt, event by event."""

    def __init__(self) -> None:
        self._lines: list[KernelEvent] = []
        # Of media errors, by samples: the first count and the last one that is known.
        self._counts: list[int] = []
        self._warnings: list[int] = []

    def take(self, event: KernelEvent | Sample) -> None:
        """Add an event of the attempt."""
        if isinstance(event, KernelEvent):
            self._lines += [event] if len(self._lines) < MOST_NOTED else []
            return
        if event.media_errors is not None:
            self._counts = [*self._counts[:1], event.media_errors]
        if event.critical_warning is not None:
            came_up = event.critical_warning & ~TOO_HOT
            self._warnings = [*self._warnings[:1], came_up | (self._warnings[-1] if self._warnings else 0)]

    def change(self, of_host: LinesOfHost) -> HealthChange:
        """Return what is known. of_host: of the job; what other drives had too is the host's fault."""
        mine = {line.drive for line in self._lines}
        of_others = {drive: lines for drive, lines in of_host.items() if drive not in mine}
        found = _faults(self._lines, of_others)
        sectors = {event.text for event in found.own if event.kind == MEDIUM_ERROR}
        rose = max(0, self._counts[-1] - self._counts[0]) if self._counts else 0
        warned = self._warnings[-1] & ~self._warnings[0] if self._warnings else 0
        have_faults = any(line.kind in kernel_faults.FAULTS for lines in of_others.values() for line in lines)
        # That nothing was noted until then is no count of none.
        counts: dict[str, t.Any] = {name: count or None for name, count in found.counts().items()}
        return HealthChange(
            media_errors=max(rose, len(sectors)) or None,
            critical_warning=warned or None,
            kernel_message=found.first_message,
            drive_gone=found.is_gone or None,
            # What made it wait may be told only after the host is gone.
            may_have_waited=found.may_have_waited or have_faults or not found.has_fault or None,
            **counts,
        )


def _faults(lines: t.Sequence[KernelEvent], of_others: LinesOfHost) -> kernel_faults.Faults:
    drives = {drive: _names(told) for drive, told in {**of_others, _MINE: lines}.items()}
    first_s, last_s = (pick((line.boot_s for line in lines), default=0.0) for pick in (min, max))
    others = [
        line
        for told in of_others.values()
        for line in told
        if line.is_own and first_s - TOGETHER_S <= line.boot_s <= last_s + TOGETHER_S
    ]
    return kernel_faults.faults(_MINE, _log_events(lines), _log_events(others), drives)


def _names(lines: t.Sequence[KernelEvent]) -> Names:
    own = frozenset(line.name for line in lines if line.is_own)
    above = [line.name for line in lines if not line.is_own]
    return Names(own, tuple(dict.fromkeys([*above, _SHARED])))


def _log_events(lines: t.Iterable[KernelEvent]) -> list[LogEvent]:
    return [LogEvent(line.boot_s, line.kind, line.name, line.message) for line in lines]
