# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Judge a run's folder and write its report: pages for people, summary.json, results*.csv, junit.xml, message.txt."""

from __future__ import annotations

import itertools
import os
import typing as t

from ...module_utils.core.files import SCHEMA_VERSION, read_json, write_atomic
from ...module_utils.run import folder as rundir
from ..peers import fleet_verdicts
from ..run_folder import remeasurement, results_log, run_record, runs
from ..validation import printable
from ..verdict import judge
from . import (
    assets,
    chat_message,
    download_files,
    drive_rows,
    page,
    page_list,
    page_names,
    render,
    run_sources,
    supplier,
)
from .run_sources import Sources

Record = dict[str, t.Any]


class ReportError(Exception):
    """The run's folder cannot be judged; the message says what to do."""


class ReportOptions(t.NamedTuple):
    """What a report has beyond what it always has.

    drives: shell patterns of the drives of a large fleet that get a page. supplier_model: shell pattern of the models
      of a supplier's page, ""
    for none. history: what drives did in earlier runs.
    """

    drives: t.Sequence[str] = ()
    supplier_model: str = ""
    history: page_list.History | None = None


class Report(t.NamedTuple):
    """`path` of index.html; `changed`: whether a file was (or would be) written; `judgement`: of judge.judge();
    `message`: of chat_message.run_message(); `warnings`: about what was asked for and is not there.
    """

    path: str
    changed: bool
    judgement: Record
    message: str
    warnings: t.Sequence[str] = ()


def make(
    results_dir: str,
    run_id: str,
    write: bool = True,
    against: fleet_verdicts.Baseline = fleet_verdicts.Baseline(),
    asked: ReportOptions = ReportOptions(),
) -> Report:
    """Judge <results_dir>/<run_id> and bring its report/ up to date; with `write` false only say whether it is.
    against: what the fleet is compared with.

    Raises ReportError when there is no such run or its run.json or results.jsonl cannot be read, and OSError when the
    report cannot be written.
    """
    run_dir = os.path.join(results_dir, run_id)
    run = load_run(results_dir, run_id)
    try:
        loaded = results_log.load_all(os.path.join(run_dir, run_record.RESULTS))
        loaded = loaded._replace(records=remeasurement.merged(run_dir, loaded.records))
    except ValueError as error:
        raise ReportError(str(error)) from error
    sources = run_sources.sources(run_dir, run, loaded, against)
    said = chat_message.run_message(run, sources.judgement, _before(results_dir, run))
    # A misspelt model costs its page, and not the report.
    wrong = supplier.problem(sources.judgement["drives"], asked.supplier_model)
    asked = asked._replace(supplier_model="") if wrong else asked
    folder = os.path.join(run_dir, "report")
    if write:
        os.makedirs(folder, exist_ok=True)
    changed = assets.put(results_dir, folder, write)
    for name, text in itertools.chain([("message.txt", said)], files(sources, run_dir, asked)):
        path = os.path.join(folder, name)
        if assets.text_of(path) != text:
            changed = True
            if write:
                os.makedirs(os.path.dirname(path), exist_ok=True)
                write_atomic(path, text)
    return Report(os.path.join(folder, "index.html"), changed, sources.judgement, said, [wrong] if wrong else [])


def _before(results_dir: str, run: Record) -> Record | None:
    """Return the verdicts of the newest run of that name before this one: of its own report, or judged from its
    records; None where there is none.
    """
    name, started = run["run"].get("name"), str(run.get("started"))
    earlier = [own for own in runs.on_controller(results_dir) if own.name == name and own.started < started]
    newest = max(earlier, key=lambda own: (own.started, own.id), default=None)
    if newest is None:
        return None
    try:
        found = printable.writable(read_json(os.path.join(newest.folder, run_record.SUMMARY)))
        if found is None:
            records = results_log.load(os.path.join(newest.folder, run_record.RESULTS))
            found = judge.judge(run_record.read_run(newest.folder) or {}, records)
        drives = [{key: str(drive[key]) for key in ("host", "drive", "verdict")} for drive in found["drives"]]
    except (OSError, ValueError, KeyError, TypeError):  # a damaged run of yesterday costs tonight's report nothing
        return None
    return {"run": {"id": newest.id}, "drives": drives}


