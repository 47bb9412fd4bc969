# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What changed: against a baseline or earlier nights, from one firmware to another, and how well a measurement repeats.
Pure.

"No difference" is shown by an equivalence test, never by a large p. Where n is too small nothing is said but that.
"""

from __future__ import annotations

import math
import typing as t

from ...module_utils.measure.rounds import FITTED_END
from ..common import drives
from ..verdict import comparability
from ..verdict.verdicts import BETTER, CHANGED, OTHERWISE, SAME, UNKNOWN, WORSE
from . import metric_kinds, robust_statistics
from .fleet_record import FigureBesideBaseline
from .long_table import PEERS, complete, counts
from .scipy_imports import numpy as np
from .scipy_imports import pandas, special, stats

# Below these no result of the test could have p < 0.05 (Wilcoxon's signed ranks, Mann and Whitney's ranks; two-sided).
FEWEST_PAIRS = 6
FEWEST_A_SIDE = 5
P_LIMIT = 0.05
# Beyond so many values the effect is the median's, as the mean of each pair is no longer taken.
MOST_FOR_PAIRS = 1000
SERIES = ("model", "test", "metric")
_FIGURE = ("test", "cell", "metric")
# Of `by_drive`: what is one row.
_DRIVE = ("model", "serial", "firmware", "conditions", *_FIGURE)
# Beyond so many rows they are grouped part by part.
ROWS_AT_A_TIME = 1_000_000
# What else makes peers: another capacity is no firmware's doing.
_ALIKE = tuple(name for name in PEERS if name not in (*SERIES, "firmware"))
# Of two runs side by side, what the pages show of a test; each of its percentiles would fill them.
LATENCIES = ("mean_latency_us", "p99_9_latency_us")
_SHOWN_FIGURE = ["model", "test", "metric"]


class Change(t.NamedTuple):
    """verdict: one of the five. by: how much worse, as a share (negative: better). p: of a difference. n, before:
    values on each side. by_test: its name.
    """

    verdict: str
    by: float
    p: float
    n: int
    before: int
    by_test: str


CHANGES = (*SERIES, "cell", "firmware", "against", "changed", *Change._fields, "nights")


def paired(metric: str, now: t.Sequence[float], before: t.Sequence[float]) -> Change:
    """Return the same drives now and before: Wilcoxon's signed rank test over the logarithms of their ratios.
    Values above 0.
    """
    ratios = _worse(metric, np.log(np.asarray(now, dtype=float) / np.asarray(before, dtype=float)))
    n = len(ratios)
    by = float(np.expm1(_centre(ratios))) if n else 0.0
    if n < FEWEST_PAIRS:
        return Change(UNKNOWN, by, 1.0, n, n, "none")

    def chance(shift: float, side: str) -> float:
        return robust_statistics.signed_rank_p_value(ratios - shift, side)

    return _change(by, chance, n, n, "wilcoxon")


def compare_samples(metric: str, now: t.Sequence[float], before: t.Sequence[float]) -> Change:
    """Different drives, or nights of one: the test of Mann and Whitney over logarithms; the effect is Hodges and
    Lehmann's. Values above 0.
    """
    mine, theirs = (_worse(metric, np.log(np.asarray(values, dtype=float))) for values in (now, before))
    by = _shift(mine, theirs) if len(mine) and len(theirs) else 0.0
    if min(len(mine), len(theirs)) < FEWEST_A_SIDE:
        return Change(UNKNOWN, by, 1.0, len(mine), len(theirs), "none")

    def chance(shift: float, side: str) -> float:
        return float(stats().mannwhitneyu(mine - shift, theirs, alternative=side).pvalue)

    return _change(by, chance, len(mine), len(theirs), "mann-whitney")


def regressions(now: pandas.DataFrame, before: t.Sequence[pandas.DataFrame], cells: bool = False) -> pandas.DataFrame:
    """Return each model's figures against a baseline (one long table) or the last nights (several, or one long table of
    them all), drive by drive.

    A drive's own median of the nights is its before; drives go by their serial. Nights of each firmware are compared
    apart: `against` another one than
    `firmware` is what the firmware did to the same drives. Only what was measured alike is judged
    (verdict/comparability.py): `changed` says what was not. cells: the figures of every cell too, else those of a test
    alone, whatever cell it tracks.
    Returns SERIES, cell, firmware, against, changed, the fields of Change and nights, worst first; p is held to the
    false discovery rate over all of them.
    """
    given = [frame for frame in before if len(frame)]
    if not given or now.empty:
        return pandas.DataFrame(columns=CHANGES)
    whole = given[0] if len(given) == 1 else pandas.concat(given, ignore_index=True)
    return changes(by_drive(now, cells), by_drive(whole, cells))


def changes(now: pandas.DataFrame, before: pandas.DataFrame) -> pandas.DataFrame:
    """`regressions` of what `by_drive` made of both."""
    if now.empty or before.empty:
        return pandas.DataFrame(columns=CHANGES)
    nights = before.rename(columns={"firmware": "against"})
    mine = now[["serial", "model", "firmware", "conditions", *_FIGURE, "median"]]
    both = mine.merge(
        nights[["serial", "model", "against", "conditions", *_FIGURE, "median", "nights"]],
        on=["serial", "model", *_FIGURE],
        suffixes=("", "_before"),
    )
    both = _one_before(both.assign(changed=_changed(both["conditions"], both["conditions_before"])))
    rows = []
    for (model, firmware, against, changed, test, cell, metric), group in both.groupby(
        ["model", "firmware", "against", "changed", *_FIGURE], sort=False
    ):
        change = paired(metric, group["median"], group["median_before"])
        if changed:
            change = change._replace(verdict=OTHERWISE, p=1.0, by_test="none")
        rows.append((model, test, metric, cell, firmware, against, changed, *change, int(group["nights"].max())))
    return _corrected(pandas.DataFrame(rows, columns=list(CHANGES)))


def _changed(now: pandas.Series, before: pandas.Series) -> t.Any:
    """conditions.changed of each row; there are few different ones."""
    (mine, of_now), (theirs, of_before) = pandas.factorize(now), pandas.factorize(before)
    pairs, place = np.unique(mine * max(1, len(of_before)) + theirs, return_inverse=True)
    told = [comparability.changed(of_now[pair // len(of_before)], of_before[pair % len(of_before)]) for pair in pairs]
    return np.array(told, dtype=object)[place]


def _one_before(both: pandas.DataFrame) -> pandas.DataFrame:
    """One row for each figure of each drive and what changed: nights of which one tells less of its conditions are
    nights alike, and count by how many they are.
    """
    key = ["serial", "model", "firmware", "against", "changed", *_FIGURE]
    twice = both.duplicated(key, keep=False)
    if not twice.any():
        return both
    weighed = both[twice].assign(median_before=lambda rows: rows["median_before"] * rows["nights"])
    told = weighed.groupby(key, sort=False).agg({"median": "first", "median_before": "sum", "nights": "sum"})
    told["median_before"] /= told["nights"]
    return pandas.concat([both[~twice], told.reset_index()], ignore_index=True)


def by_drive(frame: pandas.DataFrame, cells: bool) -> pandas.DataFrame:
    """One row for each figure of each drive under each firmware and conditions: serial, model, firmware, conditions,
    _FIGURE, median, mean, var, nights. Values above 0. cells: as of `regressions`.

    Texts may be categories, as in the store's long table: of 18 million rows they are grouped by their codes and become
    texts in the result alone.
    """
    whole = (frame["value"].to_numpy() > 0) & ~counts(frame)
    if "round" in frame:
        whole &= (pandas.to_numeric(frame["round"]).fillna(0) == 0).to_numpy(dtype=bool)
    if "cell" in frame and not cells and frame["cell"].dtype == "category":
        whole &= frame["cell"].isna().to_numpy()
    chosen = frame if whole.all() else frame[whole]
    # A figure of the tracked cell is the test's own, whatever the cell's name is in one of the tables.
    by = {name: _coded(chosen[name]) for name in _DRIVE if name in chosen and (cells or name != "cell")}
    # One number a row says all of it: grouped by each column, pandas would hold eight bytes a row for every one of
    # them.
    most = math.prod(len(column.categories) + 1 for column in by.values())
    key = np.zeros(len(chosen), dtype=np.int32 if most < 1 << 31 else np.int64)
    for column in by.values():
        key *= len(column.categories) + 1
        key += column.codes.to_numpy(dtype=key.dtype)
        key += 1
    found = _of_each(key, chosen["value"].to_numpy())
    keys, texts = found.index.to_numpy(), {name: np.full(len(found), "", dtype=object) for name in _DRIVE}
    for name, column in reversed(by.items()):
        keys, code = np.divmod(keys, len(column.categories) + 1)
        texts[name] = np.array(["", *column.categories], dtype=object)[code]
    return found.reset_index(drop=True).assign(**texts)


def _coded(column: pandas.Series) -> t.Any:
    # What is a category already would be copied.
    return (column if column.dtype == "category" else column.astype("category")).cat


def _of_each(key: t.Any, value: t.Any) -> pandas.DataFrame:
    """median, mean, var and nights of the values of each key: of many rows a part of the keys at a time, as pandas
    takes several times what it groups.
    """
    parts = 1 + len(key) // ROWS_AT_A_TIME
    width = int(key.max()) // parts + 1 if len(key) else 1
    found = []
    for start in range(0, parts * width, width):
        mine = (key >= start) & (key < start + width) if parts > 1 else slice(None)
        values = pandas.Series(value[mine]).groupby(key[mine], sort=False)
        found.append(values.agg(["median", "mean", "var", "size"]).rename(columns={"size": "nights"}))
    return pandas.concat(found) if parts > 1 else found[0]


def firmwares(frame: pandas.DataFrame) -> pandas.DataFrame:
    """Return the firmwares of drives that are peers but for it, in one run: SERIES, cell, _ALIKE, firmware (the later
    by name, 1.10 after 1.9), against, and the fields of Change. Unknown is no firmware.
    """
    known = complete(frame)
    known = known[(known["value"] > 0) & (known["firmware"] != "")]
    rows = []
    for key, group in known.groupby([*SERIES, "cell", *_ALIKE], sort=False):
        names = sorted(group["firmware"].unique(), key=drives.order)
        for old, new in zip(names, names[1:]):
            values = (group.loc[group["firmware"] == name, "value"] for name in (new, old))
            rows.append((*key, new, old, *compare_samples(key[2], *values)))
    return _corrected(
        pandas.DataFrame(rows, columns=[*SERIES, "cell", *_ALIKE, "firmware", "against", *Change._fields])
    )


def repeatability(frame: pandas.DataFrame, cells: bool = False) -> pandas.DataFrame:
    """Return how well figures repeat from run to run of one drive: SERIES, cell, drives, runs (most of one drive), cv,
    cv_at_most.

    cv: the standard deviation within a drive of one firmware, measured alike, as a share of its mean, pooled over
    drives. cv_at_most: the upper end of its one-sided 95 % interval, which says how little a few runs prove.
    cells: as of `regressions`.
    """
    return repeats(by_drive(frame, cells))


def repeats(drives: pandas.DataFrame) -> pandas.DataFrame:
    """`repeatability` of what `by_drive` made."""
    each = drives[drives["nights"] > 1]
    rows = []
    for key, group in each.groupby([*SERIES, "cell"], sort=False):
        freedom = group["nights"] - 1
        pooled = float(np.sqrt((freedom * group["var"] / group["mean"] ** 2).sum() / freedom.sum()))
        # scipy.stats.chi2.ppf(0.05, …) is the same, and takes a second to import.
        bound = pooled * float(np.sqrt(freedom.sum() / (2 * special().gammaincinv(freedom.sum() / 2, 0.05))))
        rows.append((*key, len(group), int(group["nights"].max()), pooled, bound))
    return pandas.DataFrame(rows, columns=[*SERIES, "cell", "drives", "runs", "cv", "cv_at_most"])


def _worse(metric: str, logarithms: t.Any) -> t.Any:
    return logarithms if metric_kinds.is_latency(metric) else -logarithms


def _centre(values: t.Any) -> float:
    """Hodges and Lehmann's: the median of the means of all pairs."""
    if len(values) > MOST_FOR_PAIRS:
        return float(np.median(values))
    return float(np.median(((values[:, None] + values[None, :]) / 2)[np.triu_indices(len(values))]))


