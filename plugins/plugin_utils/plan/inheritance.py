# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A test as its bases and itself make it. Reads files (test_library.py), changes nothing."""

from __future__ import annotations

import typing as t
from pathlib import Path

from ..common import schema as schemas
from .test_library import Library, PlanError, Source, raise_for

Test = dict[str, t.Any]


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
        [f"{origin}: no test named {name!r}{schemas.suggestion(name, known)} (known tests: {', '.join(known)})"]
    )


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
