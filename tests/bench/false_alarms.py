# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How often a cell that nothing disturbed is taken for a disturbed one: none of 2,000 should be.

    .venv/bin/python tests/bench/false_alarms.py [--cells 2000] [--share 1/8] [--drives 4] [--results FILE] [--seconds
    290]

Cells of each kind in turn, by real fio on simulated drives of 350 to 3,000 IOPS, several at a time, while blkid and,
where there is one, udev probe each drive as they do when a device is closed. Begins no cell after --seconds; what FILE
holds is not run again, so a night can be split (shares.py). Run as root from the repository's root.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import functools
import itertools
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [
    str(ROOT / part) for part in ("playbooks/collections", "scripts/simulator", "tests/integration", "tests/bench")
]

import busy_machine
import measuring
import shares
import simulated_ssd

from ansible_collections.ssdlab.fleet.plugins.module_utils.measure.validity_limits import Limits

FIGURES = {"size_bytes": 64 << 20, "fresh_iops": 2200, "steady_iops": 350, "read_iops": 3000}
KINDS = {
    "depth 1": {},
    "depth 1, reads": {"read_pct": 100},
    "slow": {"queue_depth": 32},
    "slower than its runtime": {"threads": 4, "queue_depth": 32},
    "ramped": {"read_pct": 50, "queue_depth": 4, "ramp_s": 1, "runtime_s": 2},
    "ramped writes": {"queue_depth": 16, "ramp_s": 1, "runtime_s": 2},
    "mixed": {"read_pct": 65, "queue_depth": 8},
    "block sizes": {
        "queue_depth": 8,
        "mix": {"sizes": [{"size_bytes": 4096, "pct": 60}, {"size_bytes": 65536, "pct": 40}]},
    },
    "block sizes, mixed": {
        "read_pct": 65,
        "queue_depth": 16,
        "mix": {"sizes": [{"size_bytes": 512 << shift, "pct": 25} for shift in range(4)]},
    },
    "threads": {"read_pct": 95, "threads": 4, "queue_depth": 4},
    "rate-limited": {"rate_iops": 100},
    "in batches": {"queue_depth": 16, "batch": 8},
    "sequential": {"access": "sequential", "block_size_bytes": 131072, "queue_depth": 8},
    "sequential, small": {"access": "sequential", "queue_depth": 16},
    "large blocks": {"block_size_bytes": 1048576, "queue_depth": 2, "read_pct": 100},
}
# A device's probe by udev, and what an impatient monitoring script adds.
PROBE_EVERY_S = 1.0


@contextlib.contextmanager
def probed(path):
    """Probe the drive every now and then while the block runs, as udev does."""
    stop = threading.Event()
    commands = [["blkid", "-p", path]]
    if shutil.which("udevadm"):
        commands.append(["udevadm", "trigger", "--action=change", path])

    def probe():
        for command in itertools.cycle(commands):
            subprocess.run(["blockdev", "--flushbufs", path], check=False, capture_output=True)
            subprocess.run(command, check=False, capture_output=True)
            if stop.wait(PROBE_EVERY_S):
                return

    thread = threading.Thread(target=probe)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def run(folder, cells, seconds, told=print):
    """(how many cells were run, Counter of (kind, level, cause), messages) until `cells` or `seconds` are over; a
    refused cell counts as `refused`.
    """
    results = {}

    def tell(result):
        results[result["number"]] = result
        for level, cause, message in result["alarms"]:
            if level != "told":
                told("{0}: {1} {2}: {3}".format(result["kind"], level, cause, message))

    work(folder, seconds, 0, range(cells), tell)
    return (len(results), *counted(results.values()))


def counted(results):
    """(Counter of (kind, level, cause), messages)."""
    found = [(result["kind"], *alarm) for result in results for alarm in result["alarms"]]
    return collections.Counter((kind, level, cause) for kind, level, cause, _message in found), [
        message for *_what, message in found
    ]


def work(folder, seconds, lane, numbers, tell):
    """Cells of these numbers on a drive of its own."""
    ends, kinds, place = time.monotonic() + seconds, list(KINDS), folder / f"lane{lane}"
    plugin = simulated_ssd.model_plugin(**{**FIGURES, "seed": lane + 1})
    with simulated_ssd.simulated_ssd(place / "drives", "bench", plugin) as drive, probed(drive["device"]):
        measuring_it = measuring.Measuring(drive["device"], place)
        # On a machine with busy CPUs that is right, and no false alarm.
        measuring_it.bench.limits = Limits(waited_max=1)
        try:
            for number in numbers:
                if time.monotonic() > ends:
                    break
                kind = kinds[number % len(kinds)]
                tell({"number": number, "kind": kind, "alarms": _alarms(measuring_it, KINDS[kind])})
        finally:
            measuring_it.close()


def _alarms(where, changes):
    try:
        result = where.cell(**changes)
    except measuring.fio.FioError as error:
        return [("refused", "figures", str(error))]
    return [(item.level, item.cause, item.message) for item in result.causes]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cells", type=int, default=2000)
    parser.add_argument("--seconds", type=float, default=4 * 3600)
    shares.add_arguments(parser, drives=4)
    busy_machine.add_argument(parser)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="ssdlab-bench-") as folder:
        results = options.results or Path(folder, "results.jsonl")
        numbers = shares.wanted(options.cells, options.share, shares.read(results))
        done = shares.run(functools.partial(work, Path(folder), options.seconds), numbers, options.drives, results)
    alarms, _messages = counted(done.values())
    disturbed = sum(number for (_kind, level, _cause), number in alarms.items() if level in ("disturbs", "refused"))
    for (kind, level, cause), number in sorted(alarms.items()):
        print(f"{kind:28} {level:8} {cause:18} {number}")
    loads = [result["load"] for result in done.values()] or [0.0]
    print(f"{len(done)} cells, {disturbed} false alarms; load average {min(loads):.1f} to {max(loads):.1f}")
    return busy_machine.exit_code(options, bool(disturbed))


if __name__ == "__main__":
    sys.exit(main())
