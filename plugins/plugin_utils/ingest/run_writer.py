# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Take results that were measured elsewhere into a run's folder, marked as such. What is there of the same drive is
replaced; the same files again change nothing.
"""

from __future__ import annotations

import gzip
import json
import os
import platform
import typing as t
from dataclasses import dataclass, replace

from ansible.release import __version__ as ansible_version

from ...module_utils.core import files
from ...module_utils.core.files import SCHEMA_VERSION
from ...module_utils.records import base
from ...module_utils.records.base import Json
from ...module_utils.records.identity import Identity
from ...module_utils.records.plan import CollectedDrive, CollectedPlan, PlannedRun, PlannedTest
from ...module_utils.records.results import Brief
from ...module_utils.records.run_files import DriveStatus, Status
from ...module_utils.run.folder import JOURNAL, PLAN
from ..common.version import collection_version
from ..plan import platforms
from ..plan.testfiles import load_plan
from ..preflight.host_plans import about_test
from ..run_folder import host_folder, results_log, run_record
from ..run_folder.run_record import MeasuredElsewhere, RequestedDrive, RunRecord
from ..validation import record_check
from . import fio_results, iometer_results, result_files, rounds_by_time
from .drive_journal import Journal, StatedDrive, time_text
from .measured_run import Document, IngestError, MeasuredRun
from .rounds_by_time import IngestedTest

# Of fio's engine, or of Iometer: drives that were measured elsewhere are peers of each other, never of our own.
ENGINE = "{0} (elsewhere)"


@dataclass(frozen=True)
class Rendered:
    """The plan that render.yml wrote, with what it was given. plan: as ssd_plan."""

    plan: t.Any
    tests_dirs: t.Sequence[str]
    platform: str
    queue_depth: int


@dataclass(frozen=True)
class Request:
    """What an operator gives. rendered: None takes results as they are, as one test `test`."""

    results_dir: str
    run_id: str
    run_name: str
    drive: StatedDrive
    files: t.Sequence[str]
    rendered: Rendered | None
    test: str
    criteria: list[Json]


@dataclass(frozen=True)
class Ingested:
    """What was taken. tests: {name: rounds}."""

    folder: str
    tests: t.Mapping[str, int]
    began: str
    changed: bool
    warnings: t.Sequence[str]


def ingest(request: Request, write: bool = True) -> Ingested:
    """Take results into their run's folder. Raises IngestError, PlanError, OSError, and ValueError of a damaged
    run.json.
    """
    folder = os.path.join(request.results_dir, request.run_id)
    before = _run_before(folder, request)
    documents = result_files.read(request.files)
    tests, definitions = _tests(request, documents)
    runs = [run for one in tests for run in one.runs]
    began = time_text(min(run.began_s for run in runs))
    warnings = _times_to_come(runs)
    host = os.path.join(folder, "raw", request.drive.host)
    raw_folder = os.path.join("raw", files.slug(request.drive.label))
    raw = {one.name: os.path.join(raw_folder, f"{files.own_slug(one.name)}.gz") for one in documents}
    journal = Journal(request.run_id, request.drive, raw).write(tests, collection_version() or "")
    content = {os.path.join(host, raw[one.name]): gzip.compress(one.content, mtime=0) for one in documents}
    content.update(_host_files(host, request.drive.label, journal, [one.test for one in tests]))
    record = base.sparse_json(_record(request, tests, definitions, began, before))
    changed = [_put(path, data, write) for path, data in content.items()]
    if write:
        changed.append(run_record.write_run(folder, record, is_decision=False))
        _append(folder, host, request, runs)
    return Ingested(folder, {one.test.name: len(one.rounds) for one in tests}, began, any(changed), warnings)


def _run_before(folder: str, request: Request) -> Json | None:
    """Return the run's record, if it has one. Raises IngestError where it is a run of ours."""
    before = run_record.read_run(folder)
    if before is None and run_record.results_size(folder):
        raise IngestError(
            f"{folder} has results and no {run_record.RUN}, which says whose they are: give another ssd_run_id"
        )
    own = [entry for entry in (before or {}).get("asked") or [] if not entry.get("measured_elsewhere")]
    if own:
        raise IngestError(
            f"run {request.run_id} was measured by this collection ({own[0].get('host')} {own[0].get('drive')}): what "
            "was measured elsewhere needs a run of its own; give another ssd_run_id"
        )
    return before


def _tests(request: Request, documents: t.Sequence[Document]) -> tuple[list[IngestedTest], dict[str, Json]]:
    """(the tests with their runs, {test: what run.json keeps of it}). Raises IngestError and PlanError."""
    asked = request.rendered
    if asked is None:
        runs = _runs(documents, rounds_by_time.NoJobs())
        rounds_by_time.check_together(runs)
        tests = rounds_by_time.without_plan(runs, request.test)
        return tests, {one.test.name: about_test(t.cast(t.Any, one.test)) for one in tests}
    loaded = load_plan(asked.plan, asked.tests_dirs)
    identity = Identity(**{key: value for key, value in request.drive.identity.items() if key.endswith("_bytes")})
    example = platforms.platforms()[asked.platform]["example"] if asked.platform != platforms.ICF else ""
    planned = platforms.planned(loaded, asked.platform, example, identity, asked.queue_depth)
    runs = _runs(documents, rounds_by_time.RenderedJobs(planned))
    rounds_by_time.check_together(runs)
    tests = rounds_by_time.of_plan(runs, planned)
    known = {test.name: test for test in loaded}
    return tests, {one.test.name: about_test(known[one.test.name]) for one in tests}


