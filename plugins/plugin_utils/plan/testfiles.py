# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests and plans, checked, each laid over its bases (inheritance.py). Reads files (test_library.py), changes
nothing.
"""

from __future__ import annotations

import copy
import typing as t
from dataclasses import replace
from pathlib import Path

from ...module_utils.records import base
from ...module_utils.records.base import Json
from ...module_utils.records.in_service import PlannedInService, PlannedScrub
from ...module_utils.records.plan import (
    PlannedFill,
    PlannedIntegrity,
    PlannedPowerCut,
    PlannedPurge,
    RoundLimits,
    SteadyStateRule,
)
from ...module_utils.records.planned_cell import PlannedCell
from ..common import schema as schemas
from . import arrays, cross_test_checks, filesystems, in_service, inheritance, zoned_tests
from . import cells as celling
from .test_library import SHIPPED_DIR, Library, PlanError, Source, raise_for
from .test_record import Test

# Those that read back what they wrote, have the drive test itself, or read a part of it: they have no use for the rest.
MEASURES_NOTHING = ("integrity", "power_cut", "self_test", "scrub")
# What it cannot be combined with, and how a test is told that it has none, as its base may give it one.
APART_FROM_THEM = {
    "power_cut": "make two tests of them",
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


def fill_in_saturation(tests: t.Sequence[Test]) -> list[Test]:
    """Return tests, in the order of their plan, with what they leave open of when a window may begin.

    A purge makes a drive fresh for its test and for those after it, until one fills it or has to write as much itself.
    """
    fresh, found = False, []
    for test in tests:
        filled = test.precondition or test.integrity
        fresh = (fresh or test.purge.method != "none") and not filled
        steady = test.steady_state
        if steady:
            waits = fresh and any(cell.read_pct < 100 for cell in test.cells)
            filled_in: Json = {key: SATURATION[key] if waits else 0 for key in test.open_limits}
            steady = replace(steady, **filled_in)
            # One that is told not to wait proves nothing for those after it.
            fresh = fresh and steady.min_capacity_multiple < SATURATION["min_capacity_multiple"]
        found.append(replace(test, steady_state=steady))
    return found


def load_plan(ssd_plan: t.Any, dirs: t.Sequence[str | Path] = ()) -> list[Test]:
    """Return the checked tests of a plan, in order.

    ssd_plan: a list of test names and inline tests, or the name of a plan file. dirs: ssd_tests_dirs.
    Raises PlanError with every problem at once.
    """
    library = Library(dirs)
    tests: list[Test] = []
    problems: list[str] = []
    for source in _plan_sources(schemas.plain(ssd_plan), library):
        try:
            tests += _load_tests(source, library)
        except PlanError as error:
            problems += error.problems
    names = [test.name for test in tests]
    for test in {test.name: test for test in tests if names.count(test.name) > 1}.values():
        problems.append(f"{test.origin}: name: {test.name!r} is in the plan twice; give one of them another name")
    tests = fill_in_saturation(tests)
    problems += [f"{test.origin}: {problem}" for test in tests for problem in _limit_problems(test)]
    problems += cross_test_checks.deallocated_reads(tests)
    problems += cross_test_checks.beside_power_cut(tests)
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
    phases = [one for phase in inheritance.split_phases(data) for one in _completed(phase, schema, source.origin)]
    tests, unlinked = inheritance.link_phases([_checked(one, source.origin, own_cells) for one in phases])
    wrong = [f"{one.name}: {problem}" for one in tests for problem in filesystems.problems(one) + arrays.problems(one)]
    for key in ("filesystem", "array") if data.get("phases") else ():
        wrong += (
            [f"phases: can't be combined with {key}, which lasts for one test"] if data.get(key) is not None else []
        )
    raise_for(source.origin, unlinked + wrong)
    stated = inheritance.with_source(source, library)
    if stated:
        name = stated.data.get("name") or t.cast(Path, stated.path).stem
        return inheritance.mark_deviations(
            tests, data["name"], _load_tests(stated, library), name, data.get("departs_because")
        )
    return tests


def _completed(data: Json, schema: schemas.Schema, origin: str) -> list[Json]:
    """Return a test, or a phase as one, with its defaults; with each_cell one for each cell. Raises PlanError."""
    follows = data.get("follows")
    data = _spelt_out({key: value for key, value in data.items() if key != "follows"}, schema)
    raise_for(f"{origin}: phase {data['name']}" if follows else origin, schemas.problems(data, schema))
    test = {**schemas.with_defaults({"title": data["name"], **data}, schema), "follows": follows}
    tests = _split(test) if test["each_cell"] else [test]
    # The names of its cells may have made a test's name too long.
    raise_for(origin, [problem for one in tests for problem in schemas.problems({"name": one["name"]}, schema)])
    return tests


def _spelt_out(data: Json, schema: schemas.Schema) -> Json:
    """Return a test with what `true` stands for, which may lack a key that has no default."""
    return {
        key: {} if value is True and "object" in schemas.kinds(schema["properties"].get(key, {})) else value
        for key, value in data.items()
    }


def _split(test: Json) -> list[Json]:
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


def _checked(given: Json, origin: str, own_cells: bool) -> Test:
    """Return a test of its YAML, which fits the schema and has its defaults. Raises PlanError."""
    cells = celling.expand(given)
    steady, open_limits, untracked = _steady_state(given["steady_state"], cells)
    problems = celling.static_problems(cells) + _apart({**given, "cells": cells}) + _without_effect(given)
    cut = given["power_cut"]
    if cut and cut["min_write_s"] > cut["max_write_s"]:
        problems.append(f"power_cut.max_write_s: {cut['max_write_s']} is below min_write_s, {cut['min_write_s']}")
    problems += in_service.test_problems({**given, "cells": cells}) + zoned_tests.problems(given, cells)
    if steady and given["last_rounds"]:
        problems.append("last_rounds: cannot be combined with steady_state, whose window makes the figures")
    problems += untracked
    if given["cell_order"] == "shuffled" and given.get("lead"):
        problems.append("cell_order: shuffled cannot be combined with lead, the cell that begins every round")
    filesystem = None
    try:
        filesystem = filesystems.rendered(given["filesystem"], celling.size_bytes)
    except ValueError as error:
        problems.append(f"filesystem.raid: {error}")
    most_gib = given["active_range_max_gib"]
    raise_for(origin, problems + _fill_problems(given))
    return Test(
        name=given["name"],
        title=given["title"],
        description=" ".join(given["description"].split()),
        source=given["source"],
        origin=origin,
        own_cells=own_cells,
        repeats=given["repeats"],
        run_margin=given["run_margin"],
        purge=base.parse(PlannedPurge, given["purge"] or {"method": "none"}),
        precondition=_fill(given),
        active_range_pct=given["active_range_pct"],
        active_range_max_bytes=most_gib << 30 if most_gib else None,
        cells=cells,
        not_applicable=[],
        rounds=base.parse(RoundLimits, given["rounds"]),
        steady_state=steady,
        open_limits=open_limits,
        after_steady_rounds=given["after_steady_rounds"],
        latency_targets_us=given["latency_targets_us"],
        last_rounds=given["last_rounds"],
        write_cache=_write_cache(given["write_cache"]),
        refill_buffers=given["refill_buffers"],
        follows=given["follows"],
        cell_order="shuffled" if given["cell_order"] == "shuffled" else None,
        filesystem=filesystem,
        array_request=arrays.rendered(given["array"], celling.size_bytes),
        integrity=_integrity(given),
        power_cut=base.parse(PlannedPowerCut, given["power_cut"]) if given["power_cut"] else None,
        self_test=given["self_test"] or None,
        zoned=given["zoned"],
        in_service=base.parse(PlannedInService, given["in_service"]) if given["in_service"] else None,
        scrub=base.parse(PlannedScrub, given["scrub"]) if given["scrub"] else None,
    )


def _write_cache(given: t.Any) -> t.Literal["on", "off"] | None:
    """YAML reads a bare on and off as true and false."""
    return None if given is None else "on" if given in (True, "on") else "off"


def _steady_state(
    given: Json | None, cells: t.Sequence[PlannedCell]
) -> tuple[SteadyStateRule | None, tuple[str, ...], list[str]]:
    """Return the rule of a test file, the limits that it leaves open (0 until fill_in_saturation), and problems."""
    if not given:
        return None, (), []
    tracked, problems = celling.track(given["tracked"], cells)
    open_limits = tuple(key for key in SATURATION if given[key] is None)
    rule = {**given, **dict.fromkeys(open_limits, 0), "tracked": []}
    return replace(base.parse(SteadyStateRule, rule), tracked=tracked), open_limits, problems


def _fill(given: Json) -> PlannedFill | None:
    """Return the precondition of a test, without a last pass that is read back, which is an integrity test's."""
    asked = given["precondition"]
    if not asked:
        return None
    size = celling.size_bytes(asked["block_size"])
    return PlannedFill(_fill_passes(given), size, data="zeros" if asked["data"] == "zeros" else None)


