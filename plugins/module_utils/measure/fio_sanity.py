# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether fio's JSON can be true of the job that it was given: its options, and counts that went wrong in some release
of fio. Pure.

Each check names the report on fio's tracker that it stands for; docs/validity.md lists cause, evidence and threshold.
"""

from __future__ import annotations

import math
import typing as t

from . import histogram
from .fio_result import FioJob, FioResult, Side
from .io_pattern import Sizes

DIRECTIONS = ("read", "write", "trim")
# What fio echoes of a job and what the figures depend on. An option that the job has and the echo lacks counts as
# another value.
OPTIONS = (
    "filename",
    "ioengine",
    "hipri",
    "fixedbufs",
    "registerfiles",
    "zonemode",
    "direct",
    "rw",
    "rwmixread",
    "bs",
    "iodepth",
    "numjobs",
    "size",
    "offset",
    "runtime",
    "ramp_time",
    "loops",
    "rate_iops",
    "rate",
    "iodepth_batch",
    "randseed",
    "ba",
    "bssplit",
    "random_distribution",
    "thinktime",
    "thinktime_iotime",
    "new_group",
    "sync",
    "fsync",
    "fdatasync",
)
# fio ends a cell when an I/O completes and then drains its queue: up to the longest I/O later, and a little for its own
# clock.
SHORTEST_SHARE, LONGEST_SHARE = 0.98, 1.01
# A stall of the scheduler on a busy host is longer than 1 % of a short cell.
LONGEST_SLACK_S = 0.25
# Of the bytes of several sizes: 3 standard deviations would refuse 42 % of good tests of 200 mixed cells; 6 refuse none
# in a lifetime.
MIX_DEVIATIONS = 6.0
# fio rounds IOPS, and a direction's own runtime differs from the job's by its last I/O.
IOPS_SHARE = 0.01
LEAST_RATE_MS = 200
Options = t.Mapping[str, str]


def sections(job: str) -> dict[str, dict[str, str]]:
    """Return the options of a fio job text by section; a word without a value has an empty one."""
    found: dict[str, dict[str, str]] = {}
    options: dict[str, str] = {}
    for line in job.splitlines():
        text = line.strip()
        if text.startswith("[") and text.endswith("]"):
            options = found.setdefault(text[1:-1], {})
        elif text and text[0] not in "#;":
            key, _equal, value = text.partition("=")
            options[key.strip()] = value.strip()
    return found


def contradictions(result: FioResult, job: str, runtime_s: float | None = None) -> list[str]:
    """Return why this result can't be of this job; empty when it can.

    job: the text as fio got it. runtime_s: asked of a time-based job. Raises UNKNOWN_FORM.
    """
    asked = sections(job)
    shared = asked.pop("global", {})
    names = [entry.name for entry in result.jobs]
    if sorted(names) != sorted(asked):
        return [
            "fio reports the jobs {0}, the job file has {1}".format(
                ", ".join(map(str, names)) or "none", ", ".join(asked)
            )
        ]
    found = []
    for entry in result.jobs:
        options = {**shared, **asked[entry.name]}
        echo = {**result.options, **entry.options}
        found += _options(options, echo) or _job(entry, options, runtime_s)
    return found


def _options(asked: Options, echo: Options) -> list[str]:
    keys = [key for key in OPTIONS if key in asked or key in echo]
    other = [key for key in keys if asked.get(key) != echo.get(key)]
    return [f"fio worked with {key}={echo.get(key)}, not {asked.get(key)}" for key in other]


def _job(entry: FioJob, options: Options, runtime_s: float | None) -> list[str]:
    """Return what is wrong with one job's counts."""
    sizes = Sizes(options)
    sides = {name: side for name, side in entry.sides.items() if name in DIRECTIONS}
    # fio counts an I/O when it is submitted, its bytes and its latency when it ends: those in flight at the end of a
    # ramp may be in one alone (3.33).
    astride = _in_flight(options) if options.get("ramp_time") else 0
    found = [line for name, side in sides.items() for line in _side(name, side, sizes, astride)]
    busy = {name: side for name, side in sides.items() if side.ios}
    if not found and options.get("lat_percentiles") == "1":
        found = [line for name, side in busy.items() for line in _histogram(name, side, _ended(side, sizes), astride)]
    if found:
        return found
    if runtime_s is not None:
        longest_s = max([side.latency.max / 1e9 for side in busy.values()] or [0.0])
        # An idle time that began is waited for.
        longest_s += int(options.get("thinktime", "0s")[:-1])
        found += [line for name, side in busy.items() for line in _time(name, side, runtime_s, longest_s)]
    return found + _flushes(entry, options)


