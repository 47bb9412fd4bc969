# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All of preflight's checks together, and what follows from them: the run, its record, the plan as text."""

from __future__ import annotations

import contextlib
import datetime
import os
import typing as t
from types import MappingProxyType

from ...module_utils.records.base import Json
from ...module_utils.records.plan import Plan
from ...module_utils.run import digests, read_only
from ...module_utils.run.states import FINISHED, LIVE_STATES, SETTLED_STATES
from ..common import schema as schemas
from ..run_folder import last_run_of_drive, run_record, runs
from . import (
    approval,
    approval_check,
    begun_run,
    controller,
    drive_feasibility,
    duplicates,
    duration_history,
    earlier_rates,
    examine_arguments,
    excluded_drives,
    findings,
    fleet_checks,
    host_findings,
    host_plans,
    host_tests,
    ledger_age,
    percentile_feasibility,
    plan_text,
    power_cuts,
    purge_choice,
    refused_drives,
    remeasurement_checks,
    run_json,
    run_selection,
    saturation_feasibility,
    service_drives,
    service_plans,
    unavailable_hosts,
    used_statements,
    wear,
)
from .begun_run import BegunRun
from .findings import Finding, HostAnswer, Run
from .host_tests import HostTests, Requested, TestsOfHosts
from .host_variables import BMC_PROBLEM
from .refused_drives import Without

# What a drive is refused for that another run works on.
OF_A_JOB = frozenset(("locked", "busy", "opened", "unseen_users"))


class Decision(t.NamedTuple):
    """findings: lines, empty when the run may start. shows_plan: plan mode or --check. destructive: neither of them,
    so that drives are erased or, in mode read_only, read. warnings: lines. plans: by host.

    skipped: why nothing is to be done (ssd_overlap), or empty. attached: that it goes on with a run that is still at
    work, or empty. left_out: drives, by host; drives_left_out: why, by host and drive; hosts_left_out: why, of
    hosts that are left out as a whole.
    to_approve: what plan mode may have approved; None where there is nothing. takes: lines about each drive that is
    erased; leaves: about each drive and host that is left out; nobody_left: that this is everybody, which a start
    records before it fails. prepare: whether a host needs something before its job starts. power_cuts: how the power is
    cut, by host. fans_left_high: hosts whose fans an earlier run set high, and nobody restored.
    """

    findings: list[str]
    run: Run | None
    shows_plan: bool
    destructive: bool
    plan_text: list[str]
    run_folder: str
    results_dir: str
    record: run_record.RunRecord | None
    warnings: list[str]
    plans: t.Mapping[str, Plan] = {}
    skipped: str = ""
    attached: str = ""
    left_out: t.Mapping[str, t.Sequence[str]] = {}
    drives_left_out: t.Mapping[str, t.Mapping[str, str]] = {}
    hosts_left_out: t.Mapping[str, str] = {}
    hosts_without_run: t.Sequence[str] = ()
    to_approve: approval.ApprovedPlan | None = None
    takes: t.Sequence[str] = ()
    nobody_left: t.Sequence[str] = ()
    leaves: t.Sequence[str] = ()
    prepare: bool = False
    starts: t.Sequence[str] = ()
    power_cuts: t.Mapping[str, str] = {}
    fans_left_high: t.Sequence[str] = ()
    mode: str = digests.DESTRUCTIVE

    def fact(self) -> Json:
        """Return what later tasks and plays read as ssd_decision (RETURN of plugins/modules/preflight.py)."""
        run: Json = {}
        if self.run:
            run = {
                "id": self.run.id,
                "name": self.run.name,
                "results_dir": self.results_dir,
                "destructive": self.destructive,
            }
        return {
            "run": run,
            "attach": dict(self.run.attach) if self.run else {},
            "skipped": self.skipped,
            "attached": self.attached,
            "left_out": self.left_out,
            "drives_left_out": self.drives_left_out,
            "hosts_left_out": self.hosts_left_out,
            "hosts_without_run": list(self.hosts_without_run),
            "prepare": self.prepare,
            "starts": list(self.starts),
            "power_cuts": dict(self.power_cuts),
            "fans_left_high": list(self.fans_left_high),
            "look_again": False,
            "plan_to_approve": approval.artifact(self.to_approve) if self.to_approve else {},
        }


