# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The view of one host's page: what it is, what it has otherwise than its peers, its drives, settings and warnings.

Pure; nothing is escaped here, the templates do that.
"""

from __future__ import annotations

import typing as t
from urllib.parse import quote

from ..peers import host_diff
from . import measured_conditions, page_names
from .run_sources import NO_RAW, Sources, racks

Record = dict[str, t.Any]


class HostSnapshots:
    """The snapshots of all hosts, to tell what one has otherwise than most of the others that have drives of its
    models.
    """

    def __init__(self, sources: Sources, rows: list[Record]) -> None:
        self._models: dict[str, set[str]] = {}
        # Of hosts with the same models, of which there may be thousands: counted once.
        self._alike: dict[frozenset[str], host_diff.Peers] = {}
        for row in rows:
            self._models.setdefault(row["host"], set()).add(row["model"] or "")
        self._snapshots = {name: host_diff.flat(record.get("snapshot") or {}) for name, record in sources.hosts.items()}

    def differs(self, host: str) -> list[str]:
        """As peers/host_diff.py says it; nothing where the host has no snapshot, or no peer."""
        mine, models = self._snapshots.get(host), frozenset(self._models.get(host, ()))
        if not mine or not models:
            return []
        if models not in self._alike:
            others = [name for name, theirs in self._models.items() if theirs & models and self._snapshots.get(name)]
            self._alike[models] = host_diff.peers(self._snapshots[name] for name in others)
        return host_diff.describe_differences(mine, self._alike[models], among=True)


def host(sources: Sources, name: str, rows: list[Record], peers: HostSnapshots, made: t.Container[str]) -> Record:
    """{name, rack, state, message, facts, at_once, settings, changed, not_restored, warnings, journal, differs, low,
    drives: rows of its own}.
    """
    raw = sources.raw(name) or NO_RAW
    record = sources.hosts.get(name) or {}
    outcomes = [setting.get("outcome") for setting in raw.settings]
    left = [setting for setting in raw.settings if (setting.get("restored") or {}).get("outcome") == "failed"]
    return {
        "name": name,
        "rack": racks(sources.run).get(name, ""),
        "state": record.get("state") or "nothing collected",
        "message": "; ".join(part for part in (record.get("message"), raw.problem) if part),
        "facts": {**raw.facts, **_hypervisor(record.get("snapshot") or {})},
        "at_once": _at_once(record.get("calibration")),
        "settings": raw.settings,
        "changed": outcomes.count("changed"),
        "not_restored": len(left),
        "warnings": measured_conditions.warnings(sources.run, name, None),
        "journal": f"../../raw/{quote(name, safe='')}/journal.jsonl" if raw.facts else None,
        "differs": peers.differs(name),
        "low": next((entry for entry in sources.fleet.get("low_hosts") or [] if entry["host"] == name), None),
        "drives": [
            {**row, "href": f"../{row['page']}" if row["page"] in made else ""} for row in rows if row["host"] == name
        ],
        "page": page_names.host_page(name),
    }


def _hypervisor(snapshot: Record) -> dict[str, str]:
    """Return what is known of a guest's hypervisor, by name."""
    return {f"hypervisor_{name}": str(value) for name, value in (snapshot.get("hypervisor") or {}).items() if value}


def _at_once(told: Record | None) -> Record | None:
    """Return how the host found how many drives it measures at a time, with each trial's `shares` in the order of
    drives.
    """
    if not told:
        return None
    trials = []
    for trial in told["trials"]:
        kept = {one["drive"]: one["share"] for one in trial.get("kept") or []}
        trials.append({**trial, "shares": [kept.get(drive) for drive in told["drives"]]})
    return {**told, "trials": trials}
