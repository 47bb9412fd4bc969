# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A command is ended by another thread, with what it started."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

from ansible_collections.ssdlab.fleet.plugins.module_utils.core.host import TIMED_OUT, Host
from ansible_collections.ssdlab.fleet.plugins.module_utils.core.running import Running


def wrapper(folder):
    """A command that waits for a child of its own, whose pid is in a file by then; the file."""
    pid, gate = folder / "pid", folder / "gate"
    os.mkfifo(gate)
    return ["sh", "-c", f"cat {gate} & echo $! > {pid}.new; mv {pid}.new {pid}; wait"], pid


def is_gone(pid):
    try:
        return "State:\tZ" in Path("/proc", pid.read_text().strip(), "status").read_text()
    except FileNotFoundError:
        return True


def await_file(path):
    deadline = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_its_children_end_with_it(tmp_path):
    argv, pid = wrapper(tmp_path)
    running, results = Running(Host(), argv), []
    thread = threading.Thread(target=lambda: results.append(running.run(300)))
    thread.start()
    await_file(pid)
    running.end()
    thread.join(60)
    assert [result.rc for result in results] == [-9] and is_gone(pid)


def test_its_children_end_with_its_time(tmp_path):
    argv, pid = wrapper(tmp_path)
    assert Running(Host(), argv).run(2).rc == TIMED_OUT
    await_file(pid)
    assert is_gone(pid)


def test_one_that_is_ended_before_it_starts_does_not_go_on():
    running = Running(Host(), ["sleep", "300"])
    running.end()
    assert running.run(60).rc == -9


def test_one_that_has_ended_is_not_ended_again():
    running = Running(Host(), ["true"])
    assert running.run(60).rc == 0
    running.end()
