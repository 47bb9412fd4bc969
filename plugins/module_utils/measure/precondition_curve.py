# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A fill as the kernel saw it: what was written when, its rate for each 1 %, and whether it was all that was asked.

The kernel's count is not fio's word: a fill that says it wrote all and wrote half is found out by it.
"""

from __future__ import annotations

import threading
import time
import typing as t

from ..records.measurement import FillCurveDetails

# Points of the curve: 1 % of the ActiveRange each, and no more than this for a fill of many passes.
STEPS_A_PASS = 100
MOST_STEPS = 1000
# The count is read often at first, as nobody knows yet how long a fill takes, and at most once a second: 1 % is then 4
# looks and more.
LOOKS_A_FILL = 400
SHORTEST_S = 0.01
LONGEST_S = 1.0
# A step ends where its bytes were written, but for the rounding of floats.
ROUNDING = 1e-12
# A fill that writes nothing for so long is stuck.
STUCK_S = 600.0

Sample = t.Tuple[float, int]
Read = t.Callable[[], t.Optional[int]]


class Short(Exception):
    """The kernel counted fewer bytes than were asked: the message says how many."""


class Stuck(Exception):
    """The kernel has counted nothing for STUCK_S."""


class Progress:
    """How much of a fill is done. read: None where the kernel does not count; total: the bytes to write."""

    def __init__(self, read: Read, total: int, clock: t.Callable[[], float] = time.monotonic) -> None:
        self._read, self._total, self._clock = read, total, clock
        self._before = self._seen = read()
        self._seen_s = clock()

    def share(self) -> float | None:
        """Return the share done, at most 1. Raises Stuck."""
        written, now_s = self._read(), self._clock()
        if written is None or self._before is None:
            return None
        if written != self._seen:
            self._seen, self._seen_s = written, now_s
        elif now_s - self._seen_s > STUCK_S:
            raise Stuck(f"nothing was written for {STUCK_S:g} s: the drive hangs")
        return min(1.0, (written - self._before) / self._total)


class Recorder:
    """Reads the kernel's count of bytes written from `with` to its end, in a thread of its own. read: None where it
    does not count.
    """

    def __init__(self, read: Read, clock: t.Callable[[], float] = time.monotonic) -> None:
        self._read = read
        self._clock = clock
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._samples: list[Sample] = []

    def __enter__(self) -> Recorder:
        if self._look():
            self._thread = threading.Thread(target=self._run, daemon=True)
            self._thread.start()
        return self

    def __exit__(self, *_exception: object) -> None:
        if self._thread is not None:
            self._stop.set()
            self._thread.join(LONGEST_S * 2)
            if not self._look():
                self._samples.clear()

    def _run(self) -> None:
        while not self._stop.wait(
            min(LONGEST_S, max(SHORTEST_S, (self._samples[-1][0] - self._samples[0][0]) / LOOKS_A_FILL))
        ):
            if not self._look():
                return

    def _look(self) -> bool:
        try:
            written = self._read()
        except (OSError, ValueError, IndexError):
            return False
        if written is not None:
            self._samples.append((self._clock(), written))
        return written is not None

    @property
    def written(self) -> int | None:
        """Bytes that the kernel counted; None where it does not count: it says so, or it never counted anything of this
        drive.
        """
        if len(self._samples) < 2 or not self._samples[-1][1]:
            return None
        return self._samples[-1][1] - self._samples[0][1]

    def curve(self, size_bytes: int, passes: int) -> FillCurveDetails | None:
        """Return how fast `passes` over `size_bytes` were; None where the kernel does not count."""
        if not self.written or self.written < size_bytes * passes / STEPS_A_PASS:
            return None
        steps = min(MOST_STEPS, STEPS_A_PASS * passes)
        step_bytes = size_bytes * passes / steps
        return FillCurveDetails(step_bytes, len(self._samples), rates(self._samples, step_bytes, steps))


def rates(samples: t.Sequence[Sample], step_bytes: float, steps: int) -> list[float]:
    """Bytes per second for each of so many steps, as far as they were written; between two samples the rate is taken as
    even.

    samples: (seconds, bytes written so far), in order.
    """
    start = samples[0][1]
    times, wanted = [samples[0][0]], step_bytes
    for (time_s, written), (later_s, more) in zip(samples, samples[1:]):
        while len(times) <= steps and more > written and wanted * (1 - ROUNDING) <= more - start:
            times.append(time_s + (later_s - time_s) * (wanted - (written - start)) / (more - written))
            wanted = step_bytes * len(times)
    return [step_bytes / max(after - before, 1e-9) for before, after in zip(times, times[1:])]


def check(written: int | None, asked: int) -> None:
    """Raise Short where the kernel's count of a fill is less than was asked. What it does not count is unknown, and is
    told as that.
    """
    if written is not None and written < asked:
        text = (
            "the kernel counted only {0:,} of {1:,} bytes ({2:.1%}) of the fill, regardless of fio's result: the drive "
            "is not preconditioned"
        )
        raise Short(text.format(written, asked, written / asked))
