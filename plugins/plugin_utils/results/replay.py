# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rounds of a journal gone through again by the engine's own rule (measure/rounds.py): whether the test ended where
its limits say, and its window is the first that counts. One chosen among several would be the lucky one. Pure.
"""

from __future__ import annotations

import typing as t

from ...module_utils.measure.rounds import Rounds

# A journal tells whole milliseconds, the engine decided by more digits.
SLACK_S = 0.001
OF_RULE = ("window", "range_limit", "slope_limit", "tracked")

Mapping = t.Mapping[str, t.Any]


class Played(t.NamedTuple):
    """A round by the journal. cells: the metrics of each."""

    cells: dict[str, dict[str, t.Any]]
    bytes_written: int
    elapsed_s: float
    spoilt: bool


def problem(played: t.Sequence[Played], about: Mapping, window: t.Sequence[int], size_bytes: int | None) -> str:
    """Why these rounds are not those of a test that counts, as a sentence; "" where they are, or nobody can say.

    about: the test in run.json, by the names of this drive's cells. window: the rounds that its figures are of.
      size_bytes: the user capacity that the host went by.
    """
    rule, limits = about.get("steady_state") or {}, about.get("rounds") or {}
    if any(key not in rule for key in OF_RULE) if rule else not limits:
        return ""
    if not size_bytes and (rule.get("min_capacity_multiple") or limits.get("capacity_multiple")):
        return ""
    found = [_problem(played, about, list(window), size_bytes or 0, slack) for slack in (0.0, SLACK_S, -SLACK_S)]
    return "" if "" in found else found[0]


def _problem(played: t.Sequence[Played], about: Mapping, window: list[int], size_bytes: int, slack_s: float) -> str:
    limits = about.get("rounds") or {}
    rounds = Rounds({**about, "cells": [], "rounds": limits}, size_bytes)
    for one in played:
        if rounds.finished():
            return f"its journal has {len(played)} rounds, and the test ends after round {rounds.count}"
        rounds.add(one.cells, one.bytes_written, one.elapsed_s + slack_s, spoilt=one.spoilt)
    steady = about.get("steady_state")
    if limits and not rounds.finished():
        return f"its test ended after round {rounds.count}, before it was steady or its limits were reached"
    if steady and rounds.steady_at is None:
        return "according to its rounds, it was never steady"
    right = rounds.window_rounds()
    return (
        ""
        if window == right
        else f"its figures come from the rounds {_span(window)}, but its journal gives {_span(right)}"
    )


def _span(numbers: t.Sequence[int]) -> str:
    return f"{numbers[0]} to {numbers[-1]}" if numbers else "none"
