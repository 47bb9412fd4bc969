# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import errno
import os
import struct
import termios
import threading
import time

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.core.host import Host
from ansible_collections.ssdlab.fleet.plugins.module_utils.measure import kernel_log_reader
from ansible_collections.ssdlab.fleet.plugins.module_utils.measure.kernel_log_reader import KernelLogReader
from ansible_collections.ssdlab.fleet.tests.fixtures import kmsg

RESET = "nvme nvme0: resetting controller"


def kinds(reader):
    return [event.kind for event in reader.events()]


def test_only_what_comes_after_its_start(fake):
    fake.put("/dev/kmsg", kmsg.record(RESET))
    with KernelLogReader(fake) as reader:
        assert (reader.missing, reader.position(), kinds(reader)) == ("", 0, [])
        kmsg.log(
            fake, "nvme nvme0: 8/0/0 default/read/poll queues", "nvme nvme0: I/O 1 QID 1 timeout, reset controller"
        )
        assert kinds(reader) == ["timeout", "reset"]
        assert reader.position() == 2
    assert (kinds(reader), reader.losses) == (["timeout", "reset"], False)


@pytest.mark.parametrize("error", [errno.ENOENT, errno.EPERM, errno.EACCES])
def test_a_log_that_may_not_be_read_is_unknown(fake, error):
    class Kept(Host):
        def open(self, path, flags):
            raise OSError(error, os.strerror(error), path)

    with KernelLogReader(Kept(fake.root)) as reader:
        reader.keep_off([0])
        assert (reader.missing, reader.position()) == (f"/dev/kmsg cannot be read: {os.strerror(error)}", 0)


class Scripted(Host):
    """A pipe in place of the log, whose reads are scripted: the kernel's answers are one record, or an error."""

    def __init__(self, root, monkeypatch, answers):
        super().__init__(root)
        self.answers, self.real = list(answers), os.read
        monkeypatch.setattr(kernel_log_reader.os, "read", self._read)

    def open(self, path, flags):
        self.handle = os.open(self.path("/log"), os.O_RDONLY | os.O_CREAT)
        return self.handle

    def _read(self, handle, length):
        if handle != self.handle:
            return self.real(handle, length)
        if not self.answers:
            raise BlockingIOError(errno.EAGAIN, "nothing")
        answer = self.answers.pop(0)
        if isinstance(answer, int):
            raise OSError(answer, os.strerror(answer))
        return answer


@pytest.mark.parametrize(
    "answers, found, lost, missing",
    [
        ([kmsg.record(RESET), kmsg.record(RESET)], 2, False, ""),
        # Overrun: the records behind it are read all the same.
        ([kmsg.record(RESET), errno.EPIPE, kmsg.record(RESET)], 2, True, ""),
        (
            [kmsg.record(RESET), errno.EIO, kmsg.record(RESET)],
            1,
            False,
            "/dev/kmsg can no longer be read: Input/output error",
        ),
    ],
)
def test_what_reads_give(tmp_path, monkeypatch, answers, found, lost, missing):
    with KernelLogReader(Scripted(str(tmp_path), monkeypatch, answers)) as reader:
        assert len(reader.events()) == found
        assert (reader.losses, reader.missing) == (lost, missing)


def test_a_storm_is_bounded(fake, monkeypatch):
    monkeypatch.setattr(kernel_log_reader, "MOST_EVENTS", 3)
    fake.put("/dev/kmsg", "")
    with KernelLogReader(fake) as reader:
        kmsg.log(fake, *[RESET] * 3)
        assert (reader.position(), reader.losses) == (3, False)
        kmsg.log(fake, RESET)
        assert (reader.position(), reader.losses) == (3, True)


def test_evidence_fills_no_room_of_faults(fake, monkeypatch):
    monkeypatch.setattr(kernel_log_reader, "MOST_EVENTS", 3)
    monkeypatch.setattr(kernel_log_reader, "MOST_EVIDENCE", 2)
    fake.put("/dev/kmsg", "")
    with KernelLogReader(fake) as reader:
        kmsg.log(fake, *["I/O error, dev sdz, sector 8", "critical medium error, dev sdy, sector 8"] * 10)
        kmsg.log(fake, *[RESET] * 3)
        assert (kinds(reader), reader.losses) == (["io_error", "medium_error"] * 2 + ["reset"] * 3, 0)


def test_its_thread_sleeps_until_something_is_logged_and_reads_it_then(fake):
    os.makedirs(os.path.dirname(fake.path("/dev/kmsg")), exist_ok=True)
    os.mkfifo(fake.path("/dev/kmsg"))

    class Unsought(Host):
        def open(self, path, flags):
            self.handle = os.open(self.path(path), os.O_RDWR | os.O_NONBLOCK)
            return self.handle

        def waiting(self):
            return struct.unpack("i", self.ioctl(self.handle, termios.FIONREAD, b"\0" * 4))[0]

    threads = threading.active_count()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernel_log_reader.os, "lseek", lambda *_: 0)  # a pipe has no end
        host = Unsought(fake.root)
        with KernelLogReader(host) as reader:
            usable = sorted(os.sched_getaffinity(0))
            reader.keep_off(usable[:1])
            (thread,) = [each for each in threading.enumerate() if each.name == "kernel's log"]
            assert os.sched_getaffinity(thread.native_id) == set(usable[:1])
            assert os.sched_getaffinity(0) == set(usable)
            kmsg.log(fake, RESET)
            deadline = time.monotonic() + 60
            while host.waiting() and time.monotonic() < deadline:
                time.sleep(0.01)
            assert host.waiting() == 0
            assert kinds(reader) == ["reset"]
    assert threading.active_count() == threads
