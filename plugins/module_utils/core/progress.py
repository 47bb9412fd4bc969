# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How far something is that goes on by itself in a drive."""

from __future__ import annotations

import typing as t

IDLE, RUNNING, DONE, FAILED = "idle", "running", "done", "failed"


class Progress(t.NamedTuple):
    """How far a purge is. state: idle (none was started), running, done, failed. share: 0 to 1, None: the drive does
    not tell.
    """

    state: str
    share: float | None = None
    detail: str = ""


class Unreadable(Exception):
    """The drive's answer could not be had or not be understood; it never counts as progress."""
