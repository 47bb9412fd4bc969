# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which pages of drives and hosts a report has, and their texts, host by host, so that a large fleet is never in memory
as a whole.
"""

from __future__ import annotations

import fnmatch
import os
import re
import typing as t
from urllib.parse import quote

from ...module_utils.core.files import slug
from ..common import drives, units
from . import drive_rows, host_journal, page, page_names, render
from . import drive_view as drive_views
from . import host_view as host_views
from .run_sources import Sources
from .thinning import significant

Record = dict[str, t.Any]
# (run id, when it started, value), oldest first
Points = list[tuple[str, str, float]]
# by (serial number, test, metric)
Figures = dict[tuple[str, str, str], Points]
# What drives with these serial numbers did in the runs before this one (run.json): store/earlier_runs.py.
History = t.Callable[[Record, t.Collection[str]], Figures]

# Up to so many drives every one has a page; beyond, only so many of those that need attention, and those that are asked
# for.
MOST_PAGES = 200
# Raw files named on a drive's page; a campaign may leave tens of thousands.
MOST_FILES = 400


def chosen(rows: list[Record], asked: t.Sequence[str], folder: str) -> list[Record]:
    """Return the rows whose pages are made. asked: shell patterns over host, drive and serial number. Pages that the
    folder has from before are kept up to date.
    """
    if len(rows) <= MOST_PAGES:
        return rows
    before = _listed(os.path.join(folder, "drives"))
    wanted = [row for row in rows if drive_rows.needs_attention(row)][:MOST_PAGES]
    known = {row["page"] for row in wanted}
    return wanted + [
        row
        for row in rows
        if row["page"] not in known and (os.path.basename(row["page"]) in before or _is_asked(row, asked))
    ]


def _is_asked(row: Record, asked: t.Sequence[str]) -> bool:
    return any(
        fnmatch.fnmatchcase(str(row[name] or ""), pattern) for pattern in asked for name in ("host", "drive", "serial")
    )


def _listed(folder: str) -> set[str]:
    try:
        return set(os.listdir(folder))
    except OSError:
        return set()


def existing_pages(rows: list[Record], shown: list[Record]) -> set[str]:
    """Return the pages that there are, of drives and hosts; all as of texts."""
    return {row["page"] for row in shown} | {page_names.host_page(name) for name in _hosts(rows, shown)}


def _hosts(rows: list[Record], shown: list[Record]) -> list[str]:
    """Return the hosts with a page, those of shown drives first: whoever looks for a bad drive or host finds at least
    it.
    """
    found = [row for row in rows if row["verdict"] == "fail" or row["outliers"] or row["low"] is not None]
    return list(dict.fromkeys(row["host"] for row in [*shown, *found]))


def texts(
    sources: Sources, rows: list[Record], shown: list[Record], run_dir: str, history: History | None
) -> t.Iterator[tuple[str, str]]:
    """(name from the report's folder, text) of each page. rows: all drives, in the order of the fleet's page; shown:
    those with pages.
    """
    made = existing_pages(rows, shown)
    judged = {(drive["host"], drive["drive"]): drive for drive in sources.judgement["drives"]}
    serials = {drives.name(row["serial"], row["host"], row["drive"]) for row in shown}
    past = history(sources.run, serials) if history else {}
    peers = host_views.HostSnapshots(sources, rows)
    about = page.about(sources, rows)
    common = {**about, "up": "../", "made": made}
    of_host: dict[str, list[Record]] = {}
    for row in rows:
        of_host.setdefault(row["host"], []).append(row)
    of_shown: dict[str, list[Record]] = {}
    for row in shown:
        of_shown.setdefault(row["host"], []).append(row)
    for name in _hosts(rows, shown):
        host = host_views.host(sources, name, of_host[name], peers, made)
        yield host["page"], render.html("host.html.j2", {**common, "host": host})
        for row in of_shown.get(name, ()):
            view = drive(sources, row, judged[row["host"], row["drive"]], run_dir, past)
            yield row["page"], render.html("drivepage.html.j2", {**common, "drive": view, "host": host})


# What fio's cells leave: its output, the job as it ran, its words.
_WRITTEN = re.compile(r"\.(json\.gz|fio|err)\Z|\Adrive-(telemetry\.bin|smartctl\.txt)\.gz\Z")


def drive(sources: Sources, row: Record, judged: Record, run_dir: str, past: Figures) -> Record:
    """Return what the page of a drive shows."""
    view = drive_views.drive(sources, row, judged)
    files = _raw_files(run_dir, row)
    logs = [
        {**log, "href": files["href"] + log["file"] if log["file"] in files["listed"] else ""}
        for log in (view["logs"] or {}).get("logs", [])
    ]
    return {**view, "kept_logs": logs, "raw_files": files, "history": _history(sources, row, judged, run_dir, past)}


def _raw_files(run_dir: str, row: Record) -> Record:
    """{href of the folder, files: [{name, href}], more}: what the host left of the drive, as it lies on this
    controller; links are from the page's folder. What no job of ours writes has none: a browser may run what it holds.
    """
    host = host_journal.folder_of(run_dir, row["host"])
    folder = os.path.join(host, "raw", slug(row["drive"])) if host else ""
    listed = sorted(_listed(folder)) if folder else []
    base = f"../../raw/{quote(row['host'], safe='')}/raw/{quote(slug(row['drive']), safe='')}/"
    links = [base + quote(name, safe="") if _WRITTEN.search(name) else "" for name in listed[:MOST_FILES]]
    files = [{"name": name, "href": href} for name, href in zip(listed, links)]
    return {"href": base, "files": files, "more": max(0, len(listed) - MOST_FILES), "listed": listed}


def _history(sources: Sources, row: Record, judged: Record, run_dir: str, past: Figures) -> list[Record]:
    """[{test, metric, rows: [{run, started, value, change, href}], plot}] of what tests track, this run's figure
    last.
    """
    found, name = [], drives.name(row["serial"], row["host"], row["drive"])
    for test in judged["tests"]:
        for window in test["windows"][:1]:
            points = past.get((name, test["test"], window["metric"]), [])
            value = test["metrics"].get(window["metric"])
            if points:
                own = (
                    [(sources.run["run"]["id"], sources.run.get("started") or "", value)]
                    if value is not None and test["counts"]
                    else []
                )
                found.append(
                    {"test": test["test"], "metric": window["metric"], **_past(points + own, window["metric"], run_dir)}
                )
    return found


def _past(points: Points, metric: str, run_dir: str) -> Record:
    unit, divisor = units.unit(metric)
    rows = []
    for place, (run_id, started, value) in enumerate(points):
        before = points[place - 1][2] if place else None
        there = os.path.exists(os.path.join(os.path.dirname(run_dir), run_id, "report", "index.html"))
        href = f"../../../{quote(run_id, safe='')}/report/index.html" if there else ""
        rows.append(
            {
                "run": run_id,
                "started": started,
                "value": value,
                "change": value / before - 1 if before else None,
                "href": href,
            }
        )
    line = {
        "label": metric,
        "x": list(range(1, len(points) + 1)),
        "y": [significant(value / divisor) for _run, _at, value in points],
    }
    title = metric.replace("_", " ") + (f" ({unit})" if unit else "")
    plot = {"x_title": "Run, the last one is this", "y_title": title, "counted": True, "lines": [line]}
    return {"rows": rows[::-1], "plot": plot}