def load_run(results_dir: str, run_id: str) -> Record:
    """run.json of a run. Raises ReportError."""
    if not rundir.RUN_ID_PATTERN.fullmatch(run_id):
        what = f"ssd_run_id {run_id!r} is not a valid run id" if run_id else "ssd_run_id is empty"
        raise ReportError(f"{what}: give the id of a run; in {results_dir} there are: {_known(results_dir)}")
    path = os.path.join(results_dir, run_id, run_record.RUN)
    try:
        run: Record | None = printable.writable(read_json(path))
    except ValueError as error:
        raise ReportError(
            f"{path} is not readable ({error}); run the playbook preflight with ssd_run_id={run_id} to write it again"
        ) from error
    if run is None:
        raise ReportError(
            f"no run {run_id} on this controller: {path} is missing. Runs in {results_dir}: {_known(results_dir)}."
            " Give ssd_results_dir and ssd_run_id of the run, or run the playbook qualify to start one"
        )
    if run.get("schema_version") != SCHEMA_VERSION:
        raise ReportError(
            f"{path}: schema_version {run.get('schema_version')!r}, but this ssdlab.fleet reads {SCHEMA_VERSION}"
        )
    return run


def hosts(results_dir: str, run_id: str) -> list[str]:
    """Return the names of a run's hosts, as they were asked. Raises ReportError."""
    return sorted({str(entry.get("host")) for entry in load_run(results_dir, run_id).get("asked") or []})


def _known(results_dir: str) -> str:
    try:
        names = sorted(
            name for name in os.listdir(results_dir) if os.path.exists(os.path.join(results_dir, name, run_record.RUN))
        )
    except OSError:
        names = []
    return ", ".join(names[-10:]) or "none"


def files(sources: Sources, run_dir: str, asked: ReportOptions = ReportOptions()) -> t.Iterator[tuple[str, str]]:
    """Yield the report's files, (name, text); index.html last, so that whoever sees it finds the others."""
    rows = drive_rows.rows(sources)
    shown = page_list.chosen(rows, asked.drives, os.path.join(run_dir, "report"))
    yield "pages.css", render.css()
    yield "pages.js", render.script("tables", "charts")
    table = download_files.csv_text(sources.run, sources.judgement, sources.tests)
    yield "results.csv", table
    yield "results-spreadsheet.csv", download_files.spreadsheet_text(table)
    yield (
        "summary.json",
        download_files.summary(
            sources.run, sources.judgement, sources.fleet, sources.derived, sources.drives, sources.tests
        ),
    )
    yield "junit.xml", download_files.junit(sources.run, sources.judgement)
    if asked.supplier_model:
        yield page_names.supplier_page(asked.supplier_model), supplier.text(sources, rows, asked.supplier_model)
    yield from page_list.texts(sources, rows, shown, run_dir, asked.history)
    made = page_list.existing_pages(rows, shown)
    earlier = {own.id for own in runs.on_controller(os.path.dirname(run_dir))}
    # The page of a run of one drive shows it in full.
    only = page_list.drive(sources, rows[0], sources.judgement["drives"][0], run_dir, {}) if len(rows) == 1 else None
    yield (
        "index.html",
        render.html(
            "index.html.j2", {**page.view(sources, rows, made, earlier), "up": "", "only": only, "drive": only}
        ),
    )


def outcome(made: Report) -> Record:
    """Return what the task returns: {report, message, verdicts, drives: [{host, drive, model, verdict, reason}],
    all_passed, failures: [lines]}.
    """
    judged = made.judgement["drives"]
    drives = [
        {
            **{name: drive[name] for name in ("host", "drive", "model", "verdict")},
            "reason": next(iter(drive["reasons"]), ""),
        }
        for drive in judged
    ]
    failures = [
        f"{drive['host']} {drive['drive']}: {drive['verdict'].replace('_', ' ')}: {'; '.join(drive['reasons'])}"
        for drive in judged
        if drive["verdict"] != "pass"
    ]
    return {
        "report": made.path,
        "message": made.message,
        "verdicts": made.judgement["verdicts"],
        "drives": drives,
        "all_passed": made.judgement["all_passed"],
        "failures": failures
        or ([] if judged else ["no drive was asked for: name some in ssd_drives of the inventory"]),
    }
