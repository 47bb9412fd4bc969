# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What limits in the guest's own time count, with processes in QEMU's place."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest
import turn

BUSY = [sys.executable, "-c", "while True: pass"]


def test_time_stands_still_while_a_process_waits_for_a_cpu():
    """Two that want the same CPU have half of it each."""
    cpu = {min(os.sched_getaffinity(0))}
    both = [subprocess.Popen(BUSY) for _each in range(2)]
    try:
        for process in both:
            os.sched_setaffinity(process.pid, cpu)
        time.sleep(1)
        clock, began_s = turn.Turn(both[0].pid), time.monotonic()
        time.sleep(4)
        assert clock.spent_s() < 0.75 * (time.monotonic() - began_s)
    finally:
        for process in both:
            process.kill()
            process.wait()


def test_a_process_that_says_nothing_meets_its_limit():
    """One that sleeps without end too."""
    silent = [subprocess.Popen(["sleep", "1000"], stdout=subprocess.PIPE, text=True) for _each in range(2)]
    try:
        with pytest.raises(subprocess.TimeoutExpired):
            turn.communicate(silent[0], silent[1].pid, 1)
        assert silent[0].returncode is not None
    finally:
        for process in silent:
            process.kill()
            process.communicate()


def test_a_process_that_takes_longer_than_a_look_gets_all_of_its_input(monkeypatch):
    """More than a pipe holds."""
    monkeypatch.setattr(turn, "ASK_AGAIN_S", 0.1)
    text, pipe = "all of it\n" * 100_000, subprocess.PIPE
    with turn.as_file(text) as file, subprocess.Popen(
        ["sh", "-c", "sleep 0.5; cat"], stdin=file, stdout=pipe, stderr=pipe, text=True
    ) as process:
        assert turn.communicate(process, process.pid, 60) == (text, "")
