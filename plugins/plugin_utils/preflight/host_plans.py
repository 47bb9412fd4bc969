# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The plan and the tests of each host, and what is wrong with them: in this play, and against how the run began.

One name is one test: a run's figures are judged by the definition that they were measured with.
"""

from __future__ import annotations

import dataclasses
import json
import os
import typing as t

from ...module_utils.records import base
from ...module_utils.records.plan import Plan
from ...module_utils.run import digests
from ..common.argument_specs import Variables
from ..common.version import collection_version
from ..plan import hostplan, time_estimates
from ..plan.test_record import Test
from ..plan.testfiles import PlanError
from ..run_folder.run_record import Definition
from ..verdict.comparability import COMPARED
from . import begun_run, criteria_checks, drive_feasibility, remeasurement_checks, run_json, wear
from .begun_run import BegunRun
from .findings import Finding, HostAnswer, Run
from .host_tests import Requested, TestsOfHosts

# What run.json keeps of every test; and of one that has it.
KEPT = (
    "title",
    "description",
    "source",
    "origin",
    "repeats",
    "purge",
    "precondition",
    "active_range_pct",
    "rounds",
    "steady_state",
    "after_steady_rounds",
    "latency_targets_us",
    "last_rounds",
    "follows",
    "write_cache",
    "refill_buffers",
)
KEPT_IF_GIVEN = (
    "active_range_max_bytes",
    "cell_order",
    "filesystem",
    "power_cut",
    "self_test",
    "in_service",
    "scrub",
    "zoned",
    "departs",
    "run_margin",
)


def about_test(test: Test) -> Definition:
    """Return what run.json keeps of a test as load_plan returns it. runtimes_s: of its cells, whose ids do not tell it;
    points: the rules of those that follow a sweep.
    """
    own = {
        **{key: getattr(test, key) for key in KEPT},
        **{key: getattr(test, key) for key in KEPT_IF_GIVEN if getattr(test, key)},
        **({"array": test.array_request} if test.array_request else {}),
        "tracked": test.steady_state.tracked if test.steady_state else [],
        "cells": [cell.id for cell in test.cells],
        "leads": [cell.id for cell in test.cells if cell.lead],
        "runtimes_s": sorted({cell.runtime_s for cell in test.cells}),
    }
    points = {cell.id: cell.point for cell in test.cells if cell.point}
    integrity = base.to_json(test.integrity)
    return {
        **base.sparse_json({**own, **({"points": points} if points else {})}),
        **({"integrity": {key: integrity[key] for key in integrity if key != "heat"}} if integrity else {}),
    }


def differing_keys(one: Definition, other: Definition, keys: t.Iterable[str] = COMPARED) -> list[str]:
    """Return the keys that both have and in which they differ: an older record may lack some."""
    return [
        key
        for key in keys
        if key in one and key in other and _definition_text(one[key]) != _definition_text(other[key])
    ]


def _definition_text(value: t.Any) -> str:
    return json.dumps(value, sort_keys=True)


def changed_tests(
    run: Run, views: t.Sequence[HostAnswer], tests: TestsOfHosts, before: BegunRun, plans: t.Mapping[str, Plan]
) -> list[Finding]:
    """Tests that a host was asked for in this run already, and that are now defined in another way.

    before: as the run began. plans: of each host as it would be now; compared with what run_info tells of the
      host's own.
    """
    found = {}
    for view in views:
        for name, keys in {
            **_changed_on_host(run, view, plans.get(view.name)),
            **_changed_in_record(view.name, tests.get(view.name, {}), before),
        }.items():
            found[view.name, name] = Finding(
                (
                    f"run {run.id} was started with another definition of test {name} (differs in: {', '.join(keys)}); "
                    "use another ssd_run_id"
                ),
                view.name,
            )
    return list(found.values())


def _changed_in_record(host: str, own: t.Mapping[str, Definition], before: BegunRun) -> dict[str, list[str]]:
    asked = {name for drive in before.drives if drive.host == host for name in drive.tests}
    found = {name: differing_keys(before.tests.get(name, {}), test) for name, test in own.items() if name in asked}
    return {name: keys for name, keys in found.items() if keys}


def _changed_on_host(run: Run, view: HostAnswer, plan: Plan | None) -> dict[str, list[str]]:
    own = next((one for one in view.runs or () if one.run_id == run.id), None)
    then = (own and own.definitions) or {}
    now = digests.digests_of_tests(plan) if then and plan else {}
    found = {name: differing_keys(then[name], now[name], now[name]) for name in now if name in then}
    return {name: keys for name, keys in found.items() if keys}


def clashing_tests(tests: TestsOfHosts, before: BegunRun) -> list[Finding]:
    """One name for two tests within a run, hosts of its earlier plays included. Pass and fail go by the name alone."""
    first: dict[str, tuple[str, Definition]] = {}
    for drive in before.drives:
        for name in drive.tests if drive.host not in tests else ():
            first.setdefault(name, (drive.host, before.tests.get(name, {})))
    found = []
    for host, own in tests.items():
        for name, test in own.items():
            other, definition = first.setdefault(name, (host, test))
            keys = differing_keys(definition, test)
            if keys:
                what = f"is defined differently on {other} (differs in: {', '.join(keys)})"
                found.append(Finding(f"test {name}: {what}; give the two definitions different names", host))
    return found


def of_hosts(
    views: t.Sequence[HostAnswer], run: Run | None, requested: Requested
) -> tuple[dict[str, Plan], list[Finding]]:
    """Return the plan of each host, as far as its drives are known, and what is wrong with tests."""
    plans: dict[str, Plan] = {}
    found = []
    for view in views:
        # Nothing is left to be done on a host whose drives are all left out.
        if view.asked is None or (view.left_out and not view.entries):
            continue
        asked = requested[view.name]
        found += [_plan_finding(problem, view.name) for problem in asked.problems]
        if asked.problems:
            continue
        drives = [drive for drive in view.drives_to_plan() if hostplan.has_sizes(drive)]
        try:
            plan = hostplan.build(
                asked.variables,
                asked.tests,
                run={"id": run.id, "name": run.name} if run else {"id": "", "name": ""},
                host=view.name,
                boot_id=(view.facts and view.facts.boot_id) or "",
                drives=drives,
                left_out=sorted(view.left_out),
                engine_version=collection_version(),
            )
            left_out = drive_feasibility.self_tests_left_out(view, asked.tests)
            plan = drive_feasibility.without_self_tests(plan, left_out)
            plans[view.name] = _with_budgets(plan, view, asked.variables)
        except PlanError as error:
            found += [_plan_finding(problem, view.name) for problem in error.problems]
    return plans, found


def _with_budgets(plan: Plan, view: HostAnswer, variables: Variables) -> Plan:
    """Return a plan with what its host stops to measure disturbed rounds again by, and what its BMC said of it."""
    bytes_of = wear.budgets(view)
    drives = [dataclasses.replace(drive, wear_budget_bytes=bytes_of.get(drive.drive) or None) for drive in plan.drives]
    most_s = time_estimates.budget_s(variables.get("ssd_time_budget"))
    bios = view.snapshot.bios_settings if view.snapshot else None
    return dataclasses.replace(plan, drives=drives, time_budget_s=most_s, bios_settings=bios)


def tests_of(requested: Requested) -> TestsOfHosts:
    """Return what run.json tells about the tests of each host: {host: {name: …}}; none of hosts whose tests
    are wrong.
    """
    return {
        host: {test.name: about_test(test) for test in asked.tests}
        for host, asked in requested.items()
        if not asked.problems
    }


def findings(
    views: t.Sequence[HostAnswer],
    run: Run | None,
    results_dir: str,
    tests: TestsOfHosts,
    plans: t.Mapping[str, Plan],
) -> list[Finding]:
    """Return what is wrong with the tests by their names, with a second measurement, and with the criteria."""
    run_folder = os.path.join(results_dir, run.id) if run else ""
    found = _definition_findings(views, run, run_folder, tests, plans) + remeasurement_checks.findings(
        views, run, results_dir
    )
    # Of a second measurement they were looked at before the first, with all drives and tests.
    return (
        found
        if remeasurement_checks.remeasured_run(views)
        else found + criteria_checks.findings(run_json.criteria(views), views, tests, plans)
    )


def _definition_findings(
    views: t.Sequence[HostAnswer],
    run: Run | None,
    run_folder: str,
    tests: TestsOfHosts,
    plans: t.Mapping[str, Plan],
) -> list[Finding]:
    """One name for two tests, within this play or against what the run was started with."""
    # The name of a single step says what it is, not how: hosts may do it with different settings.
    named = {
        view.name: tests[view.name]
        for view in views
        if view.name in tests and (view.asked or {}).get("ssd_step") == "qualify"
    }
    if run is None:
        return clashing_tests(named, BegunRun())
    try:
        before = begun_run.read(run_folder)
    except ValueError as error:
        return [
            Finding(f"ssd_run_id: {run_folder}/run.json is damaged ({error}); repair it, or use another ssd_run_id")
        ]
    return changed_tests(run, views, named, before, plans) + clashing_tests(named, before)


def _plan_finding(problem: str, host: str) -> Finding:
    own, prefix = problem.startswith(f"{host}: "), f"{host}: "
    return Finding(problem[len(prefix) :] if own else problem, host)
