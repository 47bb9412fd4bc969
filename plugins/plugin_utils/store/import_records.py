# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a run's folder has for the store: its run.json, and each host's records with what the journal adds to them. It
reads by the report's readers.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
import typing as t
import zlib

from ...module_utils.core.files import SCHEMA_VERSION
from ...module_utils.records import base
from ...module_utils.records.plan import PlannedTest, Validity
from ...module_utils.run.folder import JOURNAL, PLAN, RUN_ID_PATTERN
from ...module_utils.run.reducer import USUAL, Budget, JournalAttempt
from ..common.values import number
from ..report.host_journal import folder_of, tests_of
from ..run_folder import remeasurement, results_log, run_record
from ..validation import journal
from ..verdict import comparability
from .store_requirements import StoreError

# Raise it when records are made into something else here: then a folder that is known is read again.
VERSION = 5
# Of a figure that is no cell's and no round's: the test's own, over its window.
NO_CELL, NO_ROUND = "", 0

# What `complete` adds to a test's record.
FROM_JOURNAL = ("cells", "tracked", "link")

Record = dict[str, t.Any]
# (kind, drive, test); "" for what a kind has not
Key = tuple[str, str, str]
Figure = tuple[int, str, str]


class Folder(t.NamedTuple):
    """A run's folder. hosts: {host: its newest records}; hosts that were asked and have none are there too. problems:
    what was left out.
    """

    path: str
    run: Record
    hosts: dict[str, list[Record]]
    problems: list[str]


def read(run_dir: str) -> Folder:
    """Return a run's folder but for the journals. Raises StoreError where it cannot be read."""
    path = os.path.join(run_dir, run_record.RUN)
    try:
        run = run_record.read_run(run_dir)
        loaded = results_log.load_all(os.path.join(run_dir, run_record.RESULTS))
        newest = remeasurement.merged(run_dir, loaded.records)
    except (OSError, ValueError) as error:
        raise StoreError(f"{path} or results.jsonl beside it cannot be read: {error}") from error
    if run is None:
        raise StoreError(f"there is no run in {run_dir}: {path} is missing")
    run_id = (run.get("run") or {}).get("id")
    if (
        run.get("schema_version") != SCHEMA_VERSION
        or not isinstance(run_id, str)
        or not RUN_ID_PATTERN.fullmatch(run_id)
    ):
        raise StoreError(f"{path} is not a run's record of schema version {SCHEMA_VERSION}")
    hosts: dict[str, list[Record]] = {entry["host"]: [] for entry in run["asked"]}
    for record in newest:
        if record["run_id"] == run_id:
            hosts.setdefault(record["host"], []).append(record)
    problems = [f"{run_dir}/results.jsonl: line {line} names no drive, test or host" for line in loaded.damaged_lines]
    return Folder(run_dir, run, hosts, problems)


def source(folder: Folder, host: str, raw: bool) -> str:
    """Return a checksum of all that a host's part of the store is made from; the same again means that there is
    nothing to do.
    """
    run = folder.run
    about = {name: run.get(name) for name in ("criteria", "tests", "unknown_causes")}
    asked = [entry for entry in run["asked"] if entry["host"] == host]
    found = hashlib.sha256(checksum([VERSION, raw, about, asked, folder.hosts[host]]).encode())
    place = folder_of(folder.path, host)
    if place is not None:
        try:
            with open(os.path.join(place, JOURNAL), "rb") as file:
                for block in iter(lambda: file.read(1 << 20), b""):
                    found.update(block)
        except FileNotFoundError:
            pass
    return found.hexdigest()


def complete(folder: Folder, host: str) -> tuple[list[Record], str]:
    """Return a host's records, each test's with the `cells`, `tracked` ([[round, cell, metric, value]]) and `link` of
    its journal; what was left out.
    """
    problems, budget = journal.Problems(), Budget()
    found: dict[tuple[str, str, int], _FromJournal] = {}
    for place, event, spec, validity in _events(folder, host, problems):
        if place not in found:
            found[place] = _FromJournal(spec, budget, validity)
        found[place].take(event)
    records = []
    for record in folder.hosts[host]:
        if record["kind"] == "test":
            attempt = found.get((record["drive"], record["test"], record["attempt"]))
            record = {**record, **(attempt.fields if attempt else {})}
        records.append(record)
    return records, problems.text()


def _events(
    folder: Folder, host: str, problems: journal.Problems
) -> t.Iterator[tuple[tuple[str, str, int], Record, PlannedTest | None, Validity]]:
    """(drive, test and attempt, event, the rendered test, what its cells are held to) of a host's journal; what was
    measured again goes on with the attempts of the first measurement.
    """
    firsts = {
        (record["drive"], record["test"]): record["again"]["first"]["attempt"]
        for record in folder.hosts[host]
        if (record.get("again") or {}).get("first")
    }
    for run_dir, before in ((folder.path, {}), (remeasurement.folder_of(folder.path), firsts)):
        place = folder_of(run_dir, host)
        if place is None or (run_dir != folder.path and not before):
            continue
        plan = journal.plan(os.path.join(place, PLAN), problems)
        specs, validity = tests_of(plan), plan.validity if plan else USUAL
        for event in journal.events(os.path.join(place, JOURNAL), problems):
            if event["event"] in journal.OF_TESTS and (not before or (event["drive"], event["test"]) in before):
                drive, test = event["drive"], event["test"]
                attempt = event["attempt"] + before.get((drive, test), 0)
                yield (drive, test, attempt), event, specs.get(drive, {}).get(test), validity


