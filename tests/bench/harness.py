# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the harness costs: a host job of 20 cells of 5 s against the same fio commands run bare, in turn, on a loop
device of its own.

Prints the wall times, the ratio of each pair, the largest time without I/O between two cells, and for which share of
the time between the first cell's begin and the last one's end the drive had I/O. The limit holds for what is measured:
from the first cell's begin to the test's end. What comes once before it, mostly the guard's looks
(docs/wrong-drives.md), costs the same seconds however long the test is, and is printed beside. --load: beside so many
busy loops. Run as root from the repository's root:

    .venv/bin/python tests/bench/harness.py [--pairs 3] [--cells 20] [--seconds 5] [--load 0]
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "playbooks", "collections"))

import busy_machine

from ansible_collections.ssdlab.fleet.plugins.module_utils.core import files
from ansible_collections.ssdlab.fleet.plugins.module_utils.core.host import Host
from ansible_collections.ssdlab.fleet.plugins.module_utils.drive.entry import parse
from ansible_collections.ssdlab.fleet.plugins.module_utils.guard import guard_check
from ansible_collections.ssdlab.fleet.plugins.module_utils.run import folder as rundir
from ansible_collections.ssdlab.fleet.plugins.module_utils.tuning import settings
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan import render_plan as planning
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan import zipapp
from ansible_collections.ssdlab.fleet.tests.fixtures.plans import decided, rendered

RATIO_LIMIT = 1.03
GAP_LIMIT_S = 0.5


def make_plan(run_id, backing, cells, seconds, variables):
    """A plan without purge and preconditioning, so that both sides do exactly the same fio runs."""
    host = Host()
    cell = {
        "access": "random",
        "block_size": "4KiB",
        "threads": 1,
        "queue_depth": 4,
        "runtime_s": seconds,
        "rate_iops": 2000,
    }
    test = {
        "name": "bench",
        "title": "Harness",
        "purge": {"method": "none"},
        "precondition": False,
        "cells": [dict(cell, read_pct=share) for share in range(0, 100, 100 // cells)][:cells],
        "rounds": {"max": 1},
    }
    drives = guard_check.inspect(host, [parse({"backing_file": backing, "ssd_overwrite_data": True})])
    assert drives[0]["eligible"], drives[0]["refusals"]
    plan = rendered(
        planning.load_plan([test]),
        run={"id": run_id, "name": "bench"},
        host="bench",
        boot_id=settings.boot_id(host),
        drives=drives,
        engine_version="bench",
        variables=variables,
        tune={"cpu_dma_latency_us": None, "services_stopped": [], "sysfs": [], "keep": False},
    )
    plan = decided(plan)
    # A disturbed round would be measured again.
    plan["validity"]["limits"].update({"in_flight_min": 0, "idle_gap_s": 3600, **busy_machine.OTHERS_LOAD})
    return plan


def harness(folder, number, backing, options, variables):
    """Wall time of the test, the job's time beside it, the largest gap, the share of time with I/O, and the fio jobs
    that it ran, in order.
    """
    engine = zipapp.build("bench")
    path = os.path.join(folder, engine.name)
    with open(path, "wb") as out:
        out.write(engine.data)
    run = rundir.RunDir(folder, f"bench{number}")
    os.makedirs(run.path)
    files.write_atomic(run.plan, json.dumps(make_plan(run.run_id, backing, options.cells, options.seconds, variables)))
    began = time.monotonic()
    subprocess.run([sys.executable, path, "run", run.path], check=True)
    wall = time.monotonic() - began
    journal = rundir.read_journal(run.journal)
    cells = [record for record in journal if record["event"] == "cell"]
    assert len(cells) == options.cells
    gap = max(record["gap_s"] for record in cells if record["gap_s"] is not None)
    jobs = [os.path.join(run.path, record["raw"][: -len(".json.gz")] + ".fio") for record in cells]
    (ended,) = [time_s(record) for record in journal if record["event"] == "test_finished"]
    began = time_s(cells[0]) - cells[0]["seconds"]
    share = sum(record["seen"]["run_s"] for record in cells) / (time_s(cells[-1]) - began)
    return ended - began, wall - (ended - began), gap, share, jobs


def time_s(record):
    """When an event was noted, in seconds."""
    return datetime.datetime.fromisoformat(record["time"].replace("Z", "+00:00")).timestamp()


def bare(jobs, folder):
    """Wall time of the same jobs, one fio after the other."""
    began = time.monotonic()
    for job in jobs:
        output = os.path.join(folder, "bare.json")
        with open(job) as source:  # its first line says which drive the host job's descriptor was
            text = source.read()
        held, device = re.match(r"# (\S+) is (\S+),", text).groups()
        with open(job, "w") as out:
            out.write(text.replace("filename=" + held, "filename=" + device))
        subprocess.run(["fio", "--output=" + output, "--output-format=json", "--eta=never", job], check=True)
    return time.monotonic() - began


@contextlib.contextmanager
def loop_device(folder, size_bytes=256 << 20):
    """The backing file of a loop device of its own."""
    backing = os.path.join(folder, "drive.img")
    with open(backing, "wb") as out:
        out.truncate(size_bytes)
    attach = ["losetup", "--find", "--show", "--direct-io=on", backing]
    device = subprocess.run(attach, check=True, capture_output=True, text=True).stdout.strip()
    try:
        yield backing
    finally:
        subprocess.run(["losetup", "--detach", device], check=True)


@contextlib.contextmanager
def busy_loops(count):
    """So many processes that compute all the time."""
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _loop in range(count)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--cells", type=int, default=20)
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--load", type=int, default=0)
    busy_machine.add_argument(parser)
    options = parser.parse_args()
    ratios, gaps, shares = [], [], []
    with busy_loops(options.load), tempfile.TemporaryDirectory(
        dir="/dev/shm", prefix="ssdlab-bench-"
    ) as folder, loop_device(folder) as backing:
        for number in range(options.pairs):
            test, rest, gap, share, jobs = harness(folder, number, backing, options, {})
            plain = bare(jobs, folder)
            ratios.append(test / plain)
            gaps.append(gap)
            shares.append(share)
            print(
                f"harness {test:.2f} s, bare {plain:.2f} s, ratio {ratios[-1]:.4f}, largest gap {gap:.3f} s, "
                f"with I/O {share:.2f} of the time; once, before and after the test, {rest:.2f} s"
            )
    print(
        f"median ratio {statistics.median(ratios):.4f} (limit {RATIO_LIMIT}), largest gap {max(gaps):.3f} s (limit "
        f"{GAP_LIMIT_S}), with I/O {statistics.median(shares):.2f} of the time"
    )
    # Beside other load only the figures are told.
    options.busy = options.busy or options.load > 0
    return busy_machine.exit_code(options, statistics.median(ratios) > RATIO_LIMIT or max(gaps) > GAP_LIMIT_S)


if __name__ == "__main__":
    sys.exit(main())
