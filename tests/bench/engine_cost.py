# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What each workload_ioengine costs, with the job template and with the barest job: I/Os for each second of a CPU, of
one thread that reads 4 KiB at a depth of 32 where no drive limits it. The barest job has fio's own defaults; the
template adds what a result needs (percentiles, its own seed, NUMA memory).

    python tests/bench/engine_cost.py [--pairs 7] [--seconds 5] [--device /dev/nullb0]

Reads come from `--device`, which is only read: a null block device where the kernel has one (modprobe null_blk), else
/dev/zero, which takes no O_DIRECT and passes no block layer. The row `null` is fio alone (ioengine=null). A round is
the barest job, the template and the barest job again, each round in another order; the template is compared with the
mean of both. CPU time is that of fio's thread, so what else runs on the machine counts little. Ends with 1 where a
median of template ÷ barest is below 0.98, and with 2 where the barest job against itself is farther from 1 than that.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "playbooks" / "collections"))

import busy_machine
import template_cost

from ansible_collections.ssdlab.fleet.plugins.module_utils.measure import fio, fio_sanity
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan import jobs
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan.render_plan import load_plan
from ansible_collections.ssdlab.fleet.tests.fixtures.plans import identity_of, planned

SIZE = 1 << 30
ZERO = "/dev/zero"
# Polls the queue of a drive, which none of these devices has. `null` is fio's own.
ENGINES = ["null", *(engine for engine in jobs.ENGINES if engine != jobs.POLLED)]
CELL = {"block_size": "4KiB", "read_pct": 100, "threads": 1, "queue_depth": 32}
# Of the template's options, those without which it would be another job.
BARE = "ioengine direct thread filename rw norandommap bs iodepth size time_based runtime cpus_allowed".split()


def templated(engine: str, device: str, cpu: int, seconds: int) -> str:
    """The job of a cell as a host job would fill it, for this device."""
    known = engine if engine in jobs.ENGINES else "libaio"
    test = {"name": "cost", "purge": False, "precondition": False, "rounds": {"max": 1}}
    cells = [{**CELL, "runtime_s": seconds}]
    plan = planned(load_plan([{**test, "cells": cells}]), identity_of(SIZE), workload_ioengine=known)
    (rendered,) = plan["drives"][0]["tests"][0]["cells"]
    values = {"device": device, "seed": 1, "size_bytes": SIZE, "numa_node": 0, "cpus_allowed": str(cpu)}
    text = fio.fill(rendered["job"], values)
    text = text if engine == known else text.replace(f"ioengine={known}", f"ioengine={engine}")
    return text.replace("direct=1\n", "direct=0\n") if device == ZERO else text


def barest(job: str) -> str:
    """The same job with BARE and the engine's own options alone."""
    kept = {*BARE, *(name for _fio, options in jobs.ENGINES.values() for name in options)}
    given: dict[str, str] = {}
    for section in fio_sanity.sections(job).values():
        given.update({key: value for key, value in section.items() if key in kept})
    return "[barest]\n" + "".join(f"{key}={value}\n" for key, value in given.items())


def per_cpu_second(job: pathlib.Path) -> float:
    """I/Os for each second of a CPU that fio's thread used."""
    command = ["fio", "--readonly", "--output-format=json+", str(job)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    (entry,) = json.loads(done.stdout)["jobs"]
    cpu_s = (entry["usr_cpu"] + entry["sys_cpu"]) / 100 * entry["read"]["runtime"] / 1000
    return entry["read"]["total_ios"] / cpu_s


def rounds(bare: pathlib.Path, template: pathlib.Path, count: int) -> list[dict[str, float]]:
    """The figure of each job by its name, of each round."""
    runs = [("barest", bare), ("template", template), ("again", bare)]
    per_cpu_second(bare)  # for whatever only a first run pays
    turns = (number % len(runs) for number in range(count))
    return [{name: per_cpu_second(job) for name, job in runs[turn:] + runs[:turn]} for turn in turns]


def measure(device: str, folder: pathlib.Path, count: int, seconds: int) -> int:
    """All engines; 0 where all medians are high enough, else the exit code."""
    low = unclear = False
    cpu = max(os.sched_getaffinity(0))
    print(f"{device}, one thread on one CPU; I/Os for each second of it, medians of {count} rounds of 3 x {seconds} s")
    print("| engine | barest job | template | template ÷ barest | barest ÷ barest |\n|---|---|---|---|---|", flush=True)
    for engine in ENGINES:
        template, bare = folder / "template.fio", folder / "barest.fio"
        template.write_text(templated(engine, device, cpu, seconds))
        bare.write_text(barest(template.read_text()))
        found = rounds(bare, template, count)
        ratios = [2 * each["template"] / (each["barest"] + each["again"]) for each in found]
        noise = [each["again"] / each["barest"] for each in found]
        medians = [statistics.median(each[name] for each in found) for name in ("barest", "template")]
        cells = [engine, *(f"{median:,.0f}" for median in medians), *map(template_cost.text, (ratios, noise))]
        print(f"| {' | '.join(cells)} |", flush=True)
        low = low or statistics.median(ratios) < template_cost.LEAST
        unclear = unclear or abs(statistics.median(noise) - 1) > 1 - template_cost.LEAST
    if unclear:
        print("the machine is too busy: the barest job differs from itself by more than is looked for")
    return 2 if unclear else int(low)


def main() -> int:
    """Measure; nothing is written to the device."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--device", default="/dev/nullb0" if os.path.exists("/dev/nullb0") else ZERO)
    busy_machine.add_argument(parser)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ssdlab-engines-") as place:
        code = measure(given.device, pathlib.Path(place), given.pairs, given.seconds)
    return busy_machine.exit_code(given, code > 0, code)


if __name__ == "__main__":
    sys.exit(main())
