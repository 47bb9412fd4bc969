# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Loads beyond one size of I/O all the time: bursts, mixes of sizes and ranges, points that a sweep decides, threads
that the CPUs decide, or the host's trials. Pure.
"""

from __future__ import annotations

import hashlib
import json
import typing as t
from dataclasses import replace

from ...module_utils.records import base
from ...module_utils.records.base import Json
from ...module_utils.records.planned_cell import AnyLoad, Mix, PlannedCell, SizeShare
from ..common.units import block_size

# The keys of a cell that say so and that a matrix gives to all of its cells; `point` is a single cell's.
SHARED_KEYS = ("burst_s", "idle_s", "mix", "per_cpu")
# Of threads, whose number the host finds; queue_depth is then that of all threads together.
AUTO = "auto"


def name_part(cell: PlannedCell) -> str:
    """Return what a cell's name says of its threads and depth: tc4-qd32; of a point what it takes: most; by the CPUs:
    tc1to8-load256, one to eight threads with 256 I/Os in flight together; of as many as it takes: tcauto-load256.
    """
    if cell.point:
        return cell.point.take
    if cell.per_cpu:
        return f"tc1to{cell.threads}-load{cell.threads * cell.queue_depth}"
    if cell.auto_threads:
        return f"tcauto-load{cell.queue_depth}"
    return f"tc{cell.threads}-qd{cell.queue_depth}"


def id_parts(cell: PlannedCell) -> list[str]:
    """Return what a cell's name says of them: mix3f2a (of sizes and ranges), range0-20, burst5s-idle10s."""
    parts = []
    if cell.mix:
        text = json.dumps(base.sparse_json(cell.mix), sort_keys=True)
        parts.append("mix" + hashlib.sha256(text.encode()).hexdigest()[:4])
    if cell.range:
        parts.append(f"range{cell.range.from_pct}-{cell.range.to_pct}")
    if cell.burst_s and cell.idle_s:
        parts.append(f"burst{cell.burst_s}s-idle{cell.idle_s}s")
    return parts


def rendered(source: Json, size_bytes: t.Callable[[t.Any], int]) -> Json:
    """Return a cell or a stream of a test file in the keys of a plan: its mix in bytes, and of bursts the ramp.

    fio's first burst lasts for a whole cycle, so it is kept out of the figures.
    """
    found = dict(source)
    if source.get("threads") == AUTO:
        found.update(threads=1, auto_threads=True)
    if source.get("point"):
        # The name of its test comes with those of the phases (inheritance.link_phases).
        found["point"] = {"mean_latency_below_us": None, **source["point"], "test": source["point"]["of"]}
    if source.get("mix"):
        given = source["mix"].get("sizes") or []
        sizes = [{"size_bytes": size_bytes(item["size"]), "pct": item["pct"]} for item in given]
        found["mix"] = {"sizes": sizes or None, "ranges": source["mix"].get("ranges") or None}
    if source.get("burst_s") and source.get("idle_s") and not source.get("ramp_s"):
        found["ramp_s"] = source["burst_s"] + source["idle_s"]
    return found


def problems(one: AnyLoad) -> list[str]:
    """Return what no drive can do of it, without the cell's name."""
    found = _burst_problems(one) + _mix_problems(one) + _point_problems(one)
    return found + _per_cpu_problems(one) + _auto_problems(one)


def _burst_problems(one: AnyLoad) -> list[str]:
    burst_s, idle_s = one.burst_s, one.idle_s
    if not burst_s and not idle_s:
        return []
    if not burst_s or not idle_s:
        return ["burst_s and idle_s go together: give both or neither"]
    cycle_s = burst_s + idle_s
    found = []
    if one.runtime_s % cycle_s or one.runtime_s < 2 * cycle_s:
        cycles = f"a multiple of burst_s + idle_s = {cycle_s}, and at least two of them"
        found.append(f"runtime_s {one.runtime_s} must be {cycles}")
    if one.ramp_s not in (None, cycle_s):
        found.append("ramp_s can't be combined with burst_s: the first burst is the ramp")
    return found


