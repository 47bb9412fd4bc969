# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The process of a power-cut test that writes to the drive until its power goes, or that reads it back afterwards
(power_cut_process.py is the other end). A process of its own, as all drives of a host are
worked on by one, whose GIL they would share; and it imports the few modules that it needs from where its parent has
them.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import json
import mmap
import os
import struct
import sys
import threading
import time
import typing as t
from array import array

from ..core import aio
from ..core.files import sync_folder
from ..records.base import to_json
from . import power_cut_log, power_cut_pattern
from .block_pattern import BLOCK_BYTES
from .power_cut_check import UNKNOWN, WINDOW, Atomicity, Checker, History, is_blank
from .power_cut_log import BLANKED, DONE, FLUSHED, LogWriter
from .power_cut_pattern import (
    FILL_CYCLE,
    FLUSH,
    MOST_BLOCKS,
    MOST_NUMBER,
    THREADS,
    TRIM,
    Layout,
    Operation,
    Stream,
    Tags,
    make_generation,
)

# _IO(0x12, 119) of linux/fs.h
BLKDISCARD = 0x1277
_BUFFER_BYTES = MOST_BLOCKS * BLOCK_BYTES
# Blocks that are read at once.
_READ_BLOCKS = 256
_PROGRESS_S = 0.5
_NO_TRIM = (errno.EOPNOTSUPP, errno.ENOTTY, errno.EINVAL)


class FailedIO(Exception):
    """The drive, or the log's, did not do something."""

    def __init__(self, what: str, offset: int, error: OSError) -> None:
        super().__init__(what)
        self.told = {"failed": what, "offset": offset, "errno": error.errno}


class Device:
    """I/O of one thread to the drive, past the page cache. handle: open with O_DIRECT."""

    def __init__(self, handle: int) -> None:
        self._handle = handle
        self._memory = mmap.mmap(-1, _BUFFER_BYTES)  # aligned, as O_DIRECT asks for
        self.buffer = memoryview(self._memory)
        # A write by pwritev2(2) with RWF_DSYNC is followed by a flush, which would hide that FUA is ignored.
        self._context = aio.setup(1)
        self._address = ctypes.addressof((ctypes.c_char * _BUFFER_BYTES).from_buffer(self._memory))
        self._control = ctypes.create_string_buffer(aio.IOCB.size)
        self._event = ctypes.create_string_buffer(aio.EVENT.size)
        self._pointer = (ctypes.c_void_p * 1)(ctypes.addressof(self._control))

    def write(self, offset: int, length: int, has_fua: bool) -> None:
        """Write what the buffer holds; with FUA, without a flush. Raises OSError."""
        if not has_fua:
            done = os.pwritev(self._handle, [self.buffer[:length]], offset)
        elif self._context is None:
            done = os.pwritev(self._handle, [self.buffer[:length]], offset, os.RWF_DSYNC)
        else:
            done = self._write_fua(offset, length)
        if done != length:
            raise OSError(errno.EIO, "short write")

    def _write_fua(self, offset: int, length: int) -> int:
        fields = (0, 0, aio.RWF_DSYNC, aio.PWRITE, 0, self._handle, self._address, length, offset, 0, 0, 0)
        aio.IOCB.pack_into(self._control, 0, *fields)
        aio.syscall(aio.SUBMIT, self._context, 1, self._pointer)
        aio.syscall(aio.GETEVENTS, self._context, 1, 1, self._event, None)
        done = aio.EVENT.unpack(self._event.raw)[2]
        if done < 0:
            raise OSError(-done, os.strerror(-done))
        return int(done)

    def trim(self, offset: int, length: int) -> bool:
        """Deallocate blocks, if the drive can; return whether they read as blank then. Raises OSError."""
        try:
            fcntl.ioctl(self._handle, BLKDISCARD, struct.pack("<QQ", offset, length))
        except OSError as error:
            if error.errno in _NO_TRIM:
                return False
            raise
        done = os.preadv(self._handle, [self.buffer[:length]], offset)
        return done == length and is_blank(bytes(self.buffer[:length]))

    def flush(self) -> None:
        """Have the kernel send a flush. Raises OSError."""
        os.fdatasync(self._handle)


