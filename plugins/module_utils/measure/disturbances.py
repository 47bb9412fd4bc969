# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What disturbs a cell though fio's figures are true of their job: other I/O, a load that was not there, a limited
host, idling. Pure.

Each cause, with how it was staged: docs/validity.md. A cause that disturbs keeps its round out of every window; one
that is unknown, as nobody counts what would show it, and one that is only told, warn.
"""

from __future__ import annotations

import typing as t
from dataclasses import replace

from ..records.measurement import Cause, QueueLimits, Seen, SeenQueue, StreamQueue
from ..records.planned_cell import AnyLoad, PlannedCell
from . import io_pattern, lost_time, thread_choice
from .validity_limits import Limits

OTHER_IO: t.Final = "other_io"
DISCARDED: t.Final = "discarded"
NOT_FILLED: t.Final = "queue_not_filled"
HOST_LIMITED: t.Final = "host_limited"
IDLE_GAP: t.Final = "idle_gap"
SUSPENDED: t.Final = "suspended"
CLOCK_JUMP: t.Final = "clock_jump"
STALLED: t.Final = "stalled"
BUSY_CPUS: t.Final = "busy_cpus"
NO_PERCENTILES: t.Final = "no_percentiles"
SELF_TEST: t.Final = "self_test"
TITLES = {
    OTHER_IO: "other I/O",
    DISCARDED: "discarded",
    NOT_FILLED: "queue not filled",
    HOST_LIMITED: "host busy",
    IDLE_GAP: "idle gap",
    SUSPENDED: "suspended",
    CLOCK_JUMP: "clock jump",
    STALLED: "stalled",
    BUSY_CPUS: "busy CPUs",
    NO_PERCENTILES: "no percentiles",
    # Of the drive and its host, between two rounds (drive_environment.py, tuned_host.py, self_test_wait.py).
    "link": "slower link",
    "throttled": "throttled",
    "pcie_errors": "PCI Express errors",
    "settings": "a setting changed",
    SELF_TEST: "self-test",
}
DISTURBS: t.Final = "disturbs"
UNKNOWN: t.Final = "unknown"
TOLD: t.Final = "told"

# What these change of a cell changes nothing of the cells after it.
OF_CELL = (NOT_FILLED, HOST_LIMITED)
# What may be the drive's own doing.
OF_DRIVE = ("link", "throttled", "pcie_errors", SELF_TEST)

# So much I/O reaches every drive of an array, in chunks of at most 1 MiB, and each has at least this part of its share.
STRIPED_BYTES, UNEVEN = 1 << 30, 0.5
# Small I/Os of others fill a queue long before they make up other_io_share of the bytes.
MOST_FOREIGN = 0.001


def thread_limit(cell: PlannedCell, seen: Seen, limits: Limits) -> list[Cause]:
    """Find fio's threads out of time, so that more of them would have done more.

    host_limited disturbs: fio's user and system time by thread. Limit: fio_cpu_max, with more than rate_error_max of
      the I/Os asked for not at the drive
    host_limited told: the same, with all but rate_error_max of them at the drive, by the kernel's count: it limits the
      rate. Limit: fio_cpu_max
    """
    if seen.fio_cpu < limits.fio_cpu_max or cell.polled:
        return []
    text = f"fio's threads used {seen.fio_cpu:.0%} of a CPU each"
    at_drive = None if _is_shared(cell, seen) else counted_in_flight(seen, limits)
    if lost_time.has_backlog(cell) and lost_time.short_share(cell, seen, at_drive) <= limits.rate_error_max:
        return [Cause(HOST_LIMITED, TOLD, f"{text}, but {at_drive:.1f} I/Os waited at the drive: the rate is its own")]
    return [
        Cause(HOST_LIMITED, DISTURBS, f"{text}: this measures the host; use {_more_time(cell, seen)} or larger blocks")
    ]


def _is_shared(cell: PlannedCell, seen: Seen) -> bool:
    """Return whether the kernel counted so much more than fio that some of what is in flight may be others'."""
    own = seen.process_bytes if cell.ramp_s else seen.fio_bytes
    kernel = sum((seen.kernel_bytes or {}).get(way, 0) for way in ("read", "write"))
    return own is None or kernel > (1 + MOST_FOREIGN) * sum(own.values())


