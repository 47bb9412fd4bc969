# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Drives in service (ssd_service_drives): found as the guard finds drives, and refused where it is unknown which drive
it is. What speaks against erasing a drive does not speak against reading it. Reads sysfs alone.
"""

from __future__ import annotations

import re
import typing as t

from ..core.host import Host
from ..drive import identity, self_test
from ..drive.entry import Entry
from ..records.found_drives import FoundDrive
from ..records.guard import Refusal
from ..records.identity import Identity
from .guard_check import locate
from .probe import kind_of
from .rules import make_refusals

# What `all` leaves out of what discover lists: devices of software, which lie on drives that it has.
_OF_SOFTWARE = ("loop", "nbd")
_OF_PARTITION = re.compile(r"-part[0-9]+$")


def found(host: Host, entries: t.Sequence[Entry]) -> list[FoundDrive]:
    """Return the drives that entries of ssd_service_drives name, in their order; `eligible`: may be read."""
    located = [locate(host, entry) for entry in entries]
    drives = []
    for index, (entry, (name, refused)) in enumerate(zip(entries, located)):
        twins = [
            entries[other].label
            for other, (twin, _none) in enumerate(located)
            if name and twin == name and other != index
        ]
        drives.append(_one(host, entry, name, [*refused, *make_refusals("duplicate", entry.label, twins)]))
    return drives


def whole(host: Host) -> list[FoundDrive]:
    """Return all whole drives of the host, boot drives too. One that nothing names is refused, and not read."""
    drives = []
    for name in identity.whole_drives(host):
        if name.startswith(_OF_SOFTWARE) or not identity.size_bytes(host, name):
            continue
        entry = identity.best_entry(host, name)
        refused = [] if entry else make_refusals("no_identity", identity.node(name), [""])
        drives.append(_one(host, entry, name, refused))
    return drives


def _one(host: Host, entry: Entry | None, name: str | None, refused: list[Refusal]) -> FoundDrive:
    # A malformed entry names nothing.
    given = None if entry is None or any(one.code == "bad_selector" for one in refused) else entry.given
    if name is None:
        return FoundDrive(given, entry.label if entry else None, None, None, False, refused)
    who, kind = identity.identity(host, name), kind_of(host, name)
    label = entry.label if entry else identity.node(name)
    if kind != "drive":
        refused = [*refused, *make_refusals("not_whole_drive", label, [f"{name} is {kind}"])]
    elif not who.size_bytes:
        refused = [*refused, *make_refusals("no_capacity", label, ["0 bytes"])]
    return FoundDrive(
        selector=given,
        drive=label,
        path=identity.node(name),
        identity=who,
        eligible=not refused,
        refusals=refused,
        has_self_tests=_has_self_tests(host, who) if not refused else None,
    )


def _has_self_tests(host: Host, who: Identity) -> bool:
    """Return whether its self-tests can be begun and read by this host's tools."""
    seen = self_test.read(host, who)
    return seen.is_offered is not False and seen.is_running is not None


class Protection(t.NamedTuple):
    """What a list of drives in service keeps from being erased. paths: of these drives; problems: why that may not be
    all that was meant; not_found: the entries that name no drive of this host now.
    """

    paths: set[str]
    problems: list[str]
    not_found: list[str]


def protection(host: Host, entries: t.Sequence[Entry]) -> Protection:
    """Return which drives a list keeps. An ambiguous entry keeps all that match; one of a partition names no drive."""
    found = Protection(set(), [], [])
    for entry in entries:
        name, refused = locate(host, entry)
        codes = {one.code for one in refused}
        found.problems.extend(f"{one.code}: {one.message}" for one in refused if one.code != "not_found")
        found.not_found.extend([entry.label] if "not_found" in codes else [])
        names = identity.find(host, entry) if "ambiguous" in codes else [name] if name else []
        found.paths.update(identity.node(one) for one in names)
        if entry.kind == "by_id" and (_OF_PARTITION.search(entry.label) or (name and kind_of(host, name) != "drive")):
            why = make_refusals("bad_selector", entry.label, ["it names a partition, not a whole drive"])
            found.problems.extend(f"{one.code}: {one.message}" for one in why)
    return found


def in_both(drives: t.Sequence[FoundDrive], paths: t.Collection[str] | None) -> list[FoundDrive]:
    """Return drives with a refusal for those that the host's other list names too. paths: of its drives; None: it has
    all drives.
    """
    return [_in_both(one, paths) for one in drives]


def _in_both(one: FoundDrive, paths: t.Collection[str] | None) -> FoundDrive:
    if one.path is None or (paths is not None and one.path not in paths):
        return one
    detail = "ssd_service_drives: all has every drive" if paths is None else one.path
    refusals = [*one.refusals, *make_refusals("in_service", f"{one.drive} ({one.path})", [detail])]
    return FoundDrive(**{**vars(one), "eligible": False, "refusals": refusals})
