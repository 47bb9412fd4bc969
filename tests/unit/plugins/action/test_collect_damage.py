# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A transfer that a bit of was lost in: what was there stays, and the next collect brings the host's bytes."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import pytest
from ansible.errors import AnsibleActionFail, AnsibleConnectionFailure

from ansible_collections.ssdlab.fleet.plugins.action import collect
from ansible_collections.ssdlab.fleet.plugins.module_utils.run import archive
from ansible_collections.ssdlab.fleet.plugins.module_utils.run.folder import RunDir
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.run_folder import unpack


class Transfer(collect.ActionModule):
    """The action, with a connection that harms what it brings."""

    def __init__(self, harm):
        self.harm, self.fetched, self.removed = harm, 0, 0
        self._task = SimpleNamespace(timeout=900, delegate_to="h1")
        self._connection, self._lost = SimpleNamespace(_shell=SimpleNamespace()), {}

    def fetch(self, remote, local, most_bytes):
        data = bytearray(Path(remote).read_bytes())
        self.fetched += 1
        Path(local).write_bytes(self.harm(data) if self.harm else data)

    def remove(self, path):
        if not self._lost:
            os.unlink(path)
            self.removed += 1


def flipped(data):
    data[len(data) // 2] ^= 1
    return data


@pytest.fixture
def run_dir(tmp_path):
    found = RunDir(str(tmp_path / "host"), "r1")
    Path(found.raw("A1"), "1-c.json.gz").write_bytes(os.urandom(100_000))
    return found


@pytest.mark.parametrize("harm", [flipped, lambda data: data[: len(data) // 2], lambda data: data + b"\0"])
def test_damage_midway_is_told_keeps_what_was_there_and_is_mended_by_the_next_collect(run_dir, tmp_path, harm):
    folder = tmp_path / "results" / "raw" / "h1"
    folder.mkdir(parents=True)
    (folder / "before").write_text("of an earlier collect")
    with pytest.raises(AnsibleActionFail, match="cannot collect .*r1.tar.gz.*(damaged on its way|cannot be unpacked)"):
        Transfer(harm)._bring(run_dir.archive, archive.pack(run_dir)._asdict(), str(folder), unpack.ArchiveLimits())
    assert [path.name for path in folder.iterdir()] == ["before"] and os.listdir(folder.parent) == ["h1"]
    sound = Transfer(None)
    assert sound._bring(run_dir.archive, archive.pack(run_dir)._asdict(), str(folder), unpack.ArchiveLimits())
    raw = "raw/A1/1-c.json.gz"
    assert (folder / raw).read_bytes() == Path(run_dir.path, raw).read_bytes()
    # What is there as it was on the host travels no second time.
    assert not sound._bring(run_dir.archive, archive.pack(run_dir)._asdict(), str(folder), unpack.ArchiveLimits())
    assert sound.fetched == 1


class TaskTimeoutError(BaseException):
    """As ansible-core's, by its name."""


@pytest.mark.parametrize("renames", [1, 2])
def test_a_task_whose_time_ends_between_the_renames_leaves_the_folder_and_asks_no_more(
    run_dir, tmp_path, monkeypatch, renames
):
    folder = tmp_path / "results" / "raw" / "h1"
    folder.mkdir(parents=True)
    (folder / "before").write_text("of an earlier collect")
    real, left = os.rename, iter([None] * (renames - 1))

    def late(*paths):
        try:
            next(left)
        except StopIteration:
            monkeypatch.setattr(os, "rename", real)
            raise TaskTimeoutError from None
        real(*paths)

    monkeypatch.setattr(os, "rename", late)
    transfer = Transfer(None)
    with pytest.raises(AnsibleConnectionFailure, match="900"):
        transfer._bring(run_dir.archive, archive.pack(run_dir)._asdict(), str(folder), unpack.ArchiveLimits())
    assert (folder / "before").exists() and os.listdir(folder.parent) == ["h1"] and transfer.removed == 0
