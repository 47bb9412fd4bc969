# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What fio reports: whether its result may be believed, and the figures, latencies and metrics in it. Pure.

fio's exit code and its `error` field both miss failures that were seen in the field (an out-of-memory kill, a SIGTERM,
a mounted disk refused with exit code 0), so `problems` compares what was asked with what was done.
"""

from __future__ import annotations

import errno
import math
import typing as t
from dataclasses import dataclass, replace

from ..core import tool_json
from ..records.base import Json
from ..records.measurement import Figures, Rates, Stream
from ..records.planned_cell import PlannedCell
from . import histogram, io_pattern
from .fio import FioError

DIRECTIONS = ("read", "write")
# What fio counts beside them: blocks given back, and flushes (fsync, fdatasync), of which it tells latencies alone.
SIDES = (*DIRECTIONS, "trim", "sync")
# What reading a result of another form than fio's raises.
UNKNOWN_FORM = (KeyError, TypeError, ValueError, AttributeError, IndexError)
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


@dataclass(frozen=True)
class Latency:
    """The latencies of a side in ns. bins: of each bin, by the ns in its middle, how many I/Os; None: fio has none."""

    min: float
    max: float
    mean: float
    # By n - 1, as all of fio's.
    deviation: float
    bins: t.Mapping[str, int] | None


@dataclass(frozen=True)
class Side:
    """What a reporting group did of one of SIDES. Of flushes fio tells latencies alone."""

    # Of flushes by their histogram, as fio 3.33 tells 0.
    ios: int
    bytes: int
    bandwidth_bytes_per_s: float
    iops: float
    runtime_ms: int
    latency: Latency
    short_ios: int = 0
    dropped_ios: int = 0


@dataclass(frozen=True)
class FioJob:
    """A reporting group: a cell, or one of its streams. sides: those that fio reports, by name."""

    name: str
    # An errno; 0: none.
    error: int
    # As fio echoes them.
    options: t.Mapping[str, str]
    # Of one CPU, in %.
    user_cpu_pct: float
    system_cpu_pct: float
    sides: t.Mapping[str, Side]


@dataclass(frozen=True)
class FioResult:
    """What is used of fio's JSON. options: of all jobs, as fio echoes them."""

    options: t.Mapping[str, str]
    jobs: t.Sequence[FioJob]


def load(text: str) -> Json:
    """Return fio's JSON, which may have warnings around it in the same file. Raises FioError."""
    try:
        data = tool_json.read(text, "jobs")
    except tool_json.NotOneObject as error:
        raise FioError(f"fio wrote {error}") from None
    if not isinstance(data["jobs"], list):
        raise FioError("fio's JSON has no list of jobs")
    return data


def parse(data: Json) -> FioResult:
    """Return what is used of fio's JSON. Its figures may be no numbers (fio_sanity.py). Raises UNKNOWN_FORM."""
    return FioResult(data.get("global options") or {}, [_job(job) for job in data["jobs"]])


def _job(data: Json) -> FioJob:
    sides = {name: _side(name, data[name]) for name in SIDES if data.get(name)}
    options = data.get("job options") or {}
    return FioJob(data["jobname"], data.get("error") or 0, options, data["usr_cpu"], data["sys_cpu"], sides)


def _side(name: str, data: Json) -> Side:
    told = data["lat_ns"]
    latency = Latency(told["min"], told["max"], told["mean"], told["stddev"], told.get("bins"))
    if name == "sync":
        return Side(sum((latency.bins or {}).values()), 0, 0, 0, 0, latency)
    return Side(
        data["total_ios"],
        data["io_bytes"],
        data["bw_bytes"],
        data["iops"],
        data["runtime"],
        latency,
        data.get("short_ios") or 0,
        data.get("drop_ios") or 0,
    )


