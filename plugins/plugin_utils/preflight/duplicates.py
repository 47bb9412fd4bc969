# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is named more than once: drives, machines, and namespaces of one drive. Pure; each check returns
all it finds.
"""

from __future__ import annotations

import re
import typing as t
from types import MappingProxyType

from ...module_utils.drive.entry import Entry, by_id_name, parse, wwn_key
from ...module_utils.records.found_drives import FoundDrive
from ...module_utils.records.host_snapshot import HostIdentity
from ...module_utils.records.identity import Identity
from ...module_utils.run.states import SETTLED_STATES
from ..common import values
from ..common.argument_specs import Variables
from ..common.schema import plain
from .findings import Finding, HostAnswer, Run

# {host: its ssd_drives as the inventory has it}
Entries = Variables


class _Names(t.NamedTuple):
    """What a host tells of who a drive is; "" for what it does not. place: where it is, for a drive without names."""

    serial: str
    wwn: str
    model: str
    place: tuple[t.Any, ...] = ()


def same_drives(views: t.Sequence[HostAnswer]) -> list[Finding]:
    """Drives that two hosts name: one machine under two names, or a drive that two machines share."""
    seen: dict[_Names, list[tuple[str, str]]] = {}
    for view in views:
        for found in view.drives or ():
            names = _names(found.identity, view.facts)
            if names:
                seen.setdefault(names, []).append((view.name, str(found.drive)))
    groups = [[place for names in group for place in seen[names]] for group in _groups(seen)]
    return [
        Finding(
            (
                f"duplicate: is the same drive as that of {' and '.join(f'{host} ({drive})' for host, drive in rest)}; "
                "name it under one host only"
            ),
            *first,
        )
        for first, *rest in groups
        if len({host for host, _drive in [first, *rest]}) > 1
    ]


def named_elsewhere(views: t.Sequence[HostAnswer], others: Entries = MappingProxyType({})) -> list[Finding]:
    """Drives that another host names which nobody looked at, or which leaves them out: whether it uses them is unknown.

    others: of hosts that are not in this play (--limit).
    """
    asked: dict[str, tuple[t.Sequence[Entry], str]] = {
        **{view.name: (view.entries or (), "is unreachable") for view in views if view.unreachable},
        **{host: (_parsed(given), "is not in this play") for host, given in others.items()},
    }
    known: dict[tuple[str, str], dict[str, str]] = {}
    for host, (entries, why) in asked.items():
        for entry in entries:
            for name in _may_mean(entry):
                known.setdefault(name, {})[host] = why
    for view in views:
        for entry, drive in view.unseen:
            for name in (*_may_mean(entry), *_all_names(drive, entry)):
                known.setdefault(name, {})[view.name] = "is left out" if view.gone else "leaves it out"
    known.pop(_NOBODY, None)
    return [
        Finding(
            f"duplicate: {host} names it too and {why}, so nobody knows whether {host} uses it; name it under one host "
            "only (if these are two drives with one serial number, name them by wwn)",
            view.name,
            str(drive.drive),
            str(drive.drive),
        )
        for view in views
        for drive in view.drives or ()
        for names in [_all_names(drive, parse(drive.selector))]
        for host, why in {host: why for name in names for host, why in known.get(name, {}).items()}.items()
        if host != view.name
    ]


def _parsed(given: t.Any) -> list[Entry]:
    return [parse(drive) for drive in plain(given)] if isinstance(given, list) else []


_NOBODY = ("", "")
_NAMED_BY_WWN = ("wwn-", "nvme-eui.", "nvme-uuid.", "nvme-nguid.")


def _called(entry: Entry) -> tuple[str, str]:
    """Return what an entry of ssd_drives calls its drive, as far as that means the same on any host; else _NOBODY."""
    if entry.problem is not None:
        return _NOBODY
    key, value = entry.kind, entry.label
    alike = {"serial": value, "wwn": wwn_key(value), "by_id": by_id_name(value)}
    return (key, alike[key] or "") if alike.get(key) else _NOBODY


def _may_mean(entry: Entry) -> list[tuple[str, str]]:
    """Return what the drive of an entry may be called that nobody looked at: a name in /dev/disk/by-id holds its world
    wide name, or ends with its serial number, which a namespace may follow.
    """
    called = _called(entry)
    if called[0] != "by_id":
        return [called]
    parts = re.split("[-_]", called[1])
    ends = ["_".join(parts[place:]) for place in range(1, len(parts))]
    serials = {*ends, *(end.rpartition("_")[0] for end in ends), *parts[1:]}
    wwn = wwn_key(called[1]) if called[1].startswith(_NAMED_BY_WWN) else None
    return [called, *([("wwn", wwn)] if wwn else []), *(("serial", serial) for serial in sorted(serials) if serial)]


def _all_names(drive: FoundDrive | None, entry: Entry) -> list[tuple[str, str]]:
    """Return what a drive that was looked at, and the entry that named it, call it."""
    identity = (drive and drive.identity) or Identity()
    serial, wwn = identity.serial or "", wwn_key(identity.wwn or "") or ""
    names = [_called(entry), ("serial", serial), ("wwn", wwn)]
    return list(dict.fromkeys(name for name in names if name[1]))


def _groups(seen: t.Iterable[_Names]) -> list[list[_Names]]:
    """Names that may be those of one drive, together, in the order in which they were met."""
    buckets: dict[tuple[str, t.Any], list[_Names]] = {}
    group_of: dict[_Names, list[_Names]] = {}
    for names in seen:
        group_of[names] = own = [names]
        for key in (("serial", names.serial), ("wwn", names.wwn), ("place", names.place)):
            if not key[1]:
                continue
            known = buckets.setdefault(key, [])
            for other in known:
                if group_of[other] is own or not _alike(other, names):
                    continue
                own, taken = group_of[other], own
                own += taken
                group_of.update({one: own for one in taken})
            known.append(names)
    return list({id(group): group for group in group_of.values()}.values())


def _alike(one: _Names, other: _Names) -> bool:
    """Return whether two hosts may mean one drive: what only one of them tells speaks for no other drive."""
    if one.place or other.place:
        return one.place == other.place
    if one.serial and other.serial and one.serial != other.serial:
        return False
    if one.wwn and other.wwn:
        return one.wwn == other.wwn
    # Of a serial number alone: each maker has his own. SCSI cuts a model at 16 letters.
    return one.serial == other.serial and (one.model.startswith(other.model) or other.model.startswith(one.model))


def side_by_side(view: HostAnswer, run: Run | None) -> list[Finding]:
    """Drives with one serial number that would be tested at the same time: namespaces of one drive, which share what
    they are made of; and the lock is by that number. With auto they are measured one after the other.
    """
    asked = view.asked or {}
    number = asked.get("ssd_parallel_drives")
    one_by_one = number == values.AUTO or values.drives_at_once(number, len(view.drives or ())) < 2
    if one_by_one or asked.get("ssd_step") == "tune" or (run and run.attach.get(view.name) in SETTLED_STATES):
        return []
    seen: dict[str, list[str]] = {}
    for found in view.drives or ():
        serial = found.identity and found.identity.serial
        if serial and "duplicate" not in [refusal.code for refusal in found.refusals]:
            seen.setdefault(serial, []).append(str(found.drive))
    why = "namespaces of one drive would disturb each other; set it to 1"
    return [
        Finding(
            f"ssd_parallel_drives: {' and '.join(names)} have one serial number ({serial}), and {why}",
            view.name,
            concerns="",
        )
        for serial, names in seen.items()
        if len(names) > 1
    ]


def same_machines(views: t.Sequence[HostAnswer]) -> list[Finding]:
    """Inventory names that are one machine: it has one host job, so the drives of the second name would not be tested.

    Cloned machines share a machine id and containers a boot id, but neither of them both and the host name too.
    """
    seen: dict[tuple[str, str | None, str], list[str]] = {}
    for view in views:
        facts = view.facts
        if facts and facts.boot_id and facts.hostname:
            seen.setdefault((facts.boot_id, facts.machine_id, facts.hostname), []).append(view.name)
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


def _names(identity: Identity | None, facts: HostIdentity | None) -> _Names | None:
    """Return what a view says of who a drive is; None where that is unknown."""
    if not identity:
        return None
    serial, model, wwn = identity.serial or "", identity.model or "", wwn_key(identity.wwn or "") or ""
    if serial or wwn:
        return _Names(serial, wwn, model)
    place = identity.diskseq or identity.major_minor
    return _Names("", "", "", (facts.boot_id, place)) if facts and facts.boot_id and place else None