class Writers:
    """The threads of one cycle. most_s: after so long they stay idle, so that a drive whose power does not go is not
    worn out.
    """

    def __init__(self, handle: int, stream: Stream, tags: Tags, log: LogWriter, most_s: float) -> None:
        self._handle, self._stream, self._tags, self._log = handle, stream, tags, log
        self._ends_s = time.monotonic() + most_s
        self.failed: FailedIO | None = None

    def run(self) -> None:
        """Write until something fails, or nobody goes on."""
        threads = [
            threading.Thread(target=self._guarded, args=(self._work, number), daemon=True) for number in range(THREADS)
        ]
        threads.append(threading.Thread(target=self._guarded, args=(self._keep_log,), daemon=True))
        for thread in threads:
            thread.start()
        while not self._log.over:
            tell(recorded=self._log.synced, idle=time.monotonic() >= self._ends_s)
            time.sleep(_PROGRESS_S)
        for thread in threads:
            thread.join(10 * _PROGRESS_S)
        if self.failed:
            raise self.failed

    def _guarded(self, step: t.Callable[..., None], *arguments: int) -> None:
        try:
            step(*arguments)
        except FailedIO as error:
            self.failed = self.failed or error
            self._log.end()
        except BaseException:
            self._log.end()
            raise

    def _keep_log(self) -> None:
        while not self._log.over:
            try:
                self._log.sync()
            except OSError as error:
                raise FailedIO("log", 0, error) from None

    def _work(self, thread: int) -> None:
        device = Device(self._handle)
        for number in range(MOST_NUMBER):
            while time.monotonic() >= self._ends_s and not self._log.over:
                time.sleep(_PROGRESS_S)
            if self._log.over:
                return
            done = self._stream.operation(thread, number)
            try:
                kind, value = self._perform(device, done, make_generation(self._stream.cycle, thread, number))
            except OSError as error:
                raise FailedIO(done.kind, self._stream.layout.offset(done.block), error) from None
            self._log.add(kind, thread, number if value is None else value)

    def _perform(self, device: Device, done: Operation, generation: int) -> tuple[int, int | None]:
        """Return the kind of the record, and of a flush its value."""
        if done.kind == FLUSH:
            position = self._log.position()
            device.flush()
            return FLUSHED, position
        offset, length = self._stream.layout.offset(done.block), done.blocks * BLOCK_BYTES
        if done.kind == TRIM:
            return (BLANKED if device.trim(offset, length) else DONE), None
        self._tags.fill(device.buffer[:length], generation, offset)
        device.write(offset, length, done.has_fua)
        return DONE, None


def tell(**found: t.Any) -> None:
    """Write a line for the parent."""
    sys.stdout.write(json.dumps(found) + "\n")
    sys.stdout.flush()


def fill(handle: int, layout: Layout, tags: Tags) -> None:
    """Write every block once, and flush. Raises FailedIO."""
    device, number = Device(handle), 0
    told_s = time.monotonic()
    while True:
        done = power_cut_pattern.fill_operation(layout, number)
        if done is None:
            break
        offset, length = layout.offset(done.block), done.blocks * BLOCK_BYTES
        tags.fill(device.buffer[:length], make_generation(FILL_CYCLE, 0, number), offset)
        try:
            device.write(offset, length, False)
        except OSError as error:
            raise FailedIO("write", offset, error) from None
        number += 1
        if time.monotonic() - told_s >= _PROGRESS_S:
            told_s = time.monotonic()
            tell(share=round((done.block + done.blocks) / layout.blocks, 3))
    flush(handle)


def flush(handle: int) -> None:
    """Flush the drive. Raises FailedIO."""
    try:
        os.fdatasync(handle)
    except OSError as error:
        raise FailedIO("flush", 0, error) from None


def check(handle: int, checker: Checker, layout: Layout) -> None:
    """Read every block, and judge it."""
    memory = mmap.mmap(-1, _READ_BLOCKS * BLOCK_BYTES)
    buffer, told_s = memoryview(memory), time.monotonic()
    for first in range(0, layout.blocks, layout.part_blocks):
        for block in range(first, first + layout.part_blocks, _READ_BLOCKS):
            count = min(_READ_BLOCKS, first + layout.part_blocks - block)
            _read_and_judge(handle, checker, buffer, layout, block, count)
            if time.monotonic() - told_s >= _PROGRESS_S:
                told_s = time.monotonic()
                tell(share=round(block / layout.blocks, 3))
    checker.end()