def _more_time(cell: PlannedCell, seen: Seen) -> str:
    """Return what gives fio's threads more time. Where the host chose their number, nobody can set it."""
    if not cell.auto_threads:
        return "more threads"
    can_be_more = cell.threads < thread_choice.counts(cell, seen.cpus)[-1]
    return "another run, which chooses their number again," if can_be_more else f"more CPUs than {seen.cpus} for fio"


def shortfalls(cell: AnyLoad, seen: Seen, limits: Limits) -> list[str]:
    """Return what shows that fewer I/Os than asked were in flight. Not where the test leaves the queue open: a rate
    limit, or completions in batches.

    queue_not_filled disturbs: Little's law: fio's I/Os × mean latency ÷ runtime against threads × depth. Limit: below
      queued_min, above queued_max
    queue_not_filled disturbs: the kernel's time in queue ÷ runtime; skipped if it merged more than other_io_share.
      Limit: below in_flight_min of the depth
    """
    jobs = cell.jobs or []
    found = []
    for job in jobs:
        queue = (seen.streams or {}).get(job.name, StreamQueue(None, None))
        own = replace(seen, in_flight=None, queued=queue.queued, mean_latency_s=queue.mean_latency_s)
        found += [f"stream {job.name}: {text}" for text in shortfalls(job, own, limits)]
    if found or any(io_pattern.is_limited(job) for job in jobs):
        return found
    if io_pattern.is_limited(cell) or cell.batch or not seen.queued or seen.mean_latency_s is None:
        return []
    asked = io_pattern.asked_in_flight(cell)
    target, found = _reachable(cell, seen.limits, limits)
    # While a thread works for fio, one I/O of its own is missing.
    cost = cell.threads * min(1.0, seen.fio_cpu)
    edge = seen.mean_latency_s / (cell.burst_s or seen.run_s)
    # Between bursts the queue is empty, as asked.
    queued = seen.queued / io_pattern.busy_share(cell, seen.run_s)
    if target >= asked and queued + cost < (limits.queued_min - edge) * asked:
        found.append(f"IOPS x latency gives {queued:.1f} I/Os in flight instead of {asked}")
    if queued > (limits.queued_max + edge) * asked:
        found.append(
            f"IOPS x latency gives {queued:.1f} I/Os in flight, more than the {asked} requested: fio's clock and its "
            "counts disagree"
        )
    counted = counted_in_flight(seen, limits)
    in_flight = (counted or 0) / io_pattern.busy_share(cell, seen.run_s, with_ramp=True)
    if counted is not None and in_flight + cost < limits.in_flight_min * target:
        found.append(f"the kernel saw {in_flight:.1f} I/Os in flight instead of {asked}")
    return found


def counted_in_flight(seen: SeenQueue, limits: Limits) -> float | None:
    """Return the I/Os in flight by the kernel's count; None where it does not count the drive's, or merges them: merged
    I/Os are fewer in flight than asked, and as much.
    """
    is_counted = sum((seen.kernel_bytes or {}).values()) >= 0.5 * sum(seen.fio_bytes.values())
    is_whole = (seen.merged_share or 0) <= limits.other_io_share
    return seen.in_flight if seen.kernel_bytes is not None and is_counted and is_whole else None


def has_room(cell: PlannedCell, queue: QueueLimits) -> bool:
    """Return whether all I/Os that a cell asks for can be at the drive. Where not, those that wait for a place are not
    in the kernel's count, and wait for the drive all the same.
    """
    asked, requests = io_pattern.asked_in_flight(cell), queue.nr_requests
    room = asked if requests is None else requests * min(cell.threads, queue.hw_queues or 1)
    return asked <= min(room, asked if queue.device_depth is None else queue.device_depth)


