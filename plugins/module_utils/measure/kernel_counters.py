# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the kernel counts around a run of fio: the drive's sectors and time in queue, CPU time, throttling (cgroups(7),
`cpu.stat`), its clocks.
"""

from __future__ import annotations

import os
import posixpath
import re
import time
import typing as t

from ..core.host import Host
from ..core.sysfs import number
from ..drive.identity import SYSFS_SECTOR_BYTES
from ..machine import cpus
from ..records.measurement import QueueLimits, Seen, StreamQueue
from ..records.planned_cell import PlannedCell
from . import fio_result
from .fio_result import FioJob, FioResult
from .hidden_variation import CounterSample

# Where the controller `cpu` of each version is mounted, the key of its cpu.stat and how many of its units are a second.
_CGROUP_V2 = (("/sys/fs/cgroup", "/sys/fs/cgroup/unified"), "throttled_usec", 1e6)
_CGROUP_V1 = (("/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct"), "throttled_time", 1e9)

SECTORS = {"read": 2, "write": 6, "discard": 13}
IOS, MERGES, IN_FLIGHT, LEAST_FIELDS = (0, 4), (1, 5), 8, 11
# How long reads, writes and discards took, in ms. Their sum (10) misses what takes less than a jiffy on Linux 5.0 to
# 5.6, and has flushes twice since 5.7.
QUEUE_MS = (3, 7, 14)
# Milliseconds are told in 32 bits: those in the queue begin at 0 again every 9.3 hours at 128 I/Os in flight.
TICKS, TICKS_WRAP = (3, 7, 9, 10, 14, 16), 1 << 32
# proc(5), /proc/stat: user nice system idle iowait irq softirq steal; guest time is in user already.
IDLE, STEAL, CPU_FIELDS = (3, 4), 7, 8
# /proc/PID/io: what a process had the kernel fetch from or send to block devices, by all of its threads.
PROCESS = {"read_bytes": "read", "write_bytes": "write"}

# Not nvme0c1n1: a path of a namespace, whose I/O is the namespace's own.
_NAMESPACE = re.compile(r"nvme[0-9]+n[0-9]+")


def throttled_s(host: Host) -> dict[str, float]:
    """Seconds, summed over CPUs, that each group above this process was throttled since it was made: {path of cpu.stat:
    seconds}.

    A group's own file tells nothing of the groups above it, so all are read; {} where no quota can be seen.
    """
    found: dict[str, float] = {}
    for line in (host.get("/proc/self/cgroup") or "").splitlines():
        _number, controllers, path = line.split(":", 2)
        if controllers and "cpu" not in controllers.split(","):
            continue
        bases, key, unit = _CGROUP_V1 if controllers else _CGROUP_V2
        for folder in _upward(path):
            for base in bases:
                file = "{0}{1}/cpu.stat".format(base, folder.rstrip("/"))
                value = _stat_value(host.get(file) or "", key)
                if value is not None:
                    found[file] = value / unit
    return found


def _upward(path: str) -> t.Iterator[str]:
    """Yield a path and all above it; a container may see none of its own path, but what is mounted is its own group
    then.
    """
    while True:
        yield path
        if path in ("/", ""):
            return
        path = posixpath.dirname(path)


def _stat_value(text: str, key: str) -> int | None:
    values = [line.split() for line in text.splitlines() if line.startswith(key + " ")]
    return int(values[0][1]) if values and len(values[0]) == 2 and values[0][1].isdigit() else None


class CounterSnapshot(t.NamedTuple):
    """One moment. stat: of the drive, None where the kernel does not count; cpu: of fio's CPUs; throttled:
    kernel_counters.throttled_s;
    boot_s: as time_s, but it goes on while the machine sleeps; beside: bytes read and written of other namespaces."""

    time_s: float
    wall_s: float
    stat: list[int] | None
    cpu: CpuTicks | None
    throttled: dict[str, float]
    boot_s: float
    beside: int | None = None


class Witness:
    """Looks at one drive's counters and at the CPUs that fio was given (a list as the kernel writes it; None: all that
    this process may use).
    """

    def __init__(self, host: Host, name: str, given: str | None) -> None:
        self._host = host
        self._base = f"/sys/block/{name}/"
        self._cpus = cpus.parse(given) if given else sorted(os.sched_getaffinity(0))
        self._beside = sibling_namespaces(host, name)

    def look(self) -> CounterSnapshot:
        """Now. The drive's counters come last: nothing of ours lies between them and fio's start."""
        cpu, throttled = cpu_ticks(self._host.get("/proc/stat") or "", self._cpus), throttled_s(self._host)
        others = [counters(self._host.get(f"/sys/block/{name}/stat") or "") for name in self._beside]
        told = (
            sum(fields[SECTORS[way]] for fields in others if fields for way in ("read", "write")) * SYSFS_SECTOR_BYTES
        )
        boot_s = time.clock_gettime(time.CLOCK_BOOTTIME)
        return CounterSnapshot(
            time.monotonic(), time.time(), self.stat(), cpu, throttled, boot_s, told if others else None
        )

    def stat(self) -> list[int] | None:
        """Return the drive's counters alone; None where the kernel does not count."""
        off = self._host.get(self._base + "queue/iostats") == "0"
        return None if off else counters(self._host.get(self._base + "stat") or "")

    def sample(self) -> CounterSample | None:
        """Return the drive's counts of I/O, as they were between two moments; None where the kernel does not count."""
        began_s, stat = time.monotonic(), self.stat()
        if stat is None:
            return None
        done = (stat[SECTORS["read"]] + stat[SECTORS["write"]]) * SYSFS_SECTOR_BYTES
        return CounterSample(began_s, time.monotonic(), done, sum(stat[field] for field in IOS), stat[IN_FLIGHT])

    def limits(self) -> QueueLimits:
        """Return what bounds the drive's queue."""
        queues = len(self._host.listdir(self._base + "mq"))
        return QueueLimits(
            nr_requests=number(self._host, self._base + "queue/nr_requests") if queues else None,
            hw_queues=queues or None,
            device_depth=number(self._host, self._base + "device/queue_depth"),
        )

    @property
    def cpu_count(self) -> int:
        """How many CPUs fio was given."""
        return len(self._cpus)


