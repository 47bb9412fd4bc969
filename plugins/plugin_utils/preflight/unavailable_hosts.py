# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hosts that a run does without (ssd_refused: leave_out): those that do not answer, or not as they should, and those
that are refused (refused_drives.py). Nothing is erased on them, and a drive that one of them names is erased nowhere
else. Pure.
"""

from __future__ import annotations

import typing as t
from types import MappingProxyType

from ...module_utils.drive.entry import parse
from ..common.argument_specs import Variables
from ..validation import printable
from .findings import REACH_IT, Finding, HostAnswer, Run, named_drives
from .refused_drives import is_enabled

MOST_WHY = 500


def hosts(
    views: t.Sequence[HostAnswer],
    run: Run | None,
    strange: t.Mapping[str, t.Sequence[Finding]],
    claims: t.Sequence[Finding] = (),
    before: t.Mapping[str, str] = MappingProxyType({}),
) -> dict[str, str]:
    """Return why the run does without a host, by host. Where its variables are wrong, they are told instead.

    strange: that it answered about other drives. claims: of runs to go on with. before: what this gave earlier in the
      play, as who is back by now was not prepared with the others; and of decision.Request.without.
    """
    if run is None or not is_enabled(views):
        return {}
    claimed = {finding.host: finding.message for finding in claims if finding.host}
    found = {
        view.name: before.get(view.name)
        or _unheard(view)
        or _strange(strange.get(view.name, ()))
        or claimed.get(view.name)
        for view in views
        if view.asked is not None and not named_drives(view)
    }
    return {host: printable.line(why, MOST_WHY) for host, why in found.items() if why}


def exclude(views: t.Sequence[HostAnswer], gone: t.Mapping[str, str]) -> list[HostAnswer]:
    """Return the views, those of `hosts` with nothing that could be decided on."""
    return [_without(view, gone[view.name]) if view.name in gone else view for view in views]


def nothing_left(views: t.Sequence[HostAnswer], run: Run | None) -> list[Finding]:
    """Return what a plan is told that has no drive left, some for not being available."""
    left = [view for view in views if view.asked is not None and _has_drives(view, view.asked)]
    if run is None or left or not any(view.gone for view in views):
        return []
    head = Finding("ssd_refused: no drive is left, so there is nothing to run; each is left out for this reason:")
    gone = [Finding(view.gone, view.name) for view in views if view.gone]
    return [
        head,
        *gone,
        *(Finding(why, view.name, drive) for view in views if not view.gone for drive, why in view.left_out.items()),
    ]


def _has_drives(view: HostAnswer, asked: Variables) -> bool:
    """Return whether drives are left on the host; one whose ssd_drives is no list is told that instead."""
    return bool(asked.get("ssd_drives") if view.entries is None else view.entries)


def _unheard(view: HostAnswer) -> str:
    if view.unreachable:
        return f"the host is unreachable: {view.unreachable}; {REACH_IT}"
    told = "; ".join(f"{module} failed: {message}" for module, message in view.failures.items())
    return told and f"the host could not be examined: {told}"


def _strange(found: t.Sequence[Finding]) -> str:
    return "; ".join(finding.message for finding in found)


def _without(view: HostAnswer, why: str) -> HostAnswer:
    entries, told = view.entries or (), view.drives or ()
    # By all that the host told of a drive, and by what it is called.
    return view._replace(
        entries=[],
        facts=None,
        drives=[],
        unreachable="",
        failures={},
        checks=None,
        snapshot=None,
        wear=None,
        left_out={entry.label: why for entry in entries},
        gone=why,
        unseen=[*((parse(one.selector), one) for one in told), *((entry, None) for entry in entries)],
    )
