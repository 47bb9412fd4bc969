# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Leaves drives out of what preflight decides on: those in quarantine, those that are refused (refused_drives.py) and
those that no approved plan has. Pure; the store knows who is in quarantine.
"""

from __future__ import annotations

import typing as t
from types import MappingProxyType

from ...module_utils.drive.entry import parse
from ...module_utils.records import base
from ..store import import_records, quarantine
from . import approval, approval_check
from .begun_run import BegunRun
from .findings import HostAnswer, Run, host_list, shared_value
from .refused_drives import sick

Marks = t.Sequence[quarantine.Quarantined]
# Of a run that is under way: {(host, drive): why it was left out when the run began}.
Kept = t.Mapping[tuple[str, str], str]


def exclude(
    views: t.Sequence[HostAnswer],
    run: Run | None,
    marks: Marks,
    kept: Kept,
    approved: approval.ApprovedPlan | None = None,
    without: Kept = MappingProxyType({}),
) -> list[HostAnswer]:
    """Return the views without the drives that are left out; those stand in `left_out`. A host that has begun the run
    goes on with the drives that it began with, and a single step (purge.yml) takes any drive that is there.

    approved: what it leaves out, nobody approved to erase. without: of decision.Request.
    """
    if run is None:
        return list(views)
    qualifies = shared_value(views, "ssd_step") == "qualify"
    mine = [mark for mark in marks if mark.run_name == run.name and qualifies]
    found = []
    for view in views:
        begun = view.name in run.attach
        known = {drive: why for (host, drive), why in (kept if begun else without).items() if host == view.name}
        if not begun:
            known = {**_marked(view, mine), **approval_check.left_out(approved, view.name), **known}
        found.append(_without(view, {drive: known[drive] for drive in _asked(view) if drive in known}))
    return found


def of_run(before: BegunRun) -> Kept:
    """Return the drives that were left out when a run began, and why."""
    return {(one.host, one.drive): one.left_out for one in before.drives if one.left_out}


def lines(views: t.Sequence[HostAnswer]) -> list[str]:
    """For people: each drive that is left out, and why; as one those of a host for the same reason, and a host."""
    found = []
    for view in views:
        if view.gone:
            found.append(f"{view.name}: {view.gone}; its drives ({host_list(list(view.left_out))}) are left out")
        else:
            by_reason: dict[str, list[str]] = {}
            for drive, why in view.left_out.items():
                by_reason.setdefault(why, []).append(drive)
            found += [f"{view.name}: {_named(drives)}: {why}" for why, drives in by_reason.items()]
    return found


def _named(drives: t.Sequence[str]) -> str:
    return f"drive {drives[0]}" if len(drives) == 1 else f"{len(drives)} drives ({host_list(drives)})"


def _marked(view: HostAnswer, marks: Marks) -> dict[str, str]:
    by_identity: dict[str, list[quarantine.Quarantined]] = {}
    for mark in marks:
        by_identity.setdefault(mark.identity, []).append(mark)
    # For a drive without a serial number, and for one that no longer tells it.
    by_place = {mark.drive: mark for mark in marks if mark.host == view.name}
    known = {one.drive: import_records.known_as(base.to_json(one.identity) or {}) for one in view.drives or ()}
    found = {}
    for drive in _asked(view):
        identity = known.get(drive) or ""
        mine = [mark for mark in by_identity.get(identity, ()) if _means(mark, identity, view.name, drive)]
        if not identity and drive in by_place:
            mine = [by_place[drive]]
        if mine:
            found[drive] = mine[-1].text()
    return found


def _means(mark: quarantine.Quarantined, identity: str, host: str, drive: str) -> bool:
    return quarantine.same(quarantine.Who(mark.identity, mark.host, mark.drive), quarantine.Who(identity, host, drive))


def _asked(view: HostAnswer) -> list[str]:
    return [entry.label for entry in view.entries or ()]


def _without(view: HostAnswer, reasons: t.Mapping[str, str]) -> HostAnswer:
    """A drive that is left out may be in use all the same, so nobody else may have it (duplicates.py)."""
    if not reasons or view.asked is None:
        return view
    return view._replace(
        entries=[entry for entry in view.entries or () if entry.label not in reasons],
        drives=None if view.drives is None else [one for one in view.drives if str(one.drive) not in reasons],
        checks=None if view.checks is None else [one for one in view.checks if one.drive not in reasons],
        left_out=reasons,
        sick={drive: why for drive, why in sick(view).items() if drive in reasons},
        unseen=[(parse(one.selector), one) for one in view.drives or () if one.drive in reasons],
    )
