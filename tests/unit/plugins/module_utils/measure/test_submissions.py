# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""fio's longest gap, by a timer in a process of its own. Staged with real fio: tests/integration/test_lost_time.py."""

from __future__ import annotations

import os
import signal
import subprocess

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.measure import submission_timer, submissions
from ansible_collections.ssdlab.fleet.plugins.module_utils.measure.submissions import Monitor, Submissions


@pytest.fixture
def monitor():
    made = Monitor()
    yield made
    made.close()


@pytest.fixture
def sleeper():
    """A process without a thread that does I/O."""
    process = subprocess.Popen(["sleep", "60"])
    yield process.pid
    process.kill()
    process.wait()


@pytest.mark.parametrize(
    "seen, gap_s",
    [
        (Submissions(2, 0.01, 9.995, 0.0), 0.01),
        # fio began late or ended early, so nothing was submitted for as long.
        (Submissions(2, 0.01, 9.8, 0.0), 0.2),
        # A thread that nobody saw.
        (Submissions(1, 0.01, 9.995, 0.0), None),
        (Submissions(), None),
    ],
)
def test_the_gap_includes_both_ends_and_every_thread(seen, gap_s):
    assert seen.gap_s(2, 10) == pytest.approx(gap_s)


def test_what_did_no_io_has_no_gap(monitor, sleeper):
    monitor.begin()
    monitor.watch(sleeper)
    assert monitor.end()._replace(longest_stop_s=None) == Submissions()
    assert monitor.end() == Submissions(), "nothing was watched"


def test_a_process_that_is_late_or_gone_leaves_the_gap_unknown_and_another_one_follows(monitor, sleeper, monkeypatch):
    for hit in (signal.SIGSTOP, signal.SIGKILL):
        monkeypatch.setattr(submissions, "ANSWER_S", 20)
        monitor.begin()
        monitor.watch(sleeper)
        os.kill(monitor._process.pid, hit)
        monkeypatch.setattr(submissions, "ANSWER_S", 0.3)
        assert monitor.end() == Submissions() and monitor._process is None
    monkeypatch.setattr(submissions, "ANSWER_S", 20)
    monitor.begin()
    monitor.watch(sleeper)
    assert monitor.end()._replace(longest_stop_s=None) == Submissions() and monitor._process.poll() is None


def test_it_ends_with_its_parent_and_when_it_is_closed(monitor):
    monitor.begin()
    process = monitor._process
    process.stdin.close()
    assert process.wait(20) == 0
    monitor.close()
    monitor.begin()
    closed = monitor._process
    monitor.close()
    assert closed.returncode == -signal.SIGKILL and monitor._process is None


def test_a_machine_that_can_start_no_process_leaves_the_gap_unknown(monitor, monkeypatch):
    def refuse(*_args, **_more):
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(submissions.subprocess, "Popen", refuse)
    monitor.begin()
    monitor.watch(1)
    assert monitor.end() == Submissions()


class Clock:
    def __init__(self):
        self.now = 100.0

    def monotonic(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    """The timer's clock, which a test sets."""
    made = Clock()
    monkeypatch.setattr(submission_timer, "time", made)
    return made


@pytest.mark.parametrize(
    "readings_s, stop_s",
    [
        # That fio submits nothing is no stop: a drive may be stuck.
        ([0.004] * 2000, 0.0),
        ([0.9, 0.9, 0.9], 0.0),
        ([0.004, 1.2, 0.004], 1.2),
        ([35.0], 35.0),
        # Many small ones are no long one.
        (([1.2] + [0.5] * 10) * 8, 1.2),
        ([4.0, *[0.5] * 4, 10.0, *[0.5] * 4, 3.0], 10.0),
        # A machine that hardly ran in between.
        ([20.0, 0.004, 15.0], 35.0),
        ([2.0] * 20, 40.0),
        ([20.0, 0.004, 15.0, *[0.5] * 4, 30.0], 35.0),
    ],
)
def test_readings_that_come_late_are_a_stop_of_the_machine(clock, readings_s, stop_s):
    threads = submission_timer.Threads(0)
    for after_s in readings_s:
        clock.now += after_s
        threads.read()
    assert threads.found()["longest_stop_s"] == pytest.approx(stop_s)


@pytest.fixture
def thread(tmp_path, clock):
    """(write its counts at a time and read them, the thread) with a clock of its own."""

    def write(count, waited_ns, runs):
        (tmp_path / "io").write_text(f"rchar: 9\nwchar: 9\nread_bytes: {count}\nwrite_bytes: {count}\nsyscr: 1\n")
        (tmp_path / "schedstat").write_text(f"1 {waited_ns} {runs}\n")

    write(0, 0, 0)
    made = submission_timer.Thread(str(tmp_path))

    def read(after_s, count, waited_ns=0, runs=1):
        clock.now += after_s
        write(count, waited_ns, runs)
        made.read()
        made.read_waits()

    yield read, made
    made.close()


def test_a_gap_lies_between_the_reading_before_one_submission_and_that_of_the_next(thread):
    read, made = thread
    read(0.003, 0)
    assert made.span_s is None
    read(0.003, 1)
    read(0.003, 2, waited_ns=5_000_000)
    assert made.longest_s == pytest.approx(0.006)
    for _each in range(10):
        read(0.003, 2)
    read(0.003, 3)
    # It may have submitted right after the reading before the one that showed it.
    assert made.longest_s == pytest.approx(0.036)
    # What follows its last submission is no gap: it waits for what is in flight.
    read(5, 3, waited_ns=7_000_000)
    assert made.longest_s == pytest.approx(0.036) and made.waited_s == 0.007
    # From the reading that showed the first to the one before that which showed the last.
    assert made.span_s == pytest.approx(0.003 + 0.03)


def test_readings_that_lie_far_apart_are_a_gap(thread):
    """A machine that was stopped stopped the timer too."""
    read, made = thread
    read(0.003, 1)
    read(0.1, 500)
    assert made.longest_s == pytest.approx(0.103)


def test_a_kernel_that_does_not_count_waits_leaves_them_unknown(thread):
    read, made = thread
    read(0.003, 1, waited_ns=0, runs=0)
    assert made.waited_s is None
