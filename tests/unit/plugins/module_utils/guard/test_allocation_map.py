# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where a drive itself says that it holds something. GET LBA STATUS answers as sg_get_lba_status 1.21 prints them with
--hex.
"""

from __future__ import annotations

import os

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.drive import loop
from ansible_collections.ssdlab.fleet.plugins.module_utils.guard import allocation_map
from ansible_collections.ssdlab.fleet.plugins.module_utils.guard.facts import Facts
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.found_drives import Identity

MIB = 1 << 20
BLOCKS = 1 << 20


def facts_of(name="sda", **identity):
    return Facts(
        name,
        "/dev/" + name,
        "drive",
        Identity(**{"logical_block_size_bytes": 512, "size_bytes": BLOCKS * 512, **identity}),
    )


@pytest.mark.parametrize(
    "namespace, told_bytes",
    [
        ({"nsze": 1000, "ncap": 1000, "nuse": 1000, "nsfeat": 0}, None),  # a drive that always says so
        ({"nsze": 1000, "ncap": 1000, "nuse": 1000, "nsfeat": 1}, 512000),
        ({"nsze": 1000, "ncap": 1000, "nuse": 40, "nsfeat": 0}, 20480),
        ({"nsze": 1000, "ncap": 1000, "nuse": 0, "nsfeat": 5}, 0),
        ({"nsze": 1000, "ncap": 1000, "nsfeat": 1}, None),
        ({"nsze": 1000, "ncap": 1000, "nuse": "many", "nsfeat": 1}, None),
        ({"nsze": 1000, "ncap": 1000, "nuse": -1, "nsfeat": 1}, None),
    ],
)
def test_an_nvme_namespace_says_how_much_is_used(namespace, told_bytes):
    facts = facts_of("nvme0n1")
    allocation_map.from_namespace(facts, namespace)
    assert facts.allocated_bytes == told_bytes and facts.allocated == []


def answer(*descriptors):
    """GET LBA STATUS: of (block, blocks, provisioning status)."""
    data = bytes(4) + b"".join(
        block.to_bytes(8, "big") + blocks.to_bytes(4, "big") + bytes([status, 0, 0, 0])
        for block, blocks, status in descriptors
    )
    data = (len(data)).to_bytes(4, "big") + data
    lines = [
        " {:02x}     {}  {}".format(start, data[start : start + 8].hex(" "), data[start + 8 : start + 16].hex(" "))
        for start in range(0, len(data), 16)
    ]
    return (0, "\n".join(line.rstrip() for line in lines) + "\n", "")


def scsi(fake, *answers, provisioned="1"):
    fake.put("/sys/block/sda/device/scsi_disk/0:0:0:0/thin_provisioning", provisioned)
    waiting, asked = list(answers), []

    def run(argv, **options):
        asked.append(argv)
        fake.answers["sg_get_lba_status"] = waiting.pop(0)
        return type(fake).run(fake, argv, **options)

    fake.run = run
    facts = facts_of()
    allocation_map.from_scsi(fake, facts)
    return facts, asked


def test_a_scsi_drive_says_what_is_mapped(fake):
    facts, asked = scsi(fake, answer((0, 8, 0), (8, 92, 1)), answer((100, 50, 3), (150, BLOCKS - 150, 1)), answer())
    assert facts.allocated == [(0, 4096), (51200, 25600)] and facts.allocated_bytes == 29696 and facts.failures == []
    assert [argv[-2] for argv in asked] == ["--lba=0", "--lba=100", f"--lba={BLOCKS}"]


@pytest.mark.parametrize("descriptors", [[(0, BLOCKS + 8, 0)], [(0, BLOCKS, 0), (8, BLOCKS - 8, 0)]])
def test_no_drive_holds_more_than_its_size(fake, descriptors):
    """A last descriptor may reach beyond the end, and extents may overlap."""
    facts, _asked = scsi(fake, answer(*descriptors), answer())
    assert facts.allocated_bytes == facts.identity.size_bytes


def test_a_namespace_does_not_either():
    facts = facts_of("nvme0n1")
    allocation_map.from_namespace(facts, {"nsze": BLOCKS, "ncap": 4 * BLOCKS, "nuse": 2 * BLOCKS, "nsfeat": 1})
    assert facts.allocated_bytes == facts.identity.size_bytes


@pytest.mark.parametrize(
    "answers",
    [
        [(5, "", "Get LBA Status command: bad field in cdb\n")],
        [(127, "", "not found")],
        [(0, "gibberish", "")],
        [answer()],
        [answer((0, 0, 0))],
    ],
)
def test_a_drive_that_gives_no_answer_is_looked_at_as_ever(fake, answers):
    facts, _asked = scsi(fake, *answers)
    assert (facts.allocated, facts.allocated_bytes, facts.failures) == ([], None, [])


def test_what_was_not_told_of_all_is_no_sum(fake):
    facts, _asked = scsi(fake, answer((0, 8, 0)), (5, "", "no more"))
    assert facts.allocated == [(0, 4096)] and facts.allocated_bytes is None


@pytest.mark.parametrize("provisioned", ["0", ""])
def test_a_drive_that_is_not_thin_is_not_asked(fake, provisioned):
    assert scsi(fake, provisioned=provisioned)[1] == []


@pytest.fixture
def behind(fake, tmp_path, monkeypatch):
    """The file behind a loop device, with data in three places; {offset, size} of the part that is attached."""
    path = tmp_path / "drive"
    with open(path, "wb") as file:
        file.truncate(64 * MIB)
        for place in (0, 10 * MIB, 63 * MIB):
            os.pwrite(file.fileno(), b"x" * 4096, place)
    status = os.stat(path)

    def extents(offset=0, size=64 * MIB, inode=status.st_ino):
        number = f"{os.major(status.st_dev)}:{os.minor(status.st_dev)}"
        monkeypatch.setattr(loop, "at", lambda _host, _handle: loop.Loop(number, inode, "", offset, 0))
        facts = facts_of("loop7", size_bytes=size, backing_file=str(path))
        monkeypatch.setattr(fake, "path", lambda name: name)
        allocation_map.from_loop(fake, facts, 99)
        return facts

    return extents


def test_a_file_tells_its_data_from_its_holes(behind):
    facts = behind()
    assert [extent.offset for extent in facts.allocated] == [
        0,
        10 * MIB,
        63 * MIB,
    ] and 12288 <= facts.allocated_bytes < MIB


def test_of_a_part_of_a_file_only_what_lies_in_it(behind):
    facts = behind(offset=8 * MIB, size=2 * MIB + 4096)
    assert facts.allocated == [(2 * MIB, 4096)]


def test_another_file_at_its_path_says_nothing(behind):
    facts = behind(inode=1)
    assert (facts.allocated, facts.allocated_bytes) == ([], None)
