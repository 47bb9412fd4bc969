# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An array of held drives: it is looked at as closely as each of them."""

from __future__ import annotations

import os
import types

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.guard.held import Refused
from ansible_collections.ssdlab.fleet.plugins.module_utils.guard.held_array import HeldArray
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.guard import Refusal
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.identity import Identity
from ansible_collections.ssdlab.fleet.plugins.module_utils.tools import mdadm

SIZE = 1 << 20
MADE = mdadm.Array("raid0", "none", 65536, frozenset({"8:0", "8:16"}), "9:127")


@pytest.fixture
def made(tmp_path, monkeypatch):
    """An array over a file, and the list of members that were confirmed."""
    file, confirmed = tmp_path / "md127", []
    file.write_bytes(bytes(SIZE))
    monkeypatch.setattr(mdadm, "read_array", lambda _host, _name: made.seen)
    members = [
        types.SimpleNamespace(
            identity=Identity(size_bytes=SIZE, logical_block_size_bytes=block, queue_depth=depth),
            confirm=lambda block=block: confirmed.append(block),
        )
        for block, depth in ((512, 32), (4096, None))
    ]
    files = {"/sys/block/md127/stat": "0 0 0 0 0 0 10 0", "/sys/block/md127/queue/iostats": "1"}
    made = types.SimpleNamespace(seen=MADE, confirmed=confirmed, members=members, files=files, path=file)
    host = types.SimpleNamespace(get=files.get)
    made.held = HeldArray(host, members, "md127", os.open(file, os.O_RDWR), MADE, SIZE)
    yield made
    made.held.close()


def test_it_has_the_largest_block_and_the_least_depth_of_its_drives(made):
    identity = made.held.identity
    assert (identity.logical_block_size_bytes, identity.queue_depth, identity.size_bytes) == (4096, 32, SIZE)
    assert (made.held.path, identity.major_minor) == ("/dev/md127", "9:127")


def test_every_member_is_looked_at_each_time(made):
    made.held.check()
    made.held.confirm()
    assert made.confirmed == [512, 4096, 512, 4096]


@pytest.mark.parametrize("seen", [None, MADE._replace(members=frozenset({"8:0"})), MADE._replace(metadata="1.2")])
def test_another_array_is_refused(made, seen):
    made.seen = seen
    with pytest.raises(Refused, match=r"the array \(/dev/md127\)"):
        made.held.confirm()


def test_one_that_shrank_is_refused(made):
    os.truncate(made.path, SIZE // 2)
    with pytest.raises(Refused, match=f"had {SIZE} bytes, has {SIZE // 2}"):
        made.held.confirm()


def test_a_member_that_is_another_drive_is_refused(made):
    def gone():
        raise Refused([Refusal("identity_changed", "another")])

    made.members[1].confirm = gone
    with pytest.raises(Refused, match="another"):
        made.held.check()


def test_what_was_written_is_the_kernels_count(made):
    assert made.held.bytes_written() == 5120
    made.files["/sys/block/md127/queue/iostats"] = "0"
    assert made.held.bytes_written() is None
