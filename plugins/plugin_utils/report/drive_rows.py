# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every drive in a line, worst first: what the fleet's page lists and other pages lead to. Pure; nothing is escaped
here, the templates do that.
"""

from __future__ import annotations

import os
import typing as t

from ..common.drives import order
from ..peers import metric_kinds, robust_statistics
from ..verdict.verdicts import COUNTING, VERDICTS
from . import page_names, thinning
from .run_sources import Sources, racks

Record = dict[str, t.Any]


def rows(sources: Sources) -> list[Record]:
    """[{host, drive, short, serial, model, firmware, rack, verdict, reasons, tests, host_fault, own_reasons, figure,
    outliers, low, page, outlines}].

    outliers: those of fleet.outliers that are its own. low: the entry of fleet.low_hosts that it is part of, or None.
      page: its page, from the
    report's folder. Order: by verdict, the host's fault last, then outliers, then drives of low hosts, then how far
    below the others, then by name.
    """
    of_host = racks(sources.run)
    outliers: dict[tuple[str, str], list[Record]] = {}
    for found in sources.fleet.get("outliers") or []:
        outliers.setdefault((found["host"], found["drive"]), []).append(found)
    # Rates first: what people know a drive by.
    outliers = {
        key: sorted(found, key=lambda one: (not metric_kinds.is_rate(one["metric"]), -round(one["by_pct"], 6)))
        for key, found in outliers.items()
    }
    low = {(entry["host"], drive): entry for entry in sources.fleet.get("low_hosts") or [] for drive in entry["drives"]}
    made = []
    for judged in sources.judgement["drives"]:
        key = (judged["host"], judged["drive"])
        made.append(
            {
                **{
                    name: judged[name]
                    for name in ("host", "drive", "serial", "model", "firmware", "verdict", "reasons", "tests")
                },
                "host_fault": bool(judged.get("host_fault")),
                "own_reasons": own_reasons(judged),
                "rack": of_host.get(judged["host"], ""),
                "figure": figure(judged),
                "outliers": outliers.get(key, []),
                "low": low.get(key),
                "page": page_names.drive_page(*key),
                "outlines": list(sources.outlines.get(key, {}).values()),
            }
        )
    _shorten(made)
    _bars(made)
    return sorted(made, key=_rank)


def needs_attention(row: Record) -> bool:
    """Return whether somebody should look at the drive."""
    return row["verdict"] != "pass" or bool(row["outliers"]) or row["low"] is not None


def own_reasons(judged: Record) -> list[str]:
    """Return the reasons that no test of the drive says itself."""
    said = {f"{test['test']}: {reason}" for test in judged["tests"] for reason in test["reasons"]}
    return [reason for reason in judged["reasons"] if reason not in said]


def figure(judged: Record) -> Record | None:
    """Return the figure that stands for the drive: of the first criterion missed, else of the first one, else what was
    tracked.
    """
    checks = [
        (check["met"], test, check)
        for test in judged["tests"]
        for check in test["criteria"]
        if check["value"] is not None
    ]
    for met, test, check in sorted(checks, key=lambda item: (item[0] is None, item[0] or False)):
        valid = test["verdict"] in COUNTING
        return {
            **{key: check[key] for key in ("metric", "value", "min", "max")},
            "test": test["test"],
            "met": met if valid else None,
            "valid": valid,
        }
    for test in judged["tests"]:
        for window in test["windows"]:
            if window.get("average") is not None:
                free = dict.fromkeys(("min", "max", "met"))
                return {
                    **free,
                    "test": test["test"],
                    "metric": window["metric"],
                    "value": window["average"],
                    "valid": test["verdict"] in COUNTING,
                }
    return None


def _rank(row: Record) -> tuple[t.Any, ...]:
    off = (row["figure"] or {}).get("off_median") or 0.0
    worse = -off if _more_is_worse(row) else off
    place = order(row["host"], row["drive"])
    return VERDICTS.index(row["verdict"]), row["host_fault"], not row["outliers"], row["low"] is None, worse, place


def _more_is_worse(row: Record) -> bool:
    return bool(row["figure"]) and metric_kinds.is_latency(row["figure"]["metric"])


def _shorten(drives: list[Record]) -> None:
    """Give each drive a name for tables and charts: a path without the folder that it shares with the others."""
    paths = [drive["drive"] for drive in drives if "/" in drive["drive"]]
    shared = os.path.commonprefix(paths) if len(paths) > 1 else paths[0] if paths else ""
    folder = shared[: shared.rfind("/") + 1]
    for drive in drives:
        drive["short"] = drive["drive"][len(folder) :] if "/" in drive["drive"] else drive["drive"]


def _bars(drives: list[Record]) -> None:
    """Give each figure its share of the longest bar of the same test and metric, the limit's, and its distance from the
    median of the others, where these are enough to judge by.
    """
    with_figure = [drive for drive in drives if drive["figure"]]
    most: dict[tuple[str, str], float] = {}
    peers: dict[tuple[str, str, str], list[float]] = {}
    for drive in with_figure:
        figure_ = drive["figure"]
        place = (figure_["test"], figure_["metric"])
        most[place] = max(most.get(place, 0), figure_["value"], figure_["min"] or 0, figure_["max"] or 0)
        if figure_["valid"]:
            peers.setdefault(_peers(drive), []).append(figure_["value"])
    for known in peers.values():
        known.sort()
    for drive in with_figure:
        figure_ = drive["figure"]
        known = peers.get(_peers(drive), [])
        own = figure_["value"] if figure_["valid"] else None
        middle = thinning.median_without(known, own) if len(known) >= robust_statistics.FEWEST_PEERS else 0
        figure_["off_median"] = figure_["value"] / middle - 1 if middle else None
        longest = most[(figure_["test"], figure_["metric"])] or 1
        limit = figure_["min"] if figure_["min"] is not None else figure_["max"]
        figure_["share_pct"] = round(100 * figure_["value"] / longest, 1)
        figure_["limit_pct"] = round(100 * limit / longest, 1) if limit is not None else None


def _peers(drive: Record) -> tuple[str, str, str]:
    return drive["figure"]["test"], drive["figure"]["metric"], drive["model"] or ""
