# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What others do on a drive in service is told from what we do, and waited for, up to the patience of a test."""

from __future__ import annotations

import types

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.job import give_way, scrub
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.identity import Identity
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.in_service import MIB, PlannedInService, PlannedScrub

ASKED = PlannedInService(busy_iops=100, busy_mib_s=10, patience_s=5)


class Drive:
    """A drive of a station, whose others do so many I/Os of 4 KiB in each second of a clock of its own."""

    def __init__(self, fake, rates):
        self.now, self.rates, self.done = 0.0, rates, 0
        self.fake = fake
        self.tell()
        self.station = types.SimpleNamespace(
            job=types.SimpleNamespace(host=fake),
            name="sda",
            tick=lambda share: None,
            bench=types.SimpleNamespace(settle=lambda: None),
        )

    def tell(self):
        self.fake.put("/sys/block/sda/stat", f"{self.done} 0 {self.done * 8} 0 0 0 0 0 0 0 0 0 0 0 0")

    def sleep(self, seconds):
        self.done += int(self.rates[min(int(self.now), len(self.rates) - 1)] * seconds)
        self.now += seconds
        self.tell()

    def give_way(self):
        return give_way.GiveWay(self.station, ASKED, lambda: self.now, self.sleep)


@pytest.mark.parametrize(("rates", "waited_s"), [([0], 1), ([100], 1), ([101, 0], 2), ([500, 500, 500, 3], 4)], ids=str)
def test_it_waits_until_others_do_less(fake, rates, waited_s):
    assert Drive(fake, rates).give_way().wait() == waited_s


def test_it_gives_up_with_what_others_did(fake):
    drive = Drive(fake, [2000])
    way = drive.give_way()
    with pytest.raises(give_way.Busy, match=r"others did 2,000 I/Os and 7\.8 MiB a second, more than 100 or 10 MiB"):
        way.wait()
    assert drive.now == way.paused_s == 5


def test_our_own_are_none_of_others(fake):
    drive = Drive(fake, [1000])
    way = drive.give_way()
    way.begin()
    drive.sleep(1)
    way.did(990, 1000 * 4096)
    assert way.look() == give_way.OfOthers(10, 0)


def test_a_drive_that_nobody_counts_is_not_busy(fake):
    fake.put("/sys/block/sda/queue/iostats", "0")
    assert Drive(fake, [10**6]).give_way().wait() == 1


def test_each_part_begins_where_the_one_before_ended_and_a_damaged_place_at_the_first_block(tmp_path):
    identity = Identity(serial="S1", size_bytes=100 * MIB, logical_block_size_bytes=512)
    asked, seen = PlannedScrub(rate_mib_s=10, duration_s=4), []
    assert asked.nights(100 * MIB) == 3
    for _night in range(4):
        place = scrub.Place.of(str(tmp_path), identity, "label")
        seen.append(place.next_byte() // MIB)
        place.keep(min(place.next_byte() + asked.part_bytes(100 * MIB), 100 * MIB))
    assert seen == [0, 40, 80, 0]
    for text in ("", "[]", '{"next_byte": -1, "size_bytes": 104857600}', '{"next_byte": 8, "size_bytes": 7}'):
        (tmp_path / "scrubs" / "S1.json").write_text(text)
        assert scrub.Place.of(str(tmp_path), identity, "label").next_byte() == 0


@pytest.mark.parametrize(
    ("sectors_kb", "segments", "chunk"),
    [("1280", "127", 256 << 10), ("4096", "256", MIB), ("64", "128", 128 << 10), (None, None, MIB)],
)
def test_a_chunk_is_what_the_drive_takes_at_once(fake, sectors_kb, segments, chunk):
    for name, value in (("max_sectors_kb", sectors_kb), ("max_segments", segments)):
        if value:
            fake.put(f"/sys/block/sda/queue/{name}", value)
    assert scrub.chunk_bytes(fake, "sda") == chunk
