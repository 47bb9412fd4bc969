# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How much of the CPUs went to processes that are not of these tests, and to other virtual machines.

Of these tests is what descends from the process that $SSDLAB_FLEET_CHECKS names, as scripts/clean_run.py below it
adopts what a test leaves to itself, and what runs in a unit of a host job. Without that variable nobody counts as
another.
"""

from __future__ import annotations

import os
import time
import typing as t
from pathlib import Path

TICKS_PER_S = os.sysconf("SC_CLK_TCK")
CHECKS = "SSDLAB_FLEET_CHECKS"
# linux/sched.h, PF_KTHREAD: the kernel works for our drives too.
KERNEL_THREAD = 0x00200000
# It starts the units of host jobs, and counts their time as its own when they end.
INIT = 1
UNIT = "/ssdlab-fleet-"


class Process(t.NamedTuple):
    """Fields of /proc/PID/stat. used_ticks: CPU time, with that of ended children."""

    parent: int
    flags: int
    used_ticks: int


def processes() -> dict[int, Process]:
    """All processes that can be looked at, by pid."""
    found = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            fields = (entry / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        except OSError:  # it ended meanwhile
            continue
        found[int(entry.name)] = Process(int(fields[1]), int(fields[6]), sum(map(int, fields[11:15])))
    return found


def control_group(pid: int) -> str:
    """The paths of a process's control groups; an empty string when it has ended."""
    try:
        return Path(f"/proc/{pid}/cgroup").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def below(root: int, found: dict[int, Process]) -> set[int]:
    """The pids of a process and of all its descendants."""
    known, size = {root}, 0
    while len(known) > size:
        size = len(known)
        known |= {pid for pid, process in found.items() if process.parent in known}
    return known


class Window:
    """From now on."""

    def __init__(self) -> None:
        self._root = int(os.environ.get(CHECKS, 0))
        self._began_s = time.monotonic()
        self._before, self._stolen_ticks = self._others(), stolen_ticks()

    def share_pct(self) -> float:
        """What others took since this window began, in percent of one CPU."""
        if not self._root:
            return 0.0
        now = self._others()
        # What has ended meanwhile is in the time of its parent, whole; of an orphan nobody tells.
        counted = [each for pid, each in self._before.items() if pid in now or each.parent in now]
        used_ticks = sum(each.used_ticks for each in now.values()) - sum(each.used_ticks for each in counted)
        ticks = max(0, used_ticks) + stolen_ticks() - self._stolen_ticks
        return 100 * ticks / TICKS_PER_S / max(time.monotonic() - self._began_s, 0.1)

    def _others(self) -> dict[int, Process]:
        found = processes() if self._root else {}
        ours = below(self._root, found) | {INIT}
        return {
            pid: process
            for pid, process in found.items()
            if pid not in ours and not process.flags & KERNEL_THREAD and UNIT not in control_group(pid)
        }


def stolen_ticks() -> int:
    """What the hypervisor gave to others while a CPU of this machine wanted to run."""
    return int(Path("/proc/stat").read_text(encoding="ascii").split()[8])
