# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every job of every shipped suite runs for a second under the real fio, on small loop drives of 512 B blocks, and its
result is believed.
"""

from __future__ import annotations

import dataclasses
import functools
import os
import queue
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.measure import fio, fio_result, fio_sanity, io_pattern
from ansible_collections.ssdlab.fleet.plugins.module_utils.records import base
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.planned_cell import PlannedCell
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan.render_plan import load_plan
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan.testfiles import SHIPPED_DIR
from ansible_collections.ssdlab.fleet.tests.fixtures.plans import identity_of, planned

MIB = 1 << 20
SIZE = 128 * MIB
# As usual capacities, with a rest below 128 KiB.
ODD_SIZE = SIZE + 90_112
# Jobs that run at the same time, each on a drive of its own: what counts here is that they run, not how fast.
SIDE_BY_SIDE = 6
# A test of so many cells, but for the 56 of `iops`, whose threads and depth are all alike.
GRID = 49
# `full` has the tests of pts-enterprise in another order; `zoned` needs a zoned drive (tests/vm/test_zoned.py).
PLANS = sorted(path.stem for path in SHIPPED_DIR.glob("plans/*.yml") if path.stem not in ("full", "zoned"))
# They have most jobs; the others have some of each kind.
MOST_JOBS = ("micron-p420m", "pts-client", "pts-enterprise")
# fio looks for its drive among all of /sys/block, and says so when another test's drive goes meanwhile.
GONE_MEANWHILE = "stat: No such file or directory"


def cells_of(plan):
    """Each cell of a plan once, if no plan before it has it."""
    cells = all_cells(plan, identity_of(SIZE))
    return list({cell["id"]: cell for cell in cells if plan == first_with(cell["id"])}.values())


def all_cells(plan, identity, **variables):
    """The cells of a plan, with a second of time in place of their own; their range is the whole drive."""
    done = planned(scaled_plan(plan), identity, **variables)
    return [cell for test in done["drives"][0]["tests"] if test["cells"] for cell in corners(test["cells"])]


def corners(cells):
    """Of a grid over threads and depth only the cells at its edges: those between are the same job with
    other numbers.
    """
    edges = {key: {edge(cell[key] for cell in cells) for edge in (min, max)} for key in ("threads", "queue_depth")}
    return [
        cell for cell in cells if len(cells) < GRID or cell.get("lead") or all(cell[key] in edges[key] for key in edges)
    ]


@functools.lru_cache(maxsize=None)
def first_with(cell_id):
    """The first plan that has this cell, among those that have it once more."""
    return next(plan for plan in PLANS if any(cell.id == cell_id for test in plan_of(plan) for cell in test.cells))


@functools.lru_cache(maxsize=None)
def plan_of(plan):
    return load_plan(plan)


def scaled_plan(plan):
    """The tests of a plan over the whole drive, their cells scaled."""
    return [
        dataclasses.replace(test, active_range_pct=100, cells=[scaled(cell) for cell in test.cells])
        for test in plan_of(plan)
    ]


def scaled(cell):
    """A second of runtime; a ramp goes, as it has to be shorter; trims and rates that grow with the drive fit a small
    one.
    """
    jobs = [scaled_stream(job) for job in cell.jobs] if cell.jobs else None
    return dataclasses.replace(cell, runtime_s=1, ramp_s=None, jobs=jobs)


def scaled_stream(job):
    """A stream with trims of at most 1 MiB, and 100 I/Os a second in place of a rate by the terabyte."""
    size = min(job.block_size_bytes, 1 << 20) if job.trim else job.block_size_bytes
    rate_iops = 100 if job.rate_mib_s_per_tb else job.rate_iops
    return dataclasses.replace(job, block_size_bytes=size, rate_mib_s_per_tb=None, rate_iops=rate_iops)


def problems_of(cell, drive, log):
    values = {
        "device": drive.path,
        "seed": 1,
        "size_bytes": SIZE,
        "max_queue_depth": 32,
        "numa_node": None,
        "cpus_allowed": None,
    }
    share = io_pattern.share_bytes(SIZE, 2, cell["block_size_bytes"])
    values.update(threads=2, queue_depth=4, share_bytes=share)
    job = fio.fill(cell["job"], values)
    file, out = log / (drive.name + cell["id"] + ".fio"), log / (drive.name + cell["id"] + ".json")
    file.write_text(job)
    done = subprocess.run(
        ["fio", f"--output={out}", "--output-format=json+", str(file)],
        capture_output=True,
        text=True,
        check=False,
    )
    result = fio_result.parse(fio_result.load(out.read_text()))
    found = fio_result.result_problems(
        done.returncode, result, drive.path, io_pattern.directions(base.parse(PlannedCell, cell)), 1
    ) or fio_sanity.contradictions(result, job)
    return [
        f"{cell['id']}: {line}"
        for line in [*found, *(line for line in done.stderr.splitlines() if line != GONE_MEANWHILE)]
    ]


def fills_of(plan):
    """Each fill of a plan once: its passes and its two jobs."""
    fills = [test["precondition"] for test in planned(scaled_plan(plan), identity_of(ODD_SIZE))["drives"][0]["tests"]]
    return list({fill["job"]: fill for fill in fills if fill and not fill.get("filesystem")}.values())


def written_by(job, values, drive, log):
    """The bytes that a job wrote, by fio's result."""
    file, out = log / "fill.fio", log / "fill.json"
    file.write_text(fio.fill(job, {"device": drive.path, "seed": 1, "numa_node": None, "cpus_allowed": None, **values}))
    done = subprocess.run(
        ["fio", f"--output={out}", "--output-format=json+", str(file)],
        capture_output=True,
        text=True,
        check=False,
    )
    result = fio_result.parse(fio_result.load(out.read_text()))
    assert fio_result.result_problems(done.returncode, result, drive.path, {"write": 1.0}, None) == []
    return sum(entry.sides["write"].bytes for entry in result.jobs)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root for loop devices")