def _read_and_judge(handle: int, checker: Checker, buffer: memoryview, layout: Layout, block: int, count: int) -> None:
    if _read(handle, buffer[: count * BLOCK_BYTES], layout.offset(block)):
        for place in range(count):
            checker.take(block + place, bytes(buffer[place * BLOCK_BYTES : (place + 1) * BLOCK_BYTES]))
        return
    for place in range(count):
        is_read = _read(handle, buffer[:BLOCK_BYTES], layout.offset(block + place))
        checker.take(block + place, bytes(buffer[:BLOCK_BYTES]) if is_read else None)


def _read(handle: int, target: memoryview, offset: int) -> bool:
    try:
        return os.preadv(handle, [target], offset) == len(target)
    except OSError as error:
        if error.errno in (errno.ENODEV, errno.ENXIO):
            raise FailedIO("read", offset, error) from None
        return False


def read_map(path: str, layout: Layout) -> array[int]:
    """Return what each block held before a cycle; unknown where the file is not whole."""
    try:
        with open(path, "rb") as source:
            log = power_cut_log.read(source.read())
    except OSError:
        log = power_cut_log.read(b"")
    found = log.entries
    return found if len(found) == layout.blocks else array("Q", [UNKNOWN]) * layout.blocks


def write_map(path: str, blocks: array[int]) -> None:
    """Keep what each block holds now. Raises FailedIO."""
    aside = path + ".new"
    try:
        with open(aside, "wb") as out:
            out.write(power_cut_log.group(blocks, 0, time.time_ns()))
            out.flush()
            os.fsync(out.fileno())
        os.replace(aside, path)
        sync_folder(os.path.dirname(path))
    except OSError as error:
        raise FailedIO("map", 0, error) from None


def main() -> None:
    """Do what the line of JSON on stdin asks for (power_cut_process.py)."""
    asked = json.loads(sys.stdin.readline())
    if asked["cpus"]:
        os.sched_setaffinity(0, asked["cpus"])
    layout, handle = Layout(asked["active_bytes"]), asked["handle"]
    tags = Tags(asked["key"], asked["drive"], asked["writing"])
    stream = Stream(asked["seed"], asked["cycle"], layout)
    try:
        _STEPS[asked["step"]](asked, handle, stream, tags)
    except FailedIO as error:
        tell(**error.told)


def _fill(asked: t.Mapping[str, t.Any], handle: int, stream: Stream, tags: Tags) -> None:
    fill(handle, stream.layout, tags)
    write_map(asked["map"], power_cut_pattern.fill_generations(stream.layout))
    tell(end=True)


def _write(asked: t.Mapping[str, t.Any], handle: int, stream: Stream, tags: Tags) -> None:
    flush(handle)  # what the cycle before left is to be durable
    try:
        log = os.open(asked["log"], os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        sync_folder(os.path.dirname(asked["log"]))
    except OSError as error:
        raise FailedIO("log", 0, error) from None
    Writers(handle, stream, tags, LogWriter(log, THREADS, WINDOW), asked["most_s"]).run()


def _check(asked: t.Mapping[str, t.Any], handle: int, stream: Stream, tags: Tags) -> None:
    try:
        with open(asked["log"], "rb") as source:
            log = power_cut_log.read(source.read())
    except FileNotFoundError:
        log = power_cut_log.read(b"")
    history = History(stream, log, read_map(asked["map"], stream.layout), asked["reads_are_stable"])
    checker = Checker(history, tags, Atomicity(*asked["atomicity"]), asked["keeps_all"])
    check(handle, checker, stream.layout)
    write_map(asked["next_map"], checker.after)
    tell(
        end=True,
        counts=dict(checker.counts),
        acknowledged=history.acknowledged,
        durable=history.durable,
        last_ns=log.last_ns,
        lost_fua=checker.lost_fua,
        unjudged=checker.unjudged,
        checked=checker.checked,
        records_lost=checker.records_lost,
        by_part=checker.by_part,
        first=to_json(checker.first),
    )


_STEPS = {"fill": _fill, "write": _write, "check": _check}


if __name__ == "__main__":
    main()
