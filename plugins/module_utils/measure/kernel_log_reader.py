# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads the kernel's log while a host job runs. Its thread sleeps until something is logged."""

from __future__ import annotations

import contextlib
import errno
import os
import select
import threading
import typing as t
from collections import Counter

from ..core.host import Host
from . import kernel_log
from .kernel_log import IO_ERROR, LOST_INTERRUPT, MEDIUM_ERROR, LogEvent

PATH = "/dev/kmsg"
# The kernel gives one record with a read, of 8 KiB at most (CONSOLE_EXT_LOG_MAX).
_READ_BYTES = 16384
# Beyond so many the log storms, and what it counts is a lower bound.
MOST_EVENTS = 100_000
# Of each name: of what is evidence alone, no more are kept, and those that are not are no loss.
MOST_EVIDENCE = 100
EVIDENCE = (IO_ERROR, MEDIUM_ERROR, LOST_INTERRUPT)
# Where a file is always ready and has nothing to read.
_PAUSE_MS = 1000


class KernelLogReader:
    """The events of the kernel's log from `with` on, in its order.

    missing: why it can't be read; "" where it can. losses: how often it told more than was kept, so that counts of that
    time are lower bounds.
    """

    def __init__(self, host: Host) -> None:
        self._host = host
        self._handle: int | None = None
        self._lock = threading.Lock()
        self._events: list[LogEvent] = []
        self._thread: threading.Thread | None = None
        # Whoever writes to it wakes the thread, which ends.
        self._woken, self._waker = -1, -1
        self.missing = "nobody reads the kernel's log"
        self.losses = 0
        self._faults = 0
        self._evidence: Counter[str] = Counter()

    def __enter__(self) -> KernelLogReader:
        try:
            self._handle = self._host.open(PATH, os.O_RDONLY | os.O_NONBLOCK)
            os.lseek(self._handle, 0, os.SEEK_END)
        except OSError as error:
            self.missing = f"{PATH} cannot be read: {error.strerror}"
            self._close()
            return self
        self.missing = ""
        self._woken, self._waker = os.pipe()
        self._thread = threading.Thread(target=self._wait_and_read, name="kernel's log", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_exception: object) -> None:
        if self._thread is not None:
            os.write(self._waker, b".")
            self._thread.join()
            for handle in (self._woken, self._waker):
                os.close(handle)
        self._close()

    def _close(self) -> None:
        with self._lock:
            handle, self._handle = self._handle, None
            if handle is not None:
                os.close(handle)

    def keep_off(self, cpus: t.Collection[int]) -> None:
        """Have it work on other CPUs than fio does. cpus: those that are left; empty: any."""
        if self._thread is not None and self._thread.native_id is not None and cpus:
            with contextlib.suppress(OSError):  # a CPU that has gone since
                os.sched_setaffinity(self._thread.native_id, cpus)

    def position(self) -> int:
        """Read all that is logged by now; how many events there were."""
        self._read()
        return len(self._events)

    def events(self) -> list[LogEvent]:
        """Read all that is logged by now; every event so far."""
        self._read()
        return list(self._events)

    def _wait_and_read(self) -> None:
        poll = select.poll()
        poll.register(self._woken, select.POLLIN)
        poll.register(t.cast(int, self._handle), select.POLLIN)
        stop = select.poll()
        stop.register(self._woken, select.POLLIN)
        while not any(handle == self._woken for handle, _ready in poll.poll()):
            if not self._read() and (self.missing or stop.poll(_PAUSE_MS)):
                return

    def _read(self) -> int:
        """Read until nothing is left; how many reads told something."""
        count = 0
        with self._lock:
            while self._handle is not None and not self.missing:
                try:
                    data = os.read(self._handle, _READ_BYTES)
                except BlockingIOError:
                    break
                except OSError as error:
                    self._take_error(error)
                    continue
                if not data:
                    break
                count += 1
                self._take(data)
        return count

    def _take_error(self, error: OSError) -> None:
        if error.errno == errno.EPIPE:  # older records were overwritten; the next read goes on behind them
            self.losses += 1
        else:
            self.missing = f"{PATH} can no longer be read: {error.strerror}"

    def _take(self, data: bytes) -> None:
        for event in (event for record in kernel_log.records(data) for event in kernel_log.events(record)):
            if event.kind in EVIDENCE:
                self._evidence[event.name] += 1
                is_kept = self._evidence[event.name] <= MOST_EVIDENCE
            else:
                self._faults += 1
                is_kept = self._faults <= MOST_EVENTS
                self.losses += not is_kept
            if is_kept:
                self._events.append(event)
