# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests and plans, checked, each laid over its bases (inheritance.py). Reads files (test_library.py), changes
nothing.
"""

from __future__ import annotations

import copy
import typing as t
from pathlib import Path

from ..common import schema as schemas
from . import arrays, cross_test_checks, filesystems, in_service, inheritance
from . import cells as celling
from .test_library import SHIPPED_DIR, Library, PlanError, Source, raise_for

Test = dict[str, t.Any]
# Those that read back what they wrote, have the drive test itself, or read a part of it: they have no use for the rest.
MEASURES_NOTHING = ("integrity", "self_test", "scrub")
# What it cannot be combined with, and how a test is told that it has none, as its base may give it one.
APART_FROM_THEM = {
    "self_test": "make two tests of them",
    "scrub": "make two tests of them",
    "precondition": "give it precondition: false",
    "cells": "build on another base, such as integrity or self-test-short",
    "steady_state": "give it steady_state: null",
}
# A drive is fresh while its user capacity, and what it has beside it, is written for the first time, and then falls for
# about as long (schema: steady_state).
SATURATION = {"min_capacity_multiple": 2, "confirm_windows": 1}

__all__ = ["SHIPPED_DIR", "Library", "PlanError", "Test", "load_plan"]


def fill_in_saturation(tests: t.Sequence[Test]) -> None:
    """Set what tests, in the order of their plan, leave open of when a window may begin.

    A purge makes a drive fresh for its test and for those after it, until one fills it or has to write as much itself.
    """
    fresh = False
    for test in tests:
        filled = test["precondition"] or test.get("integrity")
        fresh = (fresh or test["purge"]["method"] != "none") and not filled
        steady = test["steady_state"]
        if not steady:
            continue
        waits = fresh and any(cell["read_pct"] < 100 for cell in test["cells"])
        for key, value in SATURATION.items():
            if steady[key] is None:
                steady[key] = value if waits else 0
        # One that is told not to wait proves nothing for those after it.
        fresh = fresh and steady["min_capacity_multiple"] < SATURATION["min_capacity_multiple"]


def load_plan(ssd_plan: t.Any, dirs: t.Sequence[str | Path] = ()) -> list[Test]:
    """Return the checked tests of a plan, in order.

    ssd_plan: a list of test names and inline tests, or the name of a plan file. dirs: ssd_tests_dirs.
    A test: name, title, description, source, origin, own_cells (the site chose the cells), repeats (a test before it)
    or None, purge
    {method}, precondition {passes (over the ActiveRange), block_size_bytes} or None, active_range_pct, cells, rounds,
    steady_state or None,
    after_steady_rounds, latency_targets_us, refill_buffers, active_range_max_bytes, filesystem, array and departs
    (inheritance.py) where there is one (docs/internals/host.md, "A rendered test", without job texts). Raises
    PlanError with every problem at once.
    """
    library = Library(dirs)
    tests, problems = [], []
    for source in _plan_sources(schemas.plain(ssd_plan), library):
        try:
            tests += _load_tests(source, library)
        except PlanError as error:
            problems += error.problems
    names = [test["name"] for test in tests]
    for test in {test["name"]: test for test in tests if names.count(test["name"]) > 1}.values():
        problems.append(f"{test['origin']}: name: {test['name']!r} is in the plan twice; give one of them another name")
    fill_in_saturation(tests)
    problems += [f"{test['origin']}: {problem}" for test in tests for problem in _limit_problems(test)]
    problems += cross_test_checks.deallocated_reads(tests)
    problems += (
        cross_test_checks.contradictions(tests) + filesystems.left_behind(tests) + arrays.tests_after_array(tests)
    )
    if problems:
        raise PlanError(problems)
    return tests


def _plan_sources(ssd_plan: t.Any, library: Library) -> list[Source]:
    """Return the plan's entries, each with where it stands."""
    origin, shipped, entries = "ssd_plan", False, ssd_plan
    if isinstance(ssd_plan, str) and ssd_plan:
        found = library.find("plans", ssd_plan)
        if found is None:
            raise PlanError([_no_plan(ssd_plan, library)])
        origin, shipped, entries = found.origin, found.shipped, found.data
    if not isinstance(entries, list) or not entries:
        what = "must be a list of tests (names or mappings), or the name of a plan file"
        raise PlanError(
            [
                (
                    f"{origin}: {what}; known tests: {', '.join(library.names('tests'))}; known plans: "
                    f"{', '.join(library.names('plans'))}"
                )
            ]
        )
    return [Source(f"{origin}[{index}]", shipped, entry) for index, entry in enumerate(entries)]


