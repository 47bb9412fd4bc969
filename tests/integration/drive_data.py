# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is on a loop drive, told from its file without reading the holes: a drive of a test is nearly all holes, and
digests of 48 MiB of zeros took the tests eighty CPU-seconds (docs/testing.md).

As a program: note the digest of each file in <file>.sealed.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import sys
import typing as t
from pathlib import Path

PIECE_BYTES = 1 << 16
BLKFLSBUF = 0x1261  # linux/fs.h


def flush(device: str) -> None:
    """Have the kernel write what it holds back for a block device, and read it anew."""
    descriptor = os.open(device, os.O_RDONLY)
    try:
        fcntl.ioctl(descriptor, BLKFLSBUF)
    finally:
        os.close(descriptor)


def digest(path: str | os.PathLike, size_bytes: int | None = None) -> str:
    """SHA-256 of the first `size_bytes` of a file (or all): of how many there are, and of the pieces that are not all
    zeros, each with its place. Zeros that were written and a hole are the same, as they are to who reads the drive.
    """
    with open(path, "rb", buffering=0) as file:
        there = os.fstat(file.fileno()).st_size
        end = there if size_bytes is None else min(there, size_bytes)
        found = hashlib.sha256(b"%d" % end)
        for offset in _pieces(file.fileno(), end):
            piece = os.pread(file.fileno(), min(PIECE_BYTES, end - offset), offset)
            if piece.count(0) < len(piece):
                found.update(b"\n%d " % offset + piece)
    return found.hexdigest()


def _pieces(descriptor: int, end: int) -> t.Iterator[int]:
    """The offsets below `end` of the pieces that are not only a hole."""
    done = 0
    while done < end:
        try:
            data = os.lseek(descriptor, done, os.SEEK_DATA)
        except OSError:  # a hole up to the end
            return
        hole = os.lseek(descriptor, data, os.SEEK_HOLE)
        start = max(done, data // PIECE_BYTES * PIECE_BYTES)
        done = -(-hole // PIECE_BYTES) * PIECE_BYTES
        yield from range(start, min(done, end), PIECE_BYTES)


def sealed(path: str | os.PathLike) -> Path:
    """Where this program notes a file's digest."""
    return Path(f"{os.fspath(path)}.sealed")


def main(paths: t.Sequence[str]) -> None:
    for path in paths:
        sealed(path).write_text(digest(path))


if __name__ == "__main__":
    main(sys.argv[1:])
