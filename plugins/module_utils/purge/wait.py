# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The one loop that waits for a purge which goes on in the drive: progress, a watchdog for one that is stuck, a
timeout.
"""

from __future__ import annotations

import time
import typing as t

from ..core.progress import DONE, FAILED, IDLE, RUNNING, Progress, Unreadable

# A drive is asked more seldom the longer it takes: every answer is a command in the log.
SHORTEST_POLL_S, LONGEST_POLL_S, POLL_SHARE = 0.5, 15.0, 0.05
_SLICE_S = 1.0


class Stuck(Exception):
    """The purge stands still, takes too long, or failed; the message says which and what to do."""


def watch(
    read_progress: t.Callable[[], Progress],
    timeout_s: float,
    stuck_s: float,
    tick: t.Callable[[float | None], None],
    clock: t.Callable[[], float] = time.monotonic,
    sleep: t.Callable[[float], None] = time.sleep,
) -> Progress:
    """Wait until a purge is done; its last progress. `tick(share)` is called about once a second and may raise to end
    the wait.

    Raises Stuck: the share (or, where the drive tells none, the state) did not change for stuck_s; timeout_s are over;
    the
    drive says that it failed, or that nothing was started.
    """
    began = moved = clock()
    last: tuple[str, float | None] | None = None
    problem = ""
    while True:
        try:
            progress, problem = read_progress(), ""
        except Unreadable as error:
            progress, problem = None, str(error)
        if progress is not None and progress.state != RUNNING:
            return _ended(progress)
        now = clock()
        if progress is not None and (progress.state, progress.share) != last:
            last, moved = (progress.state, progress.share), now
        _check(now - began, now - moved, timeout_s, stuck_s, last, problem)
        pause(now - began, tick, last[1] if last else None, sleep)


def _ended(progress: Progress) -> Progress:
    if progress.state == DONE:
        return progress
    words = {IDLE: "the drive says that no purge was started", FAILED: "the drive says that the purge failed"}
    raise Stuck(
        "{0}{1}".format(
            words.get(progress.state, "unknown state " + progress.state),
            ": " + progress.detail if progress.detail else "",
        )
    )


def _check(
    elapsed: float, still: float, timeout_s: float, stuck_s: float, last: tuple[str, float | None] | None, problem: str
) -> None:
    """Raise Stuck when one of the limits is passed. Without a share only an unreadable answer stands still."""
    share = last[1] if last else None
    where = f"at {share:.1%}" if share is not None else "without any report of its progress"
    more = "; its last answer: " + problem if problem else ""
    advice = (
        "; it may continue in the drive: power-cycle the drive, wait for the purge to end, and check the drive's health"
    )
    if elapsed > timeout_s:
        raise Stuck(f"purge stuck: not done after {timeout_s:g} s, {where}{more}{advice} (purge_timeout_s)")
    if still > stuck_s and (share is not None or problem):
        raise Stuck(f"purge stuck: no progress for {stuck_s:g} s, {where}{more}{advice} (purge_stuck_s)")


def pause(
    elapsed: float, tick: t.Callable[[float | None], None], share: float | None, sleep: t.Callable[[float], None]
) -> None:
    """Wait until the drive may be asked again. elapsed: seconds since the first time; tick: as in watch."""
    rest = min(LONGEST_POLL_S, max(SHORTEST_POLL_S, elapsed * POLL_SHARE))
    while rest > 0:
        tick(share)
        sleep(min(rest, _SLICE_S))
        rest -= _SLICE_S
