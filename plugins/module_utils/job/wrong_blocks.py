# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a block that is not as it was written holds instead, by its own contents. Pure."""

from __future__ import annotations

import struct
import typing as t

from ..guard import fio_data
from ..measure.block_pattern import ADDRESS, CHECK, CHUNK_BYTES, DRIVE, SECTOR_BYTES, WRITING, Pattern, check_of
from ..records.measurement import WrongKind

# Of a sector, which has 4,096: unrelated data differ in half of them.
MOST_FLIPPED_BITS = 64
_WORDS = struct.Struct("<64Q")


class Written(t.NamedTuple):
    """What the test wrote so far. patterns: of its passes, in order; the last one is what is expected."""

    patterns: t.Sequence[Pattern]
    size_bytes: int

    def sector(self, number: int, offset: int) -> bytes:
        """Return what the pass of that number, counted from 1, wrote at an address."""
        return self.patterns[number - 1].data(offset, SECTOR_BYTES)


class Judged(t.NamedTuple):
    """What a wrong block holds. told: of its first wrong sector, for a person."""

    kind: WrongKind
    wrong_sectors: int
    told: str


def judge(found: bytes, offset: int, written: Written) -> Judged:
    """Return what was found at an offset in place of what the last pass wrote; its first wrong sector decides."""
    current = len(written.patterns)
    wrong = [
        (place, found[place : place + SECTOR_BYTES])
        for place in range(0, len(found), SECTOR_BYTES)
        if found[place : place + SECTOR_BYTES] != written.sector(current, offset + place)
    ]
    place, sector = wrong[0]
    kind, told = _sector(sector, offset + place, written)
    return Judged(kind, len(wrong), told)


def _sector(found: bytes, offset: int, written: Written) -> tuple[WrongKind, str]:
    if found in (bytes(SECTOR_BYTES), b"\xff" * SECTOR_BYTES):
        return "blank", f"every byte is 0x{found[0]:02x}"
    current, words = len(written.patterns), _WORDS.unpack(found)
    flipped = _bits_changed(found, written.sector(current, offset))
    if flipped <= MOST_FLIPPED_BITS:
        return "bit_flips", _changed(flipped)
    stamp, address = (words[DRIVE], words[WRITING]), words[ADDRESS]
    stamps = [(pattern.drive, pattern.writing) for pattern in written.patterns]
    if stamp in stamps:
        return _of_this_test(found, stamps.index(stamp) + 1, address, offset, written)
    if words[CHECK] == check_of(*stamp):
        if stamp[0] != stamps[0][0]:
            return "other_drive", f"an integrity test wrote it to another drive, at byte {address}"
        return "stale", f"an integrity test before this one wrote it, at byte {address}"
    if fio_data.is_random(found):
        return "stale", "fio wrote it, before this test"
    return "garbled", "nothing that the test wrote is like it"


def _of_this_test(found: bytes, number: int, address: int, offset: int, written: Written) -> tuple[WrongKind, str]:
    """Judge what names a pass of this test and an address; damage to it may have changed either."""
    is_place = address % SECTOR_BYTES == 0 and address < -(-written.size_bytes // CHUNK_BYTES) * CHUNK_BYTES
    changed = _bits_changed(found, written.sector(number, address)) if is_place else SECTOR_BYTES
    if changed > MOST_FLIPPED_BITS:
        return "garbled", "it names this test, and nothing that the test wrote is like it"
    of_pass = "" if number == len(written.patterns) else f" by pass {number}"
    damage = f", {_changed(changed)}" if changed else ""
    if address == offset:
        return "stale", f"what was written there{of_pass}{damage}"
    return "misdirected", f"what was written to byte {address}{of_pass}{damage}"


def _bits_changed(one: bytes, other: bytes) -> int:
    return bin(int.from_bytes(one, "little") ^ int.from_bytes(other, "little")).count("1")


def _changed(bits: int) -> str:
    return f"{bits} bit{'s' * (bits != 1)} of 4,096 changed"
