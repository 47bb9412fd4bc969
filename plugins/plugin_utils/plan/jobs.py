# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""fio jobs: the text of a cell's job, and of a fill, from the one template. Pure but for the template."""

from __future__ import annotations

import functools
import itertools
import typing as t

import jinja2

from ...module_utils.measure import io_pattern, thread_choice
from ..common import schema as schemas
from . import cells as celling
from . import io_patterns, streams

WORKLOAD_ROLE = schemas.COLLECTION / "roles" / "workload"
# The workload_ioengine whose cells have fio's io_uring poll for completions (hipri).
POLLED = "io_uring_polled"
# rw= of fio by access, for reads alone, writes alone, and both.
RW = {"random": ("randread", "randwrite", "randrw"), "sequential": ("read", "write", "rw")}


def with_job(cell: celling.Cell, engine: str, sections: t.Sequence[dict[str, t.Any]]) -> celling.Cell:
    """Return a cell with the text of its job; `polled` where its threads wait for completions by polling."""
    polled = [section for section in sections if engine == POLLED and _can_poll(section)]
    for section in polled:
        section["polled"] = True
    return {**cell, **({"polled": True} if polled else {}), "job": job_text(engine, sections)}


def with_trial(cell: celling.Cell, engine: str, active_bytes: int) -> celling.Cell:
    """Return a cell with threads: auto with the job of its trials, any other as it is."""
    if not cell.get("auto_threads"):
        return cell
    section = section_of({**cell, **thread_choice.TRIAL, "id": "trial"}, active_bytes)
    return {**cell, "trial_job": with_job(cell, engine, [section])["job"]}


def _can_poll(section: t.Mapping[str, t.Any]) -> bool:
    """A polled ring takes reads and writes alone: neither trims nor flushes."""
    return not (section.get("ioengine") or section.get("sync") or section["rw"].endswith("trim"))


def fill_jobs(name: str, passes: int, block_size_bytes: int, engine: str, data: str = "random") -> dict[str, t.Any]:
    """Sequential writes over everything: one job in whole blocks, one for the remainder, which is a single block of its
    own size.

    The remainder starts where the whole blocks end, so its offset is the first job's size. data: random or zeros.
    """
    whole = {"bs": block_size_bytes, "iodepth": "@ssd_max_queue_depth@", "size": "@ssd_remainder_offset@"}
    rest = {
        "bs": "@ssd_remainder_bytes@",
        "iodepth": 1,
        "offset": "@ssd_remainder_offset@",
        "size": "@ssd_remainder_bytes@",
    }
    content = {"zeros": True} if data == "zeros" else {"refill_buffers": True}
    common = {"name": name, "rw": "write", "numjobs": 1, "loops": passes, **content}
    return {
        "passes": passes,
        "block_size_bytes": block_size_bytes,
        **({"data": data} if data == "zeros" else {}),
        "job": job_text(engine, [{**common, **whole}]),
        "remainder_job": job_text(engine, [{**common, **rest, "name": f"{name}-remainder"}]),
    }


def sections_of(
    cell: celling.Cell, active_bytes: int, capacity: int, refills: t.Container[str] = ()
) -> list[dict[str, t.Any]]:
    """Return the sections of a cell's job: one, or one for each of its streams, which run at the same time.

    refills: rw= of the jobs that fill their buffers anew for each write (`refilling`).
    """
    streamed = cell.get("jobs") or ()
    shared = {key: cell[key] for key in ("runtime_s", "ramp_s") if cell.get(key)}
    sections = [
        {
            **section_of({**job, **shared, "id": f"{cell['id']}.{job['name']}"}, active_bytes),
            **streams.section(job, active_bytes, capacity),
        }
        for job in streamed
    ] or [section_of(cell, active_bytes)]
    return [{**section, "refill_buffers": section["rw"] in refills} for section in sections]


def refilling(tests: t.Sequence[t.Mapping[str, t.Any]]) -> t.Iterator[frozenset[str]]:
    """Return for each test of a plan, in order, the rw= of its cells that refill their buffers.

    fio scrambles the buffers of the others, which costs next to no CPU. One that reads too writes back what its reads
    brought: where this test did not fill the drive with random data, that may be zeros, or anybody's.
    """
    filled, before = False, None
    for test in tests:
        if test["precondition"] or test["follows"] != before:  # a phase begins with what the one before it left
            filled = bool(test["precondition"]) and test["precondition"].get("data") != "zeros"
        filled = filled and all(streams.trimmed_from_pct(cell) is None for cell in test["cells"])
        before = test["name"]
        asked = [RW[access] for access in RW] if test["refill_buffers"] else []
        mixed = [] if filled else [RW[access][2:] for access in RW]
        yield frozenset(itertools.chain(*asked, *mixed))


def section_of(cell: celling.Cell, active_bytes: int) -> dict[str, t.Any]:
    """Return the values that a cell gives to the job template."""
    reads, writes, both = RW[cell["access"]]
    section = {
        "name": cell["id"],
        "rw": {100: reads, 0: writes}.get(cell["read_pct"], both),
        "read_pct": cell["read_pct"],
        "bs": cell["block_size_bytes"],
        "iodepth": cell["queue_depth"],
        "numjobs": cell["threads"],
        "size": "@ssd_size_bytes@",
        "runtime_s": cell["runtime_s"],
    }
    if cell["access"] == "sequential" and cell["threads"] > 1:
        # Streams side by side: threads that read the same blocks after each other would measure the drive's cache.
        share = io_pattern.share_bytes(active_bytes, cell["threads"], cell["block_size_bytes"])
        section.update(size=share, offset_increment=share)
    if cell.get("range"):
        section.update(streams.placed(cell, active_bytes))
    if cell.get("rate_iops"):
        section["rate_iops"] = _rate(cell)
    section.update({key: cell[key] for key in ("batch", "ramp_s", "ioengine", *streams.SYNC_KEYS) if cell.get(key)})
    if cell.get("fdatasync"):
        # With libaio and io_uring fio's time of a flush holds part of that of the write before it (3.33).
        section["ioengine"] = "sync"
    section.update(io_patterns.section(cell))
    return section


def _rate(cell: celling.Cell) -> str:
    """fio's rate_iops counts for each thread and direction; the cell's for all of them together."""
    shares = [share for share in (cell["read_pct"], 100 - cell["read_pct"]) if share]
    return ",".join(str(cell["rate_iops"] * share // 100 // cell["threads"]) for share in shares)


def job_text(engine: str, sections: t.Sequence[t.Mapping[str, t.Any]]) -> str:
    """Return a job as fio reads it, with the placeholders that the host fills in."""
    text: str = _template().render(ioengine="io_uring" if engine == POLLED else engine, jobs=sections)
    return text


@functools.lru_cache(maxsize=1)
def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True
    )
    return environment.from_string((WORKLOAD_ROLE / "templates" / "job.fio.j2").read_text(encoding="utf-8"))
