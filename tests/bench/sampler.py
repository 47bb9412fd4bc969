# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What looking at a drive once a second does to its latencies: host jobs with and without samples in turn, on a loop
device of its own.

Prints the mean and the high percentiles of both, and the ratio of each. A loop device is looked at through sysfs only;
an NVMe drive would add one `nvme smart-log` a look. Run as root from the repository's root: .venv/bin/python
tests/bench/sampler.py [--pairs 4] [--cells 4] [--seconds 20]
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile

import harness

from ansible_collections.ssdlab.fleet.plugins.module_utils.run import folder as rundir

# Of the reads of a cell, in microseconds.
FIGURES = {
    "mean": lambda read: read["mean_latency_us"],
    "p99": lambda read: read["percentiles_us"]["99"],
    "p99.9": lambda read: read["percentiles_us"]["99.9"],
}


def latencies(folder, number, backing, options, interval_s):
    """Mean over the cells of each figure in microseconds, and how many samples were taken."""
    harness.harness(folder, number, backing, options, {"ssd_sample_interval_s": interval_s})
    journal = rundir.read_journal(rundir.RunDir(folder, f"bench{number}").journal)
    cells = [record["read"] for record in journal if record["event"] == "cell" and record["read"]]
    samples = sum(record["event"] == "sample" for record in journal)
    return {figure: statistics.mean(map(of, cells)) for figure, of in FIGURES.items()}, samples


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=4)
    parser.add_argument("--cells", type=int, default=4)
    parser.add_argument("--seconds", type=int, default=20)
    options = parser.parse_args()
    ratios = {figure: [] for figure in FIGURES}
    with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="ssdlab-bench-") as folder, harness.loop_device(
        folder
    ) as backing:
        for number in range(options.pairs):
            without, none = latencies(folder, 2 * number, backing, options, 0)
            sampled, some = latencies(folder, 2 * number + 1, backing, options, 1)
            if none or some < options.cells * options.seconds / 2:
                sys.exit(f"{none} samples without sampling, {some} with it: this measures nothing")
            for figure in FIGURES:
                ratios[figure].append(sampled[figure] / without[figure])
                print(
                    f"{figure}: {without[figure]:.1f} us without, {sampled[figure]:.1f} us with {some} samples, "
                    f"ratio {ratios[figure][-1]:.3f}"
                )
    for figure in FIGURES:
        print(f"median ratio of {figure}: {statistics.median(ratios[figure]):.3f}")


if __name__ == "__main__":
    main()
