# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which drives and hosts a run does without because of what was found of them (ssd_refused: leave_out). Pure.

What concerns no single drive or host stops everything: findings.Finding.concerns.
"""

from __future__ import annotations

import typing as t
from types import MappingProxyType

from ...module_utils.drive.entry import OVERRIDES
from ...module_utils.guard.refusals import REFUSALS
from ...module_utils.run.states import SETTLED_STATES
from ..run_folder.run_record import RunWarning
from . import examine_arguments
from .findings import OF_INVENTORY, Finding, HostAnswer, Run, shared_value, standing

# What no drive of a right list is: such a host's list may be that of another host.
WRONG_LIST = (
    "root_disk",
    "mounted",
    "swap",
    "hibernation",
    "held",
    "busy",
    "opened",
    "exported",
    "reserved",
    "configured",
    "identity_changed",
)
# What the guard of a host job refuses again. Without a drive that is gone no plan can be made.
REPEATED = frozenset(REFUSALS) - {"not_found", *OF_INVENTORY}
# Steps that reach the host, or all of its drives, and not only those that take part.
PREPARED = "this play would restart the host, or set up all of its drives by a vendor's tool"
# Checks that call the drive itself bad, without measuring it.
SICK = ("health", "spare")


class Without(t.NamedTuple):
    """Why a run does without drives, by (host, drive), and without whole hosts."""

    drives: t.Mapping[tuple[str, str], str] = MappingProxyType({})
    hosts: t.Mapping[str, str] = MappingProxyType({})

    def __or__(self, other: Without) -> Without:
        return Without({**self.drives, **other.drives}, {**self.hosts, **other.hosts})


def is_enabled(views: t.Sequence[HostAnswer]) -> bool:
    """Return whether the run does without what is refused. A single step does all that it names or nothing."""
    return bool(shared_value(views, "ssd_refused") == "leave_out" and shared_value(views, "ssd_step") == "qualify")


def without(found: t.Sequence[Finding], views: t.Sequence[HostAnswer], run: Run | None) -> Without:
    """Return what is to be left out so that nothing of `found` stops the others; nothing where `found` would leave
    nobody, or concerns them all.
    """
    if run is None or not is_enabled(views) or any(finding.concerns is None for finding in found):
        return Without()
    of_hosts: dict[str, list[Finding]] = {}
    of_drives: dict[tuple[str, str], list[Finding]] = {}
    prepared = {view.name for view in views if examine_arguments.prepares(view.asked or {})}
    for finding in found:
        if finding.concerns and finding.host in prepared:
            of_hosts.setdefault(finding.host, []).append(
                finding._replace(message=f"drive {finding.drive}: {finding.message} ({PREPARED})")
            )
        elif finding.concerns:
            of_drives.setdefault((finding.host, finding.concerns), []).append(finding)
        else:
            of_hosts.setdefault(finding.host, []).append(finding)
    drives = {place: why for view in views for place, why in _suspected(view, run).items()}
    drives.update({place: _told(own) for place, own in of_drives.items() if place[0] not in of_hosts})
    left = Without(drives, {host: _told(own) for host, own in of_hosts.items()})
    # Where nothing else is found, a suspected drive is left out though nobody remains.
    return left if _remains(views, left) or not found else Without()


def of_begun(
    found: t.Sequence[Finding], views: t.Sequence[HostAnswer], run: Run | None
) -> tuple[list[Finding], list[RunWarning]]:
    """Return the findings that count, and warnings in place of the guard's refusals of drives with which a host began
    the run: its job has them in its plan, refuses them itself and goes on with the others. Of anything else its job
    does not know, and a plan without the drive would be another one: that concerns the host.
    """
    if run is None or not is_enabled(views):
        return list(found), []
    counting, warned = [], []
    for finding in found:
        begun = finding.concerns and run.attach.get(finding.host) not in (None, *SETTLED_STATES)
        if not begun:
            counting.append(finding)
        elif finding.message.partition(":")[0] in REPEATED:
            text = f"the host job will refuse it and go on with the others: {finding.message}"
            remedy = "mend the cause before the run goes on, or measure the drive in another run"
            warned.append(RunWarning(finding.host, "refused", finding.concerns, "warning", text, remedy))
        else:
            text = (
                f"it began run {run.id} with drive {finding.concerns}, and cannot continue without it "
                f"({finding.message}); keep what it measured with stop.yml -e ssd_run_id={run.id}"
            )
            counting.append(Finding(text, finding.host, concerns=""))
    return counting, warned


def sick(view: HostAnswer) -> dict[str, str]:
    """Return what a host's checks find of drives that are bad by their own account: {drive: why}."""
    return {
        str(item.drive): f"{item.check}: {item.message}"
        for item in view.checks or ()
        if item.drive and item.check in SICK and item.level == "blocks"
    }


def _told(found: t.Sequence[Finding]) -> str:
    """Return the first finding whole, and what else there is by its code: who mends the first looks again anyway. Why a
    statement of the entry lifts nothing comes before what it would lift.
    """
    told = dict.fromkeys(finding.message for finding in found)
    first, *others = sorted(told, key=lambda message: not message.startswith("not_given_up:"))
    codes = list(dict.fromkeys(message.partition(":")[0] for message in others))
    return first + (f" (also: {', '.join(codes)})" if codes else "")


def _suspected(view: HostAnswer, run: Run) -> dict[tuple[str, str], str]:
    """Return the drives of a host whose list seems wrong that only an override lets through."""
    if view.name in run.attach:
        return {}
    known = [*(view.drives or ()), *(found for _entry, found in view.unseen if found)]
    refused = {str(one.drive): [refusal.code for refusal in standing(one, run)] for one in known}
    wrong = {drive: code for drive, codes in refused.items() for code in codes if code in WRONG_LIST}
    if not wrong:
        return {}
    drive, code = next(iter(wrong.items()))
    return {
        (view.name, entry.label): (
            f"wrong_list: {drive} in the same list is refused ({code}), so the list may be another host's, and this "
            f"entry overrides the guard ({', '.join(options)}); mend or remove the entry of {drive}"
        )
        for entry in view.entries or ()
        if entry.problem is None and entry.label not in wrong
        for options in [[name for name in OVERRIDES if getattr(entry.options, name)]]
        if options
    }


def _remains(views: t.Sequence[HostAnswer], left: Without) -> bool:
    return any(
        view.name not in left.hosts and (view.name, entry.label) not in left.drives
        for view in views
        for entry in view.entries or ()
    )
