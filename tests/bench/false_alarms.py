# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How often a cell that nothing disturbed is taken for a spoilt one: none of 2,000 should be.

    .venv/bin/python tests/bench/false_alarms.py [--cells 2000] [--seconds 290]

Cells of each kind in turn, by real fio on simulated drives of 350 to 3,000 IOPS, while blkid and, where there is one, udev probe the drive
as they do when a device is closed. Ends after --cells or --seconds. Run as root from the repository's root.
"""
from __future__ import annotations

import argparse
import collections
import contextlib
import itertools
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / part) for part in ("playbooks/collections", "scripts/simulator", "tests/integration")]

import measuring  # noqa: E402  # pylint: disable=wrong-import-position
import simulated_ssd  # noqa: E402  # pylint: disable=wrong-import-position

FIGURES = {"size_bytes": 64 << 20, "fresh_iops": 2200, "steady_iops": 350, "read_iops": 3000}
KINDS = {
    "depth 1": {},
    "depth 1, reads": {"read_pct": 100},
    "slow": {"queue_depth": 32},
    "slower than its runtime": {"threads": 4, "queue_depth": 32},
    "ramped": {"read_pct": 50, "queue_depth": 4, "ramp_s": 1, "runtime_s": 2},
    "ramped writes": {"queue_depth": 16, "ramp_s": 1, "runtime_s": 2},
    "mixed": {"read_pct": 65, "queue_depth": 8},
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
    """(how many cells were run, Counter of (kind, level, cause), messages) until `cells` or `seconds` are over; a refused cell counts as `refused`."""
    ends, count, alarms, messages = time.monotonic() + seconds, 0, collections.Counter(), []
    with simulated_ssd.simulated_ssd(folder / "drives", "bench", simulated_ssd.model_plugin(**FIGURES)) as drive, probed(drive["device"]):
        measuring_it = measuring.Measuring(drive["device"], folder)
        try:
            for kind in itertools.islice(itertools.cycle(KINDS), cells):
                if time.monotonic() > ends:
                    break
                count += 1
                for level, cause, message in _alarms(measuring_it, KINDS[kind]):
                    alarms[kind, level, cause] += 1
                    messages.append(message)
                    if level != "told":
                        told("{0}: {1} {2}: {3}".format(kind, level, cause, message))
        finally:
            measuring_it.close()
    return count, alarms, messages


def _alarms(where, changes):
    try:
        result = where.cell(**changes)
    except measuring.fio.FioError as error:
        return [("refused", "figures", str(error))]
    return [(item.level, item.cause, item.message) for item in result["causes"]]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cells", type=int, default=2000)
    parser.add_argument("--seconds", type=float, default=4 * 3600)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="ssdlab-bench-") as folder:
        count, alarms, _messages = run(Path(folder), options.cells, options.seconds)
    spoilt = sum(number for (_kind, level, _cause), number in alarms.items() if level in ("spoils", "refused"))
    for (kind, level, cause), number in sorted(alarms.items()):
        print("{0:28} {1:8} {2:18} {3}".format(kind, level, cause, number))
    print("{0} cells, {1} false alarms".format(count, spoilt))
    return 1 if spoilt else 0


if __name__ == "__main__":
    sys.exit(main())
