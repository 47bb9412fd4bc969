# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import struct
import zlib

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.guard import fio_data
from ansible_collections.ssdlab.fleet.plugins.module_utils.measure import block_pattern
from ansible_collections.ssdlab.fleet.plugins.module_utils.measure.block_pattern import (
    ADDRESS,
    BLOCK_BYTES,
    CHECK,
    CHUNK_BYTES,
    DRIVE,
    SECTOR_BYTES,
    WRITING,
    Pattern,
)

# The largest numbers that its words have room for.
PATTERN = Pattern("key", (1 << 32) - 1, (1 << 30) - 1)
FAR = 30 << 40


@pytest.mark.parametrize("offset", [0, 7 * CHUNK_BYTES, FAR])
def test_each_sector_tells_where_it_is_and_what_it_is_of(offset):
    data = PATTERN.data(offset, CHUNK_BYTES)
    for place in range(0, CHUNK_BYTES, SECTOR_BYTES):
        words = struct.unpack_from("<64Q", data, place)
        assert words[ADDRESS] == offset + place
        assert (words[DRIVE], words[WRITING]) == (PATTERN.drive, PATTERN.writing)
        assert words[CHECK] == block_pattern.check_of(PATTERN.drive, PATTERN.writing)


@pytest.mark.parametrize("offset", [0, FAR])
def test_the_guard_takes_it_for_what_fio_fills_a_drive_with(offset):
    """Else a job that is killed would leave a drive that its next run refuses as somebody's data."""
    assert fio_data.is_random(PATTERN.data(offset, CHUNK_BYTES))


def test_any_part_of_a_chunk_is_as_in_the_whole():
    whole = PATTERN.data(5 * CHUNK_BYTES, CHUNK_BYTES)
    for place in (0, SECTOR_BYTES, 3 * BLOCK_BYTES, CHUNK_BYTES - BLOCK_BYTES):
        assert PATTERN.data(5 * CHUNK_BYTES + place, BLOCK_BYTES)[: CHUNK_BYTES - place] == whole[place:][:BLOCK_BYTES]


def test_a_drive_can_neither_compress_it_nor_find_two_sectors_alike():
    data = b"".join(PATTERN.data(chunk * CHUNK_BYTES, CHUNK_BYTES) for chunk in range(4))
    blocks = [data[place : place + BLOCK_BYTES] for place in range(0, len(data), BLOCK_BYTES)]
    assert min(len(zlib.compress(block)) for block in blocks) > 0.9 * BLOCK_BYTES
    sectors = [data[place : place + SECTOR_BYTES] for place in range(0, len(data), SECTOR_BYTES)]
    assert len(set(sectors)) == len(sectors)


def test_another_pass_drive_or_key_writes_something_else_everywhere():
    others = [Pattern("key", 1, 2), Pattern("key", 1, 3), Pattern("key", 2, 2), Pattern("other", 1, 2)]
    sectors = {pattern.data(place, SECTOR_BYTES) for pattern in others for place in (0, 4096, CHUNK_BYTES)}
    assert len(sectors) == 12


@pytest.mark.parametrize("scattered", [False, True])
@pytest.mark.parametrize("size", [1, CHUNK_BYTES, 2 * CHUNK_BYTES, 10 * CHUNK_BYTES + 512, 1597 * CHUNK_BYTES])
def test_every_chunk_comes_once(size, scattered):
    order = list(block_pattern.chunk_order(size, scattered))
    assert sorted(order) == list(range(0, size, CHUNK_BYTES))
    if not scattered:
        assert order == sorted(order)


def test_scattered_chunks_are_far_from_each_other():
    order = list(block_pattern.chunk_order(1000 * CHUNK_BYTES, True))
    assert min(abs(one - other) for one, other in zip(order, order[1:])) > 300 * CHUNK_BYTES