class Request(t.NamedTuple):
    """What a decision is made from.

    marks: of the drives in quarantine. others: ssd_drives of hosts that are not in this play. gone_before:
    hosts_left_out of the play's earlier decision. approved: the plan that everything has to be in (ssd_approved_plan).
    without: what a decision with it found to be refused, or not in the approved plan. is_slice: AWX gave this job a
    part of the hosts (ssd_slice), so others may be left.
    """

    views: t.Sequence[HostAnswer]
    check_mode: bool
    now: datetime.datetime
    marks: excluded_drives.Marks = ()
    others: duplicates.Entries = MappingProxyType({})
    gone_before: t.Mapping[str, str] = MappingProxyType({})
    approved: approval.ApprovedPlan | None = None
    without: Without = Without()
    is_slice: bool = False


MODES_THAT_START = (digests.DESTRUCTIVE, read_only.MODE)


class _Chosen(t.NamedTuple):
    """The run that is asked for; None where its variables are wrong, as `found` says. service: its drives are only
    read.

    views: with those answers of hosts that count; strange: by host, findings about answers of other drives. own: the
    controller's runs. before: as the run began, as far as that is known. claims: what is wrong with what hosts say of
    runs of that name.
    """

    views: t.Sequence[HostAnswer]
    strange: t.Mapping[str, t.Sequence[Finding]]
    destructive: bool
    service: bool
    results_dir: str
    own: t.Sequence[runs.KnownRun]
    run: Run | None
    before: BegunRun
    found: list[Finding]
    claims: list[Finding]


class _Participants(t.NamedTuple):
    """Who takes part. gone: why, of hosts that are left out. last_runs: of the drives."""

    views: t.Sequence[HostAnswer]
    gone: t.Mapping[str, str]
    found: list[Finding]
    last_runs: t.Mapping[last_run_of_drive.Key, last_run_of_drive.Left] = MappingProxyType({})


class _Overlap(t.NamedTuple):
    """What ssd_overlap makes of a run that hosts still work on: lines for the operator, findings, why to skip."""

    attached: list[str]
    found: list[Finding]
    skipped: str


class _Planned(t.NamedTuple):
    """What each host is to do. purges, times: by host."""

    plans: dict[str, Plan]
    tests: TestsOfHosts
    purges: dict[str, purge_choice.Chosen]
    times: dict[str, duration_history.Known]
    found: list[Finding]
    warnings: list[run_record.RunWarning]


class _Compared(t.NamedTuple):
    """The plan beside the approved one. unapproved: {(host, drive): why} of drives that can be left out instead."""

    plan: approval.ApprovedPlan | None
    found: list[Finding]
    unapproved: dict[tuple[str, str], str]


def decide(request: Request) -> Decision:
    """Decide over a fleet. Reads test files and tries the results folder; changes nothing else."""
    chosen = _choose_run(request)
    hosts = _leave_out_hosts(request, chosen)
    overlap = _overlap(hosts.views, chosen.run)
    found = [*chosen.found, *hosts.found]
    if overlap.skipped and not found:
        return _skipped(overlap.skipped, chosen)
    taking_part = _leave_out_drives(request, chosen, hosts)
    requested = host_tests.of_hosts(taking_part.views)
    planned = _plan(chosen, taking_part, requested)
    compared = _compare(request, chosen, taking_part.views, requested, planned.plans)
    if compared.unapproved:
        return decide(request._replace(without=request.without | Without(compared.unapproved)))
    checked = _check_hosts(request, chosen, taking_part.views, requested)
    found += [*overlap.found, *taking_part.found, *checked, *planned.found, *compared.found]
    found, goes_on = refused_drives.of_begun(found, taking_part.views, chosen.run)
    planned.warnings.extend(goes_on)
    without = request.without | refused_drives.without(found, taking_part.views, chosen.run)
    if without != request.without:
        return decide(request._replace(without=without))
    return _decision(request, chosen, taking_part, requested, planned, compared, overlap.attached, found)


def _choose_run(request: Request) -> _Chosen:
    """Choose the run by the hosts' variables and by what they and the controller know of earlier ones."""
    views, strange = _heard(approval_check.choose_run(request.views, request.approved))
    found = findings.settings(views)
    results_dir = os.path.abspath(os.path.expanduser(str(findings.shared_value(views, "ssd_results_dir") or "")))
    own = runs.on_controller(results_dir)
    run, claims = _run(views, request.now, own, found)
    return _Chosen(
        views=views,
        strange=strange,
        destructive=findings.shared_value(views, "ssd_mode") in MODES_THAT_START and not request.check_mode,
        service=any(service_drives.is_service(view.asked) for view in views),
        results_dir=results_dir,
        own=own,
        run=run,
        before=_before(results_dir, run),
        found=found,
        claims=claims,
    )


