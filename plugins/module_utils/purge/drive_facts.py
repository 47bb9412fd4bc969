# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module drive_facts: which drives there are, whether they may be erased, and how they could be purged."""

from __future__ import annotations

import typing as t

from ..core.host import Host
from ..drive.entry import parse
from ..guard.data_scan import Terms
from ..guard.guard_check import discover, inspect
from .methods import offers_for, probe

OPTIONS: dict[str, t.Any] = {
    "drives": {"type": "list", "elements": "raw", "default": []},
    "discover": {"type": "bool", "default": False},
    "state_dir": {"type": "path"},
    "look": {"type": "str", "choices": ["sample", "full"], "default": "sample"},
    "look_s": {"type": "float", "default": 10.0},
}


def module_result(host: Host, options: dict[str, t.Any]) -> dict[str, t.Any]:
    """Return the module's result."""
    terms = Terms(None if options["look"] == "full" else options["look_s"])
    entries = [parse(drive) for drive in options["drives"]]
    drives = inspect(host, entries, state_dir=options["state_dir"], terms=terms)
    if options["discover"]:
        named = {entry["path"] for entry in drives}
        drives += [entry for entry in discover(host, options["state_dir"], terms) if entry["path"] not in named]
    return {"drives": [dict(entry, **purge_facts(host, entry)) for entry in drives]}


def purge_facts(host: Host, entry: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """Return {purge: offers without options, purge_capabilities: of `probe`} of an entry of `inspect`.

    A drive that may not be erased is not probed: somebody may be using it. Its content is no hindrance: preflight knows
    whether it is the run's own.
    """
    usable = entry["identity"] and all(refusal["code"] == "unsigned_data" for refusal in entry["refusals"])
    found = probe(host, entry["identity"]) if usable else {}
    return {"purge": offers_for(found, entry["identity"] or {}, {}), "purge_capabilities": found}
