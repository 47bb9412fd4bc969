# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a simulated SSD does not do as it says: blocks of 4 KiB that it loses, misplaces or damages, always the same.

It runs inside nbdkit in the system's Python, so it keeps to plain syntax and the standard library.
"""

from __future__ import annotations

BLOCK_BYTES = 4096
# Of what was written, flip: a bit reads as another. drop: it gets lost. stale: all but the first write gets lost, torn:
# its second half does. misdirect: it goes to another block. read-error: it can't be read. transient: the first read is
# wrong. A trim is a new beginning.
KINDS = ("flip", "drop", "stale", "torn", "misdirect", "read-error", "transient")


class Lies:
    """Of one drive, by a text of KIND:BYTE, separated by commas; misdirect:BYTE:BYTE has the other block too. A block
    that a later write reaches by itself is right again, so the other block of a sequence should be the lower one.
    Raises ValueError.
    """

    def __init__(self, text, size_bytes):
        self._at, self._other = {}, {}
        self._written, self._due = set(), set()
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
        """Put into the drive's memory what becomes of a write."""
        blocks = self._within(offset, len(data))
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
            self._written.add(block)
            self._due.add(block)

    def trim(self, offset, length):
        """Forget what was written there."""
        self._written.difference_update(self._within(offset, length))

    def read(self, buffer, offset):
        """Change what was read; False: it can't be read."""
        kinds = {block: self._at[block] for block in self._written.intersection(self._within(offset, len(buffer)))}
        for block, kind in kinds.items():
            if kind == "flip" or (kind == "transient" and block in self._due):
                buffer[max(block, offset) - offset] ^= 1
            self._due.discard(block)
        return "read-error" not in kinds.values()
