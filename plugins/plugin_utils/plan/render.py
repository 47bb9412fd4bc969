# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host's plan: tests fitted to each of its drives, with fio jobs whose placeholders the host fills in. Pure but for
the template.
"""

from __future__ import annotations

import copy
import functools
import typing as t

import jinja2

from ...module_utils.drive.entry import label as selector_label
from ...module_utils.drive.entry import options
from ..common import schema as schemas
from ..common.schema import role_choices
from . import cells as celling
from . import loads, preferred, purge_values, streams
from .testfiles import PlanError, Test, load_plan

__all__ = ["PlanError", "load_plan", "render", "step_plan"]

SCHEMA_VERSION = 1
WORKLOAD_ROLE = schemas.COLLECTION / "roles" / "workload"
# How long the host looks at a drive before it writes, where nothing says so (ssd_look_s).
LOOK_S = 10.0
# Of a test, what only the controller needs.
NOT_FOR_HOSTS = ("origin", "own_cells", "description", "repeats", "run_margin", "departs")
OVERWRITE_BLOCK_BYTES = 131_072
# The workload_ioengine whose cells have fio's io_uring poll for completions (hipri).
POLLED = "io_uring_polled"
# rw= of fio by access, for reads alone, writes alone, and both.
RW = {"random": ("randread", "randwrite", "randrw"), "sequential": ("read", "write", "rw")}


def render(
    tests: t.Sequence[Test],
    *,
    run: t.Mapping[str, str],
    host: str,
    boot_id: str,
    drives: t.Sequence[t.Mapping[str, t.Any]],
    engine_version: str,
    variables: t.Mapping[str, t.Any],
    tune: t.Mapping[str, t.Any] | None = None,
    fio_path: str = "fio",
) -> dict[str, t.Any]:
    """plan.json of one host (docs/internals.md).

    tests: of load_plan or step_plan. run: {id, name}. drives: as drive_facts returns them (selector, identity).
    variables: the host's, of which workload_ioengine, purge_method, ssd_parallel_drives and ssd_sample_interval_s count
      here.
    Raises PlanError with every drive that can't do a test, naming host, drive and cell.
    """
    settings = {
        "workload_ioengine": schemas.role_default("workload_ioengine"),
        "purge_method": "auto",
        "ssd_parallel_drives": 1,
        "ssd_leave": "as_is",
        **variables,
    }
    measures = any(test["cells"] for test in tests)
    rendered, problems = [], []
    engines = role_choices("workload")["workload_ioengine"]
    if settings["workload_ioengine"] not in engines:
        problems.append(
            f"{host}: workload_ioengine: {settings['workload_ioengine']!r} must be one of: {', '.join(engines)}"
        )
    for drive in drives:
        selector = schemas.plain(drive["selector"])
        label = selector_label(selector)
        if not drive.get("identity"):
            problems.append(f"{host}: drive {label}: is not there, so nothing can be planned for it")
            continue
        fitted = _fit_tests(tests, drive["identity"], settings)
        problems += _poll_problems(measures, drive["identity"], settings, f"{host}: drive {label}")
        problems += _cache_problems(tests, selector, f"{host}: drive {label}")
        problems += [
            f"{host}: drive {label}: test {test['name']}: {line}"
            for test, (_done, wrong) in zip(tests, fitted)
            for line in wrong
        ]
        rendered.append(
            {
                "drive": label,
                "selector": selector,
                "expected": schemas.plain(drive["identity"]),
                "vendor": _vendor(drive["identity"], settings),
                "tests": [done for done, _wrong in fitted],
            }
        )
    if problems:
        raise PlanError(problems)
    return {
        "schema_version": SCHEMA_VERSION,
        "engine_version": engine_version,
        "run": {"id": str(run["id"]), "name": str(run["name"])},
        "host": str(host),
        "boot_id": boot_id,
        "parallel_drives": int(settings["ssd_parallel_drives"]),
        "sample_interval_s": float(settings.get("ssd_sample_interval_s") or 0),
        "look": {
            "seconds": None if settings.get("ssd_look") == "full" else float(settings.get("ssd_look_s") or LOOK_S)
        },
        "validity": {
            "strict": settings.get("ssd_unknown_causes") == "spoil",
            "limits": {
                name: float(limit) for name, limit in (schemas.plain(settings.get("ssd_validity_limits")) or {}).items()
            },
        },
        "leave": settings["ssd_leave"] if measures else "as_is",
        "criteria": [
            criterion for criterion in schemas.plain(settings.get("ssd_criteria")) or [] if isinstance(criterion, dict)
        ]
        if measures
        else [],
        "fio": {"path": fio_path},
        "tune": schemas.plain(tune or {}),
        "drives": rendered,
    }


def _cache_problems(tests: t.Sequence[Test], selector: t.Mapping[str, t.Any], where: str) -> list[str]:
    """What an entry of ssd_drives says of the write cache must not stand against what a test needs."""
    own = options(selector)["write_cache"]
    against = next((test for test in tests if own and test["write_cache"] not in (None, own)), None)
    if against is None:
        return []
    test = f"test {against['name']}, which needs it {against['write_cache']}"
    return [f"{where}: write_cache: {own} of its entry stands against {test}; take it out of the entry"]


def _poll_problems(
    measures: bool, identity: t.Mapping[str, t.Any], settings: t.Mapping[str, t.Any], where: str
) -> list[str]:
    """Without queues for it the kernel refuses polled I/O or, before 5.16, does it by interrupts and says nothing."""
    if not measures or settings["workload_ioengine"] != POLLED or identity.get("io_poll") is True:
        return []
    advice = "the kernel sets up poll queues of NVMe drives alone (kernel argument nvme.poll_queues=N)"
    return [f"{where}: workload_ioengine: {POLLED}: its queue/io_poll is not 1; {advice}: give it those, or io_uring"]


def _vendor(identity: t.Mapping[str, t.Any], settings: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """What the inventory wants of a drive's own settings, for every result to be held to (vendor_rssdm,
    vendor_iomemory_dma_delay).
    """
    lines = schemas.plain(settings.get("vendor_rssdm")) or []
    own = [
        line
        for line in lines
        if isinstance(line, dict) and identity.get("serial") and str(line.get("serial")).strip() == identity["serial"]
    ]
    delay = schemas.plain(settings.get("vendor_iomemory_dma_delay"))
    wanted = {key: value for line in own for key, value in line.items() if key != "serial"}
    return {**wanted, **({"dma_delay": delay} if delay not in (None, "") else {})}


def step_plan(step: str, variables: t.Mapping[str, t.Any] | None = None) -> list[Test]:
    """The tests of a plan of one step without a measurement: purge, precondition or tune.

    variables: precondition_passes and precondition_block_size, where they are set (purge_method counts in `render`).
    """
    given = variables or {}
    fill = {
        "passes": int(given.get("precondition_passes", 2)),
        "block_size_bytes": celling.size_bytes(given.get("precondition_block_size", "128KiB")),
    }
    steps: dict[str, dict[str, t.Any]] = {
        "purge": {"title": "Purge", "purge": {"method": "auto"}, "precondition": None},
        "precondition": {"title": "Precondition", "purge": {"method": "none"}, "precondition": fill},
        "tune": {"title": "Tune", "purge": {"method": "none"}, "precondition": None},
    }
    if step not in steps:
        raise PlanError([f"no step named {step!r} (known steps: {', '.join(steps)})"])
    empty: dict[str, t.Any] = {
        "name": step,
        "source": "",
        "description": "",
        "repeats": None,
        "run_margin": None,
        "origin": f"the step {step}",
        "own_cells": True,
        "active_range_pct": 100,
        "cells": [],
        "rounds": {"max": None, "capacity_multiple": None, "time_limit_s": None},
        "steady_state": None,
        "after_steady_rounds": 0,
        "latency_targets_us": [],
        "last_rounds": None,
        "write_cache": None,
        "follows": None,
    }
    return [{**empty, **steps[step]}]


def _fit_tests(
    tests: t.Sequence[Test], identity: t.Mapping[str, t.Any], settings: t.Mapping[str, t.Any]
) -> list[tuple[Test, list[str]]]:
    """Each test for one drive. A purge that sets the LBA size sets it for this test and those after it."""
    fitted = []
    for test in tests:
        purge = purge_values.spec(test["purge"], settings)
        identity = purge_values.identity_after(identity, purge)
        fitted.append(_fit_test(test, identity, settings, purge))
    return fitted


def _fit_test(
    test: Test, identity: t.Mapping[str, t.Any], settings: t.Mapping[str, t.Any], purge: dict[str, t.Any]
) -> tuple[Test, list[str]]:
    """A test for one drive in its rendered form, and what the drive can't do."""
    test, same_cells = preferred.on_drive(test, identity)
    cells, left_out, wrong = celling.fit(test, identity)
    active = celling.active_range_bytes(test, identity)
    engine = settings["workload_ioengine"]
    done = {key: copy.deepcopy(value) for key, value in test.items() if key not in NOT_FOR_HOSTS}
    done["purge"] = purge
    if purge["method"] in ("auto", "overwrite"):
        purge.update(_fill("purge", 1, OVERWRITE_BLOCK_BYTES, engine))
    if test["precondition"]:
        done["precondition"] = _fill("precondition", engine=engine, **test["precondition"])
    done["cells"] = [_with_job(cell, engine, _sections(cell, active, identity["size_bytes"])) for cell in cells]
    done["not_applicable"] = same_cells + left_out
    return done, wrong