def _reachable(cell: AnyLoad, queue: QueueLimits, limits: Limits) -> tuple[int, list[str]]:
    """Return how many of the I/Os asked for the drive can have in flight, and what keeps them fewer than that.

    queue_not_filled disturbs: `queue/nr_requests` × the hardware queues that the threads can use; `device/queue_depth`.
      Limit: room for less than queue_limit_min of the depth; a SCSI depth below device_depth
    """
    asked = io_pattern.asked_in_flight(cell)
    depth, requests = queue.device_depth, queue.nr_requests
    found = []
    if depth is not None and depth < limits.queue_limit_min * min(asked, limits.device_depth):
        found.append(f"device/queue_depth allows {depth} I/Os in flight, the cell asks for {asked}")
    target = asked if depth is None else min(asked, depth)
    room = None if requests is None else requests * min(cell.threads, queue.hw_queues or 1)
    if room is not None and room < limits.queue_limit_min * target:
        found.append(f"queue/nr_requests allows {room} I/Os in flight, the cell asks for {asked}: raise it")
    return target, found


def find(cell: PlannedCell, seen: Seen, limits: Limits = Limits(), strict: bool = False) -> list[Cause]:
    """Return the causes of one cell. cell: of the plan; strict: what is unknown disturbs too."""
    found = _discarded(seen, limits) + _between(seen, limits) + _beside(seen, limits)
    found += _other_io(cell, seen, limits) + _members(seen, limits) + _load(cell, seen, limits) + _time(seen, limits)
    return [replace(item, level=DISTURBS) if strict and item.level == UNKNOWN else item for item in found]


def _discarded(seen: Seen, limits: Limits) -> list[Cause]:
    """Find blocks that somebody gave back: the drive is in part as fresh again, now and in every round that follows.

    discarded disturbs: sectors discarded by others: in a cell, between two cells, during or after the fill. Limit: any
      (other_discard_bytes)
    """
    since = (seen.between_bytes or {}).get("discard", 0)
    while_on = max(0, (seen.kernel_bytes or {}).get("discard", 0) - (seen.trimmed_bytes or 0))
    if since + while_on <= limits.other_discard_bytes:
        return []
    text = (
        "another process discarded {0:.1f} MiB {1}, so the drive is no longer as the test prepared it: stop what "
        "trims it (fstrim, blkdiscard)"
    )
    when = "while fio ran" if while_on > limits.other_discard_bytes else "before this cell"
    return [Cause(DISCARDED, DISTURBS, text.format((since + while_on) / 2.0**20, when))]


def _between(seen: Seen, limits: Limits) -> list[Cause]:
    """Find writes since our own last I/O; reads change nothing.

    other_io disturbs: sectors written since our own last I/O: the cell before, the fill, the purge. Limit: more than
      other_write_bytes
    """
    written = (seen.between_bytes or {}).get("write", 0)
    if written <= limits.other_write_bytes:
        return []
    text = "another process wrote {0:.1f} MiB before this cell: stop what uses the drive"
    return [Cause(OTHER_IO, DISTURBS, text.format(written / 2.0**20))]


def _beside(seen: Seen, limits: Limits) -> list[Cause]:
    """Find I/O on other namespaces of the controller: none of ours are measured at the same time (preflight).

    other_io disturbs: bytes of other namespaces of the same NVMe controller or subsystem. Limit: more than
      other_io_share of fio's, and more than other_read_bytes
    """
    others = seen.beside_bytes or 0
    if others <= max(limits.other_read_bytes, limits.other_io_share * sum(seen.fio_bytes.values())):
        return []
    text = "other namespaces of its controller read and wrote {0:.1f} MiB while fio ran: stop what uses them"
    return [Cause(OTHER_IO, DISTURBS, text.format(others / 2.0**20))]


