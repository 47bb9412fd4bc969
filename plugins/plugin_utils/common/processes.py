# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Processes on the controller that a connection of ours started (Linux; elsewhere none is found)."""

from __future__ import annotations

import contextlib
import glob
import os
import typing as t


def children(pid: int, threads: str = "*") -> list[int]:
    """Return the processes that one started, or one of its threads."""
    found = []
    for path in glob.glob(f"/proc/{pid}/task/{threads}/children"):
        with contextlib.suppress(OSError, ValueError), open(path) as file:
            found += [int(word) for word in file.read().split()]
    return found


def signal_all(pids: t.Iterable[int], number: int) -> None:
    """Signal processes that are still there."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)
