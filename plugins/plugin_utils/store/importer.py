# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fills the store from the folders of runs. Each host's part of a run is one transaction: killed at any moment, the
store has it as a whole or not at all, and importing again does the rest. What is there already changes nothing.
"""

from __future__ import annotations

import typing as t
from pathlib import Path

from ..run_folder import remeasurement
from ..verdict import comparability, judge
from . import cross_host_verdicts, import_records, rawfiles
from .database import Store, upsert
from .name_ids import Known
from .schema import tables
from .store_requirements import StoreError, ValuesRefused, sa

Record = dict[str, t.Any]


class Imported(t.NamedTuple):
    """hosts: how many hosts' parts changed. problems: what could not be taken, as sentences."""

    run_id: str
    changed: bool
    hosts: int
    problems: list[str]


def import_run(store: Store, run_dir: str, raw: bool = False) -> Imported:
    """Bring one run's folder into the store. raw: with its raw files. Raises StoreError; what was written before that
    stays, and is right.
    """
    folder = import_records.read(run_dir)
    if remeasurement.OF in folder.run:
        run_id, first = folder.run["run"]["id"], folder.run[remeasurement.OF]
        return Imported(run_id, False, 0, [f"{run_id} is in the store with the run that it measured again: {first}"])
    return _import(store, folder, raw)


def _import(store: Store, folder: import_records.Folder, raw: bool) -> Imported:
    run_id = folder.run["run"]["id"]
    problems = list(folder.problems)
    known = Known(store)
    run = _write_run(store, folder.run)
    known.hosts(folder.hosts)
    hosts = set()
    for host in sorted(folder.hosts):
        try:
            host_changed, problem = _import_host(store, known, run, folder, host, raw)
        except ValuesRefused as error:
            # Of this host: the others' are taken.
            host_changed, problem = False, str(error)
        hosts |= {host} if host_changed else set()
        problems += [f"{run_id}: {host}: {problem}"] if problem else []
    hosts |= cross_host_verdicts.across_hosts(store, run.key, str(Path(folder.path).parent))
    return Imported(run_id, run.changed or bool(hosts), len(hosts), problems)


def import_all(store: Store, results_dir: str, raw: bool = False) -> list[Imported]:
    """Return every run of a results folder; one that cannot be read is told in its problems. Raises StoreError where
    the store cannot be written.
    """
    done = []
    for path in sorted(Path(results_dir).glob("*/run.json")):
        try:
            folder = import_records.read(str(path.parent))
            if remeasurement.OF in folder.run:
                continue  # with the run whose drives it measured again
        except StoreError as error:
            done.append(Imported(path.parent.name, False, 0, [str(error)]))
            continue
        done.append(_import(store, folder, raw))
    return done


class _Run(t.NamedTuple):
    """A run in the store: its key, run.json of all its slices, whether this import changed that."""

    key: int
    record: Record
    changed: bool


def _write_run(store: Store, run: Record) -> _Run:
    """Merge run.json into the store."""
    table, run_id = tables().run, run["run"]["id"]
    with store.writing() as connection:
        empty = {
            "run_id": run_id,
            "name": str(run["run"].get("name") or ""),
            "started": run.get("started"),
            "content": import_records.packed(None),
        }
        upsert(connection, table, [empty], ["run_id"], replace=False)
        row = connection.execute(
            sa.select(table.c.id, table.c.content).where(table.c.run_id == run_id).with_for_update()
        ).one()
        whole = import_records.merged_run(import_records.unpacked(row.content), run)
        content = import_records.packed(whole)
        changed = content != row.content
        if changed:
            news = {"content": content, "started": whole.get("started")}
            connection.execute(sa.update(table).where(table.c.id == row.id).values(**news))
        return _Run(row.id, whole, changed)


def _import_host(
    store: Store, known: Known, run: _Run, folder: import_records.Folder, host: str, raw: bool
) -> tuple[bool, str]:
    """One host's part: (whether it changed, what was left out)."""
    part, source = tables().part, import_records.source(folder, host, raw)
    mine = sa.and_(part.c.run_id == run.key, part.c.host_id == known.hosts([host])[host])
    with store.reading() as connection:
        if connection.execute(sa.select(part.c.source).where(mine)).scalar() == source:
            return False, ""
    given, problem = import_records.complete(folder, host)
    # Of what others stored all names are there: they wrote them before.
    _names(known, given)
    with store.writing() as connection:
        empty = {"run_id": run.key, "host_id": known.hosts([host])[host], "source": "", "digest": ""}
        upsert(connection, part, [empty], ["run_id", "host_id"], replace=False)
        row = connection.execute(sa.select(part.c.id, part.c.digest).where(mine).with_for_update()).one()
        _forget(connection, row.id, import_records.begun_anew(given))
        all_records = import_records.merged(_stored(connection, row.id), given)
        asked = [entry for entry in run.record["asked"] if entry["host"] == host]
        about = {name: run.record.get(name) for name in ("criteria", "tests", "unknown_causes")}
        state = import_records.checksum([import_records.VERSION, all_records, asked, about])
        if state != row.digest:
            # What is held to other hosts' figures is judged once all are there: cross_host_verdicts.across_hosts.
            judged = judge.judge({**run.record, "asked": asked}, all_records)["drives"]
            _Part(connection, known, row.id).write(all_records, judged, asked)
        files = rawfiles.write(connection, row.id, folder.path, host) if raw else rawfiles.Written(False, [])
        told = next((record for record in all_records if record["kind"] == "host"), {})
        news = {"state": told.get("state"), "message": told.get("message"), "source": source, "digest": state}
        connection.execute(sa.update(part).where(part.c.id == row.id).values(**news))
    too_large = [f"raw/{host}/{path} is too large for the store" for path in files.left_out]
    problem = "; ".join([problem] * bool(problem) + too_large)
    return state != row.digest or files.changed, problem