def _no_plan(name: str, library: Library) -> str:
    if name in library.names("tests"):
        return f"ssd_plan: {name!r} is a test, not a plan; for a plan of this test alone write ssd_plan: [{name}]"
    known = library.names("plans")
    return f"ssd_plan: no plan file named {name!r}{schemas.suggestion(name, known)} (known plans: {', '.join(known)})"


def _load_tests(entry: Source, library: Library) -> list[Test]:
    """One entry of a plan as checked tests: one, or with each_cell one for each cell. Raises PlanError."""
    source = inheritance.named(entry.data, entry.origin, library, ()) if isinstance(entry.data, str) else entry
    data, own_cells = inheritance.resolve(source, library, ())
    schema = schemas.load("test")
    raise_for(
        source.origin,
        schemas.problems(_spelt_out(data, schema), schema) + ([] if "name" in data else ["name: is missing"]),
    )
    if data.get("phases") and data.get("each_cell"):
        raise PlanError(
            [f"{source.origin}: phases: can't be combined with each_cell, which makes several tests of this one"]
        )
    tests = []
    for one in inheritance.split_phases(data):
        tests += _completed(one, schema, source.origin)
    done = [_normalised(one, source.origin, own_cells) for one in tests]
    wrong = [
        f"{one['name']}: {problem}" for one in done for problem in filesystems.problems(one) + arrays.problems(one)
    ]
    for key in ("filesystem", "array") if data.get("phases") else ():
        wrong += (
            [f"phases: can't be combined with {key}, which lasts for one test"] if data.get(key) is not None else []
        )
    raise_for(source.origin, inheritance.link_phases(done) + wrong)
    stated = inheritance.with_source(source, library)
    if stated:
        name = stated.data.get("name") or t.cast(Path, stated.path).stem
        inheritance.mark_deviations(done, data["name"], _load_tests(stated, library), name)
    return done


def _completed(data: Test, schema: schemas.Schema, origin: str) -> list[Test]:
    """Return a test, or a phase as one, with its defaults; with each_cell one for each cell. Raises PlanError."""
    follows = data.get("follows")
    data = _spelt_out({key: value for key, value in data.items() if key != "follows"}, schema)
    raise_for(f"{origin}: phase {data['name']}" if follows else origin, schemas.problems(data, schema))
    test = {**schemas.with_defaults({"title": data["name"], **data}, schema), "follows": follows}
    tests = _split(test) if test["each_cell"] else [test]
    # The names of its cells may have made a test's name too long.
    raise_for(origin, [problem for one in tests for problem in schemas.problems({"name": one["name"]}, schema)])
    return tests


def _spelt_out(data: Test, schema: schemas.Schema) -> Test:
    """Return a test with what `true` stands for, which may lack a key that has no default."""
    return {
        key: {} if value is True and "object" in schemas.kinds(schema["properties"].get(key, {})) else value
        for key, value in data.items()
    }


def _split(test: Test) -> list[Test]:
    """Return a test of each cell, named without what all cells share: micron-rand-4k-w100."""
    sources = celling.sources(test)
    names = celling.short_names([celling.rendered(source) for source in sources])
    tests = []
    for source, name in zip(sources, names):
        made = copy.deepcopy(
            {
                **test,
                "name": f"{test['name']}-{name}",
                "title": f"{test['title']}: {name}",
                "matrix": None,
                "cells": [source],
            }
        )
        tests.append(made)
    return tests


