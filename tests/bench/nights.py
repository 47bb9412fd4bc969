# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Computed nights of a fleet, each with a few disturbances and bad drives (tests/fixtures/simulated_night.py): which
share of the tests of healthy drives counts, how wrong the rates are that do, and which verdicts a person would not
give.

Run as root from the repository's root:

    .venv/bin/python tests/bench/nights.py [--nights 7] [--hosts 4] [--drives 24]
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "playbooks", "collections"))

from ansible_collections.ssdlab.fleet.tests.fixtures import simulated_night


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nights", type=int, default=simulated_night.NIGHTS)
    parser.add_argument("--hosts", type=int, default=4)
    parser.add_argument("--drives", type=int, default=24, help="of each host")
    options = parser.parse_args()
    found = simulated_night.Outcome()
    with tempfile.TemporaryDirectory(prefix="ssdlab-nights-") as folder:
        for number in range(1, options.nights + 1):
            began = time.process_time()
            one = simulated_night.play(folder, simulated_night.of_week(number, options.hosts, options.drives))
            found = found.with_night(one)
            print(f"night {number}: {one.told()}; {time.process_time() - began:.0f} s of CPU time", flush=True)
    print("\n".join([*found.wrong, f"all: {found.told()}"]))
    return 0 if found.holds() else 1


if __name__ == "__main__":
    sys.exit(main())
