# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How exclusive tests are judged: by a control drive that fio measures, and by what others took of the CPUs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import check_results
import pytest
from control_drive import BOUND_PCT, ControlDrive

REPO = Path(__file__).resolve().parents[2]
# A session with a machine of the test's own making: `{faults}` are its control's answers, `{others}` what others took
# while each run of a test went on; when they are used up, the machine is quiet.
CONFTEST = """
import control_drive, pytest

class Machine(control_drive.Machine):
    faults = {faults}
    def fault(self, depth, iops):
        error_pct = self.faults.pop(0) if self.faults else 0
        return f"control {{error_pct}} % off" if error_pct else ""

class Window:
    others = {others}
    def share_pct(self):
        return self.others.pop(0) if self.others else 0.0

def pytest_configure(config):
    control_drive.ASK_AGAIN_S = control_drive.READING_S = 0
    control_drive.others_cpu.Window = Window
    config.pluginmanager.register(control_drive.Judge(Machine({wait_s})), "control_drive")
"""
HEAD = """
import pytest
from pathlib import Path
def run(log=Path(__file__).with_name("ran")):
    with log.open("a+") as runs:
        runs.write("x")
    return log.stat().st_size
class Destroyed(AssertionError):
    pass
"""
# What the file makes once is made anew for the run that counts.
FAILS_ONCE = """
@pytest.fixture(scope="module")
def made():
    return run()
@pytest.mark.exclusive(depth=32, iops=700)
def test_it(made):
    assert made > 1
@pytest.mark.exclusive
def test_next(made):
    assert made > 1
"""
FAILS = "@pytest.mark.exclusive\ndef test_it():\n    run()\n    assert 1 == 2\n"
DESTROYS = "@pytest.mark.exclusive\ndef test_it():\n    run()\n    raise Destroyed('the data of spare has changed')\n"
PASSES = "@pytest.mark.exclusive\ndef test_it(): run()\n"
UNMARKED = "def test_it():\n    run()\n    assert 1 == 2\n"


class Judged:
    """What pytest says of a file of tests."""

    def __init__(self, folder: Path, source: str, faults: list[int], others: list[float], wait_s: float) -> None:
        (folder / "conftest.py").write_text(CONFTEST.format(faults=faults, others=others, wait_s=wait_s))
        (folder / "test_x.py").write_text(HEAD + source)
        options = ["-c", f"{REPO}/pytest.ini", "--rootdir", str(folder), f"--junitxml={folder}/x.xml"]
        argv = [sys.executable, "-m", "pytest", *options, str(folder)]
        self.code = subprocess.run(argv, stdin=subprocess.DEVNULL, check=False).returncode
        self.not_judged = check_results.not_judged(folder)
        ran = folder / "ran"
        self.runs = len(ran.read_text()) if ran.exists() else 0


@pytest.mark.parametrize(
    "source, faults, others, wait_s, code, reason, runs",
    [
        # Right before: the test runs once, and what it says counts.
        (PASSES, [], [], 1, 0, "", 1),
        (FAILS, [], [], 1, 1, "", 1),
        (UNMARKED, [1, 1, 1], [99.0], 1, 1, "", 1),
        # Off before: it waits, or does not begin.
        (PASSES, [1, 1, 0], [], 1, 0, "", 1),
        (PASSES, [23], [], 0, 0, "control 23 % off", 0),
        # Off at once after a failure: the next run counts, on a machine that is right again.
        (FAILS_ONCE, [0, 9, 9, 0], [], 1, 0, "", 2),
        (FAILS, [0, 9, 0], [], 1, 1, "", 2),
        (FAILS, [0, 9, 9], [], 0, 0, "control 9 % off", 1),
        # Others took a CPU meanwhile, and do so still, or have ended.
        (FAILS, [], [80.0, 80.0, 80.0], 0, 0, "others took 80 % of a CPU", 1),
        (FAILS_ONCE, [], [80.0], 1, 0, "", 2),
        (FAILS, [], [80.0], 1, 1, "", 2),
        (PASSES, [], [80.0, 80.0], 0, 0, "", 1),
        # Destroyed data is nobody's load.
        (DESTROYS, [0, 9, 9], [99.0, 99.0], 0, 1, "", 1),
    ],
)
def test_a_failure_counts_where_the_machine_was_right(tmp_path, source, faults, others, wait_s, code, reason, runs):
    judged = Judged(tmp_path, source, faults, others, wait_s)
    expected = [("test_x::test_it", f"the machine was busy, {reason}")] if reason else []
    assert (judged.code, judged.not_judged, judged.runs) == (code, expected, runs)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root for loop devices")
@pytest.mark.parametrize(
    "iops, depth",
    [
        pytest.param(iops, depth, marks=pytest.mark.exclusive(depth=depth, iops=iops))
        for iops, depth in ((500, 1), (700, 32), (2500, 16))
    ],
)
def test_the_control_has_its_rate_and_shows_what_takes_it(iops, depth):
    control = ControlDrive(iops)
    try:
        assert control.error_pct(depth) < BOUND_PCT
        control.iops = 2 * iops  # as a drive of half the rate
        assert control.error_pct(depth) > 50 - BOUND_PCT
    finally:
        control.close()


# Says whether it takes for another's: one below the checks, the checks, a busy one beside them; then what that one
# used, and what others took.
CLOCK = """
import json, os, subprocess, sys, time
import others_cpu
os.environ[others_cpu.CHECKS] = str(os.getpid())
busy, window = int(sys.argv[1]), others_cpu.Window()
used = lambda: others_cpu.processes()[busy].used_ticks
ours, before, began_s = subprocess.Popen(["sleep", "100"]), used(), time.monotonic()
time.sleep(3)
others = window._others()
busy_pct = 100 * (used() - before) / others_cpu.TICKS_PER_S / (time.monotonic() - began_s)
print(json.dumps([ours.pid in others, os.getpid() in others, busy in others, busy_pct, window.share_pct()]))
ours.kill()
"""


def test_what_others_took_is_theirs_alone():
    """A busy process beside the checks counts, one below them does not."""
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as busy:
        try:
            environment = {**os.environ, "PYTHONPATH": str(REPO / "tests")}
            argv = [sys.executable, "-c", CLOCK, str(busy.pid)]
            said = json.loads(subprocess.run(argv, env=environment, capture_output=True, check=True).stdout)
        finally:
            busy.kill()
    assert said[:3] == [False, False, True] and said[4] >= said[3] - 5 > 0
