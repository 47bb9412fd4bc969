# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which drives and hosts a run does without because of what was found of them (ssd_refused: leave_out). Pure.

What concerns no single drive or host stops everything: findings.Finding.concerns.
"""

from __future__ import annotations

import typing as t
from types import MappingProxyType

from ...module_utils.drive.entry import GUARD_OPTIONS
from ...module_utils.run.states import SETTLED_STATES
from .findings import Finding, HostAnswer, Run, shared_value, standing

# What no drive of a right list is: such a host's list may be that of another host.
WRONG_LIST = ("root_disk", "mounted", "swap", "hibernation", "held", "busy", "opened", "identity_changed")
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
    """Return what can be left out so that nothing of `found` stops the others; nothing where that would leave nobody,
    or where something concerns them all.
    """
    if not found or run is None or not is_enabled(views) or any(finding.concerns is None for finding in found):
        return Without()
    of_hosts: dict[str, list[Finding]] = {}
    of_drives: dict[tuple[str, str], list[Finding]] = {}
    for finding in found:
        if finding.concerns:
            of_drives.setdefault((finding.host, finding.concerns), []).append(finding)
        else:
            of_hosts.setdefault(finding.host, []).append(finding)
    drives = {place: why for view in views for place, why in _suspected(view, run).items()}
    drives.update({place: _told(own) for place, own in of_drives.items() if place[0] not in of_hosts})
    left = Without(drives, {host: _told(own) for host, own in of_hosts.items()})
    return left if _remains(views, left) else Without()


def sick(view: HostAnswer) -> dict[str, str]:
    """Return what a host's checks find of drives that are bad by their own account: {drive: why}."""
    return {
        str(item.drive): f"{item.check}: {item.message}"
        for item in view.checks or ()
        if item.drive and item.check in SICK and item.level == "blocks"
    }


def _told(found: t.Sequence[Finding]) -> str:
    """Return the first finding whole, and what else there is by its code: who mends the first looks again anyway."""
    first, *others = dict.fromkeys(finding.message for finding in found)
    codes = list(dict.fromkeys(message.partition(":")[0] for message in others))
    return first + (f" (also: {', '.join(codes)})" if codes else "")


def _suspected(view: HostAnswer, run: Run) -> dict[tuple[str, str], str]:
    """Return the drives of a host whose list seems wrong that only an override lets through."""
    if run.attach.get(view.name) in SETTLED_STATES:
        return {}
    refused = {str(one.drive): [refusal.code for refusal in standing(one, run)] for one in view.drives or ()}
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
        for options in [[name for name in GUARD_OPTIONS if getattr(entry.options, name)]]
        if options
    }


def _remains(views: t.Sequence[HostAnswer], left: Without) -> bool:
    return any(
        view.name not in left.hosts and (view.name, entry.label) not in left.drives
        for view in views
        for entry in view.entries or ()
    )
