# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long fio submitted nothing at a stretch, by a timer in a process of its own (submission_timer.py).

The kernel's counters can't tell: of a guest that is stopped they go on, and its schedstat shows no stolen time.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import sys
import time
import typing as t

from . import submission_timer

# A process that takes longer was itself kept from running: what it would tell is not worth the wait.
ANSWER_S = 2.0


class Submissions(t.NamedTuple):
    """Of the threads of fio that did I/O in one run. threads: how many; longest_s: no gap between two submissions of
    one was longer; span_s: from the first to the last of each at least; waited_s: for how long they together waited for
    a CPU; longest_stop_s: for how long at a stretch the machine ran nothing. None: unknown.
    """

    threads: int = 0
    longest_s: float | None = None
    span_s: float | None = None
    waited_s: float | None = None
    longest_stop_s: float | None = None

    def gap_s(self, threads: int, lasts_s: float) -> float | None:
        """Return the longest time in which one of so many threads, which were to do I/O for so long, submitted nothing,
        ends included. None: unknown.
        """
        if self.threads < threads or self.longest_s is None or self.span_s is None:
            return None
        return max(self.longest_s, lasts_s - self.span_s)


class Monitor:
    """Watches one run of fio after the other. What can't be started, ends or answers late leaves the gap unknown."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._watches = False

    def begin(self) -> None:
        """Be ready for a fio that is about to start."""
        self.end()
        if self._process is None:
            self._start()

    def watch(self, pid: int) -> None:
        """Watch this fio from now on."""
        self._watches = self._send(f"watch {pid}")

    def end(self) -> Submissions:
        """Of the fio that was watched, once it has ended."""
        watches, self._watches = self._watches, False
        if not watches or not self._send("end"):
            return Submissions()
        line = self._line()
        return Submissions(**json.loads(line)) if line else Submissions()

    def close(self) -> None:
        """End the process; the next run starts another."""
        process, self._process, self._watches = self._process, None, False
        if process is None:
            return
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            with contextlib.suppress(OSError):  # what was never flushed
                t.cast("t.IO[bytes]", pipe).close()

    def _start(self) -> None:
        source = t.cast("t.Any", submission_timer.__loader__).get_source(submission_timer.__name__)
        with contextlib.suppress(OSError):
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", source],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                cwd="/",
            )
            self._line()

    def _send(self, text: str) -> bool:
        if self._process is None:
            return False
        pipe = t.cast("t.IO[bytes]", self._process.stdin)
        try:
            pipe.write(text.encode() + b"\n")
            pipe.flush()
        except OSError:
            self.close()
            return False
        return True

    def _line(self) -> str:
        """Return the next line; "" where none came in time, and the process is ended then."""
        pipe = t.cast("t.IO[bytes]", t.cast("subprocess.Popen[bytes]", self._process).stdout).fileno()
        until_s, line = time.monotonic() + ANSWER_S, b""
        while not line.endswith(b"\n"):
            ready = select.select([pipe], [], [], max(0.0, until_s - time.monotonic()))[0]
            part = os.read(pipe, 4096) if ready else b""
            if not part:
                self.close()
                return ""
            line += part
        return line.decode()
