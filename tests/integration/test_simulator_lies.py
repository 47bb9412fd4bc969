# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lies of a simulated SSD by themselves, without a device."""

from __future__ import annotations

import pytest
from lies import BLOCK_BYTES, Lies

SIZE = 8 * BLOCK_BYTES
PLACE = 3 * BLOCK_BYTES
OTHER = 2 * BLOCK_BYTES


class Drive:
    """A memory with its lies."""

    def __init__(self, text):
        self.memory, self.lies = bytearray(SIZE), Lies(text, SIZE)

    def write(self, fill, offset=0, length=SIZE):
        return self.lies.write(self.memory, bytes([fill]) * length, offset)

    def read(self, offset=0, length=SIZE):
        """What it gives; None where it can't be read."""
        found = self.memory[offset : offset + length]
        return bytes(found) if self.lies.read(found, offset) else None

    def blocks(self):
        """What each block is filled with; "mixed": with more than one byte."""
        found = [set(self.read(place, BLOCK_BYTES) or "?") for place in range(0, SIZE, BLOCK_BYTES)]
        return [next(iter(each)) if len(each) == 1 else "mixed" for each in found]


@pytest.mark.parametrize(
    ("text", "once", "twice"),
    [
        ("", [1] * 8, [2] * 8),
        (f"flip:{PLACE}", [1, 1, 1, "mixed", 1, 1, 1, 1], [2, 2, 2, "mixed", 2, 2, 2, 2]),
        (f"drop:{PLACE}", [1, 1, 1, 0, 1, 1, 1, 1], [2, 2, 2, 0, 2, 2, 2, 2]),
        (f"stale:{PLACE}", [1] * 8, [2, 2, 2, 1, 2, 2, 2, 2]),
        (f"torn:{PLACE}", [1] * 8, [2, 2, 2, "mixed", 2, 2, 2, 2]),
        (f"read-error:{PLACE}", [1, 1, 1, "?", 1, 1, 1, 1], [2, 2, 2, "?", 2, 2, 2, 2]),
        (f"transient:{PLACE}", [1, 1, 1, "mixed", 1, 1, 1, 1], [2, 2, 2, "mixed", 2, 2, 2, 2]),
        (f"drop:0,stale:{PLACE}", [0, 1, 1, 1, 1, 1, 1, 1], [0, 2, 2, 1, 2, 2, 2, 2]),
    ],
)
def test_each_lie_is_told_alike_every_time(text, once, twice):
    for _time in range(2):
        drive = Drive(text)
        drive.write(1)
        assert drive.blocks() == once
        drive.write(2)
        assert drive.blocks() == twice


def test_a_transient_one_is_right_the_second_time():
    drive = Drive(f"transient:{PLACE}")
    drive.write(1)
    assert [drive.read(PLACE, BLOCK_BYTES) == bytes([1]) * BLOCK_BYTES for _time in range(3)] == [False, True, True]


def test_a_stale_read_gives_once_what_was_there_before():
    drive = Drive(f"stale-read:{PLACE}")
    drive.write(1)
    assert drive.blocks() == [1] * 8
    drive.write(2)
    # Also where a read begins within the block and ends behind it.
    assert drive.read(PLACE + 512, BLOCK_BYTES) == bytes([1]) * 3584 + bytes([2]) * 512
    assert drive.blocks() == [2] * 8


def test_a_drive_that_vanishes_does_nothing_any_more():
    drive = Drive(f"vanish:{PLACE}")
    assert drive.write(1, 0, PLACE) and drive.read(0, PLACE) == bytes([1]) * PLACE
    assert not drive.write(2, PLACE, BLOCK_BYTES)
    assert not drive.write(2, 0, BLOCK_BYTES) and not drive.lies.trim(0, SIZE) and drive.blocks() == ["?"] * 8


def test_a_drive_becomes_smaller_once_it_is_read():
    drive = Drive(f"smaller:{PLACE}")
    assert drive.read() == bytes(SIZE) and drive.write(1)
    assert drive.blocks() == [1, 1, 1, "?", "?", "?", "?", "?"]
    assert drive.write(2, 0, PLACE) and not drive.write(2) and drive.blocks()[:3] == [2, 2, 2]


def test_a_misdirected_write_lands_elsewhere():
    drive = Drive(f"misdirect:{PLACE}:{OTHER}")
    drive.write(1)
    drive.write(7, PLACE, BLOCK_BYTES)
    assert drive.blocks() == [1, 1, 7, 0, 1, 1, 1, 1]


def test_a_trim_is_a_new_beginning():
    drive = Drive(f"stale:{PLACE},read-error:{OTHER},flip:0")
    assert drive.blocks() == [0] * 8
    drive.write(1)
    drive.lies.trim(0, SIZE)
    assert drive.blocks() == [1] * 8
    drive.write(2)
    assert drive.blocks() == ["mixed", 2, "?", 2, 2, 2, 2, 2]


@pytest.mark.parametrize(
    "text", ["lie:0", "flip", "flip:1", f"flip:{SIZE}", "flip:0:0", "misdirect:0", "flip:x", "vanish"]
)
def test_what_is_no_lie_is_refused(text):
    with pytest.raises(ValueError):
        Lies(text, SIZE)
