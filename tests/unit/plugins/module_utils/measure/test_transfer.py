# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Passes over a file, by the real process."""

from __future__ import annotations

import errno
import json
import os
import signal
import threading
from pathlib import Path

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.core.deadline import Hangs
from ansible_collections.ssdlab.fleet.plugins.module_utils.measure import block_pattern, fio, transfer
from ansible_collections.ssdlab.fleet.plugins.module_utils.measure.block_pattern import BLOCK_BYTES, Pattern

PATTERN = Pattern("key", 1, 2)
# No whole number of chunks, nor of blocks.
SIZE = (3 << 20) + 3 * 512


@pytest.fixture
def drive(tmp_path):
    """A file in place of a drive, and its descriptor."""
    handle = os.open(tmp_path / "drive", os.O_RDWR | os.O_CREAT)
    os.truncate(handle, SIZE)
    yield handle
    os.close(handle)


def a_pass(handle, **more):
    return transfer.Pass(**{**dict(handle=handle, size_bytes=SIZE, pattern=PATTERN, scattered=False), **more})


def run(handle, writes, most_wrong=100, stop=None, tick=lambda share: None, **more):
    """(what it came to, wrong blocks in their order)."""
    found = []
    asked = a_pass(handle, writes=writes, most_wrong=most_wrong, **more)
    done = transfer.run(asked, stop or threading.Event(), tick, found.append)
    return done, sorted(found)


@pytest.mark.parametrize("scattered", [False, True])
def test_what_is_written_is_read_back(drive, scattered):
    shares = []
    done, wrong = run(drive, True, scattered=scattered, tick=shares.append)
    assert done.complete and done.bytes == SIZE and not wrong and shares[-1] == 1
    assert os.pread(drive, 1 << 20, 0) == PATTERN.data(0, 1 << 20)
    done, wrong = run(drive, False, scattered=scattered)
    assert done.complete and done.bytes == SIZE and not wrong


@pytest.mark.parametrize("offset", [0, 4095, 1 << 20, SIZE - 1])
def test_a_single_changed_byte_is_found(drive, offset):
    run(drive, True)
    byte = os.pread(drive, 1, offset)[0] ^ 4
    os.pwrite(drive, bytes([byte]), offset)
    done, wrong = run(drive, False)
    begin = offset // BLOCK_BYTES * BLOCK_BYTES
    assert done.complete and [block.offset for block in wrong] == [begin]
    assert wrong[0].found == os.pread(drive, BLOCK_BYTES, begin)


def test_reading_ends_after_too_many_wrong_blocks(drive):
    done, wrong = run(drive, False, most_wrong=5)
    assert not done.complete and len(wrong) == 5


def test_what_can_t_be_read_is_told_by_its_block(drive):
    """A file that ends early in place of a drive with a medium error: reads are short."""
    run(drive, True)
    os.truncate(drive, 2 << 20)
    done, wrong = run(drive, False, most_wrong=1000, most_unreadable=1000)
    blocks = -(-SIZE // BLOCK_BYTES) - (2 << 20) // BLOCK_BYTES
    assert done.complete and len(wrong) == blocks
    assert {block.found for block in wrong} == {None}


def test_a_read_that_failed_once_is_told_though_all_its_blocks_can_be_read(drive, monkeypatch, capsys):
    run(drive, True)
    preadv, failed = os.preadv, []

    def fails_once(handle, buffers, offset):
        if len(buffers[0]) > BLOCK_BYTES and not failed:
            failed.append(offset)
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return preadv(handle, buffers, offset)

    monkeypatch.setattr(os, "preadv", fails_once)
    asked = {**a_pass(drive, writes=False, most_wrong=5)._asdict(), "most_unreadable": 5}
    block_pattern.Transfer(asked, PATTERN).run(False)
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line for line in told if "wrong" in line] == [{"wrong": failed[0], "found": "", "errno": errno.EIO}]
    assert told[-1]["end"]


def test_a_drive_that_takes_no_write_is_an_error_of_its_own():
    handle = os.open("/dev/full", os.O_RDWR)
    try:
        with pytest.raises(fio.DriveError, match="did not do a write at byte .*: No space left on device"):
            run(handle, True)
    finally:
        os.close(handle)


def test_a_process_that_can_t_begin_is_no_fault_of_the_drive(drive):
    with pytest.raises(fio.FioError, match="ended with exit code 1: ") as caught:
        run(drive, True, cpus=[99999])
    assert caught.type is fio.FioError


def test_a_stop_ends_it(drive):
    stop = threading.Event()
    stop.set()
    with pytest.raises(fio.Interrupted):
        run(drive, True, stop=stop)


def child():
    """The process that this thread started."""
    return int(Path(f"/proc/self/task/{threading.get_native_id()}/children").read_text().split()[0])


def test_a_process_that_somebody_ends_is_no_fault_of_the_drive(drive):
    asked = a_pass(drive, writes=False, most_wrong=10_000)
    with pytest.raises(fio.Killed, match="was killed by signal 9"):
        transfer.run(asked, threading.Event(), int, lambda _wrong: os.kill(child(), signal.SIGKILL))


def test_a_stop_between_two_blocks_leaves_no_process_behind(drive):
    stop, seen = threading.Event(), []

    def wrong(_block):
        seen.append(child())
        stop.set()

    with pytest.raises(fio.Interrupted):
        transfer.run(a_pass(drive, writes=False, most_wrong=10_000), stop, int, wrong)
    assert not os.path.exists(f"/proc/{seen[0]}")


def test_a_process_that_nothing_ends_is_left_behind(drive, monkeypatch):
    """One that is stopped in place of one that waits in the kernel."""

    def end(process):
        ended.append(process)
        raise Hangs("SIGKILL does not end it")

    def wrong(_block):
        os.kill(child(), signal.SIGSTOP)
        stop.set()

    def run_it():
        try:
            transfer.run(a_pass(drive, writes=False, most_wrong=10_000), stop, int, wrong)
        except Hangs as error:
            caught.append(error)

    monkeypatch.setattr(transfer, "end_process", end)
    stop, ended, caught = threading.Event(), [], []
    thread = threading.Thread(target=run_it, daemon=True)
    thread.start()
    try:
        thread.join(20)
        assert not thread.is_alive() and len(caught) == 1 and ended[0].stdout.closed
    finally:
        ended[0].kill()
        ended[0].wait()
        ended[0].stderr.close()


def test_a_drive_that_does_nothing_for_too_long_hangs(drive):
    with pytest.raises(fio.DriveError, match="the drive did no I/O for 0 s: it hangs"):
        transfer.run(a_pass(drive, writes=True, most_wrong=1), threading.Event(), int, print, silent_s=0)


def test_it_writes_what_is_held_open_and_not_what_bears_its_name(tmp_path, drive):
    (tmp_path / "drive").rename(tmp_path / "moved")
    (tmp_path / "drive").write_bytes(bytes(SIZE))
    assert run(drive, True)[0].complete
    assert (tmp_path / "drive").read_bytes() == bytes(SIZE)
    assert (tmp_path / "moved").read_bytes()[: 1 << 20] == PATTERN.data(0, 1 << 20)
