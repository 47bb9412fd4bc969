# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The whole view that the templates get. Pure, except that nothing is escaped here: the templates do."""

from __future__ import annotations

import typing as t

from ..results.judge import VERDICTS
from . import compare
from . import drives as drive_views
from . import hosts as host_views
from . import series as report_series
from .sources import Sources

Mapping = t.Dict[str, t.Any]

SHOWN_DRIVES = 24  # in a larger fleet the first table shows those that passed only when asked


def view(sources: Sources) -> Mapping:
    """The view: {run, verdicts, headline, drives (worst first), fleet, hosts, damaged_lines}."""
    # Worst first: what needs attention is never below the fold.
    ordered = sorted(sources.judgement["drives"], key=lambda drive: VERDICTS.index(drive["verdict"]))
    drives = [drive_views.drive(sources, index, judged) for index, judged in enumerate(ordered)]
    compare.shorten(drives)
    several_hosts = len({drive["host"] for drive in drives}) > 1
    entries = [
        {
            "label": f"{drive['host']} {drive['short']}" if several_hosts else drive["short"],
            "drive": drive["index"],
            "verdict": drive["verdict"],
            "model": drive["model"] or "",
            "title": test["title"],
            "limits": test["limits"],
            "series": test["series"],
        }
        for drive in drives
        for test in drive["tests"]
        if test["series"]
    ]
    report_series.medians(entries)
    compare.sparklines(drives)
    compare.bars(drives)
    return {
        "run": sources.run["run"],
        "started": sources.run.get("started"),
        "finished": max((record.get("finished") or "" for record in sources.records.values()), default="") or None,
        "versions": sources.run.get("versions") or {},
        "criteria": sources.run.get("criteria") or [],
        "tests": sources.run.get("tests") or {},
        "verdicts": sources.judgement["verdicts"],
        "total": len(drives),
        "collapse_passed": len(drives) > SHOWN_DRIVES and sources.judgement["verdicts"]["pass"] > 0,
        "headline": _headline(drives),
        "drives": drives,
        "fleet": report_series.fleet_charts(entries),
        "hosts": [host_views.host(sources, name) for name in sorted({drive["host"] for drive in drives} | set(sources.hosts))],
        "damaged_lines": sources.damaged_lines,
    }


def _headline(drives: list[Mapping]) -> str:
    if not drives:
        return "No drive was asked for."
    if all(drive["verdict"] == "pass" for drive in drives):
        return "The drive passed." if len(drives) == 1 else f"All {len(drives)} drives passed."
    words = {"fail": "failed", "error": "ended in error", "invalid": "not validly measured", "not_tested": "not tested", "pass": "passed"}
    counts = [(sum(drive["verdict"] == verdict for drive in drives), words[verdict]) for verdict in VERDICTS]
    said = [f"{count} {word}" for count, word in counts if count]
    return f"Of {len(drives)} drive{'s' if len(drives) > 1 else ''}, " + ", ".join(said) + "."
