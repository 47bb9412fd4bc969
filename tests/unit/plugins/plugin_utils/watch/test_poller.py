# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import collections
import subprocess
import threading
import time

import pytest

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.watch import poller as module
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.watch.poller import SLOTS, Sweep

TIMEOUT_S = 0.5


@pytest.fixture
def release():
    """Set at the end: no thread of a test stays blocked."""
    event = threading.Event()
    yield event
    event.set()


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(module, "GRACE_S", 0.1)
    monkeypatch.setattr(module, "KILL_AFTER_S", 0.2)


def make(timeout_s=TIMEOUT_S, /, **asks):
    return Sweep(asks, lambda answer: answer == "ended", timeout_s)


def fails():
    raise OSError("connection refused")


def in_turn(*asks):
    """Another answer each time."""
    left = list(asks)

    def ask():
        return left.pop(0)()

    return ask


def test_all_are_asked_and_only_those_that_have_not_ended_again():
    asked = []

    def ask(name, answer):
        return lambda: asked.append(name) or answer

    sweep = make(a=ask("a", "ended"), b=ask("b", "busy"))
    sweep.round()
    sweep.round()
    assert sorted(asked) == ["a", "b", "b"]
    assert {name: host.answer for name, host in sweep.hosts.items()} == {"a": "ended", "b": "busy"}
    assert not sweep.all_ended()


def test_a_host_that_hangs_is_marked_and_holds_up_nobody(release):
    limit_s = 3.0  # on a busy machine fifty threads take their time
    sweep = make(limit_s, hangs=release.wait, **{f"h{n}": lambda: "busy" for n in range(50)})
    sweep.round()
    hangs = sweep.hosts["hangs"]
    assert hangs.silent_since is not None and hangs.answer is None
    assert all(host.answer == "busy" for name, host in sweep.hosts.items() if name != "hangs")
    began = time.monotonic()
    sweep.round()
    assert time.monotonic() - began < limit_s
    assert sweep.silent_s(hangs) >= limit_s


def test_more_hanging_hosts_than_slots_do_not_starve_the_others(release):
    sweep = make(**{f"x{n}": release.wait for n in range(3 * SLOTS)}, well=lambda: "ended")
    deadline = time.monotonic() + 30
    while not sweep.hosts["well"].ended and time.monotonic() < deadline:
        sweep.round()
        sweep.pause(0.05)
    assert sweep.hosts["well"].ended


@pytest.mark.parametrize("silent", [False, True])
def test_a_controller_too_slow_for_a_round_still_asks_every_host_in_turn(monkeypatch, silent):
    """Every login took seconds: a round asked the first hosts of the inventory again, and the last ones never."""
    monkeypatch.setattr(module, "SLOTS", 2)
    asked = collections.Counter()

    def ask(name):
        def slow():
            asked[name] += 1
            time.sleep(0.2)
            return fails() if silent and name == "h11" else "busy"

        return slow

    sweep = make(**{f"h{number}": ask(f"h{number}") for number in range(12)})
    for _round in range(5):  # Each has time for about six hosts.
        sweep.round()
    assert len(asked) == 12 and max(asked.values()) - min(asked.values()) <= 2, asked


def test_no_more_than_the_slots_are_asked_at_once():
    lock, active, most = threading.Lock(), [0], [0]

    def ask():
        with lock:
            active[0] += 1
            most[0] = max(most[0], active[0])
        time.sleep(0.005)
        with lock:
            active[0] -= 1
        return "ended"

    sweep = make(60.0, **{f"h{n}": ask for n in range(3 * SLOTS)})
    sweep.round()
    assert sweep.all_ended() and 1 < most[0] <= SLOTS


def test_a_problem_is_kept_until_the_host_answers():
    sweep = make(a=in_turn(fails, fails, lambda: "busy"))
    sweep.round()
    host = sweep.hosts["a"]
    assert host.problem == "connection refused" and sweep.silent_s(host) is not None
    since = host.silent_since
    # A silent host is heard in the pause; it holds up no round.
    for _attempt in range(2):
        sweep.round()
        sweep.pause(0.05)
        assert host.silent_since in (since, None)
    assert host.answer == "busy" and host.problem == "" and sweep.silent_s(host) is None


def test_a_pause_ends_with_the_last_host():
    sweep = make(a=in_turn(fails, lambda: "ended"))
    sweep.round()
    sweep.round()
    began = time.monotonic()
    sweep.pause(30)
    assert sweep.all_ended() and time.monotonic() - began < 5


def test_the_processes_of_an_overdue_question_are_ended():
    def ask():
        with subprocess.Popen(["/bin/sh", "-c", "trap '' TERM; sleep 1000"]) as process:
            started.append(process)
            process.wait()
        raise OSError("ended by force")

    started = []
    sweep = make(a=ask)
    sweep.round()
    deadline = time.monotonic() + 10
    while sweep.hosts["a"].question is not None and time.monotonic() < deadline:
        sweep.pause(0.1)
    assert started[0].poll() is not None
    assert sweep.hosts["a"].problem == "", "that we ended it is no problem of the host"


def test_close_ends_what_is_under_way_and_leaves_other_processes():
    ours, theirs = [], subprocess.Popen(["sleep", "1000"])
    try:

        def ask():
            with subprocess.Popen(["sleep", "1000"]) as process:
                ours.append(process)
                return process.wait()

        sweep = make(a=ask)
        sweep.round()
        sweep.close()
        assert ours[0].wait(5) != 0 and theirs.poll() is None
    finally:
        theirs.kill()
        theirs.wait()


def test_no_hosts_have_all_ended():
    sweep = make()
    sweep.round()
    assert sweep.all_ended()