def _with_job(cell: celling.Cell, engine: str, sections: t.Sequence[dict[str, t.Any]]) -> celling.Cell:
    """A cell with the text of its job; `polled` where its threads wait for completions by polling."""
    polled = [section for section in sections if engine == POLLED and _can_poll(section)]
    for section in polled:
        section["polled"] = True
    return {**cell, **({"polled": True} if polled else {}), "job": _job(engine, sections)}


def _can_poll(section: t.Mapping[str, t.Any]) -> bool:
    """A polled ring takes reads and writes alone: neither trims nor flushes."""
    return not (section.get("ioengine") or section.get("sync") or section["rw"].endswith("trim"))


def _fill(name: str, passes: int, block_size_bytes: int, engine: str, data: str = "random") -> dict[str, t.Any]:
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
    common = {"name": name, "rw": "write", "numjobs": 1, "loops": passes, "zeros": data == "zeros"}
    return {
        "passes": passes,
        "block_size_bytes": block_size_bytes,
        **({"data": data} if data == "zeros" else {}),
        "job": _job(engine, [{**common, **whole}]),
        "remainder_job": _job(engine, [{**common, **rest, "name": f"{name}-remainder"}]),
    }


def _sections(cell: celling.Cell, active_bytes: int, capacity: int) -> list[dict[str, t.Any]]:
    """The sections of a cell's job: one, or one for each of its streams, which run at the same time."""
    if not cell.get("jobs"):
        return [_cell_section(cell, active_bytes)]
    shared = {key: cell[key] for key in ("runtime_s", "ramp_s") if cell.get(key)}
    return [
        {
            **_cell_section({**job, **shared, "id": f"{cell['id']}.{job['name']}"}, active_bytes),
            **streams.section(job, active_bytes, capacity),
        }
        for job in cell["jobs"]
    ]


