# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Robust statistics of one group of peers, each drive held against the others; and a signed rank test of two runs.
Pure, over numpy arrays.

The rule is that of docs/fleet.md: modified z with a floor (Iglewicz and Hoaglin, How to Detect and Handle Outliers,
1993), its chance among good drives, and the false discovery rate (Benjamini and Hochberg, J. R. Stat. Soc. B 57, 1995).

The signed rank test is Wilcoxon's (Biometrics Bulletin 1, 1945), exact for few differences. scipy's is exact too, but
where differences are equal or 0 it tries all signs: 13 drives take it half a second for each of a figure's three
questions, and from 14 on it is exact no more. Percentiles of latency are so, as fio counts them in buckets.
"""

from __future__ import annotations

import typing as t

from . import metric_kinds
from .scipy_imports import numpy as np
from .scipy_imports import special, stats

# A group of fewer drives is reported, not judged.
FEWEST_PEERS = 8
Z_LIMIT = 3.5
# Of what a host may tell: its square is still a number.
MOST_Z = 1e9
# Of the median: a spread below this is the measurement's, or none at all (drives that their link limits).
SPREAD_FLOOR = 0.005
# How much worse than the median a drive has to be for anybody to mind.
PRACTICAL = 0.05
# Of the best drives of a group, how many show how long its tails are: a quarter, beyond the best of the other three.
_TAIL_SHARE = 4
# Fewer drives need no wider limit: there the chance of a z is the stricter one.
_FEW = 10
# A modified z below this is no tail.
_TAIL_FROM = 0.3
# The tails of Student's t with 5 degrees of freedom: beyond r times as far is r to the power of -5 as likely.
_TAIL_INDEX = 5
# One drive alone that is far better than all others hides no bad one: it counts for so many times the second.
MOST_OF_SECOND = 1.3
# Of the findings, how many may be false; in a fleet of good drives the chance of any.
FALSE_DISCOVERY_RATE = 0.05
# The median absolute deviation of a normal distribution, in standard deviations.
_MAD_OF_NORMAL = 0.6745

Array = t.Any

# scipy too takes the normal distribution beyond so many.
MOST_EXACT = 50


class SideLimit(t.NamedTuple):
    """How far good things go on the bad side, from n that went so far on the good side (good_limit): the best of them
    times e to the power of `base` + `few` / n + `tails` x what their tail shows (Hill, Ann. Stat. 3, 1975).
    """

    base: float
    few: float = 0.0
    tails: float = 0.0


# Of a drive in one figure, and in all of its figures together. By simulation (tests/bench/fleet_statistics.py --table
# limits and flags): with noise whose tails are those of Student's t with 5 degrees of freedom, at most 1 of 20 groups
# of good drives has a flag, whether a drive's figures go together or not. The tail's weight is that which finds most.
ALONE = SideLimit(0.72, 7.0)
TOGETHER = SideLimit(0.10, 6.5, 2.0)


class PeerScore(t.NamedTuple):
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


def p_value(z: Array, others: int) -> Array:
    """Return how likely a good drive's modified z against so many others is as large, where the noise is normal.

    The ratio to a median absolute deviation of few values has long tails: Student's t, with the degrees of freedom and
    the scale fitted to simulated drives for 7 to 399 others (tests/bench/fleet_statistics.py shows how well).
    """
    freedom = 0.4 * others + (0.5 if others % 2 == 0 else 0.0)
    # scipy.stats.t.sf is the same, and takes a second to import.
    return special().stdtr(freedom, -np.asarray(z) / (1 + 1 / others + 5 / others**2))


def good_limit(good: Array, groups: Array, reach: SideLimit) -> Array:
    """Return how far off a drive has to be to stand out of what its group does on the good side: for each group, 0
    where there are no two drives.

    What is noise goes as far on the one side as on the other, and no bad drive is on the good one. A group goes as far
    as its best drive, which is taken for no more than MOST_OF_SECOND times the second. good: how far each drive goes;
    groups: which one it is in, a number from 0.
    """
    order = np.lexsort((-good, groups))
    starts = np.flatnonzero(np.diff(groups[order], prepend=-1))
    limits = np.zeros(int(groups.max()) + 1 if len(groups) else 0)
    for start, end in zip(starts, [*starts[1:], len(order)]):
        if end - start > 1:
            limits[groups[order[start]]] = _reached(good[order[start:end]], reach)
    return limits


def _reached(far: Array, reach: SideLimit) -> float:
    """far: how far each of a group's drives goes, the farthest first."""
    n, first = len(far), min(far[0], MOST_OF_SECOND * far[1])
    many = max(2, n // _TAIL_SHARE)
    threshold = max(far[many] if n > many else 0.0, _TAIL_FROM)
    tail = np.log(np.maximum([first, *far[1:many]], threshold) / threshold).mean()
    return float(first * np.exp(reach.base + reach.few / max(n, _FEW) + reach.tails * tail))


def stand_out(z: Array, p: Array, groups: Array, drives: Array) -> Array:
    """Return which figures stand out of chance, of all of a fleet: at the false discovery rate, and beyond what noise
    does on the good side, by themselves or with the drive's other figures (the root of the sum of the squares of z).

    z, p, groups and drives (numbers from 0) have one entry a figure; a drive is in one group.
    """
    count = int(drives.max()) + 1 if len(drives) else 0
    group_of = np.zeros(count, dtype=int)
    group_of[drives] = groups
    best, good, bad = sides(z, drives, count)
    alone, together = good_limit(best, group_of, ALONE)[groups], good_limit(good, group_of, TOGETHER)[groups]
    return discoveries(p) & (z > Z_LIMIT) & _beyond(np.maximum(_times(z, alone), _times(bad[drives], together)), groups)


def _times(far: Array, limit: Array) -> Array:
    """Return how many times its limit each goes; of a limit of 0 more than any number, if it goes anywhere."""
    return np.divide(far, limit, out=np.where(far > 0, np.inf, 0.0), where=limit > 0)


def _beyond(times: Array, groups: Array) -> Array:
    """Return which figures are beyond their limits. A limit is that of one group; of many groups, the farthest figures
    are held to the false discovery rate, by the tails of noise.
    """
    chances = FALSE_DISCOVERY_RATE * np.maximum(times, 1e-3) ** -float(_TAIL_INDEX)
    least = np.full(int(groups.max()) + 1 if len(groups) else 0, np.inf)
    np.minimum.at(least, groups, chances)
    return chances <= FALSE_DISCOVERY_RATE * np.mean(discoveries(least)) if len(least) else chances > 0


def sides(z: Array, drives: Array, count: int) -> tuple[Array, Array, Array]:
    """Return how far each of so many drives goes on the good side in one figure, there in all of them, on the bad side
    in all.
    """
    best = np.zeros(count)
    np.maximum.at(best, drives, -z)
    good, bad = (np.sqrt(np.bincount(drives, np.maximum(side, 0) ** 2, count)) for side in (-z, z))
    return best, good, bad


def speed(metric: str, values: Array) -> Array:
    """Figures on the scale on which drives are compared; more is better.

    A mean latency as the rate that it stands for, as I/Os in flight = rate x latency: both are judged alike, and noise
    of a drive's speed is lopsided in neither. A tail, above 0, on a log scale; all else as it is.
    """
    given = np.asarray(values, dtype=float)
    if metric_kinds.is_tail(metric):
        return -np.log(given)
    return 1 / given if metric_kinds.is_latency(metric) else given


def worse_by(metric: str, values: Array, median: Array) -> Array:
    """Return how much worse than the median, as a share of it."""
    share = (values - median) / np.where(median == 0, np.nan, np.abs(median))
    return np.nan_to_num(share if metric_kinds.is_latency(metric) else -share)


def modified_z(metric: str, speeds: Array, median: Array, mad: Array) -> Array:
    """Above 0 is worse; the spread has its floor. All but `metric` as of `speed`."""
    floor = SPREAD_FLOOR if metric_kinds.is_tail(metric) else SPREAD_FLOOR * np.abs(median)
    spread = np.maximum(mad, floor)
    with np.errstate(over="ignore"):
        z = _MAD_OF_NORMAL * (median - speeds) / np.where(spread == 0, np.inf, spread)
    return np.clip(z, -MOST_Z, MOST_Z)


def score_leave_one_out(metric: str, values: Array) -> PeerScore:
    """Return each of a group's values against the others; at least FEWEST_PEERS of them, above 0 for a latency."""
    given, speeds = np.asarray(values, dtype=float), speed(metric, values)
    medians = without_each(speeds)
    mad = spread_without_each(speeds, medians)
    z = modified_z(metric, speeds, medians, mad)
    shown = np.exp(-medians) if metric_kinds.is_tail(metric) else without_each(given)
    return PeerScore(shown, mad, worse_by(metric, given, shown), z, p_value(z, len(given) - 1))


def score_against(metric: str, values: Array, others: Array) -> PeerScore:
    """Values against a group that they are no part of."""
    speeds, rest = speed(metric, values), speed(metric, others)
    median = np.median(rest)
    mad = np.median(np.abs(rest - median))
    z = modified_z(metric, speeds, median, mad)
    shown = np.exp(-median) if metric_kinds.is_tail(metric) else np.median(others)
    return PeerScore(shown, mad, worse_by(metric, np.asarray(values, dtype=float), shown), z, p_value(z, len(rest)))


def discoveries(chances: Array, rate: float = FALSE_DISCOVERY_RATE, of: int | None = None) -> Array:
    """Return which of many comparisons stand, at a false discovery rate. `of`: how many there were, where those that
    can't stand are left out.

    scipy.stats.false_discovery_control says the same, but importing it doubles the CPU time of a report of 100 drives.
    """
    chances = np.asarray(chances, dtype=float)
    total = of or len(chances)
    order = np.sort(chances)
    passing = np.flatnonzero(order <= rate * np.arange(1, len(order) + 1) / max(total, 1))
    return chances <= order[passing[-1]] if len(passing) else np.zeros(len(chances), dtype=bool)


def signed_rank_p_value(differences: t.Any, side: str) -> float:
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
