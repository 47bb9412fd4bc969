# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A test as its bases and itself make it; as phases, which go on from the state that the one before them leaves; and
whether it still is the one that its source describes. Reads files (test_library.py), changes nothing.

Phases are written as keys of the first one. Each becomes a test of its own, so that it has its own rounds, figures,
verdict and place in the report. Who lays another test over one and states no source of their own measures something
else.
"""

from __future__ import annotations

import typing as t
from dataclasses import replace
from pathlib import Path

from ...module_utils.records.base import Json
from ...module_utils.records.plan import Departure
from ...module_utils.records.planned_cell import PlannedCell, PointOfSweep
from ..common import schema as schemas
from .test_library import Library, PlanError, Source, raise_for
from .test_record import Test

# What a phase takes over from its test; what it leaves out besides has the schema's default.
PHASE_INHERITS = (
    "source",
    "active_range_pct",
    "active_range_max_gib",
    "latency_targets_us",
    "write_cache",
    "refill_buffers",
    "in_service",
    "zoned",
    "description",
)
PHASE_OWN = ("matrix", "cells", "lead", "steady_state", "rounds", "last_rounds", "description")
# What a source prescribes; how the drive is purged is the drive's matter.
SOURCE_KEYS = (
    "precondition",
    "active_range_pct",
    "active_range_max_bytes",
    "cells",
    "rounds",
    "steady_state",
    "after_steady_rounds",
    "last_rounds",
    "refill_buffers",
    "zoned",
    "cell_order",
    "filesystem",
    "array_request",
    "integrity",
    "power_cut",
    "self_test",
    "in_service",
    "scrub",
)


def resolve(source: Source, library: Library, visited: tuple[Path, ...]) -> tuple[Json, bool]:
    """Return a test laid over its bases, and whether the site chose its cells. Each layer is checked, so that messages
    name its file.
    """
    if not isinstance(source.data, dict):
        raise PlanError([f"{source.origin}: must be a test name or a mapping of a test's keys"])
    layer = dict(schemas.plain(source.data))
    raise_for(source.origin, schemas.problems(layer, schemas.load("test"), partial=True))
    chooses = "cells" in layer or "block_size" in (layer.get("matrix") or {})
    below: Json = {}
    own = chooses and not source.shipped
    if source.path:
        visited += (source.path,)
        layer.setdefault("name", source.path.stem)
    base = layer.pop("base", None)
    if base is not None:
        below, own_below = resolve(named(base, source.origin, library, visited), library, visited)
        own = own if chooses else own_below
    if "cells" in layer and "matrix" not in layer:
        below.pop("matrix", None)
    return _merge(below, layer), own


def named(name: str, origin: str, library: Library, visited: tuple[Path, ...]) -> Source:
    """Return a test by the name of its file, or of a plan and itself. `visited`: those that already build on it. Raises
    PlanError.
    """
    found = library.find("tests", name, skip=visited)
    if found:
        return found
    known = library.names("tests", name)
    if name in known:
        chain = " -> ".join(str(path) for path in visited)
        raise PlanError([f"{origin}: base: {name!r} leads back to itself ({chain}); remove base from one of them"])
    raise PlanError(
        [f"{origin}: no test named {name!r}{_meant(name, known, library)} (known tests: {', '.join(known)})"]
    )


def _meant(name: str, known: t.Sequence[str], library: Library) -> str:
    """Return what a name that no test has may mean: a plan is given without brackets."""
    test, plan = schemas.closest(name, known), schemas.closest(name, library.names("plans"))
    if plan == name or not test:
        return f"; did you mean the plan {plan}? Give it without brackets: ssd_plan: {plan}" if plan else ""
    return f"; did you mean {test}?"


def with_source(source: Source, library: Library) -> Source | None:
    """Return the base that states the source which a test takes over; None where it states one itself, or none does."""
    visited: tuple[Path, ...] = ()
    one = source
    while "source" not in one.data:
        if "base" not in one.data:
            return None
        visited += (one.path,) if one.path else ()
        one = named(one.data["base"], one.origin, library, visited)
    return None if one is source else one


def _merge(below: t.Any, above: t.Any) -> t.Any:
    """Mappings are merged key by key, everything else replaces."""
    if isinstance(below, dict) and isinstance(above, dict):
        return {**below, **{key: _merge(below.get(key), value) for key, value in above.items()}}
    return above


def split_phases(test: Json) -> list[Json]:
    """Return a test as someone wrote it, and its phases as tests of the same form; `follows` names the one before."""
    first = {key: value for key, value in test.items() if key != "phases"}
    found = [first]
    for phase in test.get("phases") or []:
        made = {key: test[key] for key in PHASE_INHERITS if key in test}
        made.update({key: phase[key] for key in PHASE_OWN if key in phase})
        made.update(name=f"{test['name']}-{phase['name']}", follows=found[-1]["name"], purge=False, precondition=False)
        made["title"] = phase.get("title") or f"{test.get('title') or test['name']}: {phase['name']}"
        if phase.get("repeats"):
            made["repeats"] = test["name"]
        found.append(made)
    return found


def link_phases(tests: t.Sequence[Test]) -> tuple[list[Test], list[str]]:
    """Return the phases of a test with the sweep of each of their points, and the most that it may ask for; and what
    is wrong, as "cell <id>: message".
    """
    found: list[Test] = []
    wrong = []
    for test in tests:
        cells = []
        for cell in test.cells:
            linked, problem = _link_cell(cell, cell.point, tests[0].name, found) if cell.point else (cell, "")
            cells.append(linked)
            wrong += [f"cell {cell.id}: point.of: {problem}"] if problem else []
        found.append(replace(test, cells=cells))
    return found, wrong


def _link_cell(cell: PlannedCell, point: PointOfSweep, first: str, before: t.Sequence[Test]) -> tuple[PlannedCell, str]:
    """Return a point with its sweep, whose phase its file names; or why that can't be it."""
    name = f"{first}-{point.test}"
    sweep = next((test for test in before if test.name == name), None)
    if sweep is None:
        return cell, f"{point.test!r} is not an earlier phase"
    points = [each for each in sweep.cells if not each.lead]
    if any(each.per_cpu for each in points):
        return cell, f"the loads of {point.test!r} follow the CPUs (per_cpu), so they are not a sweep"
    if any(each.auto_threads for each in points):
        return cell, f"the host chooses the threads of {point.test!r} (auto), so they are not a sweep"
    # Upper bounds for whoever plans; the host takes those of the cell that it finds.
    threads, depth = max(each.threads for each in points), max(each.queue_depth for each in points)
    return replace(cell, point=replace(point, test=name), threads=threads, queue_depth=depth), ""


