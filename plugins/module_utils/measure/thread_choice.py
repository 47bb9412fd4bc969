# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How many threads a cell with `threads: auto` gets: the fewest that leave each enough of a CPU, by short trials that
read. How many I/Os are in flight together stays. Pure.
"""

from __future__ import annotations

import dataclasses
import math
import typing as t

from ..records.measurement import Chosen, Seen
from ..records.planned_cell import PlannedCell

TRIAL_S = 3
# What a trial has in place of what its cell says.
TRIAL: t.Mapping[str, t.Any] = {"read_pct": 100, "runtime_s": TRIAL_S, "ramp_s": None}
# The share of a CPU that a thread may use: well below fio_cpu_max, as a round may be faster and a CPU slower.
CPU_MAX = 0.6
# CPU time of a write ÷ that of a read of the same size, at most: fio 3.33, libaio, a loop device, one thread at depth
# 32 took 5.2 µs a read and 4.7 a write of 4 KiB, 10.9 and 13.9 of 128 KiB, 52 and 84 of 1 MiB.
WRITE_COST = 1.6
# Threads that poll use a whole CPU each: more of them are needed while they raise the rate by this factor.
POLLED_GAIN = 1.05


class Trial(t.NamedTuple):
    """What a trial showed. cpu: of thread_cpu."""

    cpu: float
    iops: float


def trial_cell(cell: PlannedCell, threads: int) -> PlannedCell:
    """Return the trial of a cell with so many threads."""
    depth = _in_flight(cell) // threads
    return dataclasses.replace(cell, **TRIAL, threads=threads, queue_depth=depth, job=cell.trial_job)


def thread_cpu(seen: Seen, threads: int) -> float:
    """Return the share that each thread used of the CPU time that it could have: on a busy host one may be out of time
    that ran a fifth of it.
    """
    waited = (seen.waited_s or 0.0) / max(0.001, seen.run_s * threads)
    left = 1.0 - min(1.0, waited + (seen.cpu_steal or 0.0))
    return round(min(1.0, seen.fio_cpu / max(left, seen.fio_cpu, 0.001)), 4)


def counts(cell: PlannedCell, cpus: int, active_bytes: int | None = None) -> list[int]:
    """Return the numbers of threads that a cell may have: those that its I/Os in flight divide among, no more than
    there are CPUs and, in sequence, blocks of the ActiveRange.
    """
    blocks = None if active_bytes is None or cell.access == "random" else active_bytes // cell.block_size_bytes
    most = min(_in_flight(cell), cpus, cpus if blocks is None else blocks)
    return [count for count in range(1, max(1, most) + 1) if _in_flight(cell) % count == 0]


def choose(cell: PlannedCell, cpus: int, active_bytes: int, run_trial: t.Callable[[int], Trial]) -> Chosen:
    """Return the threads and depth of a cell. run_trial: of so many threads; the most that there may be need none."""
    possible = counts(cell, cpus, active_bytes)
    limit = CPU_MAX / (1 if cell.read_pct == 100 else WRITE_COST)
    needed, iops = 1, 0.0
    for threads in possible[:-1]:
        if threads < needed:
            continue
        found = run_trial(threads)
        if found.iops < POLLED_GAIN * iops if cell.polled else found.cpu < limit:
            return _chosen(cell, threads, cpus, found.cpu)
        needed, iops = math.ceil(threads * found.cpu / limit), found.iops
    return _chosen(cell, possible[-1], cpus)


def _chosen(cell: PlannedCell, threads: int, cpus: int, trial_cpu: float | None = None) -> Chosen:
    return Chosen(threads, _in_flight(cell) // threads, cpus=cpus, trial_cpu=trial_cpu)


def _in_flight(cell: PlannedCell) -> int:
    return cell.threads * cell.queue_depth
