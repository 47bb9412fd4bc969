# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The array that a dead job left: stopped only where it is that one."""

from __future__ import annotations

import json
import os
import shutil

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.core.host import BOOT_ID, Host, Result
from ansible_collections.ssdlab.fleet.plugins.module_utils.job import array_leftover
from ansible_collections.ssdlab.fleet.plugins.module_utils.job.restore import leftover, restore_run
from ansible_collections.ssdlab.fleet.plugins.module_utils.run.folder import RunDir

BLOCK = "/sys/block/md127/"
FILES = {
    BOOT_ID: "boot-1",
    BLOCK + "dev": "9:127",
    BLOCK + "md/level": "raid0",
    BLOCK + "md/metadata_version": "none",
    BLOCK + "md/chunk_size": "65536",
    BLOCK + "slaves/sda/dev": "8:0",
    BLOCK + "slaves/sdb/dev": "8:16",
}


class Kernel(Host):
    """A host with the array of FILES, which `mdadm --stop` takes away after so many attempts."""

    def __init__(self, root, attempts=1):
        super().__init__(root)
        self.ran, self.attempts = [], attempts
        for path, text in FILES.items():
            self.put(path, text)

    def put(self, path, text):
        os.makedirs(os.path.dirname(self.path(path)), exist_ok=True)
        with open(self.path(path), "w", encoding="utf-8") as out:
            out.write(text)

    def run(self, argv, timeout_s=60):
        self.ran.append(list(argv))
        if len(self.ran) < self.attempts:
            return Result(argv, 1, "", "mdadm: Cannot get exclusive access to /dev/md127")
        shutil.rmtree(self.path(BLOCK))
        return Result(argv, 0, "", "")


@pytest.fixture
def run_dir(tmp_path, monkeypatch):
    monkeypatch.setattr(array_leftover, "STOP_PAUSE_S", 0)
    found = RunDir(str(tmp_path / "state"), "r1")
    os.makedirs(found.path)
    return found


def noted(host, run_dir, members=("8:0", "8:16")):
    array_leftover.note(host, run_dir, "md127", members)


@pytest.mark.parametrize("attempts", [1, 3])
def test_it_is_stopped_and_forgotten_also_where_udev_still_looks_at_it(tmp_path, run_dir, attempts):
    host = Kernel(str(tmp_path), attempts)
    noted(host, run_dir)
    assert leftover(run_dir) is not None
    (done,) = restore_run(host, run_dir)
    assert (done.path, done.outcome) == ("/dev/md127", "restored")
    assert host.ran == [["mdadm", "--stop", "/dev/md127"]] * attempts
    assert leftover(run_dir) is None and restore_run(host, run_dir) == []


def test_one_that_goes_on_is_told_and_stays_noted(tmp_path, run_dir):
    host = Kernel(str(tmp_path), 1000)
    noted(host, run_dir)
    (done,) = array_leftover.stop(host, run_dir)
    assert done.outcome == "failed" and "Cannot get exclusive access" in done.message
    assert array_leftover.is_left(run_dir) and len(host.ran) == array_leftover.STOP_ATTEMPTS


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (BOOT_ID, "boot-2"),
        (BLOCK + "md/metadata_version", "1.2"),
        (BLOCK + "slaves/sdc/dev", "8:32"),
        (BLOCK + "slaves/sdb/dev", "8:32"),
    ],
    ids=["another boot", "a superblock", "one more member", "another member"],
)
def test_an_array_that_is_not_ours_is_never_stopped(tmp_path, run_dir, path, text):
    host = Kernel(str(tmp_path))
    noted(host, run_dir)
    host.put(path, text)
    assert array_leftover.stop(host, run_dir) == [] and host.ran == []
    assert os.path.exists(host.path(BLOCK)) and not array_leftover.is_left(run_dir)


def test_one_that_lost_a_member_is_still_ours(tmp_path, run_dir):
    host = Kernel(str(tmp_path))
    noted(host, run_dir)
    shutil.rmtree(host.path(BLOCK + "slaves/sdb"))
    assert [item.outcome for item in array_leftover.stop(host, run_dir)] == ["restored"]


@pytest.mark.parametrize("text", ["{", json.dumps({"boot_id": "boot-1", "name": 3, "members": []})])
def test_a_note_that_nobody_can_read_is_kept_for_people(tmp_path, run_dir, text):
    host = Kernel(str(tmp_path))
    with open(array_leftover.path_of(run_dir), "w", encoding="utf-8") as out:
        out.write(text)
    (done,) = array_leftover.stop(host, run_dir)
    assert done.outcome == "failed" and "/proc/mdstat" in done.message and host.ran == []
    assert array_leftover.is_left(run_dir)
