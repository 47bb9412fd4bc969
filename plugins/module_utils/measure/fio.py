# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""fio: fill in a job, run it so that it cannot outlive us, and believe its result only when every check holds.

fio's exit code and its `error` field both miss failures that were seen in the field (an out-of-memory kill, a SIGTERM,
a mounted disk refused with exit code 0), so `problems` compares what was asked with what was done.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import selectors
import signal
import subprocess
import threading
import time
import typing as t

from ..core.deadline import Hangs
from . import histogram
from .moments import Moments, pooled

PLACEHOLDER = re.compile(r"@ssd_[a-z_]+@")
DIRECTIONS = ("read", "write")
# What fio counts beside them: blocks given back, and flushes (fsync, fdatasync), of which it tells latencies alone.
SIDES = (*DIRECTIONS, "trim", "sync")
# Options by which a job reaches files and programs other than its `filename` (fio's HOWTO).
NAMING = frozenset(
    "directory opendir filename_format nrfiles openfiles ioengine_so_path read_iolog write_iolog replay_redirect "
    "exec_prerun exec_postrun "
    "mmapfile hugepage-file aux-path include trigger trigger-file allow_mounted_write mountpoint".split()
)
# A time-based cell may end a little early when its last I/O completes; less than this was cut short.
SHORTEST_RUNTIME = 0.98
# A direction of a mix may have had no I/O by chance: less likely than this, fio did not do it (6 standard deviations).
NO_IO_CHANCE = 1e-9
TERMINATE_GRACE_S = 5.0
# After SIGKILL only a process that waits in the kernel for a drive is still there.
KILL_GRACE_S = 10.0


# What fio does not send itself.
FROM_OUTSIDE = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class FioError(Exception):
    """fio did not do what was asked; the message says what and where its output is."""


class Killed(Exception):
    """Somebody ended fio, or the kernel did: nothing that the drive can be blamed for, so the test is to
    be done again.
    """


class Interrupted(Exception):
    """The host job was told to stop."""


def fill(job: str, values: t.Mapping[str, t.Any]) -> str:
    """Fill the placeholders `@ssd_<name>@` of a job text.

    A line whose placeholder is None on this host is left out (a drive without a NUMA node has no node to bind to).
    Raises ValueError for a placeholder that nobody knows.
    """
    lines = []
    for line in job.splitlines():
        names = [match.strip("@")[len("ssd_") :] for match in PLACEHOLDER.findall(line)]
        unknown = [name for name in names if name not in values]
        if unknown:
            raise ValueError(f"unknown placeholder @ssd_{unknown[0]}@ in the fio job line {line!r}")
        if any(values[name] is None for name in names):
            continue
        for name in names:
            line = line.replace(f"@ssd_{name}@", str(values[name]))
        lines.append(line)
    return "\n".join(lines) + "\n"


def strays(job: str, device: str) -> list[str]:
    """Lines of a filled-in job that would have fio work on, or run, anything but `device`."""
    pairs = [
        (line.strip(), *(part.strip() for part in line.partition("=")[::2]))
        for line in job.splitlines()
        if line.strip()[:1] not in "#;["
    ]
    # "include FILE" has no =; the first word names the option.
    wrong = [
        line
        for line, key, value in pairs
        if NAMING.intersection(key.split()[:1]) or (key == "filename" and value != device)
    ]
    return wrong + (
        []
        if any(key == "filename" for _line, key, _value in pairs)
        else ["no filename: fio would create files of its own"]
    )


