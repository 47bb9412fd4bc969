# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a simulated SSD does not do as it says: blocks of 4 KiB that it loses, misplaces or damages, always the same.

It runs inside nbdkit in the system's Python, so it keeps to plain syntax and the standard library.
"""

from __future__ import annotations

BLOCK_BYTES = 4096
KINDS = {
    "flip": "of what was written, a bit reads as another",
    "drop": "what is written gets lost",
    "stale": "all but the first write gets lost",
    "torn": "the second half of all but the first write gets lost",
    "misdirect": "what is written goes to another block",
    "read-error": "what was written can't be read",
    "transient": "the first read of what was written is wrong",
    "stale-read": "the first read of what was written over gives what was there before",
    "smaller": "once it is written, the first read of it shows that the drive ends before it",
    "vanish": "from the first write to it on, the drive does nothing any more",
}


class Lies:
    """Of one drive, by a text of KIND:BYTE, separated by commas; misdirect:BYTE:BYTE has the other block too. A block
    that a later write reaches by itself is right again, so the other block of a sequence should be the lower one. A
    trim is a new beginning. Raises ValueError.
    """

    def __init__(self, text, size_bytes):
        self._at, self._other = {}, {}
        self._written, self._due, self._before = set(), set(), {}
        # Behind it nothing can be done.
        self._end = size_bytes
        for kind, *places in (word.split(":") for word in text.split(",") if word):
            blocks = [int(place) for place in places]
            if kind not in KINDS or len(blocks) != 1 + (kind == "misdirect"):
                raise ValueError(f"{':'.join([kind, *places])!r} is no lie such as flip:8192 or misdirect:16384:4096")
            if any(block % BLOCK_BYTES or not 0 <= block < size_bytes for block in blocks):
                raise ValueError(f"{kind}: {places} must be multiples of {BLOCK_BYTES} below {size_bytes}")
            self._at[blocks[0]], self._other[blocks[0]] = kind, blocks[-1]

    def _within(self, offset, length):
        return [block for block in self._at if offset < block + BLOCK_BYTES and block < offset + length]

    def write(self, memory, data, offset):
        """Put into the drive's memory what becomes of a write; False: it fails."""
        blocks = self._within(offset, len(data))
        if "vanish" in (self._at[block] for block in blocks):
            self._end = 0
        if offset + len(data) > self._end:
            return False
        before = {block: bytes(memory[block : block + BLOCK_BYTES]) for block in blocks}
        memory[offset : offset + len(data)] = data
        for block, old in before.items():
            kind, end = self._at[block], block + BLOCK_BYTES
            if kind == "misdirect":
                other = self._other[block]
                memory[other : other + BLOCK_BYTES] = memory[block:end]
            if kind in ("drop", "misdirect") or (kind == "stale" and block in self._written):
                memory[block:end] = old
            if kind == "torn" and block in self._written:
                memory[block + BLOCK_BYTES // 2 : end] = old[BLOCK_BYTES // 2 :]
            if block in self._written:
                self._before[block] = old
            self._written.add(block)
            self._due.add(block)
        return True

    def trim(self, offset, length):
        """Forget what was written there; False: it fails."""
        self._written.difference_update(self._within(offset, length))
        return offset + length <= self._end

    def read(self, buffer, offset):
        """Change what was read; False: it can't be read."""
        kinds = {block: self._at[block] for block in self._written.intersection(self._within(offset, len(buffer)))}
        self._end = min([self._end, *(block for block, kind in kinds.items() if kind == "smaller")])
        if offset + len(buffer) > self._end:
            return False
        for block, kind in kinds.items():
            first, end = max(block, offset), min(block + BLOCK_BYTES, offset + len(buffer))
            if kind == "flip" or (kind == "transient" and block in self._due):
                buffer[first - offset] ^= 1
            if kind == "stale-read" and block in self._due and block in self._before:
                buffer[first - offset : end - offset] = self._before[block][first - block : end - block]
            self._due.discard(block)
        return "read-error" not in kinds.values()
