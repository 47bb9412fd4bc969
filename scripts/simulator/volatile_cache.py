# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The volatile write cache of a simulated SSD: what it holds is lost with the power, but for what a flush or FUA made
durable; and what a drive does that lies about it.

It runs inside nbdkit in the system's Python, so it keeps to plain syntax and the standard library.
"""

from __future__ import annotations

import os
import random

BLOCK_BYTES = 4096
# What a rolled back mapping forgets.
ROLLED_BACK = 16
LIES = {
    "no-flush": "a flush is acknowledged, and makes nothing durable",
    "no-fua": "a write with FUA is acknowledged, and is not durable",
    "torn": "of a block that the power cut meets, only the first half is new",
    "rollback": "the mapping of what was made durable last is an older one after the cut",
    "shift": "a block that the power cut meets is found at the place of another that was to be durable",
    "dead": "after the cut the drive does nothing any more",
}


class VolatileCache:
    """The drive's memory as it reads, and what of it is durable. A block in the cache is there or not once the power
    is gone, by chance; the oldest leave the cache as it fills up.

    lies: of LIES, separated by commas. power_file: the power goes as soon as this file exists; it is removed then.
    Raises ValueError.
    """

    def __init__(self, memory, cache_bytes, lies="", power_file="", seed=1):
        self._memory, self._most_blocks = memory, int(cache_bytes) // BLOCK_BYTES
        self._durable = bytearray(memory)
        self._lies = [lie for lie in lies.split(",") if lie]
        unknown = [lie for lie in self._lies if lie not in LIES]
        if unknown:
            raise ValueError(f"{unknown[0]!r} is none of {', '.join(LIES)}")
        # Blocks that are newer in memory, the oldest first.
        self._dirty = {}
        # What was made durable last: {block: what was durable there before}.
        self._before = {}
        self._power_file, self._random = power_file, random.Random(seed)
        self.is_dead, self.cuts = False, 0

    def look_at_power(self):
        """Lose the power where somebody cut it since."""
        if self._power_file and os.path.exists(self._power_file):
            self.lose_power()
            os.unlink(self._power_file)

    def written(self, offset, length, fua):
        """Take note of a write or trim that is in memory already."""
        blocks = list(range(offset // BLOCK_BYTES, -(-(offset + length) // BLOCK_BYTES)))
        for block in blocks:
            self._dirty.pop(block, None)
            self._dirty[block] = True
        if fua and "no-fua" not in self._lies:
            self._settle(blocks)
        while len(self._dirty) > self._most_blocks:
            self._settle([next(iter(self._dirty))])

    def flush(self):
        """Make all durable."""
        if "no-flush" not in self._lies:
            self._settle(list(self._dirty))

    def lose_power(self):
        """Forget what is not durable."""
        lost = self._dirty
        self._dirty = {}
        for block in lost:
            part = self._part(block)
            if "torn" in self._lies:
                part = slice(part.start, part.start + BLOCK_BYTES // 2)
            elif self._random.random() < 0.5:
                continue
            self._durable[part] = self._memory[part]
        if "rollback" in self._lies:
            for block, before in list(self._before.items())[-ROLLED_BACK:]:
                self._durable[self._part(block)] = before
        if "shift" in self._lies and lost and self._before:
            target = list(self._before)[-1]
            source = next((block for block in lost if block != target), None)
            if source is not None:
                self._durable[self._part(target)] = self._memory[self._part(source)]
        self._memory[:] = self._durable
        self._before = {}
        self.is_dead, self.cuts = "dead" in self._lies, self.cuts + 1

    def _settle(self, blocks):
        for block in blocks:
            if self._dirty.pop(block, None):
                part = self._part(block)
                self._before.pop(block, None)
                self._before[block] = bytes(self._durable[part])
                self._durable[part] = self._memory[part]
        while len(self._before) > ROLLED_BACK:
            del self._before[next(iter(self._before))]

    def _part(self, block):
        return slice(block * BLOCK_BYTES, min((block + 1) * BLOCK_BYTES, len(self._memory)))
