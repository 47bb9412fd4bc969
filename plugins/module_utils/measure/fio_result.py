# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What fio reports: whether its result may be believed, and the figures, latencies and metrics in it. Pure.

fio's exit code and its `error` field both miss failures that were seen in the field (an out-of-memory kill, a SIGTERM,
a mounted disk refused with exit code 0), so `problems` compares what was asked with what was done.
"""

from __future__ import annotations

import errno
import json
import math
import typing as t

from ..records.plan import PlannedCell
from . import histogram, io_pattern
from .fio import FioError

DIRECTIONS = ("read", "write")
# What fio counts beside them: blocks given back, and flushes (fsync, fdatasync), of which it tells latencies alone.
SIDES = (*DIRECTIONS, "trim", "sync")
# A time-based cell may end a little early when its last I/O completes; less than this was cut short.
SHORTEST_RUNTIME = 0.98
# What the kernel tells of an I/O that the drive did not do (block/blk-core.c, blk_errors): a medium error, one of the
# target, a failed protection check, any other I/O error, a timeout, a drive that is gone. Not of a path, of a
# reservation, of room or memory that lacks.
DRIVE_ERRORS = frozenset(
    (errno.ENODATA, errno.EREMOTEIO, errno.EILSEQ, errno.EIO, errno.ETIMEDOUT, errno.ENODEV, errno.ENXIO)
)
# A direction of a mix may have had no I/O by chance: less likely than this, fio did not do it (6 standard deviations).
NO_IO_CHANCE = 1e-9


class Moments(t.NamedTuple):
    """ios: how many latencies. deviation: as fio's `stddev`, by n - 1; 0 of a single one."""

    ios: int
    mean: float
    deviation: float


def pooled(groups: t.Iterable[Moments]) -> Moments:
    """Return all of them as one group."""
    some = [group for group in groups if group.ios]
    count = sum(group.ios for group in some)
    if not count:
        return Moments(0, 0.0, 0.0)
    mean = sum(group.mean * group.ios for group in some) / count
    squares = sum((group.ios - 1) * group.deviation**2 + group.ios * (group.mean - mean) ** 2 for group in some)
    return Moments(count, mean, math.sqrt(squares / (count - 1)) if count > 1 else 0.0)


def parse(text: str) -> dict[str, t.Any]:
    """fio's JSON; warnings may precede it in the same file. Raises FioError when there is none."""
    for start in (0, text.find("{")):
        if start < 0:
            break
        try:
            data = json.loads(text[start:])
        except (ValueError, RecursionError):
            continue
        if isinstance(data, dict) and isinstance(data.get("jobs"), list):
            return data
    raise FioError(f"fio wrote no JSON result; its output begins {text[:200]!r}")


def result_problems(
    rc: int,
    result: dict[str, t.Any],
    device: str,
    directions: t.Mapping[str, float],
    runtime_s: float | None = None,
    size_bytes: int | None = None,
) -> list[str]:
    """Return why this result must not be believed; empty when it may.

    directions: of DIRECTIONS, those that must have done I/O, each with its share of the I/Os (1: all). runtime_s: asked
      of a time-based job. size_bytes: to be
    written in all, for a job that ends by itself.
    """
    found = []
    if rc != 0:
        found.append(f"fio ended with exit code {rc}")
    jobs = result["jobs"]
    if not jobs:
        found.append("fio reports no job")
    for job in jobs:
        if job.get("error"):
            found.append("fio reports error {0} in job {1}".format(job["error"], job.get("jobname")))
    named = _filenames(result)
    if named != {device}:
        found.append("fio used {0}, not {1}".format(", ".join(sorted(named)) or "no file", device))
    for direction, share in directions.items():
        found += _direction_problems(jobs, direction, share, runtime_s)
    if size_bytes is not None:
        written = sum(job["write"]["io_bytes"] for job in jobs)
        if written != size_bytes:
            found.append(f"fio wrote {written} of {size_bytes} bytes")
    return found