def _runs(documents: t.Sequence[Document], jobs: fio_results.Jobs) -> list[MeasuredRun]:
    found: list[MeasuredRun] = []
    for document in documents:
        if iometer_results.is_iometer(document):
            found += iometer_results.runs(document)
        elif fio_results.is_fio(document):
            found += fio_results.runs(document, jobs)
        else:
            raise IngestError(
                f"{document.name}: neither fio's JSON nor Iometer's CSV: remove it from the folder, or give only the "
                "files of results (ingest_files)"
            )
    return found


def _times_to_come(runs: t.Sequence[MeasuredRun]) -> list[str]:
    last = max(runs, key=lambda run: run.ended_s)
    if time_text(last.ended_s) <= files.now():
        return []
    return [f"{last.place}: its time, {time_text(last.ended_s)}, is still to come: the clock there was wrong"]


def _host_files(host: str, label: str, journal: t.Sequence[Json], tests: t.Sequence[PlannedTest]) -> dict[str, bytes]:
    """Return journal and plan of the host, with what other drives of it have there."""
    path = os.path.join(host, JOURNAL)
    kept = [json.loads(line) for line in (_read(path) or b"").splitlines()]
    kept = [line for line in kept if line.get("drive") not in (None, label)]
    # One job stands for all drives of a host.
    lines = [journal[0], *kept, *journal[1:]]
    plan = base.parse(CollectedPlan, files.read_json(os.path.join(host, PLAN)) or {"drives": []})
    drives = [drive for drive in plan.drives if drive.drive != label] + [CollectedDrive(label, list(tests))]
    made = CollectedPlan(sorted(drives, key=lambda one: one.drive), parallel_drives=1)
    text = json.dumps(base.sparse_json(made), indent=1, sort_keys=True) + "\n"
    whole = "".join(json.dumps(line, sort_keys=True) + "\n" for line in lines)
    return {path: whole.encode(), os.path.join(host, PLAN): text.encode()}


def _record(
    request: Request, tests: t.Sequence[IngestedTest], definitions: dict[str, Json], began: str, before: Json | None
) -> RunRecord:
    drive, runs = request.drive, [run for one in tests for run in one.runs]
    asked = RequestedDrive(
        host=drive.host,
        drive=drive.label,
        tests=[one.test.name for one in tests],
        engine=ENGINE.format(runs[0].engine),
        model=drive.identity["model"],
        measured_elsewhere=MeasuredElsewhere(drive.system, sorted({run.tool for run in runs})),
    )
    # merge_run keeps other hosts; other drives of this one are kept here.
    mates = [
        base.parse(RequestedDrive, entry)
        for entry in (before or {}).get("asked") or []
        if entry["host"] == drive.host and entry["drive"] != drive.label
    ]
    return RunRecord(
        schema_version=SCHEMA_VERSION,
        run=PlannedRun(request.run_id, request.run_name),
        started=began,
        asked=sorted([*mates, asked], key=lambda one: one.drive),
        criteria=request.criteria,
        tests=definitions,
        versions={
            "collection": collection_version(),
            "ansible_core": ansible_version,
            "python": platform.python_version(),
        },
    )


def _append(folder: str, host: str, request: Request, runs: t.Sequence[MeasuredRun]) -> None:
    """Add the records of the host's drives to results.jsonl, as far as they say something new."""
    name = request.drive.host
    status = base.to_json(_status(request, host, max(run.ended_s for run in runs)))
    read = host_folder.read(host, request.run_id, "finished", status)
    wrong = [*read.damage, *read.problems]
    if wrong:
        raise IngestError(f"{host}: {wrong[0]}; remove that folder and run this again for each of its drives")
    checked = record_check.collected(read.records, request.run_id, name, files.now())
    brief = Brief(os=request.drive.system, tools={run.tool.partition("-")[0]: run.tool for run in runs})
    results = results_log.ResultsFile()
    results.open(request.results_dir, request.run_id)
    about = results_log.host_record(name, "ok", "", request.run_id, brief)
    results.add([about, *checked.records])


def _status(request: Request, host: str, ended_s: float) -> Status:
    """Return what a host job that is done would tell of the drives in its journal."""
    when = time_text(ended_s)
    lines = [json.loads(line) for line in (_read(os.path.join(host, JOURNAL)) or b"").splitlines()]
    ends = [line for line in lines if line["event"] == "drive_finished"]
    done = DriveStatus(
        drive="",
        path=None,
        phase="done",
        outcome="complete",
        test=None,
        test_index=0,
        tests=0,
        round=0,
        round_max=None,
        cell=None,
        last=None,
        time_left_s=None,
        message="",
        later_s=None,
        updated=when,
        news_within_s=None,
    )
    return Status(
        schema_version=SCHEMA_VERSION,
        run_id=request.run_id,
        run_name=request.run_name,
        host=request.drive.host,
        boot_id=None,
        pid=1,
        pid_start=None,
        unit=None,
        engine_version=collection_version() or "unknown",
        state="finished",
        started=when,
        updated=when,
        restored=True,
        message="",
        drives=[replace(done, **{key: end[key] for key in ("drive", "outcome", "message")}) for end in ends],
    )


def _read(path: str) -> bytes | None:
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return None


def _put(path: str, data: bytes, write: bool) -> bool:
    """Write a file as a whole. Whether it was another one."""
    if _read(path) == data:
        return False
    if write:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        aside = os.path.join(os.path.dirname(path), files.aside_prefix(os.path.basename(path)) + "new")
        with open(aside, "wb") as file:
            file.write(data)
        os.replace(aside, path)
    return True
