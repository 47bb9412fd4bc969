# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All of preflight's checks together, and what follows from them: the run, its record, the plan as text."""

from __future__ import annotations

import collections
import contextlib
import datetime
import os
import typing as t
from types import MappingProxyType

from ...module_utils.run.states import SETTLED_STATES
from ..common import schema as schemas
from ..run_folder import last_run_of_drive, run_record, runs
from . import (
    approval,
    approval_check,
    controller,
    duplicates,
    duration_history,
    excluded_drives,
    findings,
    fleet_checks,
    fleet_plan_text,
    host_findings,
    host_plans,
    ledger_age,
    missing_tools,
    purge_choice,
    remeasurement_checks,
    run_json,
    run_selection,
    run_slices,
    saturation_feasibility,
    saturation_history,
    unavailable_hosts,
    wear,
)
from .findings import Finding, Run, View

# A server with two dozen drives that are all refused for several reasons has fewer findings.
MOST_OF_HOST = 200


class Decision(t.NamedTuple):
    """findings: lines, empty when the run may start. shows_plan: plan mode or --check. destructive: neither of them.
    warnings: lines. plans: by host.

    skipped: why nothing is to be done (ssd_overlap), or empty. attached: that it goes on with a run that is still at
    work, or empty. left_out: drives, by host; hosts_left_out: why, of hosts that are left out as a whole.
    to_approve: what plan mode may have approved; None where there is nothing. takes: lines about each drive that is
    erased.
    """

    findings: list[str]
    run: Run | None
    shows_plan: bool
    destructive: bool
    plan_text: list[str]
    run_folder: str
    results_dir: str
    record: dict[str, t.Any]
    warnings: list[str]
    plans: t.Mapping[str, t.Mapping[str, t.Any]] = {}
    skipped: str = ""
    attached: str = ""
    left_out: t.Mapping[str, t.Sequence[str]] = {}
    hosts_left_out: t.Mapping[str, str] = {}
    hosts_without_run: t.Sequence[str] = ()
    to_approve: approval.ApprovedPlan | None = None
    takes: t.Sequence[str] = ()

    def result(self) -> dict[str, t.Any]:
        """What the action returns."""
        run: dict[str, t.Any] = {}
        if self.run:
            run = {
                "id": self.run.id,
                "name": self.run.name,
                "results_dir": self.results_dir,
                "destructive": self.destructive,
            }
        return {
            "ssd_run": run,
            "attach": dict(self.run.attach) if self.run else {},
            "left_out": self.left_out,
            "hosts_left_out": self.hosts_left_out,
            "hosts_without_run": list(self.hosts_without_run),
            "plan_text": self.plan_text,
            "why_skipped": self.skipped,
            "why_attached": self.attached,
            "to_approve": approval.artifact(self.to_approve) if self.to_approve else {},
            "changed": False,
        }