@pytest.mark.parametrize("plan", PLANS)
def test_every_fill_of_the_suite_writes_all_as_often_as_asked(plan, loop_drive, tmp_path):
    drive = loop_drive("odd", ODD_SIZE)
    for fill in fills_of(plan):
        rest = ODD_SIZE % fill["block_size_bytes"]
        whole = ODD_SIZE - rest
        values = {"max_queue_depth": 32, "remainder_offset": whole, "remainder_bytes": rest, "size_bytes": whole}
        wrote = [written_by(fill[key], values, drive, tmp_path) for key in ("job", "remainder_job")]
        assert wrote == [fill["passes"] * whole, fill["passes"] * rest] and rest


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root for loop devices")
@pytest.mark.variants(len(PLANS) - len(MOST_JOBS))
@pytest.mark.parametrize("plan", sorted(PLANS, key=lambda plan: plan in MOST_JOBS))
def test_every_job_of_the_suite_runs(plan, loop_drive, tmp_path):
    drives = [loop_drive(f"drive{number}", SIZE) for number in range(SIDE_BY_SIDE)]
    assert problems_side_by_side(cells_of(plan), drives, tmp_path) == []


@pytest.mark.variants(1)
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root for loop devices")
@pytest.mark.parametrize(
    "plan, engine", [("smoke", "io_uring"), ("hyperscale", "io_uring_fixed"), ("pts-client", "io_uring")]
)
def test_jobs_run_by_io_uring_on_drives_of_4_kib_blocks(plan, engine, loop_drive, tmp_path):
    drives = [loop_drive(f"drive{number}", SIZE, sector_bytes=4096) for number in range(SIDE_BY_SIDE)]
    cells = all_cells(plan, identity_of(SIZE, 4096), workload_ioengine=engine)
    once = list({cell["id"]: cell for cell in cells}.values())
    assert once and all("ioengine=io_uring\n" in cell["job"] for cell in once)
    assert not any("-512b-" in cell["id"] for cell in once)
    assert problems_side_by_side(once, drives, tmp_path) == []


def problems_side_by_side(cells, given, tmp_path):
    """What is wrong with any of these cells, each run on one of these drives."""
    drives: queue.Queue = queue.Queue()
    for drive in given:
        drives.put(drive)

    def run(cell):
        drive = drives.get()
        try:
            # A second is short on a busy machine: what is wrong with the job is wrong every time.
            return problems_of(cell, drive, tmp_path) and problems_of(cell, drive, tmp_path)
        finally:
            drives.put(drive)

    with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        return [line for lines in pool.map(run, cells) for line in lines]
