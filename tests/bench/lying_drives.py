# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which lies of a drive each test finds, and how many honest drives are called liars: whole campaigns on simulated
drives, through the host job, the gate and the judge.

Each cell of the table in docs/integrity.md is played on a drive of its own. Exits with 1 where one comes out otherwise,
or where an honest drive fails or ends with an error. Run as root from the repository's root:

    .venv/bin/python tests/bench/lying_drives.py [--lies flip drop] [--tests one two] [--honest 200] [--share 1/8]

`--lies --share 1/8` plays no lie and every eighth of the honest drives, from the first on: eight such runs, which may
go on side by side, play the drives of one.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / part) for part in ("playbooks/collections", "scripts/simulator", "tests/bench")]

import campaigns
import lies as simulated_lies

from ansible_collections.ssdlab.fleet.plugins.module_utils.core import locks

PAGE = ROOT / "docs" / "integrity.md"
MIB = 1 << 20
FAST = {"fresh_iops": 1e6, "steady_iops": 1e6, "read_iops": 1e6, "write_bandwidth": 1e9, "read_bandwidth": 1e9}
SIZE = 4 * MIB
# The other block lies before it in the same I/O, or its own write would put it right.
PLACES = {"misdirect": "1056768:1052672"}
PLACE = "1052672"
READS = {
    "cells": [{"access": "sequential", "block_size": "128KiB", "read_pct": 100, "queue_depth": 4, "runtime_s": 1}],
    "rounds": {"max": 1},
    "purge": False,
}
# As the columns of the table.
TESTS = {
    "one": {"base": "integrity", "purge": False, "integrity": {"passes": 1}},
    "two": {"base": "integrity", "purge": False, "integrity": {"passes": 2}},
    "verified": {"name": "verified", **READS, "precondition": {"passes": 2, "verify": True}},
    "measured": {"name": "measured", **READS, "precondition": {"passes": 2}},
}
NOT_FOUND, ERROR = "not found", "error"


def told():
    """What the page says: {lie: {test: kinds of wrong blocks, "error" or "not found"}}."""
    rows = re.findall(r"^\| .*\(`([a-z-]+)`\) \|(.*)\|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    return {lie: dict(zip(TESTS, (_in_short(cell) for cell in cells.split("|")))) for lie, cells in rows}


def _in_short(cell):
    kinds = re.findall(r"`(\w+)`", cell)
    return ", ".join(sorted(kinds)) or cell.partition(":")[0].strip()


def found(judged):
    """The same of a drive that was judged."""
    kinds = re.findall(r"not read back as written \(([^)]*)\)", " ".join(judged["reasons"]))
    if kinds and judged["verdict"] == "fail":
        return ", ".join(sorted(one.split(" ", 1)[1].replace(" ", "_") for one in kinds[0].split(", ")))
    return ERROR if judged["verdict"] == "error" else NOT_FOUND


def play(folder, number, test, size_bytes=SIZE, **more):
    """The judged drive of one campaign."""
    return campaigns.campaign(folder, number, [TESTS[test]], {**FAST, "size_bytes": size_bytes, **more})[0]


def honest(count, tests, share):
    """The tests of a share of so many honest drives, each with its drive's size in bytes."""
    sizes, (first, step) = random.Random(1), map(int, share.split("/"))
    drives = [(tests[number % len(tests)], 4096 * sizes.randint(500, 1500)) for number in range(count)]
    return drives[first - 1 :: step]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lies", nargs="*", choices=simulated_lies.KINDS, default=list(simulated_lies.KINDS))
    parser.add_argument("--tests", nargs="*", choices=TESTS, default=list(TESTS))
    parser.add_argument("--honest", type=int, default=200)
    parser.add_argument("--share", default="1/1")
    options = parser.parse_args()
    expected, missed, alarms, number = told(), 0, 0, 0
    assert expected.keys() == simulated_lies.KINDS.keys(), f"{PAGE} has {sorted(expected)}"
    with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="ssdlab-bench-") as folder:
        locks.LOCK_DIR = os.path.join(folder, "locks")
        for lie in options.lies:
            row = []
            for test in options.tests:
                number += 1
                judged = play(folder, number, test, lies=f"{lie}:{PLACES.get(lie, PLACE)}")
                row.append(found(judged))
                if row[-1] != expected[lie][test]:
                    missed += 1
                    print(f"{lie}, {test}: {row[-1]}, not {expected[lie][test]}: {judged['reasons']}")
            print(f"| {lie} | {' | '.join(row)} |")
        drives = honest(options.honest, options.tests, options.share)
        for test, size_bytes in drives:
            number += 1
            judged = play(folder, number, test, size_bytes)
            if judged["verdict"] in ("fail", "error"):
                alarms += 1
                print(f"honest, {test}: {judged['verdict']}: {judged['reasons']}")
    print(f"{len(drives)} honest runs, {alarms} false alarms; {missed} cells of the table are other than told")
    return 1 if missed or alarms else 0


if __name__ == "__main__":
    sys.exit(main())
