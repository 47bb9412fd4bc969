# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Limits in the time that the guest had, not in that of a clock: it stands still while QEMU waits for a CPU that other
processes have, or that the hypervisor took. A guest that computes or sleeps without end still meets its limit.
"""

from __future__ import annotations

import contextlib
import subprocess
import tempfile
import time
import typing
from collections.abc import Iterator
from pathlib import Path

import others_cpu

NS_PER_S = 1e9
ASK_AGAIN_S = 5


class Turn:
    """From now on, for a process (pid)."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._began_s = time.monotonic()
        self._waited_s, self._stolen_ticks = waited_s(pid), others_cpu.stolen_ticks()

    def spent_s(self) -> float:
        """Seconds in which it ran or wanted nothing."""
        stolen_s = (others_cpu.stolen_ticks() - self._stolen_ticks) / others_cpu.TICKS_PER_S
        held_s = waited_s(self._pid) - self._waited_s + stolen_s
        return time.monotonic() - self._began_s - max(held_s, 0.0)


def waited_s(pid: int) -> float:
    """How long the thread that had to wait longest for a CPU has waited for one; 0 where the kernel doesn't count."""
    waits = [0.0]
    for path in Path(f"/proc/{pid}/task").glob("*/schedstat"):
        with contextlib.suppress(OSError, IndexError):  # it ended meanwhile
            waits.append(int(path.read_text(encoding="ascii").split()[1]) / NS_PER_S)
    return max(waits)


@contextlib.contextmanager
def as_file(text: str) -> Iterator[typing.IO[str]]:
    """A file that has the text, to be read from its beginning."""
    with tempfile.TemporaryFile("w+", encoding="utf-8") as file:
        file.write(text)
        file.seek(0)
        yield file


def communicate(process: subprocess.Popen, pid: int, limit_s: float) -> tuple[str, str]:
    """What a process says until it ends: stdout, stderr. limit_s: of the turn of the guest (pid) that it waits for.
    Ends it and raises TimeoutExpired beyond that. Its input comes from a file: Popen.communicate writes the rest of a
    text only until its first timeout.
    """
    turn = Turn(pid)
    while True:
        try:
            return process.communicate(timeout=min(ASK_AGAIN_S, limit_s))
        except subprocess.TimeoutExpired:
            if turn.spent_s() > limit_s:
                process.kill()
                process.wait()
                raise subprocess.TimeoutExpired(process.args, limit_s) from None
