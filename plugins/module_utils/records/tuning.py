# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a host is tuned: each setting with what came of it, and the records of what to put back."""

from __future__ import annotations

import typing as t
from dataclasses import dataclass

from .base import Json


@dataclass(frozen=True)
class Setting:
    """A setting of a host: as it is asked for, with its value before (tuning.json), and with what came of it."""

    # Of tuning/setting_kinds.py, held (only while the job lives), or empty: none of these.
    kind: str
    name: str
    # A file below /sys or /proc, a unit's name, or what a person calls it.
    path: str
    # Null: nothing is asked of it; another one resets it as a side effect.
    wanted: t.Optional[str]
    # The kernel name of the drive that it belongs to; null: it is one of the whole host.
    device: t.Optional[str] = None
    # That drive's entry as it was given, of what the drive itself keeps.
    selector: t.Any = None
    # Null: the host has no such thing.
    before: t.Optional[str] = None
    # The value in force.
    effective: t.Optional[str] = None
    # Empty: it is only asked for.
    outcome: str = ""
    # The reason, if there is one to give; null: it was not tried yet.
    message: t.Optional[str] = None
    # How many equal ones it stands for; 0: for itself.
    count: int = 0

    def to_json(self) -> Json:
        """Return it as files and answers have it: without what it has not, or not yet."""
        tried = self.message is not None
        there = {
            "kind": bool(self.kind),
            "device": self.kind not in ("", "held"),
            "selector": self.selector is not None,
            "effective": tried,
            "outcome": bool(self.outcome),
            "message": tried,
            "count": bool(self.count),
        }
        return {key: value for key, value in vars(self).items() if there.get(key, True)}


@dataclass(frozen=True)
class Tuning:
    """tuning.json: what was changed on the host, and is to be put back."""

    boot_id: t.Optional[str]
    settings: t.List[Setting]
    # For an explicit restore only.
    keep: t.Optional[bool] = None
    # When.
    made: t.Optional[str] = None
    # Among the records of a host that are not yet put back the newest has the highest.
    order: t.Optional[int] = None


@dataclass(frozen=True)
class BootRecord:
    """boot.json: what was asked for, and how to take it away again."""

    schema_version: int
    boot_id: str
    # The name of one of LOADERS.
    loader: str
    arguments: t.List[str]
    # Those to take away again: the host was not configured with them, whatever its kernel happens to run with.
    own: t.List[str]
    # What they supersede.
    replaced: t.List[str]
    # What the host had before the first change stays what to go back to.
    command_line: str
    # They are taken away; the record stays until a boot without them was seen.
    removed: bool
