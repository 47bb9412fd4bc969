# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the tests of a plan.json are, in short: digests for comparing runs that have tests of one name. Pure."""

from __future__ import annotations

import hashlib
import json
import typing as t

Record = t.Dict[str, t.Any]


def of_tests(plan: t.Mapping[str, t.Any]) -> Record:
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
