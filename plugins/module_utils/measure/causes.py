# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What spoils a cell though fio's figures are true of their job: other I/O, a load that was not there, a limited host,
idling. Pure.

Each cause, with how it was staged: docs/validity.md. A cause that spoils keeps its round out of every window; one that
is unknown, as nobody counts what would show it, and one that is only told, warn.
"""

from __future__ import annotations

import typing as t

from . import load

OTHER_IO, DISCARDED, NOT_FILLED, HOST_LIMITED = "other_io", "discarded", "queue_not_filled", "host_limited"
IDLE_GAP, SUSPENDED, CLOCK_JUMP, STALLED = "idle_gap", "suspended", "clock_jump", "stalled"
TITLES = {
    OTHER_IO: "other I/O",
    DISCARDED: "discarded",
    NOT_FILLED: "queue not filled",
    HOST_LIMITED: "host limited",
    IDLE_GAP: "idle gap",
    SUSPENDED: "suspended",
    CLOCK_JUMP: "clock jump",
    STALLED: "stalled",
}
SPOILS, UNKNOWN, TOLD = "spoils", "unknown", "told"

Mapping = t.Mapping[str, t.Any]


class Limits(t.NamedTuple):
    """The thresholds, each with its reason; `ssd_validity_limits` may set another."""

    # Of fio's own bytes: a hundredth is below the range that steady state allows by far, and what a monitoring agent
    # reads stays below it.
    other_io_share: float = 0.01
    # One probe of blkid, as udev starts it when a device is closed, reads 1.0 MiB, also of a drive that is too slow for
    # 1 % to allow it: eight of them.
    other_read_bytes: float = 8 << 20
    # No probe writes; a label or a superblock that somebody else's tool updates is a few blocks.
    other_write_bytes: float = 64 << 10
    # No probe discards.
    other_discard_bytes: float = 0
    # IOPS x mean latency against threads x depth: below 0.9 a tenth of the queue was empty, as when submitting takes
    # longer than the drive does.
    queued_min: float = 0.9
    # More than was asked can't be in flight; what is above 1 is the edges of the runtime.
    queued_max: float = 1.05
    # The kernel's own count begins later and ends earlier than fio's: 0.52 was seen on a loop device in memory on a
    # busy host, 0.98 on drives of a millisecond. Where two thirds of the queue were never at the drive it is not the
    # drive that was measured.
    in_flight_min: float = 0.33
    # Tags that the driver keeps for itself (255 of 256) are no shortage.
    queue_limit_min: float = 0.9
    # SATA has 32 tags and no more (31 with older kernels): a depth below is a setting, one above is more than the drive
    # can be asked.
    device_depth: float = 31
    # A thread that never waits for the drive measures the host; a twentieth is lost to its clock and interrupts.
    fio_cpu_max: float = 0.95
    # What a hypervisor or a CPU quota takes from fio is latency that is not the drive's; one in twenty is more than
    # jitter.
    steal_max: float = 0.05
    throttled_max: float = 0.05
    # CPUs with no idle time to speak of: fio waits for them.
    cpu_idle_min: float = 0.02
    # A drive that idles collects garbage and is faster afterwards; starting fio takes 0.5 s.
    idle_gap_s: float = 5.0
    # Two clocks are read one after the other, and a busy host may stop us in between; no machine sleeps for less.
    suspended_s: float = 1.0
    # Slewing is at most 0.5 ms a second: a jump is somebody setting the clock.
    clock_jump_s: float = 2.0
    # TN-FD-15 (Other I/O Testing Tools) takes a latency above 10 s for an error of the tool.
    stall_s: float = 10.0


class Cause(t.NamedTuple):
    """One cause, in a cell or of a whole test (world). cause: a key of TITLES, or a word of docs/validity.md; level:
    SPOILS, UNKNOWN (nobody can tell) or TOLD; message: what was seen and what to do.
    """

    cause: str
    level: str
    message: str


def find(cell: Mapping, seen: Mapping, limits: Limits = Limits(), strict: bool = False) -> list[Cause]:
    """The causes of one cell. cell: of the plan; seen: witness.evidence with idle_s and clock_jump_s; strict: what is
    unknown spoils too.
    """
    found = _discarded(seen, limits) + _between(seen, limits) + _beside(seen, limits)
    found += _other_io(cell, seen, limits) + _load(cell, seen, limits) + _time(seen, limits)
    return [item._replace(level=SPOILS) if strict and item.level == UNKNOWN else item for item in found]


def _discarded(seen: Mapping, limits: Limits) -> list[Cause]:
    """Blocks that somebody gave back: the drive is in part as fresh again, now and in every round that follows."""
    since = (seen.get("between_bytes") or {}).get("discard", 0)
    while_on = max(0, (seen["kernel_bytes"] or {}).get("discard", 0) - seen.get("trimmed_bytes", 0))
    if since + while_on <= limits.other_discard_bytes:
        return []
    text = (
        "somebody else discarded {0:.1f} MiB {1}, so the drive is not as the test made it: stop what trims it "
        "(fstrim, blkdiscard)"
    )
    when = "while fio ran" if while_on > limits.other_discard_bytes else "before this cell"
    return [Cause(DISCARDED, SPOILS, text.format((since + while_on) / 2.0**20, when))]


def _between(seen: Mapping, limits: Limits) -> list[Cause]:
    """Writes since our own last I/O; reads change nothing."""
    written = (seen.get("between_bytes") or {}).get("write", 0)
    if written <= limits.other_write_bytes:
        return []
    text = "somebody else wrote {0:.1f} MiB before this cell: stop what uses the drive"
    return [Cause(OTHER_IO, SPOILS, text.format(written / 2.0**20))]


def _beside(seen: Mapping, limits: Limits) -> list[Cause]:
    """I/O on other namespaces of the controller: none of ours are measured at the same time (preflight)."""
    others = seen.get("beside_bytes") or 0
    if others <= max(limits.other_read_bytes, limits.other_io_share * sum(seen["fio_bytes"].values())):
        return []
    text = "other namespaces of its controller read and wrote {0:.1f} MiB while fio ran: stop what uses them"
    return [Cause(OTHER_IO, SPOILS, text.format(others / 2.0**20))]


def _other_io(cell: Mapping, seen: Mapping, limits: Limits) -> list[Cause]:
    """Sectors against fio's own bytes in each direction. fio's JSON leaves the ramp out, so there the process's own
    counts.
    """
    kernel, fio_bytes = seen["kernel_bytes"], seen["fio_bytes"]
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
    own = seen["process_bytes"] if cell.get("ramp_s") else fio_bytes
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
                SPOILS,
                "somebody else {0} while fio ran: stop what uses the drive".format(" and ".join(found)),
            )
        ]
        if found
        else []
    )


def _load(cell: Mapping, seen: Mapping, limits: Limits) -> list[Cause]:
    """Whether the queue was as full as asked, and whether the host let it be."""
    found = [Cause(HOST_LIMITED, SPOILS, text) for text in _host(cell, seen, limits)]
    if seen["cpu_idle"] is None:
        found.append(
            Cause(
                HOST_LIMITED,
                UNKNOWN,
                "whether the host limits fio is unknown: /proc/stat does not list the CPUs that fio was given",
            )
        )
    if cell.get("polled") and seen["fio_cpu"] >= limits.fio_cpu_max:
        text = "whether the host limits fio is unknown: its threads poll for completions, and so never wait"
        found.append(Cause(HOST_LIMITED, UNKNOWN, text))
    short = _short(cell, seen, limits)
    busy = seen["cpu_idle"] is not None and seen["cpu_idle"] < limits.cpu_idle_min
    said = "the CPUs that fio was given were idle for {0:.1%} of the time, while its threads used {1:.0%} of one each"
    said = said.format(seen["cpu_idle"] or 0, seen["fio_cpu"])
    if short and busy:
        found.append(
            Cause(
                HOST_LIMITED,
                SPOILS,
                "{0}; {1}: stop other load, or give fio other CPUs".format("; ".join(short), said),
            )
        )
    elif short:
        found.append(Cause(NOT_FILLED, SPOILS, "; ".join(short)))
    elif busy and not found:
        found.append(
            Cause(
                HOST_LIMITED,
                TOLD,
                said + "; nothing shows that the queue was short, but latencies may hold time that fio waited",
            )
        )
    return found


def _host(cell: Mapping, seen: Mapping, limits: Limits) -> list[str]:
    found = []
    if seen["fio_cpu"] >= limits.fio_cpu_max and not cell.get("polled"):
        found.append(
            (
                "fio's threads used {0:.0%} of a CPU each: this measures the host; use more threads or larger blocks"
            ).format(seen["fio_cpu"])
        )
    if (seen["cpu_steal"] or 0) > limits.steal_max:
        found.append("the hypervisor took {0:.0%} of the time of fio's CPUs".format(seen["cpu_steal"]))
    # Throttled time is a sum over CPUs; no more of them than fio has threads can wait at once.
    share = (seen["throttled_s"] or 0) / max(0.001, seen["elapsed_s"] * min(cell["threads"], seen["cpus"]))
    if share > limits.throttled_max:
        found.append(f"its control group's CPU quota held fio up for {share:.0%} of the time: raise it")
    return found


def _short(cell: Mapping, seen: Mapping, limits: Limits) -> list[str]:
    """What shows that fewer I/Os than asked were in flight. Not where the test leaves the queue open: a rate limit, or
    completions in batches.
    """
    jobs = cell.get("jobs") or []
    found = []
    for job in jobs:
        own = dict(seen, in_flight=None, **(seen.get("streams") or {}).get(job["name"], {"queued": None}))
        found += ["stream {0}: {1}".format(job["name"], text) for text in _short(job, own, limits)]
    if found or any(load.is_limited(job) for job in jobs):
        return found
    if load.is_limited(cell) or cell.get("batch") or not seen["queued"]:
        return []
    asked = load.asked_in_flight(cell)
    target, found = _reachable(cell, seen["limits"], limits)
    # While a thread works for fio, one I/O of its own is missing.
    cost = cell["threads"] * min(1.0, seen["fio_cpu"])
    edge = seen["mean_latency_s"] / (cell.get("burst_s") or seen["run_s"])
    # Between bursts the queue is empty, as asked.
    queued = seen["queued"] / load.busy_share(cell, seen["run_s"])
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
    in_flight = (seen["in_flight"] or 0) / load.busy_share(cell, seen["run_s"], with_ramp=True)
    if counted and in_flight + cost < limits.in_flight_min * target:
        found.append(f"the kernel saw {in_flight:.1f} I/Os in flight instead of {asked}")
    return found


def _is_counted(seen: Mapping) -> bool:
    """Whether the kernel counts this drive's I/O at all."""
    return seen["kernel_bytes"] is not None and sum(seen["kernel_bytes"].values()) >= 0.5 * sum(
        seen["fio_bytes"].values()
    )


