# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The volatile cache of a simulated SSD: by itself, and of a real drive whose power is cut."""

from __future__ import annotations

import mmap
import os

import pytest
import simulated_ssd as simulator
from simulated_drives import FIGURES, MIB
from volatile_cache import BLOCK_BYTES, VolatileCache

BLOCKS = 64


class Drive:
    """A memory with its cache."""

    def __init__(self, lies="", cache_blocks=BLOCKS):
        self.memory = bytearray(BLOCKS * BLOCK_BYTES)
        self.cache = VolatileCache(self.memory, cache_blocks * BLOCK_BYTES, lies)

    def write(self, fill, block=0, blocks=BLOCKS, fua=False):
        length = blocks * BLOCK_BYTES
        self.memory[block * BLOCK_BYTES : block * BLOCK_BYTES + length] = bytes([fill]) * length
        self.cache.written(block * BLOCK_BYTES, length, fua)

    def blocks(self):
        return [set(self.memory[place : place + BLOCK_BYTES]) for place in range(0, len(self.memory), BLOCK_BYTES)]


@pytest.mark.parametrize("lies", ["", "no-fua"])
def test_what_was_flushed_is_there_and_what_was_not_is_old_or_new(lies):
    drive = Drive(lies)
    drive.write(1)
    drive.cache.flush()
    drive.write(2)
    drive.cache.lose_power()
    assert all(block in ({1}, {2}) for block in drive.blocks()) and {1} in drive.blocks() and {2} in drive.blocks()


@pytest.mark.parametrize(
    ("lies", "is_kept"), [("", True), ("no-fua", False), ("no-flush", True), ("torn", True), ("rollback", False)]
)
def test_fua_alone_makes_a_block_durable(lies, is_kept):
    drive = Drive(lies)
    for block in range(BLOCKS):
        drive.write(1, block, 1, fua=True)
    drive.cache.lose_power()
    assert all(block == {1} for block in drive.blocks()) == is_kept


@pytest.mark.parametrize("lies", ["no-flush", "rollback"])
def test_a_lie_loses_what_was_flushed(lies):
    drive = Drive(lies)
    drive.write(1)
    drive.cache.flush()
    drive.cache.lose_power()
    assert {0} in drive.blocks()


def test_a_torn_block_is_new_in_part_and_a_shifted_one_is_anothers():
    drive = Drive("torn")
    drive.write(1)
    drive.cache.lose_power()
    assert all(block == {0, 1} for block in drive.blocks())
    drive = Drive("shift")
    drive.write(1, 5, 1, fua=True)
    drive.write(2, 9, 1)
    drive.cache.lose_power()
    assert drive.blocks()[5] == {2}


def test_a_full_cache_writes_the_oldest_out():
    drive = Drive(cache_blocks=1)
    for block in range(BLOCKS):
        drive.write(1, block, 1)
    drive.cache.lose_power()
    assert drive.blocks()[:-1] == [{1}] * (BLOCKS - 1)


def test_an_unknown_lie_is_refused():
    with pytest.raises(ValueError, match="none of no-flush"):
        Drive("forgets")


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root for loop devices")
def test_a_drive_without_power_keeps_what_it_was_told_to_flush(tmp_path):
    """By the loop device, as a host job writes to it."""
    folder = tmp_path / "drives"
    more = {"cache_bytes": MIB, "power_file": simulator.power_file(folder, "drive")}
    with simulator.simulated_ssd(folder, "drive", simulator.model_plugin(4 * MIB, **FIGURES, **more)) as record:
        handle, page = os.open(record["device"], os.O_RDWR | os.O_DIRECT), mmap.mmap(-1, 32 * BLOCK_BYTES)
        try:
            page.write(b"\1" * len(page))
            os.pwrite(handle, page, 0)
            os.fsync(handle)
            page.seek(0)
            page.write(b"\2" * len(page))
            os.pwrite(handle, page, 0)
            simulator.cut_power(folder, "drive")
            os.preadv(handle, [page], 0)
        finally:
            os.close(handle)
        assert set(page[:]) == {1, 2} and not simulator.power_file(folder, "drive").exists()
