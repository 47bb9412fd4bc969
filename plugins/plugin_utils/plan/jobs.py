# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""fio jobs: the text of a cell's job, and of a fill, from the one template. Pure but for the template."""

from __future__ import annotations

import functools
import itertools
import typing as t
from dataclasses import replace

import jinja2

from ...module_utils.measure import io_pattern, thread_choice
from ...module_utils.records.plan import PlannedFill
from ...module_utils.records.planned_cell import AnyLoad, PlannedCell
from ..common import schema as schemas
from . import io_patterns, streams
from .test_record import Test

WORKLOAD_ROLE = schemas.COLLECTION / "roles" / "workload"
# What the template takes of one of a job's sections.
Section = dict[str, t.Any]
# The workload_ioengine whose cells have fio's io_uring poll for completions.
POLLED = "io_uring_polled"
# What each workload_ioengine is to fio: its name there, and its options in cells that read and write.
ENGINES: dict[str, tuple[str, dict[str, int]]] = {
    "libaio": ("libaio", {}),
    "io_uring": ("io_uring", {}),
    "io_uring_fixed": ("io_uring", {"fixedbufs": 1, "registerfiles": 1}),
    POLLED: ("io_uring", {"hipri": 1}),
}
# fio writes each zone in sequence, empties it by a reset before it begins anew, and reads only what was written.
ZONED = {"zonemode": "zbd"}
# rw= of fio by access, for reads alone, writes alone, and both.
RW = {"random": ("randread", "randwrite", "randrw"), "sequential": ("read", "write", "rw")}


def with_job(cell: PlannedCell, engine: str, sections: t.Sequence[Section]) -> PlannedCell:
    """Return a cell with the text of its job; `polled` where its threads wait for completions by polling."""
    own = [_has_engine_options(section) for section in sections]
    options = _engine(engine)[1]
    marked = [{**section, "engine_options": options} if has else section for section, has in zip(sections, own)]
    return replace(cell, polled=any(own) and engine == POLLED, job=job_text(engine, marked))


def with_trial(cell: PlannedCell, engine: str, active_bytes: int) -> PlannedCell:
    """Return a cell with threads: auto with the job of its trials, any other as it is."""
    if not cell.auto_threads:
        return cell
    trial = replace(cell, **thread_choice.TRIAL, id="trial")
    return replace(cell, trial_job=with_job(cell, engine, [section_of(trial, active_bytes)]).job)


def _engine(name: str) -> tuple[str, dict[str, int]]:
    """Return what is in ENGINES; one that is not there is told by render_plan."""
    return ENGINES.get(name, (name, {}))


def _has_engine_options(section: Section) -> bool:
    """A polled ring takes reads and writes alone: neither trims nor flushes. What has no engine options in one choice
    has none in any.
    """
    return not (section.get("ioengine") or section.get("sync") or section["rw"].endswith("trim"))


def with_fill_jobs(fill: PlannedFill, name: str, engine: str, zoned: bool = False) -> PlannedFill:
    """Return sequential writes over everything with their jobs: one in whole blocks, one for the remainder, which is a
    single block of its own size.

    The remainder starts where the whole blocks end, so its offset is the first job's size. zoned: by zone, where only
    one write may be in flight; a zone has no remainder.
    """
    whole = {"bs": fill.block_size_bytes, "iodepth": "@ssd_max_queue_depth@", "size": "@ssd_remainder_offset@"}
    rest = {
        "bs": "@ssd_remainder_bytes@",
        "iodepth": 1,
        "offset": "@ssd_remainder_offset@",
        "size": "@ssd_remainder_bytes@",
    }
    content = {"zeros": True} if fill.data == "zeros" else {"refill_buffers": True}
    common = {"name": name, "rw": "write", "numjobs": 1, "loops": fill.passes, **content}
    if zoned:
        whole["iodepth"] = 1
        common.update(ZONED)
    return replace(
        fill,
        job=job_text(engine, [{**common, **whole}]),
        remainder_job=job_text(engine, [{**common, **rest, "name": f"{name}-remainder"}]),
    )


