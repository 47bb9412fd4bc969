# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The table of what takes time from fio, and the rule by which it disturbs a cell or is a remark. Pure.

Time that was taken can't have changed a rate where the I/Os that wait at the drive outlast the longest gap in which fio
could neither submit nor reap. Elsewhere the lost share bounds the error. docs/validity.md, Cells and rounds.
"""

from __future__ import annotations

import typing as t

from ..records.measurement import Seen
from ..records.planned_cell import PlannedCell
from . import io_pattern
from .validity_limits import Limits

# A thread that waited for a quarter of the time did not just wake up, as it does for each I/O.
WAKING_SHARE = 0.25


class Loss(t.NamedTuple):
    """One way to take time from fio's CPUs. share: of the time, from a cell and what was seen of it; None: unknown.
    limit: of Limits, above which it counts; text: with its share. is_counted: whether the kernel's count of what is in
    flight holds while the time is taken: of a guest that is stopped it counts I/Os that the drive has finished.
    """

    share: t.Callable[[PlannedCell, Seen, Limits], float | None]
    limit: str
    text: str
    is_counted: bool


def _stolen(_cell: PlannedCell, seen: Seen, _limits: Limits) -> float | None:
    """Return what the hypervisor took.

    host_limited disturbs: time that the hypervisor took from fio's CPUs: from those that lost most, one for each
      thread. Limit: steal_max, if not outlasted
    """
    return seen.cpu_steal


def _throttled(cell: PlannedCell, seen: Seen, _limits: Limits) -> float | None:
    """Return what a quota took: a sum over CPUs, of which no more than fio has threads can wait at once.

    host_limited disturbs: time lost to the control group's CPU quota (`cpu.stat`, parent groups too). Limit:
      throttled_max of the cell's time, if not outlasted
    """
    held_s = seen.throttled_s
    return None if held_s is None else held_s / max(0.001, seen.elapsed_s * min(cell.threads, seen.cpus))


def _waited(cell: PlannedCell, seen: Seen, limits: Limits) -> float | None:
    """Return what fio's threads waited for CPUs: no more than others ran there, as they also wait for each other.
    Where CPUs were idle in part, only what no wake-up explains: each I/O of a fast drive waits for one.

    host_limited disturbs: time that fio's threads waited for CPUs that others kept busy (`schedstat`): at most what
      others used of them. Limit: waited_max, if not outlasted; where CPUs were idle for more than cpu_idle_min,
      WAKING_SHARE
    """
    waited_s, idle = seen.waited_s, seen.cpu_idle
    if waited_s is None or idle is None:
        return None
    own = seen.fio_cpu * cell.threads / seen.cpus
    others = max(0.0, 1 - idle - (seen.cpu_steal or 0) - own)
    share = waited_s / max(0.001, (seen.run_s + (cell.ramp_s or 0)) * cell.threads)
    if idle < limits.cpu_idle_min:
        return min(others, share)
    # One of them may have been busy all the time, the one that a thread was on.
    share = min(others * seen.cpus / min(cell.threads, seen.cpus), share)
    return share if share > WAKING_SHARE else None


TABLE = (
    Loss(_stolen, "steal_max", "the hypervisor took {0:.0%} of the time of fio's CPUs", False),
    Loss(
        _throttled, "throttled_max", "its control group's CPU quota held fio up for {0:.0%} of the time: raise it", True
    ),
    Loss(
        _waited,
        "waited_max",
        "fio waited for {0:.0%} of the time for CPUs that others used: stop other load, or give fio other CPUs",
        True,
    ),
)
OUTLASTED = (
    "; the drive had work for {0:.1f} ms, more than fio's longest gap of {1:.1f} ms, so the rate counts, but latencies "
    "may include up to {1:.1f} ms that were the host's"
)


class Found(t.NamedTuple):
    """disturbs: whether a rate may have changed, by up to the lost share; message: what was lost, and why it counts."""

    disturbs: bool
    message: str


def find(cell: PlannedCell, seen: Seen, limits: Limits, is_short: bool) -> list[Found]:
    """Return the losses of a cell above their limits. is_short: its queue was not full (disturbances.shortfalls).

    host_limited told: any of what took time from fio's CPUs, outlasted. Limit: the same, and a rate off by at most
      rate_error_max
    """
    shares = [(row, row.share(cell, seen, limits)) for row in TABLE]
    above = [row.text.format(share) for row, share in shares if (share or 0) > getattr(limits, row.limit)]
    work_s, gap_s = backlog_s(cell, seen), seen.longest_gap_s
    # A thread that ran in all the time that was left to it is what limits the rate, however deep its queue.
    left = 1 - min(1.0, max(share or 0 for _row, share in shares))
    waits = seen.fio_cpu < limits.fio_cpu_max * left
    if is_short or not waits or work_s is None or gap_s is None or work_s <= gap_s:
        return [Found(True, text) for text in above]
    if sum(_error(cell, seen, row, share or 0, gap_s, work_s) for row, share in shares) > limits.rate_error_max:
        return [Found(True, text) for text in above]
    return [Found(False, text + OUTLASTED.format(1000 * work_s, 1000 * gap_s)) for text in above]


def lost_by_gap(share: float, gap_s: float, work_s: float) -> float:
    """Return what gaps of this length, for a share of the time, may cost a drive whose rate falls with its queue, as a
    share of the rate: half of what it works off in a gap, on average. work_s: how long it has work without fio.
    """
    return share * min(1.0, gap_s / (2 * work_s))


def _error(cell: PlannedCell, seen: Seen, row: Loss, share: float, gap_s: float, work_s: float) -> float:
    """Return what a loss may have cost, as a share of the rate: where the kernel's count holds, no more than the queue
    was short of what it is by itself.
    """
    by_gap = lost_by_gap(share, gap_s, work_s)
    if not row.is_counted:
        return by_gap
    return min(by_gap, short_share(cell, seen, seen.in_flight))


def short_share(cell: PlannedCell, seen: Seen, in_flight: float | None) -> float:
    """Return the share of the I/Os asked for that were not at the drive. in_flight: by the kernel's count; None: none
    are known to be there.
    """
    # At its end a run lets the queue drain, for as long as the drive works on it.
    whole = 1 - min(1.0, (seen.mean_latency_s or 0.0) / (2 * seen.run_s))
    return max(0.0, whole - (in_flight or 0.0) / io_pattern.asked_in_flight(cell))


def has_backlog(cell: PlannedCell) -> bool:
    """Return whether a cell is to have I/Os waiting at the drive."""
    return not (io_pattern.is_limited(cell) or cell.batch or cell.jobs or cell.queue_depth == 1)


def backlog_s(cell: PlannedCell, seen: Seen) -> float | None:
    """Return how long the drive works on what it has in flight: I/Os in flight by the kernel's count ÷ rate. None:
    unknown, or nothing waits at the drive (depth 1), or the test leaves the queue open (a rate limit, completions in
    batches, several streams).

    By fio's own count those that it has not reaped yet, and those in its own hands, would be at the drive.
    """
    if not has_backlog(cell):
        return None
    if not seen.in_flight or not seen.queued or not seen.mean_latency_s:
        return None
    iops = seen.queued / seen.mean_latency_s
    return min(io_pattern.asked_in_flight(cell), seen.queued, seen.in_flight) / iops