def _fill_passes(given: Json) -> int:
    asked = given["precondition"]
    passes, share_pct = asked["passes"], given["active_range_pct"]
    whole = celling.fill_passes(passes, share_pct) if asked["of"] == "user_capacity" else passes
    return int(whole - asked["verify"])


def _integrity(given: Json) -> PlannedIntegrity | None:
    if given["precondition"] and given["precondition"]["verify"]:
        return PlannedIntegrity(passes=1)
    return base.parse(PlannedIntegrity, given["integrity"]) if given["integrity"] else None


def _fill_problems(given: Json) -> list[str]:
    asked, found = given["precondition"], []
    if asked and asked["verify"] and _fill_passes(given) < 1:
        found.append("precondition.verify: needs passes: 2 or more, the last of which is read back")
    if asked and asked["verify"] and asked["data"] == "zeros":
        found.append("precondition.verify: can't be combined with data: zeros, which tell no block from another")
    if given["active_range_max_gib"] and asked and asked["of"] == "user_capacity":
        found.append("active_range_max_gib: needs a precondition with of: active_range, or none")
    return found


def _apart(given: Json) -> list[str]:
    """Return what a test that measures nothing cannot be combined with. given: with all of its cells."""
    own = [key for key in MEASURES_NOTHING if given[key]][:1]
    apart = [(key, remedy) for key, remedy in APART_FROM_THEM.items() if given[key] and key not in own]
    return [
        f"{name}: cannot be combined with {key}: it measures nothing; {remedy}" for name in own for key, remedy in apart
    ]


