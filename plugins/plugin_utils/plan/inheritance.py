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
from pathlib import Path

from ..common import schema as schemas
from .test_library import Library, PlanError, Source, raise_for

Test = dict[str, t.Any]
# What a phase takes over from its test; what it leaves out besides has the schema's default.
PHASE_INHERITS = (
    "source",
    "active_range_pct",
    "active_range_max_gib",
    "latency_targets_us",
    "write_cache",
    "refill_buffers",
    "in_service",
    "description",
)
PHASE_OWN = ("matrix", "cells", "lead", "steady_state", "rounds", "last_rounds", "description")
Mapping = t.Mapping[str, t.Any]
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
    "cell_order",
    "filesystem",
    "array",
    "integrity",
    "self_test",
    "in_service",
    "scrub",
)


def resolve(source: Source, library: Library, visited: tuple[Path, ...]) -> tuple[Test, bool]:
    """Return a test laid over its bases, and whether the site chose its cells. Each layer is checked, so that messages
    name its file.
    """
    if not isinstance(source.data, dict):
        raise PlanError([f"{source.origin}: must be a test name or a mapping of a test's keys"])
    layer = dict(schemas.plain(source.data))
    raise_for(source.origin, schemas.problems(layer, schemas.load("test"), partial=True))
    chooses = "cells" in layer or "block_size" in (layer.get("matrix") or {})
    below: Test = {}
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


def split_phases(test: Test) -> list[Test]:
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


def link_phases(tests: t.Sequence[Test]) -> list[str]:
    """Give each point of a test's phases its sweep, and the most that it may ask for; what is wrong, as "<test>:
    message".

    tests: of one entry, in their internal form. Changes them.
    """
    wrong = []
    for index, test in enumerate(tests):
        for cell in test["cells"]:
            if cell.get("point"):
                wrong += [
                    f"cell {cell['id']}: {problem}" for problem in _link_cell(cell, tests[0]["name"], tests[:index])
                ]
    return wrong


def _link_cell(cell: dict[str, t.Any], first: str, before: t.Sequence[Test]) -> list[str]:
    name = f"{first}-{cell['point']['of']}"
    sweep = next((test for test in before if test["name"] == name), None)
    if sweep is None:
        return [f"point.of: {cell['point']['of']!r} is not an earlier phase"]
    points = [point for point in sweep["cells"] if not point.get("lead")]
    if any(point.get("per_cpu") for point in points):
        return [f"point.of: the loads of {cell['point']['of']!r} follow the CPUs (per_cpu), so they are not a sweep"]
    if any(point.get("auto_threads") for point in points):
        return [f"point.of: the host chooses the threads of {cell['point']['of']!r} (auto), so they are not a sweep"]
    cell["point"] = {**{key: value for key, value in cell["point"].items() if key != "of"}, "test": name}
    # Upper bounds for whoever plans; the host takes those of the cell that it finds.
    cell.update({key: max(point[key] for point in points) for key in ("threads", "queue_depth")})
    return []


def mark_deviations(tests: t.Sequence[Test], name: str, by_source: t.Sequence[Mapping], source_name: str) -> None:
    """Give each test that is another than its source's `departs`: {test: whose source it states, keys: in what}.

    tests, by_source: of one entry and of the test that states the source, in their internal form, phases and
      each_cell included; name, source_name: what the names of each begin with.
    """
    found = {test["name"][len(source_name) :]: test for test in by_source}
    for test in tests:
        partner = found.get(test["name"][len(name) :])
        keys = _differing(test, partner) if partner else ["phases" if test["follows"] else "cells"]
        if keys:
            test["departs"] = {"test": source_name, "keys": keys}
    # What the source measures besides is missing from all that is left.
    lost = [test for suffix, test in found.items() if suffix not in {test["name"][len(name) :] for test in tests}]
    if lost and tests:
        key = "phases" if any(test["follows"] for test in lost) else "cells"
        keys = (tests[0].get("departs") or {}).get("keys", [])
        tests[0]["departs"] = {"test": source_name, "keys": keys if key in keys else [*keys, key]}


def _differing(one: Mapping, other: Mapping) -> list[str]:
    purged = ["purge"] if (one["purge"]["method"] == "none") != (other["purge"]["method"] == "none") else []
    # Who leaves the cache to others takes either state.
    keys = SOURCE_KEYS + (("write_cache",) if other.get("write_cache") else ())
    return purged + [key for key in keys if _plain(one.get(key)) != _plain(other.get(key))]


def _plain(value: t.Any) -> t.Any:
    """Without the names of the tests that points refer to."""
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, dict) and value.get("point"):
        return {**value, "point": {key: item for key, item in value["point"].items() if key != "test"}}
    return value
