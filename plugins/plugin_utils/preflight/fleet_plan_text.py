# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The plan of a fleet as preflight prints it, host by host (plan_text describes one host's)."""

from __future__ import annotations

import typing as t

from ...module_utils.run.states import SETTLED_STATES
from ..common import schema as schemas
from ..common.units import plan_duration
from ..plan import arrays, hostplan
from . import duration_history, findings, purge_choice, remeasurement_checks, run_json, wear
from . import plan_text as describe
from .findings import HostAnswer, Run
from .host_tests import HostTests, Requested


def lines_of(
    views: t.Sequence[HostAnswer],
    run: Run | None,
    requested: Requested,
    plans: t.Mapping[str, t.Mapping[str, t.Any]],
    chosen: t.Mapping[str, purge_choice.Chosen],
    known: t.Mapping[str, duration_history.Known],
) -> list[str]:
    """Return the lines; none without a run."""
    if run is None:
        return []
    lines = [f"Plan of run {run.id}: nothing was erased or changed; ssd_mode=destructive starts it"]
    held_to = run_json.criteria(views)
    for view in views:
        state = run.attach.get(view.name)
        if view.unreachable:
            lines.append(f"{view.name}: unreachable; its drives would count as not tested")
        elif view.gone:
            lines.append(f"{view.name}: left out, so its drives would count as not tested: {view.gone}")
        elif state in SETTLED_STATES:
            lines.append(f"{view.name}: this run is {state} on this host, so nothing would be started")
        elif view.name in plans and view.asked:
            eligible = {
                entry["drive"]: entry.get("path") or "?"
                for entry in view.drives or ()
                if entry.get("identity") and not findings.standing(entry, run)
            }
            looks = {entry["drive"]: entry["look"] for entry in view.drives or () if entry.get("look")}
            rate, ratings = run_json.assumed_rate(view.asked), schemas.plain(view.asked.get("ssd_rated_tbw"))
            used = wear.used_of(view.wear)
            worn = {
                drive["drive"]: wear.wear_text(
                    *wear.of_drive(drive, rate, chosen[view.name]),
                    wear.rated_bytes(drive["expected"].get("model"), ratings),
                    used.get(drive["drive"]),
                )
                for drive in arrays.written(plans[view.name])
            }
            plan, took = plans[view.name], known.get(view.name)
            lines += describe.describe(plan, eligible, rate, held_to, chosen[view.name], looks, worn, took)
            lines += [f"  {text}" for text in _beyond_budget(view, requested[view.name])]
        lines += [f"  {drive}: left out: {why}" for drive, why in view.left_out.items() if not view.gone]
    return lines + remeasurement_checks.plan_lines(remeasurement_checks.is_requested(views), held_to)


def _beyond_budget(view: HostAnswer, asked: HostTests) -> list[str]:
    """Return what ssd_time_budget leaves out on a host, as one text; none where nothing is."""
    variables = asked.variables
    rest = {} if variables.get(hostplan.AGAIN) else asked.left_out
    shown = ", ".join(f"{name} (up to {plan_duration(longest_s)})" for name, longest_s in rest.items())
    reads_s = hostplan.reads_s(variables, view.drives or ())
    reads = f", of which finding how many drives run at a time takes up to {plan_duration(reads_s)}" * bool(reads_s)
    return [f"left out by ssd_time_budget ({variables['ssd_time_budget']} per drive{reads}): {shown}"] if rest else []


def budget_warnings(
    views: t.Sequence[HostAnswer], requested: Requested, begun: t.Mapping[str, t.Mapping[str, t.Any]]
) -> list[dict[str, t.Any]]:
    """Return the same for run.json, so that a run that is started at once and its report tell it too: {host, check,
    drive, level, message, remedy}. begun: the plans of hosts on which the run is not under way.
    """
    about = {"check": "time_budget", "level": "warning", "remedy": "raise ssd_time_budget, or take a shorter plan"}
    return [
        {"host": view.name, "drive": drive["drive"], "message": text, **about}
        for view in views
        if view.name in begun
        for text in _beyond_budget(view, requested[view.name])
        for drive in begun[view.name]["drives"]
    ]
