# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reading single places of a drive; blockreader reads many at once."""

from __future__ import annotations

import mmap
import os


class Reader:
    """Reads through a descriptor that was opened with O_DIRECT, in whole blocks, so that no stale page answers for the
    drive.
    """

    def __init__(self, handle: int, size_bytes: int, block_bytes: int) -> None:
        self._handle = handle
        self.size_bytes = size_bytes
        self._block_bytes = max(512, block_bytes)

    def read(self, offset: int, length: int) -> bytes:
        """Return the bytes there; fewer at the drive's end. Raises OSError, also for a short read elsewhere."""
        start = offset // self._block_bytes * self._block_bytes
        end = min(self.size_bytes, -(-(offset + length) // self._block_bytes) * self._block_bytes)
        if offset < 0 or start >= end:
            return b""
        with mmap.mmap(-1, end - start) as buffer:
            got = os.preadv(self._handle, [buffer], start)
            if got != end - start:
                raise OSError(5, f"{got} of {end - start} bytes")
            return buffer[offset - start : min(end, offset + length) - start]
