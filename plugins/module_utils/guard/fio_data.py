# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Recognise what fio writes by default, by the law of its generator: it holds nothing that anybody could miss. Pure.

fio fills a buffer from one seed (lib/rand.c, __fill_random_buf), so that one word of 512 bytes tells all others. With
refill_buffers each write has a buffer of its own. Without, a buffer is filled once, and each write scrambles it anew:
small_content_scramble (io_u.c, alike from fio 3.19 to 3.42) sets three words of each 512 bytes, the write's offset in
one of eight places and the time of its start in two. It never touches the other 54.
"""

from __future__ import annotations

import functools
import struct
import sys
import typing as t

SECTOR_BYTES = 512  # the smallest write: a law holds within one, not across two
_WORDS = SECTOR_BYTES // 8
_WORD = (1 << 64) - 1
# From the word at this place the others are told: never scrambled, and of an odd multiple of the seed by every law.
_SOURCE = 2
# Never scrambled either; another multiple of the source by each law, so that it tells at once which one may hold.
_PROBE = 20


class Law(t.NamedTuple):
    """word[i + distance] = (word[i] × factor mod 2⁶⁴) >> shift; the first words are multiples of the seed."""

    distance: int
    factor: int
    shift: int = 0


_GOLDEN_64 = 0x61C8864680B583EB
_PRIMES = (1, 2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47)
# distance: fio's configure --seed-buckets, 4 unless somebody chose another. The others: fio 3.31, and fio up to 3.30.
LAWS = (
    Law(4, _GOLDEN_64),
    Law(16, _GOLDEN_64),
    Law(8, _GOLDEN_64),
    Law(2, _GOLDEN_64),
    Law(1, _GOLDEN_64),
    Law(1, 0x9E37FFFFFFFC0001, 3),
)

# By place: the bits that no value which fio puts there has. Offsets are multiples of 512, below 64 PiB; then seconds
# of a clock that began with the machine, and nanoseconds.
SCRAMBLED = {**dict.fromkeys(range(0, _WORDS, 8), 0xFF000000000001FF), 6: _WORD << 32 & _WORD, 7: _WORD << 30 & _WORD}


def _at(values: t.Mapping[int, int]) -> int:
    """Return a sector with these words at these places, as a number."""
    return sum(value << 64 * place for place, value in values.items())


_LOW = 0xFFFFFFFF
_KEPT = _at({place: _WORD for place in range(_WORDS) if place not in SCRAMBLED})
_NEVER = _at(SCRAMBLED)
# Every other word, so that no product runs into the next one.
_LANES = _at(dict.fromkeys(range(0, _WORDS, 2), _WORD))


def is_random(data: bytes) -> bool:
    """Return whether every 512 bytes of it are zeros or what fio writes, filled or scrambled."""
    if len(data) % SECTOR_BYTES or sys.byteorder != "little":  # fio writes words as the machine has them
        return False
    sectors = (data[place : place + SECTOR_BYTES] for place in range(0, len(data), SECTOR_BYTES))
    return all(_keeps_a_law(int.from_bytes(sector, "little")) for sector in sectors)


def _keeps_a_law(sector: int) -> bool:
    source, probe = _word(sector, _SOURCE), _word(sector, _PROBE)
    if not source:  # zeros keep every law, so what stands between them would be told by none
        return not sector
    if not source & _LOW:  # as of INT64_MIN in every word, a multiple by any factor; of fio's once in 4 billion sectors
        return False
    for law in LAWS:
        if law.shift:
            changed = sector ^ _iterated(law, sector)
        else:
            told = _multiples(law)
            if source * told.probe & _WORD != probe:
                continue
            changed = sector ^ (source * told.even & _LANES | (source * told.odd & _LANES) << 64)
        if not changed & _KEPT:
            return not sector & _NEVER or not changed or _is_scrambled(sector, changed)
    return False


def _is_scrambled(sector: int, changed: int) -> bool:
    """Return whether each word that is not of the fill is one that scrambling may have put there."""
    return not any(_word(changed, place) and _word(sector, place) & never for place, never in SCRAMBLED.items())


def _word(sector: int, place: int) -> int:
    return sector >> 64 * place & _WORD


class _Multiples(t.NamedTuple):
    """How many times the source words are: those at even places, those after them, and the probe."""

    even: int
    odd: int
    probe: int


@functools.lru_cache(maxsize=None)
def _multiples(law: Law) -> _Multiples:
    seeds = [_PRIMES[place % law.distance] * pow(law.factor, place // law.distance) for place in range(_WORDS)]
    inverse = pow(seeds[_SOURCE], -1, 1 << 64)
    found = [seed * inverse & _WORD for seed in seeds]
    even, odd = (_at({place: found[place + first] for place in range(0, _WORDS, 2)}) for first in (0, 1))
    return _Multiples(even, odd, found[_PROBE])


def _iterated(law: Law, sector: int) -> int:
    """Return the sector as a law with a shift, which can't be inverted, goes on from its second word."""
    first, word, factor, shift = _word(sector, 0), _word(sector, 1), law.factor, law.shift
    words = [first if (first * factor & _WORD) >> shift == word else ~first & _WORD]
    for _place in range(1, _WORDS):
        words.append(word)
        word = (word * factor & _WORD) >> shift
    return int.from_bytes(struct.pack(f"<{_WORDS}Q", *words), "little")
