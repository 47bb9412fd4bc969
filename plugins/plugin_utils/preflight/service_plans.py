# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What preflight says of plans for drives in service, beside what it says of any: whether the mode fits, and which
drives are read. Pure.
"""

from __future__ import annotations

import typing as t

from ...module_utils.records.plan import Plan
from ...module_utils.run.read_only import MODE
from ...module_utils.run.states import SETTLED_STATES
from ..plan import in_service
from ..run_folder.run_record import RunWarning
from . import service_drives
from .findings import Finding, HostAnswer
from .host_tests import Requested


def findings(views: t.Sequence[HostAnswer], requested: Requested) -> list[Finding]:
    """Return what of each host's plan and mode don't go together, each once for all hosts with it."""
    found: dict[str, list[str]] = {}
    for view in views:
        problem = _problem(view, requested)
        if problem:
            found.setdefault(problem, []).append(view.name)
    return [Finding(problem, names[0] if len(names) == 1 else "") for problem, names in found.items()]


def _problem(view: HostAnswer, requested: Requested) -> str:
    asked = view.asked
    if asked is None:
        return ""
    tests = requested[view.name].asked if view.name in requested else ()
    problem = in_service.mode_problem(tests, asked.get("ssd_mode"), asked.get("ssd_step"))
    if problem or not in_service.is_for(tests) or service_drives.is_service(asked):
        return problem
    return service_drives.lacking(asked)


def protection(view: HostAnswer) -> list[Finding]:
    """Return why it is not known which drives of a host are in service, where others are to be erased."""
    problem = service_drives.list_problem(view.asked or {})
    return [Finding(problem, view.name, concerns="")] if problem else []


def warnings(views: t.Sequence[HostAnswer]) -> list[RunWarning]:
    """Return which entries of ssd_service_drives keep no drive from being erased, as none is there."""
    return [
        RunWarning(
            view.name,
            "service_drives",
            None,
            "warning",
            f"{service_drives.LIST} names {', '.join(view.service_not_found)}, and no such drive is there: nothing "
            "keeps it from being erased if it is there by another name",
            "correct the entry (discover.yml prints entries to copy), or take it out if the drive is gone",
        )
        for view in views
        if view.service_not_found
    ]


def approved_findings(is_given: bool) -> list[Finding]:
    """Return what is wrong with an approved plan of a run that only reads."""
    text = f"ssd_approved_plan: with ssd_mode={MODE} nothing is erased that needs approval; remove the variable"
    return [Finding(text)] if is_given else []


def takes(plans: t.Mapping[str, Plan], attach: t.Mapping[str, str]) -> list[str]:
    """Return what a start prints: each drive that it reads, by host. attach: the run's state on hosts that have it."""
    starting = {host: plan for host, plan in plans.items() if attach.get(host) not in SETTLED_STATES}
    count = sum(len(plan.drives) for plan in starting.values())
    of_hosts = f"{len(starting)} host{'s' * (len(starting) != 1)}"
    lines = [f"Reads {count} drive{'s' * (count != 1)} of {of_hosts}, and writes nothing to them:"]
    return lines + [f"{host}: {', '.join(drive.drive for drive in plan.drives)}" for host, plan in starting.items()]
