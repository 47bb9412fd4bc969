# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which store a URL means, what preflight says of it, and which version it has."""

from __future__ import annotations

import multiprocessing
import os
import sqlite3
import threading

import pytest

sa = pytest.importorskip("sqlalchemy")

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.store import database, importer, schema, store_requirements
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.store.store_requirements import StoreError
from ansible_collections.ssdlab.fleet.tests.fixtures.report import generator


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ("", "sqlite:////srv/results/store.sqlite"),
        ("none", ""),
        ("sqlite:////var/lib/x.sqlite", "sqlite:////var/lib/x.sqlite"),
        ("postgresql://lab@db/ssd", "postgresql+psycopg://lab@db/ssd"),
        ("postgres://lab@db/ssd", "postgresql+psycopg://lab@db/ssd"),
    ],
)
def test_a_url_means_a_store(given, wanted):
    assert database.resolve(given, "/srv/results") == wanted


@pytest.mark.parametrize(
    "given", ["mysql://a:geheim@b/c", "/srv/store.sqlite", "sqlite://", "sqlite:///", "store:geheim"]
)
def test_what_is_no_store_is_refused_without_its_password(given):
    with pytest.raises(StoreError, match="^ssd_store_url: ") as told:
        database.resolve(given, "/srv/results")
    assert "geheim" not in str(told.value)
    assert database.store_problem(given, "/srv/results") == str(told.value)


@pytest.mark.parametrize("version", [schema.VERSION - 1, schema.VERSION + 1])
def test_a_store_of_another_version_is_refused_and_left_alone(tmp_path, version):
    url = database.resolve("", str(tmp_path))
    with database.opened(url, make=True) as store, store.writing() as connection:
        connection.execute(sa.update(schema.tables().store).values(version=version))
    said = f"schema version {version}, and this ssdlab.fleet reads {schema.VERSION}: .* playbooks/import.yml"
    for make in (False, True):
        with pytest.raises(StoreError, match=said), database.opened(url, make=make):
            pass
    assert f"schema version {version}" in database.store_problem("", str(tmp_path))


def test_a_database_without_tables_is_no_store_yet(tmp_path):
    (tmp_path / database.FILE).touch()
    with pytest.raises(StoreError, match="there is no store"), database.opened(database.resolve("", str(tmp_path))):
        pass
    assert database.store_problem("", str(tmp_path)) == ""


def test_preflight_is_told_of_a_store_that_is_down(tmp_path):
    assert database.store_problem("none", str(tmp_path)) == ""
    assert database.store_problem("", str(tmp_path)) == "" and not list(tmp_path.iterdir())
    assert "cannot be made" in database.store_problem(f"sqlite:///{tmp_path}/no/folder/x.sqlite", str(tmp_path))
    (tmp_path / "text.sqlite").write_text("this is no database, but long enough to be taken for one" * 100)
    told = database.store_problem(f"sqlite:///{tmp_path}/text.sqlite", str(tmp_path))
    assert told.startswith("ssd_store_url: the store sqlite:///") and "not a database" in told


def test_preflight_is_told_of_a_server_that_is_down_without_its_password(tmp_path):
    pytest.importorskip("psycopg")
    told = database.store_problem("postgresql://lab:geheim@127.0.0.1:9/ssd", str(tmp_path))
    assert told.startswith("ssd_store_url: ") and "127.0.0.1" in told and "geheim" not in told


def test_missing_packages_are_named(monkeypatch, tmp_path):
    monkeypatch.setattr(store_requirements.importlib.util, "find_spec", lambda name: None)
    assert store_requirements.missing("", tables=True)[0].endswith("-m pip install sqlalchemy pandas pyarrow")
    assert store_requirements.missing("postgresql://x")[0].endswith("-m pip install sqlalchemy 'psycopg[binary]'")
    assert "pip install sqlalchemy" in database.store_problem("", str(tmp_path))


def test_the_packages_are_in_the_requirements():
    path = os.path.join(database.__file__.rsplit("/plugins/", 1)[0], "requirements.txt")
    with open(path, encoding="utf-8") as source:
        names = source.read()
    assert all(
        f"\n{pip}>=" in names
        for _module, pip in store_requirements.STORE + store_requirements.TABLES + store_requirements.POSTGRESQL
    )


def _at_once(work, *arguments):
    """Do the work in a process for each of these lists of arguments, all begun at one moment; their exit codes."""
    context = multiprocessing.get_context("fork")
    start = context.Event()
    processes = [context.Process(target=lambda given=given: (start.wait(), work(*given))) for given in arguments]
    for process in processes:
        process.start()
    start.set()
    for process in processes:
        process.join(120)
    return [process.exitcode for process in processes]


def _import(folder, results):
    with database.opened(database.resolve("", folder), make=True) as store:
        importer.import_all(store, results)


def test_two_controllers_write_at_once(tmp_path):
    """Each its own slice of one run and the other's too, into a store that neither has made."""
    pytest.importorskip("pandas")
    from ansible_collections.ssdlab.fleet.plugins.plugin_utils.store import frames

    drives = [generator.DEMO[0]._replace(host=f"server-{number}", serial=f"SIM{number:04}") for number in range(12)]
    for name, part in (("a", drives[:8]), ("b", drives[4:])):
        generator.make(tmp_path / name, part, rounds=6, seed=len(part))
    assert _at_once(_import, *((str(tmp_path), str(tmp_path / name)) for name in "abab")) == [0] * 4
    table = frames.long(database.resolve("", str(tmp_path)))
    assert (
        table["serial"].nunique() == 12
        and not table.duplicated([name for name in frames.LONG if name != "value"]).any()
    )
    assert not [name for name in os.listdir(tmp_path) if name.endswith("-wal")] or os.path.getsize(
        tmp_path / database.FILE
    )


def test_a_store_that_another_begins_is_waited_for(tmp_path):
    """SQLite refuses to switch a file to a write-ahead log, without waiting, while another is about to write to it."""
    other = sqlite3.connect(tmp_path / database.FILE, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    ends = threading.Timer(0.3, other.execute, ["COMMIT"])
    ends.start()
    with database.opened(database.resolve("", str(tmp_path)), make=True) as store, store.reading() as connection:
        assert database.has_tables(connection, store.name)
    ends.join()
    other.close()


def test_a_results_folder_that_no_url_can_name_is_refused(tmp_path):
    folder = str(tmp_path / "what?")
    with pytest.raises(StoreError, match="question mark"):
        database.resolve("", folder)
    assert "question mark" in database.store_problem("", folder)
