# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hosts whose plan cuts their power: which, what keeps them from it, and what plan mode says of it. Pure."""

from __future__ import annotations

import collections
import typing as t

from ...module_utils.records.host_snapshot import CutFilesystem, CutReach
from ...module_utils.records.plan import Plan, PlannedPowerCut
from ..common.units import plan_duration
from .findings import Finding, HostAnswer

HOW = {
    "hard": "cut the host's power by its BMC",
    "warm": "reset the host (sysrq-b; its power stays)",
    "pull": "cut the power of the drive's slot",
}
OTHERS = "ssd_power_cut_others"
ACCEPT = "accept"
MOST_NAMED = 10


def asked_of(plan: Plan | None) -> PlannedPowerCut | None:
    """Return the power cuts of a plan; its drives all have the same, but for their claims."""
    tests = (test for drive in plan.drives for test in drive.tests) if plan else ()
    return next((test.power_cut for test in tests if test.power_cut), None)


def modes(plans: t.Mapping[str, Plan], hosts: t.Iterable[str]) -> dict[str, str]:
    """Return how the power is cut of those of these hosts whose plan does that."""
    found = {host: asked_of(plans.get(host)) for host in hosts}
    return {host: asked.mode for host, asked in found.items() if asked}


def findings(views: t.Sequence[HostAnswer], plans: t.Mapping[str, Plan], bmc_problem: str) -> list[Finding]:
    """Return why hosts can't have their power cut. bmc_problem: the key of a host's variables that says what its BMC
    lacks.
    """
    cut = [(view, asked) for view in views for asked in [asked_of(plans.get(view.name))] if asked and view.facts]
    machines = collections.Counter(reach.uuid for view, _asked in cut for reach in [_reach(view)] if reach)
    found = []
    for view, asked in cut:
        reach = _reach(view)
        problems = _problems(view, asked, reach, str((view.asked or {}).get(bmc_problem) or ""))
        if reach and reach.uuid and machines[reach.uuid] > 1:
            problems.append(f"another host of this play has its DMI UUID {reach.uuid}: no BMC can be told apart by it")
        found += [Finding(f"power cut: {text}", view.name, concerns="") for text in problems]
    return found


def _reach(view: HostAnswer) -> CutReach | None:
    return view.facts.cut_reach if view.facts else None


def _problems(view: HostAnswer, asked: PlannedPowerCut, reach: CutReach | None, bmc: str) -> list[str]:
    found = []
    if asked.mode == "pull":
        found.append("power_cut.mode: pull is not available in this version; use hard, or warm")
    if asked.mode == "hard" and bmc:
        found.append(f"{bmc}; a hard power cut needs the host's BMC, or use power_cut: {{mode: warm}}")
    if reach is None:
        return [*found, "the host did not tell what a cut of its power would reach"]
    record, own = reach.state_dir, _names(view)
    if not record or not record.drives:
        place = f"{record.kind} ({record.path})" if record else "nothing"
        found.append(f"ssd_state_dir lies on {place}, not on a drive: acknowledgements could not be recorded there")
    elif set(record.drives) & own:
        found.append(f"ssd_state_dir lies on {', '.join(record.drives)}, which is under test; name another folder")
    system = sorted(own & {drive for mount in reach.system for drive in mount.drives})
    if system:
        found.append(f"{', '.join(system)} is under test and holds the system")
    others = others_text(reach)
    if others and (view.asked or {}).get(OTHERS) != ACCEPT:
        found.append(f"it would also cut {others}; end them, or set {OTHERS}: {ACCEPT}")
    return found


def _names(view: HostAnswer) -> set[str]:
    """Return the kernel names of the drives under test."""
    found = (drive.identity.kernel_name for drive in view.drives or () if drive.identity)
    return {str(name) for name in found if name}


def others_text(reach: CutReach) -> str:
    """Return what a cut reaches beside the system, for people; "" where that is nothing."""
    parts = []
    if reach.further_count:
        shown = ", ".join(map(_place, reach.further[:MOST_NAMED]))
        parts.append(f"{_number(reach.further_count, 'further file system')} ({shown}{_more(reach.further_count)})")
    if reach.guests_count:
        shown = ", ".join(reach.guests[:MOST_NAMED])
        parts.append(f"{reach.guests_count} virtual machines or containers ({shown}{_more(reach.guests_count)})")
    return " and ".join(parts)


def _more(count: int) -> str:
    return f", and {count - MOST_NAMED} more" if count > MOST_NAMED else ""


def _number(count: int, what: str) -> str:
    return f"{count} {what}{'s' * (count != 1)}"


def _place(mount: CutFilesystem) -> str:
    return f"{mount.path} on {', '.join(mount.drives) or mount.source}"


def step(asked: PlannedPowerCut) -> str:
    """Return what a test does, as a step of it: "20 times: write, cut the host's power by its BMC after 5 s to 30 s,
    read back".
    """
    span = f"{plan_duration(asked.min_write_s)} to {plan_duration(asked.max_write_s)}"
    times = "once" if asked.cycles == 1 else f"{asked.cycles} times"
    return f"{times}: write for {span}, {HOW[asked.mode]}, read back what was acknowledged"


def lines(view: HostAnswer, plan: Plan) -> list[str]:
    """Return what plan mode says of a host whose power is cut: how often, and all that would go with it."""
    asked, reach = asked_of(plan), _reach(view)
    if asked is None or reach is None:
        return []
    drives = sorted({drive for mount in reach.system for drive in mount.drives})
    places = ", ".join(map(_place, reach.system)) or "none"
    times = "once" if asked.cycles == 1 else f"{asked.cycles} times"
    back = plan_duration(asked.back_s)
    cut = [f"would {HOW[asked.mode]} {times}; each time it may take {back} to come back, else it ends as an error"]
    cut.append(f"what is cut: all that runs on it, its system drive {', '.join(drives) or 'unknown'} ({places})")
    others = others_text(reach)
    return [*cut, *([f"what is cut besides: {others}"] if others else [])]
