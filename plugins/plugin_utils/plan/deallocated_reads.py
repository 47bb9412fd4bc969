# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads of blocks that nobody wrote: after a purge a drive answers them from its table, without touching its flash, so
they measure nothing. Pure.
"""

from __future__ import annotations

import typing as t

from . import streams

Test = t.Mapping[str, t.Any]
# Purges that leave written blocks behind; auto takes one of the others.
_WRITES_ALL = ("overwrite",)


def problems(tests: t.Sequence[Test]) -> list[str]:
    """Tests of a plan, in order, that would read from a purged drive before anything was written, as "<origin>:
    message".

    A fill covers its ActiveRange. A test that only writes leaves an unknown part unwritten, which is no proof. A test's
    own writes don't count for its reads, as the order of its cells within a round is not looked at: such a test needs a
    precondition.
    """
    found, blank_from_pct, purged_by = [], 100, ""
    for test in tests:
        if test["purge"]["method"] in _WRITES_ALL:
            blank_from_pct = 100
        elif test["purge"]["method"] != "none":
            blank_from_pct, purged_by = 0, test["name"]
        if test["precondition"]:
            blank_from_pct = max(blank_from_pct, test["active_range_pct"])
        reads = [cell["id"] for cell in test["cells"] if cell["read_pct"]]
        if reads and blank_from_pct < test["active_range_pct"]:
            found.append(_problem(test, reads, purged_by, blank_from_pct))
        if any(cell["read_pct"] < 100 for cell in test["cells"]):
            blank_from_pct = 100
        trimmed = [found for found in map(streams.trimmed_from_pct, test["cells"]) if found is not None]
        if trimmed:
            blank_from_pct, purged_by = min(trimmed) * test["active_range_pct"] // 100, test["name"]
    return found


def _problem(test: Test, reads: t.Sequence[str], purged_by: str, filled_pct: int) -> str:
    named = ", ".join(reads[:3]) + (f" and {len(reads) - 3} more" if len(reads) > 3 else "")
    since = "its purge" if purged_by == test["name"] else f"the purge or the trims of test {purged_by}"
    what = f"blocks beyond the first {filled_pct} %" if filled_pct else "blocks"
    return (
        f"{test['origin']}: cells: {named} would read {what} not written since {since}, and a drive answers "
        "that without touching its flash; "
        "give the test a precondition, or set purge: false if an earlier test filled the drive"
    )
