# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Digests of a plan: of what preflight decided, which the plan carries so that the host job erases nothing else;
and of its tests, for comparing runs that have tests of one name. Pure.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import typing as t

from ..records.base import Json, sparse_json
from ..records.plan import Plan, PlanDecision, PlannedTest, SteadyStateRule
from . import read_only

DESTRUCTIVE = "destructive"
# Of a plan itself: how many drives are worked on at the same time, or the reads that tell it.
_OF_HOST = ("parallel_drives", "together")
# Of a drive in a plan: who it is, what of its identity may never be another, and what is done to it.
_OF_DRIVE = ("drive", "selector", "expected", "tests")
# Of a test, beside its purge, fill, rule, cells and points; what only some have.
_OF_TEST, _OF_SOME = (
    ("latency_targets_us", "last_rounds", "write_cache"),
    (
        *("active_range_max_bytes", "cell_order", "filesystem", "array", "integrity", "power_cut"),
        *("self_test", "in_service", "scrub"),
    ),
)


def plan_digest(plan: Plan, mode: str) -> str:
    """SHA-256 over the run, the host, the mode and all that the plan does to drives, and to how many at once. The same
    on the controller and on the host.
    """
    decided = {
        "mode": mode,
        "run": plan.run.id,
        "host": plan.host,
        **{key: sparse_json(getattr(plan, key)) for key in _OF_HOST},
        "drives": [{key: sparse_json(getattr(drive, key)) for key in _OF_DRIVE} for drive in plan.drives],
    }
    return hashlib.sha256(json.dumps(decided, sort_keys=True).encode("utf-8")).hexdigest()


def decision(plan: Plan, mode: str = DESTRUCTIVE) -> PlanDecision:
    """Return the decision for a plan."""
    return PlanDecision(mode, plan_digest(plan, mode))


def plan_problem(plan: Plan) -> str:
    """Return why the plan is not what preflight decided; "" if it is."""
    if plan.decision is None:
        return "it carries no decision of preflight"
    mode = plan.decision.mode
    if mode not in (DESTRUCTIVE, read_only.MODE):
        return f"preflight decided for ssd_mode={mode}"
    if plan.decision != decision(plan, mode):
        return "its drives, its tests or the number of drives at a time are not what preflight approved"
    if mode == read_only.MODE:
        return read_only.plan_problem(plan)
    if any(test.in_service for drive in plan.drives for test in drive.tests):
        return f"it has tests for drives in service, and preflight decided for ssd_mode={mode}"
    return ""


def digests_of_tests(plan: Plan) -> dict[str, dict[str, str]]:
    """Return what each test of a plan is, for comparing: {test: {key: digest}}. `cells`: those that a drive can't do
    count too.
    """
    tests: dict[str, list[PlannedTest]] = {}
    for drive in plan.drives:
        for test in drive.tests:
            tests.setdefault(test.name, []).append(test)
    return {
        name: {key: digest(value) for key, value in _definition(rendered).items()} for name, rendered in tests.items()
    }


def _definition(rendered: list[PlannedTest]) -> Json:
    """One test, from its renderings for the drives of a host."""
    test, fill = rendered[0], rendered[0].precondition
    cells = [cell for each in rendered for cell in each.cells]
    left_out = [item.id for each in rendered for item in each.not_applicable]
    # By the names that they have on every drive: a format may change what a drive prefers, and no definition.
    named = {cell.id: cell.preferred for cell in cells if cell.preferred}
    points = {named.get(cell.id, cell.id): sparse_json(cell.point) for cell in cells if cell.point}
    return {
        "purge": test.purge.method,
        "precondition": fill and [fill.passes, fill.block_size_bytes],
        "active_range_pct": test.active_range_pct,
        "rounds": sparse_json(test.rounds),
        "steady_state": _named_steady(test.steady_state, named),
        "after_steady_rounds": test.after_steady_rounds,
        **{key: getattr(test, key) for key in _OF_TEST},
        **{key: sparse_json(getattr(test, key)) for key in _OF_SOME if getattr(test, key)},
        **({"points": points} if points else {}),
        "cells": sorted({named.get(name, name) for name in [*(cell.id for cell in cells), *left_out]}),
        "runtimes_s": sorted({cell.runtime_s for cell in cells}),
    }


def _named_steady(steady: SteadyStateRule | None, named: t.Mapping[str, str]) -> Json | None:
    if not steady:
        return None
    tracked = [dataclasses.replace(item, cell=named.get(item.cell, item.cell)) for item in steady.tracked]
    found: Json = sparse_json(dataclasses.replace(steady, tracked=tracked))
    return found


def digest(value: t.Any, letters: int = 8) -> str:
    """Return the same short text for the same value."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:letters]
