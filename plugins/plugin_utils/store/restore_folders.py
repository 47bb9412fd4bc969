# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Makes the folder of a run from the store, for where files do not survive from one step to the next (an execution
environment).
"""

from __future__ import annotations

import os
import typing as t

from ...module_utils.run.folder import RUN_ID_PATTERN
from ..run_folder import results_log, run_record
from . import import_records, rawfiles
from .database import Store
from .schema import tables
from .store_requirements import StoreError, sa

# How many runs of a name: a play looks for the unfinished one, and compares with the ones before.
NEWEST = 5


class Fetched(t.NamedTuple):
    """changed: whether the folder lacked anything of it. hosts: how many hosts' parts the store has."""

    run_id: str
    changed: bool
    hosts: int


def fetch(store: Store, results_dir: str, run_id: str, run_name: str, raw: bool = False) -> list[Fetched]:
    """Bring run.json and results.jsonl of one run, or of the newest of a name, up to date in a results folder; raw:
    with the hosts' raw files, and of one run also the run before of its name, without them: its report compares.

    Files that only the folder has stay. Raises StoreError, OSError.
    """
    done = [_fetch(store, results_dir, found, raw) for found in _wanted(store, run_id, run_name)]
    for found in _before(store, run_id) if raw and run_id else ():
        _fetch(store, results_dir, found, raw=False)
    return done


def _before(store: Store, run_id: str) -> list[t.Any]:
    run, this = tables().run, tables().run.alias()
    which = sa.select(run.c.id, run.c.run_id, run.c.content).join(this, this.c.name == run.c.name)
    which = which.where(this.c.run_id == run_id, run.c.started < this.c.started)
    with store.reading() as connection:
        return list(connection.execute(which.order_by(run.c.started.desc(), run.c.run_id.desc()).limit(1)).all())


def _wanted(store: Store, run_id: str, run_name: str) -> list[t.Any]:
    run = tables().run
    which = sa.select(run.c.id, run.c.run_id, run.c.content)
    which = (
        which.where(run.c.run_id == run_id)
        if run_id
        else which.where(run.c.name == run_name).order_by(run.c.started.desc()).limit(NEWEST)
    )
    with store.reading() as connection:
        return list(connection.execute(which).all())


def _fetch(store: Store, results_dir: str, found: t.Any, raw: bool) -> Fetched:
    about = import_records.unpacked(found.content)
    # A folder's name comes from the store, so it is looked at before it leads anywhere.
    if (
        not RUN_ID_PATTERN.fullmatch(found.run_id)
        or not isinstance(about, dict)
        or (about.get("run") or {}).get("id") != found.run_id
    ):
        raise StoreError(f"the store {store.name} has no readable record of run {found.run_id!r}")
    part, record = tables().part, tables().record
    stored = (
        sa.select(part.c.id, record.c.content)
        .select_from(part.outerjoin(record, record.c.part_id == part.c.id))
        .where(part.c.run_id == found.id)
    )
    with store.reading() as connection:
        rows = list(connection.execute(stored.order_by(part.c.id, record.c.id)).all())
    run_dir = os.path.join(results_dir, found.run_id)
    try:
        here = run_record.read_run(run_dir)
    except ValueError as error:
        raise StoreError(f"{run_dir}/run.json is damaged ({error}); remove it to load it from the store") from error
    changed = here is None or import_records.merged_run(here, about) != import_records.merged_run(None, here)
    if changed:
        run_record.write_run(run_dir, about)
    stored_records = [collected(import_records.unpacked(row.content)) for row in rows if row.content is not None]
    changed |= _append(os.path.join(run_dir, run_record.RESULTS), sorted(stored_records, key=_order))
    if raw:
        changed |= bool(rawfiles.extract(store, found.run_id, os.path.join(run_dir, "raw")))
    return Fetched(found.run_id, changed, len({row.id for row in rows}))


def _order(record: import_records.Record) -> tuple[bool, str, str]:
    """Hosts first, as one that began anew makes void what stands before it; then as they were measured."""
    return record["kind"] != "host", record["time"].rstrip("Z"), str(record.get("started") or "")


def collected(record: import_records.Record) -> import_records.Record:
    """Return a record as it was collected: without what the importer took from its journal."""
    return (
        {name: value for name, value in record.items() if name not in import_records.FROM_JOURNAL}
        if record["kind"] == "test"
        else record
    )


def _append(path: str, given: t.Sequence[import_records.Record]) -> bool:
    """Add what is newer than what is there; whether there was any."""
    here = {results_log.key(record): record for record in results_log.load(path)}
    fresh = [record for record in given if _newer(record, here.get(results_log.key(record)))]
    results_log.append(path, fresh)
    return bool(fresh)


def _newer(record: import_records.Record, here: import_records.Record | None) -> bool:
    return here is None or record["time"].rstrip("Z") > here["time"].rstrip("Z")
