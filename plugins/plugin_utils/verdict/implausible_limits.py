# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Limits that are so far from what was measured that they are probably in another unit. Pure."""

from __future__ import annotations

import statistics
import typing as t

from ...module_utils.run.criteria import number
from ..common import units
from . import judged_criteria

# An SSD is 100 times faster than another, or than its limit, in nothing that people hold it to.
MOST_TIMES = 100
MOST_TOLD, MOST_SHOWN = 1_000_000, 1e15

Mapping = t.Mapping[str, t.Any]


def far_off(run: Mapping, judgement: Mapping) -> list[str]:
    """Return a sentence for each absolute limit that is more than MOST_TIMES times what was measured, or as much less.

    run: run.json. judgement: of judge.judge; of its figures those that count.
    """
    values: dict[str, list[float]] = {}
    for drive in judgement["drives"]:
        for test in drive["tests"]:
            for check in test["criteria"] if test["counts"] else ():
                values.setdefault(check["criterion"], []).append(check["value"])
    found = []
    for name, criterion in judged_criteria.criteria_by_name(run.get("criteria") or []).items():
        measured = statistics.median(values[name]) if name in values else 0
        for limit in (number(criterion.get(word)) for word in judged_criteria.ABSOLUTE):
            if limit and measured > 0 and not 1 / MOST_TIMES <= limit / measured <= MOST_TIMES:
                found.append(f"{name}: {_told(criterion['metric'], limit, measured, len(values[name]))}")
    return found


def _told(metric: str, limit: float, measured: float, count: int) -> str:
    more = limit > measured
    large, small = (limit, measured) if more else (measured, limit)
    # A host may tell any number, and a quotient of such numbers is none.
    times = units.rounded(large / small) if large < MOST_TOLD * small else f"over {MOST_TOLD:,}"
    return (
        f"{_shown(metric, limit)} is {times} times {'more' if more else 'less'} than what was measured, "
        f"{_shown(metric, measured)} (median of {count} figure{'' if count == 1 else 's'}); check its unit"
    )


def _shown(metric: str, value: float) -> str:
    """With its unit, unless it has more digits than anybody reads."""
    return units.show(metric, value) if 1 / MOST_SHOWN < value < MOST_SHOWN else f"{value:.3g}"
