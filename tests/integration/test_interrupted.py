# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is left of scripts/test when it is interrupted: nothing, whatever its tests were doing."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[2]
MARK = "SSDLAB_FLEET_TEST_MARK"
# However busy the machine is; only a failure waits so long.
HANGS_S = 600
RUNNER = """
import sys
from pathlib import Path
sys.path.insert(0, {scripts!r})
import run_checks
from run_checks import SERVERS, SOURCE, Check
run_checks.OUTPUT = Path({folder!r}, "checks")
run_checks.CHECKS = (
    Check("tests", SERVERS, {command!r}),
    Check("shell", SOURCE, "{ignore}; setsid sleep 1000 & touch {folder}/shell; wait; sleep 1000"),
)
sys.exit(run_checks.main([]))
"""
# A test has a drive, a mount, and processes that outlive it; `reached` is called in its middle.
TESTS = """
import signal, subprocess, time
from pathlib import Path
import own_machine, pytest, simulated_ssd

def reached(name=Path({folder!r}, "middle"), hold=True):
    name.touch()
    while hold:
        time.sleep(0.1)

def start(*argv):
    return subprocess.Popen(argv, start_new_session=True, stdout=subprocess.DEVNULL)

@pytest.fixture
def mounted(loop_drive, tmp_path):
    drive = loop_drive()
    subprocess.run(["mkfs.ext4", "-q", drive.path], check=True)
    subprocess.run(["mount", drive.path, tmp_path], check=True)
    yield drive
    subprocess.run(["umount", tmp_path], check=True)

@pytest.fixture
def simulated(tmp_path):
    plugin = simulated_ssd.model_plugin(16 << 20, 500, 500, 500)
    with simulated_ssd.simulated_ssd(tmp_path / "drives", "one", plugin) as drive:
        yield drive
"""
IN_A_TEST = """
def test_it(loop_drive):
    loop_drive()
    start("sleep", "1000")
    start("sh", "-c", "trap '' TERM; sleep 1000 & wait; sleep 1000")
    reached()
"""
MOUNTED = """
def test_it(mounted, simulated):
    start("dd", "if=" + simulated["device"], "of=/dev/null", "iflag=direct", "bs=4k")
    reached()
"""
# As where the signal comes between losetup and the line that notes its device.
IN_A_SET_UP = """
@pytest.fixture
def drive(tmp_path):
    file = tmp_path / "file"
    file.write_bytes(bytes(1 << 20))
    own_machine.attach(file)
    reached()
def test_it(drive):
    pass
"""
IN_A_TEAR_DOWN = """
@pytest.fixture
def drive(loop_drive):
    yield loop_drive()
    reached()
def test_it(drive):
    pass
"""
DEAF = """
def test_it(loop_drive):
    loop_drive()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    reached()
"""

CRASHES = """
import os
def test_it(loop_drive):
    loop_drive()
    reached(hold=False)
    time.sleep(2)
    os.kill(os.getpid(), signal.SIGKILL)
"""


class Interrupted:
    """scripts/test with one suite of its own and a check that leaves a process, and ends by no signal where it is
    deaf.
    """

    def __init__(self, folder: Path, source: str, workers: int, deaf: bool) -> None:
        self.folder, self.mark = folder, uuid.uuid4().hex
        (folder / "tests").mkdir()
        (folder / "tests/conftest.py").write_text("from conftest import *\n")
        (folder / "tests/test_x.py").write_text(TESTS.format(folder=str(folder)) + source)
        pytest_of = f"{sys.executable} -m pytest -c {REPO}/pytest.ini --rootdir {folder} -n {workers}"
        command = f"{pytest_of} {folder}/tests --junitxml=$RESULTS/x.xml"
        ignore = "trap '' INT TERM HUP" if deaf else "true"
        code = RUNNER.format(scripts=str(REPO / "scripts"), folder=str(folder), command=command, ignore=ignore)
        environment = {**os.environ, MARK: self.mark, "TMPDIR": str(folder)}
        self.process = subprocess.Popen([sys.executable, "-c", code], env=environment, stdout=subprocess.DEVNULL)

    def wait_for(self, name: str) -> None:
        """Wait until a file is there that the suite makes."""
        while not (self.folder / name).exists():
            assert self.process.poll() is None, "scripts/test ended"
            time.sleep(0.1)

    def left(self) -> list[str]:
        """All that is still there of it."""
        found = [f"process {pid}" for pid in self._processes()]
        for path in Path("/sys/block").glob("loop*/loop/backing_file"):
            with contextlib.suppress(OSError):
                if str(self.folder) in path.read_text() or self._in_memory(path.read_text()):
                    found.append(path.parts[3])
        found += [line for line in Path("/proc/self/mountinfo").read_text().splitlines() if str(self.folder) in line]
        return found + [str(path) for path in self.memory() if path.exists()]

    def memory(self) -> list[Path]:
        """The folders in memory that its tests claimed."""
        claims = self.folder / "checks/tests/folders"
        lines = claims.read_text().splitlines() if claims.exists() else []
        return [Path(line) for line in lines if line.startswith("/dev/shm/")]

    def _in_memory(self, text: str) -> bool:
        return any(text.startswith(f"{folder}/") for folder in self.memory())

    def _processes(self) -> list[int]:
        found = []
        for path in Path("/proc").glob("[0-9]*/environ"):
            with contextlib.suppress(OSError):
                if f"{MARK}={self.mark}".encode() in path.read_bytes().split(b"\0"):
                    found.append(int(path.parts[2]))
        return found


@pytest.mark.parametrize(
    "source, workers, signals",
    [
        (IN_A_TEST, 2, (signal.SIGTERM,)),
        (IN_A_TEST, 2, (signal.SIGTERM, signal.SIGTERM)),
        (IN_A_TEST, 0, (signal.SIGINT, signal.SIGTERM)),
        (MOUNTED, 2, (signal.SIGHUP, signal.SIGHUP)),
        (MOUNTED, 0, (signal.SIGKILL,)),
        (IN_A_SET_UP, 2, (signal.SIGINT,)),
        (IN_A_SET_UP, 2, (signal.SIGINT, signal.SIGINT)),
        (IN_A_TEAR_DOWN, 2, (signal.SIGTERM, signal.SIGINT, signal.SIGTERM)),
        (DEAF, 2, (signal.SIGTERM, signal.SIGTERM)),
        (DEAF, 0, (signal.SIGTERM, signal.SIGTERM)),
    ],
)
def test_nothing_is_left_of_an_interrupted_run(tmp_path, source, workers, signals):
    run = Interrupted(tmp_path, source, workers, deaf=len(signals) > 1)
    run.wait_for("middle")
    run.wait_for("shell")
    assert run.left(), "what is looked for is there before"
    for number in signals:
        run.process.send_signal(number)
        time.sleep(1)
    code = run.process.wait(HANGS_S)
    until_s = time.monotonic() + HANGS_S * (signals == (signal.SIGKILL,))  # then its checks are on their own
    while (left := run.left()) and time.monotonic() < until_s:
        time.sleep(0.5)
    assert not left and code in (1, -signal.SIGKILL)


@pytest.mark.parametrize("workers", [0, 1])
def test_nothing_is_left_of_a_process_that_died(tmp_path, workers):
    run = Interrupted(tmp_path, CRASHES, workers, deaf=False)
    run.wait_for("middle")
    run.wait_for("shell")
    while any(each.startswith("loop") for each in run.left()):
        assert run.process.poll() is None
        time.sleep(0.1)
    run.process.send_signal(signal.SIGTERM)
    assert run.process.wait(HANGS_S) == 1 and not run.left()
