# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.ssdlab.fleet.plugins.module_utils import purge

SIZE, BLOCK = 1 << 20, 4096


@pytest.mark.parametrize(
    "method, discard_bytes, chosen",
    [
        ("auto", 1 << 30, "deallocate"),
        ("auto", 0, "overwrite"),
        ("auto", None, "overwrite"),
        ("overwrite", 1 << 30, "overwrite"),
        ("deallocate", 1 << 30, "deallocate"),
    ],
)
def test_auto_takes_what_the_drive_reports(method, discard_bytes, chosen):
    assert purge.choose(method, {"max_discard_bytes": discard_bytes}) == chosen


@pytest.mark.parametrize("method, message", [("deallocate", "supports overwrite"), ("sanitise", "auto, deallocate, overwrite")])
def test_what_the_drive_lacks_is_an_error_that_says_what_it_has(method, message):
    with pytest.raises(purge.PurgeError, match=message):
        purge.choose(method, {"max_discard_bytes": 0})


@given(st.integers(1, 1 << 36), st.sampled_from([512, 4096]))
def test_sentinels_lie_on_blocks_of_the_drive_first_and_last_among_them(blocks, block_bytes):
    offsets = purge.sentinel_offsets(blocks * block_bytes, block_bytes)
    assert offsets[0] == 0 and offsets[-1] == (blocks - 1) * block_bytes
    assert all(offset % block_bytes == 0 for offset in offsets)
    assert len(offsets) == min(purge.SENTINELS, len(set(offsets)))


@pytest.fixture
def drive(tmp_path):
    path = tmp_path / "drive"
    path.write_bytes(bytes(SIZE))
    handle = os.open(path, os.O_RDWR)
    yield handle
    os.close(handle)


def test_a_purge_that_leaves_a_block_is_noticed(drive):
    sentinels = purge.Sentinels(drive, SIZE, BLOCK)
    sentinels.plant()
    assert sentinels.survivors() == len(sentinels) == purge.SENTINELS
    last = os.pread(drive, BLOCK, SIZE - BLOCK)
    os.pwrite(drive, bytes(SIZE), 0)
    assert sentinels.survivors() == 0
    os.pwrite(drive, last, SIZE - BLOCK)
    assert sentinels.survivors() == 1


def test_a_drive_that_drops_writes_cannot_be_verified(drive, monkeypatch):
    monkeypatch.setattr(os, "pwritev", lambda *_: 0)
    with pytest.raises(purge.PurgeError, match="did not keep"):
        purge.Sentinels(drive, SIZE, BLOCK).plant()
