# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import os
import threading
import time

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.core.background import MOST_WAITING, Background


def failing():
    raise OSError(28, "No space left on device")


@pytest.fixture
def background():
    return Background("test")


def test_steps_are_done_in_order_and_beside_who_submits_them(background):
    go, done = threading.Event(), []
    background.submit(go.wait)
    for number in range(20):
        background.submit(lambda number=number: done.append((number, threading.get_ident())))
    assert done == []
    go.set()
    background.flush()
    assert [number for number, _thread in done] == list(range(20))
    assert threading.get_ident() not in {thread for _number, thread in done}


def test_steps_of_several_threads_are_done_one_at_a_time(background):
    inside, most = [], []

    def step():
        inside.append(1)
        most.append(len(inside))
        time.sleep(0.0005)
        inside.pop()

    threads = [threading.Thread(target=lambda: [background.put(step) for _step in range(30)]) for _thread in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    background.flush()
    assert most == [1] * 120


def test_an_error_is_raised_once_and_what_was_behind_it_is_dropped(background):
    """What one writes has no gap: a journal with round 3 and without round 2 could not be read."""
    go, done = threading.Event(), []
    background.submit(go.wait)
    background.submit(failing)
    background.submit(lambda: done.append("behind it"))
    background.put(lambda: done.append("put behind it"))
    go.set()
    with pytest.raises(OSError, match="No space left"):
        background.flush()
    assert done == []
    background.submit(lambda: done.append("the reason"))
    background.flush()
    assert done == ["the reason"]


def test_a_submit_raises_the_error_of_a_step_before_it(background):
    done, until = [], time.monotonic() + 60
    background.submit(failing)
    with pytest.raises(OSError, match="No space left"):
        while time.monotonic() < until:
            background.submit(lambda: done.append("more"))
    assert done == []


def test_a_thread_that_can_do_nothing_about_an_error_gets_none(background):
    background.put(failing)
    background.put(failing)
    with pytest.raises(OSError):
        background.flush()
    background.flush()


def test_who_submits_more_than_can_be_done_waits(background):
    go = threading.Event()
    background.submit(go.wait)
    submitted = []

    def submit_all():
        for number in range(2 * MOST_WAITING):
            background.submit(lambda: None)
            submitted.append(number)

    thread = threading.Thread(target=submit_all)
    thread.start()
    thread.join(0.3)
    assert thread.is_alive() and MOST_WAITING <= len(submitted) <= MOST_WAITING + 1
    go.set()
    thread.join()
    background.flush()


def test_its_thread_keeps_off_other_cpus_and_ends_with_its_steps(background):
    before, seen = threading.active_count(), []
    own = os.sched_getaffinity(0)
    background.cpus = [max(own)]
    background.submit(lambda: seen.append(os.sched_getaffinity(0)))
    background.flush()
    assert seen == [{max(own)}] and os.sched_getaffinity(0) == own
    until = time.monotonic() + 10
    while threading.active_count() > before and time.monotonic() < until:
        time.sleep(0.005)
    assert threading.active_count() == before
