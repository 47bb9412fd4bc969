# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Judge a run's folder and write its report: index.html, plotly.min.js, results.csv, summary.json, junit.xml."""

from __future__ import annotations

import os
import typing as t

from ...module_utils.run import folder as rundir
from ...module_utils.core.files import read_json, write_atomic
from ..fleet import judging
from ..results import store
from . import drives as drive_views
from . import files as report_files
from . import page, render
from . import raw as report_raw
from .sources import Sources

Mapping = t.Dict[str, t.Any]

SCHEMA_VERSION = 1


class ReportError(Exception):
    """The run's folder cannot be judged; the message says what to do."""


class Report(t.NamedTuple):
    """`path` of index.html; `changed`: whether a file was (or would be) written; `judgement`: of judge.judge()."""

    path: str
    changed: bool
    judgement: Mapping


def _plotly_js() -> str:
    """Plotly's own script; imported late, since only a report needs the package."""
    from plotly.offline import get_plotlyjs

    return get_plotlyjs()


def make(results_dir: str, run_id: str, write: bool = True) -> Report:
    """Judge <results_dir>/<run_id> and bring its report/ up to date; with `write` false only say whether it is.

    Raises ReportError when there is no such run or its run.json or results.jsonl cannot be read, and OSError when the
    report cannot be written.
    """
    run_dir = os.path.join(results_dir, run_id)
    run = _load_run(results_dir, run_id)
    try:
        loaded = store.load_all(os.path.join(run_dir, "results.jsonl"))
    except ValueError as error:
        raise ReportError(str(error)) from error
    sources = _sources(run_dir, run, loaded)
    files = _files(sources)
    folder = os.path.join(run_dir, "report")
    stale = {name: text for name, text in files.items() if _read(os.path.join(folder, name)) != text}
    if write and stale:
        os.makedirs(folder, exist_ok=True)
        for name, text in stale.items():
            write_atomic(os.path.join(folder, name), text)
    return Report(os.path.join(folder, "index.html"), bool(stale), sources.judgement)


def _load_run(results_dir: str, run_id: str) -> Mapping:
    if not rundir.RUN_ID_PATTERN.fullmatch(run_id):
        what = f"ssd_run_id {run_id!r} is not a run id" if run_id else "ssd_run_id is empty"
        raise ReportError(f"{what}: give the id of a run; in {results_dir} there are: {_known(results_dir)}")
    path = os.path.join(results_dir, run_id, "run.json")
    try:
        run = read_json(path)
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
        raise ReportError(f"{path}: schema_version {run.get('schema_version')!r}, but this ssdlab.fleet reads {SCHEMA_VERSION}")
    return run


def _known(results_dir: str) -> str:
    try:
        names = sorted(name for name in os.listdir(results_dir) if os.path.exists(os.path.join(results_dir, name, "run.json")))
    except OSError:
        names = []
    return ", ".join(names[-10:]) or "none"


def _sources(run_dir: str, run: Mapping, loaded: store.Loaded) -> Sources:
    of_kind: dict[str, list[Mapping]] = {"host": [], "drive": [], "test": []}
    for record in loaded.records:
        of_kind.setdefault(record["kind"], []).append(record)
    names = {record["host"] for kind in ("host", "drive", "test") for record in of_kind[kind]}
    raw = {name: report_raw.read(run_dir, name) for name in sorted(names)}
    for record in of_kind["test"]:
        measured = raw[record["host"]].measurements.get((record["drive"], record["test"], record.get("attempt", 1)))
        record["cells"] = measured.averages if measured else []
    judged = judging.judge_run(os.path.dirname(run_dir), run, loaded.records)
    return Sources(
        run=run,
        judgement=judged.judgement,
        fleet=judged.fleet,
        records={(record["host"], record["drive"], record["test"]): record for record in of_kind["test"]},
        drives={(record["host"], record["drive"]): record for record in of_kind["drive"]},
        hosts={record["host"]: record for record in of_kind["host"]},
        raw=raw,
        damaged_lines=loaded.damaged_lines,
    )


def _files(sources: Sources) -> dict[str, str]:
    """The report's files by name; index.html last, so that whoever sees it finds the others."""
    return {
        "plotly.min.js": _plotly_js(),
        "results.csv": report_files.csv_text(sources.run, sources.judgement, sources.records),
        "summary.json": report_files.summary(sources.run, sources.judgement, sources.fleet, drive_views.derived_of(sources)),
        "junit.xml": report_files.junit(sources.run, sources.judgement),
        "index.html": render.html("index.html.j2", page.view(sources)),
    }


def _read(path: str) -> str | None:
    try:
        with open(path, encoding="utf-8", newline="") as file:
            return file.read()
    except (OSError, UnicodeDecodeError):
        return None


def outcome(made: Report) -> Mapping:
    """What the task returns: {report, verdicts, drives: [{host, drive, model, verdict, reason}], all_passed, failures: [lines]}."""
    judged = made.judgement["drives"]
    drives = [
        {**{name: drive[name] for name in ("host", "drive", "model", "verdict")}, "reason": next(iter(drive["reasons"]), "")}
        for drive in judged
    ]
    failures = [
        f"{drive['host']} {drive['drive']}: {drive['verdict'].replace('_', ' ')}: {'; '.join(drive['reasons'])}"
        for drive in judged
        if drive["verdict"] != "pass"
    ]
    return {
        "report": made.path,
        "verdicts": made.judgement["verdicts"],
        "drives": drives,
        "all_passed": made.judgement["all_passed"],
        "failures": failures or ([] if judged else ["no drive was asked for: name some in ssd_drives of the inventory"]),
    }
