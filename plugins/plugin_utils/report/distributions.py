# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where the drives of a fleet lie: each figure's distribution among its peers, and how far each drive is from their
median. Pure; pandas.

The groups, medians and outliers are those of the judgement (peers/fleet_summary.py); here they get what is drawn.
"""

from __future__ import annotations

import typing as t

from ..common import units
from ..peers import metric_kinds, scipy_imports
from ..peers.long_table import FIGURE, of_run
from ..verdict import judge
from . import svg
from .run_sources import Sources

Record = dict[str, t.Any]
Figure = tuple[str, str, str]

# Rows of the table of figures: those with outliers come first.
MOST_GROUPS = 500
# Figures of the heat map: each is one character for each drive.
MOST_HEAT = 80
# A character for each step away from the median, A: far better, M: as the median, Y: far worse.
HEAT_STEP, HEAT_STEPS = 0.025, 12
UNKNOWN = "."
# Of a strip, left free at both ends.
_EDGE = 0.02


def figures(sources: Sources) -> scipy_imports.pandas.DataFrame | None:
    """Return the long table of the run's valid tests; None where there is no pandas."""
    if scipy_imports.pandas is None:
        return None
    records = [*sources.drives.values(), *(record for tests in sources.tests.values() for record in tests.values())]
    return of_run(sources.run, records, judge.valid_tests(sources.run, [*sources.hosts.values(), *records]))


def groups(fleet: Record, frame: scipy_imports.pandas.DataFrame | None) -> list[Record]:
    """[{test, cell, metric, model, firmware, n, median, spread, worst, outliers, strip}]: groups with outliers first,
    at most MOST_GROUPS.
    """
    if frame is None or frame.empty:
        return []
    named: dict[tuple[t.Any, ...], list[Record]] = {}
    for found in fleet.get("outliers") or []:
        named.setdefault(tuple(found[name] for name in ("model", "firmware", "test", "cell", "metric")), []).append(
            found
        )
    by = frame.groupby(list(FIGURE), sort=False, dropna=False)["value"]
    values = {key: group.to_numpy() for key, group in by}

    def outliers_of(group: Record) -> list[Record]:
        return named.get(tuple(group[name] for name in ("model", "firmware", "test", "cell", "metric")), [])

    ordered = sorted(fleet.get("groups") or [], key=lambda group: -len(outliers_of(group)))
    return [
        {
            **group,
            "outliers": outliers_of(group),
            "strip": _strip(group, values.get(tuple(group[name] for name in FIGURE)), outliers_of(group)),
        }
        for group in ordered[:MOST_GROUPS]
    ]


def _strip(group: Record, values: t.Any, outliers: list[Record]) -> str:
    if values is None or not len(values):
        return ""
    scaled = _on_scale(group["metric"], values)
    low, high = float(scaled.min()), float(scaled.max())
    span = (high - low) or 1.0
    # In shares of the span: between drives that are alike to the last digit numpy finds no room for bins.
    counts, _edges = scipy_imports.numpy.histogram(
        (scaled - low) / span, bins=svg.STRIP_BINS, range=(-_EDGE, 1 + _EDGE)
    )

    def place(value: float) -> float:
        share = (float(_on_scale(group["metric"], scipy_imports.numpy.array([value]))[0]) - low) / span
        return (share + _EDGE) / (1 + 2 * _EDGE)

    marks = [
        (place(found["value"]), f"{found['host']} {found['drive']}: {units.show(found['metric'], found['value'])}")
        for found in outliers
    ]
    ends = " to ".join(units.show(group["metric"], float(end)) for end in (values.min(), values.max()))
    about = (
        f"{group['metric']} of {len(values)} drives, {ends}; {len(outliers) or 'no'} "
        f"outlier{'' if len(outliers) == 1 else 's'}"
    )
    return svg.strip(counts.tolist(), place(group["median"]), marks, about)


def _on_scale(metric: str, values: t.Any) -> t.Any:
    return (
        scipy_imports.numpy.log(scipy_imports.numpy.maximum(values, 1e-12)) if metric_kinds.is_tail(metric) else values
    )


def heat(
    fleet: Record,
    frame: scipy_imports.pandas.DataFrame | None,
    keys: t.Sequence[tuple[str, str]],
    first: t.Sequence[Figure],
) -> list[Record]:
    """[{test, cell, metric, levels}], levels a character for each drive of `keys`; rates in which drives stand out
    lead, then figures with most outliers, then those of `first`.
    """
    if frame is None or frame.empty:
        return []
    several = [group for group in fleet.get("groups") or [] if group["n"] > 1]
    told = scipy_imports.pandas.DataFrame(
        [{**{name: group[name] for name in FIGURE}, "middle": group["median"]} for group in several]
    )
    if told.empty:
        return []
    away = frame.merge(told, on=list(FIGURE), how="left")
    lower = ~away["metric"].map({name: metric_kinds.is_latency(name) for name in away["metric"].unique()}).astype(bool)
    ratio = away["value"] / away["middle"].where(away["middle"] != 0) - 1
    worse = ratio.where(~lower, -ratio)
    steps = (worse / HEAT_STEP).round().clip(-HEAT_STEPS, HEAT_STEPS)
    places = {key: place for place, key in enumerate(keys)}
    at = scipy_imports.numpy.array([places.get(key, -1) for key in zip(away["host"], away["drive"])])
    count = {name: 0 for name in away.groupby(["test", "cell", "metric"], sort=False).groups}
    for found in fleet.get("outliers") or []:
        count[found["test"], found["cell"], found["metric"]] = (
            count.get((found["test"], found["cell"], found["metric"]), 0) + 1
        )
    drawn = []
    indices = away.groupby(["test", "cell", "metric"], sort=False).indices
    for name in sorted(
        indices, key=lambda name: (not (count[name] and metric_kinds.is_rate(name[2])), -count[name], name not in first)
    )[:MOST_HEAT]:
        levels = scipy_imports.numpy.full(len(keys), ord(UNKNOWN), dtype=scipy_imports.numpy.uint8)
        chosen = indices[name]
        known = chosen[(at[chosen] >= 0) & steps.notna().to_numpy()[chosen]]
        levels[at[known]] = steps.to_numpy()[known].astype(int) + HEAT_STEPS + ord("A")
        drawn.append({"test": name[0], "cell": name[1], "metric": name[2], "levels": levels.tobytes().decode("ascii")})
    return drawn
