# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a drive's entry lifts, on a file that stands for the drive."""

from __future__ import annotations

import errno
import os
import struct

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.drive import identity as drive
from ansible_collections.ssdlab.fleet.plugins.module_utils.guard import probe
from ansible_collections.ssdlab.fleet.plugins.module_utils.guard.data_scan import Terms
from ansible_collections.ssdlab.fleet.plugins.module_utils.guard.facts import Extent, Facts, Mark

MIB = 1 << 20
SIZE = 16 * MIB
SUPERBLOCK = bytes(1024 + 24) + struct.pack("<II", 2, 2) + bytes(24) + b"\x53\xef" + bytes(4096 - 1024 - 58)


@pytest.fixture
def looked_at(fake):
    """A look at a drive with these data, marks and partitions, by an entry that lifts these codes; its facts."""

    fake.disk("sda", "8:0", size=SIZE)

    def look_at(data_at, lifted, marks=(), pieces=()):
        with open(fake.path("/dev/sda"), "wb") as node:
            for offset, data in data_at.items():
                node.seek(offset)
                node.write(data)
        facts = Facts("sda", "/dev/sda", "drive", drive.identity(fake, "sda"))
        facts.marks += marks
        facts.pieces += pieces
        probe.look_at(fake, facts, None, Terms(5.0), None, lifted)
        return facts

    return look_at


def test_an_allowed_signature_that_only_the_look_finds_lifts_nothing_beside_it(looked_at):
    """The table is gone and the file system is still there: wipefs finds nothing at all."""
    seen = looked_at({MIB: SUPERBLOCK, 5 * MIB: b"data"}, ["signature"])
    assert seen.signatures and seen.unsigned == [f"the block at byte {5 * MIB} is not blank"] and seen.look


def test_an_allowed_signature_does_not_count_itself(looked_at):
    seen = looked_at({MIB: SUPERBLOCK}, ["signature"])
    assert seen.signatures and not seen.unsigned and seen.look


def test_a_signature_that_stands_needs_no_further_look(looked_at):
    seen = looked_at({MIB: SUPERBLOCK, 5 * MIB: b"data"}, ["partition_table"], [Mark(0, 512, True)])
    assert seen.signatures and seen.look is None


@pytest.fixture
def bad_block(monkeypatch):
    """Return what makes the drive unable to give a block."""
    read = os.preadv
    monkeypatch.setattr("platform.machine", lambda: "sparc64")  # threads, whose reads go through os.preadv

    def at(place):
        def preadv(handle, buffers, offset):
            if offset <= place < offset + sum(len(buffer) for buffer in buffers):
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            return read(handle, buffers, offset)

        monkeypatch.setattr(os, "preadv", preadv)

    return at


def test_a_block_that_cannot_be_read_counts_as_data(looked_at, bad_block):
    bad_block(9 * MIB + 12288)  # where no format keeps what tells of it
    seen = looked_at({4 * MIB: SUPERBLOCK}, ["signature"])
    assert seen.signatures == [f"ext, at byte {4 * MIB}"] and seen.failures == []
    assert seen.unsigned and "cannot read" in seen.unsigned[0]


PARTITION = Extent(6 * MIB, 4 * MIB)


@pytest.mark.parametrize(
    "place", [0, 3 * MIB, 5 * MIB - 1, SIZE - 5 * MIB, SIZE - 1, PARTITION.offset + 12288, 9 * MIB + 12288, 11 * MIB]
)
def test_where_formats_keep_what_tells_of_them_a_drive_has_to_be_readable(looked_at, bad_block, place):
    """Else nobody knows whether it is a member of an array: blkid and wipefs end there, in silence."""
    bad_block(place)
    (failure,) = looked_at({}, ["signature", "partition_table"], pieces=[PARTITION]).failures
    assert "cannot be read: Input/output error at byte" in failure and "empty it by hand" in failure


def test_a_table_that_was_found_twice_hides_no_more_than_itself(looked_at):
    """By wipefs, and by its own bytes."""
    table = [Mark(0, 512, True), Mark(0, 512, True)]
    seen = looked_at({0: b"t" * 512, 600: b"data"}, ["partition_table"], table)
    assert seen.unsigned == ["the block at byte 0 is not blank"]
    assert not looked_at({0: b"t" * 512 + bytes(512)}, ["partition_table"], table).unsigned
