# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The causes of a test's rounds, kept together: which rounds are disturbed, and what the record says of them. Pure."""

from __future__ import annotations

import typing as t

from ..records.attempt import Disturbance
from ..records.measurement import Cause, CauseName, Level
from .disturbances import DISTURBS, OF_CELL, TITLES

LONGEST_SHOWN = 6


class DisturbedRounds:
    """Causes as rounds come in."""

    def __init__(self) -> None:
        self._rounds: dict[tuple[CauseName, Level], set[int]] = {}
        # The rounds that are disturbed as a whole, by cause.
        self._disturbed: dict[CauseName, set[int]] = {}
        # What was seen in the first of these rounds, with its number.
        self._first: dict[tuple[CauseName, Level], tuple[int, str]] = {}

    def add(self, number: int, cell: str, causes: t.Iterable[Cause], decides: bool = True) -> None:
        """The causes of a cell of a round; "": of the whole round. decides: whether windows are made of this cell; what
        disturbs any other one alone disturbs no round.
        """
        for item in causes:
            key = (item.cause, item.level)
            if item.level == DISTURBS and (decides or item.cause not in OF_CELL):
                self._disturbed.setdefault(item.cause, set()).add(number)
            self._rounds.setdefault(key, set()).add(number)
            if key not in self._first or number < self._first[key][0]:
                self._first[key] = (number, f"round {number}{', ' if cell else ''}{cell}: {item.message}")

    def has(self, number: int) -> bool:
        """Return whether a round can't be in a window."""
        return any(number in numbers for numbers in self._disturbed.values())

    def has_any(self, causes: t.Iterable[str]) -> bool:
        """Return whether one of these causes disturbed a round."""
        return any(cause in self._disturbed for cause in causes)

    def count(self, cause: CauseName) -> int:
        """Return how many rounds a cause disturbed."""
        return len(self._disturbed.get(cause, ()))

    def disturbances(self) -> list[Disturbance]:
        """`validity` of a test's record."""
        return [
            Disturbance(cause, level, ranges(sorted(numbers)), len(numbers), self._first[cause, level][1])
            for (cause, level), numbers in self._rounds.items()
        ]

    def summary(self, count: int) -> str:
        """Return how many of `count` rounds which causes disturbed, most frequent first, with what was seen first."""
        found = sorted(self._disturbed.items(), key=lambda item: -len(item[1]))
        told = [f"{TITLES[cause]} in {len(numbers)}" for cause, numbers in found]
        if not told:
            return ""
        return "; ".join([f"{told[0]} of {count} rounds ({self._first[found[0][0], DISTURBS][1]})", *told[1:]])


def ranges(numbers: t.Sequence[int]) -> list[list[int]]:
    """Numbers in order as ranges: [[first, last]]."""
    found: list[list[int]] = []
    for number in numbers:
        if found and found[-1][1] == number - 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return found


def sentence(item: Disturbance) -> str:
    """One entry of `validity` for people: "other I/O in rounds 3, 5-9 (6): round 3, …"."""
    shown = [str(first) if first == last else f"{first}-{last}" for first, last in item.rounds[:LONGEST_SHOWN]]
    more = ", …" if len(item.rounds) > LONGEST_SHOWN else ""
    word = "round" if item.count == 1 else "rounds"
    return f"{TITLES[item.cause]} in {word} {', '.join(shown)}{more} ({item.count} in all): {item.first}"
