# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module drive_facts: which drives there are, and whether they may be erased."""

from __future__ import annotations

import typing as t

from ..core.host import Host
from ..drive.entry import parse
from ..guard.inspection import discover, inspect
from ..guard.look import Terms
from .methods import facts

OPTIONS: dict[str, t.Any] = {
    "drives": {"type": "list", "elements": "raw", "default": []},
    "discover": {"type": "bool", "default": False},
    "state_dir": {"type": "path"},
    "look": {"type": "str", "choices": ["sample", "full"], "default": "sample"},
    "look_s": {"type": "float", "default": 10.0},
}


def answer(host: Host, given: dict[str, t.Any]) -> dict[str, t.Any]:
    """Its result."""
    terms = Terms(None if given["look"] == "full" else given["look_s"])
    entries = [parse(drive) for drive in given["drives"]]
    drives = inspect(host, entries, state_dir=given["state_dir"], terms=terms)
    if given["discover"]:
        named = {entry["path"] for entry in drives}
        drives += [entry for entry in discover(host, given["state_dir"], terms) if entry["path"] not in named]
    return {"drives": [dict(entry, **facts(host, entry)) for entry in drives]}
