# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the job template costs: IOPS of the templated 4 KiB job ÷ those of the sources' own command lines, on a loop
device over memory, where the CPU is the limit and a drive hides nothing. The command lines are those of
unit/plugins/plugin_utils/plan/golden/printed.yml, word by word but for what the machine asks for (MACHINE) and the
template's data and clock options (EQUAL, and its percentiles): with gtod_reduce alone fio skips clocks that a result
needs. All else is the source's: its threads or processes, batches, mixes. Needs root.

    python tests/bench/template_cost.py [--pairs 7] [--seconds 10]

A round is the printed command, the template and the printed command again, each round in another order; the noise is
that of the printed command against itself in the same rounds. It prints each round, and ends with 1 where a median is
below 0.98, and with 2 where the noise's own median is farther from 1 than that: then nothing is told.
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

import busy_machine

from ansible_collections.ssdlab.fleet.plugins.module_utils.measure import fio
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan.render_plan import load_plan
from ansible_collections.ssdlab.fleet.tests.fixtures import printed
from ansible_collections.ssdlab.fleet.tests.fixtures.plans import identity_of, planned

SIZE = 1 << 30
LEAST = 0.98
# Of this machine, on both sides: the device, two CPUs, 4 KiB (job 07 prints 512 B), and the time.
MACHINE = {"numjobs": "2", "iodepth": "32"}
BLOCK_SIZE = ("bs", "blocksize")
DROPPED = ("cpus_allowed", "ramp_time", "name")
# Data and clocks as the template has them (docs/workloads.md has the reasons).
EQUAL = {"refill_buffers": "1", "randrepeat": "0", "gtod_reduce": "0"}
# By suite and job in printed.yml: the cell that stands for it.
CELLS = {("micron-p420m", "random"): {"read_pct": 0}, ("iomemory-guide", "07"): {"read_pct": 100, "batch": 16}}


def command(device: str, source: tuple[str, str], cell: dict[str, int], seconds: int, job: str) -> list[str]:
    """The command line that a source prints, as options of fio. job: the template's, for its percentiles."""
    (entry,) = [entry for entry in printed.PRINTED if printed.label(entry) == source]
    filled = {"block_size_bytes": 4096, **cell, "threads": MACHINE["numjobs"], "queue_depth": MACHINE["iodepth"]}
    own = printed.options(entry, filled)
    options = {name: "4k" if name in BLOCK_SIZE else value for name, value in own.items() if name not in DROPPED}
    options.update(MACHINE, **EQUAL, filename=device, time_based="1", runtime=str(seconds))
    options.update(line.split("=", 1) for line in job.splitlines() if "percentile" in line)
    return ["--name=printed", *(f"--{name}={value}" for name, value in options.items())]


def templated(device: str, cell: dict[str, int], seconds: int) -> str:
    """The job of a cell of two threads, as a host job would fill it."""
    cell = {"block_size": "4KiB", "threads": 2, "queue_depth": 32, "runtime_s": seconds, **cell}
    test = {"name": "cost", "purge": False, "precondition": False, "cells": [cell], "rounds": {"max": 1}}
    test["refill_buffers"] = EQUAL["refill_buffers"] == "1"
    plan = planned(load_plan([test]), identity_of(SIZE))
    (rendered,) = plan["drives"][0]["tests"][0]["cells"]
    values = {"device": device, "seed": 1, "size_bytes": SIZE, "numa_node": None, "cpus_allowed": None}
    return fio.fill(rendered["job"], {**values, "threads": 2, "queue_depth": 32})


def iops(arguments: list[str]) -> float:
    """IOPS of a run of fio, of both directions."""
    done = subprocess.run(["fio", "--output-format=json+", *arguments], capture_output=True, text=True, check=True)
    return sum(job[way]["iops"] for job in json.loads(done.stdout)["jobs"] for way in ("read", "write"))


def rounds(printed_line: list[str], template: list[str], count: int) -> tuple[list[float], list[float]]:
    """(template ÷ printed, printed again ÷ printed) of each round, which takes its three runs in another order."""
    runs = [("printed", printed_line), ("template", template), ("again", printed_line)]
    ratios, noise = [], []
    iops(printed_line)  # for whatever only a first run pays
    for number in range(count):
        turn = number % len(runs)
        figures = {name: iops(arguments) for name, arguments in runs[turn:] + runs[:turn]}
        ratios.append(figures["template"] / figures["printed"])
        noise.append(figures["again"] / figures["printed"])
    return ratios, noise


def text(ratios: list[float]) -> str:
    """Median and range."""
    return f"median {statistics.median(ratios):.3f}, {min(ratios):.3f} to {max(ratios):.3f}"


def measure(device: str, folder: pathlib.Path, count: int, seconds: int) -> int:
    """All command lines; 0 where all medians are high enough, else the exit code."""
    low = unclear = False
    for source, cell in CELLS.items():
        job = folder / "cell.fio"
        job.write_text(templated(device, cell, seconds))
        line = command(device, source, cell, seconds, job.read_text())
        print(f"{' '.join(source)}: fio {' '.join(line)}", flush=True)
        ratios, noise = rounds(line, [str(job)], count)
        print(f"  template ÷ printed {text(ratios)}; noise (printed again ÷ printed) {text(noise)}", flush=True)
        print("  rounds: " + " ".join(f"{ratio:.3f}/{same:.3f}" for ratio, same in zip(ratios, noise)), flush=True)
        low = low or statistics.median(ratios) < LEAST
        unclear = unclear or abs(statistics.median(noise) - 1) > 1 - LEAST
    if unclear:
        print("the machine is too busy: the printed command differs from itself by more than is looked for")
    return 2 if unclear else int(low)


def main() -> int:
    """Make the device, measure, take it away."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--seconds", type=int, default=10)
    busy_machine.add_argument(parser)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ssdlab-cost-", dir="/dev/shm") as place:
        folder = pathlib.Path(place)
        image = folder / "drive.img"
        # Written through once: pages that are not there yet would cost the first run alone.
        image.write_bytes(bytes(SIZE))
        command = ["losetup", "--find", "--show", "--direct-io=on", str(image)]
        device = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
        try:
            code = measure(device, folder, given.pairs, given.seconds)
            return busy_machine.exit_code(given, code > 0, code)
        finally:
            subprocess.run(["losetup", "--detach", device], check=True)


if __name__ == "__main__":
    sys.exit(main())
