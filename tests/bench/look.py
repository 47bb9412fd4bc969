# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How often a look sees data of a size on a drive of a size, beside the chance that it tells.

    python tests/bench/look.py [--looks 200] [--seconds 0.5]

Drives are sparse files behind loop devices that this bench makes. Data is random bytes in one piece, at another random
place for every tenth look. A look of this bench goes on to its end when it has seen the data, so that the chance of
each can be told: by the blocks that it read, and by the pieces of 1 MiB beside them, which the plan's chance leaves
out.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "playbooks" / "collections"))

from ansible_collections.ssdlab.fleet.plugins.module_utils.guard import data_scan
from ansible_collections.ssdlab.fleet.tests.fixtures.detection import detection_probability

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
DRIVES = {"4 GiB": 4 * GIB, "512 GiB": 512 * GIB}
DATA = {"4 KiB": 4 * KIB, "256 KiB": 256 * KIB, "8 MiB": 8 * MIB, "40 MiB": 40 * MIB, "1 GiB": GIB}
LOOKS_A_PLACE = 10
PIECES = 2 * data_scan._PIECES  # of 1 MiB, read first to learn how fast the drive is


class Unending(data_scan.BlockClassifier):
    """Sees what there is to see, and goes on: looks that end early would leave the chances of the unlucky ones alone to
    be told.
    """

    over = False


@contextlib.contextmanager
def loop(folder: str, size_bytes: int):
    """A blank drive: its node and its file."""
    file = os.path.join(folder, f"drive-{size_bytes}")
    with open(file, "wb") as out:
        out.truncate(size_bytes)
    path = _run("losetup", "--find", "--show", "--direct-io=on", file)
    try:
        yield path, file
    finally:
        _run("losetup", "--detach", path)
        os.unlink(file)


def _run(*argv: str) -> str:
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout.strip()


def seen_of(
    path: str, file: str, size_bytes: int, data_bytes: int, looks: int, seconds: float
) -> tuple[int, float, float, int]:
    """How many of the looks saw the data; the chance that they told and that with their pieces, and their blocks, on
    average.
    """
    seen, told, real, blocks, place = 0, 0.0, 0.0, 0, 0
    piece = os.urandom(min(data_bytes, MIB))
    for number in range(looks):
        if number % LOOKS_A_PLACE == 0:
            _run("fallocate", "--punch-hole", "--offset", str(place), "--length", str(data_bytes), file)
            place = (
                random.randrange(MIB, size_bytes - data_bytes - MIB) // data_scan.BLOCK_BYTES * data_scan.BLOCK_BYTES
            )
            with open(file, "r+b") as out:
                for start in range(place, place + data_bytes, len(piece)):
                    os.pwrite(out.fileno(), piece[: place + data_bytes - start], start)
            _run("blockdev", "--flushbufs", path)
        handle = os.open(path, os.O_RDONLY | os.O_DIRECT | os.O_EXCL)
        try:
            found = data_scan.scan(handle, size_bytes, data_scan.Terms(seconds))
        finally:
            os.close(handle)
        seen += found.foreign is not None
        blocks += found.blocks
        chance = detection_probability(data_bytes, found.blocks, size_bytes, found.whole)
        told += chance
        # A piece sees data that begins less than its own length before it.
        real += 1 - (1 - chance) * (1 - min(1.0, (data_bytes + MIB) / size_bytes)) ** PIECES
    _run("fallocate", "--punch-hole", "--offset", str(place), "--length", str(data_bytes), file)
    return seen, told / looks, real / looks, blocks // looks


def detection(looks: int, seconds: float) -> None:
    """Print the table."""
    heads = ("drive", "data", "seen", "of a hundred", "chance told", "with the pieces", "blocks of a look")
    print(f"| {' | '.join(heads)} |\n{'|---' * len(heads)}|", flush=True)
    data_scan.BlockClassifier = Unending
    with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="ssdlab-bench-") as folder:
        for drive_name, size_bytes in DRIVES.items():
            with loop(folder, size_bytes) as (path, file):
                for data_name, data_bytes in DATA.items():
                    seen, told, real, blocks = seen_of(path, file, size_bytes, data_bytes, looks, seconds)
                    shares = f"{100.0 * seen / looks:.1f} | {100 * told:.1f} | {100 * real:.1f}"
                    print(f"| {drive_name} | {data_name} | {seen} of {looks} | {shares} | {blocks} |", flush=True)


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--looks", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=0.5)
    given = parser.parse_args()
    detection(given.looks, given.seconds)


if __name__ == "__main__":
    main()
