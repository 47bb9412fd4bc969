# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is wrong between the tests of a plan: repeats of what is not there, write caches in two states, reads of blocks
that nobody wrote. Pure.

After a purge a drive answers reads of what was not written from its table, without touching its flash, so they measure
nothing.
"""

from __future__ import annotations

import math
import typing as t
from dataclasses import replace

from ..common import schema as schemas
from ..common.units import data_size
from . import cells as celling
from . import streams
from .test_record import Test

# Purges that leave written blocks behind; auto takes one of the others.
_WRITES_ALL = ("overwrite",)
# So many per cent of a drive from its start, and at most so many bytes.
Extent = tuple[int, float]
_WHOLE: Extent = (100, math.inf)


def contradictions(tests: t.Sequence[Test]) -> list[str]:
    """As "<origin>: message". tests: of a plan, in order."""
    return _repeat_problems(tests) + _cache_problems(tests)


def _repeat_problems(tests: t.Sequence[Test]) -> list[str]:
    """`repeats` names a test before it, of the same cells, with or without bursts, here or there on the drive: else
    there is nothing to compare.
    """
    found: list[str] = []
    before: dict[str, Test] = {}
    for test in tests:
        other, name = before.get(test.repeats or ""), test.repeats
        before[test.name] = test
        if name and other is None:
            found.append(
                f"{test.origin}: repeats: {name!r} names no test before it{schemas.suggestion(name, list(before))}"
            )
        elif other and _loads(other) != _loads(test):
            found.append(
                f"{test.origin}: repeats: {name!r} has other cells than {test.name!r}, so nothing can be compared"
            )
    return found


def _cache_problems(tests: t.Sequence[Test]) -> list[str]:
    """Return a run sets a drive's write cache once."""
    wanted = {test.write_cache: test for test in reversed(tests) if test.write_cache}
    if len(wanted) < 2:
        return []
    on, off = wanted["on"], wanted["off"]
    return [
        (
            f"{off.origin}: write_cache: {off.name} needs it off, {on.name} on, and a run sets it only once; "
            "make two runs of them"
        )
    ]


def _loads(test: Test) -> list[str]:
    """Return what the cells of a test ask of the drive, whether all the time or in bursts, and wherever."""
    without = (replace(cell, burst_s=None, idle_s=None, ramp_s=None, range=None) for cell in test.cells)
    return [celling.cell_id(cell) for cell in without]


def deallocated_reads(tests: t.Sequence[Test]) -> list[str]:
    """Tests of a plan, in order, that would read from a purged drive before anything was written, as "<origin>:
    message".

    A fill covers its ActiveRange. A test that only writes leaves an unknown part unwritten, which is no proof. A test's
    own writes don't count for its reads, as the order of its cells within a round is not looked at: such a test needs a
    precondition.
    """
    found: list[str] = []
    written, purged_by = [_WHOLE], ""
    for test in tests:
        if test.purge.method in _WRITES_ALL:
            written = [_WHOLE]
        elif test.purge.method != "none":
            written, purged_by = [], test.name
        active = _extent(test, 100)
        if test.precondition or test.integrity:
            written.append(active)
        reads = [cell.id for cell in test.cells if cell.read_pct]
        if reads and not any(pct >= active[0] and most >= active[1] for pct, most in written):
            found.append(_deallocated_problem(test, reads, purged_by, max(written, default=(0, 0))))
        if any(cell.read_pct < 100 for cell in test.cells):
            written = [_WHOLE]
        trimmed = [found for found in map(streams.trimmed_from_pct, test.cells) if found is not None]
        if trimmed:
            written, purged_by = [_extent(test, min(trimmed))], test.name
    return found


def _extent(test: Test, share_pct: int) -> Extent:
    """Return the first per cent of the ActiveRange of a test."""
    most = test.active_range_max_bytes or math.inf
    return share_pct * test.active_range_pct // 100, most * share_pct / 100 if share_pct else 0.0


def _deallocated_problem(test: Test, reads: t.Sequence[str], purged_by: str, filled: Extent) -> str:
    named = ", ".join(reads[:3]) + (f" and {len(reads) - 3} more" if len(reads) > 3 else "")
    since = "its purge" if purged_by == test.name else f"the purge or the trims of test {purged_by}"
    most = "" if math.isinf(filled[1]) else f" or {data_size(filled[1])}"
    what = f"blocks beyond the first {filled[0]} %{most}" if filled[0] else "blocks"
    return (
        f"{test.origin}: cells: {named} would read {what} not written since {since}, and a drive answers "
        "that without touching its flash; "
        "give the test a precondition, or set purge: false if an earlier test filled the drive"
    )


def beside_power_cut(tests: t.Sequence[Test]) -> list[str]:
    """Return tests beside one that cuts the host's power, as "<origin>: message": the cut would end those of other
    drives half-way.
    """
    cut = next((test.name for test in tests if test.power_cut), None)
    return [
        f"{test.origin}: test {test.name} can't be in a plan with {cut}, whose power cuts end whatever the host does; "
        "run it as a plan of its own"
        for test in tests
        if cut and test.name != cut
    ]