def _other_io(cell: PlannedCell, seen: Seen, limits: Limits) -> list[Cause]:
    """Compare sectors with fio's own bytes in each direction; where there is a ramp, which fio's JSON leaves out, with
    the process's own counts.

    other_io disturbs: sectors read and written, compared with fio's own bytes in each direction. Limit: more than
      other_io_share of fio's bytes, and more than other_read_bytes, other_write_bytes
    other_io unknown: `queue/iostats` is 0, or the kernel counted less than fio did (passthrough, drivers that don't
      count). Limit: a deficit of more than other_io_share
    """
    kernel, fio_bytes = seen.kernel_bytes, seen.fio_bytes
    if kernel is None:
        return [
            Cause(
                OTHER_IO,
                UNKNOWN,
                "whether others used the drive is unknown: the kernel does not count its I/O (queue/iostats)",
            )
        ]
    if any(kernel[name] < (1 - limits.other_io_share) * amount for name, amount in fio_bytes.items()):
        text = "whether others used the drive is unknown: the kernel counted {0} of fio's {1} bytes"
        return [Cause(OTHER_IO, UNKNOWN, text.format(sum(kernel[name] for name in fio_bytes), sum(fio_bytes.values())))]
    own = seen.process_bytes if cell.ramp_s else fio_bytes
    if own is None:
        return [
            Cause(
                OTHER_IO,
                UNKNOWN,
                (
                    "whether others used the drive is unknown: the kernel does not count fio's own I/O (/proc/PID/io), "
                    "ramp included"
                ),
            )
        ]
    floors = {"read": limits.other_read_bytes, "write": limits.other_write_bytes}
    allowed = limits.other_io_share * sum(own.values())
    words = {"read": "read", "write": "wrote"}
    more = {name: kernel[name] - own.get(name, 0) for name in floors}
    found = [
        f"{words[name]} {amount / 2.0**20:.1f} MiB ({amount / float(max(1, sum(own.values()))):.1%} of fio's I/O)"
        for name, amount in more.items()
        if amount > max(floors[name], allowed)
    ]
    return (
        [
            Cause(
                OTHER_IO,
                DISTURBS,
                "another process {0} while fio ran: stop what uses the drive".format(" and ".join(found)),
            )
        ]
        if found
        else []
    )


def _members(seen: Seen, limits: Limits) -> list[Cause]:
    """Check of an array that its I/O reached its drives, each of them its part, and that nobody else used one.

    other_io disturbs: on an array, I/O of its drives against the array's, and each drive's part against its share.
      Limit: more than other_io_share and the bytes above; from 1 GiB on, less than half of the share
    other_io unknown: the kernel does not count the I/O of one of the array's drives. Limit: any
    """
    told, kernel = seen.member_bytes, seen.kernel_bytes
    if not told or kernel is None:
        return []
    counted = {name: counts for name, counts in told.items() if counts is not None}
    if len(counted) < len(told):
        text = "whether the array's I/O reached all its drives is unknown: the kernel does not count that of {0}"
        return [Cause(OTHER_IO, UNKNOWN, text.format(", ".join(name for name in told if told[name] is None)))]
    words = {"read": ("read", limits.other_read_bytes), "write": ("wrote", limits.other_write_bytes)}
    found = []
    for way, (word, least) in words.items():
        total, slack = sum(counts[way] for counts in counted.values()), limits.other_io_share * sum(kernel.values())
        if total < kernel[way] - max(least, slack):
            found.append(
                f"the array {word} {kernel[way]} bytes, but its drives only {total}: the rest did not reach them"
            )
        if total > kernel[way] + max(least * len(counted), slack):
            found.append(f"another process {word} {(total - kernel[way]) / 2.0**20:.1f} MiB on drives of the array")
    of_all = sum(counts["read"] + counts["write"] for counts in counted.values())
    share = 1.0 / len(counted)
    for name, counts in counted.items():
        part = counts["read"] + counts["write"]
        if of_all >= STRIPED_BYTES and part < UNEVEN * share * of_all:
            found.append(f"{name} got {part / float(of_all):.1%} of the array's I/O, not {share:.1%} as striping gives")
    return [Cause(OTHER_IO, DISTURBS, text) for text in found]


