# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Robust statistics of one group of peers, each drive held against the others. Pure, over numpy arrays.

The rule is that of docs/fleet.md: modified z with a floor (Iglewicz and Hoaglin, How to Detect and Handle Outliers,
1993), its chance among good drives, and the false discovery rate (Benjamini and Hochberg, J. R. Stat. Soc. B 57, 1995).
"""

from __future__ import annotations

import typing as t

from . import metrics
from .libraries import numpy as np
from .libraries import stats

# A group of fewer drives is reported, not judged.
FEWEST_PEERS = 8
Z_LIMIT = 3.5
# Of the median: a spread below this is the measurement's, or none at all (drives that their link limits).
SPREAD_FLOOR = 0.005
# How much worse than the median a drive has to be for anybody to mind.
PRACTICAL = 0.05
# A drive has to be so many times as far off as its group goes on the good side (good_limit), in one figure or in all of
# its figures together: so many, and of few drives, whose good side tells less, so many / n more. By simulation
# (tests/bench/fleet_statistics.py --table limits and flags): with noise whose tails are those of Student's t with 5
# degrees of freedom, 1 of 20 fleets of good drives has a flag, whether a drive's figures go together or not.
BEYOND_GOOD = (2.5, 3.6)
BEYOND_GOOD_TOGETHER = (2.3, 8.0)
# One drive alone that is far better than all others hides no bad one: it counts for so many times the second.
MOST_OF_SECOND = 1.3
# Of the findings, how many may be false; in a fleet of good drives the chance of any.
FALSE_DISCOVERY_RATE = 0.05
# The median absolute deviation of a normal distribution, in standard deviations.
_MAD_OF_NORMAL = 0.6745

Array = t.Any


class Held(t.NamedTuple):
    """Each drive of a group against the others. by: how much worse than the median, as a share (negative: better). z:
    modified, above 0 is worse.
    p: the chance that a good drive is as bad. median, mad: of the others (mad on the metric's scale)."""

    median: Array
    mad: Array
    by: Array
    z: Array
    p: Array


def without_each(values: Array) -> Array:
    """For each of n >= 2 values the median of the others."""
    n = len(values)
    order = np.argsort(values, kind="stable")
    ranks = np.empty(n, dtype=int)
    ranks[order] = np.arange(n)
    in_order = values[order]

    def at(place: int) -> Array:
        return in_order[np.where(ranks <= place, place + 1, place)]

    return (at((n - 2) // 2) + at((n - 1) // 2)) / 2


def spread_without_each(values: Array, medians: Array) -> Array:
    """For each value the median absolute deviation of the others from their median (`without_each`: at most three
    different ones).
    """
    result = np.empty(len(values))
    for median in np.unique(medians):
        mine = medians == median
        result[mine] = without_each(np.abs(values - median))[mine]
    return result


def chance(z: Array, others: int) -> Array:
    """How likely a good drive's modified z against so many others is as large, where the noise is normal.

    The ratio to a median absolute deviation of few values has long tails: Student's t, with the degrees of freedom and
    the scale fitted to simulated drives for 7 to 399 others (tests/bench/fleet_statistics.py shows how well).
    """
    freedom = 0.4 * others + (0.5 if others % 2 == 0 else 0.0)
    return stats.t.sf(np.asarray(z) / (1 + 1 / others + 5 / others**2), freedom)


def good_limit(good: Array, groups: Array, beyond: tuple[float, float]) -> Array:
    """How far off a drive has to be to stand out of what its group does on the good side: for each group, 0 where there
    are no two drives.

    What is noise goes as far on the one side as on the other, and no bad drive is on the good one. A group goes as far
    as its best drive, which is taken for no more than MOST_OF_SECOND times the second. good: how far each drive goes;
    groups: which one it is in, a number from 0. beyond: BEYOND_GOOD or BEYOND_GOOD_TOGETHER.
    """
    order = np.lexsort((-good, groups))
    starts = np.flatnonzero(np.diff(groups[order], prepend=-1))
    limits = np.zeros(int(groups.max()) + 1 if len(groups) else 0)
    for start, end in zip(starts, [*starts[1:], len(order)]):
        if end - start > 1:
            first, second = good[order[start : start + 2]]
            times = beyond[0] + beyond[1] / (end - start)
            limits[groups[order[start]]] = times * min(first, MOST_OF_SECOND * second)
    return limits


def stand_out(z: Array, p: Array, groups: Array, drives: Array) -> Array:
    """Which figures stand out of chance, of all of a fleet: at the false discovery rate, and beyond what noise does on
    the good side, by themselves or with the drive's other figures (the root of the sum of the squares of z).

    z, p, groups and drives (numbers from 0) have one entry a figure; a drive is in one group.
    """
    count = int(drives.max()) + 1 if len(drives) else 0
    group_of = np.zeros(count, dtype=int)
    group_of[drives] = groups
    best, good, bad = sides(z, drives, count)
    alone = z > good_limit(best, group_of, BEYOND_GOOD)[groups]
    together = bad > good_limit(good, group_of, BEYOND_GOOD_TOGETHER)[group_of]
    return discoveries(p) & (z > Z_LIMIT) & (alone | together[drives])


def sides(z: Array, drives: Array, count: int) -> tuple[Array, Array, Array]:
    """How far each of so many drives goes on the good side in one figure, there in all of them, on the bad side in
    all.
    """
    best = np.zeros(count)
    np.maximum.at(best, drives, -z)
    good, bad = (np.sqrt(np.bincount(drives, np.maximum(side, 0) ** 2, count)) for side in (-z, z))
    return best, good, bad


def is_even_in_logarithms(metric: str, values: Array) -> bool:
    """Whether figures are held on a log scale: of tails always, else where none is 0 or less. Noise of a drive's speed
    is a share of it, and a rate is one through a latency: so both are judged alike, and lopsided (lognormal) noise is
    none.
    """
    return metrics.is_tail(metric) or bool(np.all(np.asarray(values) > 0))


def worse_by(metric: str, values: Array, median: Array) -> Array:
    """How much worse than the median, as a share of it."""
    share = (values - median) / np.where(median == 0, np.nan, np.abs(median))
    return np.nan_to_num(share if metrics.is_latency(metric) else -share)


def modified_z(metric: str, scaled: Array, median: Array, mad: Array, logarithms: bool) -> Array:
    """Above 0 is worse; the spread has its floor. All but `metric` on the scale."""
    floor = SPREAD_FLOOR if logarithms else SPREAD_FLOOR * np.abs(median)
    worse = (scaled - median) * (1 if metrics.is_latency(metric) else -1)
    spread = np.maximum(mad, floor)
    return _MAD_OF_NORMAL * worse / np.where(spread == 0, np.inf, spread)


def hold(metric: str, values: Array) -> Held:
    """Each of a group's values against the others; at least FEWEST_PEERS of them, above 0 for a tail."""
    given = np.asarray(values, dtype=float)
    logarithms = is_even_in_logarithms(metric, given)
    scaled = np.log(given) if logarithms else given
    medians = without_each(scaled)
    mad = spread_without_each(scaled, medians)
    z = modified_z(metric, scaled, medians, mad, logarithms)
    shown = np.exp(medians) if metrics.is_tail(metric) else without_each(given)
    return Held(shown, mad, worse_by(metric, given, shown), z, chance(z, len(given) - 1))


def against(metric: str, values: Array, others: Array) -> Held:
    """Values against a group that they are no part of."""
    given, rest = (np.asarray(each, dtype=float) for each in (values, others))
    logarithms = is_even_in_logarithms(metric, np.concatenate([given, rest]))
    scaled, on_scale = (np.log(each) if logarithms else each for each in (given, rest))
    median = np.median(on_scale)
    mad = np.median(np.abs(on_scale - median))
    z = modified_z(metric, scaled, median, mad, logarithms)
    shown = np.exp(median) if metrics.is_tail(metric) else np.median(rest)
    return Held(shown, mad, worse_by(metric, given, shown), z, chance(z, len(rest)))


def discoveries(chances: Array, rate: float = FALSE_DISCOVERY_RATE, of: int | None = None) -> Array:
    """Which of many comparisons stand, at a false discovery rate. `of`: how many there were, where those that can't
    stand are left out.
    """
    chances = np.asarray(chances, dtype=float)
    total = of or len(chances)
    order = np.sort(chances)
    passing = np.flatnonzero(order <= rate * np.arange(1, len(order) + 1) / max(total, 1))
    return chances <= order[passing[-1]] if len(passing) else np.zeros(len(chances), dtype=bool)
