# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""fio's JSON from elsewhere: any 3.x, several documents in a file, whatever fio printed around them. Pure.

fio writes a document once all of its jobs have ended, and its time is that end.
"""

from __future__ import annotations

import re
import typing as t
from dataclasses import replace

from ...module_utils.core import tool_json
from ...module_utils.measure import fio_result, fio_sanity
from ...module_utils.measure.fio_result import FioJob, FioResult
from ...module_utils.records.measurement import PreconditionDetails
from ...module_utils.records.planned_cell import PlannedCell
from ..plan import cells as celling
from .measured_run import Document, IngestError, MeasuredRun, Place

_VERSION = re.compile(r"fio-3\.[0-9]+\S*")
_SIZE = re.compile(r"([0-9]+)([kmgt]?)(?:i?b)?", re.IGNORECASE)
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_RW = re.compile(r"(rand)?(read|write|rw)")
# json+ alone counts the latencies of every I/O.
ADVICE = "run it with --output-format=json+"
Options = t.Mapping[str, str]
FILLS = ("precondition", "precondition-remainder")


def is_fio(document: Document) -> bool:
    """Return whether fio wrote it, whole or in part."""
    return '"fio version"' in document.text or '"jobs"' in document.text


class Jobs(t.Protocol):
    """The job files that were rendered, each of whose results has to be of that file; none without a plan."""

    def has(self, name: str) -> bool:
        """Return whether there is a job of this name."""

    def text(self, name: str, place: Place) -> str:
        """Return the job file of a result; "" without a plan. Raises IngestError for what is of no test of the plan."""


def runs(document: Document, jobs: Jobs) -> list[MeasuredRun]:
    """Return the runs in a file. Raises IngestError."""
    try:
        found = tool_json.read_all(document.text, "jobs")
    except tool_json.NotOneObject as error:
        what = "fio was ended before it had written all: run that job again, or remove what begins there"
        raise IngestError(f"{document.name} {error}; {what}") from None
    if not found:
        raise IngestError(f"{document.name}: there is no whole result of fio in it: run that job again, or remove it")
    done: list[MeasuredRun] = []
    for one in found:
        done += _document(Place(document.name, one.line), one.value, jobs)
    return done


def _document(place: Place, data: dict[str, t.Any], jobs: Jobs) -> list[MeasuredRun]:
    tool = str(data.get("fio version") or "")
    if not _VERSION.fullmatch(tool):
        raise IngestError(f"{place}: it is of {tool or 'an unknown version of fio'}; results of fio 3.x can be taken")
    try:
        ended_s = float(data["timestamp_ms"]) / 1000.0 if "timestamp_ms" in data else float(data["timestamp"])
        result = fio_result.parse(data)
        groups: dict[int, list[FioJob]] = {}
        for entry, job in zip(data["jobs"], result.jobs):
            groups.setdefault(int(entry.get("groupid", 0)), []).append(job)
        done: list[MeasuredRun] = []
        # Groups run one after the other: the last ended with the document.
        for group in reversed(groups.values()):
            one = _run(place, FioResult(result.options, group), tool, ended_s, jobs)
            ended_s = one.began_s
            done.append(one)
        return done[::-1]
    except fio_result.UNKNOWN_FORM as error:
        raise IngestError(
            f"{place}: fio's result has an unknown form ({type(error).__name__}: {error}); {ADVICE}"
        ) from error


def _run(place: Place, result: FioResult, tool: str, ended_s: float, jobs: Jobs) -> MeasuredRun:
    """Return one reporting group, or several that ran at the same time as streams of a rendered cell."""
    first = result.jobs[0]
    # A stream is named <cell>.<stream>.
    name = first.name if jobs.has(first.name) or not jobs.has(cell := first.name.rpartition(".")[0]) else cell
    echo = {**result.options, **first.options}
    if len(result.jobs) > 1 and not jobs.has(name):
        raise IngestError(
            f"{place}: {len(result.jobs)} jobs ran at the same time; add group_reporting for threads of one load, or "
            "measure each load by itself (stonewall)"
        )
    error = next((f"fio reports error {job.error} in job {job.name}" for job in result.jobs if job.error), "")
    job = jobs.text(name, place)
    wrong = "" if error else _contradiction(place, result, echo, job)
    if wrong:
        raise IngestError(f"{place}: {wrong}")
    ramp_s = _seconds(echo.get("ramp_time"))
    run_s = max((side.runtime_ms for job in result.jobs for side in job.sides.values()), default=0) / 1000.0
    run = MeasuredRun(
        place=place,
        name=name,
        device=str(echo.get("filename", "")),
        tool=tool,
        engine=str(echo.get("ioengine", "psync")),
        began_s=ended_s - run_s - ramp_s,
        ended_s=ended_s,
        cell=None,
        error=error,
    )
    if job and name in FILLS:
        return replace(run, fill=None if error else _fill(first, echo, run_s))
    whole = fio_result.combined(result)
    sides: dict[str, t.Any] = {side: fio_result.figures(_with_bins(whole), side) for side in fio_result.SIDES}
    streams = fio_result.stream_figures(result) if len(result.jobs) > 1 else None
    return replace(
        run, **sides, streams=streams, cell=None if job else _cell(place, echo), histograms=_bins(result, whole)
    )


def _with_bins(job: FioJob) -> FioJob:
    """Return a job whose latencies may have no histogram: fio's json without plus, or without lat_percentiles."""
    sides = {
        name: replace(side, latency=replace(side.latency, bins=side.latency.bins or {}))
        for name, side in job.sides.items()
    }
    return replace(job, sides=sides)


