# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the vendors' tools share: their error, how a drive is found in a list, and the lock while one changes."""

from __future__ import annotations

import contextlib
import typing as t

from ..core.locks import Locked, drive_lock


class ToolError(Exception):
    """A vendor's tool failed or printed what cannot be relied on; the message says what to do."""


class Listed(t.Protocol):
    """A drive in the list of a tool."""

    @property
    def serial(self) -> str:
        """Return its serial number."""

    @property
    def label(self) -> str:
        """Name it in a message."""


Drive = t.TypeVar("Drive", bound=Listed)


def find_by_serial(listed: t.Sequence[Drive], serial: str, command: str, verb: str, noun: str) -> Drive:
    """Return the one drive with this serial number, compared as a whole. Raises ToolError.

    Its place in the list means nothing. command, verb, noun: for the message, such as rssdm -L, lists, drive.
    """
    same = [drive for drive in listed if serial.strip() and drive.serial == serial.strip()]
    if len(same) == 1:
        return same[0]
    found, given = len(same) or "no", serial.strip() or "(empty)"
    known = ", ".join(drive.label for drive in listed) or f"no {noun}"
    raise ToolError(f"{command} {verb} {found} {noun}s with the serial {given}; it {verb} {known}")


@contextlib.contextmanager
def locked(serial: str, tool: str) -> t.Iterator[None]:
    """Hold the drive's lock: a drive that a run is working on is not changed. Raises ToolError."""
    try:
        with drive_lock(serial, {"tool": tool}):
            yield
    except Locked as error:
        raise ToolError(f"drive {serial} is in use by a run: {error}. Wait for it to end, or stop it") from None
