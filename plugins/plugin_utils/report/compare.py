# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Drives beside each other: short names, small curves and bars on one scale, the distance from the median of the others. Pure."""

from __future__ import annotations

import os
import typing as t

from . import curves
from . import series as report_series

Mapping = t.Dict[str, t.Any]


def shorten(drives: list[Mapping]) -> None:
    """Give each drive a name for tables and charts: a path without the folder that it shares with the others."""
    paths = [drive["drive"] for drive in drives if "/" in drive["drive"]]
    shared = os.path.commonprefix(paths) if len(paths) > 1 else paths[0] if paths else ""
    folder = shared[: shared.rfind("/") + 1]
    for drive in drives:
        drive["short"] = drive["drive"][len(folder) :] if "/" in drive["drive"] else drive["drive"]


def sparklines(drives: list[Mapping]) -> None:
    """Give each drive the small curve of its first test, all drawn to the same scale, so that a low one shows."""
    series = {
        drive["index"]: next((test["series"] for test in drive["tests"] if test["series"] and test["series"]["curves"]), None)
        for drive in drives
    }
    drawn = [entry for entry in series.values() if entry]
    most: dict[str, float] = {}
    for entry in drawn:
        values = [value for value in entry["curves"][0]["values"] if value is not None]
        most[entry["test"]] = max([most.get(entry["test"], 0.0), *values])
    for drive in drives:
        entry = series[drive["index"]]
        drive["sparkline"] = ""
        if entry:
            values = entry["curves"][0]["values"]
            drive["sparkline"] = curves.sparkline(range(len(values)), values, len(values) - 1, most[entry["test"]])


def bars(drives: list[Mapping]) -> None:
    """Give each figure its share of the longest bar of the same test and metric, the limit's, and its distance from the median of the others."""
    most: dict[tuple[str, str], float] = {}
    for drive in drives:
        figure = drive["figure"]
        if figure:
            place = (figure["test"], figure["metric"])
            most[place] = max(most.get(place, 0), figure["value"], figure["min"] or 0, figure["max"] or 0)
    peers: dict[tuple[str, str, str], list[float]] = {}
    for drive in drives:
        if drive["figure"] and drive["figure"]["valid"]:
            peers.setdefault(_peers(drive), []).append(drive["figure"]["value"])
    for drive in drives:
        figure = drive["figure"]
        if figure:
            known = sorted(peers.get(_peers(drive), []))
            own = figure["value"] if figure["valid"] else None
            middle = curves.median_without(known, own) if len(known) >= report_series.FEWEST_FOR_MEDIAN else 0
            figure["off_median"] = figure["value"] / middle - 1 if middle else None
            longest = most[(figure["test"], figure["metric"])] or 1
            limit = figure["min"] if figure["min"] is not None else figure["max"]
            figure["share_pct"] = round(100 * figure["value"] / longest, 1)
            figure["limit_pct"] = round(100 * limit / longest, 1) if limit is not None else None


def _peers(drive: Mapping) -> tuple[str, str, str]:
    return drive["figure"]["test"], drive["figure"]["metric"], drive["model"] or ""
