# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a drive's entry lifts, on a file that stands for the drive."""

from __future__ import annotations

import struct

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.drive import identity as drive
from ansible_collections.ssdlab.fleet.plugins.module_utils.guard import probe
from ansible_collections.ssdlab.fleet.plugins.module_utils.guard.data_scan import Terms
from ansible_collections.ssdlab.fleet.plugins.module_utils.guard.facts import Facts, Mark
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.found_drives import Identity

MIB = 1 << 20
SIZE = 16 * MIB
SUPERBLOCK = bytes(1024 + 24) + struct.pack("<II", 2, 2) + bytes(24) + b"\x53\xef" + bytes(4096 - 1024 - 58)


@pytest.fixture
def looked_at(fake):
    """A look at a drive with these pieces ({offset: data}) and marks, by an entry that lifts these codes; its facts."""

    fake.disk("sda", "8:0", size=SIZE)

    def look_at(pieces, lifted, marks=()):
        with open(fake.path("/dev/sda"), "wb") as node:
            for offset, data in pieces.items():
                node.seek(offset)
                node.write(data)
        facts = Facts("sda", "/dev/sda", "drive", Identity(**drive.identity(fake, "sda")))
        facts.marks += marks
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


def test_a_table_that_was_found_twice_hides_no_more_than_itself(looked_at):
    """By wipefs, and by its own bytes."""
    table = [Mark(0, 512, True), Mark(0, 512, True)]
    seen = looked_at({0: b"t" * 512, 600: b"data"}, ["partition_table"], table)
    assert seen.unsigned == ["the block at byte 0 is not blank"]
    assert not looked_at({0: b"t" * 512 + bytes(512)}, ["partition_table"], table).unsigned
