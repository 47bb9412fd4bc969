# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sentinels: random blocks on a drive that a purge must make unreadable. Zeros alone would prove nothing."""

from __future__ import annotations

import hashlib
import mmap
import os
import random
import typing as t

from ..records import purge
from ..records.purge import DeallocatedRead
from .method import PurgeError

SENTINELS = 32
# Of a purge that promises to erase everything: one that leaves 1 % of the blocks is noticed with a chance of 95 %.
SENTINELS_OF_PROMISE = 300


# What a deallocated block holds, by what the drive promises of it.
PROMISED: dict[DeallocatedRead, int] = {"zeros": 0x00, "ones": 0xFF}


class Count(t.NamedTuple):
    """What became of the sentinels: how many can still be read, at how many the drive gave an error, and how many hold
    something else than it promised.
    """

    survived: int
    unreadable: int
    unlike: int = 0


def sentinel_offsets(size_bytes: int, block_bytes: int, seed: str, count: int = SENTINELS) -> list[int]:
    """Byte offsets of sampled blocks, by chance, the first and the last block of the drive among them."""
    last = size_bytes // block_bytes - 1
    others = range(1, last)
    chosen = random.Random(seed).sample(others, min(count - 2, len(others)))
    return [block * block_bytes for block in sorted({0, last, *chosen})]


class Sentinels:
    """Blocks of random data at sampled places. `seed`: of an earlier set, to look for that one again
    after a restart.
    """

    def __init__(self, size_bytes: int, block_bytes: int, seed: str | None = None, count: int = SENTINELS) -> None:
        self.seed = seed or os.urandom(16).hex()
        self._size_bytes, self._block_bytes, self._count = size_bytes, block_bytes, count
        offsets = sentinel_offsets(size_bytes, block_bytes, self.seed, count)
        self._expected = {offset: self._data(offset) for offset in offsets}
        # Those that are there already.
        self._written: set[int] = set()

    def __len__(self) -> int:
        return len(self._expected)

    def record(self) -> purge.Sentinels:
        """Return what a later job needs to look for them: the arguments of this class."""
        return purge.Sentinels(self._size_bytes, self._block_bytes, self.seed, self._count)

    def _data(self, offset: int) -> bytes:
        return hashlib.shake_256(f"{self.seed}/{offset}".encode()).digest(self._block_bytes)

    def blocks(self) -> dict[int, bytes]:
        """Return what each holds, by its byte offset."""
        return dict(self._expected)

    def plant(self, handle: int) -> None:
        """Write them through a descriptor opened with O_DIRECT, and read each back. Raises PurgeError when the drive
        did not keep one.
        """
        try:
            with _aligned(self._block_bytes) as buffer:
                for offset, data in self._expected.items():
                    if offset in self._written:
                        continue
                    buffer[:] = data
                    os.pwritev(handle, [buffer], offset)
            os.fsync(handle)
        except OSError as error:
            text = (
                "the drive accepts no writes before the purge ({0}), so the purge could not be verified; check its "
                "health and its last sanitize"
            )
            raise PurgeError(text.format(error.strerror)) from None
        if self.count(handle, self._block_bytes).survived != len(self):
            raise PurgeError("the drive did not keep the sentinels written before the purge: it cannot be verified")

    def count(self, handle: int, block_bytes: int, promise: DeallocatedRead | None = None) -> Count:
        """Look for each. block_bytes: the drive's logical block now, which a purge may have changed. promise: what the
        drive says that they read as.

        A read that fails is not a sentinel that survived: drives may refuse blocks after a crypto erase until they are
        written.
        """
        survived = unreadable = unlike = 0
        for offset, data in self._expected.items():
            start = offset // block_bytes * block_bytes
            length = -(-(offset + len(data) - start) // block_bytes) * block_bytes
            try:
                seen = read_block(handle, start, length)
                survived += data in seen
                unlike += promise is not None and seen.strip(bytes([PROMISED[promise]])) != b""
            except OSError:
                unreadable += 1
        return Count(survived, unreadable, unlike)


def check_alive(handle: int, block_bytes: int) -> None:
    """A drive that answers no read at all proves nothing: it must take a block and give it back. Raises PurgeError."""
    data = os.urandom(block_bytes)
    try:
        with _aligned(block_bytes) as buffer:
            buffer[:] = data
            os.pwritev(handle, [buffer], 0)
        os.fsync(handle)
        alive = read_block(handle, 0, block_bytes) == data
    except OSError as error:
        raise PurgeError(
            f"the drive neither reads nor writes after the purge ({error.strerror}); look at its health"
        ) from None
    if not alive:
        raise PurgeError("the drive does not keep what is written to it after the purge; look at its health")


def read_block(handle: int, offset: int, length: int) -> bytes:
    """Return what a descriptor opened with O_DIRECT reads. Raises OSError."""
    with _aligned(length) as buffer:
        read = os.preadv(handle, [buffer], offset)
        return buffer[:read]


def _aligned(size: int) -> mmap.mmap:
    """Return a page-aligned buffer, as O_DIRECT asks for."""
    return mmap.mmap(-1, size)