def sections_of(
    cell: PlannedCell,
    active_bytes: int,
    capacity: int,
    refills: t.Container[str] = (),
    zone_bytes: int | None = None,
) -> list[Section]:
    """Return the sections of a cell's job: one, or one for each of its streams, which run at the same time.

    refills: rw= of the jobs that fill their buffers anew for each write (`refilling`). zone_bytes: of a test by zone.
    """
    sections = [
        {**_section(job, f"{cell.id}.{job.name}", cell, active_bytes), **streams.section(job, active_bytes, capacity)}
        for job in cell.jobs or ()
    ] or [section_of(cell, active_bytes, zone_bytes)]
    by_zone = ZONED if zone_bytes else {}
    return [{**section, **by_zone, "refill_buffers": section["rw"] in refills} for section in sections]


def refilling(tests: t.Sequence[Test]) -> t.Iterator[frozenset[str]]:
    """Return for each test of a plan, in order, the rw= of its cells that refill their buffers.

    fio scrambles the buffers of the others, which costs next to no CPU. One that reads too writes back what its reads
    brought: where this test did not fill the drive with random data, that may be zeros, or anybody's.
    """
    filled, before = False, None
    for test in tests:
        if test.precondition or test.follows != before:  # a phase begins with what the one before it left
            filled = test.precondition is not None and test.precondition.data != "zeros"
        filled = filled and all(streams.trimmed_from_pct(cell) is None for cell in test.cells)
        before = test.name
        asked = [RW[access] for access in RW] if test.refill_buffers else []
        mixed = [] if filled else [RW[access][2:] for access in RW]
        yield frozenset(itertools.chain(*asked, *mixed))


def section_of(cell: PlannedCell, active_bytes: int, zone_bytes: int | None = None) -> Section:
    """Return the values that a cell gives to the job template. zone_bytes: threads in sequence have whole zones."""
    return _section(cell, cell.id, cell, active_bytes, zone_bytes)


def _section(one: AnyLoad, name: str, cell: PlannedCell, active_bytes: int, zone_bytes: int | None = None) -> Section:
    """Return those of a cell, or of one of its streams."""
    reads, writes, both = RW[one.access]
    section: Section = {
        "name": name,
        "rw": {100: reads, 0: writes}.get(one.read_pct, both),
        "read_pct": one.read_pct,
        "bs": one.block_size_bytes,
        "iodepth": one.queue_depth,
        "numjobs": one.threads,
        "size": "@ssd_size_bytes@",
        "runtime_s": cell.runtime_s,
    }
    if one.access == "sequential" and one.threads > 1:
        # Streams side by side: threads that read the same blocks after each other would measure the drive's cache.
        share = io_pattern.share_bytes(active_bytes, one.threads, zone_bytes or one.block_size_bytes)
        section.update(size=share, offset_increment=share)
    if one.range:
        section.update(streams.placed(one, active_bytes))
    if one.rate_iops:
        section["rate_iops"] = _rate(one, one.rate_iops)
    given = {"batch": one.batch, "ramp_s": cell.ramp_s, "ioengine": one.ioengine}
    given.update({key: getattr(one, key) for key in streams.SYNC_KEYS})
    section.update({key: value for key, value in given.items() if value})
    if one.fdatasync:
        # With libaio and io_uring fio's time of a flush holds part of that of the write before it (3.33).
        section["ioengine"] = "sync"
    section.update(io_patterns.section(one))
    return section


def _rate(one: AnyLoad, rate_iops: int) -> str:
    """fio's rate_iops counts for each thread and direction; the cell's for all of them together."""
    shares = [share for share in (one.read_pct, 100 - one.read_pct) if share]
    return ",".join(str(rate_iops * share // 100 // one.threads) for share in shares)


def job_text(engine: str, sections: t.Sequence[Section]) -> str:
    """Return a job as fio reads it, with the placeholders that the host fills in."""
    text: str = _template().render(ioengine=_engine(engine)[0], jobs=sections)
    return text


@functools.lru_cache(maxsize=1)
def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True
    )
    return environment.from_string((WORKLOAD_ROLE / "templates" / "job.fio.j2").read_text(encoding="utf-8"))