def _shift(mine: t.Any, theirs: t.Any) -> float:
    if max(len(mine), len(theirs)) > MOST_FOR_PAIRS:
        return float(np.expm1(np.median(mine) - np.median(theirs)))
    return float(np.expm1(np.median(mine[:, None] - theirs[None, :])))


def _change(by: float, chance: t.Callable[[float, str], float], n: int, before: int, by_test: str) -> Change:
    """A difference counts when it is both shown and more than robust_statistics.PRACTICAL; none is when both are
    excluded.
    chance: p of a shift (in logarithms), by side.
    """
    p = chance(0.0, "two-sided")
    if p < P_LIMIT and abs(by) > robust_statistics.PRACTICAL:
        return Change(WORSE if by > 0 else BETTER, by, p, n, before, by_test)
    limit = float(np.log1p(robust_statistics.PRACTICAL))
    excluded = max(chance(limit, "less"), chance(-limit, "greater"))
    return Change(SAME if excluded < P_LIMIT else UNKNOWN, by, p, n, before, by_test)


def _corrected(table: pandas.DataFrame) -> pandas.DataFrame:
    if table.empty:
        return table
    judged = table["verdict"] != OTHERWISE
    stands = np.zeros(len(table), dtype=bool)
    stands[judged] = robust_statistics.discoveries(table.loc[judged, "p"].to_numpy())
    table.loc[table["verdict"].isin(CHANGED) & ~stands, "verdict"] = UNKNOWN
    return table.sort_values("by", ascending=False, kind="stable").reset_index(drop=True)


