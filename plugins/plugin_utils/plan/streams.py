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

from ..common.units import block_size
from . import io_patterns

# Of a cell, and of a stream.
SYNC_KEYS = ("sync", "fdatasync")
# fio reads, writes and trims at once only with io_uring from fio 3.38 and Linux 6.12 on (axboe/fio#1854).
TRIM_DEPTH = 1
MIB = 1 << 20
Cell = dict[str, t.Any]
Mapping = t.Mapping[str, t.Any]


def id_parts(cell: Mapping) -> list[str]:
    """jobs, its name, and a digest of its streams: another load has another name."""
    text = json.dumps(cell["jobs"], sort_keys=True)
    return ["jobs", cell["name"], hashlib.sha256(text.encode()).hexdigest()[:4]]


def rendered(source: Mapping, size_bytes: t.Callable[[t.Any], int]) -> Cell:
    """Return a cell of several streams as the plan has it.

    What every cell has tells of all streams: random where one is, the largest block, all threads, the greatest depth,
    and of the share of reads only whether there are any, or nothing else.
    """
    jobs = [_stream(job, size_bytes) for job in source["jobs"]]
    reads = [job["read_pct"] for job in jobs if not job.get("trim")]
    whole = 0 if not any(reads) else 100 if all(pct == 100 for pct in reads) and len(reads) == len(jobs) else 50
    return {
        "name": source.get("name", ""),
        "access": "random" if any(job["access"] == "random" for job in jobs) else "sequential",
        "block_size_bytes": max(job["block_size_bytes"] for job in jobs),
        "read_pct": whole,
        "threads": sum(job["threads"] for job in jobs),
        "queue_depth": max(job["queue_depth"] for job in jobs),
        "runtime_s": source["runtime_s"],
        **({"ramp_s": source["ramp_s"]} if source.get("ramp_s") else {}),
        "jobs": jobs,
    }


def _stream(source: Mapping, size_bytes: t.Callable[[t.Any], int]) -> Cell:
    found = {key: value for key, value in source.items() if key not in ("block_size", "trim")}
    # A trim has neither; 0 says that it is no read. That the share of others is lacking is told by `problems`.
    found["read_pct"] = 0 if source.get("trim") else source.get("read_pct", -1)
    found["block_size_bytes"] = size_bytes(source["block_size"])
    return io_patterns.rendered({**found, **({"trim": True} if source.get("trim") else {})}, size_bytes)


def problems(cell: Mapping) -> list[str]:
    """Return what no drive can do of it, or would measure nothing, without the cell's name."""
    jobs = cell.get("jobs") or []
    found = _sync_problems(cell)
    names = [job["name"] for job in jobs]
    found += [f"stream {name}: is listed twice" for name in sorted({name for name in names if names.count(name) > 1})]
    for job in jobs:
        found += [f"stream {job['name']}: {problem}" for problem in _stream_problems(job) + _sync_problems(job)]
    if cell.get("ramp_s") and any(job.get("trim") for job in jobs):
        found.append("trims can't be combined with ramp_s: fio does not report trims during the ramp")
    if not found:
        found += _emptied(jobs)
    return found


def trim_problem(cell: Mapping, identity: Mapping) -> str:
    """Return why a drive can't do the trims of a cell; "" where it can, or where the kernel does not tell."""
    trims = [job["name"] for job in cell.get("jobs") or () if job.get("trim")]
    if not trims or identity.get("max_discard_bytes") != 0:
        return ""
    return f"stream {trims[0]} trims, but the drive does not support discards (queue/discard_max_bytes is 0)"


def _stream_problems(job: Mapping) -> list[str]:
    found = []
    if job["read_pct"] < 0:
        found.append("read_pct: is missing")
    if job["block_size_bytes"] % 512:
        found.append(
            f"block_size {block_size(job['block_size_bytes'])} is not a multiple of 512 B, the smallest logical block"
        )
    if job.get("trim") and job["queue_depth"] > TRIM_DEPTH:
        found.append(
            f"fio trims one at a time, not at a queue_depth of {job['queue_depth']} (more takes io_uring with "
            "fio 3.38 and Linux 6.12); use more threads"
        )
    found += io_patterns.problems(job)
    if job.get("rate_mib_s_per_tb") and (job.get("rate_iops") or job["read_pct"] not in (0, 100)):
        found.append("rate_mib_s_per_tb: needs a stream of reads, writes or trims alone, without rate_iops")
    found += range_problems(job)
    shares = [share for share in (job["read_pct"], 100 - job["read_pct"]) if share > 0]
    if job.get("rate_iops") and job["rate_iops"] * min(shares) < 100 * job["threads"]:
        found.append(f"rate_iops {job['rate_iops']} leaves less than 1 IOPS for each thread and direction")
    return found


