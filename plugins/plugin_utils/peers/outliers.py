# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Drives that are worse than their peers. Pure, over the long table (long_table.py); the statistics are those of
robust_statistics.py.
"""

from __future__ import annotations

from . import metric_kinds, robust_statistics
from .long_table import FIGURE, PEERS, complete
from .scipy_imports import numpy as np
from .scipy_imports import pandas

LEAST_LATENCY_US = 1e-6
HELD = ("median", "mad", "by", "z", "p")


def held(frame: pandas.DataFrame) -> pandas.DataFrame:
    """Return every figure against those of the other drives of its group.

    Adds n (the group's drives), median and mad (of the others), by (how much worse, a share), z, p, outlier. In groups
    of fewer than robust_statistics.FEWEST_PEERS drives these stay empty and nothing is an outlier. A drive with more
    than one figure in a group (runs) is an error.
    """
    known = complete(frame)
    # A latency of next to nothing is none that was measured.
    known = known[
        (known["value"] > LEAST_LATENCY_US) | ~known["metric"].map(metric_kinds.is_latency).astype(bool)
    ].reset_index(drop=True)
    if known.duplicated([*FIGURE, "host", "drive"]).any():
        raise ValueError("a drive has more than one value of a figure: judge one run at a time")
    groups = known.groupby(list(FIGURE), sort=False)
    columns = {name: np.full(len(known), np.nan) for name in HELD}
    for key, places in groups.indices.items():
        if len(places) >= robust_statistics.FEWEST_PEERS:
            found = robust_statistics.score_leave_one_out(key[-1], known["value"].to_numpy()[places])
            for name in HELD:
                columns[name][places] = getattr(found, name)
    result = known.assign(n=groups["value"].transform("size") if len(known) else pandas.Series(dtype=int), **columns)
    return result.assign(outlier=_outliers(result))


def _outliers(result: pandas.DataFrame) -> np.ndarray:
    judged = result["p"].notna().to_numpy()
    stands = np.zeros(len(result), dtype=bool)
    chosen = result[judged]
    # A drive is in one group a test; its figures of another test are another drive's here.
    groups = chosen.groupby(list(PEERS), sort=False).ngroup().to_numpy()
    drives = chosen.groupby(["host", "drive", groups], sort=False).ngroup().to_numpy()
    stands[judged] = robust_statistics.stand_out(chosen["z"].to_numpy(), chosen["p"].to_numpy(), groups, drives)
    outlying: np.ndarray = stands & (result["by"].to_numpy() > robust_statistics.PRACTICAL)
    return outlying


def groups(judged: pandas.DataFrame) -> pandas.DataFrame:
    """One row for each figure of each group of `held`: FIGURE, n, median, spread (of half of the drives around it, a
    share), least, most.
    """
    if judged.empty:
        return pandas.DataFrame(columns=[*FIGURE, "n", "median", "spread", "least", "most"])
    by = judged.groupby(list(FIGURE), sort=False)
    told = by["value"].agg(n="size", median="median", least="min", most="max")
    away = (judged["value"] - by["value"].transform("median")).abs()
    spread = away.groupby([judged[name] for name in FIGURE], sort=False).median()
    share = spread / told["median"].abs().replace(0, np.nan)
    return told.assign(spread=share.fillna(0.0)).reset_index()


def too_few(judged: pandas.DataFrame) -> pandas.DataFrame:
    """PEERS and n of the groups that are too small to be judged."""
    small = judged[judged["n"] < robust_statistics.FEWEST_PEERS]
    return small.groupby(list(PEERS), sort=False)["n"].max().reset_index() if len(small) else small[[*PEERS, "n"]]
