# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a cell asks for beyond one size of I/O all the time: bursts, mixes of sizes, a point that a sweep
decides, threads that the CPUs decide. Pure.
"""

from __future__ import annotations

import math
import typing as t

from ..records.measurement import Chosen
from ..records.planned_cell import AnyLoad, PlannedCell, PointOfSweep


def burst_time_s(cell: AnyLoad) -> float:
    """Return how long a cell does I/O within its runtime: all of it, or its bursts."""
    if not cell.burst_s or not cell.idle_s:
        return cell.runtime_s
    return cell.runtime_s * cell.burst_s / float(cell.burst_s + cell.idle_s)


def busy_share(cell: AnyLoad, run_s: float, with_ramp: bool = False) -> float:
    """Return the share of run_s in which a cell's queue is to be full.

    with_ramp: of the time with its ramp, in which it is full throughout.
    """
    if not cell.burst_s or not run_s:
        return 1.0
    ramp_s = (cell.ramp_s or 0) if with_ramp else 0
    return min(1.0, (burst_time_s(cell) + ramp_s) / (run_s + ramp_s))


def is_limited(one: AnyLoad) -> bool:
    """Return whether a cell or a stream has a rate limit, which leaves its queue open."""
    return bool(one.rate_iops or one.rate_mib_s_per_tb)


def streams(cell: AnyLoad) -> t.Sequence[AnyLoad]:
    """Return the streams of a cell that has several, else the cell."""
    return cell.jobs or [cell]


def asked_in_flight(cell: AnyLoad) -> int:
    """Return how many I/Os a cell asks to have in flight: of several streams the sum."""
    return sum(one.threads * one.queue_depth for one in streams(cell))


def directions(cell: PlannedCell) -> dict[str, float]:
    """Return the sides of fio's result that have to have had I/O, each with its share of the I/Os (1: all).

    Of several streams those that one does without mixing, whatever share of all I/O that is.
    """
    found: dict[str, float] = {}
    for one in streams(cell):
        shares = {"read": one.read_pct / 100.0, "write": 1 - one.read_pct / 100.0}
        shares = {"trim": 1.0} if one.trim else {name: share for name, share in shares.items() if share}
        found.update({name: share for name, share in shares.items() if share == 1 or not cell.jobs})
    return found


def sides(cell: AnyLoad) -> set[str]:
    """Return what a cell does of read, write, trim and sync."""
    found: set[str] = set()
    for one in streams(cell):
        found |= {"trim"} if one.trim else {"read"} if one.read_pct == 100 else {"write"}
        found |= {"read"} if one.read_pct and not one.trim else set()
        found |= {"sync"} if one.fdatasync else set()
    return found


class Sizes:
    """The sizes of a fio job's I/O and their shares, by its options bs or bssplit."""

    def __init__(self, options: t.Mapping[str, str]) -> None:
        split = options.get("bssplit")
        pairs = [part.split("/") for part in split.split(":")] if split else [[options["bs"], "100"]]
        self._shares = {int(size): int(pct) / 100.0 for size, pct in pairs}
        self.are_one = len(self._shares) == 1
        self.most = max(self._shares)
        self.mean = sum(size * share for size, share in self._shares.items())
        self._deviation = math.sqrt(sum(share * (size - self.mean) ** 2 for size, share in self._shares.items()))
        self._unit = 0
        for size in self._shares:
            self._unit = math.gcd(self._unit, size)

    def fit(self, ios: int, total_bytes: int, astride: int, deviations: float) -> bool:
        """Return whether so many I/Os can have so many bytes.

        astride: I/Os that may be counted in part; deviations: how far chance may go, in standard deviations.
        """
        if total_bytes % self._unit:
            return False
        if self.are_one:
            return 0 <= total_bytes // self._unit - ios <= astride
        chance = deviations * self._deviation * math.sqrt(ios)
        return abs(total_bytes - ios * self.mean) <= chance + (1 + astride) * self.most

    def __str__(self) -> str:
        return str(self.most) if self.are_one else f"{self.mean:.0f} on average"


def by_cpus(cell: PlannedCell, cpus: int) -> Chosen:
    """Return the load of a cell with per_cpu where fio has so many CPUs.

    As many threads as the CPUs allow and the cell's I/Os in flight divide among; its own threads are the most.
    """
    in_flight = cell.threads * cell.queue_depth
    most = max(1, min(cell.threads, cpus))
    threads = next(count for count in range(most, 0, -1) if in_flight % count == 0)
    return Chosen(threads, in_flight // threads, cpus=cpus)


def share_bytes(active_bytes: int, threads: int, block_size_bytes: int) -> int:
    """Return the part of the ActiveRange that each thread of a sequential cell has, in whole blocks."""
    return active_bytes // threads // block_size_bytes * block_size_bytes


def chosen(
    point: PointOfSweep, cells: t.Sequence[PlannedCell], averages: t.Mapping[str, t.Mapping[str, float | None]]
) -> Chosen | None:
    """Return the threads and depth of a point, with their cell; None where no cell of the sweep qualifies.

    cells: of the sweep's test; averages: the metrics of each cell, of its result.
    """
    limit_us = point.mean_latency_below_us
    fitting = []
    for cell in cells:
        found = averages.get(cell.id, {})
        is_short = not limit_us or (found.get("mean_latency_us") or limit_us) < limit_us
        iops = found.get("iops")
        if iops and is_short and not cell.lead:
            fitting.append((cell, iops))
    if not fitting:
        return None
    rates = [iops for _cell, iops in fitting]
    wanted = {"most": max(rates), "fewest": min(rates), "middle": (max(rates) + min(rates)) / 2.0}[point.take]
    # Of cells that are as good, the one with the fewest I/Os in flight.
    cell, _iops = min(fitting, key=lambda item: (abs(item[1] - wanted), item[0].threads * item[0].queue_depth))
    return Chosen(cell.threads, cell.queue_depth, cell=cell.id)
