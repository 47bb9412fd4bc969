# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is written of a drive: beside the next cell where nothing depends on it, and in order."""

from __future__ import annotations

import errno
import os
import threading
import types

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.job.drive_context import DriveContext, Job
from ansible_collections.ssdlab.fleet.tests.fixtures import planned


class SlowDisk:
    """A journal on a disk that takes nothing until `go`, and no event of the kind `refused`."""

    def __init__(self):
        self.go, self.written, self.refused = threading.Event(), [], ""

    def record(self, event, **fields):
        return {"event": event, **fields}

    def write(self, record):
        assert self.go.wait(60)
        if record["event"] == self.refused:
            raise OSError(errno.ENOSPC, "No space left on device")
        self.written.append(record["event"])

    def set_drive(self, _drive, **fields):
        assert self.go.wait(60)
        self.written.append(fields["cell"])


@pytest.fixture
def disk():
    return SlowDisk()


@pytest.fixture
def station(disk, fake, run_dir):
    nothing = {"hung": {}, "ended": {}, "baselines": {}, "tuned": types.SimpleNamespace()}
    told = {"journal": disk, "status": disk, "run_dir": run_dir, "host": fake, "history": []}
    job = Job(stop=threading.Event(), fio_path="fio", same_boot=True, **told, **nothing)
    return DriveContext(job, planned.drive())


def test_what_only_reads_opens_no_drive_for_writing(station, monkeypatch):
    """udev would start anew what retire.yml took apart, once such a drive is closed."""
    opened = []
    monkeypatch.setattr(station.job.host, "open", lambda _path, flags: opened.append(flags & os.O_ACCMODE))
    for reads_only in (True, False):
        DriveContext(station.job, planned.drive(), reads_only).held._open("/dev/x")
    assert opened == [os.O_RDONLY, os.O_RDWR]


def test_a_cell_waits_for_no_disk_and_what_a_successor_needs_does(station, disk):
    station.show(cell="a")
    station.note("cell")
    station.show(cell="b")
    station.note("round")
    station.note_sample("sample")
    assert disk.written == []
    threading.Timer(0.1, disk.go.set).start()
    station.note("guard")
    assert disk.written == ["a", "cell", "b", "round", "sample", "guard"]


def test_all_is_on_the_disk_before_a_destructive_step(station, disk):
    station.note("cell")
    threading.Timer(0.1, disk.go.set).start()
    station.held.take = lambda: disk.written.append("guarded")
    station.held.bytes_written = lambda: None
    station.guard("purge", phase="purge", cell="c")
    assert disk.written == ["cell", "c", "guarded", "guard"]


@pytest.mark.parametrize("event", ["cell", "guard"])
def test_a_full_disk_is_told_at_the_next_event_and_its_last_words_are_written(station, disk, event):
    disk.go.set()
    disk.refused = event
    with pytest.raises(OSError, match="No space left"):
        station.note(event)
        station.beside.flush()
    station.note("test_finished")
    assert disk.written == ["test_finished"]


def test_no_event_follows_one_that_could_not_be_written(station, disk):
    """Of round 2 without its cell nobody could make a result."""
    disk.refused = "cell"
    station.note("cell")
    station.note("round")
    station.note_sample("sample")
    disk.go.set()
    with pytest.raises(OSError, match="No space left"):
        station.note("test_finished")
    assert disk.written == []
