# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import random

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.guard.fio_data import LAWS
from ansible_collections.ssdlab.fleet.plugins.module_utils.job import wrong_blocks
from ansible_collections.ssdlab.fleet.plugins.module_utils.measure.block_pattern import Pattern
from ansible_collections.ssdlab.fleet.tests.fixtures.fio_data import filled, scrambled

BLOCK = 4096
HERE, THERE = 40960, 5 << 20
FIRST, SECOND = Pattern("first", 7, 1 << 8 | 1), Pattern("second", 7, 1 << 8 | 2)
WRITTEN = wrong_blocks.Written([FIRST, SECOND], 8 << 20)
RIGHT = SECOND.data(HERE, BLOCK)
# Of nothing that was written, but for its stamps; and with an address beyond the drive.
_HEAD = SECOND.data(THERE, 512)[:72]
STAMPED = (_HEAD + random.Random(2).randbytes(440)) * 8
LOST_ADDRESS = ((1 << 50).to_bytes(8, "little") + SECOND.data(THERE, 512)[8:]) * 8
ANOTHER, BEFORE = Pattern("another", 8, 1 << 8 | 2), Pattern("before", 7, 9 << 8 | 2)


def flipped(data, *bits):
    value = int.from_bytes(data, "little")
    for bit in bits:
        value ^= 1 << bit
    return value.to_bytes(len(data), "little")


@pytest.mark.parametrize(
    ("found", "kind", "sectors", "told"),
    [
        (flipped(RIGHT, 12345), "bit_flips", 1, "1 bit of 4,096 changed"),
        # In the address, the drive, the writing and the check of them.
        (flipped(RIGHT, 3, 6 * 64, 7 * 64 + 1, 8 * 64 + 9), "bit_flips", 1, "4 bits of 4,096 changed"),
        (SECOND.data(THERE, BLOCK), "misdirected", 8, f"what was written to byte {THERE}"),
        (FIRST.data(THERE, BLOCK), "misdirected", 8, f"what was written to byte {THERE} by pass 1"),
        (FIRST.data(HERE, BLOCK), "stale", 8, "what was written there by pass 1"),
        (RIGHT[:1024] + FIRST.data(HERE, BLOCK)[1024:], "stale", 6, "what was written there by pass 1"),
        (bytes(BLOCK), "blank", 8, "every byte is 0x00"),
        (RIGHT[:3584] + b"\xff" * 512, "blank", 1, "every byte is 0xff"),
        (ANOTHER.data(HERE, BLOCK), "other_drive", 8, f"to another drive, at byte {HERE}"),
        (BEFORE.data(HERE, BLOCK), "stale", 8, f"an integrity test before this one wrote it, at byte {HERE}"),
        (random.Random(1).randbytes(BLOCK), "garbled", 8, "nothing that the test wrote is like it"),
        (filled(LAWS[0], 12345, 8), "stale", 8, "fio wrote it, before this test"),
        (scrambled(filled(LAWS[0], 12345, 8), HERE, 5, 9), "stale", 8, "fio wrote it, before this test"),
        (flipped(SECOND.data(THERE, BLOCK), 2000), "misdirected", 8, f"to byte {THERE}, 1 bit of 4,096 changed"),
        (STAMPED, "garbled", 8, "it names this test"),
        (LOST_ADDRESS, "garbled", 8, "it names this test"),
    ],
)
def test_a_wrong_block_is_told_by_what_it_holds(found, kind, sectors, told):
    judged = wrong_blocks.judge(found, HERE, WRITTEN)
    assert (judged.kind, judged.wrong_sectors) == (kind, sectors) and told in judged.told
