# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Steps that may never end."""

from __future__ import annotations

import threading

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.core import deadline


@pytest.fixture
def slow():
    """A step that takes 0.8 s unless the test ends before."""
    over = threading.Event()
    yield lambda: over.wait(0.8)
    over.set()


def test_a_step_that_does_not_end_in_time_hangs(slow, monkeypatch):
    monkeypatch.setattr(deadline, "STEP_TIMEOUT_S", 0.1)
    with pytest.raises(deadline.Hangs, match="in the step look"):
        deadline.Watchdog(threading.Event()).call("look", slow)


def test_a_step_that_is_known_to_be_long_gets_its_time(slow, monkeypatch):
    monkeypatch.setattr(deadline, "STEP_TIMEOUT_S", 0.1)
    assert deadline.Watchdog(threading.Event()).call("look", slow, longer_s=5.0) is False


def test_a_stop_leaves_a_step_the_time_that_it_was_granted(slow, monkeypatch):
    monkeypatch.setattr(deadline, "STOP_GRACE_S", 0.1)
    stop = threading.Event()
    stop.set()
    with pytest.raises(deadline.Hangs):
        deadline.Watchdog(stop).call("look", lambda: threading.Event().wait(60))
    assert deadline.Watchdog(stop).call("unmount", slow, longer_s=5.0) is False
    with pytest.raises(deadline.Hangs):
        deadline.Watchdog(stop).call("guard", lambda: threading.Event().wait(60), longer_s=60.0, heeds_stop=True)


def test_a_stop_ends_what_a_step_started():
    stop, ended = threading.Event(), threading.Event()
    stop.set()
    assert deadline.Watchdog(stop).call("make", lambda: ended.wait(60), longer_s=60.0, end=ended.set) is True


def test_what_hangs_is_ended_too(monkeypatch):
    monkeypatch.setattr(deadline, "STEP_TIMEOUT_S", 0.1)
    ended = threading.Event()
    with pytest.raises(deadline.Hangs):
        deadline.Watchdog(threading.Event()).call("make", lambda: threading.Event().wait(60), end=ended.set)
    assert ended.is_set()
