# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Cells of several streams that run at the same time (`jobs`), trims among them, and writes that wait for the medium.
Pure.
"""

from __future__ import annotations

import hashlib
import json
import typing as t

from ...module_utils.records import base
from ...module_utils.records.base import Json
from ...module_utils.records.identity import Identity
from ...module_utils.records.planned_cell import AnyLoad, PlannedCell, PlannedStream
from ..common.units import block_size
from . import io_patterns

# Of a cell, and of a stream.
SYNC_KEYS = ("sync", "fdatasync")
# fio reads, writes and trims at once only with io_uring from fio 3.38 and Linux 6.12 on (axboe/fio#1854).
TRIM_DEPTH = 1
MIB = 1 << 20


def id_parts(cell: PlannedCell) -> list[str]:
    """jobs, its name, and a digest of its streams: another load has another name."""
    text = json.dumps(base.sparse_json(cell.jobs), sort_keys=True)
    return ["jobs", cell.name or "", hashlib.sha256(text.encode()).hexdigest()[:4]]


def rendered(source: Json, size_bytes: t.Callable[[t.Any], int]) -> PlannedCell:
    """Return a cell of several streams as the plan has it, but for its id.

    What every cell has tells of all streams: random where one is, the largest block, all threads, the greatest depth,
    and of the share of reads only whether there are any, or nothing else.
    """
    jobs = [_stream(job, size_bytes) for job in source["jobs"]]
    reads = [job.read_pct for job in jobs if not job.trim]
    whole = 0 if not any(reads) else 100 if all(pct == 100 for pct in reads) and len(reads) == len(jobs) else 50
    return PlannedCell(
        id="",
        name=source.get("name", ""),
        access="random" if any(job.access == "random" for job in jobs) else "sequential",
        block_size_bytes=max(job.block_size_bytes for job in jobs),
        read_pct=whole,
        threads=sum(job.threads for job in jobs),
        queue_depth=max(job.queue_depth for job in jobs),
        runtime_s=source["runtime_s"],
        ramp_s=source.get("ramp_s"),
        jobs=jobs,
    )


def _stream(source: Json, size_bytes: t.Callable[[t.Any], int]) -> PlannedStream:
    # A trim has neither; 0 says that it is no read. That the share of others is lacking is told by `problems`.
    read_pct = 0 if source.get("trim") else source.get("read_pct", -1)
    given = {**source, "read_pct": read_pct, "block_size_bytes": size_bytes(source["block_size"])}
    return base.parse(PlannedStream, io_patterns.rendered(given, size_bytes))


def problems(cell: PlannedCell) -> list[str]:
    """Return what no drive can do of it, or would measure nothing, without the cell's name."""
    jobs = cell.jobs or []
    found = _sync_problems(cell)
    names = [job.name for job in jobs]
    found += [f"stream {name}: is listed twice" for name in sorted({name for name in names if names.count(name) > 1})]
    for job in jobs:
        found += [f"stream {job.name}: {problem}" for problem in _stream_problems(job) + _sync_problems(job)]
    if cell.ramp_s and any(job.trim for job in jobs):
        found.append("trims can't be combined with ramp_s: fio does not report trims during the ramp")
    if not found:
        found += _emptied(jobs)
    return found


def trim_problem(cell: PlannedCell, identity: Identity) -> str:
    """Return why a drive can't do the trims of a cell; "" where it can, or where the kernel does not tell."""
    trims = [job.name for job in cell.jobs or () if job.trim]
    if not trims or identity.max_discard_bytes != 0:
        return ""
    return f"stream {trims[0]} trims, but the drive does not support discards (queue/discard_max_bytes is 0)"


def _stream_problems(job: PlannedStream) -> list[str]:
    found = []
    if job.read_pct < 0:
        found.append("read_pct: is missing")
    if job.block_size_bytes % 512:
        found.append(
            f"block_size {block_size(job.block_size_bytes)} is not a multiple of 512 B, the smallest logical block"
        )
    if job.trim and job.queue_depth > TRIM_DEPTH:
        found.append(
            f"fio trims one at a time, not at a queue_depth of {job.queue_depth} (more takes io_uring with "
            "fio 3.38 and Linux 6.12); use more threads"
        )
    found += io_patterns.problems(job)
    if job.rate_mib_s_per_tb and (job.rate_iops or job.read_pct not in (0, 100)):
        found.append("rate_mib_s_per_tb: needs a stream of reads, writes or trims alone, without rate_iops")
    found += range_problems(job)
    shares = [share for share in (job.read_pct, 100 - job.read_pct) if share > 0]
    if job.rate_iops and job.rate_iops * min(shares) < 100 * job.threads:
        found.append(f"rate_iops {job.rate_iops} leaves less than 1 IOPS for each thread and direction")
    return found


