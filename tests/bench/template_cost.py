# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the job template costs: IOPS of the templated 4 KiB job ÷ those of the sources' own command lines, on a loop
device over memory, where the CPU is the limit and a drive hides nothing. Both sides have equal data and clock options:
of a printed command those that decide the CPU's work (gtod_reduce, buffers, map, threads) are set as the template has
them, and the latencies that the template asks for stay. Needs root.

    python tests/bench/template_cost.py [--pairs 7] [--seconds 10]

It prints each pair and ends with 1 where a median is below 0.98. A pair is two runs one after the other, in turn the
one or the other first; the noise is that of the printed command against itself, in as many pairs.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "playbooks" / "collections"))

from ansible_collections.ssdlab.fleet.plugins.module_utils.measure import fio
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan.render import load_plan
from ansible_collections.ssdlab.fleet.tests.fixtures.plans import identity_of, planned

SIZE = 1 << 30
LEAST = 0.98
# TN-FD-15, figure 12 (random 4 KiB writes), and a random read job of the ioMemory guide. Where the template differs for
# a reason that docs/workloads.md gives, and where that costs CPU, both sides are equal: the data and the clocks.
EQUAL = ["--refill_buffers=1", "--randrepeat=0", "--norandommap=1", "--thread=1", "--group_reporting=1"]
PRINTED = {
    "tn-fd-15 figure 12": [
        "--ioengine=libaio",
        "--direct=1",
        "--rw=randwrite",
        "--bs=4k",
        "--numjobs=2",
        "--iodepth=32",
    ],
    "iomemory job 07": ["--ioengine=libaio", "--direct=1", "--rw=randread", "--bs=4k", "--numjobs=2", "--iodepth=32"],
}
READ_PCT = {"tn-fd-15 figure 12": 0, "iomemory job 07": 100}


def templated(device: str, read_pct: int, seconds: int) -> str:
    """The job of a cell of two threads, as a host job would fill it."""
    cell = {"block_size": "4KiB", "read_pct": read_pct, "threads": 2, "queue_depth": 32, "runtime_s": seconds}
    test = {"name": "cost", "purge": False, "precondition": False, "cells": [cell], "rounds": {"max": 1}}
    plan = planned(load_plan([test]), identity_of(SIZE))
    (rendered,) = plan["drives"][0]["tests"][0]["cells"]
    values = {"device": device, "seed": 1, "size_bytes": SIZE, "numa_node": None, "cpus_allowed": None}
    return fio.fill(rendered["job"], {**values, "threads": 2, "queue_depth": 32})


def iops(arguments: list[str]) -> float:
    """IOPS of a run of fio, of both directions."""
    done = subprocess.run(["fio", "--output-format=json+", *arguments], capture_output=True, text=True, check=True)
    return sum(job[way]["iops"] for job in json.loads(done.stdout)["jobs"] for way in ("read", "write"))


def pairs(one: list[str], other: list[str], count: int) -> list[float]:
    """one ÷ other, each pair in another order."""
    ratios = []
    for number in range(count):
        order = (one, other) if number % 2 else (other, one)
        figures = {id(arguments): iops(arguments) for arguments in order}
        ratios.append(figures[id(one)] / figures[id(other)])
    return ratios


def text(ratios: list[float]) -> str:
    """Median and range."""
    return f"median {statistics.median(ratios):.3f}, {min(ratios):.3f} to {max(ratios):.3f}"


def measure(device: str, folder: pathlib.Path, count: int, seconds: int) -> bool:
    """Both command lines; whether both medians are high enough."""
    well = True
    for name, options in PRINTED.items():
        job = folder / "cell.fio"
        job.write_text(templated(device, READ_PCT[name], seconds))
        kept = [line for line in job.read_text().splitlines() if "percentile" in line]
        clocks = [f"--{line}" for line in kept]
        printed = ["--name=printed", f"--filename={device}", *options, *EQUAL, *clocks]
        printed += ["--time_based=1", f"--runtime={seconds}"]
        again = [*printed]
        noise = pairs(printed, again, count)
        ratios = pairs([str(job)], printed, count)
        print(f"{name}: template ÷ printed {text(ratios)}; noise (printed ÷ printed) {text(noise)}", flush=True)
        print("  pairs: " + " ".join(f"{ratio:.3f}" for ratio in ratios), flush=True)
        well = well and statistics.median(ratios) >= LEAST
    return well


def main() -> int:
    """Make the device, measure, take it away."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--seconds", type=int, default=10)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ssdlab-cost-", dir="/dev/shm") as place:
        folder = pathlib.Path(place)
        image = folder / "drive.img"
        # Written through once: pages that are not there yet would cost the first run alone.
        image.write_bytes(bytes(SIZE))
        command = ["losetup", "--find", "--show", "--direct-io=on", str(image)]
        device = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
        try:
            return 0 if measure(device, folder, given.pairs, given.seconds) else 1
        finally:
            subprocess.run(["losetup", "--detach", device], check=True)


if __name__ == "__main__":
    sys.exit(main())
