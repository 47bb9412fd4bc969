# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs whose host jobs are killed at random moments, again and again, until they end. As root:  tests/faults/soak.py
[--runs 50] [--jobs 2] [--seed N]

Each must end with every test measured, every record that was ever on the disk still there, the host as it was, and
nothing left behind.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import contextlib
import os
import random
import signal
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from bench import TESTS, Bench

MOST_KILLS = 4
# An undisturbed run takes about so long on an idle machine.
RUN_S = 9.0


def one(seed: int) -> tuple[int, int, list[str]]:
    """(seed, kills, what did not hold)."""
    chance = random.Random(seed)
    kills = 0
    with Bench(drives=2) as bench:
        planned = chance.randint(1, MOST_KILLS)
        while True:
            bench.start(bench.plan(parallel=2), bench.engine())
            if kills < planned:
                wait(bench, chance.uniform(0, RUN_S))
            else:
                bench.wait()
            if not bench.processes():
                break
            kills += kill(bench)
        return seed, kills, problems(bench)


def wait(bench: Bench, seconds: float) -> None:
    """So long, or until the job has ended."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and bench.processes():
        time.sleep(0.02)


def kill(bench: Bench) -> int:
    """SIGKILL for the job; fio dies with it."""
    for pid in bench.processes():
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    bench.wait()
    return 1


def problems(bench: Bench) -> list[str]:
    journal = bench.journal()
    lost = [record["event"] for record in bench.told_records() if record not in journal]
    found = ["lost of the journal: {0}".format(", ".join(lost))] if lost else []
    if bench.state_now() != "finished":
        found.append("its state is {0}: {1}".format(bench.state_now(), (bench.run.read_status() or {}).get("message")))
    outcomes = {key: record["outcome"] for key, record in bench.outcomes().items()}
    wanted = {(drive.label, test): "complete" for drive in bench.drives for test in TESTS}
    found += [f"outcomes: {outcomes}"] if outcomes != wanted else []
    ends = [
        (record["drive"], record["test"])
        for record in journal
        if record["event"] == "test_finished" and record["ended"] is None
    ]
    found += [f"measured twice: {end}" for end in set(ends) if ends.count(end) > 1]
    return found + ["stray: " + stray for stray in bench.strays()]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    asked = parser.parse_args()
    seeds = range(asked.seed, asked.seed + asked.runs)
    killed = bad = 0
    with concurrent.futures.ProcessPoolExecutor(asked.jobs, max_tasks_per_child=1) as pool:
        for seed, kills, found in pool.map(one, seeds):
            killed, bad = killed + kills, bad + bool(found)
            print("seed {0}: {1} kills: {2}".format(seed, kills, "; ".join(found) or "all there"), flush=True)
    print(f"\n{asked.runs} runs, {killed} kills, {bad} with something lost, stray or wrong (seeds from {asked.seed})")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
