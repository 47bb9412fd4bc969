# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is named more than once: drives, machines, and namespaces of one drive. Pure; each check returns
all it finds.
"""

from __future__ import annotations

import typing as t

from ..common import values
from .findings import DRIVES_SETTLED, Finding, Run, View


def same_drives(views: t.Sequence[View]) -> list[Finding]:
    """Drives that two hosts name: one machine under two names, or a drive that two machines share."""
    seen: dict[tuple[t.Any, ...], list[tuple[str, str]]] = {}
    for view in views:
        for entry in view.drives or ():
            key = _drive_key(entry.get("identity"), view.facts or {})
            if key:
                seen.setdefault(key, []).append((view.name, str(entry["drive"])))
    return [
        Finding(
            (
                f"duplicate: is the same drive as that of {' and '.join(f'{host} ({drive})' for host, drive in rest)}; "
                "keep it under one host"
            ),
            *first,
        )
        for first, *rest in seen.values()
        if len({host for host, _drive in [first, *rest]}) > 1
    ]


def side_by_side(view: View, run: Run | None) -> list[Finding]:
    """Namespaces of one drive that would be tested at the same time: they share what they are made of, and the drive's
    lock.
    """
    asked = view.asked or {}
    one_by_one = (values.whole(asked.get("ssd_parallel_drives", 1)) or 1) < 2
    if one_by_one or asked.get("ssd_step") == "tune" or (run and run.attach.get(view.name) in DRIVES_SETTLED):
        return []
    seen: dict[str, list[str]] = {}
    for entry in view.drives or ():
        serial = (entry.get("identity") or {}).get("serial")
        if serial and "duplicate" not in [refusal["code"] for refusal in entry.get("refusals", ())]:
            seen.setdefault(serial, []).append(str(entry["drive"]))
    why = "and would disturb each other; set it to 1"
    return [
        Finding(
            f"ssd_parallel_drives: {' and '.join(names)} are namespaces of one drive (serial {serial}) {why}", view.name
        )
        for serial, names in seen.items()
        if len(names) > 1
    ]


def same_machines(views: t.Sequence[View]) -> list[Finding]:
    """Inventory names that are one machine: it has one host job, so the drives of the second name would not be tested.

    Cloned machines share a machine id and containers a boot id, but neither of them both and the host name too.
    """
    seen: dict[tuple[t.Any, ...], list[str]] = {}
    for view in views:
        facts = view.facts or {}
        if facts.get("boot_id") and facts.get("hostname"):
            seen.setdefault((facts["boot_id"], facts.get("machine_id"), facts["hostname"]), []).append(view.name)
    return [
        Finding(
            (
                f"same_machine: is the same machine as {', '.join(others)} (host name {key[2]}); name all its drives "
                "under one of them"
            ),
            first,
        )
        for key, (first, *others) in seen.items()
        if others
    ]


def _drive_key(identity: t.Mapping[str, t.Any] | None, facts: t.Mapping[str, t.Any]) -> tuple[t.Any, ...] | None:
    """What two views of one drive have in common; None where that is unknown."""
    if not identity:
        return None
    if identity.get("serial"):
        return identity["serial"], identity.get("model"), identity.get("wwn")
    if identity.get("wwn"):
        return ("wwn", identity["wwn"])
    place = identity.get("diskseq") or identity.get("major_minor")
    return (facts["boot_id"], place) if facts.get("boot_id") and place else None
