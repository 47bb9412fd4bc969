# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a journal as large as a host may send costs the report: time and memory of reading it.

tests/bench/journal.py [--mib 64] [kind ...]

kind: what a hostile host fills it with: sample, cell, round, histogram, tuned, refused, other, or torn (lines of
no JSON). Prints for each: MiB, seconds of CPU, MiB/s, MiB of memory that the reader grew by, and what was left out.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "playbooks" / "collections"))

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.report import host_journal

MIB = 1 << 20
COMMON = {"schema_version": 1, "time": "2026-11-22T02:00:00.000Z", "run_id": "r", "host": "h", "drive": "S1"}
OF_TEST = {**COMMON, "test": "iops", "attempt": 1}
SIDE = {"iops": 1, "bandwidth_bytes_per_s": 1, "ios": 1, "bytes": 1, "mean_latency_us": 1, "max_latency_us": 1}
SAMPLE = (
    *("temperature_c", "critical_warning", "warning_temp_min", "critical_temp_min", "throttle_counts", "throttle_s"),
    *("media_errors", "error", "link_speed_gts", "link_width", "aer"),
)
SETTING = dict.fromkeys(("before", "wanted", "effective"), "1")


def event(kind: str, number: int) -> bytes:
    """One line, as short as passes: many small ones cost most."""
    given = {
        "sample": {"event": "sample", **dict.fromkeys(SAMPLE), "error": "", "aer": {}, "seconds": 1},
        "round": {"event": "round", "round": number, "elapsed_s": 1.0},
        "cell": {
            "event": "cell",
            "round": number,
            "cell": f"c{number % 50}",
            "seed": 1,
            "started": COMMON["time"],
            "seconds": 1.0,
            "gap_s": None,
            "read": None,
            "write": {**SIDE, "percentiles_us": {}},
            "raw": "x",
        },
        "histogram": {
            "event": "histogram",
            "cell": f"c{number}",
            "direction": "write",
            "first_round": 1,
            "last_round": 1,
            "ios": 5,
            "bins": {"1000": 5},
        },
        "tuned": {
            "event": "tuned",
            "settings": [{**SETTING, "name": f"n{number}", "path": "p", "outcome": "changed", "message": ""}],
        },
        "refused": {"event": "sample", "temperature_c": "hot"},
        "other": {"event": "baseline"},
    }
    return b"{\n" if kind == "torn" else json.dumps({**OF_TEST, **given[kind]}).encode() + b"\n"


def write(path: Path, kind: str, size: int) -> None:
    """A journal of so many bytes of such lines."""
    with open(path, "wb") as file:
        number = 0
        while file.tell() < size:
            file.write(b"".join(event(kind, number + each) for each in range(1, 1001)))
            number += 1000


def read(pipe: object, folder: str) -> None:
    before, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    found = host_journal.read(folder, "h")
    seconds, grown = time.process_time() - began, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    pipe.send((seconds, grown / 1024, len(found.measurements), found.problem[:200]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mib", type=int, default=64)
    parser.add_argument(
        "kinds", nargs="*", default=["sample", "cell", "round", "histogram", "tuned", "refused", "other", "torn"]
    )
    asked = parser.parse_args()
    print(f"{'kind':<11}{'MiB':>6}{'s':>8}{'MiB/s':>8}{'memory':>8}  left out")
    for kind in asked.kinds:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "raw", "h", "journal.jsonl")
            path.parent.mkdir(parents=True)
            write(path, kind, asked.mib * MIB)
            ours, theirs = multiprocessing.Pipe()
            reader = multiprocessing.get_context("spawn").Process(target=read, args=(theirs, folder))
            reader.start()
            seconds, grown, _measurements, problem = ours.recv()
            reader.join()
        rate = asked.mib / seconds
        print(f"{kind:<11}{asked.mib:>6}{seconds:>8.1f}{rate:>8.1f}{grown:>8.0f}  {problem}", flush=True)


if __name__ == "__main__":
    main()
