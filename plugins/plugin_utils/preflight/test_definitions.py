# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One name, one test: a run's figures are judged by the definition that they were measured with. Pure."""

from __future__ import annotations

import json
import typing as t

from ...module_utils.run import digests
from ..verdict.comparability import COMPARED
from .findings import Finding, HostAnswer, Run

About = t.Mapping[str, t.Any]
# {host: {name of a test: what run.json tells about it}}
Tests = t.Mapping[str, t.Mapping[str, About]]


def about(test: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """Return what run.json keeps of a test as load_plan returns it. runtimes_s: of its cells, whose ids do not tell it;
    points: the rules of those that follow a sweep.
    """
    keys = (
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
        "filesystem",
        "array",
        "departs",
    )
    points = {cell["id"]: cell["point"] for cell in test["cells"] if cell.get("point")}
    return {
        **{key: test[key] for key in keys if key in test},
        **({"run_margin": test["run_margin"]} if test.get("run_margin") else {}),
        "tracked": (test["steady_state"] or {}).get("tracked", []),
        "cells": [cell["id"] for cell in test["cells"]],
        "leads": [cell["id"] for cell in test["cells"] if cell.get("lead")],
        **({"points": points} if points else {}),
        "runtimes_s": sorted({cell["runtime_s"] for cell in test["cells"]}),
    }


def differing(one: About, other: About, keys: t.Iterable[str] = COMPARED) -> list[str]:
    """Return the keys that both have and in which they differ: an older record may lack some."""
    return [key for key in keys if key in one and key in other and _text(one[key]) != _text(other[key])]


def _text(value: t.Any) -> str:
    return json.dumps(value, sort_keys=True)


def changed(
    run: Run, views: t.Sequence[HostAnswer], tests: Tests, before: About, plans: t.Mapping[str, About]
) -> list[Finding]:
    """Tests that a host was asked for in this run already, and that are now defined in another way.

    before: run.json or {}. plans: plan.json of each host as it would be now; compared with what run_info tells of the
      host's own.
    """
    found = {}
    for view in views:
        for name, keys in {
            **_on_host(run, view, plans.get(view.name)),
            **_in_record(view.name, tests.get(view.name, {}), before),
        }.items():
            found[view.name, name] = Finding(
                (
                    f"run {run.id} was started with another definition of test {name} (differs in: {', '.join(keys)}); "
                    "use another ssd_run_id"
                ),
                view.name,
            )
    return list(found.values())


def _in_record(host: str, own: t.Mapping[str, About], before: About) -> dict[str, list[str]]:
    asked = {name for entry in before.get("asked", []) if entry["host"] == host for name in entry.get("tests", [])}
    found = {name: differing(before["tests"].get(name, {}), test) for name, test in own.items() if name in asked}
    return {name: keys for name, keys in found.items() if keys}


def _on_host(run: Run, view: HostAnswer, plan: About | None) -> dict[str, list[str]]:
    entry = next((entry for entry in view.runs or () if entry["run_id"] == run.id), {})
    then, now = entry.get("definitions") or {}, digests.digests_of_tests(plan or {})
    found = {name: differing(then[name], now[name], now[name]) for name in now if name in then}
    return {name: keys for name, keys in found.items() if keys}


def clashes(tests: Tests, before: About) -> list[Finding]:
    """One name for two tests within a run, hosts of its earlier plays included. Pass and fail go by the name alone."""
    first: dict[str, tuple[str, About]] = {}
    for entry in before.get("asked", []):
        for name in entry.get("tests", []) if entry["host"] not in tests else []:
            first.setdefault(name, (entry["host"], before["tests"].get(name, {})))
    found = []
    for host, own in tests.items():
        for name, test in own.items():
            other, definition = first.setdefault(name, (host, test))
            keys = differing(definition, test)
            if keys:
                what = f"is defined differently on {other} (differs in: {', '.join(keys)})"
                found.append(Finding(f"test {name}: {what}; give the two definitions different names", host))
    return found
