# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reading a drive in blocks: where to look, and what counts as blank."""
from __future__ import annotations

import mmap
import os
import random
from typing import List

EDGE_BYTES = 1 << 20
SAMPLE_BYTES = 4096


class Reader:
    """Reads through a descriptor that was opened with O_DIRECT, in whole blocks, so that no stale page answers for the drive."""

    def __init__(self, handle: int, size_bytes: int, block_bytes: int) -> None:
        self._handle = handle
        self.size_bytes = size_bytes
        self._block_bytes = max(512, block_bytes)

    def read(self, offset: int, length: int) -> bytes:
        """The bytes there; fewer at the drive's end. Raises OSError, also for a short read elsewhere."""
        start = offset // self._block_bytes * self._block_bytes
        end = min(self.size_bytes, -(-(offset + length) // self._block_bytes) * self._block_bytes)
        if offset < 0 or start >= end:
            return b""
        with mmap.mmap(-1, end - start) as buffer:
            got = os.preadv(self._handle, [buffer], start)
            if got != end - start:
                raise OSError(5, "%d of %d bytes" % (got, end - start))
            return buffer[offset - start:min(end, offset + length) - start]


def spread(size_bytes: int, count: int) -> List[int]:
    """Offsets of blocks, one at random in each of `count` equal parts of a drive."""
    step = size_bytes / count
    offsets = {int((part + random.random()) * step) // SAMPLE_BYTES * SAMPLE_BYTES for part in range(count)}
    return sorted(offset for offset in offsets if offset + SAMPLE_BYTES <= size_bytes)


def is_blank(data: bytes) -> bool:
    """Whether nothing was written: each block all zeros, or all ones as some drives return what is erased."""
    blocks = (data[start:start + SAMPLE_BYTES] for start in range(0, len(data), SAMPLE_BYTES))
    return all(not block.strip(b"\0") or not block.strip(b"\xff") for block in blocks)
