# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import os
import random
from dataclasses import astuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.ssdlab.fleet.plugins.module_utils.purge import sentinels as purge_sentinels
from ansible_collections.ssdlab.fleet.plugins.module_utils.purge.method import PurgeError
from ansible_collections.ssdlab.fleet.plugins.module_utils.purge.sentinels import (
    SENTINELS,
    SENTINELS_OF_PROMISE,
    Sentinels,
    check_alive,
    sentinel_offsets,
)

SIZE, BLOCK = 1 << 20, 512


@given(
    st.integers(1, 1 << 36), st.sampled_from([512, 4096]), st.sampled_from([SENTINELS, SENTINELS_OF_PROMISE]), st.text()
)
def test_sentinels_lie_on_blocks_of_the_drive_first_and_last_among_them(blocks, block_bytes, count, seed):
    offsets = sentinel_offsets(blocks * block_bytes, block_bytes, seed, count)
    assert offsets[0] == 0 and offsets[-1] == (blocks - 1) * block_bytes
    assert all(offset % block_bytes == 0 for offset in offsets) and offsets == sorted(set(offsets))
    assert len(offsets) == min(count, blocks)
    assert offsets == sentinel_offsets(blocks * block_bytes, block_bytes, seed, count)


@pytest.mark.parametrize("left", ["one run", "scattered", "each hundredth"])
def test_an_erase_that_leaves_one_per_cent_is_noticed_with_the_stated_chance(left):
    """Wherever that lies: on one chip, or in each of its stripes."""
    blocks = 100_000
    kept = {
        "one run": range(42_000, 43_000),
        "scattered": random.Random(1).sample(range(1, blocks - 1), blocks // 100),
        "each hundredth": range(50, blocks, 100),
    }[left]
    kept = set(kept)
    noticed = sum(
        not kept.isdisjoint(offset // BLOCK for offset in sentinel_offsets(blocks * BLOCK, BLOCK, str(seed), 300))
        for seed in range(1000)
    )
    assert 930 <= noticed <= 970


@pytest.fixture
def drive(tmp_path):
    path = tmp_path / "drive"
    path.write_bytes(bytes(SIZE))
    handle = os.open(path, os.O_RDWR)
    yield handle
    os.close(handle)


@pytest.mark.parametrize("block_now", [512, 4096])
def test_a_purge_that_leaves_a_block_is_noticed_in_either_block_size(drive, block_now):
    sentinels = Sentinels(SIZE, BLOCK)
    sentinels.plant(drive)
    assert sentinels.count(drive, block_now) == (len(sentinels), 0, 0) and len(sentinels) == SENTINELS
    last = os.pread(drive, BLOCK, SIZE - BLOCK)
    os.pwrite(drive, bytes(SIZE), 0)
    assert sentinels.count(drive, block_now) == (0, 0, 0)
    os.pwrite(drive, last, SIZE - BLOCK)
    assert sentinels.count(drive, block_now) == (1, 0, 0)


@pytest.mark.parametrize("block_now", [512, 4096])
@pytest.mark.parametrize(("promise", "holds"), [("zeros", b"\0"), ("ones", b"\xff")])
def test_a_block_that_holds_something_else_than_was_promised_is_counted(drive, promise, holds, block_now):
    """Old data, or a byte that is neither."""
    sentinels = Sentinels(SIZE, BLOCK, "5")  # of which no two lie within 4 KiB
    sentinels.plant(drive)
    assert sentinels.count(drive, block_now, promise) == (SENTINELS, 0, SENTINELS)
    last = os.pread(drive, BLOCK, SIZE - BLOCK)
    os.pwrite(drive, holds * SIZE, 0)
    assert sentinels.count(drive, block_now, promise) == (0, 0, 0)
    os.pwrite(drive, b"x", 100)
    assert sentinels.count(drive, block_now, promise) == (0, 0, 1)
    os.pwrite(drive, last, SIZE - BLOCK)
    assert sentinels.count(drive, block_now, promise) == (1, 0, 2)


def test_the_seed_finds_the_sentinels_of_a_job_that_died(drive):
    first = Sentinels(SIZE, BLOCK)
    first.plant(drive)
    assert Sentinels(*astuple(first.record())).count(drive, BLOCK).survived == SENTINELS
    assert Sentinels(SIZE, BLOCK).count(drive, BLOCK).survived == 0


def test_a_drive_that_drops_writes_cannot_be_verified(drive, monkeypatch):
    monkeypatch.setattr(os, "pwritev", lambda *_: 0)
    with pytest.raises(PurgeError, match="did not keep"):
        Sentinels(SIZE, BLOCK).plant(drive)


def test_a_drive_that_takes_no_writes_is_not_purged(drive, monkeypatch):
    def broken(*_):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "pwritev", broken)
    with pytest.raises(PurgeError, match="accepts no writes before the purge .Input/output error"):
        Sentinels(SIZE, BLOCK).plant(drive)


def test_blocks_that_give_an_error_are_counted_and_did_not_survive(drive, monkeypatch):
    sentinels = Sentinels(SIZE, BLOCK)
    sentinels.plant(drive)
    read = os.preadv

    def fail_in_the_first_half(handle, buffers, offset):
        if offset < SIZE // 2:
            raise OSError(5, "Input/output error")
        return read(handle, buffers, offset)

    monkeypatch.setattr(os, "preadv", fail_in_the_first_half)
    count = sentinels.count(drive, BLOCK)
    assert sum(count) == SENTINELS and count.unreadable == sum(place < SIZE // 2 for place in sentinels.blocks()) > 0


def test_a_drive_that_keeps_a_block_is_alive(drive):
    check_alive(drive, BLOCK)


@pytest.mark.parametrize(
    ("name", "does", "message"),
    [("pwritev", OSError(5, "Input/output error"), "neither reads nor"), ("pwritev", 0, "not keep")],
)
def test_a_drive_that_answers_nothing_proves_nothing(drive, monkeypatch, name, does, message):
    def broken(*_):
        if isinstance(does, OSError):
            raise does
        return does

    monkeypatch.setattr(purge_sentinels.os, name, broken)
    with pytest.raises(PurgeError, match=message):
        check_alive(drive, BLOCK)