def result_problems(
    rc: int,
    result: FioResult,
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
    jobs = result.jobs
    if not jobs:
        found.append("fio reports no job")
    found += [f"fio reports error {job.error} in job {job.name}" for job in jobs if job.error]
    named = _filenames(result)
    if named != {device}:
        found.append("fio used {0}, not {1}".format(", ".join(sorted(named)) or "no file", device))
    for direction, share in directions.items():
        found += _direction_problems(jobs, direction, share, runtime_s)
    if size_bytes is not None:
        written = sum(job.sides["write"].bytes for job in jobs)
        if written != size_bytes:
            found.append(f"fio wrote {written} of {size_bytes} bytes")
    return found


def is_of_drive(result: FioResult) -> bool:
    """Return whether fio ended because the drive did not do its I/O."""
    return any(job.error in DRIVE_ERRORS for job in result.jobs)


def _direction_problems(jobs: t.Sequence[FioJob], direction: str, share: float, runtime_s: float | None) -> list[str]:
    sides = [job.sides[direction] for job in jobs]
    if not any(side.ios > 0 and side.bytes > 0 for side in sides):
        ios = sum(job.sides[name].ios for job in jobs for name in DIRECTIONS)
        by_chance = ios > 0 and (1 - share) ** ios >= NO_IO_CHANCE
        return [] if by_chance else [f"no {direction} I/O was done"]
    runtime_ms = max(side.runtime_ms for side in sides)
    if runtime_s is not None and runtime_ms < SHORTEST_RUNTIME * 1000 * runtime_s:
        return [f"{direction}s ran for {runtime_ms / 1000.0:.2f} s of {runtime_s} s"]
    return []


def _filenames(result: FioResult) -> set[str]:
    options = [*(job.options for job in result.jobs), result.options]
    return {option["filename"] for option in options if "filename" in option}


def combined(result: FioResult) -> FioJob:
    """Return a result as a single reporting group: what several streams did at the same time, added up."""
    jobs = result.jobs
    if len(jobs) == 1:
        return jobs[0]
    # A thread that waits for nothing measures the host, whatever those of other streams do.
    busiest = max(jobs, key=lambda job: job.user_cpu_pct + job.system_cpu_pct)
    sides = {name: _added([job.sides[name] for job in jobs if name in job.sides]) for name in SIDES}
    return FioJob("", 0, {}, busiest.user_cpu_pct, busiest.system_cpu_pct, sides)


def _added(sides: t.Sequence[Side]) -> Side:
    """One side of several reporting groups as one; rates add up, as all ran for the same time."""
    busy = [(side.latency, side.ios) for side in sides if side.ios]
    total = sum(ios for _latency, ios in busy)
    bins = histogram.merge(histogram.parse_bins(latency.bins) for latency, _ios in busy)
    latency = Latency(
        min=min([latency.min for latency, _ios in busy] or [0]),
        max=max([latency.max for latency, _ios in busy] or [0]),
        mean=sum(latency.mean * ios for latency, ios in busy) / total if total else 0.0,
        deviation=pooled(Moments(ios, latency.mean, latency.deviation) for latency, ios in busy).deviation,
        bins={str(value): count for value, count in bins.items()},
    )
    return Side(
        ios=total,
        bytes=sum(side.bytes for side in sides),
        bandwidth_bytes_per_s=sum(side.bandwidth_bytes_per_s for side in sides),
        iops=sum(side.iops for side in sides),
        runtime_ms=max(side.runtime_ms for side in sides),
        latency=latency,
    )


def stream_figures(result: FioResult) -> list[Stream]:
    """Return the figures of each reporting group, of the sides that had I/O."""
    return [Stream(job.name, **{name: figures(job, name) for name in SIDES}) for job in result.jobs]


def figures(job: FioJob, direction: str, busy_s: float | None = None) -> Figures | None:
    """Return the figures of one of SIDES of a reporting group; None when it had no I/O.

    busy_s: the time that its rates are for, where the job idles in between; None: all of it.
    """
    side = job.sides.get(direction)
    if not side or not side.ios:
        return None
    if direction == "sync":
        run_s = busy_s or job.sides["write"].runtime_ms / 1000.0
        side = replace(side, iops=side.ios / run_s if run_s else 0.0)
    latency = side.latency
    return Figures(
        iops=side.iops if busy_s is None else side.ios / busy_s,
        bandwidth_bytes_per_s=side.bandwidth_bytes_per_s if busy_s is None else side.bytes / busy_s,
        ios=side.ios,
        bytes=side.bytes,
        mean_latency_us=latency.mean / 1000.0,
        max_latency_us=latency.max / 1000.0,
        min_latency_us=latency.min / 1000.0,
        stddev_latency_us=latency.deviation / 1000.0,
        percentiles_us=histogram.percentiles_us(histogram.parse_bins(latency.bins)),
    )


def histograms(job: FioJob) -> dict[str, histogram.Bins]:
    """Return the latencies of a reporting group, by side; without those that had no I/O."""
    return {name: histogram.parse_bins(side.latency.bins) for name, side in job.sides.items() if side.ios}


def metrics(
    read: Rates | None, write: Rates | None, trim: Rates | None = None, sync: Rates | None = None
) -> dict[str, float]:
    """Return the metrics of one cell by name (docs/internals.md), from the figures of its SIDES; those of its
    histograms: histogram.metrics.
    """
    found: dict[str, float] = {}
    for name, side in zip(SIDES, (read, write, trim, sync)):
        if not side:
            continue
        found[name + "_iops"] = side.iops
        if name != "sync":
            found[name + "_bandwidth"] = side.bandwidth_bytes_per_s
        found[name + "_mean_latency_us"] = side.mean_latency_us
        found[name + "_max_latency_us"] = side.max_latency_us
    # Of both directions; what was trimmed or flushed moved no data.
    sides = [side for side in (read, write) if side]
    if sides:
        ios = sum(side.ios for side in sides)
        found["iops"] = sum(side.iops for side in sides)
        found["bandwidth"] = sum(side.bandwidth_bytes_per_s for side in sides)
        found["mean_latency_us"] = sum(side.mean_latency_us * side.ios for side in sides) / ios
        found["max_latency_us"] = max(side.max_latency_us for side in sides)
    return found


class CellFigures(t.NamedTuple):
    """What fio tells of a cell: the figures of each side that had I/O, and of its streams where it has several.
    histograms: of the cell, "", or of a stream, by its name and side.
    """

    sides: t.Mapping[str, Figures | None]
    streams: list[Stream] | None
    histograms: dict[str, dict[str, histogram.Bins]]


def cell_figures(cell: PlannedCell, result: FioResult) -> CellFigures:
    """Return what fio tells of a cell."""
    whole, busy_s = combined(result), io_pattern.burst_time_s(cell) if cell.burst_s else None
    sides = {name: figures(whole, name, busy_s) for name in SIDES}
    found = {"": histograms(whole)}
    if not cell.jobs:
        return CellFigures(sides, None, found)
    found.update({job.name: histograms(job) for job in result.jobs})
    return CellFigures(sides, stream_figures(result), found)