def _leave_out_hosts(request: Request, chosen: _Chosen) -> _Participants:
    """Leave out hosts that can't take part (ssd_refused), and those that no approved plan has."""
    views, run = chosen.views, chosen.run
    held_back = run_selection.held_back(views, chosen.own, run) if refused_drives.is_enabled(views) else []
    before = {**approval_check.hosts_left_out(request.approved), **request.gone_before, **request.without.hosts}
    gone = unavailable_hosts.hosts(views, run, chosen.strange, held_back, before)
    claims = [claim for claim in chosen.claims if claim.host not in gone]
    return _Participants(unavailable_hosts.exclude(views, gone), gone, claims)


def _overlap(views: t.Sequence[HostAnswer], run: Run | None) -> _Overlap:
    """Apply ssd_overlap."""
    does, why = run_selection.overlap(views, run)
    return _Overlap(
        attached=[f"{why[0].upper()}{why[1:]}"] if does == "attach" else [],
        found=[Finding(why)] if does == "fail" else [],
        skipped=why if does == "skip" else "",
    )


def _skipped(why: str, chosen: _Chosen) -> Decision:
    return Decision([], chosen.run, False, False, [], "", chosen.results_dir, None, [f"Skipped: {why}"], skipped=why)


def _leave_out_drives(request: Request, chosen: _Chosen, hosts: _Participants) -> _Participants:
    """Leave out drives in quarantine, refused or not approved."""
    run, own = chosen.run, chosen.own
    but = run.id if run else ""
    # Nothing is erased of which a ledger could tell, or for which a statement is used.
    compared = [] if chosen.service else ledger_age.drives_to_compare(hosts.views, run)
    last_runs = last_run_of_drive.of_drives(own, compared, but=but)
    lost = ledger_age.lost(hosts.views, last_runs, own)
    if not chosen.service:
        stated = used_statements.drives(hosts.views, run)
        used = last_run_of_drive.used_retired(own, but=but) if stated else []
        today = datetime.datetime.now(datetime.timezone.utc).date()
        lost = {**used_statements.lost(stated, used, today), **lost}
    kept = excluded_drives.of_run(chosen.before)
    views = excluded_drives.exclude(hosts.views, run, request.marks, kept, request.approved, request.without.drives)
    views = earlier_rates.with_rates(views, own, run.id if run else "")
    return _Participants(views, hosts.gone, ledger_age.findings(lost, views), last_runs)


def _check_hosts(
    request: Request, chosen: _Chosen, views: t.Sequence[HostAnswer], requested: Requested
) -> list[Finding]:
    """Return what is wrong with each host, and with some of them together."""
    found = [finding for view in views for finding in _of_host(chosen, view, requested.get(view.name))]
    return [
        *found,
        *service_plans.findings(views, requested),
        *duplicates.same_drives(views),
        *duplicates.same_machines(views),
        *duplicates.named_elsewhere(views, request.others),
        *([] if chosen.destructive else unavailable_hosts.nothing_left(views, chosen.run)),
    ]


def _plan(chosen: _Chosen, taking_part: _Participants, requested: Requested) -> _Planned:
    """Plan what each host is to do, with its purges, and how long that took before."""
    run, results_dir, views = chosen.run, chosen.results_dir, taking_part.views
    plans, tests, wrong = _plans(views, run, requested, results_dir)
    starting = {name: plan for name, plan in plans.items() if not (run and run.attach.get(name))}
    # One that is gone on with cuts the power too.
    unfinished = {name: plan for name, plan in plans.items() if not (run and run.attach.get(name) == FINISHED)}
    known = saturation_feasibility.saturations(results_dir, saturation_feasibility.wanted_models(starting))
    purges, worn = _purges(views, plans, run)
    criteria = run_json.criteria(views)
    return _Planned(
        plans=plans,
        tests=tests,
        purges=purges,
        times=duration_history.of_hosts(chosen.own, plans, tests, purges, run.id if run else ""),
        found=[
            *wrong,
            *saturation_feasibility.findings(starting, known),
            *percentile_feasibility.findings(criteria, starting),
            *drive_feasibility.findings(views, starting),
            *power_cuts.findings(views, unfinished, BMC_PROBLEM),
            *worn,
            *_folder_findings(results_dir, chosen.destructive),
        ],
        warnings=[
            *host_findings.warnings(views, run),
            *saturation_feasibility.warnings(starting, known),
            *percentile_feasibility.warnings(criteria, starting),
            *ledger_age.warnings(views, taking_part.last_runs, chosen.own),
            *plan_text.budget_warnings(views, requested, starting),
            *drive_feasibility.warnings(views, requested, starting),
            *findings.unread(views),
            *service_plans.warnings(views),
            *run_selection.dropped_criteria_warnings(
                views, run, chosen.before, criteria, run_json.health_criteria(views)
            ),
        ],
    )