def sibling_namespaces(host: Host, name: str) -> list[str]:
    """Return the other namespaces of an NVMe drive's controller, or of its subsystem: they share what it is made of."""
    if not _NAMESPACE.fullmatch(name):
        return []
    home = host.realpath(f"/sys/block/{name}/device")
    named = [other for other in host.listdir("/sys/block") if other != name and _NAMESPACE.fullmatch(other)]
    return [other for other in named if host.realpath(f"/sys/block/{other}/device") == home]


def between(settled: t.Sequence[int] | None, now: t.Sequence[int] | None) -> dict[str, int] | None:
    """Bytes {write, discard} that the drive took between two looks; None where nobody counted, or counted anew."""
    if (
        not settled
        or not now
        or len(settled) != len(now)
        or any(one > now[field] for field, one in enumerate(settled[:IN_FLIGHT]) if field not in TICKS)
    ):
        return None
    fields = {name: SECTORS[name] for name in ("write", "discard") if SECTORS[name] < len(now)}
    return {name: max(0, now[field] - settled[field]) * SYSFS_SECTOR_BYTES for name, field in fields.items()}


def counters(text: str) -> list[int] | None:
    """Return the fields of a stat file; None for one of another form. Before Linux 4.18 it has no discards."""
    fields = text.split()
    return (
        [int(field) for field in fields]
        if len(fields) >= LEAST_FIELDS and all(field.isdigit() for field in fields)
        else None
    )


def grown(before: t.Sequence[int], now: t.Sequence[int]) -> list[int]:
    """Return how much each counter grew."""
    more = [other - one for one, other in zip(before, now)]
    return [by % TICKS_WRAP if field in TICKS else by for field, by in enumerate(more)]


class CpuTicks(t.NamedTuple):
    """Ticks of CPUs together, of /proc/stat; stolen: for each of them, (all, stolen)."""

    all: int
    idle: int
    stolen: tuple[tuple[int, int], ...]


def cpu_ticks(text: str, wanted: t.Collection[int]) -> CpuTicks | None:
    """Return the ticks of some CPUs; None where one of them is not told."""
    names = {f"cpu{cpu}" for cpu in wanted}
    rows = [line.split() for line in text.splitlines() if line.split(" ", 1)[0] in names]
    if not names or len(rows) != len(names) or any(len(row) <= CPU_FIELDS for row in rows):
        return None
    values = [[int(field) for field in row[1 : CPU_FIELDS + 1]] for row in rows]
    stolen = tuple((sum(row), row[STEAL]) for row in values)
    return CpuTicks(sum(map(sum, values)), sum(row[field] for row in values for field in IDLE), stolen)


def _steal(before: CpuTicks, after: CpuTicks, threads: int) -> float:
    """Return the share of the time that a hypervisor took from the CPUs that lost most, one for each thread: idle ones
    lose none.
    """
    pairs = zip(before.stolen, after.stolen)
    shares = sorted((now[1] - then[1]) / max(1, now[0] - then[0]) for then, now in pairs)
    most = shares[-threads:]
    return round(sum(most) / len(most), 4)


def process_bytes(host: Host, pid: int) -> dict[str, int] | None:
    """Bytes that a process had block devices read and write, by all its threads; None where the kernel does not count.

    It may have ended, but must not be reaped yet.
    """
    found = {}
    for line in (host.get(f"/proc/{pid}/io") or "").splitlines():
        key, _colon, value = line.partition(":")
        if key in PROCESS and value.strip().isdigit():
            found[PROCESS[key]] = int(value)
    return found if len(found) == len(PROCESS) else None


