# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The process that submissions.Monitor starts: a timer that notes how late it sees each thread of fio submit again.

It is run as a text by `python -c`, so it imports the standard library alone. A process of its own, as an engine that
parses JSON keeps the GIL. It answers `ready`, then reads lines: `watch PID`, and `end`, to which it answers a line of
JSON (`Threads.found`).

The kernel counts the bytes of each thread as they are submitted (/proc/PID/task/TID/io). Between the last reading at
which that count had not grown yet and the first at which it has grown again lies all of the time in which the thread
submitted nothing, whatever kept it: a stolen or busy CPU, a quota, the drive. A machine that is stopped stops this
process too, so that its own readings lie as far apart. So no gap is longer than the longest of these times.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import sys
import time

# A reading costs 20 to 60 µs in a small virtual machine, so about 1 % of one CPU; 10 µs more for each thread.
READ_S, READ_OF_EACH_S = 0.004, 0.001
# fio starts its threads at once. What they waited for a CPU is a sum, which is read now and then.
NEW_S, LATER_S = 1.0, 0.05
# How often it checks that its parent lives: a child of the parent may have inherited the pipe that would tell.
ALIVE_S = 1.0
# A reading that comes so much later than it was due: nothing ran meanwhile, as this process comes before all others.
STOPPED_S = 1.0
# Stops with less time between them are one: a drive that is well, and has a queue, may not answer in between.
RAN_S = 1.0
BYTES = (b"read_bytes:", b"write_bytes:")
WAITED, RUNS = 1, 2
# The nice value that comes before all others: a timer that waits for a CPU finds gaps too long, never too short.
FIRST = -20


class Thread:
    """One thread. longest_s: no gap between two of its submissions was longer. waited_s: for how long it waited for a
    CPU; None: the kernel does not count.
    """

    def __init__(self, folder: str) -> None:
        self._files = [os.open(f"{folder}/{name}", os.O_RDONLY) for name in ("io", "schedstat")]
        self._read_s, self._bytes = time.monotonic(), 0
        # The reading that showed the first bytes, and the one before that which showed the last so far.
        self._first_s: float | None = None
        self._since_s = self.longest_s = 0.0
        self.waited_s: float | None = None

    @property
    def span_s(self) -> float | None:
        """From its first submission to its last at least; None: it did no I/O, as it only watches over others."""
        return None if self._first_s is None else max(0.0, self._since_s - self._first_s)

    def read(self) -> None:
        """See whether it submitted again. Raises OSError once it has ended."""
        began_s = time.monotonic()
        words = os.pread(self._files[0], 1024, 0).split()
        submitted = sum(int(words[words.index(key) + 1]) for key in BYTES)
        if submitted != self._bytes:
            now_s = time.monotonic()
            if self._first_s is None:
                self._first_s = now_s
            else:
                self.longest_s = max(self.longest_s, now_s - self._since_s)
            self._bytes, self._since_s = submitted, self._read_s
        self._read_s = began_s

    def read_waits(self) -> None:
        """See how long it waited for a CPU so far. Raises OSError once it has ended."""
        fields = [int(field) for field in os.pread(self._files[1], 128, 0).split()]
        # A kernel that does not count tells zeros.
        self.waited_s = fields[WAITED] / 1e9 if fields[RUNS] else None

    def close(self) -> None:
        """It has ended."""
        for file in self._files:
            os.close(file)


class Threads:
    """The threads of a process but its first, which only waits for the others."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._began_s, self._listed_s = time.monotonic(), 0.0
        self._read_s = self._ran_from_s = self._began_s
        self._stop_s = self.longest_stop_s = 0.0
        self._alive: dict[str, Thread] = {}
        self._ended: list[Thread] = []

    @property
    def period_s(self) -> float:
        """How long to wait between two readings."""
        return max(READ_S, READ_OF_EACH_S * len(self._alive))

    def read(self) -> None:
        """Read all of them."""
        now_s = time.monotonic()
        self._see_stop(now_s)
        is_due = now_s - self._began_s < NEW_S or now_s - self._listed_s >= LATER_S
        if is_due:
            self._listed_s = now_s
            self._list()
        for name, thread in list(self._alive.items()):
            try:
                # What did no I/O at first only watches over others.
                if is_due or thread.span_s is not None:
                    thread.read()
                if is_due:
                    thread.read_waits()
            except OSError:
                thread.close()
                self._ended.append(self._alive.pop(name))

    def _see_stop(self, now_s: float) -> None:
        late_s = now_s - self._read_s
        if late_s > self.period_s + STOPPED_S:
            is_another = self._read_s - self._ran_from_s >= RAN_S
            self._stop_s = late_s if is_another else self._stop_s + late_s
            self.longest_stop_s = max(self.longest_stop_s, self._stop_s)
            self._ran_from_s = now_s
        self._read_s = now_s

    def _list(self) -> None:
        base = f"/proc/{self._pid}/task"
        with contextlib.suppress(OSError):  # it has ended
            for name in os.listdir(base):
                if name != str(self._pid) and name not in self._alive:
                    self._alive[name] = Thread(f"{base}/{name}")

    def found(self) -> dict[str, float | None]:
        """Of those that did I/O: how many (threads), longest_s of all, span_s of the shortest, waited_s together.
        longest_stop_s: for how long at a stretch the machine ran nothing.
        """
        for thread in self._alive.values():
            thread.close()
        own = [thread for thread in [*self._ended, *self._alive.values()] if thread.span_s is not None]
        waits = [thread.waited_s for thread in own]
        return {
            "threads": len(own),
            "longest_s": max((thread.longest_s for thread in own), default=None),
            "span_s": min((thread.span_s or 0.0 for thread in own), default=None),
            "longest_stop_s": self.longest_stop_s,
            "waited_s": None if None in waits or not own else sum(waited_s or 0 for waited_s in waits),
        }


def answer(text: str) -> None:
    """Write a line to the parent."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def main() -> None:
    """Read fio's threads, and the parent's lines, until the parent ends."""
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, FIRST)
    parent, rest = os.getppid(), b""
    threads: Threads | None = None
    answer("ready")
    while os.getppid() == parent:
        ready = select.select([0], [], [], threads.period_s if threads else ALIVE_S)[0]
        if threads:
            threads.read()
        if not ready:
            continue
        part = os.read(0, 4096)
        if not part:
            return
        *lines, rest = (rest + part).split(b"\n")
        for line in lines:
            word, _space, pid = line.partition(b" ")
            if word == b"watch":
                threads = Threads(int(pid))
            elif threads:
                answer(json.dumps(threads.found()))
                threads = None


if __name__ == "__main__":
    main()