def _compare(
    request: Request,
    chosen: _Chosen,
    views: t.Sequence[HostAnswer],
    requested: Requested,
    plans: t.Mapping[str, Plan],
) -> _Compared:
    """Compare the plan with the approved one, if there is such."""
    run, approved, destructive = chosen.run, request.approved, chosen.destructive
    plan = None
    if chosen.service:
        # Nothing is erased that somebody would have to approve.
        return _Compared(None, service_plans.approved_findings(approved is not None), {})
    if run:
        plan = approval_check.decided(views, run, requested, plans, request.now, started_only=destructive)
    found = approval_check.unusable(approved, views, run, plan.lines if plan and destructive else ())
    if not (run and approved and plan):
        return _Compared(plan, found, {})
    drives = [(line.host, line.drive) for line in plan.lines]
    known = next((one for one in chosen.own if one.id == run.id), None)
    collected = last_run_of_drive.begun(known, drives) if known else set()
    differing = approval_check.findings(approved, plan) + approval_check.carried_out(views, run, plan, collected)
    if destructive and approval_check.can_be_left_out(differing, plan, run):
        return _Compared(plan, found, {(one.host, one.drive): one.message for one in differing})
    return _Compared(plan, found + differing, {})


def _decision(
    request: Request,
    chosen: _Chosen,
    taking_part: _Participants,
    requested: Requested,
    planned: _Planned,
    compared: _Compared,
    attached: list[str],
    found: list[Finding],
) -> Decision:
    views, run, destructive, plan = taking_part.views, chosen.run, chosen.destructive, compared.plan
    record = None
    if run and not found:
        asked = _told(views, chosen.before)
        record = run_json.record(asked, run, request.now, planned.tests, requested, planned.warnings)
    began = chosen.before.hosts()
    may_be_approved = plan and plan.lines and not (destructive or request.approved or found)
    return Decision(
        findings=findings.lines(found),
        run=run,
        shows_plan=not destructive,
        destructive=destructive,
        plan_text=plan_text.fleet_lines(
            views, run, requested, planned.plans, planned.purges, planned.times, request.now, bool(found)
        ),
        run_folder=os.path.join(chosen.results_dir, run.id) if run else "",
        results_dir=chosen.results_dir,
        record=record,
        # The plan's own text has what a budget leaves out.
        warnings=host_findings.lines(
            [one for one in planned.warnings if destructive or one.check != plan_text.TIME_BUDGET]
        )
        + attached,
        plans=planned.plans,
        attached="".join(attached),
        left_out={view.name: list(view.left_out) for view in views if view.left_out},
        drives_left_out={view.name: dict(view.left_out) for view in views if view.left_out and not view.gone},
        hosts_left_out=taking_part.gone,
        hosts_without_run=[host for host in taking_part.gone if run and host not in {*run.attach, *began}],
        to_approve=plan if may_be_approved else None,
        takes=approval_check.takes(plan, request.approved, run.attach)
        if run and plan
        else service_plans.takes(planned.plans, run.attach)
        if run and chosen.service
        else [],
        mode=read_only.MODE if chosen.service else digests.DESTRUCTIVE,
        leaves=excluded_drives.lines(views),
        nobody_left=[]
        if found or not destructive or request.is_slice
        else findings.lines(unavailable_hosts.nothing_left(views, run)),
        prepare=any(examine_arguments.prepares(view.asked or {}) for view in views) or bool(_fans_left_high(views)),
        fans_left_high=_fans_left_high(views),
        starts=[view.name for view in views if run and destructive and _starts(view, run)],
        power_cuts=power_cuts.modes(planned.plans, [view.name for view in views if run and _starts(view, run)]),
    )


def _fans_left_high(views: t.Sequence[HostAnswer]) -> list[str]:
    """Return the hosts whose fans are to be restored before anything else: their run ended unwatched, and this one
    does not ask for high fans.
    """
    return [
        view.name
        for view in views
        if view.facts
        and view.facts.bmc_record
        and view.facts.bmc_record.fans
        and (view.asked or {}).get("tune_fans") != "high"
        and not any(run.state in LIVE_STATES for run in view.runs or ())
    ]