def _in_flight(options: Options) -> int:
    """Return the most I/Os that the job has in flight."""
    return int(options.get("iodepth", 1)) * int(options.get("numjobs", 1))


def _ended(side: Side, sizes: Sizes) -> int:
    """Return how many I/Os ended. Of several sizes bytes do not tell; such a job has no ramp, so all that began did."""
    return side.bytes // sizes.most if sizes.are_one else side.ios


def _side(name: str, side: Side, sizes: Sizes, astride: int) -> list[str]:
    """Return a direction for itself: figures that exist, whole I/Os, rates that follow from counts. astride: I/Os that
    may be counted in part.
    """
    ios, latency = side.ios, side.latency
    figures = [side.bytes, side.bandwidth_bytes_per_s, side.iops, side.runtime_ms, ios]
    figures += [latency.min, latency.max, latency.mean]
    if not all(isinstance(value, (int, float)) and math.isfinite(value) and value >= 0 for value in figures):
        return [f"{name}s: a figure is negative, infinite or not a number"]
    if not ios:  # fio 3.33 counts flushes as short reads
        return [f"{name}s: {side.bytes} bytes without an I/O"] if side.bytes else []
    found = []
    # fio's issues 233 (bytes without I/Os) and 378 (bytes in KiB).
    if not sizes.fit(ios, side.bytes, astride, MIX_DEVIATIONS):
        found.append(f"{name}s: {side.bytes} bytes are not {ios} I/Os of {sizes}")
    for count, what in ((side.short_ios, "short"), (side.dropped_ios, "dropped")):
        if count:
            found.append(f"{name}s: {count} I/Os were {what}")
    # Issue 421 (impossible rates). fio counts whole milliseconds: of a job of a few blocks they tell no rate.
    rates = (("iops", side.iops, ios), ("bw_bytes", side.bandwidth_bytes_per_s, side.bytes))
    for key, rate, amount in rates if side.runtime_ms >= LEAST_RATE_MS else ():
        true = amount * 1000.0 / side.runtime_ms
        # fio tells whole bytes a second, and IOPS with their fraction: of a slow cell 1 IOPS may be all.
        if abs(rate - true) > IOPS_SHARE * true + (key == "bw_bytes"):
            found.append(f"{name}s: {key} {rate:.0f}, but its counts give {true:.0f}")
    return found


def _histogram(name: str, side: Side, ended: int, ramped: int) -> list[str]:
    """Its bins count every I/O that ended."""
    if side.latency.bins is None:
        return [f"{name}s: there is no latency histogram; is fio older than json+?"]
    try:
        counted = histogram.ios(histogram.parse_bins(side.latency.bins))
    except ValueError as error:
        return [f"{name}s: latency histogram: {error}"]
    # At the end of a ramp fio forgets bytes and latencies one after the other: 2 of 252,315 were seen to be in one
    # alone.
    if not counted or abs(counted - ended) > ramped:
        return [f"{name}s: the latency histogram counts {counted} I/Os of {ended}"]
    return []


def _time(name: str, side: Side, runtime_s: float, longest_s: float) -> list[str]:
    """fio's issues 1039 and 1017 (a job with a rate limit does not end), and a job that was ended early."""
    seconds = side.runtime_ms / 1000.0
    most_s = runtime_s + max((LONGEST_SHARE - 1) * runtime_s, LONGEST_SLACK_S) + longest_s
    if SHORTEST_SHARE * runtime_s <= seconds <= most_s:
        return []
    return [f"{name}s ran for {seconds:.2f} s of {runtime_s:g} s"]


def _flushes(entry: FioJob, options: Options) -> list[str]:
    """One flush after so many writes of each thread: no more (fio's pull request 1754), and none left out but at the
    end.
    """
    every = int(options.get("fdatasync") or options.get("fsync") or 0)
    if options.get("lat_percentiles") != "1":
        return []
    try:
        flushes = entry.sides.get("sync")
        bins = histogram.parse_bins((flushes and flushes.latency.bins) or {})
    except ValueError as error:
        return [f"flushes: latency histogram: {error}"]
    counted, writes = histogram.ios(bins), entry.sides["write"].ios
    asked = writes // every if every else 0
    # Each thread may end between a write and its flush, and may flush once more when it ends.
    spare = 2 * int(options.get("numjobs", 1)) if every else 0
    return [] if abs(counted - asked) <= spare else [f"{counted} flushes for {writes} writes, not {asked}"]
