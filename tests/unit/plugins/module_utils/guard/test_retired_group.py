# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Members of one whole that are given up one after the other, and what only looks like a member."""

from __future__ import annotations

import struct
import types
import uuid

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.guard import holdings, retired_group
from ansible_collections.ssdlab.fleet.plugins.module_utils.guard.facts import Hit, Holdings
from ansible_collections.ssdlab.fleet.plugins.module_utils.guard.retired_group import Retired, RetiredGroup
from ansible_collections.ssdlab.fleet.plugins.module_utils.guard.self_described import Content, Member, _crc32c, btrfs
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.ledger import RetiredUse

OF = {
    "btrfs": lambda events: Member("btrfs", "F", "F", "part b", frozenset(["part b"]), events, 2),
    "md": lambda events: Member("md", "F", "F", "1", frozenset(["0", "1"]), events),
}


def drive(member):
    """A retired drive with a member that nothing else speaks against."""
    facts = types.SimpleNamespace(holdings=Holdings([Content(member.kind, 0, 1, member=member)]))
    return types.SimpleNamespace(
        entry=None, facts=facts, retired=Retired("true", codes=retired_group.CODES), unlifted=lambda _run_id: []
    )


@pytest.mark.parametrize("kind", OF)
@pytest.mark.parametrize("run_id", ["r1", None])
@pytest.mark.parametrize(("events", "is_given_up"), [(7, True), (8, False)])
def test_what_went_on_without_an_erased_part_has_another_one_now(monkeypatch, kind, run_id, events, is_given_up):
    """A mirror whose first half a run erased, and which was mended with a drive that is in use, needs its second."""
    erased = OF[kind](7)._replace(own={"btrfs": "part a", "md": "0"}[kind])
    noted = [RetiredUse("r1", "2026-11-20T00:00:00Z", {}, "true", [erased.key + erased.state], 1)]
    monkeypatch.setattr(retired_group.retired, "uses", lambda _state_dir: noted)
    group, one = RetiredGroup(None, "/state", run_id), drive(OF[kind](events))
    group.propose([])
    group.join([one], [], None)
    assert bool(one.retired.codes) is is_given_up, one.retired.why


def superblock(devices):
    """One of btrfs on a device of 1 GiB."""
    block = bytearray(4096)
    block[32:48], block[267:283], block[64:72] = uuid.uuid4().bytes, uuid.uuid4().bytes, b"_BHRfS_M"
    struct.pack_into("<QQ", block, 201, 1, 1 << 30)
    struct.pack_into("<Q", block, 136, devices)
    struct.pack_into("<I", block, 0, _crc32c(bytes(block[32:])))
    return bytes(block)


@pytest.mark.parametrize("devices", [1, 2])
def test_an_image_of_a_member_stands_for_no_device(devices):
    """The device itself may be in use, beside the other ones, which then look as if all were retired."""
    block, place = superblock(devices), 64 << 20
    assert btrfs(block).problem == ""
    reader = types.SimpleNamespace(
        size_bytes=2 << 30, read=lambda offset, length: block if offset == place else bytes(length)
    )
    facts = types.SimpleNamespace(hits=[Hit("btrfs", place)], holdings=Holdings())
    holdings.account(facts, reader)
    assert bool(facts.holdings.problems) is (devices > 1), facts.holdings.problems