def mark_deviations(
    tests: t.Sequence[Test], name: str, by_source: t.Sequence[Test], source_name: str, because: str | None
) -> list[Test]:
    """Return tests, each that is another than its source's with `departs`: whose source it states, in what keys, why.

    tests, by_source: of one entry and of the test that states the source, phases and each_cell included; name,
      source_name: what the names of each begin with.
    """
    partners = {test.name[len(source_name) :]: test for test in by_source}
    departing = []
    for test in tests:
        partner = partners.get(test.name[len(name) :])
        departing.append(_differing(test, partner) if partner else ["phases" if test.follows else "cells"])
    # What the source measures besides is missing from all that is left.
    lost = [test for suffix, test in partners.items() if suffix not in {test.name[len(name) :] for test in tests}]
    if lost and tests:
        key = "phases" if any(test.follows for test in lost) else "cells"
        departing[0] += [key] if key not in departing[0] else []
    return [
        replace(test, departs=Departure(source_name, keys, because) if keys else None)
        for test, keys in zip(tests, departing)
    ]


def _differing(one: Test, other: Test) -> list[str]:
    purged = ["purge"] if (one.purge.method == "none") != (other.purge.method == "none") else []
    # Who leaves the cache to others takes either state.
    keys = SOURCE_KEYS + (("write_cache",) if other.write_cache else ())
    return purged + [key.removesuffix("_request") for key in keys if _comparable(one, key) != _comparable(other, key)]


def _comparable(test: Test, key: str) -> t.Any:
    """Return what a test has of a key, without the names of the tests that points refer to."""
    if key == "cells":
        return [replace(cell, point=replace(cell.point, test="")) if cell.point else cell for cell in test.cells]
    # A limit that is left open is another one than a 0.
    return (test.steady_state, test.open_limits) if key == "steady_state" else getattr(test, key)