def _forget(connection: t.Any, part_key: int, begun: str) -> None:
    """Take away what a host measured before it began anew; the folder's results.jsonl drops it in the same way."""
    if not begun:
        return
    record, campaign, measurement = tables().record, tables().campaign, tables().measurement
    mine = sa.and_(record.c.part_id == part_key, record.c.kind != "host", record.c.time < begun)
    if connection.execute(sa.delete(record).where(mine)).rowcount:
        campaigns = sa.select(campaign.c.id).where(campaign.c.part_id == part_key)
        connection.execute(sa.delete(measurement).where(measurement.c.campaign_id.in_(campaigns)))


def _names(known: Known, given: t.Sequence[Record]) -> None:
    tests = [record for record in given if record["kind"] == "test"]
    known.tests(record["test"] for record in tests)
    known.layouts(import_records.layout_text(import_records.figures(record)) for record in tests)
    known.drives(drive for drive in map(_drive, given) if drive)


def _stored(connection: t.Any, part_key: int) -> list[Record]:
    query = sa.select(tables().record.c.content).where(tables().record.c.part_id == part_key)
    return [import_records.unpacked(content) for content in connection.execute(query).scalars()]


def _drive(record: Record) -> Record | None:
    """Return the drive of a record of kind drive, where it is known which one it is."""
    found = record.get("identity") or {}
    identity = import_records.known_as(found) if record["kind"] == "drive" else ""
    names = {name: str(found[name]) if found.get(name) else None for name in ("serial", "wwn", "model")}
    return {"identity": identity, **names} if identity else None


class _Part:
    """The rows of one host's part, within its transaction."""

    def __init__(self, connection: t.Any, known: Known, part_key: int) -> None:
        self._connection, self._known, self._part = connection, known, part_key

    def write(self, all_records: t.Sequence[Record], judged: t.Sequence[Record], asked: t.Sequence[Record]) -> None:
        """Bring records, campaigns, judgements and measurements up to date; nothing is taken away, as nothing that was
        asked ever is.
        """
        by_key = {import_records.key(record): record for record in all_records}
        rows = [
            {
                "part_id": self._part,
                "kind": kind,
                "label": label,
                "test": test,
                "time": record["time"],
                "content": import_records.packed(record),
            }
            for (kind, label, test), record in by_key.items()
        ]
        upsert(self._connection, tables().record, rows, ["part_id", "kind", "label", "test"])
        tests = [record for record in all_records if record["kind"] == "test"]
        entries = {entry["drive"]: entry for entry in asked}
        campaigns = [
            self._campaign(
                drive,
                by_key.get(("drive", drive["drive"], "")),
                [record for record in tests if record["drive"] == drive["drive"]],
                entries.get(drive["drive"], {}),
            )
            for drive in judged
        ]
        upsert(self._connection, tables().campaign, campaigns, ["part_id", "label"])
        table = tables().campaign
        keys = dict(
            self._connection.execute(sa.select(table.c.label, table.c.id).where(table.c.part_id == self._part)).all()
        )
        judgements = [
            {"campaign_id": keys[drive["drive"]], "content": import_records.packed(drive)} for drive in judged
        ]
        upsert(self._connection, tables().judgement, judgements, ["campaign_id"])
        judged_tests = [(drive["drive"], test) for drive in judged for test in drive["tests"]]
        measured = [
            self._measurement(keys[drive], test, by_key.get(("test", drive, test["test"])))
            for drive, test in judged_tests
        ]
        upsert(self._connection, tables().measurement, [row for row in measured if row], ["campaign_id", "test_id"])

    def _campaign(self, judged: Record, record: Record | None, tests: list[Record], asked: Record) -> Record:
        identity = (record or {}).get("identity") or {}
        found = comparability.of_drive(asked, identity, tests)
        names = ("link", "lba_bytes", "metadata_bytes", "engine", "preferred_write_bytes")
        drive = _drive(record) if record else None
        return {
            "part_id": self._part,
            "label": judged["drive"],
            "drive_id": self._key("drive", "identity", drive["identity"]) if drive else None,
            "firmware": identity.get("firmware"),
            "capacity_bytes": identity.get("size_bytes"),
            **{name: found.get(name) for name in names},
            "outcome": (record or {}).get("outcome"),
            "verdict": judged["verdict"],
        }

    def _measurement(self, campaign_key: int, judged: Record, record: Record | None) -> Record | None:
        if record is None:
            return None
        found = import_records.figures(record)
        layout = self._key("layout", "digest", import_records.digest(import_records.layout_text(found)))
        return {
            "campaign_id": campaign_key,
            "test_id": self._key("test", "name", record["test"]),
            "attempt": record["attempt"],
            "outcome": record["outcome"],
            "verdict": judged["verdict"],
            "counts": int(judged["counts"]),
            "started": record["started"],
            "finished": record["finished"],
            "rounds": record["rounds"],
            "load": comparability.load(record) or None,
            "layout_id": layout,
            "figures": import_records.vector(found.values()),
        }

    def _key(self, name: str, column: str, value: str) -> int:
        known = self._known.key(name, value)
        if known is not None:
            return known
        table = getattr(tables(), name)
        key: int = self._connection.execute(sa.select(table.c.id).where(table.c[column] == value)).scalar_one()
        return key
