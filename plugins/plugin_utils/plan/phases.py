# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Phases: tests that go on from the state that the one before them leaves, written as keys of the first one. Pure.

Each becomes a test of its own, so that it has its own rounds, figures, verdict and place in the report.
"""

from __future__ import annotations

import typing as t

Test = dict[str, t.Any]
# What a phase takes over from its test; what it leaves out besides has the schema's default.
INHERITED = ("source", "active_range_pct", "latency_targets_us", "write_cache", "description")
OWN = ("matrix", "cells", "lead", "steady_state", "rounds", "last_rounds", "description")


def split(test: Test) -> list[Test]:
    """Return a test as someone wrote it, and its phases as tests of the same form; `follows` names the one before."""
    first = {key: value for key, value in test.items() if key != "phases"}
    found = [first]
    for phase in test.get("phases") or []:
        made = {key: test[key] for key in INHERITED if key in test}
        made.update({key: phase[key] for key in OWN if key in phase})
        made.update(name=f"{test['name']}-{phase['name']}", follows=found[-1]["name"], purge=False, precondition=False)
        made["title"] = phase.get("title") or f"{test.get('title') or test['name']}: {phase['name']}"
        if phase.get("repeats"):
            made["repeats"] = test["name"]
        found.append(made)
    return found


def link(tests: t.Sequence[Test]) -> list[str]:
    """Give each point of a test's phases its sweep, and the most that it may ask for; what is wrong, as "<test>:
    message".

    tests: of one entry, in their internal form. Changes them.
    """
    wrong = []
    for index, test in enumerate(tests):
        for cell in test["cells"]:
            if cell.get("point"):
                wrong += [f"cell {cell['id']}: {problem}" for problem in _link(cell, tests[0]["name"], tests[:index])]
    return wrong


def _link(cell: dict[str, t.Any], first: str, before: t.Sequence[Test]) -> list[str]:
    name = f"{first}-{cell['point']['of']}"
    sweep = next((test for test in before if test["name"] == name), None)
    if sweep is None:
        return [f"point.of: {cell['point']['of']!r} is not an earlier phase"]
    points = [point for point in sweep["cells"] if not point.get("lead")]
    if any(point.get("per_cpu") for point in points):
        return [f"point.of: the loads of {cell['point']['of']!r} follow the CPUs (per_cpu), so they are not a sweep"]
    cell["point"] = {**{key: value for key, value in cell["point"].items() if key != "of"}, "test": name}
    # Upper bounds for whoever plans; the host takes those of the cell that it finds.
    cell.update({key: max(point[key] for point in points) for key in ("threads", "queue_depth")})
    return []