def _grown(before: int | None, after: int | None) -> int | None:
    return None if before is None or after is None else max(0, after - before)


def evidence(
    cell: PlannedCell,
    result: FioResult,
    before: CounterSnapshot,
    after: CounterSnapshot,
    process: dict[str, int] | None,
    witness: Witness,
) -> Seen:
    """Return what the causes of a disturbed cell are judged by, as far as counters and fio's result tell."""
    job = fio_result.combined(result)
    run_s, queued, total_ios = _queued(job)
    more = grown(before.stat, after.stat) if before.stat and after.stat else None
    ios = sum(more[field] for field in IOS) if more else 0
    elapsed_s = after.time_s - before.time_s
    ticks = after.cpu.all - before.cpu.all if before.cpu and after.cpu else 0
    held = [after.throttled[file] - before.throttled[file] for file in after.throttled if file in before.throttled]
    return Seen(
        fio_bytes={name: job.sides[name].bytes for name in fio_result.DIRECTIONS},
        process_bytes=process or None,
        kernel_bytes=_sector_bytes(more) if more else None,
        merged_share=round(sum(more[field] for field in MERGES) / ios, 4) if more and ios else None,
        run_s=run_s,
        mean_latency_s=queued / total_ios if total_ios else None,
        longest_s=round(max(side.latency.max for side in job.sides.values()) / 1e9, 6),
        queued=round(queued / run_s, 4) if run_s else None,
        in_flight=round(_queue_s(more) / (run_s + (cell.ramp_s or 0)), 4) if more and run_s else None,
        limits=witness.limits(),
        fio_cpu=round((job.user_cpu_pct + job.system_cpu_pct) / 100.0, 4),
        cpus=witness.cpu_count,
        cpu_idle=round((after.cpu.idle - before.cpu.idle) / ticks, 4) if before.cpu and after.cpu and ticks else None,
        cpu_steal=_steal(before.cpu, after.cpu, cell.threads) if before.cpu and after.cpu and ticks else None,
        throttled_s=round(max(held), 4) if held else None,
        elapsed_s=round(elapsed_s, 3),
        beside_bytes=_grown(before.beside, after.beside),
        # What the clocks and the cells before tell (cell_observer.py).
        idle_s=None,
        clock_jump_s=0.0,
        trimmed_bytes=sum(one.sides["trim"].bytes for one in result.jobs if "trim" in one.sides) if cell.jobs else None,
        streams={one.name.rpartition(".")[2]: _queue_of(one) for one in result.jobs} if cell.jobs else None,
    )


class MembersSeen(t.NamedTuple):
    """What the drives of an array did while fio worked on it. bytes: by kernel name, each {read, write, discard}, or
    None where the kernel does not count; in_flight: of all, as older kernels don't time an array's own I/O.
    """

    bytes: dict[str, dict[str, int] | None]
    in_flight: float | None


def of_members(counts: t.Sequence[t.Mapping[str, list[int] | None]], busy_s: float) -> MembersSeen:
    """Return what the drives of an array did. counts: {kernel name: stat} before and after."""
    before, after = counts
    more = {name: _grown_of(stat, after[name]) for name, stat in before.items()}
    known = [_queue_s(fields) for fields in more.values() if fields]
    queued = round(sum(known) / busy_s, 4) if busy_s and len(known) == len(more) else None
    return MembersSeen({name: _sector_bytes(fields) if fields else None for name, fields in more.items()}, queued)


def _grown_of(before: list[int] | None, after: list[int] | None) -> list[int] | None:
    return grown(before, after) if before and after else None


def _queue_s(fields: t.Sequence[int]) -> float:
    """Return how long I/Os were at a drive, summed over them."""
    return sum(fields[field] for field in QUEUE_MS if field < len(fields)) / 1000.0


def _sector_bytes(fields: t.Sequence[int]) -> dict[str, int]:
    """Return the bytes of each of SECTORS that a drive counts."""
    return {name: fields[field] * SYSFS_SECTOR_BYTES for name, field in SECTORS.items() if field < len(fields)}


def _queued(job: FioJob) -> tuple[float, float, int]:
    """Of a reporting group: how long it ran, the I/Os' latencies summed up in seconds, and how many I/Os there were.

    While a thread flushes it has no other I/O, so flushes count too.
    """
    sides = job.sides.values()
    run_s = max(side.runtime_ms for side in sides) / 1000.0
    queued_ns = sum(side.ios * side.latency.mean for side in sides if side.ios)
    return run_s, queued_ns / 1e9, sum(side.ios for side in sides)


def _queue_of(stream: FioJob) -> StreamQueue:
    """Return how full the queue of one of several streams was."""
    run_s, queued, ios = _queued(stream)
    return StreamQueue(round(queued / run_s, 4) if run_s else None, queued / ios if ios else None)
