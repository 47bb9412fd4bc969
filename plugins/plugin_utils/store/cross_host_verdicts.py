# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Verdicts that hang on more than one host: of relative criteria, by all of a run that the store has, whatever slices
it came in.
"""

from __future__ import annotations

import typing as t

from ..peers import fleet_verdicts
from ..verdict import judged_criteria
from . import import_records
from .database import Store, upsert
from .schema import tables
from .store_requirements import sa

Record = dict[str, t.Any]


def across_hosts(store: Store, run_key: int, results_dir: str) -> set[str]:
    """Judge a run with relative criteria as the report does; the hosts whose verdicts that changed. Nothing but its
    run.json is read of a run without.

    results_dir: where baselines have their reports. One transaction that is alone: of several controllers that import
    slices the last one sees run.json and the records of all. Raises StoreError.
    """
    with store.reading() as connection:
        if not _is_relative(_run(connection, run_key)):
            return set()
    with store.writing() as connection:
        store.alone(connection)
        # Not what this import wrote: another slice may have come since, and its drives are peers too.
        run, given = _run(connection, run_key), _records(connection, run_key)
        judged = fleet_verdicts.judgement_of(results_dir, run, given)["drives"]
        return _bring(connection, run_key, judged)


def _run(connection: t.Any, run_key: int) -> Record:
    """run.json of all slices that the store has."""
    table = tables().run
    found: Record = import_records.unpacked(
        connection.execute(sa.select(table.c.content).where(table.c.id == run_key)).scalar_one()
    )
    return found


def _is_relative(run: Record) -> bool:
    criteria = run.get("criteria") or []
    return any(map(judged_criteria.is_relative, judged_criteria.sound(criteria)))


def _records(connection: t.Any, run_key: int) -> list[Record]:
    table, part = tables().record, tables().part
    query = (
        sa.select(table.c.content)
        .select_from(table.join(part, table.c.part_id == part.c.id))
        .where(part.c.run_id == run_key)
    )
    return [import_records.unpacked(content) for content in connection.execute(query.order_by(table.c.id)).scalars()]


def _bring(connection: t.Any, run_key: int, judged: t.Sequence[Record]) -> set[str]:
    """Write the judgements that are others than those in the store: their hosts."""
    part, host, campaign, judgement = (getattr(tables(), name) for name in ("part", "host", "campaign", "judgement"))
    joined = campaign.join(part, campaign.c.part_id == part.c.id).join(host, part.c.host_id == host.c.id)
    joined = joined.outerjoin(judgement, judgement.c.campaign_id == campaign.c.id)
    query = (
        sa.select(host.c.name, campaign.c.label, campaign.c.id, judgement.c.content)
        .select_from(joined)
        .where(part.c.run_id == run_key)
    )
    there = {(name, label): (key, content) for name, label, key, content in connection.execute(query)}
    # Of a host whose part is still to come there is nothing to bring up to date.
    stale = [(there[place][0], drive) for drive in judged if (place := (drive["host"], drive["drive"])) in there]
    stale = [
        (key, drive)
        for key, drive in stale
        if there[(drive["host"], drive["drive"])][1] != import_records.packed(drive)
    ]
    if not stale:
        return set()
    upsert(
        connection,
        judgement,
        [{"campaign_id": key, "content": import_records.packed(drive)} for key, drive in stale],
        ["campaign_id"],
    )
    given = {"key": sa.bindparam("key"), "said": sa.bindparam("said")}
    rows = [{"key": key, "said": drive["verdict"]} for key, drive in stale]
    connection.execute(sa.update(campaign).where(campaign.c.id == given["key"]).values(verdict=given["said"]), rows)
    measurement, test = tables().measurement, tables().test
    names = dict(connection.execute(sa.select(test.c.name, test.c.id)).all())
    rows = [
        {"key": key, "about": names[one["test"]], "said": one["verdict"]}
        for key, drive in stale
        for one in drive["tests"]
        if one["test"] in names
    ]
    mine = sa.and_(measurement.c.campaign_id == given["key"], measurement.c.test_id == sa.bindparam("about"))
    if rows:
        connection.execute(sa.update(measurement).where(mine).values(verdict=given["said"]), rows)
    return {drive["host"] for _key, drive in stale}
