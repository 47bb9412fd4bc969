# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The names that many parts of the store share, with their keys."""

from __future__ import annotations

import typing as t

from . import import_records
from .database import Store, upsert
from .schema import tables
from .store_requirements import sa

Record = dict[str, t.Any]


class Known:
    """Names that many parts share, with their keys. They are written in transactions of their own, in order, so that no
    two writers wait for each other.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._keys: dict[str, dict[str, int]] = {"host": {}, "test": {}, "layout": {}, "drive": {}}

    def hosts(self, names: t.Iterable[str]) -> dict[str, int]:
        """Keys of hosts."""
        return self._ensure("host", "name", {name: {"name": name} for name in names})

    def tests(self, names: t.Iterable[str]) -> dict[str, int]:
        """Keys of tests."""
        return self._ensure("test", "name", {name: {"name": name} for name in names})

    def layouts(self, texts: t.Iterable[str]) -> dict[str, int]:
        """Keys of layouts, by their digest."""
        found = {import_records.digest(text): text for text in texts}
        known = self._keys["layout"]
        # Most are known: only a new one is packed.
        rows = {
            key: {} if key in known else {"digest": key, "content": import_records.packed(text)}
            for key, text in found.items()
        }
        return self._ensure("layout", "digest", rows)

    def drives(self, rows: t.Iterable[Record]) -> dict[str, int]:
        """Keys of drives, by their identity."""
        return self._ensure("drive", "identity", {row["identity"]: row for row in rows})

    def key(self, name: str, value: str) -> int | None:
        """Return the key of a name of a kind, where this import has met it."""
        return self._keys[name].get(value)

    def _ensure(self, name: str, column: str, rows: t.Mapping[str, Record]) -> dict[str, int]:
        table, known = getattr(tables(), name), self._keys[name]
        missing = sorted(set(rows) - set(known))
        if missing:
            with self._store.writing() as connection:
                upsert(connection, table, [rows[key] for key in missing], [column], replace=False)
                for some in _portions(missing):
                    known.update(
                        connection.execute(
                            sa.select(table.c[column], table.c.id).where(table.c[column].in_(some))
                        ).all()
                    )
        return {key: known[key] for key in rows}


def _portions(items: t.Sequence[str], size: int = 500) -> t.Iterator[t.Sequence[str]]:
    """Few enough for the parameters of one statement."""
    for start in range(0, len(items), size):
        yield items[start : start + size]
