# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Work with a drive that may never answer: no signal reaches a process that waits in the kernel for a dead device, so
nobody waits for it for ever.
"""

from __future__ import annotations

import queue
import threading
import time
import typing as t

# A step that takes longer counts as hanging. A flush, or a discard of 1 GiB, may take a drive minutes.
STEP_TIMEOUT_S = 600.0
# What a step gets to end by itself once the job is to stop, beyond what it was granted.
STOP_GRACE_S = 30.0

Value = t.TypeVar("Value")


class Hangs(Exception):
    """A drive, or a process that waits for it, gives no answer; the message says which step. What was begun is left
    behind.
    """


def _begin(what: str, step: t.Callable[[], t.Any]) -> queue.SimpleQueue[tuple[t.Any, BaseException | None]]:
    """Run a step in a thread of its own, which nobody waits for at the end of the process."""
    answers: queue.SimpleQueue[tuple[t.Any, BaseException | None]] = queue.SimpleQueue()

    def run() -> None:
        try:
            answers.put((step(), None))
        except BaseException as error:  # handed over to the thread that waits
            answers.put((None, error))

    threading.Thread(target=run, name=what, daemon=True).start()
    return answers


def within(timeout_s: float, what: str, step: t.Callable[[], Value]) -> Value:
    """Return what `step` returns or raises. Raises Hangs where that takes longer; it is left behind then."""
    try:
        value, error = _begin(what, step).get(timeout=timeout_s)
    except queue.Empty:
        raise Hangs(f"no answer for {timeout_s:g} s in the step {what}") from None
    if error is not None:
        raise error
    found: Value = value
    return found


class Watchdog:
    """Runs short steps that touch a drive. One that does not end in time is abandoned with its thread, which ends when
    the drive answers.

    stop: set when the job is to end; then a step has STOP_GRACE_S left, and what it was granted beyond STEP_TIMEOUT_S,
    unless it heeds the stop itself.
    """

    def __init__(self, stop: threading.Event) -> None:
        self._stop = stop

    def call(
        self,
        what: str,
        step: t.Callable[[], Value],
        longer_s: float = 0.0,
        end: t.Callable[[], object] = lambda: None,
        heeds_stop: bool = False,
    ) -> Value:
        """Return what `step` returns or raises. Raises Hangs, which names `what` was done. longer_s: what it may take
        beyond STEP_TIMEOUT_S. end: ends what the step started, once the job is to stop.
        """
        grace_s = STOP_GRACE_S if heeds_stop else STOP_GRACE_S + longer_s
        began, answers = time.monotonic(), _begin(what, step)
        stopped_at: float | None = None
        while True:
            try:
                value, error = answers.get(timeout=0.5)
                break
            except queue.Empty:
                now_s = time.monotonic()
                if stopped_at is None and self._stop.is_set():
                    stopped_at = now_s
                    end()
                if now_s - began > STEP_TIMEOUT_S + longer_s or (
                    stopped_at is not None and now_s - stopped_at > grace_s
                ):
                    end()
                    text = "the drive hangs: no answer for {0:g} s in the step {1}; look at the kernel's log"
                    raise Hangs(text.format(round(now_s - began), what)) from None
        if error is not None:
            raise error
        found: Value = value
        return found
