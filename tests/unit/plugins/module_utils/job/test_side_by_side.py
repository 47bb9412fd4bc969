# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""24 drives side by side, and fewer once several of them throttle together."""

from __future__ import annotations

import collections
import concurrent.futures
import threading
import time

from ansible_collections.ssdlab.fleet.plugins.module_utils.job.side_by_side import SideBySide


class Box:
    """A server that cools so many drives: each throttles in a test beside more of them."""

    def __init__(self, drives, cools):
        self.drives, self.cools, self.noted = [f"S{place:02d}" for place in range(drives)], cools, []
        self.turns = SideBySide(drives, lambda number, why: self.noted.append((number, why)))
        self.lock, self.running, self.most = threading.Lock(), set(), collections.Counter()
        self.stop, self.all_run = threading.Event(), threading.Barrier(drives)

    def drive(self, name, tests):
        for test in range(tests):
            self.turns.take_turn(name, self.stop)
            if test == 0:
                self.all_run.wait(30)
            with self.lock:
                self.running.add(name)
                self.most[test] = max(self.most[test], len(self.running))
            time.sleep(0.02)
            if len(self.running) > self.cools:
                self.turns.throttled(name)
            with self.lock:
                self.running.discard(name)
        self.turns.leave(name)

    def run(self, tests):
        with concurrent.futures.ThreadPoolExecutor(len(self.drives)) as pool:
            list(pool.map(lambda name: self.drive(name, tests), self.drives))


def test_drives_that_do_not_throttle_all_run_to_the_end():
    box = Box(24, cools=24)
    box.run(tests=2)
    # All have passed the barrier, which takes 24 at one time.
    assert box.noted == [] and box.turns.number == 24


def test_drives_that_throttle_together_run_fewer_side_by_side_until_they_do_not():
    box = Box(24, cools=13)
    box.run(tests=4)
    assert [number for number, _why in box.noted][:1] == [12] and box.most[3] <= 13, (box.noted, box.most)
    assert "throttled together, 24 side by side: look at this host's cooling" in box.noted[0][1]


def test_one_drive_that_throttles_slows_nobody_else_down():
    box, now = Box(4, cools=4), [0.0]
    box.turns = SideBySide(4, lambda number, why: box.noted.append((number, why)), clock=lambda: now[0])
    for name in box.drives:
        box.turns.take_turn(name, box.stop)
    assert [box.turns.throttled("S00") for _round in range(3)] == [""] * 3
    # Another that does an hour later does not do so together with it.
    now[0] = 3600.0
    assert box.turns.throttled("S01") == "" and box.noted == []
    assert box.turns.throttled("S02").endswith("from here on 2 at a time")


def test_a_stop_lets_the_drives_that_wait_go():
    box = Box(2, cools=2)
    box.turns.number = 1
    box.turns.take_turn("S00", box.stop)
    threading.Timer(0.1, box.stop.set).start()
    box.turns.take_turn("S01", box.stop)
