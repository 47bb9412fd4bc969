# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Loads beyond one size of I/O all the time: bursts, mixes of sizes and ranges, points that a sweep decides, threads
that the CPUs decide, or the host's trials. Pure.

A cell is one of a rendered test (docs/internals.md).
"""

from __future__ import annotations

import hashlib
import json
import typing as t

from ..common.units import block_size

# The keys of a cell that say so and that a matrix gives to all of its cells; `point` is a single cell's.
SHARED_KEYS = ("burst_s", "idle_s", "mix", "per_cpu")
# Of threads, whose number the host finds; queue_depth is then that of all threads together.
AUTO = "auto"
Cell = dict[str, t.Any]
Mapping = t.Mapping[str, t.Any]


def name_part(cell: Mapping) -> str:
    """Return what a cell's name says of its threads and depth: tc4-qd32; of a point what it takes: most; by the CPUs:
    tc1to8-load256, one to eight threads with 256 I/Os in flight together; of as many as it takes: tcauto-load256.
    """
    if cell.get("point"):
        return str(cell["point"]["take"])
    if cell.get("per_cpu"):
        return f"tc1to{cell['threads']}-load{cell['threads'] * cell['queue_depth']}"
    if cell.get("auto_threads"):
        return f"tcauto-load{cell['queue_depth']}"
    return f"tc{cell['threads']}-qd{cell['queue_depth']}"


def id_parts(cell: Mapping) -> list[str]:
    """Return what a cell's name says of them: mix3f2a (of sizes and ranges), range0-20, burst5s-idle10s."""
    parts = []
    if cell.get("mix"):
        text = json.dumps(cell["mix"], sort_keys=True)
        parts.append("mix" + hashlib.sha256(text.encode()).hexdigest()[:4])
    if cell.get("range"):
        parts.append(f"range{cell['range']['from_pct']}-{cell['range']['to_pct']}")
    if cell.get("burst_s") and cell.get("idle_s"):
        parts.append(f"burst{cell['burst_s']}s-idle{cell['idle_s']}s")
    return parts


def rendered(cell: Cell, size_bytes: t.Callable[[t.Any], int]) -> Cell:
    """Return the cell with its mix in bytes, and of bursts the ramp.

    fio's first burst lasts for a whole cycle, so it is kept out of the figures.
    """
    found = {key: value for key, value in cell.items() if key != "per_cpu" or value}
    if cell.get("threads") == AUTO:
        found.update(threads=1, auto_threads=True)
    if cell.get("mix"):
        given = cell["mix"].get("sizes") or []
        sizes = [{"size_bytes": size_bytes(item["size"]), "pct": item["pct"]} for item in given]
        ranges = cell["mix"].get("ranges")
        found["mix"] = {**({"sizes": sizes} if sizes else {}), **({"ranges": ranges} if ranges else {})}
    if cell.get("burst_s") and cell.get("idle_s") and not cell.get("ramp_s"):
        found["ramp_s"] = cell["burst_s"] + cell["idle_s"]
    return found


def problems(cell: Mapping) -> list[str]:
    """Return what no drive can do of it, without the cell's name."""
    found = _burst_problems(cell) + _mix_problems(cell) + _point_problems(cell)
    return found + _per_cpu_problems(cell) + _auto_problems(cell)


def _burst_problems(cell: Mapping) -> list[str]:
    burst_s, idle_s = cell.get("burst_s"), cell.get("idle_s")
    if not burst_s and not idle_s:
        return []
    if not burst_s or not idle_s:
        return ["burst_s and idle_s go together: give both or neither"]
    cycle_s = burst_s + idle_s
    found = []
    if cell["runtime_s"] % cycle_s or cell["runtime_s"] < 2 * cycle_s:
        cycles = f"a multiple of burst_s + idle_s = {cycle_s}, and at least two of them"
        found.append(f"runtime_s {cell['runtime_s']} must be {cycles}")
    if cell.get("ramp_s", cycle_s) != cycle_s:
        found.append("ramp_s can't be combined with burst_s: the first burst is the ramp")
    return found


