# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What changed: against a baseline or earlier nights, from one firmware to another, and how well a measurement repeats. Pure.

"No difference" is shown by an equivalence test, never by a large p. Where n is too small nothing is said but that.
"""

from __future__ import annotations

import typing as t

from . import metrics, robust
from .frame import complete
from .libraries import numpy as np
from .libraries import pandas, stats

# Below these no result of the test could have p < 0.05 (Wilcoxon's signed ranks, Mann and Whitney's ranks; two-sided).
FEWEST_PAIRS = 6
FEWEST_A_SIDE = 5
P_LIMIT = 0.05
# Beyond so many values the effect is the median's, as the mean of each pair is no longer taken.
MOST_FOR_PAIRS = 1000
WORSE, BETTER, SAME, UNKNOWN = "worse", "better", "same", "can't tell yet"
SERIES = ("model", "test", "metric")


class Change(t.NamedTuple):
    """verdict: one of the four. by: how much worse, as a share (negative: better). p: of a difference. n, before: values on each side. by_test: its name."""

    verdict: str
    by: float
    p: float
    n: int
    before: int
    by_test: str


def paired(metric: str, now: t.Sequence[float], before: t.Sequence[float]) -> Change:
    """The same drives now and before: Wilcoxon's signed rank test over the logarithms of their ratios. Values above 0."""
    ratios = _worse(metric, np.log(np.asarray(now, dtype=float) / np.asarray(before, dtype=float)))
    n = len(ratios)
    by = float(np.expm1(_centre(ratios))) if n else 0.0
    if n < FEWEST_PAIRS:
        return Change(UNKNOWN, by, 1.0, n, n, "none")

    def chance(shift: float, side: str) -> float:
        return float(stats.wilcoxon(ratios - shift, alternative=side).pvalue) if np.any(ratios != shift) else 1.0

    return Change(_verdict(by, chance), by, chance(0.0, "two-sided"), n, n, "wilcoxon")


def apart(metric: str, now: t.Sequence[float], before: t.Sequence[float]) -> Change:
    """Different drives, or nights of one: the test of Mann and Whitney over logarithms; the effect is Hodges and Lehmann's. Values above 0."""
    mine, theirs = (_worse(metric, np.log(np.asarray(values, dtype=float))) for values in (now, before))
    by = _shift(mine, theirs) if len(mine) and len(theirs) else 0.0
    if min(len(mine), len(theirs)) < FEWEST_A_SIDE:
        return Change(UNKNOWN, by, 1.0, len(mine), len(theirs), "none")

    def chance(shift: float, side: str) -> float:
        return float(stats.mannwhitneyu(mine - shift, theirs, alternative=side).pvalue)

    return Change(_verdict(by, chance), by, chance(0.0, "two-sided"), len(mine), len(theirs), "mann-whitney")


def regressions(now: pandas.DataFrame, before: t.Sequence[pandas.DataFrame]) -> pandas.DataFrame:
    """Each model's figures against a baseline (one long table) or the last nights (several), drive by drive.

    A drive's own median of the nights is its before; drives go by their serial. Returns SERIES, the fields of Change and nights, worst first; p is held
    to the false discovery rate over all of them.
    """
    columns = [*SERIES, *Change._fields, "nights"]
    if not before or now.empty:
        return pandas.DataFrame(columns=columns)
    mine = complete(now)
    earlier = pandas.concat([complete(frame) for frame in before])
    earlier = earlier[earlier["value"] > 0]
    if earlier.empty:
        return pandas.DataFrame(columns=columns)
    earlier = earlier.groupby(["serial", "test", "metric"], sort=False)["value"].agg(value_before="median", nights="size").reset_index()
    both = mine[mine["value"] > 0].merge(earlier, on=["serial", "test", "metric"])
    rows = []
    for key, group in both.groupby(list(SERIES), sort=False):
        rows.append((*key, *paired(key[-1], group["value"], group["value_before"]), int(group["nights"].max())))
    return _corrected(pandas.DataFrame(rows, columns=columns))


def firmwares(frame: pandas.DataFrame) -> pandas.DataFrame:
    """The firmwares of a model against each other in one run: SERIES, firmware (the later by name), against, and the fields of Change."""
    known = complete(frame)
    known = known[known["value"] > 0]
    rows = []
    for key, group in known.groupby(list(SERIES), sort=False):
        names = sorted(group["firmware"].unique())
        for old, new in zip(names, names[1:]):
            values = (group.loc[group["firmware"] == name, "value"] for name in (new, old))
            rows.append((*key, new, old, *apart(key[-1], *values)))
    return _corrected(pandas.DataFrame(rows, columns=[*SERIES, "firmware", "against", *Change._fields]))


def repeatability(frame: pandas.DataFrame) -> pandas.DataFrame:
    """How well figures repeat from run to run of one drive: SERIES, drives, runs (most of one drive), cv, cv_at_most.

    cv: the standard deviation within a drive as a share of its mean, pooled over drives. cv_at_most: the upper end of its one-sided 95 % interval,
    which says how little a few runs prove.
    """
    known = complete(frame)
    each = known.groupby([*SERIES, "serial"], sort=False)["value"].agg(["mean", "var", "size"]).reset_index()
    each = each[(each["size"] > 1) & (each["mean"] > 0)]
    rows = []
    for key, group in each.groupby(list(SERIES), sort=False):
        freedom = group["size"] - 1
        pooled = float(np.sqrt((freedom * group["var"] / group["mean"] ** 2).sum() / freedom.sum()))
        bound = pooled * float(np.sqrt(freedom.sum() / stats.chi2.ppf(0.05, freedom.sum())))
        rows.append((*key, len(group), int(group["size"].max()), pooled, bound))
    return pandas.DataFrame(rows, columns=[*SERIES, "drives", "runs", "cv", "cv_at_most"])


def _worse(metric: str, logarithms: t.Any) -> t.Any:
    return logarithms if metrics.is_latency(metric) else -logarithms


def _centre(values: t.Any) -> float:
    """Hodges and Lehmann's: the median of the means of all pairs."""
    if len(values) > MOST_FOR_PAIRS:
        return float(np.median(values))
    return float(np.median(((values[:, None] + values[None, :]) / 2)[np.triu_indices(len(values))]))


def _shift(mine: t.Any, theirs: t.Any) -> float:
    if max(len(mine), len(theirs)) > MOST_FOR_PAIRS:
        return float(np.expm1(np.median(mine) - np.median(theirs)))
    return float(np.expm1(np.median(mine[:, None] - theirs[None, :])))


def _verdict(by: float, chance: t.Callable[[float, str], float]) -> str:
    """A difference counts when it is both shown and more than robust.PRACTICAL; none is when both are excluded."""
    if chance(0.0, "two-sided") < P_LIMIT and abs(by) > robust.PRACTICAL:
        return WORSE if by > 0 else BETTER
    limit = float(np.log1p(robust.PRACTICAL))
    excluded = max(chance(limit, "less"), chance(-limit, "greater"))
    return SAME if excluded < P_LIMIT else UNKNOWN


def _corrected(table: pandas.DataFrame) -> pandas.DataFrame:
    if table.empty:
        return table
    stands = robust.discoveries(table["p"].to_numpy())
    changed = table["verdict"].isin([WORSE, BETTER])
    table.loc[changed & ~stands, "verdict"] = UNKNOWN
    return table.sort_values("by", ascending=False, kind="stable").reset_index(drop=True)
