# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pictures of what several cells or tests show together: response time over IOPS, change of repeated stimuli. Pure."""

from __future__ import annotations

import typing as t

from markupsafe import Markup

from ..common import units
from . import svg

COLORS = 8
Mapping = t.Mapping[str, t.Any]


def demand(points: t.Sequence[Mapping], threads: int | None = None) -> Markup:
    """Response time over IOPS, a curve for each number of threads. points: of a sweep, which all have `threads`, or of
    a demand curve (demand_intensity.curve).
    """
    groups: dict[int, list[Mapping]] = {}
    for point in points:
        groups.setdefault(point.get("threads", threads), []).append(point)
    drawn = [
        svg.Line(
            [(point["iops"], point["mean_latency_us"] / 1000) for point in group],
            f"{number} thread{'' if number == 1 else 's'}",
            f"c{index % COLORS}",
        )
        for index, (number, group) in enumerate(sorted(groups.items(), reverse=True))
    ]
    about = "mean response time over IOPS, from the fewest to the most I/Os in flight"
    return svg.lines(drawn, "IOPS", "Mean response time (ms)", about=about, named=True)


def changes(name: str, found: t.Mapping[str, Mapping]) -> Markup:
    """Return the tests that repeat the stimulus of a test, as bars of their change in per cent; "" for fewer than two.
    found: of derived_metrics.of_drive.
    """
    told = {test: parts["repeated"] for test, parts in found.items() if "repeated" in parts}
    drawn = [
        (test[len(name) + 1 :] if test.startswith(name + "-") else test, change["change_pct"])
        for test, change in told.items()
        if change["first_test"] == name
    ]
    if len(drawn) < 2:
        return Markup("")
    first = next(change for change in told.values() if change["first_test"] == name)
    shown = units.show(first["metric"], first["first"])
    return svg.bars(drawn, f"0: {shown}, of {name}", "Change (%)", f"change against {name} in per cent")
