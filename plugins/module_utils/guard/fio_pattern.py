# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""fio's random fill, recognised by what it is: every word follows from one before it, so that each block proves itself.

A fio job with refill_buffers draws one seed for each write and derives the rest of the buffer from it (lib/rand.c,
__fill_random_buf). A block whose every 512 bytes keep that law was written by fio and holds nothing that anybody could
miss. It costs the measurement nothing: the job is as it was. (A header in each block, verify=crc32c, takes three times
the CPU of a write: docs/internals/guard.md.)
"""

from __future__ import annotations

import sys
import typing as t

SECTOR_BYTES = 512  # the smallest write: a law holds within one, not across two
_WORDS = SECTOR_BYTES // 8


class Law(t.NamedTuple):
    """word[i + distance] = (word[i] × factor mod 2⁶⁴) >> shift."""

    distance: int
    factor: int
    shift: int = 0


_GOLDEN_64 = 0x61C8864680B583EB
# distance: fio's configure --seed-buckets, 4 unless somebody chose another. The others: fio 3.31, and fio up to 3.30.
LAWS = (
    Law(4, _GOLDEN_64),
    Law(16, _GOLDEN_64),
    Law(8, _GOLDEN_64),
    Law(2, _GOLDEN_64),
    Law(1, _GOLDEN_64),
    Law(1, 0x9E37FFFFFFFC0001, 3),
)


def is_fill(data: bytes) -> bool:
    """Return whether all of it is fio's random fill, or blank (zeros keep every law). Only for whole blocks of 512
    bytes.
    """
    if len(data) % SECTOR_BYTES or sys.byteorder != "little":  # fio writes words as the machine has them
        return False
    number = int.from_bytes(data, "little")
    return any(_keeps(number, len(data) // 8, law) for law in LAWS)


def _keeps(number: int, words: int, law: Law) -> bool:
    """Return all words at once: every other one in a lane of 128 bits, so that no product runs into the next lane."""
    lanes = _mask(words, range(0, _WORDS, 2))
    for first in (0, 1):
        source = (number >> 64 * first) & lanes
        derived = (((source * law.factor) & lanes) >> law.shift) & lanes
        target = number >> 64 * (first + law.distance)
        inside = _mask(words, range(0, _WORDS - law.distance - first, 2))
        if (derived ^ target) & inside:
            return False
    return True


_MASKS: dict[tuple[int, range], int] = {}


def _mask(words: int, places: range) -> int:
    """Return all ones in these words of every sector."""
    key = (words, places)
    if key not in _MASKS:
        sector = b"".join(b"\xff" * 8 if place in places else bytes(8) for place in range(_WORDS))
        _MASKS[key] = int.from_bytes(sector * (words // _WORDS), "little")
    return _MASKS[key]