def _bins(result: FioResult, whole: FioJob) -> dict[str, dict[str, dict[int, int]]]:
    if any(side.ios and not side.latency.bins for job in result.jobs for side in job.sides.values()):
        return {}
    found = {"": fio_result.histograms(whole)}
    if len(result.jobs) > 1:
        found.update({job.name: fio_result.histograms(job) for job in result.jobs})
    return found


def _contradiction(place: Place, result: FioResult, echo: Options, job: str) -> str:
    """Return why a result can't be of a job; "": it can. job: as rendered; "": nobody rendered it, and its counts alone
    are checked.
    """
    if not job:
        own = _own_options(place, result, echo)
        text = "".join(f"[{one.name}]\n" + "".join(f"{key}={own[key]}\n" for key in own) for one in result.jobs)
        asked = FioResult({}, [replace(one, options=own) for one in result.jobs])
        run_s = _seconds(echo.get("runtime")) if "time_based" in echo else 0
        found = fio_sanity.contradictions(asked, text, run_s or None)
        return f"{found[0]}; so its figures can't be right: measure it again" if found else ""
    options = {key: value for section in fio_sanity.sections(job).values() for key, value in section.items()}
    # The device is what the operator's system calls it; all results of a drive have to have the same one.
    text = re.sub(r"^filename=.*$", lambda _line: f"filename={echo.get('filename')}", job, flags=re.MULTILINE)
    found = fio_sanity.contradictions(result, text, _seconds(options.get("runtime")) or None)
    whose = (
        "so it is not of the job file as render.yml wrote it: give the plan, sizes and queue depth that render.yml "
        f"had, or run that file again ({ADVICE})"
    )
    return f"{found[0]}; {whose}" if found else ""


def _own_options(place: Place, result: FioResult, echo: Options) -> dict[str, str]:
    """Return the options by which the counts of somebody's own job are checked, as rendered jobs have them."""
    keys = ("iodepth", "numjobs", "ramp_time", "fsync", "fdatasync")
    own = {key: str(echo[key]) for key in keys if key in echo}
    has_bins = all(side.latency.bins is not None for job in result.jobs for side in job.sides.values() if side.ios)
    if has_bins and "lat_percentiles" in echo:
        own["lat_percentiles"] = str(echo["lat_percentiles"])
    return {"bs": str(size_bytes(place, echo.get("bs", "4k"))), **own}


def _fill(job: FioJob, echo: Options, run_s: float) -> PreconditionDetails:
    side = job.sides["write"]
    return PreconditionDetails(
        passes=int(echo.get("loops", "1")),
        bytes_written=side.bytes,
        seconds=run_s,
        bandwidth_bytes_per_s=side.bandwidth_bytes_per_s,
        remainder_bytes=0,
        block_size_bytes=int(echo["bs"]),
        data="zeros" if echo.get("zero_buffers") else "random",
        kernel_bytes_written=None,
    )


def _cell(place: Place, echo: Options) -> PlannedCell:
    """Return a job of somebody's own as a cell. Raises IngestError for what no cell can be."""
    match = _RW.fullmatch(str(echo.get("rw", "read")).partition(":")[0].replace("readwrite", "rw"))
    if match is None:
        raise IngestError(f"{place}: rw={echo.get('rw')} is neither reads nor writes: leave that job out")
    if echo.get("bssplit") or echo.get("bsrange"):
        raise IngestError(f"{place}: bssplit and bsrange are mixes that only a plan has: leave that job out")
    mixed = int(echo.get("rwmixread") or 50)
    cell = PlannedCell(
        id="x",
        access="random" if match[1] else "sequential",
        block_size_bytes=size_bytes(place, echo.get("bs", "4k")),
        read_pct={"read": 100, "write": 0}.get(match[2], mixed),
        threads=int(echo.get("numjobs", "1")),
        queue_depth=int(echo.get("iodepth", "1")),
        runtime_s=max(1, round(_seconds(echo.get("runtime")))),
    )
    return replace(cell, id=celling.cell_id(cell))


def size_bytes(place: Place, text: t.Any) -> int:
    """Return the bytes of a size as fio writes it: 4096, 4k, 1M. Raises IngestError."""
    match = _SIZE.fullmatch(str(text).partition(",")[0])
    if match is None:
        raise IngestError(f"{place}: bs={text} is no block size; leave that job out")
    return int(match[1]) * _UNITS[match[2].lower()]


def _seconds(text: t.Any) -> float:
    """Return a time of fio's options, in s; 0 for what tells none."""
    match = re.fullmatch(r"([0-9.]+)\s*(us|ms|s|m|h|d)?", str(text))
    scale = {"us": 1e-6, "ms": 1e-3, "s": 1, None: 1, "m": 60, "h": 3600, "d": 86400}
    return float(match[1]) * scale[match[2]] if match else 0.0