def _load(cell: PlannedCell, seen: Seen, limits: Limits) -> list[Cause]:
    """Find out whether the queue was as full as asked, and whether the host let it be.

    host_limited disturbs: fio's CPUs never idle and the queue short. Limit: cpu_idle_min
    busy_cpus told: fio's CPUs never idle, the queue full, and what fio waited is unknown or below its limit. Limit:
      cpu_idle_min
    host_limited unknown: `/proc/stat` does not list fio's CPUs. Limit: none
    host_limited unknown: fio's threads poll (`io_uring_polled`) and use a whole CPU each, so their CPU time shows
      nothing. Limit: fio_cpu_max
    """
    short = shortfalls(cell, seen, limits)
    found = thread_limit(cell, seen, limits)
    lost = lost_time.find(cell, seen, limits, bool(short))
    found += [Cause(HOST_LIMITED, DISTURBS if item.disturbs else TOLD, item.message, time_taken=True) for item in lost]
    if seen.cpu_idle is None:
        found.append(
            Cause(
                HOST_LIMITED,
                UNKNOWN,
                "whether the host limits fio is unknown: /proc/stat does not list the CPUs that fio was given",
            )
        )
    if cell.polled and seen.fio_cpu >= limits.fio_cpu_max:
        text = "whether the host limits fio is unknown: its threads poll for completions, and so never wait"
        found.append(Cause(HOST_LIMITED, UNKNOWN, text))
    busy = seen.cpu_idle is not None and seen.cpu_idle < limits.cpu_idle_min
    said = "the CPUs that fio was given were idle for {0:.1%} of the time, while its threads used {1:.0%} of one each"
    said = said.format(seen.cpu_idle or 0, seen.fio_cpu)
    if short and busy:
        found.append(
            Cause(
                HOST_LIMITED,
                DISTURBS,
                "{0}; {1}: stop other load, or give fio other CPUs".format("; ".join(short), said),
                time_taken=True,
            )
        )
    elif short:
        found.append(Cause(NOT_FILLED, DISTURBS, "; ".join(short)))
    elif busy and not found:
        found.append(
            Cause(
                BUSY_CPUS,
                TOLD,
                said + "; nothing shows that the queue was short, but latencies may include time that fio waited",
            )
        )
    return found


def _time(seen: Seen, limits: Limits) -> list[Cause]:
    """Find pauses before a cell, and clocks that were set.

    idle_gap disturbs: time without I/O since the test's previous cell, by the monotonic clock; waiting for a late I/O
      is not idling. Limit: idle_gap_s
    suspended disturbs: `CLOCK_BOOTTIME` against `CLOCK_MONOTONIC` since the previous cell: the machine slept, and its
      drive lost power or went to a low-power state. Limit: suspended_s
    stalled told: fio's longest latency of the cell. Limit: stall_s
    clock_jump told: wall clock against `CLOCK_BOOTTIME` since the previous cell; all durations are measured by the
      monotonic clock. Limit: clock_jump_s
    """
    found = []
    if (seen.longest_s or 0) > limits.stall_s:
        text = (
            "an I/O took {0:.1f} s, more than {1:g} s: the drive or the host stalled, or fio miscounted; look "
            "at the kernel's log for resets, and add a criterion on max_latency_us if this should fail the drive"
        )
        found.append(Cause(STALLED, TOLD, text.format(seen.longest_s, limits.stall_s)))
    if (seen.idle_s or 0) > limits.idle_gap_s:
        text = "the drive idled for {0:.1f} s before this cell, more than {1:g} s: it may have collected garbage"
        found.append(Cause(IDLE_GAP, DISTURBS, text.format(seen.idle_s, limits.idle_gap_s)))
    if (seen.suspended_s or 0) > limits.suspended_s:
        text = (
            "the host was suspended for {0:.1f} s after the previous cell, so the drive lost or saved power; keep "
            "hosts from suspending"
        )
        found.append(Cause(SUSPENDED, DISTURBS, text.format(seen.suspended_s)))
    if abs(seen.clock_jump_s or 0) > limits.clock_jump_s:
        text = (
            "the wall clock jumped by {0:+.1f} s: timestamps before and after it can't be compared; durations are not "
            "affected"
        )
        found.append(Cause(CLOCK_JUMP, TOLD, text.format(seen.clock_jump_s)))
    return found
