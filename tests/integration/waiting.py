# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Waits whose limit counts from the last progress, so that a slow machine takes longer and only a hang fails
(docs/testing.md, "Writing a test that waits").
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
import typing as t
from pathlib import Path

# Nothing that tests wait for is this long without a sign of life, beside whatever else the machine does.
STALL_S = 300.0
# So much CPU time is progress: what only asks again and again whether something has happened uses less in STALL_S.
WORK_S = 10.0
# A process may also spin. What tests start needs a tenth of this.
MOST_CPU_S = 900.0
POLL_S = 0.05

Progress = t.Callable[[], t.Any]


def nothing() -> None:
    """The progress of what shows none: the limit counts from the beginning."""


class Patience:
    """A limit that begins anew whenever `progress` returns another value than before."""

    def __init__(self, what: str, progress: Progress = nothing, stall_s: float = STALL_S) -> None:
        self._what, self._progress, self._stall_s = what, progress, stall_s
        self._last, self._until_s = progress(), time.monotonic() + stall_s

    def check(self) -> None:
        """Fail if nothing has moved for too long."""
        now = self._progress()
        if now != self._last:
            self._last, self._until_s = now, time.monotonic() + self._stall_s
        assert time.monotonic() < self._until_s, f"waited for {self._what}: nothing moved for {self._stall_s:g} s"


def wait_until(
    condition: t.Callable[[], t.Any],
    what: str,
    progress: Progress = nothing,
    process: subprocess.Popen | None = None,
    said: t.Callable[[], str] = str,
    stall_s: float = STALL_S,
    poll_s: float = POLL_S,
) -> t.Any:
    """Return the condition's answer once it is true; an OSError means not yet. process: what has to live until then;
    said: its words, for the failure.
    """
    patience = Patience(what, progress, stall_s)
    while True:
        ended = process is not None and process.poll() is not None
        with contextlib.suppress(OSError):
            answer = condition()
            if answer:
                return answer
        assert not ended, f"waited for {what}: the process ended before: {said()[-4000:]}"
        patience.check()
        time.sleep(poll_s)


def wait_for_end(
    process: subprocess.Popen,
    what: str = "the end",
    progress: Progress | None = None,
    stall_s: float = STALL_S,
    end: t.Callable[[], None] | None = None,
) -> tuple[t.Any, t.Any]:
    """Return a process's (stdout, stderr), as communicate does; where that fails, the process is ended by `end()`, else
    killed. Progress is what it and its children compute, unless told otherwise.
    """
    patience = Patience(what, progress or works(process.pid), stall_s)
    try:
        while True:
            with contextlib.suppress(subprocess.TimeoutExpired):
                return process.communicate(timeout=10 * POLL_S)
            patience.check()
            assert cpu_s(process.pid) < MOST_CPU_S, f"waited for {what}: {MOST_CPU_S:g} s of CPU time and no end"
    except BaseException:
        (end or process.kill)()
        process.wait()
        raise


def works(pid: int) -> Progress:
    """A progress: that a process, with all that it started, computes."""
    return lambda: cpu_s(pid) // WORK_S


def cpu_s(pid: int) -> float:
    """The CPU time that a process, its children and theirs have used; of those that ended, if they were waited for."""
    ticks, children = 0, []
    with contextlib.suppress(OSError):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks = sum(map(int, fields[11:15]))
        children = [each for path in Path(f"/proc/{pid}/task").glob("*/children") for each in path.read_text().split()]
    return ticks / os.sysconf("SC_CLK_TCK") + sum(cpu_s(int(child)) for child in children)


def sizes(*patterns: tuple[str | Path, str]) -> Progress:
    """A progress: how large the files are that match (folder, pattern), such as journals."""
    return lambda: sorted((str(path), size_of(path)) for folder, glob in patterns for path in Path(folder).glob(glob))


def size_of(path: Path) -> int:
    """The size of a file, -1 if it has gone meanwhile."""
    try:
        return path.stat().st_size
    except OSError:
        return -1
