# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Digests of a plan.json: of what preflight decided, which the plan carries so that the host job erases nothing else;
and of its tests, for comparing runs that have tests of one name. Pure.
"""

from __future__ import annotations

import hashlib
import json
import typing as t

DESTRUCTIVE = "destructive"
# Of plan.json itself: how many drives are worked on at the same time, or the reads that tell it.
_OF_HOST = ("parallel_drives", "together")
# Of a drive's entry in plan.json: who it is, what of its identity may never be another, and what is done to it.
_OF_DRIVE = ("drive", "selector", "expected", "tests")

Record = t.Dict[str, t.Any]


def plan_digest(plan: t.Mapping[str, t.Any], mode: str) -> str:
    """SHA-256 over the run, the host, the mode and all that the plan does to drives, and to how many at once. The same
    on the controller and on the host.
    """
    decided = {
        "mode": mode,
        "run": plan["run"]["id"],
        "host": plan["host"],
        **{key: plan.get(key) for key in _OF_HOST},
        "drives": [{key: drive.get(key) for key in _OF_DRIVE} for drive in plan["drives"]],
    }
    return hashlib.sha256(json.dumps(decided, sort_keys=True).encode("utf-8")).hexdigest()


def decision(plan: t.Mapping[str, t.Any], mode: str = DESTRUCTIVE) -> dict[str, str]:
    """Return the decision for a plan, as it stands in plan.json: {mode, digest}."""
    return {"mode": mode, "digest": plan_digest(plan, mode)}


def plan_problem(plan: t.Mapping[str, t.Any]) -> str:
    """Return why the plan is not what preflight decided; "" if it is."""
    known = plan.get("decision")
    if not isinstance(known, t.Mapping):
        return "it carries no decision of preflight"
    if known.get("mode") != DESTRUCTIVE:
        return "preflight decided for ssd_mode={}".format(known.get("mode"))
    if known.get("digest") != plan_digest(plan, DESTRUCTIVE):
        return "its drives, its tests or the number of drives at a time are not what preflight approved"
    return ""


def digests_of_tests(plan: t.Mapping[str, t.Any]) -> Record:
    """Return what each test of a plan.json is, for comparing: {test: {key: digest}}. `cells`: those that a drive can't
    do count too.
    """
    tests: dict[str, list[Record]] = {}
    for drive in plan.get("drives", []):
        for test in drive["tests"]:
            tests.setdefault(test["name"], []).append(test)
    return {
        name: {key: digest(value) for key, value in _definition(rendered).items()} for name, rendered in tests.items()
    }


def _definition(rendered: list[Record]) -> Record:
    """One test, from its renderings for the drives of a host."""
    test = rendered[0]
    fill = test.get("precondition")
    cells = [cell for each in rendered for cell in each.get("cells", [])]
    left_out = [cell for each in rendered for cell in each.get("not_applicable", [])]
    # By the names that they have on every drive: a format may change what a drive prefers, and no definition.
    named = {cell["id"]: cell["preferred"] for cell in cells if cell.get("preferred")}
    points = {named.get(cell["id"], cell["id"]): cell["point"] for cell in cells if cell.get("point")}
    return {
        "purge": (test.get("purge") or {}).get("method"),
        "precondition": fill and [fill.get("passes"), fill.get("block_size_bytes")],
        "active_range_pct": test.get("active_range_pct"),
        "rounds": test.get("rounds"),
        "steady_state": _named_steady(test.get("steady_state"), named),
        "after_steady_rounds": test.get("after_steady_rounds"),
        **{
            key: test[key]
            for key in ("latency_targets_us", "last_rounds", "write_cache", "filesystem", "array")
            if key in test
        },
        **({"points": points} if points else {}),
        "cells": sorted({named.get(cell["id"], cell["id"]) for cell in cells + left_out}),
        "runtimes_s": sorted({cell["runtime_s"] for cell in cells}),
    }


def _named_steady(steady: Record | None, named: t.Mapping[str, str]) -> Record | None:
    if not steady:
        return steady
    tracked = [dict(item, cell=named.get(item["cell"], item["cell"])) for item in steady.get("tracked", [])]
    return dict(steady, tracked=tracked)


def digest(value: t.Any, letters: int = 8) -> str:
    """Return the same short text for the same value."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:letters]
