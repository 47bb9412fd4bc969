# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a cell's record tells of fio's result: figures of each side and stream, and histograms. Pure."""

from __future__ import annotations

import typing as t

from . import fio_result, io_pattern


def figures(cell: t.Mapping[str, t.Any], result: dict[str, t.Any], whole: dict[str, t.Any]) -> dict[str, t.Any]:
    """fio's figures of each side that a cell always tells, of the others where it has them; and `streams`."""
    busy_s = io_pattern.burst_time_s(cell) if cell.get("burst_s") else None
    sides = {name: fio_result.figures(whole, name, busy_s) for name in fio_result.SIDES}
    told: dict[str, t.Any] = {name: side for name, side in sides.items() if side or name in fio_result.DIRECTIONS}
    streams = fio_result.streams(result) if cell.get("jobs") else []
    return dict(told, streams=streams) if streams else told


def histograms(cell: t.Mapping[str, t.Any], result: dict[str, t.Any], whole: dict[str, t.Any]) -> dict[str, t.Any]:
    """{"" or a stream's name: of fio_result.histograms}."""
    found = {"": fio_result.histograms(whole)}
    for job in result["jobs"] if cell.get("jobs") else ():
        found[job["jobname"]] = fio_result.histograms({"jobs": [job]})
    return found
