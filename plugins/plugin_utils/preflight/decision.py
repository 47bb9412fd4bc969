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

from ..common import schema as schemas
from ..common.values import whole
from ..common.version import collection_version
from ..plan import hostplan
from ..plan.testfiles import PlanError
from ..results import history, last_written, run_record, runs
from . import (
    again,
    controller,
    criteria,
    definitions,
    earlier,
    findings,
    fleet_checks,
    host_checks,
    ledgers,
    left_out,
    purges,
    reach,
    run_json,
    same,
    slices,
    wear,
    which_run,
)
from . import plan_text as describe
from .findings import Finding, Run, View

# A server with two dozen drives that are all refused for several reasons has fewer findings.
MOST_OF_HOST = 200


class Decision(t.NamedTuple):
    """findings: lines, empty when the run may start. shows_plan: plan mode or --check. destructive: neither of them.
    warnings: lines. plans: by host.

    skipped: why nothing is to be done (ssd_overlap), or empty. left_out: drives, by host.
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
    left_out: t.Mapping[str, t.Sequence[str]] = {}

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
            "plan_text": self.plan_text,
            "why_skipped": self.skipped,
            "changed": False,
        }


def decide(views: t.Sequence[View], check_mode: bool, now: datetime.datetime, marks: left_out.Marks = ()) -> Decision:
    """Decide over a fleet. Reads test files and tries the results folder; changes nothing else.

    marks: of the drives in quarantine.
    """
    views = fleet_checks.added(views)
    found = findings.settings(views)
    destructive = findings.shared_value(views, "ssd_mode") == "destructive" and not check_mode
    results_dir = os.path.abspath(os.path.expanduser(str(findings.shared_value(views, "ssd_results_dir") or "")))
    own = runs.on_controller(results_dir)
    run, wrong = _run(views, now, own, found)
    found += wrong
    overlaps, told = which_run.overlap(views, run)
    if overlaps == "fail":
        found.append(Finding(told))
    elif overlaps == "skip" and not found:
        return Decision([], run, False, False, [], "", results_dir, {}, [f"Skipped: {told}"], skipped=told)
    left = last_written.of_drives(own, ledgers.wanted(views, run), but=run.id if run else "")
    lost = ledgers.lost(views, left, own)
    views = left_out.parted(views, run, marks, _left_out_before(results_dir, run), lost)
    found += ledgers.findings(lost, views)
    for view in views:
        found += _of_host(view, run, destructive)
    found += same.same_drives(views) + same.same_machines(views)
    plans, wrong = _plans(views, run)
    found += wrong
    run_folder = os.path.join(results_dir, run.id) if run else ""
    tests = _tests(views)
    found += _of_tests(views, run, results_dir, tests, plans)
    begun = {name: plan for name, plan in plans.items() if not (run and run.attach.get(name))}
    known = history.saturations(results_dir, reach.wanted_models(begun))
    found += reach.findings(begun, known)
    chosen, wrong = _chosen(views, plans, run)
    found += wrong
    warned = host_checks.warnings(views, run) + reach.warnings(begun, known) + ledgers.warnings(views, left, own)
    warned += slices.warnings(views, run, run_folder, run_json.criteria(views))
    found += _folder_findings(results_dir, destructive)
    return Decision(
        findings=_lines(found),
        run=run,
        shows_plan=not destructive,
        destructive=destructive,
        plan_text=_plan_text(
            views, run, plans, chosen, earlier.of_hosts(own, plans, tests, chosen, run.id if run else "")
        ),
        run_folder=run_folder,
        results_dir=results_dir,
        record={**run_json.record(views, run, now, tests), "warnings": warned} if run and not found else {},
        warnings=host_checks.lines(warned) + left_out.lines(views) + _capitalized(told if overlaps == "attach" else ""),
        plans=plans,
        left_out={view.name: list(view.left_out) for view in views if view.left_out},
    )


def _capitalized(text: str) -> list[str]:
    return [f"{text[0].upper()}{text[1:]}"] if text else []


def _run(
    views: t.Sequence[View], now: datetime.datetime, own: t.Sequence[runs.Own], found: t.Sequence[Finding]
) -> tuple[Run | None, list[Finding]]:
    """The run that is asked for, unless `found` says that its variables are wrong."""
    if any(finding.message.startswith(("ssd_run_", "ssd_mode")) for finding in found):
        return None, []
    return which_run.choose(views, now, own)


def _of_host(view: View, run: Run | None, destructive: bool) -> list[Finding]:
    """What is wrong with one host, by itself."""
    return [
        *(Finding(problem, view.name) for problem in host_checks.problems(view.asked or {})),
        *host_checks.blocking(view, run),
        *findings.answers(view, unreachable_counts=not destructive),
        *findings.tuning(view, run),
        *findings.named_drives(view),
        *findings.answered_drives(view),
        *findings.tools(view),
        *findings.refused(view, run),
        *findings.other_live_runs(view, run),
        *same.side_by_side(view, run),
    ]


def _chosen(
    views: t.Sequence[View], plans: t.Mapping[str, dict[str, t.Any]], run: Run | None
) -> tuple[dict[str, purges.Chosen], list[Finding]]:
    """The purges of each host, and what is wrong with them or with the wear that follows."""
    chosen: dict[str, purges.Chosen] = {}
    found: list[Finding] = []
    for view in views:
        chosen[view.name], wrong = purges.choose(view, plans.get(view.name), run)
        found += wrong + _worn(view, plans.get(view.name), run, chosen[view.name])
    return chosen, found


def _folder_findings(results_dir: str, keep: bool) -> list[Finding]:
    problem = controller.folder_problem(results_dir, keep=keep)
    if not problem:
        return []
    return [Finding(f"ssd_results_dir: {results_dir} cannot be written on the controller: {problem}")]


def _left_out_before(results_dir: str, run: Run | None) -> left_out.Kept:
    with contextlib.suppress(ValueError):  # _definition_findings says what is wrong with run.json
        return left_out.of_run(run_record.read_run(os.path.join(results_dir, run.id)) if run else None)
    return {}


def _lines(found: t.Sequence[Finding]) -> list[str]:
    """The findings in their order; one that several hosts share is told once, with the hosts. One host's push nobody
    else's away.
    """
    hosts: dict[tuple[str, str], list[str]] = {}
    for finding in found:
        hosts.setdefault((finding.drive, finding.message), []).append(finding.host)
    lines: list[str] = []
    told: collections.Counter[str] = collections.Counter()
    for (drive, message), names in hosts.items():
        where = findings.host_list(names) if any(names) else ""
        told[where] += 1
        if told[where] <= MOST_OF_HOST or not where:
            lines.append(Finding(message, where, drive).text())
    more = {host: count - MOST_OF_HOST for host, count in told.items() if host and count > MOST_OF_HOST}
    return lines + [Finding(f"and {count} more findings like these", host).text() for host, count in more.items()]


def _plans(views: t.Sequence[View], run: Run | None) -> tuple[dict[str, dict[str, t.Any]], list[Finding]]:
    """plan.json of each host, as far as its drives are known, and what is wrong with tests."""
    plans, found = {}, []
    for view in views:
        # Nothing is left to be done on a host whose drives are all left out.
        if view.asked is None or (view.left_out and not view.asked["ssd_drives"]):
            continue
        drives = [
            entry
            for entry in view.drives or ()
            if entry.get("identity") and entry["identity"].get("logical_block_size_bytes")
        ]
        try:
            plans[view.name] = hostplan.build(
                run_json.host_variables(view.asked),
                run={"id": run.id, "name": run.name} if run else {"id": "", "name": ""},
                host=view.name,
                boot_id=(view.facts or {}).get("boot_id", ""),
                drives=drives,
                engine_version=collection_version(),
            )
        except PlanError as error:
            found += [_plan_finding(problem, view.name) for problem in error.problems]
    return plans, found


def _tests(views: t.Sequence[View]) -> dict[str, dict[str, dict[str, t.Any]]]:
    """What run.json tells about the tests of each host: {host: {name: …}}; without hosts whose tests are wrong (_plans
    says how).
    """
    tests = {}
    for view in views:
        if view.asked is not None:
            with contextlib.suppress(PlanError):
                asked = hostplan.tests(run_json.host_variables(view.asked), view.drives or ())
                tests[view.name] = {test["name"]: definitions.about(test) for test in asked}
    return tests


def _of_tests(
    views: t.Sequence[View],
    run: Run | None,
    results_dir: str,
    tests: t.Mapping[str, t.Mapping[str, t.Any]],
    plans: t.Mapping[str, t.Any],
) -> list[Finding]:
    """What is wrong with the tests by their names, with a second measurement, and with the criteria."""
    run_folder = os.path.join(results_dir, run.id) if run else ""
    found = _definition_findings(views, run, run_folder, tests, plans) + again.findings(views, run, results_dir)
    # Of a second measurement they were looked at before the first, with all drives and tests.
    return found if again.of(views) else found + criteria.findings(run_json.criteria(views), views, tests, plans)


def _definition_findings(
    views: t.Sequence[View],
    run: Run | None,
    run_folder: str,
    tests: t.Mapping[str, t.Mapping[str, t.Any]],
    plans: t.Mapping[str, t.Any],
) -> list[Finding]:
    """One name for two tests, within this play or against what the run was started with."""
    # The name of a single step says what it is, not how: hosts may do it with different settings.
    named = {
        view.name: tests[view.name]
        for view in views
        if view.name in tests and (view.asked or {}).get("ssd_step") == "qualify"
    }
    if run is None:
        return definitions.clashes(named, {})
    try:
        before = run_record.read_run(run_folder) or {}
    except ValueError as error:
        return [
            Finding(f"ssd_run_id: {run_folder}/run.json is damaged ({error}); repair it, or use another ssd_run_id")
        ]
    return definitions.changed(run, views, named, before, plans) + definitions.clashes(named, before)


def _plan_finding(problem: str, host: str) -> Finding:
    own, prefix = problem.startswith(f"{host}: "), f"{host}: "
    return Finding(problem[len(prefix) :] if own else problem, host)


def _plan_text(
    views: t.Sequence[View],
    run: Run | None,
    plans: t.Mapping[str, t.Mapping[str, t.Any]],
    chosen: t.Mapping[str, purges.Chosen],
    known: t.Mapping[str, earlier.Known],
) -> list[str]:
    if run is None:
        return []
    lines = [f"Run {run.id}"]
    held_to = run_json.criteria(views)
    for view in views:
        state = run.attach.get(view.name)
        if view.unreachable:
            lines.append(f"{view.name}: unreachable; its drives would count as not tested")
        elif state in findings.DRIVES_SETTLED:
            lines.append(f"{view.name}: this run is {state} there; nothing would be started")
        elif view.name in plans and view.asked:
            eligible = {
                entry["drive"]: entry.get("path") or "?"
                for entry in view.drives or ()
                if entry.get("identity") and not findings.standing(entry, run)
            }
            looks = {entry["drive"]: entry["look"] for entry in view.drives or () if entry.get("look")}
            rate, ratings = run_json.assumed_rate(view.asked), schemas.plain(view.asked.get("ssd_rated_tbw"))
            worn = {
                drive["drive"]: wear.text(
                    *wear.of_drive(drive, rate, chosen[view.name]),
                    wear.rated_bytes(drive["expected"].get("model"), ratings),
                )
                for drive in plans[view.name]["drives"]
            }
            plan, took = plans[view.name], known.get(view.name)
            lines += describe.describe(plan, eligible, rate, held_to, chosen[view.name], looks, worn, took)
            lines += _left_out(view)
        lines += [f"  {drive}: left out: {why}" for drive, why in view.left_out.items()]
    return lines + again.plan_lines(shared_retest(views), held_to)


def shared_retest(views: t.Sequence[View]) -> bool:
    """Whether drives that miss only relative criteria are measured again; a second measurement is not."""
    return whole(findings.shared_value(views, "ssd_retest") or 0) == 1 and not again.of(views)


def _left_out(view: View) -> list[str]:
    """What ssd_time_budget leaves out on a host."""
    variables = run_json.host_variables(view.asked or {})
    rest = hostplan.left_out(variables, view.drives or ())
    shown = ", ".join(f"{name} (up to {describe.duration(longest_s)})" for name, longest_s in rest.items())
    return [f"  left out by ssd_time_budget ({variables['ssd_time_budget']} a drive): {shown}"] if rest else []


def _worn(view: View, plan: t.Mapping[str, t.Any] | None, run: Run | None, chosen: purges.Chosen) -> list[Finding]:
    """Drives that the plan would wear beyond the budget; of a run that is under way there, it was decided when that
    began.
    """
    if plan is None or view.asked is None or (run and run.attach.get(view.name) in findings.DRIVES_SETTLED):
        return []
    twice = shared_retest([view]) and again.relative(run_json.criteria([view]))
    asked = schemas.plain(view.asked)
    return wear.findings(view.name, plan, asked, run_json.assumed_rate(view.asked), chosen, times_written=1 + twice)