def _starts(view: HostAnswer, run: Run) -> bool:
    """Return whether this play starts the host's job, or attaches to it: it answered, has drives left, and is not done
    with this run.
    """
    has_drives = any(str(found.drive) not in view.left_out for found in view.drives or ())
    return has_drives and not view.unreachable and run.attach.get(view.name) != FINISHED


def _heard(views: t.Sequence[HostAnswer]) -> tuple[list[HostAnswer], dict[str, list[Finding]]]:
    """Return the hosts with what counts of their answers, and by host what does not, as it is of other drives."""
    strange = {view.name: findings.answered_drives(view) for view in views}
    # Ignored indeed: ten thousand drives that nobody asked for would be compared with all others, and told with them.
    return fleet_checks.added([view._replace(drives=None) if strange[view.name] else view for view in views]), strange


def _run(
    views: t.Sequence[HostAnswer], now: datetime.datetime, own: t.Sequence[runs.KnownRun], found: t.Sequence[Finding]
) -> tuple[Run | None, list[Finding]]:
    """Return the run that is asked for, unless `found` says that its variables are wrong; and what is wrong with it."""
    if any(finding.message.startswith(("ssd_run_", "ssd_mode")) for finding in found):
        return None, []
    return run_selection.choose(views, now, own)


def _plans(
    views: t.Sequence[HostAnswer], run: Run | None, requested: Requested, results_dir: str
) -> tuple[dict[str, Plan], TestsOfHosts, list[Finding]]:
    """Return the plan of each host, the tests that they name, and what is wrong with them."""
    plans, wrong = host_plans.of_hosts(views, run, requested)
    tests = host_plans.tests_of(requested)
    return plans, tests, wrong + host_plans.findings(views, run, results_dir, tests, plans)


def _of_host(chosen: _Chosen, view: HostAnswer, asked: HostTests | None) -> list[Finding]:
    """Return what is wrong with one host, by itself."""
    run = chosen.run
    locked = [] if view.gone else findings.other_live_runs(view, run)
    if locked:  # what its job does to the host and its drives would be told as their faults
        mine = [one for one in view.drives or () if not OF_A_JOB.intersection(item.code for item in one.refusals)]
        return locked + findings.refused(view._replace(drives=mine), run)
    return [
        *(Finding(problem, view.name) for problem in host_findings.problems(view.asked or {})),
        *host_findings.blocking(view, run),
        *findings.answers(view, unreachable_counts=not chosen.destructive),
        *host_findings.tuning_findings(view, run),
        *findings.named_drives(view),
        *service_plans.protection(view),
        *(() if view.gone else chosen.strange[view.name]),
        *host_findings.missing_tools(view, asked.asked if asked else ()),
        *findings.refused(view, run),
        *duplicates.side_by_side(view, run),
    ]


def _purges(
    views: t.Sequence[HostAnswer], plans: t.Mapping[str, Plan], run: Run | None
) -> tuple[dict[str, purge_choice.Chosen], list[Finding]]:
    """Return the purges of each host, and what is wrong with them or with the wear that follows."""
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


def _before(results_dir: str, run: Run | None) -> BegunRun:
    """Return what is on record of the run already."""
    with contextlib.suppress(ValueError):  # host_plans says what is wrong with run.json
        return begun_run.read(os.path.join(results_dir, run.id)) if run else BegunRun()
    return BegunRun()


def _told(views: t.Sequence[HostAnswer], before: BegunRun) -> list[HostAnswer]:
    """Return the hosts that run.json is to tell of. What it says of a lost one stays, as that may have begun
    the run.
    """
    began = before.hosts()
    return [view for view in views if not (view.gone and view.name in began)]


def _worn(view: HostAnswer, plan: Plan | None, run: Run | None, chosen: purge_choice.Chosen) -> list[Finding]:
    """Drives that the plan would wear beyond the budget; of a run that is under way there, it was decided when that
    began.
    """
    if plan is None or view.asked is None or (run and run.attach.get(view.name) in SETTLED_STATES):
        return []
    twice = remeasurement_checks.is_requested([view]) and remeasurement_checks.relative(run_json.criteria([view]))
    asked = schemas.plain(view.asked)
    used = wear.used_of(view.wear)
    return wear.findings(view.name, plan, asked, chosen, times_written=1 + twice, used=used)
