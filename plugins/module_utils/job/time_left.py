# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long at most the tests of a drive take that have not begun to measure. Pure."""

from __future__ import annotations

import typing as t

from ..measure.rounds import bound_s, cell_s

Mapping = t.Mapping[str, t.Any]


def of_test(test: Mapping, size_bytes: int, bytes_per_s: float | None) -> float | None:
    """Return an upper bound, but for a purge by command, of which nobody knows how long it takes; None while the write
    rate is unknown and counts.
    """
    fill, active_bytes = test.get("precondition"), size_bytes * test["active_range_pct"] // 100
    written = fill["passes"] * active_bytes if fill else 0
    written += size_bytes * (test["purge"]["method"] == "overwrite")
    round_s = sum(cell_s(cell) for cell in test["cells"])
    rounds_s = bound_s(test["rounds"], round_s, size_bytes) if test["cells"] else 0.0
    if rounds_s is None and bytes_per_s and test["rounds"].get("capacity_multiple"):
        rounds_s = test["rounds"]["capacity_multiple"] * size_bytes / bytes_per_s + round_s
    if rounds_s is None or (written and not bytes_per_s):
        return None
    return rounds_s + (written / bytes_per_s if written and bytes_per_s else 0.0)


def of_tests(tests: t.Iterable[Mapping], size_bytes: int, bytes_per_s: float | None) -> float | None:
    """Return the sum over tests; None where one of them has no bound."""
    bounds = [of_test(test, size_bytes, bytes_per_s) for test in tests]
    return None if any(bound is None for bound in bounds) else round(sum(bound or 0.0 for bound in bounds), 1)