def range_problems(one: Mapping) -> list[str]:
    """Return what is wrong with the range of a cell or a stream, without its name."""
    begin, end = _range(one)
    return [] if begin < end else [f"range: from_pct {begin} must be below to_pct {end}"]


def _sync_problems(one: Mapping) -> list[str]:
    asked = [key for key in SYNC_KEYS if one.get(key)]
    if not asked:
        return []
    what = " and ".join(asked)
    if one.get("trim") or one["read_pct"] == 100:
        return [f"{what}: needs a stream or cell that writes"]
    # fio's engine `sync`, which alone tells flushes from writes, has one I/O in flight.
    deep = one.get("fdatasync") and one["queue_depth"] > 1
    return [f"fdatasync: needs a queue_depth of 1, not {one['queue_depth']}; use more threads"] if deep else []


def _emptied(jobs: t.Sequence[Mapping]) -> list[str]:
    """A drive answers reads of blocks that were trimmed from its table, without touching its flash."""
    trims = [job for job in jobs if job.get("trim")]
    return [
        f"stream {job['name']} reads what stream {trim['name']} trims, and a drive answers such reads without touching "
        "its flash; use ranges that do not overlap"
        for job in jobs
        for trim in trims
        if job["read_pct"] and _overlap(_range(job), _range(trim))
    ]


def _overlap(one: tuple[int, int], other: tuple[int, int]) -> bool:
    return max(one[0], other[0]) < min(one[1], other[1])


def _range(job: Mapping) -> tuple[int, int]:
    given = job.get("range") or {}
    return given.get("from_pct", 0), given.get("to_pct", 100)


def offset_bytes(job: Mapping, active: int) -> int:
    """Return where a stream begins in the ActiveRange: whole blocks of its own."""
    size = int(job["block_size_bytes"])
    return -(-active * _range(job)[0] // 100 // size) * size


def share_bytes(job: Mapping, active: int) -> int:
    """Return what each of its threads has: in sequence a part for each, at random all of its range."""
    size = int(job["block_size_bytes"])
    room = active * _range(job)[1] // 100 - offset_bytes(job, active)
    return room // (job["threads"] if job["access"] == "sequential" else 1) // size * size


def rate_bytes_s(mib_s_per_tb: float, capacity: int) -> float:
    """Return the limit of a stream that grows with the drive, for all its threads."""
    return mib_s_per_tb * MIB * capacity / 1e12


def section(job: Mapping, active: int, capacity: int) -> dict[str, t.Any]:
    """Return what a stream gives to the job template in place of what a cell gives. active: bytes of the ActiveRange;
    capacity: of the drive.
    """
    found = {**placed(job, active), "new_group": True}
    if job.get("rate_mib_s_per_tb"):
        found["rate"] = max(1, int(rate_bytes_s(job["rate_mib_s_per_tb"], capacity) / job["threads"]))
    if job.get("trim"):
        found["rw"] = "randtrim" if job["access"] == "random" else "trim"
    return found


def placed(one: Mapping, active: int) -> dict[str, t.Any]:
    """Return where in the ActiveRange a cell or a stream with a range does its I/O, for the job template."""
    size, offset = share_bytes(one, active), offset_bytes(one, active)
    found: dict[str, t.Any] = {"size": size, **({"offset": offset} if offset else {})}
    if one["access"] == "sequential" and one["threads"] > 1:
        found["offset_increment"] = size
    return found


def sizes(one: Mapping) -> list[int]:
    """Return the sizes of the I/O of a cell or a stream."""
    mixed = (one.get("mix") or {}).get("sizes") if "jobs" not in one else None
    return [item["size_bytes"] for item in mixed or ()] + [one["block_size_bytes"]]


def trimmed_from_pct(cell: Mapping) -> int | None:
    """Return where in the ActiveRange a cell begins to give blocks back; None: nowhere."""
    return min((_range(job)[0] for job in cell.get("jobs") or () if job.get("trim")), default=None)
