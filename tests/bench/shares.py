# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A long bench in shares: several simulated drives at once, each result a line of a file, what it holds left out.

A simulated drive sleeps for most of the time, so a machine's CPUs serve several at once; each line has the load average
at its end, so that a reader sees what else went on.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import multiprocessing
import os
import re
import time
from pathlib import Path


def share_of(text):
    """(which, of how many) of a text as 2/8."""
    match = re.fullmatch(r"([1-9][0-9]{0,3})/([1-9][0-9]{0,3})", text)
    if not match or int(match[1]) > int(match[2]):
        raise argparse.ArgumentTypeError(f"{text!r} is no share: give one as 1/8")
    return int(match[1]), int(match[2])


def add_arguments(parser, drives):
    """--share, --drives and --results."""
    parser.add_argument(
        "--share", type=share_of, default=(1, 1), help="run only this share, such as 2/8 (default: all)"
    )
    parser.add_argument("--drives", type=int, default=drives, help="simulated drives at a time")
    parser.add_argument("--results", type=Path, help="append results to this file; what it holds is not run again")


def wanted(count, share, done=()):
    """The numbers of a share of 0 … count - 1 that are not done yet."""
    which, of = share
    return [number for number in range(which - 1, count, of) if number not in done]


def read(path):
    """{number: result} of a results file; a line that a kill tore is left out, so it is run again."""
    found = {}
    for line in path.read_text().splitlines() if path and path.exists() else ():
        try:
            result = json.loads(line)
            found[result["number"]] = result
        except (ValueError, KeyError, TypeError):
            continue
    return found


def run(work, numbers, drives, results):
    """Have `work(lane, numbers, tell)` do its numbers in so many processes; what the results file holds then.

    work: makes what it needs itself, and calls tell({number, …}) for each number. Raises RuntimeError when a process of
      them failed.
    """
    results.parent.mkdir(parents=True, exist_ok=True)
    lanes = [numbers[lane::drives] for lane in range(min(drives, len(numbers)))]
    make, tell = multiprocessing.get_context("fork").Process, teller(results)
    processes = [make(target=work, args=(lane, mine, tell)) for lane, mine in enumerate(lanes)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    failed = [process.exitcode for process in processes if process.exitcode]
    if failed:
        said = f"{len(failed)} of {len(processes)} processes ended with {failed}"
        raise RuntimeError(f"{said}; what was measured is in {results}")
    return read(results)


def teller(path):
    """What appends a result as one line."""

    def tell(result):
        line = json.dumps({**result, "time": round(time.time()), "load": os.getloadavg()[0]}) + "\n"
        with open(path, "a") as out:
            fcntl.flock(out, fcntl.LOCK_EX)
            out.write(line)
        print(line, end="", flush=True)

    return tell