def range_problems(one: AnyLoad) -> list[str]:
    """Return what is wrong with the range of a cell or a stream, without its name."""
    begin, end = _range(one)
    return [] if begin < end else [f"range: from_pct {begin} must be below to_pct {end}"]


def _sync_problems(one: AnyLoad) -> list[str]:
    asked = [key for key in SYNC_KEYS if getattr(one, key)]
    if not asked:
        return []
    what = " and ".join(asked)
    if one.trim or one.read_pct == 100:
        return [f"{what}: needs a stream or cell that writes"]
    # fio's engine `sync`, which alone tells flushes from writes, has one I/O in flight.
    deep = one.fdatasync and one.queue_depth > 1
    return [f"fdatasync: needs a queue_depth of 1, not {one.queue_depth}; use more threads"] if deep else []


def _emptied(jobs: t.Sequence[PlannedStream]) -> list[str]:
    """A drive answers reads of blocks that were trimmed from its table, without touching its flash."""
    trims = [job for job in jobs if job.trim]
    return [
        f"stream {job.name} reads what stream {trim.name} trims, and a drive answers such reads without touching "
        "its flash; use ranges that do not overlap"
        for job in jobs
        for trim in trims
        if job.read_pct and _overlap(_range(job), _range(trim))
    ]


def _overlap(one: tuple[int, int], other: tuple[int, int]) -> bool:
    return max(one[0], other[0]) < min(one[1], other[1])


def _range(one: AnyLoad) -> tuple[int, int]:
    return (one.range.from_pct, one.range.to_pct) if one.range else (0, 100)


def offset_bytes(one: AnyLoad, active: int) -> int:
    """Return where a stream begins in the ActiveRange: whole blocks of its own."""
    size = one.block_size_bytes
    return -(-active * _range(one)[0] // 100 // size) * size


def share_bytes(one: AnyLoad, active: int) -> int:
    """Return what each of its threads has: in sequence a part for each, at random all of its range."""
    size = one.block_size_bytes
    room = active * _range(one)[1] // 100 - offset_bytes(one, active)
    return room // (one.threads if one.access == "sequential" else 1) // size * size


def rate_bytes_s(mib_s_per_tb: float, capacity: int) -> float:
    """Return the limit of a stream that grows with the drive, for all its threads."""
    return mib_s_per_tb * MIB * capacity / 1e12


def section(job: PlannedStream, active: int, capacity: int) -> Json:
    """Return what a stream gives to the job template in place of what a cell gives. active: bytes of the ActiveRange;
    capacity: of the drive.
    """
    found = {**placed(job, active), "new_group": True}
    if job.rate_mib_s_per_tb:
        found["rate"] = max(1, int(rate_bytes_s(job.rate_mib_s_per_tb, capacity) / job.threads))
    if job.trim:
        found["rw"] = "randtrim" if job.access == "random" else "trim"
    return found


def placed(one: AnyLoad, active: int) -> Json:
    """Return where in the ActiveRange a cell or a stream with a range does its I/O, for the job template."""
    size, offset = share_bytes(one, active), offset_bytes(one, active)
    found: Json = {"size": size, **({"offset": offset} if offset else {})}
    if one.access == "sequential" and one.threads > 1:
        found["offset_increment"] = size
    return found


def sizes(one: AnyLoad) -> list[int]:
    """Return the sizes of the I/O of a cell or a stream."""
    mixed = one.mix.sizes if one.mix and not one.jobs else None
    return [item.size_bytes for item in mixed or ()] + [one.block_size_bytes]


def trimmed_from_pct(cell: PlannedCell) -> int | None:
    """Return where in the ActiveRange a cell begins to give blocks back; None: nowhere."""
    return min((_range(job)[0] for job in cell.jobs or () if job.trim), default=None)