def _cell_section(cell: celling.Cell, active_bytes: int) -> dict[str, t.Any]:
    """The values that a cell gives to the job template."""
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
        share = active_bytes // cell["threads"] // cell["block_size_bytes"] * cell["block_size_bytes"]
        section.update(size=share, offset_increment=share)
    if cell.get("range"):
        section.update(streams.placed(cell, active_bytes))
    if cell.get("rate_iops"):
        section["rate_iops"] = _rate(cell)
    section.update({key: cell[key] for key in ("batch", "ramp_s", "ioengine", *streams.SYNC_KEYS) if cell.get(key)})
    if cell.get("fdatasync"):
        # With libaio and io_uring fio's time of a flush holds part of that of the write before it (3.33).
        section["ioengine"] = "sync"
    section.update(loads.section(cell))
    return section


def _rate(cell: celling.Cell) -> str:
    """fio's rate_iops counts for each thread and direction; the cell's for all of them together."""
    shares = [share for share in (cell["read_pct"], 100 - cell["read_pct"]) if share]
    return ",".join(str(cell["rate_iops"] * share // 100 // cell["threads"]) for share in shares)


def _job(engine: str, sections: t.Sequence[t.Mapping[str, t.Any]]) -> str:
    text: str = _template().render(ioengine="io_uring" if engine == POLLED else engine, jobs=sections)
    return text


@functools.lru_cache(maxsize=1)
def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True
    )
    return environment.from_string((WORKLOAD_ROLE / "templates" / "job.fio.j2").read_text(encoding="utf-8"))
