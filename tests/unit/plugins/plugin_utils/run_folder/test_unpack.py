# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import hashlib
import io
import os
import shutil
import tarfile
import time

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.core import files
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.run_folder import unpack


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "raw" / "h1").mkdir(parents=True)
    (tmp_path / "raw" / "h1" / "old").write_text("as it was")
    (tmp_path / "raw" / ".aside").mkdir()
    return tmp_path / "raw" / "h1"


def put(folder, entries):
    """An archive with these files, and its checksum."""
    path = folder.parent / ".aside" / "archive.tar.gz"
    with tarfile.open(path, "w:gz") as tar:
        for name, content in entries.items():
            info = tarfile.TarInfo(name)
            if isinstance(content, str):
                info.type, info.linkname, content = tarfile.SYMTYPE, content, b""
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return str(path), hashlib.sha256(path.read_bytes()).hexdigest()


def test_the_folder_becomes_what_the_archive_holds(folder):
    path, sha256 = put(folder, {"journal.jsonl": b"{}", "raw/A1/x.json.gz": b"z"})
    assert not unpack.is_current(str(folder), sha256)
    unpack.replace(str(folder), path, sha256)
    assert (folder / "raw/A1/x.json.gz").read_bytes() == b"z" and not (folder / "old").exists()
    assert unpack.is_current(str(folder), sha256) and not unpack.is_current(str(folder), "other")


@pytest.mark.parametrize("harm", ["changed", "cut", "lost", "more"])
def test_what_was_damaged_on_the_controller_since_is_mended_by_the_next_collect(folder, harm):
    path, sha256 = put(folder, {"journal.jsonl": b"{}", "raw/A1/x.json.gz": b"zzz"})
    unpack.replace(str(folder), path, sha256)
    assert unpack.is_current(str(folder), sha256)
    raw = folder / "raw/A1/x.json.gz"
    {
        "changed": lambda: raw.write_bytes(b"zyz"),
        "cut": lambda: raw.write_bytes(b"z"),
        "lost": raw.unlink,
        "more": lambda: (folder / "raw/A1/y").write_bytes(b""),
    }[harm]()
    assert not unpack.is_current(str(folder), sha256)


@pytest.mark.parametrize(
    "entries",
    [{"../escaped": b"x"}, {"link": "/etc/passwd"}, {"link": "../../.."}, {"link": "/tmp", "link/x": b"x"}],
    ids=["up", "link", "relative", "through"],
)
def test_an_archive_that_reaches_out_changes_nothing(folder, entries):
    path, sha256 = put(folder, entries)
    with pytest.raises(unpack.UnpackError, match="cannot be unpacked"):
        unpack.replace(str(folder), path, sha256)
    assert (folder / "old").read_text() == "as it was"
    assert not (folder.parent / "escaped").exists()


def test_a_damaged_archive_changes_nothing(folder):
    path, sha256 = put(folder, {"a": b"x" * 1000})
    with pytest.raises(unpack.UnpackError, match="damaged on its way"):
        unpack.replace(str(folder), path, "0" * 64)
    data = open(path, "rb").read()[:-20]
    open(path, "wb").write(data)
    with pytest.raises(unpack.UnpackError, match="cannot be unpacked"):
        unpack.replace(str(folder), path, hashlib.sha256(data).hexdigest())
    assert (folder / "old").read_text() == "as it was"


def aside_of(folder, pid, idle_s):
    """The temporary folder of a collect that was killed so long ago."""
    made = folder.parent / f".{unpack.aside_name(str(folder))}.{pid}.abc_123"
    made.mkdir()
    (made / "archive.tar.gz").write_bytes(b"half")
    for path in (made / "archive.tar.gz", made):
        os.utime(path, (time.time() - idle_s,) * 2)
    return made


GONE = 2**22 + 1


@pytest.mark.parametrize(
    ("pid", "idle_s", "stays"),
    # Its process is gone; perhaps it is one of another container; it works; the number is another process by now.
    [(GONE, 3600, False), (GONE, 5, True), (os.getpid(), 3600, True), (os.getpid(), 2 * 86400, False)],
    ids=["gone", "elsewhere", "at work", "another process"],
)
def test_what_a_killed_collect_left_is_swept(folder, pid, idle_s, stays):
    made = aside_of(folder, pid, idle_s)
    other = aside_of(
        folder.parent / "h2", GONE, 3600
    )  # Another host's: its own collect sees to it, under its own lock.
    unpack.sweep(str(folder))
    assert (folder.parent / ".aside").exists()
    assert made.exists() == stays and other.exists() and (folder / "old").exists()


@pytest.mark.parametrize("names", [("unpacked", "before"), ("before",)])
def test_a_kill_between_the_two_renames_loses_nothing(folder, names):
    made = aside_of(folder, GONE, 3600)
    (folder / unpack.MARKER).write_text("sum")
    for name in names:
        shutil.copytree(folder, made / name)
        (made / name / "old").write_text(name)
    for path in (made / "archive.tar.gz", *[made / name for name in names], made):
        os.utime(path, (time.time() - 3600,) * 2)
    shutil.rmtree(folder)
    unpack.sweep(str(folder))
    assert (folder / "old").read_text() == names[0] and not made.exists()


def test_what_killed_collects_of_hosts_left_that_nobody_asks_any_more_is_swept(folder, tmp_path):
    raw = folder.parent
    elsewhere, working = aside_of(raw / "h2", GONE, 3600), aside_of(raw / "h3", os.getpid(), 3600)
    unknown, old, torn = (
        aside_of(raw / "never asked", GONE, 3600),
        aside_of(raw / "h4", GONE, 3600),
        aside_of(raw / "h5", GONE, 3600),
    )
    for made in (old, unknown):
        shutil.copytree(folder, made / "before")
        (made / "before" / unpack.MARKER).write_text("sum")
        for path in (made / "before", made):
            os.utime(path, (time.time() - 3600,) * 2)
    unpack.sweep_all(str(raw), ["h2", "h3", "h4", "../h6"], str(tmp_path / "locks"))
    assert (
        not elsewhere.exists()
        and not torn.exists()
        and working.exists()
        and (raw / ".aside").exists()
        and (folder / "old").exists()
    )
    # What a kill between two renames left is put back; of whom nobody knows it stays, as it is the only one.
    assert (raw / "h4" / "old").exists() and not old.exists() and unknown.exists()
    unpack.sweep_all(str(tmp_path / "absent"), [], str(tmp_path / "locks"))


def test_the_longest_name_of_a_host_has_a_name_aside(folder):
    long = str(folder.parent / ("x" * 255))
    assert len(files.aside_prefix(unpack.aside_name(long))) < 60
