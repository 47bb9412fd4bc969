# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A drive's figures over the runs: from the store where there is one, else from the reports of earlier runs beside this
one. Reads only.
"""

from __future__ import annotations

import os
import typing as t

from ..common import drives
from ..report.page_list import Figures
from ..run_folder import earlier_reports, runs
from . import engine, frames, store_requirements

Record = dict[str, t.Any]
MOST_RUNS = 30
# Of the reports of earlier runs, where there is no store: each is read as a whole.
MOST_REPORTS = 10
_SERIALS_A_QUERY = 500


def of_drives(results_dir: str, store_url: str, run: Record, serials: t.Collection[str]) -> Figures:
    """{(serial, test, metric): points} of the runs before this one, of the metrics that tests track. A store that
    cannot be read tells nothing here: the task that fills it says what is wrong.
    """
    started = run.get("started") or ""
    tracked = {
        item.get("metric") for about in (run.get("tests") or {}).values() for item in about.get("tracked") or []
    } - {None}
    if not serials or not tracked:
        return {}
    try:
        url = there(results_dir, store_url)
        if url:
            return _newest(_of_store(url, sorted(serials), sorted(tracked), started))
    except (store_requirements.StoreError, OSError):
        pass
    return _newest(_of_reports(results_dir, run, set(serials), tracked))


def there(results_dir: str, store_url: str) -> str:
    """Return the URL of the store, where there is one and it can be read as tables; else "". Raises StoreError."""
    url = engine.resolve(store_url, results_dir)
    if not url or store_requirements.missing(url, tables=True):
        return ""
    file = engine.path(url)
    return url if file is None or os.path.exists(file) else ""


def _of_store(url: str, serials: list[str], metrics: list[str], before: str) -> Figures:
    starts = {run_id: at for run_id, at in frames.started(url).items() if at < before}
    found: Figures = {}
    for place in range(0, len(serials), _SERIALS_A_QUERY):
        table = frames.long(
            url,
            runs=list(starts),
            metrics=metrics,
            rounds=False,
            valid=True,
            serials=serials[place : place + _SERIALS_A_QUERY],
        )
        own = table[table["cell"].isna()]
        for run_id, serial, test, metric, value in zip(
            own["run"], own["serial"], own["test"], own["metric"], own["value"]
        ):
            found.setdefault((serial, test, metric), []).append((run_id, starts[run_id], float(value)))
    return found


def _of_reports(results_dir: str, run: Record, serials: set[str], metrics: set[str]) -> Figures:
    starts = {own.id: own.started for own in runs.on_controller(results_dir)}
    found: Figures = {}
    for summary in earlier_reports.earlier(results_dir, run, MOST_REPORTS):
        run_id = summary["run"]["id"]
        for drive in summary["drives"]:
            serial = drives.name(drive.get("serial"), drive["host"], drive["drive"])
            for test in drive["tests"] if serial in serials else ():
                for metric in metrics & set(test["metrics"]) if test["counts"] else ():
                    if test["metrics"][metric] is not None:
                        found.setdefault((serial, test["test"], metric), []).append(
                            (run_id, starts.get(run_id, ""), test["metrics"][metric])
                        )
    return found


def _newest(found: Figures) -> Figures:
    return {key: sorted(points, key=lambda point: (point[1], point[0]))[-MOST_RUNS:] for key, points in found.items()}
