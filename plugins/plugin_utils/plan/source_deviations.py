# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a test still is the one that its source describes: who lays another over it, and states no source of their
own, measures something else. Pure.
"""

from __future__ import annotations

import typing as t

Test = dict[str, t.Any]
Mapping = t.Mapping[str, t.Any]
# What a source prescribes; how the drive is purged is the drive's matter.
KEYS = (
    "precondition",
    "active_range_pct",
    "cells",
    "rounds",
    "steady_state",
    "after_steady_rounds",
    "last_rounds",
    "filesystem",
    "array",
)


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
    keys = KEYS + (("write_cache",) if other.get("write_cache") else ())
    return purged + [key for key in keys if _plain(one.get(key)) != _plain(other.get(key))]


def _plain(value: t.Any) -> t.Any:
    """Without the names of the tests that points refer to."""
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, dict) and value.get("point"):
        return {**value, "point": {key: item for key, item in value["point"].items() if key != "test"}}
    return value