def _reachable(cell: Mapping, queue: Mapping, limits: Limits) -> tuple[int, list[str]]:
    """(I/Os that the drive can have in flight of those asked, what keeps them fewer than that)."""
    asked = load.asked_in_flight(cell)
    depth, requests = queue["device_depth"], queue["nr_requests"]
    found = []
    if depth is not None and depth < limits.queue_limit_min * min(asked, limits.device_depth):
        found.append(f"device/queue_depth allows {depth} I/Os in flight, the cell asks for {asked}")
    target = asked if depth is None else min(asked, depth)
    room = None if requests is None else requests * min(cell["threads"], queue["hw_queues"] or 1)
    if room is not None and room < limits.queue_limit_min * target:
        found.append(f"queue/nr_requests allows {room} I/Os in flight, the cell asks for {asked}: raise it")
    return target, found


def _time(seen: Mapping, limits: Limits) -> list[Cause]:
    found = []
    if (seen.get("longest_s") or 0) > limits.stall_s:
        text = (
            "an I/O took {0:.1f} s, more than {1:g} s: the drive or the host stalled, or fio miscounted; look "
            "at the kernel's log for resets, and add a criterion on max_latency_us if this should fail the drive"
        )
        found.append(Cause(STALLED, TOLD, text.format(seen["longest_s"], limits.stall_s)))
    if (seen.get("idle_s") or 0) > limits.idle_gap_s:
        text = "the drive idled for {0:.1f} s before this cell, more than {1:g} s: it may have collected garbage"
        found.append(Cause(IDLE_GAP, SPOILS, text.format(seen["idle_s"], limits.idle_gap_s)))
    if (seen.get("suspended_s") or 0) > limits.suspended_s:
        text = (
            "the host was suspended for {0:.1f} s after the previous cell, so the drive lost or saved power; keep "
            "hosts from suspending"
        )
        found.append(Cause(SUSPENDED, SPOILS, text.format(seen["suspended_s"])))
    if abs(seen.get("clock_jump_s") or 0) > limits.clock_jump_s:
        text = (
            "the wall clock jumped by {0:+.1f} s: times of records before and after cannot be compared; durations are "
            "by the monotonic clock"
        )
        found.append(Cause(CLOCK_JUMP, TOLD, text.format(seen["clock_jump_s"])))
    return found
