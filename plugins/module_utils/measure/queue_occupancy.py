# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What shows that fewer I/Os were in flight than a cell asked for, and that the host kept them so few. Pure."""

from __future__ import annotations

import typing as t

from . import io_pattern
from .validity_limits import Limits

Mapping = t.Mapping[str, t.Any]


def thread_limit(cell: Mapping, seen: Mapping, limits: Limits) -> list[str]:
    """Find fio's threads out of time, so that more of them would have done more.

    host_limited spoils: fio's user and system time by thread. Limit: fio_cpu_max
    """
    if seen["fio_cpu"] < limits.fio_cpu_max or cell.get("polled"):
        return []
    text = "fio's threads used {0:.0%} of a CPU each: this measures the host; use more threads or larger blocks"
    return [text.format(seen["fio_cpu"])]


def shortfalls(cell: Mapping, seen: Mapping, limits: Limits) -> list[str]:
    """Return what shows that fewer I/Os than asked were in flight. Not where the test leaves the queue open: a rate
    limit, or completions in batches.

    queue_not_filled spoils: Little's law: fio's I/Os × mean latency ÷ runtime against threads × depth. Limit: below
      queued_min, above queued_max
    queue_not_filled spoils: the kernel's time in queue ÷ runtime; skipped if it merged more than other_io_share. Limit:
      below in_flight_min of the depth
    """
    jobs = cell.get("jobs") or []
    found = []
    for job in jobs:
        own = dict(seen, in_flight=None, **(seen.get("streams") or {}).get(job["name"], {"queued": None}))
        found += ["stream {0}: {1}".format(job["name"], text) for text in shortfalls(job, own, limits)]
    if found or any(io_pattern.is_limited(job) for job in jobs):
        return found
    if io_pattern.is_limited(cell) or cell.get("batch") or not seen["queued"]:
        return []
    asked = io_pattern.asked_in_flight(cell)
    target, found = _reachable(cell, seen["limits"], limits)
    # While a thread works for fio, one I/O of its own is missing.
    cost = cell["threads"] * min(1.0, seen["fio_cpu"])
    edge = seen["mean_latency_s"] / (cell.get("burst_s") or seen["run_s"])
    # Between bursts the queue is empty, as asked.
    queued = seen["queued"] / io_pattern.busy_share(cell, seen["run_s"])
    if target >= asked and queued + cost < (limits.queued_min - edge) * asked:
        found.append(f"IOPS x latency gives {queued:.1f} I/Os in flight instead of {asked}")
    if queued > (limits.queued_max + edge) * asked:
        found.append(
            f"IOPS x latency gives {queued:.1f} I/Os in flight, more than the {asked} requested: fio's clock and its "
            "counts disagree"
        )
    # Merged I/Os are fewer in flight than asked, and as much.
    counted = (
        seen["in_flight"] is not None and (seen["merged_share"] or 0) <= limits.other_io_share and _is_counted(seen)
    )
    in_flight = (seen["in_flight"] or 0) / io_pattern.busy_share(cell, seen["run_s"], with_ramp=True)
    if counted and in_flight + cost < limits.in_flight_min * target:
        found.append(f"the kernel saw {in_flight:.1f} I/Os in flight instead of {asked}")
    return found


def _is_counted(seen: Mapping) -> bool:
    """Return whether the kernel counts this drive's I/O at all."""
    return seen["kernel_bytes"] is not None and sum(seen["kernel_bytes"].values()) >= 0.5 * sum(
        seen["fio_bytes"].values()
    )


def _reachable(cell: Mapping, queue: Mapping, limits: Limits) -> tuple[int, list[str]]:
    """Return how many of the I/Os asked for the drive can have in flight, and what keeps them fewer than that.

    queue_not_filled spoils: `queue/nr_requests` × the hardware queues that the threads can use; `device/queue_depth`.
      Limit: room for less than queue_limit_min of the depth; a SCSI depth below device_depth
    """
    asked = io_pattern.asked_in_flight(cell)
    depth, requests = queue["device_depth"], queue["nr_requests"]
    found = []
    if depth is not None and depth < limits.queue_limit_min * min(asked, limits.device_depth):
        found.append(f"device/queue_depth allows {depth} I/Os in flight, the cell asks for {asked}")
    target = asked if depth is None else min(asked, depth)
    room = None if requests is None else requests * min(cell["threads"], queue["hw_queues"] or 1)
    if room is not None and room < limits.queue_limit_min * target:
        found.append(f"queue/nr_requests allows {room} I/Os in flight, the cell asks for {asked}: raise it")
    return target, found
