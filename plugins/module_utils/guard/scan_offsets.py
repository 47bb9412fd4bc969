# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where a look reads, blocks at random and those that a drive itself says it holds; and what that proves: with which
chance it sees how much data.
"""

from __future__ import annotations

import itertools
import math
import os
import random
import typing as t

from ..records.guard import Look
from .facts import Extent

BLOCK_BYTES = 4096
AT_A_TIME = 32
# So many blocks of what a drive says it holds are all read.
ALL_AIMED = 1 << 16

_MISS = 0.001


def random_offsets(size_bytes: int, piece_bytes: int, count: int, rounds: int | None = None) -> t.Iterator[list[int]]:
    """Places of whole pieces, each as likely as any other, by the system's own randomness: nobody can know where the
    next look falls.
    """
    places, chosen = size_bytes // piece_bytes, random.Random(os.urandom(16))
    made = 0
    while rounds is None or made < rounds:
        yield [int(chosen.random() * places) * piece_bytes for _piece in range(count)]
        made += 1


def aimed_offsets(size_bytes: int, extents: t.Sequence[Extent]) -> t.Iterator[list[int]]:
    """Blocks of these extents, in no order: all where they are few; else the first of each, and then any, for ever."""
    chosen, last = random.Random(os.urandom(16)), size_bytes // BLOCK_BYTES
    spans = [
        range(max(0, one.offset) // BLOCK_BYTES, min(last, -(-(one.offset + one.length) // BLOCK_BYTES)))
        for one in extents
    ]
    spans = [span for span in spans if span]
    few = sum(map(len, spans)) <= ALL_AIMED
    first = [block for span in spans for block in (span if few else span[:1])]
    chosen.shuffle(first)
    for start in range(0, len(first), AT_A_TIME):
        yield [block * BLOCK_BYTES for block in first[start : start + AT_A_TIME]]
    ends = list(itertools.accumulate(map(len, spans)))
    while not few:
        yield [chosen.choice(span) * BLOCK_BYTES for span in chosen.choices(spans, cum_weights=ends, k=AT_A_TIME)]


def seen_bytes(blocks: int, size_bytes: int, whole: bool, miss: float = _MISS) -> int:
    """Return how much data, anywhere on the drive, is missed with the chance `miss` only; one block where all were
    read.
    """
    if whole:
        return BLOCK_BYTES
    return size_bytes if blocks <= 0 else max(BLOCK_BYTES, math.ceil(size_bytes * -math.expm1(math.log(miss) / blocks)))


def scan_text(record: Look, capacity: t.Callable[[int], str]) -> str:
    """Return a look's record in one line for people. `capacity`: how bytes on drives are written."""
    if record.whole:
        return f"read all {capacity(record.size_bytes)} in {record.seconds:.3g} s"
    used = record.allocated_bytes
    return "read {} blocks: {} of data anywhere on {} would have been found with {:g} % probability{}".format(
        format(record.blocks, ","),
        capacity(record.seen_bytes),
        capacity(record.size_bytes),
        100 * (1 - _MISS),
        "" if used is None else f"; the drive reports {capacity(used)} in use",
    )
