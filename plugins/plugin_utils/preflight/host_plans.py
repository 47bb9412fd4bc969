# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The plan and the tests of each host, and what is wrong with them: in this play, and against how the run began."""

from __future__ import annotations

import os
import typing as t

from ..common.version import collection_version
from ..plan import hostplan
from ..plan.testfiles import PlanError
from ..run_folder import run_record
from . import criteria_checks, remeasurement_checks, run_json, test_definitions
from .findings import Finding, HostAnswer, Run
from .host_tests import Requested


def of_hosts(
    views: t.Sequence[HostAnswer], run: Run | None, requested: Requested
) -> tuple[dict[str, dict[str, t.Any]], list[Finding]]:
    """plan.json of each host, as far as its drives are known, and what is wrong with tests."""
    plans, found = {}, []
    for view in views:
        # Nothing is left to be done on a host whose drives are all left out.
        if view.asked is None or (view.left_out and not view.entries):
            continue
        asked = requested[view.name]
        found += [_plan_finding(problem, view.name) for problem in asked.problems]
        if asked.problems:
            continue
        drives = [
            entry
            for entry in view.drives or ()
            if all((entry.get("identity") or {}).get(key) for key in ("size_bytes", "logical_block_size_bytes"))
        ]
        try:
            plans[view.name] = hostplan.build(
                asked.variables,
                asked.tests,
                run={"id": run.id, "name": run.name} if run else {"id": "", "name": ""},
                host=view.name,
                boot_id=(view.facts or {}).get("boot_id", ""),
                drives=drives,
                left_out=sorted(view.left_out),
                engine_version=collection_version(),
            )
        except PlanError as error:
            found += [_plan_finding(problem, view.name) for problem in error.problems]
    return plans, found


def tests_of(requested: Requested) -> dict[str, dict[str, dict[str, t.Any]]]:
    """Return what run.json tells about the tests of each host: {host: {name: …}}; none of hosts whose tests
    are wrong.
    """
    return {
        host: {test["name"]: test_definitions.about(test) for test in asked.tests}
        for host, asked in requested.items()
        if not asked.problems
    }


def findings(
    views: t.Sequence[HostAnswer],
    run: Run | None,
    results_dir: str,
    tests: t.Mapping[str, t.Mapping[str, t.Any]],
    plans: t.Mapping[str, t.Any],
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
        return test_definitions.clashes(named, {})
    try:
        before = run_record.read_run(run_folder) or {}
    except ValueError as error:
        return [
            Finding(f"ssd_run_id: {run_folder}/run.json is damaged ({error}); repair it, or use another ssd_run_id")
        ]
    return test_definitions.changed(run, views, named, before, plans) + test_definitions.clashes(named, before)


def _plan_finding(problem: str, host: str) -> Finding:
    own, prefix = problem.startswith(f"{host}: "), f"{host}: "
    return Finding(problem[len(prefix) :] if own else problem, host)
