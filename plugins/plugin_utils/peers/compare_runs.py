# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Two runs side by side, as the brief compares host configurations A and B: the medians of both, whatever drives they
are of and whatever differs. It judges nothing (trends.py does). Pure; pandas.
"""

from __future__ import annotations

from ...module_utils.measure.rounds import FITTED_END
from ..verdict import comparability
from . import metric_kinds
from .fleet_record import FigureBesideBaseline
from .scipy_imports import pandas

# What the pages show of a test; each of its percentiles would fill them.
LATENCIES = ("mean_latency_us", "p99_9_latency_us")
_FIGURE = ["model", "test", "metric"]


def side_by_side(here: pandas.DataFrame, there: pandas.DataFrame) -> list[FigureBesideBaseline]:
    """Return the rates and latencies that both runs have, by name. here, there: long tables (long_table.py)."""
    mine, theirs = (_medians(frame) for frame in (here, there))
    if mine.empty or theirs.empty:
        return []
    both = mine.merge(theirs, on=_FIGURE, suffixes=("", "_there"))
    told = []
    for row in both.to_dict("records"):
        if row["value_there"]:
            changed = comparability.differences(row["conditions"], row["conditions_there"])
            told.append(
                FigureBesideBaseline(
                    **{name: row[name] for name in _FIGURE},
                    here=float(row["value"]),
                    there=float(row["value_there"]),
                    n=int(row["serial"]),
                    of=int(row["serial_there"]),
                    by=float(row["value"] / row["value_there"] - 1),
                    changed=changed,
                )
            )
    return told


def _medians(frame: pandas.DataFrame) -> pandas.DataFrame:
    """Of each figure: its median, how many drives have it, and under which conditions the first one was measured."""
    shown = frame[frame["metric"].map(_is_shown).astype(bool)]
    grouped = shown.groupby(_FIGURE, sort=False)
    return grouped.agg({"value": "median", "serial": "nunique", "conditions": "first"}).reset_index()


def _is_shown(metric: str) -> bool:
    return not metric.endswith(FITTED_END) and (metric_kinds.is_rate(metric) or metric.endswith(LATENCIES))
