# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the host took of a cell's latencies, round by round, beyond what it takes when it is quiet. Pure.

The host's part of a latency is fio's mean less the kernel's time in queue. A drive that becomes slower or faster
leaves it as it is, and others on the host can only lengthen it: the better rounds of a cell show what it is by itself.
docs/validity.md, Cells and rounds.
"""

from __future__ import annotations

import statistics
import typing as t
from dataclasses import replace

from ..records.measurement import Cause, SeenQueue
from ..records.planned_cell import PlannedCell
from . import io_pattern
from .disturbances import BUSY_CPUS, DISTURBS, HOST_LIMITED, NO_PERCENTILES, TOLD, UNKNOWN, counted_in_flight, has_room
from .validity_limits import Limits

# Fewer show nothing: one of two may be the odd one.
LEAST_QUIET = 3
# A drive changes over hours, so only the latest rounds are compared.
RECENT = 15
# The lowest host's part of some rounds is about one standard deviation below their lower quartile.
SPREADS = 3
SAME_RATE = "; the rate is as in quiet rounds"


class Round(t.NamedTuple):
    """A cell in one round. host_s: the host's part of its mean latency; None: the kernel does not count the drive's
    I/O, or not all of what waits for the drive (disturbances.has_room). taken: causes by time that was taken from fio;
    is_busy: its CPUs were never idle.
    """

    number: int
    iops: float
    latency_s: float
    host_s: float | None
    taken: tuple[Cause, ...]
    is_busy: bool


def of_round(
    number: int, cell: PlannedCell, seen: SeenQueue, causes: t.Sequence[Cause], limits: Limits
) -> Round | None:
    """Return what is compared of a cell's round; None where fio told no latency."""
    if not seen.queued or not seen.mean_latency_s:
        return None
    at_drive = counted_in_flight(seen, limits) if has_room(cell, seen.limits) else None
    host_s = None
    if at_drive:
        # At its end a run lets the queue drain, which leaves less in flight, not more to the host.
        drained = seen.mean_latency_s / (2 * (cell.runtime_s + seen.mean_latency_s))
        host_s = seen.mean_latency_s * (1 - at_drive / (seen.queued * (1 - drained)))
    taken = tuple(item for item in causes if item.time_taken)
    is_busy = any(item.cause == BUSY_CPUS for item in causes)
    return Round(number, seen.queued / seen.mean_latency_s, seen.mean_latency_s, host_s, taken, is_busy)


class Usual(t.NamedTuple):
    """A cell's quiet rounds: the host's part of a latency (None: too few have one), how far that comes and goes, the
    rate, and whether fio's CPUs are idle at times.
    """

    host_s: float | None
    spread_s: float
    iops: float
    is_idle: bool


