# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an integrity test writes: sectors of which each tells its own address, its drive, and the writing of which it
is; and the process that writes them, or reads them back and tells which blocks are others (transfer.py starts it).

It is run as a text by `python -c`, so it imports the standard library alone. A process of its own, as all drives of a
host are worked on by one, whose GIL they would share.

A sector is 64 words of 8 bytes: fio's own fill from a seed, of which four words are set, which fio's scrambling may set
too. So the guard takes what a killed job left for what it is, a fill (guard/fio_data.py), and no drive can compress it.
"""

from __future__ import annotations

import base64
import collections.abc
import hashlib
import json
import math
import mmap
import os
import sys
import threading
import time
import typing
from array import array

SECTOR_BYTES = 512
BLOCK_BYTES = 4096
# Of an I/O.
CHUNK_BYTES = 1 << 20
# I/Os in flight.
THREADS = 8
WORDS = SECTOR_BYTES // 8
MASK = (1 << 64) - 1
# Of fio 3.32 and newer (lib/rand.c): the first words are these multiples of the seed, each later one so many times the
# fourth before it.
_FIRST, _FACTOR = (1, 2, 3, 5), 0x61C8864680B583EB
MULTIPLES = [_FIRST[place % 4] * pow(_FACTOR, place // 4, 1 << 64) & MASK for place in range(WORDS)]
# Words that are set: the address in bytes; the drive (32 bits); the writing (30 bits); the check of these two.
ADDRESS, DRIVE, WRITING, CHECK = 0, 6, 7, 8
# Sectors of different seeds; a chunk is a run of them that begins anywhere, so that no chunk is like its neighbours.
_SEEDS = 4096
_STARTS = _SEEDS - CHUNK_BYTES // SECTOR_BYTES + 1
_STEP = 1009
_PROGRESS_S = 0.5


def numbered(bits: int, *names: str | int) -> int:
    """Return the number of so many bits that stands for these names."""
    digest = hashlib.sha256("/".join(str(name) for name in names).encode()).digest()
    return int.from_bytes(digest[:8], "little") >> (64 - bits)


def check_of(drive: int, writing: int) -> int:
    """Return what a sector holds beside these two if both are as they were written."""
    return numbered(47, "check", drive, writing) << 9


class Pattern:
    """What one pass writes. key: of its seeds; drive: 32 bits; writing: 30 bits."""

    def __init__(self, key: str, drive: int, writing: int) -> None:
        self.key, self.drive, self.writing = key, drive, writing
        self._sectors: memoryview | None = None

    def make(self) -> memoryview:
        """Return its sectors, of 2 MiB; they are made the first time."""
        if self._sectors is None:
            seeds = array("Q", hashlib.shake_256(self.key.encode()).digest(8 * _SEEDS))
            words = array("Q", [(seed | 1) * multiple & MASK for seed in seeds for multiple in MULTIPLES])
            stamp = ((DRIVE, self.drive), (WRITING, self.writing), (CHECK, check_of(self.drive, self.writing)))
            for place, value in stamp:
                words[place::WORDS] = array("Q", [value]) * _SEEDS
            self._sectors = memoryview(words).cast("B")
        return self._sectors

    def forget(self) -> None:
        """Give the memory back until somebody asks again."""
        self._sectors = None

    def fill(self, target: memoryview, offset: int) -> None:
        """Put into a buffer of whole sectors what lies at an offset; it may not go beyond the end of a chunk."""
        chunk, place = divmod(offset, CHUNK_BYTES)
        start = chunk * _STEP % _STARTS * SECTOR_BYTES + place
        target[:] = self.make()[start : start + len(target)]
        target.cast("Q")[ADDRESS::WORDS] = memoryview(array("Q", range(offset, offset + len(target), SECTOR_BYTES)))

    def data(self, offset: int, length: int) -> bytes:
        """Return what lies at an offset, up to the end of the chunk."""
        found = bytearray(length)
        self.fill(memoryview(found), offset)
        return bytes(found)


def chunk_order(size_bytes: int, scattered: bool) -> collections.abc.Iterator[int]:
    """Yield the offset of each chunk once: in sequence, or far from the one before."""
    count = -(-size_bytes // CHUNK_BYTES)
    step = max(1, int(count * 0.618)) if scattered else 1
    while math.gcd(step, count) > 1:
        step += 1
    return (place * step % count * CHUNK_BYTES for place in range(count))


class Transfer:
    """One pass over a drive by THREADS threads; asked: as transfer.Pass has it."""

    def __init__(self, asked: collections.abc.Mapping[str, typing.Any], pattern: Pattern) -> None:
        self._handle, self._size_bytes, self._pattern = asked["handle"], asked["size_bytes"], pattern
        self._chunks = chunk_order(self._size_bytes, asked["scattered"])
        self._left_wrong, self._left_unreadable = asked["most_wrong"], asked["most_unreadable"]
        self._enough_s = math.inf if asked["enough_s"] is None else asked["enough_s"]
        self._lock = threading.Lock()
        self._over = False
        self.done_bytes = 0

    def run(self, writes: bool) -> None:
        """Write all of it, or read all of it; tell how far it is now and then, and what it came to."""
        step = self._write if writes else self._read
        threads = [threading.Thread(target=self._work, args=(step,), daemon=True) for _number in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            while thread.is_alive():
                thread.join(_PROGRESS_S)
                self._tell(done_bytes=self.done_bytes)
        if not self._over and self.done_bytes != self._size_bytes:
            raise RuntimeError(f"{self.done_bytes} of {self._size_bytes} bytes were done")
        if writes and not self._over:
            try:
                os.fsync(self._handle)
            except OSError as error:
                self._fail("flush", 0, error)
        self._tell(end=not self._over, done_bytes=self.done_bytes)

    def _tell(self, **found: int | str | None) -> None:
        with self._lock:
            sys.stdout.write(json.dumps(found) + "\n")
            sys.stdout.flush()

    def _fail(self, what: str, offset: int, error: OSError) -> None:
        self._over = True
        self._tell(failed=what, offset=offset, errno=error.errno)

    def _next(self) -> int | None:
        with self._lock:
            return None if self._over else next(self._chunks, None)

    def _work(self, step: collections.abc.Callable[[memoryview, bytearray, int, int], None]) -> None:
        buffer, own = memoryview(mmap.mmap(-1, CHUNK_BYTES)), bytearray(CHUNK_BYTES)
        while True:
            offset = self._next()
            if offset is None:
                return
            length = min(CHUNK_BYTES, self._size_bytes - offset)
            step(buffer, own, offset, length)
            with self._lock:
                self.done_bytes += length

    def _write(self, buffer: memoryview, _own: bytearray, offset: int, length: int) -> None:
        self._pattern.fill(buffer[:length], offset)
        try:
            written = os.pwritev(self._handle, [buffer[:length]], offset)
        except OSError as error:
            self._fail("write", offset, error)
            return
        if written != length:
            self._fail("write", offset, OSError(0, "short write"))

    def _read(self, buffer: memoryview, own: bytearray, offset: int, length: int) -> None:
        try:
            if os.preadv(self._handle, [buffer[:length]], offset) == length:
                self._compare(buffer, own, offset, length)
                return
            first_error = 0
        except OSError as failed:
            first_error = failed.errno or 0
        # Which of its blocks can't be read; and what the others hold.
        told = False
        for place in range(offset, offset + length, BLOCK_BYTES):
            size = min(BLOCK_BYTES, offset + length - place)
            try:
                if os.preadv(self._handle, [buffer[:size]], place) == size:
                    self._compare(buffer, own, place, size)
                    continue
                error = 0
            except OSError as failed:
                error = failed.errno or 0
            told = True
            if not self._wrong(place, "", error):
                return
        if not told:
            self._wrong(offset, "", first_error)

    def _compare(self, buffer: memoryview, own: bytearray, offset: int, length: int) -> None:
        view = memoryview(own)[:length]
        self._pattern.fill(view, offset)
        # A bytearray compares as fast as memcmp; a memoryview by its items.
        if length == CHUNK_BYTES and own == buffer:
            return
        for place in range(0, length, BLOCK_BYTES):
            found = bytes(buffer[place : min(length, place + BLOCK_BYTES)])
            if found != bytes(view[place : place + len(found)]) and not self._wrong(
                offset + place, base64.b64encode(found).decode(), None
            ):
                return

    def _wrong(self, offset: int, found: str, error: int | None) -> bool:
        """Tell of a block; return whether more are to be looked for."""
        with self._lock:
            self._left_wrong -= 1
            self._left_unreadable -= error is not None
            least = min(self._left_wrong, self._left_unreadable)
            told = least >= 0
            self._over = self._over or least <= 0 or time.monotonic() >= self._enough_s
        if told:
            self._tell(wrong=offset, found=found, errno=error)
        return not self._over


def main() -> None:
    """Do what the line of JSON on stdin asks for (transfer.py)."""
    asked = json.loads(sys.stdin.readline())
    if asked["cpus"]:
        os.sched_setaffinity(0, asked["cpus"])
    pattern = Pattern(asked["key"], asked["drive"], asked["writing"])
    # Before the threads ask for them.
    pattern.make()
    Transfer(asked, pattern).run(asked["writes"])


if __name__ == "__main__":
    main()
