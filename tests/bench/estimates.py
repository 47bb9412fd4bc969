# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What plan mode says that a plan takes and writes, against what its run took and wrote.

    .venv/bin/python tests/bench/estimates.py [--plans smoke incoming acceptance] [--share 1] [--busy]

Whole campaigns through the host job, on a simulated drive that writes small blocks as fast as large ones, at a rate
that plan mode is told (ssd_assumed_write_mib_s). The bytes are the kernel's count of the drive; the time is the host
job's, its looks at the drive included. --share: of the drive, the time of each cell and the limits in seconds;
acceptance is cut to a twelfth of them besides. A simulated drive has no self-test. Exits with 1 where the time lies
more than 10 % outside of what was said, or the bytes differ by more than 10 % from the most that were. Run as root from
the repository's root.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
import typing as t
from dataclasses import replace
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / part) for part in ("playbooks/collections", "scripts/simulator", "tests/bench")]

import busy_machine
import campaigns
import simulated_ssd as simulator

from ansible_collections.ssdlab.fleet.plugins.module_utils.core import locks
from ansible_collections.ssdlab.fleet.plugins.module_utils.core.host import Host
from ansible_collections.ssdlab.fleet.plugins.module_utils.job import engine
from ansible_collections.ssdlab.fleet.plugins.module_utils.run import folder as rundir
from ansible_collections.ssdlab.fleet.plugins.module_utils.run import summary
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan import render_plan as planning
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.preflight import plan_text, wear
from ansible_collections.ssdlab.fleet.tests.fixtures.plans import typed

MIB = 1 << 20
WRITE_MIB_S = 4
SMALL_IOPS = WRITE_MIB_S * MIB / 4096
DRIVE = {
    "size_bytes": 1024 * MIB,
    "fresh_iops": SMALL_IOPS,
    "steady_iops": SMALL_IOPS,
    "read_iops": SMALL_IOPS,
    "write_bandwidth": WRITE_MIB_S * MIB,
    "read_bandwidth": WRITE_MIB_S * MIB,
    "noise_pct": 0,
}
# Of the time of cells, beside --share.
CUT = {"smoke": 1.0, "incoming": 1.0, "acceptance": 1 / 12}
LIMIT = 0.1


class Row(t.NamedTuple):
    """Of one run. least, most: bytes as plan mode has them; low_s, high_s: its time."""

    plan: str
    least: float
    most: float
    written: int
    low_s: float
    high_s: float
    took_s: float

    @property
    def off(self) -> tuple[float, float]:
        """How far what was measured lies outside of what was said: the time, and the bytes from the most."""
        nearest_s = min(max(self.took_s, self.low_s), self.high_s)
        return abs(self.took_s / nearest_s - 1), abs(self.most / self.written - 1)

    def text(self) -> str:
        low, high = (each / self.took_s for each in (self.low_s, self.high_s))
        least, most = (each / self.written for each in (self.least, self.most))
        return (
            f"| `{self.plan}` | {self.took_s:.0f} s | {low:.2f} to {high:.2f} | {self.written / 1e9:.2f} GB | "
            f"{least:.2f} to {most:.2f} |"
        )


def cut(test: t.Any, share: float) -> t.Any:
    """Return a test with a share of its times."""
    cells = [replace(cell, runtime_s=max(1, round(cell.runtime_s * share))) for cell in test.cells]
    limit_s, steady = test.rounds.time_limit_s, test.steady_state
    rounds = replace(test.rounds, time_limit_s=round(limit_s * share)) if limit_s else test.rounds
    steady = replace(steady, settle_s=round(steady.settle_s * share)) if steady else None
    return replace(test, cells=cells, rounds=rounds, steady_state=steady)


def written_bytes(device: str) -> int:
    """The kernel's count of a drive, in sectors of 512 bytes."""
    return 512 * int(Path(f"/sys/block/{os.path.basename(device)}/stat").read_text(encoding="utf-8").split()[6])


def play(folder: str, name: str, share: float) -> Row:
    """Play a plan on a new drive. Exits where a test of it did not end well."""
    host, run = Host(), rundir.RunDir(folder, f"estimates-{name}")
    tests = [cut(test, share * CUT[name]) for test in planning.load_plan(name) if not test.self_test]
    figures = {**DRIVE, "size_bytes": round(DRIVE["size_bytes"] * share / MIB) * MIB}
    with simulator.simulated_ssd(os.path.join(folder, "drives"), name, simulator.model_plugin(**figures)) as drive:
        limits = {"ssd_validity_limits": busy_machine.OTHERS_LOAD, "ssd_assumed_write_mib_s": WRITE_MIB_S}
        plan = typed(campaigns.planned(host, run, tests, drive, **limits))
        before, began = written_bytes(drive["device"]), time.monotonic()
        engine.HostJob(run, host).run()
        took_s, written = time.monotonic() - began, written_bytes(drive["device"]) - before
    state = summary.read(host, run).state
    if state != "finished":
        sys.exit(f"{name}: the host job ended {state}")
    (told,) = plan_text.estimate(plan)
    return Row(name, *wear.of_drive(plan.drives[0]), written, told.min_s, told.max_s, took_s)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--plans", nargs="+", choices=CUT, default=list(CUT))
    parser.add_argument("--share", type=float, default=1.0)
    busy_machine.add_argument(parser)
    options = parser.parse_args()
    print("| plan | took | said ÷ took | wrote | said ÷ wrote |", flush=True)
    missed = False
    with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="ssdlab-bench-") as folder:
        locks.LOCK_DIR = os.path.join(folder, "locks")
        for name in options.plans:
            row = play(folder, name, options.share)
            print(row.text(), flush=True)
            missed |= max(row.off) > LIMIT
    return busy_machine.exit_code(options, missed)


if __name__ == "__main__":
    sys.exit(main())