def decide(
    views: t.Sequence[View],
    check_mode: bool,
    now: datetime.datetime,
    marks: excluded_drives.Marks = (),
    others: duplicates.Entries = MappingProxyType({}),
    gone_before: t.Mapping[str, str] = MappingProxyType({}),
    approved: approval.ApprovedPlan | None = None,
    unapproved: excluded_drives.Kept = MappingProxyType({}),
) -> Decision:
    """Decide over a fleet. Reads test files and tries the results folder; changes nothing else. marks: of the drives in
    quarantine. others: ssd_drives of hosts that are not in this play. gone_before: hosts_left_out of the play's earlier
    decision. approved: the plan that everything has to be in (ssd_approved_plan). unapproved: {(host, drive): why} of
    the drives that are not in it, found by a decision with them.
    """
    given = views
    views, strange = _heard(approval_check.choose_run(views, approved))
    found = findings.settings(views)
    destructive = findings.shared_value(views, "ssd_mode") == "destructive" and not check_mode
    results_dir = os.path.abspath(os.path.expanduser(str(findings.shared_value(views, "ssd_results_dir") or "")))
    own = runs.on_controller(results_dir)
    run, claims = _run(views, now, own, found)
    before = _before(results_dir, run)
    kept = excluded_drives.of_run(before)
    held_back = run_selection.held_back(views, own, run) if unavailable_hosts.leaves_out(views) else []
    not_approved = approval_check.hosts_left_out(approved)
    gone = unavailable_hosts.hosts(views, run, strange, held_back, kept, {**not_approved, **gone_before})
    found += [claim for claim in claims if claim.host not in gone]
    views = unavailable_hosts.parted(views, gone)
    overlaps, told = run_selection.overlap(views, run)
    attached = _capitalized(told if overlaps == "attach" else "")
    if overlaps == "fail":
        found.append(Finding(told))
    elif overlaps == "skip" and not found:
        return Decision([], run, False, False, [], "", results_dir, {}, [f"Skipped: {told}"], skipped=told)
    left = last_run_of_drive.of_drives(own, ledger_age.wanted(views, run), but=run.id if run else "")
    lost = ledger_age.lost(views, left, own)
    views = excluded_drives.parted(views, run, marks, kept, lost, approved, unapproved)
    found += ledger_age.findings(lost, views) + _of_hosts(views, run, destructive, strange, others)
    found += [] if destructive else unavailable_hosts.nothing_left(views, run)
    plans, tests, wrong = _plans(views, run, results_dir)
    run_folder = os.path.join(results_dir, run.id) if run else ""
    begun = {name: plan for name, plan in plans.items() if not (run and run.attach.get(name))}
    known = saturation_history.saturations(results_dir, saturation_feasibility.wanted_models(begun))
    chosen, worn = _chosen(views, plans, run)
    found += wrong + saturation_feasibility.findings(begun, known) + worn + _folder_findings(results_dir, destructive)
    warned = (
        host_findings.warnings(views, run)
        + saturation_feasibility.warnings(begun, known)
        + ledger_age.warnings(views, left, own)
    )
    warned += fleet_plan_text.budget_warnings(views, begun) + findings.unread(views)
    warned += run_slices.warnings(views, run, run_folder, run_json.criteria(views))
    took = duration_history.of_hosts(own, plans, tests, chosen, run.id if run else "")
    now_decided = approval_check.decided(views, run, plans, now, started_only=destructive) if run else None
    starts = now_decided.lines if now_decided and destructive else ()
    found += approval_check.unusable(approved, views, run, starts)
    if run and approved and now_decided:
        differing = approval_check.findings(approved, now_decided)
        if destructive and approval_check.can_be_left_out(differing, now_decided, run):
            without = {(one.host, one.drive): one.message for one in differing}
            return decide(given, check_mode, now, marks, others, gone_before, approved, {**unapproved, **without})
        found += differing
    return Decision(
        findings=_lines(found),
        run=run,
        shows_plan=not destructive,
        destructive=destructive,
        plan_text=fleet_plan_text.lines_of(views, run, plans, chosen, took),
        run_folder=run_folder,
        results_dir=results_dir,
        record={**run_json.record(_told(views, before), run, now, tests, plans), "warnings": warned}
        if run and not found
        else {},
        warnings=host_findings.lines(warned) + excluded_drives.lines(views) + attached,
        plans=plans,
        attached="".join(attached),
        left_out={view.name: list(view.left_out) for view in views if view.left_out},
        hosts_left_out=gone,
        hosts_without_run=[host for host in gone if run and host not in {*run.attach, *_began(before)}],
        to_approve=None if destructive or approved or found or not (now_decided and now_decided.lines) else now_decided,
        takes=approval_check.takes(now_decided, approved, run.attach) if run and now_decided else [],
    )


def _capitalized(text: str) -> list[str]:
    return [f"{text[0].upper()}{text[1:]}"] if text else []


def _heard(views: t.Sequence[View]) -> tuple[list[View], dict[str, list[Finding]]]:
    """The hosts with what counts of their answers, and by host what does not, as it is of other drives."""
    strange = {view.name: findings.answered_drives(view) for view in views}
    # Ignored indeed: ten thousand drives that nobody asked for would be compared with all others, and told with them.
    return fleet_checks.added([view._replace(drives=None) if strange[view.name] else view for view in views]), strange


def _run(
    views: t.Sequence[View], now: datetime.datetime, own: t.Sequence[runs.Own], found: t.Sequence[Finding]
) -> tuple[Run | None, list[Finding]]:
    """The run that is asked for, unless `found` says that its variables are wrong; and what is wrong with it."""
    if any(finding.message.startswith(("ssd_run_", "ssd_mode")) for finding in found):
        return None, []
    return run_selection.choose(views, now, own)


def _plans(
    views: t.Sequence[View], run: Run | None, results_dir: str
) -> tuple[dict[str, dict[str, t.Any]], dict[str, t.Any], list[Finding]]:
    """The plan of each host, the tests that they name, and what is wrong with them."""
    plans, wrong = host_plans.of_hosts(views, run)
    tests = host_plans.tests_of(views)
    return plans, tests, wrong + host_plans.findings(views, run, results_dir, tests, plans)


