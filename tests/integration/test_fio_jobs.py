# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rendered jobs under the real fio, on a loop device whose size leaves 90,112 bytes after the last
128 KiB block.
"""

from __future__ import annotations

import math
import os
import subprocess
import time
from pathlib import Path

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.measure import fio, fio_result
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan.render_plan import load_plan
from ansible_collections.ssdlab.fleet.tests.fixtures.plans import planned

MIB = 1 << 20
REMAINDER = 90_112
SIZE = 64 * MIB + REMAINDER


@pytest.fixture(params=[512, 4096])
def drive(request, loop_drive):
    made = loop_drive("drive", SIZE, request.param)
    made.block = request.param
    made.log = made.file.parent
    return made


def plan_of(drive, plan="demo", **variables):
    identity = {"size_bytes": SIZE, "logical_block_size_bytes": drive.block}
    drives = [{"selector": drive.selector, "identity": identity}]
    plan = planned(load_plan(plan), drives=drives, **variables)
    return plan["drives"][0]["tests"][-1]


def run(drive, job, seed=1, **values):
    """fio's exit code, result and stderr for a job that is filled as the host fills it."""
    known = {
        "device": drive.path,
        "seed": seed,
        "size_bytes": SIZE,
        "max_queue_depth": 32,
        "numa_node": None,
        "cpus_allowed": None,
    }
    known.update(remainder_offset=SIZE - REMAINDER, remainder_bytes=REMAINDER)
    known.update(values)
    (drive.log / "job.fio").write_text(fio.fill(job, known))
    argv = ["fio", f"--output={drive.log}/out.json", "--output-format=json+", str(drive.log / "job.fio")]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    # fio looks at all block devices, of which another test may just have taken one away.
    done.stderr = done.stderr.replace("stat: No such file or directory\n", "")
    return done, (drive.log / "out.json").read_text()


def sectors_written(drive):
    """The kernel's count of 512-byte sectors written (Documentation/block/stat.rst, field 7)."""
    return int(Path(f"/sys/block/{drive.name}/stat").read_text().split()[6])


def fill(drive, spec, seed=1):
    for part, length in (("job", SIZE - REMAINDER), ("remainder_job", REMAINDER)):
        done, text = run(drive, spec[part], seed)
        problems = fio_result.result_problems(
            done.returncode,
            fio_result.parse(fio_result.load(text)),
            drive.path,
            {"write": 1.0},
            None,
            length * spec["passes"],
        )
        assert problems == [] and done.stderr == ""


@pytest.mark.parametrize("step", ["precondition", "purge"])
def test_a_fill_writes_every_block_to_the_last_one(drive, step):
    spec = plan_of(drive, purge_method="overwrite")[step]
    before = sectors_written(drive)
    fill(drive, spec)
    assert (sectors_written(drive) - before) * 512 == spec["passes"] * SIZE
    data = drive.file.read_bytes()
    assert len(data) == SIZE
    # fio multiplies words by an odd constant, so a block whose first word ends in zero bytes has them in every word.
    unwritten = [offset for offset in range(0, SIZE, 512) if data.count(0, offset, offset + 512) > 256]
    assert unwritten == []


def test_another_seed_gives_other_data(drive):
    spec = plan_of(drive)["precondition"]
    images = []
    for seed in (1, 1, 2):
        fill(drive, spec, seed)
        images.append(drive.file.read_bytes())
    assert images[0] == images[1] != images[2]


def test_every_cell_of_the_demo_is_accepted(drive):
    for cell in plan_of(drive)["cells"]:
        directions = {
            name: share / 100
            for name, share in (("read", cell["read_pct"]), ("write", 100 - cell["read_pct"]))
            if share
        }
        done, text = run(drive, cell["job"])
        result = fio_result.parse(fio_result.load(text))
        assert (
            fio_result.result_problems(done.returncode, result, drive.path, directions, cell["runtime_s"]) == []
            and done.stderr == ""
        )
        for direction in directions:
            figures = fio_result.figures(result.jobs[0], direction)
            assert {"50", "90", "99", "99.9", "99.99", "99.999", "99.9999"} <= figures.percentiles_us.keys()
            assert figures.iops > 0 and figures.mean_latency_us > 0


def test_a_ramp_is_in_no_figure_and_a_batch_goes_out_at_once(drive):
    cell = {"block_size": "4KiB", "read_pct": 100, "queue_depth": 16, "batch": 16, "runtime_s": 2, "ramp_s": 1}
    (made,) = plan_of(drive, [{"name": "peak", "purge": False, "precondition": False, "cells": [cell]}])["cells"]
    began = time.monotonic()
    done, text = run(drive, made["job"])
    seconds = time.monotonic() - began
    result = fio_result.parse(fio_result.load(text))
    assert (
        seconds >= 3
        and fio_result.result_problems(done.returncode, result, drive.path, {"read": 1.0}, 2) == []
        and done.stderr == ""
    )
    (job,) = fio_result.load(text)["jobs"]
    assert job["read"]["runtime"] / 1000 < seconds - 0.9 and job["iodepth_submit"]["16"] > 90


def test_the_cold_part_is_left_as_it_was_filled(drive):
    shares = {"active_range_pct": 70, "purge": False, "precondition": {"of": "active_range", "passes": 1}}
    hot = {"block_size": "4KiB", "read_pct": 0, "queue_depth": 8, "range": {"from_pct": 10, "to_pct": 30}}
    test = plan_of(drive, [{"base": "hot-cold", "cells": [{**hot, "runtime_s": 2}], "phases": [], **shares}])
    active = SIZE * 70 // 100 // drive.block * drive.block
    part = active // (128 * 1024) * 128 * 1024
    done, _text = run(drive, test["precondition"]["job"], size_bytes=part, remainder_offset=part)
    assert done.returncode == 0
    before = drive.file.read_bytes()
    (cell,) = test["cells"]
    done, text = run(drive, cell["job"], size_bytes=active)
    assert (
        fio_result.result_problems(
            done.returncode, fio_result.parse(fio_result.load(text)), drive.path, {"write": 1.0}, 2
        )
        == []
        and done.stderr == ""
    )
    after = drive.file.read_bytes()
    changed = [at for at in range(0, SIZE, 4096) if before[at : at + 4096] != after[at : at + 4096]]
    # fio wrote all over the hot part, and nowhere else.
    assert active // 10 <= changed[0] < active // 10 + MIB and active * 3 // 10 - MIB < changed[-1] < active * 3 // 10
    # As many blocks as so many random writes hit, however many the machine let them be.
    (job,) = fio_result.load(text)["jobs"]
    blocks = active // 5 // 4096
    hit = blocks * (1 - math.exp(-job["write"]["total_ios"] / blocks))
    assert len(changed) == pytest.approx(hit, rel=0.1) and hit > 100
    assert set(after[active:]) == {0}


def test_a_mistyped_path_creates_nothing(drive):
    path = f"/dev/nosuchdrive{os.getpid()}"
    done, _text = run(drive, plan_of(drive)["cells"][0]["job"], device=path)
    assert done.returncode != 0 and "allow_file_create" in done.stderr and not os.path.exists(path)
