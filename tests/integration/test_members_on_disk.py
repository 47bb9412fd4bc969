# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which physical volumes and members of arrays, as they lie on a drive, are whole and at rest."""

from __future__ import annotations

import time

import members_on_disk
import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.guard import memberships

SIZE = 48 << 20


def reader(pieces):
    data = bytearray(2 << 20)
    for offset, piece in pieces:
        data[offset : offset + len(piece)] = piece
    return lambda offset, length: bytes(data[offset : offset + length].ljust(length, b"\0"))


@pytest.mark.parametrize(
    "more, is_orphan",
    [
        ({}, True),
        ({"is_ignored": True}, False),  # the text is on other drives of its group
        ({"extension": (2, 1)}, False),
        ({"extension": (1, 0)}, False),
        ({"extension": None}, False),
    ],
)
def test_a_physical_volume_is_nobodys_only_if_it_says_so(more, is_orphan):
    content = memberships.lvm(reader(members_on_disk.alone(**more))).content
    assert content.problem == ("" if is_orphan else "its volume group is not known")


@pytest.mark.parametrize(
    "more, says",
    [
        ({}, ""),
        ({"flags": 0x1 | 0x8}, ""),
        ({"roles": [0, 0xFFFE]}, "degraded"),
        ({"roles": [0]}, "degraded"),
        ({"roles": [0xFFFE, 1, 0]}, "degraded"),  # it failed, another one has its place
        ({"flags": 0x10}, "not at rest"),
        ({"flags": 0x2}, "not at rest"),
        ({"flags": 0x4}, "not at rest"),
    ],
)
def test_an_array_is_whole_and_at_rest(more, says):
    content = memberships.md(reader(members_on_disk.array(1, 2, 0, **more)), SIZE).content
    assert says in content.problem and bool(says) is bool(content.problem)


def test_members_tell_when_they_were_changed():
    (pieces,) = members_on_disk.volume_group("data", 1, {})
    assert abs(memberships.lvm(reader(pieces)).content.used_s - time.time()) < 60
    now_us = 1750000000 | 999999 << 40
    content = memberships.md(reader(members_on_disk.array(1, 1, 0, used_s=now_us, events=7)), SIZE).content
    assert content.used_s == 1750000000 and content.member.events == 7
