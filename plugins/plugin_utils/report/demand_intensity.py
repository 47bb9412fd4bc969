# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Demand intensity: sweeps over the depth at several thread counts as one curve of IOPS and response time over the I/Os
in flight. Pure.
"""

from __future__ import annotations

import typing as t

from ..common import units
from . import latencies
from .chart_series import block_size
from .thinning import significant

TAKES = {"most": "the most IOPS", "middle": "halfway between the most IOPS and the fewest", "fewest": "the fewest IOPS"}
FEWEST_THREADS = 2
FIGURES = ("asked_outstanding", "observed_outstanding", "iops", "mean_latency_us")
# Micron's blog on the P420m names a "sweet spot" without a rule; here it is the lowest depth with this share of the
# most IOPS of the sweep, or of the curve.
SWEET_SHARE = 0.95
Mapping = t.Mapping[str, t.Any]


def curve(sweeps: t.Sequence[Mapping]) -> dict[str, t.Any] | None:
    """One curve of the sweeps of a test (derived_metrics.sweeps), where they differ in threads alone.

    {access, block_size_bytes, read_pct, points: those of the sweeps with their threads, by I/Os in flight, sweet_spot}.
    """
    kinds = {(sweep["access"], sweep["block_size_bytes"], sweep["read_pct"]) for sweep in sweeps}
    threads = [sweep["threads"] for sweep in sweeps]
    if len(kinds) != 1 or len(set(threads)) != len(threads) or len(threads) < FEWEST_THREADS:
        return None
    points = [{**point, "threads": sweep["threads"]} for sweep in sweeps for point in sweep["points"]]
    points.sort(key=lambda point: (point["asked_outstanding"], point["threads"]))
    most = max(point["iops"] for point in points)
    spot = next(point for point in points if point["iops"] >= SWEET_SHARE * most)
    about = {key: sweeps[0][key] for key in ("access", "block_size_bytes", "read_pct")}
    return {**about, "points": points, "sweet_spot": {**spot, "share": spot["iops"] / most}}


def curve_view(found: Mapping) -> Mapping:
    """Return what the page shows of a curve: {title, spot, shares, rows, plot: of `plot`}; shares, rows: of `table`."""
    spot, mix = found["sweet_spot"], f"{found['read_pct']}/{100 - found['read_pct']}"
    rate, latency = (units.show(metric, spot[metric]) for metric in ("iops", "mean_latency_us"))
    return {
        "title": (
            f"Demand intensity: {found['access']} {block_size(found['block_size_bytes'])}, R/W {mix}, over "
            "threads x depth"
        ),
        "spot": f"{_load(spot)}: {rate} at {latency}, {100 * spot['share']:.1f} % of the most IOPS",
        **table(found["points"], spot),
        "plot": plot(found["points"]),
    }


def plot(points: t.Sequence[Mapping], threads: int | None = None) -> Mapping:
    """Return response time over IOPS, a line for each number of threads. points: of a sweep, which all have `threads`,
    or of a demand curve.
    """
    groups: dict[int, list[Mapping]] = {}
    for point in points:
        groups.setdefault(point.get("threads", threads), []).append(point)
    lines = [
        {
            "label": f"{number} thread{'' if number == 1 else 's'}",
            "x": [significant(point["iops"]) for point in group],
            "y": [significant(point["mean_latency_us"] / 1000) for point in group],
        }
        for number, group in sorted(groups.items(), reverse=True)
    ]
    return {"x_title": "IOPS", "y_title": "Mean response time (ms)", "lines": lines}


def table(points: t.Sequence[Mapping], spot: Mapping) -> Mapping:
    """Return the points of a curve or of a sweep as rows: {shares: labels of the last columns, rows: [{texts,
    spot}]}.
    """
    shares = latencies.share_names(name for point in points for name in point)
    rows = [
        {
            "texts": [units.rounded(point[key]) for key in FIGURES]
            + [latencies.share_text(point.get(name)) for name in shares],
            "spot": point["cell"] == spot["cell"],
        }
        for point in points
    ]
    return {"shares": [latencies.share_label(name) for name in shares], "rows": rows}


def point_text(point: Mapping) -> str:
    """rand-4k-w100-most: 4 threads x depth 8, as rand-4k-w100-tc4-qd8 of dirth-sweep."""
    return f"{point['cell']}: {_load(point)}, as {point['of']} of {point['sweep']}"


def _load(point: Mapping) -> str:
    threads = point["threads"]
    return f"{threads} thread{'' if threads == 1 else 's'} x depth {point['queue_depth']}"
