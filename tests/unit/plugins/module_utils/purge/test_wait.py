# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.core.progress import (
    DONE,
    FAILED,
    IDLE,
    RUNNING,
    Progress,
    Unreadable,
)
from ansible_collections.ssdlab.fleet.plugins.module_utils.purge.wait import Stuck, watch


class Time:
    """A clock that only a sleep moves on."""

    def __init__(self):
        self.now = 0.0

    def clock(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds


def wait(answer, timeout_s=1000.0, stuck_s=100.0, tick=lambda share: None):
    """`answer(seconds)`: what the drive says then."""
    time = Time()

    def read():
        said = answer(time.now)
        if isinstance(said, Exception):
            raise said
        return said

    return watch(read, timeout_s, stuck_s, tick, time.clock, time.sleep), time.now


def moving(now, total=300.0):
    return Progress(RUNNING, now / total) if now < total else Progress(DONE, 1.0)


def test_it_waits_until_the_drive_is_done_and_shows_how_far_it_is():
    shown = []
    progress, took = wait(moving, tick=shown.append)
    assert progress.state == DONE and 300 <= took <= 320
    assert shown[0] == 0.0 and shown == sorted(shown) and len(shown) > 200


def test_a_drive_that_tells_no_share_has_until_the_timeout():
    progress, took = wait(lambda now: Progress(RUNNING) if now < 900 else Progress(DONE))
    assert progress.state == DONE and took >= 900


def test_an_answer_that_fails_now_and_then_is_asked_again():
    progress, _took = wait(lambda now: Unreadable("no JSON") if 10 < now < 80 else moving(now))
    assert progress.state == DONE


@pytest.mark.parametrize(
    "answer, message, at_s",
    [
        (lambda now: Progress(RUNNING, min(now, 50) / 300), "no progress for 100 s, at 16.* power-cycle", 150),
        (lambda now: Progress(RUNNING), "not done after 1000 s, without any report", 1000),
        (lambda now: Progress(RUNNING, now / 5000), "not done after 1000 s, at ", 1000),
        (lambda now: Unreadable("no JSON"), "no progress for 100 s.*its last answer: no JSON", 100),
        (
            lambda now: Progress(FAILED, None, "status 3") if now else Progress(RUNNING, 0.1),
            "says that the purge failed: status 3",
            0,
        ),
        (lambda now: Progress(IDLE), "no purge was started", 0),
        (lambda now: Progress("melted"), "unknown state melted", 0),
    ],
)
def test_what_stands_still_or_fails_ends_the_wait(answer, message, at_s):
    reached = []
    with pytest.raises(Stuck, match=message):
        wait(lambda now: (reached.append(now), answer(now))[1])
    assert at_s <= reached[-1] <= at_s + 40


def test_a_stop_ends_the_wait_at_once():
    class Stop(Exception):
        pass

    def stop(_share):
        raise Stop

    with pytest.raises(Stop):
        wait(moving, tick=stop)