def usual(rounds: t.Iterable[Round], limits: Limits) -> Usual | None:
    """Return what the quiet ones of these rounds show; None where they are too few."""
    quiet = [each for each in rounds if not each.taken]
    if len(quiet) < LEAST_QUIET:
        return None
    is_idle = sum(not each.is_busy for each in quiet) >= LEAST_QUIET
    parts = sorted(each.host_s for each in quiet if each.host_s is not None)
    if len(parts) < LEAST_QUIET:
        return Usual(None, 0.0, statistics.median(each.iops for each in quiet), is_idle)
    # The lower quartile, as others only lengthen it, but never the lowest alone.
    host_s = parts[max(1, len(parts) // 4)]
    spread_s = SPREADS * (host_s - parts[0])
    rates = [each.iops for each in quiet if (_excess(each, host_s) or 0) <= _most(each, spread_s, limits)]
    return Usual(host_s, spread_s, statistics.median(rates), is_idle)


def _most(one: Round, spread_s: float, limits: Limits) -> float:
    """Return what the host may take of a round's mean latency beyond its usual part."""
    return max(limits.host_excess_max, spread_s / one.latency_s)


def _excess(one: Round, host_s: float | None) -> float | None:
    """Return what the host took of a round's mean latency beyond its usual part; None: unknown."""
    return None if host_s is None or one.host_s is None else (one.host_s - host_s) / one.latency_s


class CellRounds:
    """The rounds of one cell as they come in. found: causes by round; without_percentiles: the rounds whose latencies
    don't count.
    """

    def __init__(self, limits: Limits, strict: bool) -> None:
        self._limits, self._strict = limits, strict
        self._recent: list[Round] = []
        self.found: dict[int, list[Cause]] = {}
        self.without_percentiles: set[int] = set()

    def take(self, cell: PlannedCell, one: Round, decided: int) -> list[int]:
        """Judge a round, and again the recent ones after `decided`, the last one of a window that stands; return those
        of them that are judged otherwise than before.
        """
        recent = [*self._recent, one]
        compared = usual(recent, self._limits)
        changed = []
        for each in recent:
            if each.number <= decided:
                continue
            before = self.found.pop(each.number, [])
            causes = self._causes(cell, each, compared)
            if causes:
                self.found[each.number] = causes
            if causes != before and each is not one:
                changed.append(each.number)
            (self.without_percentiles.add if _has_no_percentiles(causes) else self.without_percentiles.discard)(
                each.number
            )
        # What can't be compared yet may prove to be quiet.
        self._recent = [each for each in recent if compared is None or not self.disturbs(each.number)][-RECENT:]
        return changed

    def disturbs(self, number: int) -> bool:
        """Return whether a round is disturbed by what the host took of this cell."""
        return any(item.level == DISTURBS for item in self.found.get(number, ()))

    def _causes(self, cell: PlannedCell, one: Round, compared: Usual | None) -> list[Cause]:
        """Return the causes of a round.

        host_limited told: time that was taken, or what the host took of a latency, where the rate is that of the cell's
          quiet rounds. Limit: a rate off by at most rate_error_max
        no_percentiles told: what the host took of the mean latency beyond its part in the cell's quiet rounds: the rate
          counts, percentiles don't. Limit: host_excess_max
        no_percentiles told: time that was taken from fio, outlasted or not, unlike in quiet rounds. Limit: those of
          host_limited
        no_percentiles told: fio's CPUs never idle, as they are in quiet rounds (three at least): few latencies are
          longer, so the mean hardly shows it. Limit: cpu_idle_min
        """
        if compared is None:
            return [*one.taken, *self._alone(cell, one)]
        always = self._always(cell, compared)
        excess = _excess(one, compared.host_s) or 0.0
        off = one.iops / compared.iops - 1
        causes = [_told(item) if item.level == DISTURBS else item for item in one.taken]
        if abs(off) > self._limits.rate_error_max:
            causes = list(one.taken)
        most = _most(one, compared.spread_s, self._limits)
        what = ""
        if excess > most:
            causes.append(self._excessive(cell, excess, off))
            what = f"the host took {excess:.0%} more of each latency than in quiet rounds"
        elif one.taken:
            what = "time was taken from fio"
        elif one.is_busy and compared.is_idle:
            what = "its CPUs were never idle, unlike in quiet rounds"
        if what:
            causes.append(Cause(NO_PERCENTILES, TOLD, f"{what}: no percentiles of this round"))
        return causes + always

    def _excessive(self, cell: PlannedCell, excess: float, off: float) -> Cause:
        """Find a rate that is lower because of the host. A rate that differs shows nothing by itself: drives change;
        and a higher one is the drive's, which leaves fio more to do.

        host_limited disturbs: the host's part of a latency (fio's mean less the kernel's time in queue) beyond its part
          in the cell's own quiet rounds (three at least), and a rate below theirs by more than rate_error_max. Limit:
          host_excess_max of the mean latency, or three times what comes and goes in quiet rounds
        host_limited disturbs: the same with a rate limit or batches, whose rate says nothing of a latency. Limit: the
          same
        """
        text = f"the host took {excess:.0%} more of each latency than in quiet rounds"
        if io_pattern.is_limited(cell) or cell.batch:
            return Cause(HOST_LIMITED, DISTURBS, f"{text}, and the test asks for latencies: stop other load")
        if off < -self._limits.rate_error_max:
            return Cause(HOST_LIMITED, DISTURBS, f"{text}, and the rate is {-off:.1%} below theirs: stop other load")
        return Cause(HOST_LIMITED, TOLD, text + (SAME_RATE if off <= self._limits.rate_error_max else ""))

    def _alone(self, cell: PlannedCell, one: Round) -> list[Cause]:
        """Find out whether a cell that has nothing to be compared with is the host's more than the drive's.

        host_limited unknown: one I/O at a time, and fewer than three quiet rounds: the host's part of a latency. Limit:
          above host_part_max
        """
        if not _is_single(cell) or one.host_s is None or any(item.level == DISTURBS for item in one.taken):
            return []
        part = one.host_s / one.latency_s
        if part <= self._limits.host_part_max:
            return []
        text = (
            f"whether the host limits fio is unknown: it took {part:.0%} of each latency, and no quiet rounds show why"
        )
        return [Cause(HOST_LIMITED, DISTURBS if self._strict else UNKNOWN, text)]

    def _always(self, cell: PlannedCell, compared: Usual) -> list[Cause]:
        """Find a cell whose quiet rounds show nothing, as something may have gone on in all of them.

        host_limited told: one I/O at a time, and the host's part of a latency in quiet rounds too. Limit: above
          host_part_max
        """
        part = (compared.host_s or 0.0) * compared.iops
        if not _is_single(cell) or part <= self._limits.host_part_max:
            return []
        text = f"the host took {part:.0%} of each latency in quiet rounds too; whether other load is in it is unknown"
        return [Cause(HOST_LIMITED, TOLD, text)]


def _has_no_percentiles(causes: t.Iterable[Cause]) -> bool:
    return any(item.cause == NO_PERCENTILES for item in causes)


def _told(item: Cause) -> Cause:
    return replace(item, level=TOLD, message=item.message + SAME_RATE)


def _is_single(cell: PlannedCell) -> bool:
    """Return whether a cell has one I/O at a time, one after the other."""
    return io_pattern.asked_in_flight(cell) == 1 and not cell.jobs and not io_pattern.is_limited(cell)