def _of_hosts(
    views: t.Sequence[View],
    run: Run | None,
    destructive: bool,
    strange: t.Mapping[str, t.Sequence[Finding]],
    others: duplicates.Entries,
) -> list[Finding]:
    """What is wrong with each host, and with some of them together. strange, others: of _heard and decide."""
    found = [
        item for view in views for item in _of_host(view, run, destructive, () if view.gone else strange[view.name])
    ]
    return (
        found
        + duplicates.same_drives(views)
        + duplicates.same_machines(views)
        + duplicates.named_elsewhere(views, others)
    )


def _of_host(view: View, run: Run | None, destructive: bool, strange: t.Sequence[Finding]) -> list[Finding]:
    """What is wrong with one host, by itself. strange: that it answered about other drives."""
    return [
        *(Finding(problem, view.name) for problem in host_findings.problems(view.asked or {})),
        *host_findings.blocking(view, run),
        *findings.answers(view, unreachable_counts=not destructive),
        *missing_tools.tuning(view, run),
        *findings.named_drives(view),
        *strange,
        *missing_tools.tools(view),
        *findings.refused(view, run),
        *(() if view.gone else findings.other_live_runs(view, run)),
        *duplicates.side_by_side(view, run),
    ]


def _chosen(
    views: t.Sequence[View], plans: t.Mapping[str, dict[str, t.Any]], run: Run | None
) -> tuple[dict[str, purge_choice.Chosen], list[Finding]]:
    """The purges of each host, and what is wrong with them or with the wear that follows."""
    chosen: dict[str, purge_choice.Chosen] = {}
    found: list[Finding] = []
    for view in views:
        chosen[view.name], wrong = purge_choice.choose(view, plans.get(view.name), run)
        found += wrong + _worn(view, plans.get(view.name), run, chosen[view.name])
    return chosen, found


def _folder_findings(results_dir: str, keep: bool) -> list[Finding]:
    problem = controller.folder_problem(results_dir, keep=keep)
    if not problem:
        return []
    return [
        Finding(f"ssd_results_dir: {results_dir} cannot be written on the controller ({problem}); name another folder")
    ]


def _before(results_dir: str, run: Run | None) -> t.Mapping[str, t.Any] | None:
    """What is on record of the run already."""
    with contextlib.suppress(ValueError):  # host_plans says what is wrong with run.json
        return run_record.read_run(os.path.join(results_dir, run.id)) if run else None
    return None


def _told(views: t.Sequence[View], before: t.Mapping[str, t.Any] | None) -> list[View]:
    """The hosts that run.json is to tell of. What it says of a lost one stays, as that may have begun the run."""
    return [view for view in views if not (view.gone and view.name in _began(before))]


def _began(record: t.Mapping[str, t.Any] | None) -> set[str]:
    return runs.hosts_with_drives((record or {}).get("asked") or ())


def _lines(found: t.Sequence[Finding]) -> list[str]:
    """The findings in their order; one that several hosts share is told once, with the hosts. One host's push nobody
    else's away.
    """
    hosts: dict[tuple[str, str], list[str]] = {}
    for finding in found:
        hosts.setdefault((finding.drive, finding.message), []).append(finding.host)
    lines: list[str] = []
    told: collections.Counter[str] = collections.Counter()
    for (drive, message), named in hosts.items():
        names = list(dict.fromkeys(named))
        where = findings.host_list(names) if any(names) else ""
        told[where] += 1
        if told[where] <= MOST_OF_HOST or not where:
            lines.append(Finding(message, where, drive).text())
    more = {host: count - MOST_OF_HOST for host, count in told.items() if host and count > MOST_OF_HOST}
    return lines + [Finding(f"and {count} more findings like these", host).text() for host, count in more.items()]


def _worn(
    view: View, plan: t.Mapping[str, t.Any] | None, run: Run | None, chosen: purge_choice.Chosen
) -> list[Finding]:
    """Drives that the plan would wear beyond the budget; of a run that is under way there, it was decided when that
    began.
    """
    if plan is None or view.asked is None or (run and run.attach.get(view.name) in SETTLED_STATES):
        return []
    twice = remeasurement_checks.wanted([view]) and remeasurement_checks.relative(run_json.criteria([view]))
    asked = schemas.plain(view.asked)
    rate, used = run_json.assumed_rate(view.asked), wear.used_of(view.wear)
    return wear.findings(view.name, plan, asked, rate, chosen, times_written=1 + twice, used=used)
