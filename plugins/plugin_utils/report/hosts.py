# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The view of one host: its facts, settings and warnings. Pure; nothing is escaped here, the templates do that."""

from __future__ import annotations

import typing as t
from urllib.parse import quote

from . import conditions
from .raw import HostRaw
from .sources import Sources

Mapping = t.Dict[str, t.Any]


def host(sources: Sources, name: str) -> Mapping:
    """One host as the templates show it."""
    raw = sources.raw.get(name) or HostRaw({}, [], {}, {})
    record = sources.hosts.get(name) or {}
    outcomes = [setting.get("outcome") for setting in raw.settings]
    left = [setting for setting in raw.settings if (setting.get("restored") or {}).get("outcome") == "failed"]
    return {
        "name": name,
        "state": record.get("state") or "nothing collected",
        "message": "; ".join(part for part in (record.get("message"), raw.problem) if part),
        "facts": raw.facts,
        "settings": raw.settings,
        "changed": outcomes.count("changed"),
        "not_restored": len(left),
        "warnings": conditions.warnings(sources.run, name, None),
        "journal": f"../raw/{quote(name, safe='')}/journal.jsonl" if raw.facts else None,
    }