class _FromJournal:
    """What one attempt's events add to its record (FROM_JOURNAL). test, budget, validity: as in JournalAttempt."""

    def __init__(self, test: PlannedTest | None, budget: Budget, validity: Validity) -> None:
        self._journal = JournalAttempt(test, budget, validity=validity)
        self.fields: Record = {"cells": [], "tracked": [], "link": None}

    def take(self, event: Record) -> None:
        """Add an event, in the journal's order."""
        self._journal.take(event)
        if event["event"] == "test_finished":
            self.fields["cells"] = base.to_json(self._journal.result().cells)
        elif event["event"] == "round":
            tracked = self._journal.tracked().items()
            self.fields["tracked"] += [[event["round"], cell, metric, value] for (cell, metric), value in tracked]
        elif event["event"] == "sample":
            self.fields["link"] = self.fields["link"] or comparability.link_of_sample(event)


def key(record: Record) -> Key:
    """Return which record of its host and run this is."""
    return record["kind"], record.get("drive") or "", record.get("test") or ""


def merged(stored: t.Iterable[Record], given: t.Iterable[Record]) -> list[Record]:
    """Return the newest of each key, whatever order folders come in; of two of one time the one that has its cells."""
    newest: dict[Key, Record] = {}
    for record in [*stored, *given]:
        known = newest.get(key(record))
        if known is None or _age(record) >= _age(known):
            newest[key(record)] = record
    return [newest[name] for name in sorted(newest)]


def begun_anew(given: t.Iterable[Record]) -> str:
    """When a host began to measure anew, as far as these records tell; what was stored before no longer counts then. ""
    where it did not.
    """
    return max(
        (
            record["time"].rstrip("Z")
            for record in given
            if record["kind"] == "host" and record["state"] == results_log.STARTED
        ),
        default="",
    )


def _age(record: Record) -> tuple[int, str, bool]:
    # A host's clock may be set back between two attempts: they are counted. Times are texts of one form; with or
    # without a fraction they compare once the Z is gone.
    return record.get("attempt") or 0, record["time"].rstrip("Z"), bool(record.get("cells"))


def merged_run(before: Record | None, now: Record) -> Record:
    """run.json of all slices of a run, the same in whatever order they came."""
    both = run_record.merge_run(before, now)
    order = sorted(range(len(both["asked"])), key=lambda at: (both["asked"][at]["host"], at))
    asked = [both["asked"][at] for at in order]
    # Each slice has its controller's; one word of two has to stay, whichever came last.
    seen = [record.get("versions") or {} for record in (before or {}, now)]
    versions = {name: max(str(each[name]) for each in seen if name in each) for name in sorted({*seen[0], *seen[1]})}
    found = {**both, "asked": asked, "tests": dict(sorted(both["tests"].items())), "versions": versions}
    return {**found, "warnings": sorted(found["warnings"], key=checksum)} if found.get("warnings") else found


def known_as(identity: t.Mapping[str, t.Any]) -> str:
    """Return what tells a drive from all others, wherever it is: its serial number and model, else its WWN. "" where it
    has neither.
    """
    serial, wwn, model = (str(identity.get(name) or "") for name in ("serial", "wwn", "model"))
    return f"serial {model} {serial}" if serial else f"wwn {wwn}" if wwn else ""


def figures(record: Record) -> dict[Figure, float]:
    """Return what a test's record holds in numbers: {(round, cell, metric): value}."""
    found = {(NO_ROUND, NO_CELL, metric): value for metric, value in record["metrics"].items()}
    found.update(
        {
            (NO_ROUND, cell["cell"], metric): value
            for cell in record.get("cells") or []
            for metric, value in (cell.get("metrics") or {}).items()
        }
    )
    found.update({(at, cell, metric): value for at, cell, metric, value in record.get("tracked") or []})
    return {figure: value for figure, value in sorted(found.items()) if number(value) is not None}


def layout_text(measured: t.Iterable[Figure]) -> str:
    """Return a layout as it is stored: which figure stands where in a vector."""
    return json.dumps(list(measured), separators=(",", ":"))


def layout(content: bytes) -> list[Figure]:
    """Return a layout as it was stored: what each value of a vector is."""
    return [(figure[0], figure[1], figure[2]) for figure in json.loads(unpacked(content))]


def vector(values: t.Collection[float]) -> bytes:
    """Figures as they are stored: doubles, the least significant byte first."""
    return struct.pack(f"<{len(values)}d", *values)


def digest(text: str) -> str:
    """Return a checksum of a text."""
    return hashlib.sha256(text.encode()).hexdigest()


def checksum(content: t.Any) -> str:
    """Return a checksum of what JSON can hold."""
    return digest(json.dumps(content, sort_keys=True))


def packed(content: t.Any) -> bytes:
    """Return a record as it is stored."""
    return zlib.compress(json.dumps(content, sort_keys=True, separators=(",", ":")).encode(), 6)


def unpacked(content: bytes) -> t.Any:
    """Return what `packed` made a record of."""
    return json.loads(zlib.decompress(content))