def _without_effect(given: Json) -> list[str]:
    """Return keys of `integrity` that change nothing of a test of one pass: both are about what comes after one."""
    asked = given["integrity"] or {}
    is_one = asked.get("passes") == 1 and not asked["duration_s"]
    keys = [key for key in ("heat_s", "stop_at_first") if is_one and asked[key]]
    return [f"integrity.{key}: has no effect on a single pass; give passes: 2, or a duration_s" for key in keys]


def _limit_problems(test: Test) -> list[str]:
    """A test has to measure something and to end."""
    if not test.cells:
        is_own = test.integrity or test.power_cut or test.self_test or test.scrub
        return [] if is_own else ["cells: the test has neither cells nor a matrix"]
    rounds, steady = test.rounds, test.steady_state
    writes = any(cell.read_pct < 100 for cell in test.cells)
    if not (rounds.max or rounds.capacity_multiple or rounds.time_limit_s):
        return ["rounds: nothing ends the test; give max, capacity_multiple or time_limit_s"]
    if rounds.capacity_multiple and not writes:
        return ["rounds.capacity_multiple: no cell of the test writes; use max or time_limit_s"]
    if rounds.least_capacity_multiple and not writes:
        return ["rounds.least_capacity_multiple: no cell of the test writes"]
    multiple = steady.min_capacity_multiple if steady else 0
    if multiple and rounds.capacity_multiple and rounds.capacity_multiple <= multiple:
        limit = f"{rounds.capacity_multiple:g} x the user capacity end the test before a window may begin"
        return [f"rounds.capacity_multiple: {limit} (steady_state.min_capacity_multiple {multiple:g}); give more"]
    least = steady.least_rounds if steady else 0
    if steady and rounds.max and rounds.max < least:
        return [
            (
                f"rounds.max: {rounds.max} rounds can't hold a window of {steady.window} (sample_every "
                f"{steady.sample_every}, confirm_windows {steady.confirm_windows}); at least {least}"
            )
        ]
    return []
