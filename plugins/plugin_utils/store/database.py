# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where a store is, and a connection to it: an SQLite file or PostgreSQL, one code path from here on."""

from __future__ import annotations

import contextlib
import functools
import os
import sqlite3
import time
import typing as t

from .schema import VERSION, tables
from .store_requirements import StoreError, ValuesRefused, missing, postgresql, sa, sqlite

FILE = "store.sqlite"
NO_STORE = "none"
# How long a writer waits for another one, and a connection for its server.
BUSY_S = 120
CONNECT_S = 10
# A number that no other program's advisory lock is likely to have.
_LOCK = 5520813
# PostgreSQL's classes of errors: data exception, program limit exceeded (a name too long for an index); and a value of
# another type than its column's.
_OF_VALUES = ("22", "54", "42804")
# What users write, and what SQLAlchemy calls it.
SCHEMES = {
    "sqlite": "sqlite",
    "postgresql": "postgresql+psycopg",
    "postgres": "postgresql+psycopg",
    "postgresql+psycopg": "postgresql+psycopg",
}


def resolve(store_url: str, results_dir: str) -> str:
    """Return the URL of the store; "" where there is to be none. Raises StoreError for one that is not of a store.

    store_url: ssd_store_url: "" is the file store.sqlite in results_dir, "none" no store.
    """
    if store_url == NO_STORE:
        return ""
    if not store_url:
        file = os.path.join(os.path.abspath(results_dir), FILE)
        if "?" in file:
            # What follows it would be options to SQLAlchemy, and the store another file.
            raise StoreError(
                f"ssd_store_url: the path of a store cannot hold a question mark: {file}; name another file"
            )
        return "sqlite:///" + file
    scheme, found, rest = store_url.partition("://")
    if not found or scheme not in SCHEMES:
        # Never the text itself: it may hold a password.
        raise StoreError(
            "ssd_store_url: must begin with sqlite:/// or postgresql://, be empty (a file in ssd_results_dir) or none"
        )
    if scheme == "sqlite" and (not rest.startswith("/") or len(rest) < 2):
        raise StoreError("ssd_store_url: sqlite:/// must be followed by the path of a file")
    return f"{SCHEMES[scheme]}://{rest}"


def name(url: str) -> str:
    """Return a store's URL for people, without its password."""
    text: str = sa.make_url(url).render_as_string(hide_password=True)
    return text


def path(url: str) -> str | None:
    """Return the file of a store; None of a server's."""
    parsed = sa.make_url(url)
    return parsed.database if parsed.get_backend_name() == "sqlite" else None


class Store:
    """A store that is open. `reading` and `writing` are its transactions; close it when done. Made by `opened`."""

    def __init__(self, url: str) -> None:
        if missing(url):
            raise StoreError(missing(url)[0])
        self.name = name(url)
        self.is_file = path(url) is not None
        try:
            if self.is_file:
                self._engine = sa.create_engine(url, connect_args={"timeout": BUSY_S})
                sa.event.listen(self._engine, "connect", _set_up_file)
                sa.event.listen(self._engine, "begin", _begin_file)
            else:
                self._engine = sa.create_engine(url, connect_args={"connect_timeout": CONNECT_S})
        except (sa.exc.SQLAlchemyError, ValueError, TypeError) as error:
            raise StoreError(f"ssd_store_url: {self.name} cannot be used: {_brief(error)}") from error

    def close(self) -> None:
        """Give up its connections."""
        self._engine.dispose()

    @contextlib.contextmanager
    def reading(self) -> t.Iterator[t.Any]:
        """A transaction that only reads, and never waits for a writer. Raises StoreError."""
        with self._transaction(writes=False) as connection:
            yield connection

    @contextlib.contextmanager
    def writing(self) -> t.Iterator[t.Any]:
        """A transaction that is kept as a whole or not at all. Raises StoreError."""
        with self._transaction(writes=True) as connection:
            yield connection

    def alone(self, connection: t.Any) -> None:
        """Let no other make or try this store until the transaction ends. A file's writers are alone anyway."""
        if not self.is_file:
            connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_LOCK)))

    @contextlib.contextmanager
    def _transaction(self, writes: bool) -> t.Iterator[t.Any]:
        try:
            with self._engine.connect().execution_options(ssd_writes=writes) as connection, connection.begin():
                yield connection
        except (sa.exc.SQLAlchemyError, OverflowError) as error:
            kind = ValuesRefused if _is_of_values(error) else StoreError
            raise kind(f"the store {self.name} cannot be {'written' if writes else 'read'}: {_brief(error)}") from error


def _is_of_values(error: Exception) -> bool:
    """Return whether it is these values that the store does not take; sqlite3's own OverflowError reaches us
    as it is.
    """
    state = str(getattr(getattr(error, "orig", None), "sqlstate", None) or "")
    return isinstance(error, (OverflowError, sa.exc.DataError)) or state.startswith(_OF_VALUES)


