# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The wrong blocks of a burn-in over its passes. Pure."""

from __future__ import annotations

import typing as t

from . import svg

Record = dict[str, t.Any]
# Bars that can be told apart.
MOST_BARS = 60


def of_test(record: Record) -> Record | None:
    """{picture, passes, wrong_passes, first, elapsed_s, step} of the record of a test that went on for a time; None of
    any other one. first: the number of the first pass with wrong blocks, or None; step: passes to a bar.
    """
    ends = (record.get("integrity") or {}).get("by_pass")
    if not ends:
        return None
    counts = [end["wrong_blocks"] for end in ends]
    wrong = [number for number, count in enumerate(counts, 1) if count]
    step = -(-len(counts) // MOST_BARS)
    bars = [sum(counts[place : place + step]) for place in range(0, len(counts), step)]
    about = f"{sum(counts):,} wrong blocks in {len(wrong)} of {len(counts)} passes"
    return {
        "picture": svg.strip(bars, None, (), about) if wrong else "",
        "passes": len(counts),
        "wrong_passes": len(wrong),
        "first": wrong[0] if wrong else None,
        "elapsed_s": ends[-1]["elapsed_s"],
        "step": step,
    }
