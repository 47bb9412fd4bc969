# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module drive_facts: which drives there are, whether they may be erased, and how they could be purged."""

from __future__ import annotations

import typing as t

from ..core.host import Host
from ..drive.entry import parse, programs
from ..drive.health import power_on_hours
from ..guard.data_scan import Terms
from ..guard.guard_check import discover, inspect
from ..records import base
from ..records.identity import Identity
from ..records.plan import PlannedPurge
from ..records.purge import Found, OfferedPurge
from .methods import offers_for, probe

OPTIONS: dict[str, t.Any] = {
    "drives": {"type": "list", "elements": "raw", "default": []},
    "discover": {"type": "bool", "default": False},
    "state_dir": {"type": "path"},
    "look": {"type": "str", "choices": ["sample", "full"], "default": "sample"},
    "look_s": {"type": "float", "default": 10.0},
    "passing_programs": {
        "type": "list",
        "elements": "dict",
        "default": [],
        "no_log": False,
        "options": {
            "path": {"type": "str", "required": True},
            "opens_for_writing": {"type": "bool", "default": False},
        },
    },
}


class Purges(t.NamedTuple):
    """How a drive could be purged: the offers without a test's options, and what they are made of."""

    offers: list[OfferedPurge]
    capabilities: Found


def module_result(host: Host, options: dict[str, t.Any]) -> dict[str, t.Any]:
    """Return the module's result."""
    terms = Terms(None if options["look"] == "full" else options["look_s"])
    entries = [parse(drive) for drive in options["drives"]]
    drives = inspect(host, entries, state_dir=options["state_dir"], terms=terms)
    if options["discover"]:
        named, looking = {entry["path"] for entry in drives}, programs(options["passing_programs"])
        found = discover(host, options["state_dir"], terms, looking)
        drives += [entry for entry in found if entry["path"] not in named]
    for entry in drives:
        identity = base.parse(Identity, entry["identity"]) if entry["identity"] else None
        if identity and entry.get("may_retire"):
            entry["power_on_hours"] = power_on_hours(host, identity)
        ways = purges(host, identity, [refusal["code"] for refusal in entry["refusals"]])
        entry["purge"] = base.to_json(ways.offers)
        entry["purge_capabilities"] = base.to_json(ways.capabilities)
    return {"drives": drives}


def purges(host: Host, identity: Identity | None, refusals: t.Iterable[str]) -> Purges:
    """Return how a drive could be purged. refusals: the codes of why it may not be erased.

    A drive that may not be erased is not probed: somebody may be using it. Its content is no hindrance: preflight knows
    whether it is the run's own.
    """
    if identity is None or any(code != "unsigned_data" for code in refusals):
        return Purges([], {})
    found = probe(host, identity)
    return Purges(offers_for(found, identity.logical_block_size_bytes, PlannedPurge("auto")), found)
