# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From one version of the schema to the next, forward only, each in the transaction that notes the new version.

A list of our own rather than alembic: the history has one line and one direction, a step must commit together with its
version on SQLite too, and alembic wants a folder of scripts that it finds by path, which an installed collection cannot
promise.
"""

from __future__ import annotations

import typing as t

from .packages import StoreError, sa
from .schema import tables

NEWEST = 7


def _raw_files(connection: t.Any) -> None:
    tables().raw_file.create(connection)


def _quarantine(connection: t.Any) -> None:
    tables().quarantine.create(connection)


def _counts(connection: t.Any) -> None:
    connection.execute(sa.text("ALTER TABLE ssd_measurement ADD COLUMN counts INTEGER"))


def _conditions(connection: t.Any) -> None:
    for column in ("lba_bytes INTEGER", "engine TEXT", "preferred_write_bytes BIGINT"):
        connection.execute(sa.text(f"ALTER TABLE ssd_campaign ADD COLUMN {column}"))


def _load(connection: t.Any) -> None:
    connection.execute(sa.text("ALTER TABLE ssd_measurement ADD COLUMN load TEXT"))


def _metadata(connection: t.Any) -> None:
    connection.execute(sa.text("ALTER TABLE ssd_campaign ADD COLUMN metadata_bytes INTEGER"))


# {version: what makes it of the one before}. A step writes out what it adds, unless that is a whole table that no later
# step changes.
STEPS: dict[int, t.Callable[[t.Any], None]] = {
    2: _raw_files,
    3: _quarantine,
    4: _counts,
    5: _conditions,
    6: _load,
    7: _metadata,
}


def version(connection: t.Any) -> int:
    """A store's version; 0 where there is none yet."""
    table = tables().store
    if not sa.inspect(connection).has_table(table.name):
        return 0
    found: int = connection.execute(sa.select(table.c.version)).scalar_one()
    return found


def refuse_newer(found: int, name: str) -> None:
    """Raises StoreError for a version that is not known here."""
    if found > NEWEST:
        raise StoreError(
            f"the store {name} has schema version {found}, but this ssdlab.fleet knows {NEWEST}: update the "
            "collection on this controller"
        )


def upgrade(connection: t.Any, name: str) -> bool:
    """Make the tables, or bring them to the newest version; whether that was needed. Within a transaction that no other
    upgrade overlaps.
    """
    before = version(connection)
    refuse_newer(before, name)
    if before == NEWEST:
        return False
    if before == 0:
        tables().metadata.create_all(connection)
        connection.execute(sa.insert(tables().store).values(id=1, version=NEWEST))
        return True
    for step in range(before + 1, NEWEST + 1):
        STEPS[step](connection)
    connection.execute(sa.update(tables().store).values(version=NEWEST))
    return True


def try_to_write(connection: t.Any) -> None:
    """Write what changes nothing, where there is a store; else a table that is gone at once: raises what SQLAlchemy
    raises without the right.
    """
    if version(connection):
        connection.execute(sa.update(tables().store).values(version=tables().store.c.version))
    else:
        trial = sa.Table("ssd_trial", sa.MetaData(), sa.Column("id", sa.Integer))
        trial.create(connection)
        trial.drop(connection)