def side_by_side(here: pandas.DataFrame, there: pandas.DataFrame) -> list[FigureBesideBaseline]:
    """Return the medians of rates and latencies that both runs have, by name, whatever drives they are of and whatever
    differs. It judges nothing. here, there: long tables (long_table.py).
    """
    mine, theirs = (_side_medians(frame) for frame in (here, there))
    if mine.empty or theirs.empty:
        return []
    both = mine.merge(theirs, on=_SHOWN_FIGURE, suffixes=("", "_there"))
    told = []
    for row in both.to_dict("records"):
        if row["value_there"]:
            changed = comparability.differences(row["conditions"], row["conditions_there"])
            told.append(
                FigureBesideBaseline(
                    **{name: row[name] for name in _SHOWN_FIGURE},
                    here=float(row["value"]),
                    there=float(row["value_there"]),
                    n=int(row["serial"]),
                    of=int(row["serial_there"]),
                    by=float(row["value"] / row["value_there"] - 1),
                    changed=changed,
                )
            )
    return told


def _side_medians(frame: pandas.DataFrame) -> pandas.DataFrame:
    """Of each figure: its median, how many drives have it, and under which conditions the first one was measured."""
    shown = frame[frame["metric"].map(_is_shown).astype(bool)]
    grouped = shown.groupby(_SHOWN_FIGURE, sort=False)
    return grouped.agg({"value": "median", "serial": "nunique", "conditions": "first"}).reset_index()


def _is_shown(metric: str) -> bool:
    return not metric.endswith(FITTED_END) and (metric_kinds.is_rate(metric) or metric.endswith(LATENCIES))
