# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is wrong between the tests of a plan: repeats of what is not there, write caches in two states. Pure."""

from __future__ import annotations

import typing as t

from ..common import schema as schemas
from . import cells as celling

Test = dict[str, t.Any]


def problems(tests: t.Sequence[Test]) -> list[str]:
    """As "<origin>: message". tests: of a plan, in their internal form and in order."""
    return _repeat_problems(tests) + _cache_problems(tests)


def _repeat_problems(tests: t.Sequence[Test]) -> list[str]:
    """`repeats` names a test before it, of the same cells, with or without bursts, here or there on the drive: else
    there is nothing to compare.
    """
    found: list[str] = []
    before: dict[str, Test] = {}
    for test in tests:
        other, name = before.get(test["repeats"] or ""), test["repeats"]
        before[test["name"]] = test
        if name and other is None:
            found.append(
                f"{test['origin']}: repeats: {name!r} names no test before it{schemas.suggestion(name, list(before))}"
            )
        elif other and _loads(other) != _loads(test):
            found.append(
                f"{test['origin']}: repeats: {name!r} has other cells than {test['name']!r}, so nothing can be compared"
            )
    return found


def _cache_problems(tests: t.Sequence[Test]) -> list[str]:
    """Return a run sets a drive's write cache once."""
    wanted = {test["write_cache"]: test for test in reversed(tests) if test["write_cache"]}
    if len(wanted) < 2:
        return []
    on, off = wanted["on"], wanted["off"]
    return [
        (
            f"{off['origin']}: write_cache: {off['name']} needs it off, {on['name']} on, and a run sets it only once; "
            "make two runs of them"
        )
    ]


def _loads(test: Test) -> list[str]:
    """Return what the cells of a test ask of the drive, whether all the time or in bursts, and wherever."""
    without = (
        {key: value for key, value in cell.items() if key not in ("burst_s", "idle_s", "ramp_s", "range")}
        for cell in test["cells"]
    )
    return [celling.cell_id(cell) for cell in without]