def _mix_problems(one: AnyLoad) -> list[str]:
    if not one.mix:
        return []
    found = []
    if one.access != "random":
        found.append("mix needs access: random")
    if one.ramp_s:
        found.append("mix can't be combined with ramp_s or burst_s")
    shares, ranges = one.mix.sizes or [], one.mix.ranges or []
    sums = [
        ("sizes: pct", [item.pct for item in shares]),
        ("ranges: pct", [item.pct for item in ranges]),
        ("ranges: of_ios_pct", [item.of_ios_pct for item in ranges]),
    ]
    found += [f"mix.{name} add up to {sum(parts)} %, not 100" for name, parts in sums if parts and sum(parts) != 100]
    sizes = [item.size_bytes for item in shares]
    uneven = [size for size in sizes if size % 512]
    twice = sorted({size for size in sizes if sizes.count(size) > 1})
    found += [
        f"mix.sizes: {block_size(size)} is not a multiple of 512 B, the smallest logical block" for size in uneven
    ]
    return found + [f"mix.sizes: {block_size(size)} is listed twice" for size in twice]


def _point_problems(one: AnyLoad) -> list[str]:
    if not one.point or one.access == "random":
        return []
    return ["point needs access: random, because each sequential thread has its own part of the drive"]


def _per_cpu_problems(one: AnyLoad) -> list[str]:
    if not one.per_cpu or one.auto_threads:
        return []
    if one.threads == 1:
        return ["per_cpu: threads is a maximum, so it must be more than 1"]
    return [f"per_cpu can't be combined with {key}" for key in _fixing(one)]


def _auto_problems(one: AnyLoad) -> list[str]:
    """Return what such a cell has that leaves the queue open, or fixes its threads."""
    if not one.auto_threads:
        return []
    others = [key for key in ("per_cpu", "batch", "burst_s") if getattr(one, key)] + _fixing(one)
    return [f"threads: auto can't be combined with {key}" for key in others]


def _fixing(one: AnyLoad) -> list[str]:
    """Return what a cell has that takes a number of threads and a depth known before."""
    found = [key for key in ("point", "rate_iops", "ioengine", "fdatasync") if getattr(one, key)]
    return found + (["range in sequence"] if one.range and one.access == "sequential" else [])


def fitted(cell: PlannedCell, logical_bytes: int) -> tuple[PlannedCell, str]:
    """Return the cell without the sizes of its mix that a drive can't do, the other shares rescaled to 100 %.

    The second text is what was left out, "" for nothing.
    """
    mix = cell.mix or Mix()
    sizes = mix.sizes or []
    kept = [item for item in sizes if item.size_bytes % logical_bytes == 0]
    if len(kept) == len(sizes):
        return cell, ""
    gone = [item for item in sizes if item not in kept]
    text = ", ".join(block_size(item.size_bytes) for item in gone)
    share = sum(item.pct for item in gone)
    block = f"the drive's logical block size of {block_size(logical_bytes)}"
    reason = f"of its mix {text} ({share} % of the I/O) are not multiples of {block}"
    if not kept:
        return cell, f"{reason}; nothing is left of it"
    reason = f"{reason}: left out, and the other shares are rescaled"
    return replace(cell, mix=replace(mix, sizes=rescaled(kept))), reason


def rescaled(sizes: t.Sequence[SizeShare]) -> list[SizeShare]:
    """Return the same proportions as whole per cent that make 100: the largest remainders are rounded up."""
    whole = sum(item.pct for item in sizes)
    exact = [item.pct * 100 / whole for item in sizes]
    shares = [int(share) for share in exact]
    by_rest = sorted(range(len(sizes)), key=lambda index: shares[index] - exact[index])
    for index in by_rest[: 100 - sum(shares)]:
        shares[index] += 1
    return [SizeShare(item.size_bytes, share) for item, share in zip(sizes, shares)]


def section(one: AnyLoad) -> Json:
    """Return what a cell or a stream gives to the job template for it."""
    found: Json = {}
    mix = one.mix or Mix()
    if mix.sizes:
        found["bssplit"] = ":".join(f"{item.size_bytes}/{item.pct}" for item in mix.sizes)
    if mix.ranges:
        found["zones"] = ":".join(f"{item.of_ios_pct}/{item.pct}" for item in mix.ranges)
    if one.burst_s:
        found.update(burst_s=one.burst_s, idle_s=one.idle_s)
    by_host = one.per_cpu or one.auto_threads
    if one.point or by_host:
        found.update(iodepth="@ssd_queue_depth@", numjobs="@ssd_threads@")
    if by_host and one.access == "sequential":
        found.update(size="@ssd_share_bytes@", offset_increment="@ssd_share_bytes@")
    return found
