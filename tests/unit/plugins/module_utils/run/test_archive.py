# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import hashlib
import os
import tarfile
import time
from pathlib import Path

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.run import archive
from ansible_collections.ssdlab.fleet.plugins.module_utils.run.folder import RunDir
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.validation.host_action import files_up_to


@pytest.fixture
def run_dir(tmp_path):
    found = RunDir(str(tmp_path), "r1")
    raw = Path(found.raw("A1")) / "iops-1"
    raw.mkdir()
    (raw / "1-c.json.gz").write_bytes(b"\x1f\x8b")
    Path(found.journal).write_text('{"event": "x"}\n')
    (Path(found.path) / ".status.json-aside").write_text("half")
    os.symlink("/etc/shadow", found.path + "/raw/link")
    return found


def names(packed):
    with tarfile.open(packed.path) as tar:
        return sorted(tar.getnames())


def test_it_holds_the_regular_files_and_no_link_nor_half_written_one(run_dir):
    assert names(archive.pack(run_dir)) == ["journal.jsonl", "raw/A1/iops-1/1-c.json.gz"]


def test_its_size_and_checksum_are_those_of_the_file_that_everyone_can_read(run_dir):
    packed = archive.pack(run_dir)
    data = Path(packed.path).read_bytes()
    assert packed.size_bytes == len(data) and packed.sha256 == hashlib.sha256(data).hexdigest()
    assert os.stat(packed.path).st_mode & 0o777 == 0o644
    assert sorted(os.listdir(run_dir.state_dir)) == ["r1.tar.gz", "runs"]


def test_the_same_folder_gives_the_same_bytes(run_dir, monkeypatch):
    first = archive.pack(run_dir)
    os.unlink(first.path)
    monkeypatch.setattr("time.time", lambda: 0.0)
    assert archive.pack(run_dir) == first


def test_it_is_made_anew_only_when_the_folder_has_something_newer(run_dir):
    first = archive.pack(run_dir)
    made = os.stat(first.path).st_ino
    assert archive.pack(run_dir) == first and os.stat(first.path).st_ino == made
    with open(run_dir.journal, "a") as journal:
        journal.write('{"event": "y"}\n')
    later = os.stat(first.path).st_mtime_ns + 1
    os.utime(run_dir.journal, ns=(later, later))
    assert archive.pack(run_dir).sha256 != first.sha256


def test_what_was_written_since_the_clock_was_set_back_is_packed(run_dir):
    """A host's clock was a day fast while a collect was made, and NTP corrected it before the run ended."""
    first = archive.pack(run_dir)
    with open(run_dir.journal, "a") as journal:
        journal.write('{"event": "job_finished"}\n')
    Path(run_dir.path, "raw/A1/iops-1/2-c.json.gz").write_bytes(b"\x1f\x8b")
    past = os.stat(first.path).st_mtime_ns - 86400 * 10**9
    for path in (run_dir.journal, run_dir.path + "/raw/A1/iops-1/2-c.json.gz"):
        os.utime(path, ns=(past, past))
    assert "raw/A1/iops-1/2-c.json.gz" in names(archive.pack(run_dir))


@pytest.mark.parametrize("damage", [b"", b"\x1f\x8b", b"not an archive at all"])
def test_an_archive_that_is_none_is_made_anew(run_dir, damage):
    first = archive.pack(run_dir)
    Path(first.path).write_bytes(damage)
    assert archive.pack(run_dir) == first


def test_nothing_half_written_stays_when_the_disk_is_full(run_dir):
    """As on a disk that is full: no file may grow beyond the first half of the archive."""
    Path(run_dir.raw("A1"), "random").write_bytes(os.urandom(1 << 20))
    with files_up_to(1 << 19), pytest.raises(OSError):
        archive.pack(run_dir)
    assert os.listdir(run_dir.state_dir) == ["runs"]


@pytest.mark.parametrize(
    ("pid", "idle_s", "stays"),
    [(2**22 + 1, 3600, False), (2**22 + 1, 5, True), (os.getpid(), 3600, True)],
    ids=["gone", "gone just now", "at work"],
)
def test_what_a_killed_pack_left_is_swept(run_dir, pid, idle_s, stays):
    left = Path(run_dir.state_dir) / f".r1.tar.gz.{pid}.abcd_123"
    other = Path(run_dir.state_dir) / ".r1.tar.gz-of-somebody"
    for path in (left, other):
        path.write_bytes(b"half")
        os.utime(path, (time.time() - idle_s,) * 2)
    archive.pack(run_dir)
    assert left.exists() == stays and other.exists()
    assert sorted(path.name for path in Path(run_dir.state_dir).glob("*.tar.gz")) == ["r1.tar.gz"]
