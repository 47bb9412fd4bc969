# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A file system is wiped only where it is the one that was made, and nobody else can have used it."""

from __future__ import annotations

import dataclasses
import hashlib
import os
import shutil
import subprocess
import threading
import types
import uuid

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.core.deadline import Watchdog
from ansible_collections.ssdlab.fleet.plugins.module_utils.core.host import Host
from ansible_collections.ssdlab.fleet.plugins.module_utils.guard import ledger_format, write_counters
from ansible_collections.ssdlab.fleet.plugins.module_utils.job import filesystem_wipe
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.identity import Identity
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.ledger import Written

MIB = 1 << 20
SIZE = 320 * MIB
OURS, OTHER = "0f9c2c0e-6a3a-4a52-9d1b-3c6f0a1d2e4f", "11111111-2222-3333-4444-555555555555"
BEFORE = Written(boot_id="b", diskseq=1, sectors=[800, 0], iostats=True)


class Held:
    """A drive that is a file."""

    def __init__(self, path):
        self.identity = Identity(
            **{"kernel_name": "sda", "path": path, "size_bytes": SIZE, "logical_block_size_bytes": 512}
        )
        self.filesystem = ledger_format.filesystem_note("xfs", OURS, "r")
        self._handle, self.doubted = os.open(path, os.O_RDWR), False

    def descriptor(self):
        return self._handle

    def doubt(self):
        self.doubted = True

    def note_filesystem(self, filesystem):
        self.filesystem = filesystem


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A wipe, the drive, and what the kernel counts of it."""
    path = tmp_path / "drive"
    with open(path, "wb") as out:
        out.truncate(SIZE)
    held = Held(str(path))
    found = types.SimpleNamespace(path=path, held=held, written=BEFORE)
    monkeypatch.setattr(write_counters, "written", lambda _host, _identity: found.written)
    stop = threading.Event()
    station = types.SimpleNamespace(
        held=held, job=types.SimpleNamespace(host=Host(), stop=stop), watchdog=Watchdog(stop)
    )
    found.wipe = filesystem_wipe.Wipe(station, OURS)
    yield found
    os.close(held.descriptor())


def make(place, kind, identifier=OURS):
    named = ["-q", "-F", "-U", identifier] if kind == "ext4" else ["-q", "-f", "-m", f"uuid={identifier}"]
    tool = shutil.which("mkfs." + kind, path="/usr/sbin:/sbin:/usr/bin")
    subprocess.run([tool, *named, str(place.path)], check=True, timeout=120)
    place.wipe.made = True


def digest(place):
    return hashlib.sha256(place.path.read_bytes()).hexdigest()


def wipe(place):
    place.wipe.begin(place.held.descriptor())
    place.wipe.run(str(place.path))


@pytest.mark.parametrize("kind", ["ext4", "xfs"])
def test_nothing_is_left_to_find_also_on_a_drive_that_discards_nothing(place, kind):
    make(place, kind)
    wipe(place)
    assert (place.wipe.reason, place.held.filesystem, place.held.doubted) == ("", None, False)
    found = subprocess.run(["wipefs", "-n", str(place.path)], capture_output=True, text=True, check=True)
    assert found.stdout == "" and uuid.UUID(OURS).bytes not in place.path.read_bytes()[:4096]


def another(place):
    make(place, "xfs", OTHER)


def gone(place):
    with open(place.path, "r+b") as drive:
        drive.write(b"LUKS\xba\xbe\0\1".ljust(4096, b"\0"))


def used(place):
    place.written = dataclasses.replace(place.written, sectors=[808, 0])


def attached_again(place):
    place.written = dataclasses.replace(place.written, diskseq=2)


def not_counted(place):
    place.written = dataclasses.replace(place.written, iostats=False)


def counted_by_no_driver(place):
    place.written = dataclasses.replace(place.written, sectors=[0, 0])


@pytest.mark.parametrize(
    ("meanwhile", "reason"),
    [
        (another, "not the file system that was made"),
        (gone, "no superblock lies there"),
        (used, "somebody wrote to it"),
        (attached_again, "somebody wrote to it"),
        (not_counted, "does not count"),
        (counted_by_no_driver, "does not count"),
    ],
)
def test_what_may_be_somebody_elses_is_left_alone_and_the_ledger_says_why(place, meanwhile, reason):
    make(place, "ext4")
    place.wipe.begin(place.held.descriptor())
    meanwhile(place)
    before = digest(place)
    place.wipe.run(str(place.path))
    assert reason in place.wipe.reason and digest(place) == before and place.held.doubted
    assert place.held.filesystem == dataclasses.replace(
        ledger_format.filesystem_note("xfs", OURS, "r"), reason=place.wipe.reason
    )


def test_a_mkfs_that_was_ended_leaves_nothing_to_wipe_or_somebody_elses(place):
    wipe(place)
    assert (place.wipe.reason, place.held.filesystem) == ("", None)
    gone(place)
    before = digest(place)
    wipe(place)
    assert "crypto_LUKS" in place.wipe.reason and digest(place) == before


def test_what_was_not_unmounted_is_not_touched(place):
    make(place, "ext4")
    before = digest(place)
    place.wipe.run(str(place.path))
    assert place.wipe.reason == "it was not unmounted" and digest(place) == before
