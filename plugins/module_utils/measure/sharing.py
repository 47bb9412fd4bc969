# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How many drives of a host may be measured at once: the most at which each keeps the rate that it has alone. Pure."""

from __future__ import annotations

import typing as t

# Of its rate alone, in each cell of the calibration.
KEPT = 0.98

# {drive: {cell: bytes a second}}
Rates = t.Mapping[str, t.Mapping[str, float]]
# The rates of these drives, measured at the same time.
Measure = t.Callable[[t.Sequence[str]], Rates]


class Found(t.NamedTuple):
    """at_once: how many. alone: the rates. tried: of each number that was tried, in order, {at_once, shares: {drive:
    the least share of its rate alone that it kept}, kept: whether all did}.
    """

    at_once: int
    alone: Rates
    tried: list[dict[str, t.Any]]


def search(drives: t.Sequence[str], measure: Measure) -> Found:
    """Measure each drive alone, then all together; where one of them falls short, the numbers in between by halving:
    more drives never share a limit better than fewer.
    """
    alone: dict[str, t.Mapping[str, float]] = {}
    for drive in drives:
        alone.update(measure([drive]))
    tried: list[dict[str, t.Any]] = []

    def holds(number: int) -> bool:
        kept: dict[str, float] = {}
        for group in groups(drives, number):
            for drive, share in shares(alone, measure(group)).items():
                kept[drive] = min(share, kept.get(drive, share))
            if min(kept.values()) < KEPT:
                break
        tried.append({"at_once": number, "shares": kept, "kept": min(kept.values()) >= KEPT})
        return bool(tried[-1]["kept"])

    low, high = 1, len(drives)
    if high > 1 and holds(high):
        return Found(high, alone, tried)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return Found(low, alone, tried)


def groups(drives: t.Sequence[str], number: int) -> list[list[str]]:
    """Neighbours in the plan, which are mostly measured together, so many at once; each drive in one group at least."""
    starts = range(0, len(drives), number)
    return [list(drives[min(start, len(drives) - number) :][:number]) for start in starts]


def shares(alone: Rates, together: Rates) -> dict[str, float]:
    """Of each drive the least share of its rate alone; 0 where a rate is missing or was none."""
    return {drive: round(min(_shares(alone[drive], rates)), 4) for drive, rates in together.items()}


def _shares(alone: t.Mapping[str, float], rates: t.Mapping[str, float]) -> list[float]:
    found = [rates.get(cell, 0.0) / rate if rate > 0 else 0.0 for cell, rate in alone.items()]
    return found or [0.0]