@contextlib.contextmanager
def opened(url: str, make: bool = False) -> t.Iterator[Store]:
    """A store of this schema version. `make`: begin one where there is none. Raises StoreError."""
    store, file = Store(url), path(url)
    try:
        if make:
            with store.writing() as connection:
                store.alone(connection)
                if not has_tables(connection, store.name):
                    tables().metadata.create_all(connection)
                    connection.execute(sa.insert(tables().store).values(id=1, version=VERSION))
        elif (file is not None and not os.path.exists(file)) or not _is_made(store):
            raise StoreError(f"there is no store {store.name}: playbooks/import.yml makes it from the folders of runs")
        yield store
    finally:
        store.close()


def _is_made(store: Store) -> bool:
    with store.reading() as connection:
        return has_tables(connection, store.name)


def has_tables(connection: t.Any, store_name: str) -> bool:
    """Return whether a store has been made there. Raises StoreError for one of another schema version."""
    table = tables().store
    if not sa.inspect(connection).has_table(table.name):
        return False
    found = connection.execute(sa.select(table.c.version)).scalar_one()
    if found != VERSION:
        raise StoreError(
            f"the store {store_name} has schema version {found}, and this ssdlab.fleet reads {VERSION}: name a new "
            "file or database in ssd_store_url (or move this one away), and fill it with playbooks/import.yml from the "
            "folders of runs"
        )
    return True


def store_problem(store_url: str, results_dir: str) -> str:
    """Return why results could not be put into the store, for preflight: it is tried, and left as it is. "" when they
    can.
    """
    try:
        url = resolve(store_url, results_dir)
        lacks = missing(url) if url else []
        if lacks or not url:
            return "".join(lacks)
        file = path(url)
        if file is not None and not os.path.exists(file):
            # Whether a file can be made in ssd_results_dir preflight tries itself.
            folder = os.path.dirname(file)
            fits = folder == os.path.abspath(results_dir) or os.access(folder, os.W_OK)
            return "" if fits else f"ssd_store_url: {file} cannot be made: its folder is missing or not writable"
        store = Store(url)
        try:
            with store.writing() as connection:
                store.alone(connection)
                _try_to_write(connection, store.name)
        finally:
            store.close()
    except StoreError as error:
        text = str(error)
        return text if text.startswith("ssd_store_url") else f"ssd_store_url: {text}"
    return ""


def _try_to_write(connection: t.Any, store_name: str) -> None:
    """Write what changes nothing, where there is a store; else a table that is gone at once: raises what SQLAlchemy
    raises without the right.
    """
    if has_tables(connection, store_name):
        connection.execute(sa.update(tables().store).values(version=tables().store.c.version))
    else:
        trial = sa.Table("ssd_trial", sa.MetaData(), sa.Column("id", sa.Integer))
        trial.create(connection)
        trial.drop(connection)


def upsert(
    connection: t.Any, table: t.Any, rows: t.Sequence[t.Mapping[str, t.Any]], key: t.Sequence[str], replace: bool = True
) -> None:
    """Insert rows (all of the same columns) of which those that are there by `key` are brought up to date, or left as
    they are.
    """
    if not rows:
        return
    statement = _insert(connection.dialect.name, table, tuple(rows[0]), tuple(key), replace)
    connection.execute(statement, list(rows))


@functools.lru_cache(maxsize=64)
def _insert(dialect: str, table: t.Any, columns: tuple[str, ...], key: tuple[str, ...], replace: bool) -> t.Any:
    """Return the statement of `upsert`: of the thousands that an import runs there are few different ones."""
    insert = {"sqlite": sqlite.insert, "postgresql": postgresql.insert}[dialect](table)
    others = [column for column in columns if column not in key]
    if replace and others:
        return insert.on_conflict_do_update(
            index_elements=list(key), set_={column: insert.excluded[column] for column in others}
        )
    return insert.on_conflict_do_nothing(index_elements=list(key))


def _set_up_file(connection: t.Any, _record: t.Any) -> None:
    # Transactions begin where SQLAlchemy begins them (_begin_file), not where the driver thinks fit.
    connection.isolation_level = None
    cursor = connection.cursor()
    # Readers go on while one writes; a commit is on the disk when it returns.
    cursor.execute(f"PRAGMA busy_timeout={BUSY_S * 1000}")
    _write_ahead(cursor)
    for pragma in ("synchronous=FULL", "foreign_keys=ON"):
        cursor.execute("PRAGMA " + pragma)
    cursor.close()


def _write_ahead(cursor: t.Any) -> None:
    """Switch the file to a write-ahead log. Where two do so at once, SQLite refuses one without waiting."""
    give_up = time.monotonic() + BUSY_S
    while True:
        try:
            cursor.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > give_up:
                raise
            time.sleep(0.02)


def _begin_file(connection: t.Any) -> None:
    # A writer takes its turn at once: one that found out later that it has to write would have read what is old by
    # then.
    writes = connection.get_execution_options().get("ssd_writes")
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _brief(error: Exception) -> str:
    """Return what went wrong, in a line; the driver's own words, which name no password."""
    words = str(getattr(error, "orig", None) or error).strip().splitlines()
    return words[0] if words else type(error).__name__
