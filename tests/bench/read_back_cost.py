# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What it costs to write a drive and to read it back, as integrity tests and verified fills do: CPU seconds and time
for each GiB, on a loop device of its own in memory, beside fio's fill of the same.

The time is that of the loop device, which any drive is slower than; the CPU seconds are those of the process alone.
Plan mode counts with a rate of its own, which the median of both directions must not exceed. Run as root from the
repository's root:

    .venv/bin/python tests/bench/read_back_cost.py [--passes 5] [--mib 1024]
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time

import busy_machine
import harness

from ansible_collections.ssdlab.fleet.plugins.module_utils.measure import block_pattern, transfer
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan.time_estimates import READ_BACK_CPU_S_PER_GIB

GIB = 1 << 30


def cost(size_bytes, step):
    """CPU seconds of the processes that a step starts, their own and the kernel's for them, and its time; for each
    GiB.
    """
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    step()
    after, seconds = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic() - began
    parts = (after.ru_utime - before.ru_utime, after.ru_stime - before.ru_stime, seconds)
    return [part * GIB / size_bytes for part in parts]


def steps(path, handle, size_bytes, number):
    """What is measured: {name: step}."""
    pattern = block_pattern.Pattern(f"bench/{number}", 1, number)

    def move(writes):
        asked = transfer.Pass(handle, size_bytes, pattern, writes, number % 2 == 0, 1)
        done = transfer.run(asked, threading.Event(), lambda _share: None, lambda wrong: sys.exit(f"wrong: {wrong}"))
        assert done.complete and done.bytes == size_bytes

    fill = ["fio", "--name=fill", f"--filename={path}", "--rw=write", "--bs=128k", "--iodepth=32", "--direct=1"]
    fill += ["--ioengine=libaio", "--refill_buffers", "--output=/dev/null", f"--size={size_bytes}"]
    return {
        "fio's fill": lambda: subprocess.run(fill, check=True),
        "writing": lambda: move(True),
        "reading back": lambda: move(False),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--passes", type=int, default=5)
    parser.add_argument("--mib", type=int, default=1024)
    busy_machine.add_argument(parser)
    options = parser.parse_args()
    size_bytes, found = options.mib << 20, {}
    with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="ssdlab-bench-") as folder, harness.loop_device(
        folder, size_bytes
    ) as backing:
        path = subprocess.run(
            ["losetup", "--noheadings", "--output=NAME", "--associated", backing],
            check=True,
            capture_output=True,
            text=True,
        ).stdout.strip()
        handle = os.open(path, os.O_RDWR | os.O_DIRECT)
        try:
            for number in range(1, options.passes + 1):
                for name, step in steps(path, handle, size_bytes, number).items():
                    found.setdefault(name, []).append(cost(size_bytes, step))
        finally:
            os.close(handle)
    medians = {name: [statistics.median(part) for part in zip(*costs)] for name, costs in found.items()}
    for name, (own_s, kernel_s, seconds) in medians.items():
        print(f"| {name} | {own_s:.2f} CPU-s | {kernel_s:.2f} CPU-s | {seconds:.2f} s |")
    both_s = sum(sum(medians[name][:2]) for name in ("writing", "reading back"))
    print(f"writing and reading back a GiB takes {both_s:.2f} CPU-s; plan mode counts {READ_BACK_CPU_S_PER_GIB} for it")
    return busy_machine.exit_code(options, both_s > READ_BACK_CPU_S_PER_GIB)


if __name__ == "__main__":
    sys.exit(main())
