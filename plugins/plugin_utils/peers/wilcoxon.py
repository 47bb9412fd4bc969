# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Wilcoxon's signed rank test (Biometrics Bulletin 1, 1945), exact for few differences. Pure, over numpy arrays.

scipy's is exact too, but where differences are equal or 0 it tries all signs: 13 drives take it half a second for each
of a figure's three questions, and from 14 on it is exact no more. Percentiles of latency are so, as fio counts them in
buckets.
"""

from __future__ import annotations

import typing as t

from .scipy_imports import numpy as np
from .scipy_imports import stats

# scipy too takes the normal distribution beyond so many.
MOST_EXACT = 50


def p_value(differences: t.Any, side: str) -> float:
    """p that differences around 0 are as far to one side. side: as scipy's `alternative` (less, greater, two-sided).
    Those that are 0 don't count; without others it is 1. One that is not a number leaves it unknown: NaN, as scipy's.
    """
    if np.isnan(differences).any():
        return float("nan")
    counted = differences[differences != 0]
    if not len(counted):
        return 1.0
    if len(counted) > MOST_EXACT:
        return float(stats().wilcoxon(counted, alternative=side).pvalue)
    ranks = _doubled_ranks(np.abs(counted))
    positive = int(ranks[counted > 0].sum())
    chances = _of_sums(ranks)
    less, greater = float(chances[: positive + 1].sum()), float(chances[positive:].sum())
    return {"less": less, "greater": greater, "two-sided": min(1.0, 2 * min(less, greater))}[side]


def _doubled_ranks(sizes: t.Any) -> t.Any:
    """Twice the rank of each size, a whole number even where equal ones share the mean of their ranks."""
    _sizes, place, counts = np.unique(sizes, return_inverse=True, return_counts=True)
    return (2 * np.cumsum(counts) - counts + 1)[place]


def _of_sums(ranks: t.Any) -> t.Any:
    """Return the chance of each sum from 0 on, when each rank counts or not by the toss of a coin."""
    chances = np.ones(1)
    for rank in ranks:
        # Without the rank as before, with it so much further on.
        chances = (np.pad(chances, (0, rank)) + np.pad(chances, (rank, 0))) / 2
    return chances