class Runner:
    """Runs one fio at a time for one drive and ends it when the job is stopped."""

    def __init__(self, stop: threading.Event, fio_path: str = "fio") -> None:
        self._stop = stop
        self._fio_path = fio_path

    def argv(self, job_path: str, output_path: str) -> list[str]:
        """The command line. setpriv makes the kernel kill fio when we die, also by SIGKILL and without systemd."""
        return [
            "setpriv",
            "--pdeathsig",
            "KILL",
            self._fio_path,
            "--output=" + output_path,
            "--output-format=json+",
            "--eta=never",
            job_path,
        ]

    def run(
        self,
        job_path: str,
        output_path: str,
        tick: t.Callable[[], None] | None = None,
        deadline_s: float | None = None,
        at_end: t.Callable[[int], None] | None = None,
    ) -> tuple[int, str]:
        """Run fio to its end: (exit code, stderr). `tick` is called about once a second. Raises Interrupted, Killed,
        and Hangs for a fio that can't be ended.

        deadline_s: fio is ended, and FioError raised, when it takes longer. at_end: called with its pid once it has
          ended, while the kernel
        still has its counts.
        """
        if self._stop.is_set():
            raise Interrupted()
        process = subprocess.Popen(
            self.argv(job_path, output_path),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            cwd=os.path.dirname(output_path),
        )
        try:
            stderr = self._wait(process, tick, deadline_s, at_end)
        finally:
            end_process(process)
        if self._stop.is_set():
            raise Interrupted()
        if -process.returncode in FROM_OUTSIDE:
            text = (
                "fio was killed by signal {0}: the host ran out of memory (see the kernel log), or somebody killed it"
            )
            raise Killed(text.format(-process.returncode))
        return process.returncode, stderr

    def _wait(
        self,
        process: subprocess.Popen[bytes],
        tick: t.Callable[[], None] | None,
        deadline_s: float | None,
        at_end: t.Callable[[int], None] | None,
    ) -> str:
        # The end of stderr wakes us at once; Popen.wait with a timeout would sleep through it.
        began = last_tick = time.monotonic()
        stderr = b""
        pipe = t.cast(t.IO[bytes], process.stderr)
        with selectors.DefaultSelector() as selector:
            selector.register(pipe, selectors.EVENT_READ)
            while not self._stop.is_set():
                if selector.select(timeout=0.5):
                    chunk = os.read(pipe.fileno(), 65536)
                    if not chunk:
                        if at_end:
                            # Ended, but not reaped: /proc/PID still tells.
                            os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
                            at_end(process.pid)
                        process.wait()
                        break
                    stderr += chunk
                if deadline_s is not None and time.monotonic() - began > deadline_s:
                    raise FioError(f"fio did not end within {deadline_s:g} s: the drive or fio hangs; fio was killed")
                if tick and time.monotonic() - last_tick >= 1.0:
                    tick()
                    last_tick = time.monotonic()
        return stderr.decode(errors="replace")


def end_process(process: subprocess.Popen[bytes]) -> None:
    """Make sure that the process is gone: SIGTERM, then SIGKILL. Raises Hangs when neither ends it; it is left behind
    then.
    """
    try:
        for end, grace_s in ((process.terminate, TERMINATE_GRACE_S), (process.kill, KILL_GRACE_S)):
            if process.poll() is None:
                end()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(grace_s)
        if process.returncode is None:
            raise Hangs(
                f"the drive hangs: fio (pid {process.pid}) waits for it in the kernel, and SIGKILL does not end it"
            )
    finally:
        if process.stderr is not None:
            process.stderr.close()


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


def problems(
    rc: int,
    result: dict[str, t.Any],
    device: str,
    directions: t.Mapping[str, float],
    runtime_s: float | None = None,
    size_bytes: int | None = None,
) -> list[str]:
    """Why this result must not be believed; empty when it may.

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


def whole(result: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """A result as one of a single reporting group: what several streams did at the same time, added up."""
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
    bins = histogram.merged(histogram.of(latency) for latency, _ios in busy)
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
    """How many I/Os a side had. Of flushes fio 3.33 tells 0; their histogram counts them."""
    return side["total_ios"] if "io_bytes" in side else sum(side["lat_ns"].get("bins", {}).values())


def streams(result: t.Mapping[str, t.Any]) -> list[dict[str, t.Any]]:
    """The reporting groups of a result, each as one of its own: {name, read, write, trim, sync: figures}, the sides
    that had I/O.
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
        "percentiles_us": histogram.percentiles_us(histogram.of(latency)),
    }


def histograms(result: dict[str, t.Any]) -> dict[str, histogram.Bins]:
    """The latencies of a result with one reporting group, by side; without those that had no I/O."""
    job = result["jobs"][0]
    return {name: histogram.of(job[name]["lat_ns"]) for name in SIDES if name in job and ios_of(job[name])}


def metrics_of(told: t.Mapping[str, t.Any]) -> dict[str, float]:
    """`metrics` of a cell's record, or of one of its streams."""
    return metrics(*(told.get(name) for name in SIDES))


def metrics(
    read: t.Mapping[str, t.Any] | None,
    write: t.Mapping[str, t.Any] | None,
    trim: t.Mapping[str, t.Any] | None = None,
    sync: t.Mapping[str, t.Any] | None = None,
) -> dict[str, float]:
    """The metrics of one cell by name (docs/internals.md), from the figures of its SIDES; those of its histograms:
    histogram.metrics.
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
