# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A file system that a test left is refused as any other, and called what it is."""

from __future__ import annotations

import struct
import uuid

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.guard import ledger_format

OURS, OTHER = "0f9c2c0e-6a3a-4a52-9d1b-3c6f0a1d2e4f", "11111111-2222-3333-4444-555555555555"


def ext4(identifier=OURS):
    start = bytearray(4096)
    struct.pack_into("<H", start, 1024 + 56, 0xEF53)
    start[1024 + 104 : 1024 + 120] = uuid.UUID(identifier).bytes
    return bytes(start)


def xfs(identifier=OURS):
    return b"XFSB".ljust(32, b"\0") + uuid.UUID(identifier).bytes + bytes(4096 - 48)


@pytest.mark.parametrize(("kind", "start"), [("ext4", ext4()), ("xfs", xfs())])
def test_that_of_a_test_is_named_with_its_run_and_why_it_is_there(kind, start):
    known = ledger_format.filesystem_note(kind, OURS, "r1")
    said = ledger_format.leftover_filesystem(known, start)
    assert said == (
        f"the file system ({kind}, UUID {OURS}) of a test of run r1, not wiped as the run died; "
        "somebody may have used it since"
    )


EXT4 = ledger_format.filesystem_note("ext4", OURS, "r1")


@pytest.mark.parametrize(
    ("known", "start"),
    [(EXT4, ext4(OTHER)), (EXT4, xfs()), (EXT4, bytes(4096)), (EXT4, b""), (None, ext4())],
)
def test_another_is_not(known, start):
    assert ledger_format.leftover_filesystem(known, start) == ""
