# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Purge methods and their verification.

A purge counts as verified when random sentinels, written and read back before it at sampled LBAs, can no longer be read
after it. Zeros alone prove nothing. Deallocate and overwrite are not purges in the sense of the SNIA PTS
(`purge_class: not_pts`).
"""

from __future__ import annotations

import fcntl
import mmap
import os
import struct
import typing as t

BLKDISCARD = 0x1277
PURGE_CLASS = {"deallocate": "not_pts", "overwrite": "not_pts"}
SENTINELS = 32
# A discard of the whole drive in one call can't be interrupted or show progress.
DISCARD_STEP_BYTES = 1 << 30


class PurgeError(Exception):
    """The purge could not be done; the message says what the drive does support."""


def choose(method: str, identity: t.Mapping[str, t.Any]) -> str:
    """The method to use: `auto` takes the strongest that the drive reports. Raises PurgeError for one that it lacks."""
    can_deallocate = bool(identity.get("max_discard_bytes"))
    if method == "auto":
        return "deallocate" if can_deallocate else "overwrite"
    if method not in PURGE_CLASS:
        raise PurgeError("purge_method {0!r} is unknown; use auto, {1}".format(method, ", ".join(sorted(PURGE_CLASS))))
    if method == "deallocate" and not can_deallocate:
        raise PurgeError("the drive does not support deallocate (no discard limit reported); it supports overwrite")
    return method


def sentinel_offsets(size_bytes: int, block_bytes: int, count: int = SENTINELS) -> list[int]:
    """Byte offsets of sampled blocks, spread evenly, the first and the last block of the drive among them."""
    last = size_bytes // block_bytes - 1
    return sorted({last * index // (count - 1) * block_bytes for index in range(count)})


class Sentinels:
    """Random blocks on a drive that a purge must make unreadable. `handle`: the held descriptor, opened with O_DIRECT."""

    def __init__(self, handle: int, size_bytes: int, block_bytes: int) -> None:
        self._handle = handle
        self._block_bytes = block_bytes
        self._expected = {offset: os.urandom(block_bytes) for offset in sentinel_offsets(size_bytes, block_bytes)}

    def __len__(self) -> int:
        return len(self._expected)

    def plant(self) -> None:
        """Write them and read each back. Raises PurgeError when the drive did not keep one."""
        with _aligned(self._block_bytes) as buffer:
            for offset, data in self._expected.items():
                buffer[:] = data
                os.pwritev(self._handle, [buffer], offset)
        os.fsync(self._handle)
        if self.survivors() != len(self):
            raise PurgeError("the drive did not keep the sentinels written before the purge: it cannot be verified")

    def survivors(self) -> int:
        """How many can still be read."""
        found = 0
        with _aligned(self._block_bytes) as buffer:
            for offset, data in self._expected.items():
                os.preadv(self._handle, [buffer], offset)
                found += buffer[:] == data
        return found


def _aligned(size: int) -> mmap.mmap:
    """A page-aligned buffer, as O_DIRECT asks for."""
    return mmap.mmap(-1, size)


def deallocate(handle: int, size_bytes: int, tick: t.Callable[[float], None]) -> None:
    """Discard the whole drive through the descriptor that we hold (blkdiscard would get EBUSY). `tick`: share done."""
    for start in range(0, size_bytes, DISCARD_STEP_BYTES):
        length = min(DISCARD_STEP_BYTES, size_bytes - start)
        fcntl.ioctl(handle, BLKDISCARD, struct.pack("=QQ", start, length))
        tick((start + length) / size_bytes)
