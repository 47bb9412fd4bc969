# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which tests write to a drive that may still be fresh, and what such a test is held to where it does not say. Pure."""

from __future__ import annotations

import typing as t

Test = dict[str, t.Any]
# A drive is fresh while its user capacity, and what it has beside it, is written for the first time, and then falls for
# about as long (schema: steady_state).
SATURATION = {"min_capacity_multiple": 2, "confirm_windows": 1}


def fill_in(tests: t.Sequence[Test]) -> None:
    """Set what tests, in the order of their plan, leave open of when a window may begin.

    A purge makes a drive fresh for its test and for those after it, until one fills it or has to write as much itself.
    """
    fresh = False
    for test in tests:
        fresh = (fresh or test["purge"]["method"] != "none") and not test["precondition"]
        steady = test["steady_state"]
        if not steady:
            continue
        waits = fresh and any(cell["read_pct"] < 100 for cell in test["cells"])
        for key, value in SATURATION.items():
            if steady[key] is None:
                steady[key] = value if waits else 0
        # One that is told not to wait proves nothing for those after it.
        fresh = fresh and steady["min_capacity_multiple"] < SATURATION["min_capacity_multiple"]
