# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a power-cut test writes, and the log of what was acknowledged."""

from __future__ import annotations

import os
import threading
import zlib
from array import array

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.guard import fio_data
from ansible_collections.ssdlab.fleet.plugins.module_utils.measure import power_cut_log as cut_log
from ansible_collections.ssdlab.fleet.plugins.module_utils.measure import power_cut_pattern as pattern
from ansible_collections.ssdlab.fleet.plugins.module_utils.measure.block_pattern import BLOCK_BYTES, SECTOR_BYTES

SIZES = [1 << 20, (1 << 20) + 512, 5 << 20, 64 << 20, (2 << 30) + 90112, 8 << 40]
# The largest numbers that a block has room for.
LAST = pattern.make_generation(pattern.MOST_CYCLES, pattern.THREADS - 1, pattern.MOST_NUMBER)
TAGS = pattern.Tags("key", (1 << 32) - 1, (1 << 30) - 1)


@pytest.mark.parametrize("size", SIZES)
def test_no_operation_leaves_its_threads_part_or_the_active_range(size):
    layout = pattern.Layout(size)
    assert layout.blocks * BLOCK_BYTES <= min(size, pattern.MOST_BYTES)
    assert layout.offset(layout.blocks - 1) + BLOCK_BYTES <= size
    for cycle in (1, 2, 3):
        stream = pattern.Stream(77, cycle, layout)
        for thread in range(pattern.THREADS):
            for number in (*range(400), pattern.MOST_NUMBER):
                done = stream.operation(thread, number)
                if done.kind == pattern.FLUSH:
                    continue
                blocks = range(done.block, done.block + done.blocks)
                assert blocks and {layout.thread(block) for block in blocks} == {thread}
                # In one piece.
                assert layout.offset(blocks[-1]) - layout.offset(blocks[0]) == (len(blocks) - 1) * BLOCK_BYTES
                assert layout.block(layout.offset(done.block)) == done.block


def test_a_cycle_uses_what_its_number_says():
    layout = pattern.Layout(64 << 20)
    for cycle, flushes, fua in ((1, True, False), (2, False, True), (3, True, True)):
        stream = pattern.Stream(5, cycle, layout)
        done = [stream.operation(thread, number) for thread in range(8) for number in range(500)]
        assert any(one.kind == pattern.FLUSH for one in done) == flushes
        assert any(one.has_fua for one in done) == fua
        assert {one.kind for one in done} >= {pattern.WRITE, pattern.TRIM}


@pytest.mark.parametrize("size", SIZES[:4])
def test_the_fill_writes_each_block_once(size):
    layout, found, number = pattern.Layout(size), [], 0
    while (done := pattern.fill_operation(layout, number)) is not None:
        found += range(done.block, done.block + done.blocks)
        number += 1
    assert found == list(range(layout.blocks)) and len(pattern.fill_generations(layout)) == layout.blocks


def test_a_drive_that_is_too_small_is_told():
    with pytest.raises(pattern.TooSmall, match="needs 1,048,576 bytes, not 1,048,575"):
        pattern.Layout((1 << 20) - 1)


@pytest.mark.parametrize("generation", [0, LAST])
def test_a_block_tells_its_place_its_writing_and_all_damage(generation):
    offset = 8 << 40
    data = TAGS.data(generation, offset, pattern.MOST_BLOCKS * BLOCK_BYTES)
    for place in range(0, len(data), SECTOR_BYTES):
        stamp = pattern.parse_stamp(data[place : place + SECTOR_BYTES])
        assert stamp == (offset + place, TAGS.drive, TAGS.writing, generation, True)
    # Else a cut would leave a drive that the next job refuses as somebody's data.
    assert fio_data.is_random(data)
    assert len(zlib.compress(data)) > 0.9 * len(data)
    for bit in (0, 80, 50 * 8, 56 * 8 + 3, 64 * 8 + 20, 128 * 8 + 30):
        damaged = bytearray(data[:SECTOR_BYTES])
        damaged[bit // 8] ^= 1 << bit % 8
        stamp = pattern.parse_stamp(bytes(damaged))
        assert not stamp.is_whole or bytes(damaged) != TAGS.data(stamp.generation, stamp.address, SECTOR_BYTES)


def test_part_of_a_write_is_as_in_the_whole():
    whole = TAGS.data(99, 40960, 8 * BLOCK_BYTES)
    assert TAGS.data(99, 40960 + 3 * BLOCK_BYTES) == whole[3 * BLOCK_BYTES : 4 * BLOCK_BYTES]


def test_generations_of_a_thread_grow():
    values = [pattern.make_generation(*key) for key in [(0, 0, 9), (1, 3, 0), (1, 3, 1), (2, 3, 0)]]
    assert values == sorted(values)
    assert [pattern.parse_generation(value) for value in values][1] == (1, 3, 0)


def test_what_is_read_of_a_log_is_true_wherever_it_ends(tmp_path):
    path = tmp_path / "acks"
    handle = os.open(path, os.O_WRONLY | os.O_CREAT)
    writer = cut_log.LogWriter(handle, threads=2, window=50)
    syncing = threading.Thread(target=lambda: [writer.sync() for _time in iter(lambda: not writer.over, False)])
    syncing.start()
    added = [threading.Thread(target=lambda one=one: [writer.add(0, one, n) for n in range(300)]) for one in (0, 1)]
    for thread in added:
        thread.start()
    for thread in added:
        thread.join()
    position = writer.position()
    writer.add(cut_log.FLUSHED, 1, position)
    writer.end()
    syncing.join()
    writer.sync()
    os.close(handle)
    data = path.read_bytes()
    whole = list(cut_log.read(data).records())
    assert len(whole) == 601 and whole[-1] == (cut_log.FLUSHED, 1, 600)
    assert [record.value for record in whole if record.thread == 0] == list(range(300))
    for end in range(0, len(data), 61):
        part = list(cut_log.read(data[:end]).records())
        assert part == whole[: len(part)]
    damaged = bytearray(data)
    damaged[len(data) // 2] ^= 4
    part = list(cut_log.read(bytes(damaged)).records())
    assert len(part) < len(whole) and part == whole[: len(part)]


def test_a_group_at_the_wrong_place_ends_the_log():
    first, third = (cut_log.group(array("Q", [1, 2]), position, 5) for position in (0, 4))
    assert len(cut_log.read(first + third).entries) == 2
