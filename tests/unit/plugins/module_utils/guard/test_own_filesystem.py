# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A file system that a test left is told from everybody else's."""

from __future__ import annotations

import struct
import uuid

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.guard import own_filesystem
from ansible_collections.ssdlab.fleet.plugins.module_utils.guard.facts import Facts

OURS, OTHER = "0f9c2c0e-6a3a-4a52-9d1b-3c6f0a1d2e4f", "11111111-2222-3333-4444-555555555555"


def ext4(identifier=OURS, mounts=1, state=1, recovery=False):
    start = bytearray(4096)
    struct.pack_into("<HHHH", start, 1024 + 52, mounts, 0xFFFF, 0xEF53, state)
    struct.pack_into("<I", start, 1024 + 96, 0x2C2 | (0x4 if recovery else 0))
    start[1024 + 104 : 1024 + 120] = uuid.UUID(identifier).bytes
    return bytes(start)


def xfs(identifier=OURS):
    return b"XFSB".ljust(32, b"\0") + uuid.UUID(identifier).bytes + bytes(4096 - 48)


EXT4, XFS = (own_filesystem.noted(kind, OURS) for kind in ("ext4", "xfs"))


@pytest.mark.parametrize(
    ("known", "start", "ours"),
    [
        # The kernel unmounted it when our job was killed.
        (EXT4, ext4(), True),
        (EXT4, ext4(mounts=0), True),
        # Somebody mounted it since; it lost power; it is somebody else's; it is none.
        (EXT4, ext4(mounts=2), False),
        (EXT4, ext4(recovery=True), False),
        (EXT4, ext4(state=0), False),
        (EXT4, ext4(OTHER), False),
        (EXT4, xfs(), False),
        (EXT4, bytes(4096), False),
        (EXT4, b"", False),
        (None, ext4(), False),
        ({}, ext4(), False),
        # XFS does not tell who mounted it.
        (XFS, xfs(), False),
        # As we left it, to the bit.
        (own_filesystem.noted("xfs", OURS, xfs()), xfs(), True),
        (own_filesystem.noted("xfs", OURS, xfs()), xfs()[:-1] + b"\1", False),
        (own_filesystem.noted("ext4", OURS, ext4()), ext4(), True),
        (own_filesystem.noted("ext4", OURS, ext4()), ext4(mounts=2), False),
        (own_filesystem.noted("ext4", OTHER, ext4()), ext4(), False),
    ],
)
def test_ours_is_what_nobody_mounted_since(known, start, ours):
    assert own_filesystem.is_ours(known, start) is ours


def seen(*signatures, ledger=True):
    known = {"run_id": "r1", "state": "released", "released": "…", "reason": "", "proved": ""}
    return Facts("sda", "/dev/sda", "drive", {}, signatures=list(signatures), own_data=known if ledger else None)


@pytest.mark.parametrize(
    ("facts", "ours"),
    [
        (seen("ext4"), True),
        (seen("ext4", "ext, the copy of its superblock in group 1"), True),
        (seen("ext4", "at byte 1048576: xfs"), False),
        (seen("ext4", "LVM2_member"), False),
        (seen("xfs"), False),
        (seen(), False),
        (seen("ext4", ledger=False), False),
    ],
)
def test_a_signature_beside_it_is_somebody_elses(facts, ours):
    before = list(facts.signatures)
    assert own_filesystem.prove(facts, {"filesystem": EXT4}, ext4()) is ours
    assert facts.signatures == ([] if ours else before) and bool(facts.unsigned) is ours
    assert (facts.own_data or {}).get("proved", "") == ("filesystem" if ours else "")


@pytest.mark.parametrize("ledger", [None, {}, {"filesystem": None}, {"filesystem": "ext4"}, {"filesystem": {}}])
def test_a_ledger_that_knows_of_none_proves_nothing(ledger):
    assert own_filesystem.prove(seen("ext4"), ledger, ext4()) is False
