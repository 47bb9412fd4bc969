# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The runs before one out of the store, for a report where no earlier report is at hand (in an execution environment);
and a drive's figures over the runs, from the store or from the reports beside this one. Reads only.

What was low then stands in reports alone: so nothing is said of hosts that are low since, or of drives that were low
elsewhere.
"""

from __future__ import annotations

import os
import typing as t

from ..common import drives
from ..report.page_list import Figures
from ..run_folder import earlier_reports, runs
from ..verdict import comparability
from . import database, frames, import_records, store_requirements
from .database import opened
from .schema import tables
from .store_requirements import StoreError, sa

if t.TYPE_CHECKING:
    from ..peers.previous_runs import Past


Record = dict[str, t.Any]
MOST_RUNS = 30
# Of the reports of earlier runs, where there is no store: each is read as a whole.
MOST_REPORTS = 10
_SERIALS_A_QUERY = 500

COLUMNS = ("host", "drive", "serial", "model", "firmware", "test", "metric", "value", "conditions")

Mapping = t.Mapping[str, t.Any]


def figures_of_drives(results_dir: str, store_url: str, run: Record, serials: t.Collection[str]) -> Figures:
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
        url = history_source(results_dir, store_url)
        if url:
            return _newest(_of_store(url, sorted(serials), sorted(tracked), started))
    except (store_requirements.StoreError, OSError):
        pass
    return _newest(_of_reports(results_dir, run, set(serials), tracked))


def history_source(results_dir: str, store_url: str) -> str:
    """Return the URL of the store, where there is one and it can be read as tables; else "". Raises StoreError."""
    url = database.resolve(store_url, results_dir)
    if not url or store_requirements.missing(url, tables=True):
        return ""
    file = database.path(url)
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


def of_store(results_dir: str, store_url: str, run: Mapping, most: int) -> Past | None:
    """Of at most so many runs of this name that began before this one; None where the store has none, or cannot be
    read: the task that fills it says what is wrong.
    """
    try:
        url = history_source(results_dir, store_url)
        return before(url, run, most) if url else None
    except (StoreError, OSError):
        return None


def before(url: str, run: Mapping, most: int) -> Past | None:
    """As `of_store`, of the store at a URL. It holds one run's long table at a time. Raises StoreError."""
    # What imports pandas waits until it is known to be there.
    from ..peers import moved_drives, previous_runs

    starts = _runs(url, run, most)
    if not starts:
        return None
    claims: list[moved_drives.Claim] = []
    figures = previous_runs.FigureTable()
    texts: previous_runs.Texts = {}
    last = None
    for run_id, started in starts.items():
        drives = _drives(url, run_id)
        last = last or previous_runs.Night(run_id, drives, frozenset(), frozenset())
        claims += previous_runs.kept(moved_drives.of_drives(drives, run_id, started, {}), texts)
        figures.add(_figures(url, run_id, drives))
    return previous_runs.Past(list(starts), last, claims, figures)


def _figures(url: str, run_id: str, drives: t.Sequence[Mapping]) -> t.Any:
    from ..peers import long_table

    table = frames.long(url, runs=[run_id], rounds=False, valid=True, columns=COLUMNS, cells=False)
    unknown = table["model"].isna().to_numpy()
    if unknown.any():
        models = {(drive["host"], drive["drive"]): drive["model"] or "" for drive in drives}
        told = [models.get(place, "") for place in zip(table["host"], table["drive"])]
        under = [
            comparability.of_model(text, model) if model else text for text, model in zip(table["conditions"], told)
        ]
        found = {"model": told, "conditions": under}
        table = table.assign(
            **{name: table[name].astype(object).where(~unknown, texts) for name, texts in found.items()}
        )
    return long_table.with_distinct_serials(table)


def _runs(url: str, run: Mapping, most: int) -> dict[str, str]:
    """{id: when it began} of the runs before, newest first."""
    table, about = tables().run, run["run"]
    which = sa.select(table.c.run_id, table.c.started).where(
        table.c.name == about["name"], table.c.run_id != about["id"], table.c.started < str(run.get("started") or "")
    )
    with opened(url) as store, store.reading() as connection:
        found = connection.execute(which.order_by(table.c.started.desc(), table.c.run_id.desc()).limit(most))
        return {row.run_id: row.started for row in found}


def _drives(url: str, run_id: str) -> list[dict[str, t.Any]]:
    """As previous_runs.Night has them."""
    run, host, drive, part, campaign, judgement = (
        getattr(tables(), name) for name in ("run", "host", "drive", "part", "campaign", "judgement")
    )
    joined = campaign.join(part, campaign.c.part_id == part.c.id).join(run, part.c.run_id == run.c.id)
    joined = joined.join(host, part.c.host_id == host.c.id).outerjoin(drive, campaign.c.drive_id == drive.c.id)
    joined = joined.outerjoin(judgement, judgement.c.campaign_id == campaign.c.id)
    columns = (host.c.name.label("host"), campaign.c.label.label("drive"), drive.c.model, drive.c.serial)
    # The store knows drives by their serial number or WWN; of one without, the judgement alone tells the model.
    nameless = sa.case((campaign.c.drive_id.is_(None), judgement.c.content)).label("judged")
    query = sa.select(*columns, campaign.c.verdict, nameless).select_from(joined).where(run.c.run_id == run_id)
    with opened(url) as store, store.reading() as connection:
        found = [dict(row) for row in connection.execute(query).mappings()]
    for one in found:
        judged = one.pop("judged")
        if judged is not None:
            one["model"] = import_records.unpacked(judged).get("model")
    return found
