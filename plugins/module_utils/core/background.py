# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Work that a measurement need not wait for: done in order, in a thread beside it, so that the drive does not idle."""

from __future__ import annotations

import collections
import contextlib
import os
import threading
import typing as t

# So many steps wait at most: a disk that can't keep up slows the measurement down, and a killed job loses no more.
MOST_WAITING = 64

Step = t.Callable[[], object]


def at_once(step: Step) -> None:
    """Do a step here and now, for who has nothing to do beside it."""
    step()


class Background:
    """Steps, done one after the other in the order given. The thread lives as long as there are any: nobody ends it.

    What a step raises is raised by the next `submit` or `flush`; the steps behind it are dropped, so that what they
    write has no gap.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        # Guards all of the fields below, and wakes who waits for them.
        self._changed = threading.Condition()
        self._steps: collections.deque[Step] = collections.deque()
        self._works = False
        self._error: BaseException | None = None
        # The CPUs that the thread may use; empty: all of this process.
        self.cpus: t.Collection[int] = ()

    def submit(self, step: Step) -> None:
        """Have a step done after those before it. Raises what one of these raised."""
        if self._error is not None:
            self.flush()
        self.put(step)

    def put(self, step: Step) -> None:
        """Have a step done, for a thread that can do nothing about an error: its own, or one before, is not raised
        here.
        """
        with self._changed:
            self._changed.wait_for(lambda: len(self._steps) < MOST_WAITING)
            self._steps.append(step)
            if not self._works:
                threading.Thread(target=self._work, name=self._name, daemon=True).start()
                self._works = True

    def flush(self) -> None:
        """Wait until all steps are done. Raises what one of them raised, once."""
        with self._changed:
            self._changed.wait_for(lambda: not self._works)
            error, self._error = self._error, None
        if error is not None:
            raise error

    def _work(self) -> None:
        if self.cpus:
            with contextlib.suppress(OSError):  # a CPU that has gone since
                os.sched_setaffinity(0, self.cpus)
        while True:
            with self._changed:
                if not self._steps:
                    self._works = False
                    self._changed.notify_all()
                    return
                step = self._steps.popleft()
                self._changed.notify_all()
            if self._error is None:
                try:
                    step()
                except BaseException as error:  # handed over to the thread that submits
                    self._error = error