def is_of_drive(result: t.Mapping[str, t.Any]) -> bool:
    """Return whether fio ended because the drive did not do its I/O."""
    return any(job.get("error") in DRIVE_ERRORS for job in result["jobs"])


def _direction_problems(
    jobs: list[dict[str, t.Any]], direction: str, share: float, runtime_s: float | None
) -> list[str]:
    sides = [job[direction] for job in jobs]
    if not any(side["total_ios"] > 0 and side["io_bytes"] > 0 for side in sides):
        ios = sum(job[name]["total_ios"] for job in jobs for name in DIRECTIONS)
        by_chance = ios > 0 and (1 - share) ** ios >= NO_IO_CHANCE
        return [] if by_chance else [f"no {direction} I/O was done"]
    runtime_ms = max(side["runtime"] for side in sides)
    if runtime_s is not None and runtime_ms < SHORTEST_RUNTIME * 1000 * runtime_s:
        return [f"{direction}s ran for {runtime_ms / 1000.0:.2f} s of {runtime_s} s"]
    return []


def _filenames(result: dict[str, t.Any]) -> set[str]:
    options = [job.get("job options", {}) for job in result["jobs"]] + [result.get("global options", {})]
    return {option["filename"] for option in options if "filename" in option}


def combined(result: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """Return a result as one of a single reporting group: what several streams did at the same time, added up."""
    jobs = result["jobs"]
    if len(jobs) == 1:
        return dict(result)
    # A thread that waits for nothing measures the host, whatever those of other streams do.
    cpu = max(jobs, key=lambda job: job["usr_cpu"] + job["sys_cpu"])
    sides = {name: _added([job[name] for job in jobs if name in job]) for name in SIDES}
    return {"jobs": [{"jobname": "", "usr_cpu": cpu["usr_cpu"], "sys_cpu": cpu["sys_cpu"], **sides}]}


def _added(sides: t.Sequence[t.Mapping[str, t.Any]]) -> dict[str, t.Any]:
    """One side of several reporting groups as one; rates add up, as all ran for the same time."""
    busy = [(side["lat_ns"], ios_of(side)) for side in sides if ios_of(side)]
    total = sum(ios for _latency, ios in busy)
    bins = histogram.merge(histogram.parse_bins(latency) for latency, _ios in busy)
    latency = {
        "min": min([latency["min"] for latency, _ios in busy] or [0]),
        "max": max([latency["max"] for latency, _ios in busy] or [0]),
        "mean": sum(latency["mean"] * ios for latency, ios in busy) / total if total else 0.0,
        "stddev": pooled(Moments(ios, latency["mean"], latency["stddev"]) for latency, ios in busy).deviation,
        "bins": {str(value): count for value, count in bins.items()},
    }
    added = {key: sum(side.get(key, 0) for side in sides) for key in ("io_bytes", "bw_bytes", "iops")}
    return {**added, "total_ios": total, "runtime": max(side.get("runtime", 0) for side in sides), "lat_ns": latency}


def ios_of(side: t.Mapping[str, t.Any]) -> int:
    """Return how many I/Os a side had. Of flushes fio 3.33 tells 0; their histogram counts them."""
    return side["total_ios"] if "io_bytes" in side else sum(side["lat_ns"].get("bins", {}).values())


def stream_figures(result: t.Mapping[str, t.Any]) -> list[dict[str, t.Any]]:
    """Return the reporting groups of a result, each as one of its own: {name, read, write, trim, sync: figures}, the
    sides that had I/O.
    """
    found = []
    for job in result["jobs"]:
        sides = {name: figures({"jobs": [job]}, name) for name in SIDES}
        found.append({"name": job["jobname"], **{name: side for name, side in sides.items() if side}})
    return found


def figures(result: dict[str, t.Any], direction: str, busy_s: float | None = None) -> dict[str, t.Any] | None:
    """Figures of one of SIDES (docs/internals.md) of a result with one reporting group; None when it had no I/O.

    busy_s: the time that its rates are for, where the job idles in between; None: all of it.
    """
    job = result["jobs"][0]
    side = job.get(direction)
    if not side or not ios_of(side):
        return None
    latency = side["lat_ns"]
    if direction == "sync":
        count, run_s = ios_of(side), busy_s or job["write"]["runtime"] / 1000.0
        rates = {"total_ios": count, "iops": count / run_s if run_s else 0.0, "bw_bytes": 0, "io_bytes": 0}
        side = {**side, **rates}
    return {
        "iops": side["iops"] if busy_s is None else side["total_ios"] / busy_s,
        "bandwidth_bytes_per_s": side["bw_bytes"] if busy_s is None else side["io_bytes"] / busy_s,
        "ios": side["total_ios"],
        "bytes": side["io_bytes"],
        "mean_latency_us": latency["mean"] / 1000.0,
        "max_latency_us": latency["max"] / 1000.0,
        "min_latency_us": latency["min"] / 1000.0,
        "stddev_latency_us": latency["stddev"] / 1000.0,
        "percentiles_us": histogram.percentiles_us(histogram.parse_bins(latency)),
    }


def histograms(result: dict[str, t.Any]) -> dict[str, histogram.Bins]:
    """Return the latencies of a result with one reporting group, by side; without those that had no I/O."""
    job = result["jobs"][0]
    return {name: histogram.parse_bins(job[name]["lat_ns"]) for name in SIDES if name in job and ios_of(job[name])}


def metrics_of(told: t.Mapping[str, t.Any]) -> dict[str, float]:
    """`metrics` of a cell's record, or of one of its streams."""
    return metrics(*(told.get(name) for name in SIDES))


def metrics(
    read: t.Mapping[str, t.Any] | None,
    write: t.Mapping[str, t.Any] | None,
    trim: t.Mapping[str, t.Any] | None = None,
    sync: t.Mapping[str, t.Any] | None = None,
) -> dict[str, float]:
    """Return the metrics of one cell by name (docs/internals.md), from the figures of its SIDES; those of its
    histograms: histogram.metrics.
    """
    found: dict[str, float] = {}
    for name, side in zip(SIDES, (read, write, trim, sync)):
        if not side:
            continue
        found[name + "_iops"] = side["iops"]
        if name != "sync":
            found[name + "_bandwidth"] = side["bandwidth_bytes_per_s"]
        found[name + "_mean_latency_us"] = side["mean_latency_us"]
        found[name + "_max_latency_us"] = side["max_latency_us"]
    # Of both directions; what was trimmed or flushed moved no data.
    sides = [(name, side) for name, side in (("read", read), ("write", write)) if side]
    if sides:
        ios = sum(side["ios"] for _name, side in sides)
        found["iops"] = sum(side["iops"] for _name, side in sides)
        found["bandwidth"] = sum(side["bandwidth_bytes_per_s"] for _name, side in sides)
        found["mean_latency_us"] = sum(side["mean_latency_us"] * side["ios"] for _name, side in sides) / ios
        found["max_latency_us"] = max(side["max_latency_us"] for _name, side in sides)
    return found


def cell_figures(cell: PlannedCell, result: dict[str, t.Any], whole: dict[str, t.Any]) -> dict[str, t.Any]:
    """fio's figures of each side that a cell always tells, of the others where it has them; and `streams`."""
    busy_s = io_pattern.burst_time_s(cell) if cell.burst_s else None
    sides = {name: figures(whole, name, busy_s) for name in SIDES}
    told: dict[str, t.Any] = {name: side for name, side in sides.items() if side or name in DIRECTIONS}
    streams = stream_figures(result) if cell.jobs else []
    return dict(told, streams=streams) if streams else told


def cell_histograms(cell: PlannedCell, result: dict[str, t.Any], whole: dict[str, t.Any]) -> dict[str, t.Any]:
    """{"" or a stream's name: of fio_result.histograms}."""
    found = {"": histograms(whole)}
    for job in result["jobs"] if cell.jobs else ():
        found[job["jobname"]] = histograms({"jobs": [job]})
    return found