def _normalised(test: Test, origin: str, own_cells: bool) -> Test:
    """Return the internal form of a complete test (see load_plan). Raises PlanError."""
    cells = celling.expand(test)
    steady = test["steady_state"]
    problems = celling.static_problems(cells) + _apart({**test, "cells": cells}) + _without_effect(test)
    problems += in_service.test_problems({**test, "cells": cells})
    if steady and test["last_rounds"]:
        problems.append("last_rounds: cannot be combined with steady_state, whose window makes the figures")
    if steady:
        steady["tracked"], wrong = celling.track(steady["tracked"], cells)
        problems += wrong
    if test["cell_order"] == "shuffled" and test.get("lead"):
        problems.append("cell_order: shuffled cannot be combined with lead, the cell that begins every round")
    laid = None
    try:
        laid = filesystems.rendered(test["filesystem"], celling.size_bytes)
    except ValueError as error:
        problems.append(f"filesystem.raid: {error}")
    several = arrays.rendered(test["array"], celling.size_bytes)
    precondition, verified = _fill(test)
    if verified and precondition["passes"] < 1:
        problems.append("precondition.verify: needs passes: 2 or more, the last of which is read back")
    if verified and "data" in precondition:
        problems.append("precondition.verify: can't be combined with data: zeros, which tell no block from another")
    most_gib = test["active_range_max_gib"]
    if most_gib and test["precondition"] and test["precondition"]["of"] == "user_capacity":
        problems.append("active_range_max_gib: needs a precondition with of: active_range, or none")
    raise_for(origin, problems)
    return {
        "name": test["name"],
        "title": test["title"],
        "description": " ".join(test["description"].split()),
        "source": test["source"],
        "origin": origin,
        "own_cells": own_cells,
        "repeats": test["repeats"],
        "run_margin": test["run_margin"],
        "purge": test["purge"] or {"method": "none"},
        "precondition": precondition,
        "active_range_pct": test["active_range_pct"],
        "cells": cells,
        "rounds": test["rounds"],
        "steady_state": steady,
        "after_steady_rounds": test["after_steady_rounds"],
        "latency_targets_us": test["latency_targets_us"],
        "last_rounds": test["last_rounds"],
        # YAML reads a bare on and off as true and false.
        "write_cache": {True: "on", False: "off"}.get(test["write_cache"], test["write_cache"]),
        "refill_buffers": test["refill_buffers"],
        "follows": test["follows"],
        **({"active_range_max_bytes": most_gib << 30} if most_gib else {}),
        **({"cell_order": "shuffled"} if test["cell_order"] == "shuffled" else {}),
        **({"filesystem": laid} if laid else {}),
        **({"array": several} if several else {}),
        **({in_service.KEY: test[in_service.KEY]} if test[in_service.KEY] else {}),
        **{key: test[key] for key in MEASURES_NOTHING if test[key]},
        **verified,
    }


def _fill(test: Test) -> tuple[t.Any, dict[str, t.Any]]:
    """Return the precondition of a test in its internal form, and its last pass where that is an integrity test's."""
    given = test["precondition"]
    if not given:
        return given, {}
    passes = given["passes"]
    if given["of"] == "user_capacity":
        passes = celling.fill_passes(passes, test["active_range_pct"])
    zeros = {"data": "zeros"} if given["data"] == "zeros" else {}
    fill = {"passes": passes - given["verify"], "block_size_bytes": celling.size_bytes(given["block_size"]), **zeros}
    return fill, {"integrity": {"passes": 1}} if given["verify"] else {}


def _apart(test: Test) -> list[str]:
    """Return what a test that measures nothing cannot be combined with. test: with all of its cells."""
    own = [key for key in MEASURES_NOTHING if test[key]][:1]
    apart = [(key, remedy) for key, remedy in APART_FROM_THEM.items() if test[key] and key not in own]
    return [
        f"{name}: cannot be combined with {key}: it measures nothing; {remedy}" for name in own for key, remedy in apart
    ]


def _without_effect(test: Test) -> list[str]:
    """Return keys of `integrity` that change nothing of a test of one pass: both are about what comes after one."""
    asked = test["integrity"] or {}
    is_one = asked.get("passes") == 1 and not asked["duration_s"]
    keys = [key for key in ("heat_s", "stop_at_first") if is_one and asked[key]]
    return [f"integrity.{key}: has no effect on a single pass; give passes: 2, or a duration_s" for key in keys]


def _limit_problems(test: Test) -> list[str]:
    """A test has to measure something and to end."""
    cells = test["cells"]
    if not cells:
        is_own = any(test.get(key) for key in MEASURES_NOTHING)
        return [] if is_own else ["cells: the test has neither cells nor a matrix"]
    rounds, steady = test["rounds"], test["steady_state"]
    writes = any(cell["read_pct"] < 100 for cell in cells)
    if not any(rounds[limit] for limit in ("max", "capacity_multiple", "time_limit_s")):
        return ["rounds: nothing ends the test; give max, capacity_multiple or time_limit_s"]
    if rounds["capacity_multiple"] and not writes:
        return ["rounds.capacity_multiple: no cell of the test writes; use max or time_limit_s"]
    if rounds.get("least_capacity_multiple") and not writes:
        return ["rounds.least_capacity_multiple: no cell of the test writes"]
    multiple = steady["min_capacity_multiple"] if steady else 0
    if multiple and rounds["capacity_multiple"] and rounds["capacity_multiple"] <= multiple:
        limit = f"{rounds['capacity_multiple']:g} x the user capacity end the test before a window may begin"
        return [f"rounds.capacity_multiple: {limit} (steady_state.min_capacity_multiple {multiple:g}); give more"]
    least = steady["window"] * steady["sample_every"] * (1 + steady["confirm_windows"]) if steady else 0
    if rounds["max"] and rounds["max"] < least:
        return [
            (
                f"rounds.max: {rounds['max']} rounds can't hold a window of {steady['window']} (sample_every "
                f"{steady['sample_every']}, confirm_windows {steady['confirm_windows']}); at least {least}"
            )
        ]
    return []
