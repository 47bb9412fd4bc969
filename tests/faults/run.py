# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Play the fault bench's cases and print a table of them. As root:

tests/faults/run.py [--list] [--sample] [--case NAME] [--jobs N] [--share 1/10] [part of a name ...]

Ends 0 only when every case was survived.
"""

from __future__ import annotations

import argparse
import collections
import concurrent.futures
import sys
import time
import traceback
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from check import play
from table import CASES


def attempt(name: str) -> tuple[str, float, list[str]]:
    """(name, seconds, what did not hold)."""
    began = time.monotonic()
    try:
        found = play(CASES[name])
    except Exception:  # A case that can't be played is one that was not survived.
        found = [traceback.format_exc().strip().replace("\n", "\n      ")]
    return name, time.monotonic() - began, found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--list", action="store_true", help="print the names of the cases")
    parser.add_argument("--sample", action="store_true", help="only those of every test run")
    parser.add_argument("--case", help="the one of this name")
    parser.add_argument("--jobs", type=int, default=2, help="how many at a time")
    parser.add_argument(
        "--share", default="1/1", help="every n-th case only, such as 3/10: ten such calls play them all"
    )
    parser.add_argument("parts", nargs="*", help="only cases whose name has one of these in it")
    asked = parser.parse_args()
    names = [name for name, case in CASES.items() if not (asked.sample and not case.sample)]
    names = [name for name in names if not asked.parts or any(part in name for part in asked.parts)]
    first, step = (int(number) for number in asked.share.split("/"))
    names = names[first - 1 :: step]
    names = [asked.case] if asked.case else names
    if asked.list:
        print("\n".join(names))
        return 0
    survived: collections.Counter[str] = collections.Counter()
    of: collections.Counter[str] = collections.Counter()
    # A process each: the job's own children, signals and locks are its own then.
    with concurrent.futures.ProcessPoolExecutor(asked.jobs, max_tasks_per_child=1) as pool:
        for name, seconds, found in pool.map(attempt, names):
            kind = CASES[name].wanted
            of[kind] += 1
            survived[kind] += not found
            print("{0:<8} {1:5.1f} s  {2}".format("FAILED" if found else "survived", seconds, name), flush=True)
            for text in found:
                print("      " + text, flush=True)
    print("\n{0:<10} {1:>8} {2:>5}".format("fault", "survived", "of"))
    for kind in of:
        print(f"{kind:<10} {survived[kind]:>8} {of[kind]:>5}")
    print("{0:<10} {1:>8} {2:>5}".format("all", sum(survived.values()), sum(of.values())))
    return 0 if survived == of else 1


if __name__ == "__main__":
    sys.exit(main())