def _mix_problems(cell: Mapping) -> list[str]:
    mix = cell.get("mix")
    if not mix:
        return []
    found = []
    if cell["access"] != "random":
        found.append("mix needs access: random")
    if cell.get("ramp_s"):
        found.append("mix can't be combined with ramp_s or burst_s")
    sums = [("sizes", "pct"), ("ranges", "pct"), ("ranges", "of_ios_pct")]
    for part, key in sums:
        whole = sum(item[key] for item in mix.get(part) or [])
        if mix.get(part) and whole != 100:
            found.append(f"mix.{part}: {key} add up to {whole} %, not 100")
    sizes = [item["size_bytes"] for item in mix.get("sizes") or []]
    uneven = [size for size in sizes if size % 512]
    twice = sorted({size for size in sizes if sizes.count(size) > 1})
    found += [
        f"mix.sizes: {block_size(size)} is not a multiple of 512 B, the smallest logical block" for size in uneven
    ]
    return found + [f"mix.sizes: {block_size(size)} is listed twice" for size in twice]


def _point_problems(cell: Mapping) -> list[str]:
    if not cell.get("point") or cell["access"] == "random":
        return []
    return ["point needs access: random, because each sequential thread has its own part of the drive"]


def _per_cpu_problems(cell: Mapping) -> list[str]:
    if not cell.get("per_cpu") or cell.get("auto_threads"):
        return []
    if cell["threads"] == 1:
        return ["per_cpu: threads is a maximum, so it must be more than 1"]
    return [f"per_cpu can't be combined with {key}" for key in _fixing(cell)]


def _auto_problems(cell: Mapping) -> list[str]:
    """Return what such a cell has that leaves the queue open, or fixes its threads."""
    if not cell.get("auto_threads"):
        return []
    others = [key for key in ("per_cpu", "batch", "burst_s") if cell.get(key)] + _fixing(cell)
    return [f"threads: auto can't be combined with {key}" for key in others]


def _fixing(cell: Mapping) -> list[str]:
    """Return what a cell has that takes a number of threads and a depth known before."""
    found = [key for key in ("point", "rate_iops", "ioengine", "fdatasync") if cell.get(key)]
    return found + (["range in sequence"] if cell.get("range") and cell["access"] == "sequential" else [])


def fitted(cell: Cell, logical_bytes: int) -> tuple[Cell, str]:
    """Return the cell without the sizes of its mix that a drive can't do, the other shares rescaled to 100 %.

    The second text is what was left out, "" for nothing.
    """
    sizes = (cell.get("mix") or {}).get("sizes") or []
    kept = [item for item in sizes if item["size_bytes"] % logical_bytes == 0]
    if len(kept) == len(sizes):
        return cell, ""
    gone = [item for item in sizes if item not in kept]
    text = ", ".join(block_size(item["size_bytes"]) for item in gone)
    share = sum(item["pct"] for item in gone)
    block = f"the drive's logical block size of {block_size(logical_bytes)}"
    reason = f"of its mix {text} ({share} % of the I/O) are not multiples of {block}"
    if not kept:
        return cell, f"{reason}; nothing is left of it"
    mix = {**cell["mix"], "sizes": rescaled(kept)}
    return {**cell, "mix": mix}, f"{reason}: left out, and the other shares are rescaled"


def rescaled(sizes: t.Sequence[Mapping]) -> list[dict[str, int]]:
    """Return the same proportions as whole per cent that make 100: the largest remainders are rounded up."""
    whole = sum(item["pct"] for item in sizes)
    exact = [item["pct"] * 100 / whole for item in sizes]
    shares = [int(share) for share in exact]
    by_rest = sorted(range(len(sizes)), key=lambda index: shares[index] - exact[index])
    for index in by_rest[: 100 - sum(shares)]:
        shares[index] += 1
    return [{"size_bytes": item["size_bytes"], "pct": share} for item, share in zip(sizes, shares)]


def section(cell: Mapping) -> dict[str, t.Any]:
    """Return what a cell gives to the job template for it."""
    found: dict[str, t.Any] = {}
    mix = cell.get("mix") or {}
    if mix.get("sizes"):
        found["bssplit"] = ":".join(f"{item['size_bytes']}/{item['pct']}" for item in mix["sizes"])
    if mix.get("ranges"):
        found["zones"] = ":".join(f"{item['of_ios_pct']}/{item['pct']}" for item in mix["ranges"])
    if cell.get("burst_s"):
        found.update(burst_s=cell["burst_s"], idle_s=cell["idle_s"])
    by_host = cell.get("per_cpu") or cell.get("auto_threads")
    if cell.get("point") or by_host:
        found.update(iodepth="@ssd_queue_depth@", numjobs="@ssd_threads@")
    if by_host and cell["access"] == "sequential":
        found.update(size="@ssd_share_bytes@", offset_increment="@ssd_share_bytes@")
    return found
