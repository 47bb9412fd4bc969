# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The log of what a drive acknowledged in a cycle of a power-cut test, on a drive that is not under test.

A record is written after the acknowledgement and synced in groups. What is read of it is always true, and maybe not
all: it ends at the first group that is not whole. Each thread's operations are recorded in their order, and all records
in that of their acknowledgements.
"""

from __future__ import annotations

import os
import struct
import threading
import time
import typing as t
import zlib
from array import array

# A write, or a trim of blocks that were not read after it, or read otherwise; a trim after which its blocks were read
# as blank; a flush, with how many records there were when it was sent: only those did it make durable.
DONE, BLANKED, FLUSHED = 0, 1, 2
_HEAD = struct.Struct("<4sIQQI")
_MAGIC = b"SPC1"
_KIND_SHIFT, _THREAD_SHIFT = 62, 56
_VALUE = (1 << _THREAD_SHIFT) - 1
_THREAD = (1 << _KIND_SHIFT - _THREAD_SHIFT) - 1


class Record(t.NamedTuple):
    """One acknowledgement. value: the number of the operation; of a flush how many records were before it was sent."""

    kind: int
    thread: int
    value: int


class Log(t.NamedTuple):
    """What a log holds. last_ns: when its last group was written, by the clock of the host; None: it is empty."""

    entries: array[int]
    last_ns: int | None

    def records(self) -> t.Iterator[Record]:
        """Yield them in their order."""
        return map(parse, self.entries)


def pack(kind: int, thread: int, value: int) -> int:
    """Return a record as its 64 bits."""
    return kind << _KIND_SHIFT | thread << _THREAD_SHIFT | value


def parse(entry: int) -> Record:
    """Return the record of 64 bits."""
    return Record(entry >> _KIND_SHIFT, entry >> _THREAD_SHIFT & _THREAD, entry & _VALUE)


def group(entries: array[int], position: int, now_ns: int) -> bytes:
    """Return the bytes of some records. position: how many were before."""
    body = entries.tobytes()
    head = _HEAD.pack(_MAGIC, 0, position, now_ns, len(entries))
    return _HEAD.pack(_MAGIC, zlib.crc32(head + body), position, now_ns, len(entries)) + body


def read(data: bytes) -> Log:
    """Return what a log holds, as far as it is whole."""
    entries, last_ns, place = array("Q"), None, 0
    while place + _HEAD.size <= len(data):
        magic, crc, position, now_ns, count = _HEAD.unpack_from(data, place)
        body = data[place + _HEAD.size : place + _HEAD.size + 8 * count]
        head = _HEAD.pack(magic, 0, position, now_ns, count)
        if magic != _MAGIC or position != len(entries) or len(body) != 8 * count or crc != zlib.crc32(head + body):
            break
        entries.frombytes(body)
        last_ns, place = now_ns, place + _HEAD.size + len(body)
    return Log(entries, last_ns)


class LogWriter:
    """Takes the records of several threads. window: a thread may be ahead of what is synced by so many operations."""

    def __init__(self, handle: int, threads: int, window: int) -> None:
        self._handle, self._window = handle, window
        self._changed = threading.Condition()
        self._pending = array("Q")
        self._count, self.synced = 0, 0
        self._done, self._synced_done = [0] * threads, [0] * threads
        self.over = False

    def position(self) -> int:
        """Return how many records there are, for a flush that is about to be sent."""
        with self._changed:
            return self._count

    def add(self, kind: int, thread: int, value: int) -> None:
        """Record what was acknowledged, and wait while this thread is too far ahead."""
        with self._changed:
            self._pending.append(pack(kind, thread, value))
            self._count += 1
            self._done[thread] += 1
            if len(self._pending) == 1:
                self._changed.notify_all()
            while not self.over and self._done[thread] - self._synced_done[thread] >= self._window:
                self._changed.wait(0.5)

    def end(self) -> None:
        """Have everybody go on who waits."""
        with self._changed:
            self.over = True
            self._changed.notify_all()

    def sync(self) -> None:
        """Write what is pending, and see that it is on its disk; wait where there is nothing. Raises OSError."""
        with self._changed:
            while not self._pending and not self.over:
                self._changed.wait(0.5)
            entries, self._pending = self._pending, array("Q")
            position, done = self._count - len(entries), list(self._done)
        if not entries:
            return
        data = memoryview(group(entries, position, time.time_ns()))
        while data:
            data = data[os.write(self._handle, data) :]
        os.fdatasync(self._handle)
        with self._changed:
            self.synced, self._synced_done = position + len(entries), done
            self._changed.notify_all()
