# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which store a URL means, what preflight says of it, and its way from version 1 to the newest."""

from __future__ import annotations

import multiprocessing
import os
import sqlite3

import pytest

sa = pytest.importorskip("sqlalchemy")

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.store import engine, importer, migrations, packages, schema
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.store.packages import StoreError
from ansible_collections.ssdlab.fleet.tests.fixtures.report import generator

# What version 1 had, as SQLite wrote it then: never to be changed. A constraint that is not on one line goes unseen.
VERSION_1 = """
CREATE TABLE ssd_store (id INTEGER NOT NULL, version INTEGER NOT NULL, PRIMARY KEY (id));
CREATE TABLE ssd_run (id INTEGER NOT NULL, run_id TEXT NOT NULL, name TEXT NOT NULL, started TEXT, content BLOB NOT
  NULL, PRIMARY KEY (id), UNIQUE (run_id));
CREATE TABLE ssd_host (id INTEGER NOT NULL, name TEXT NOT NULL, PRIMARY KEY (id), UNIQUE (name));
CREATE TABLE ssd_drive (id INTEGER NOT NULL, identity TEXT NOT NULL, serial TEXT, wwn TEXT, model TEXT, PRIMARY KEY
  (id), UNIQUE (identity));
CREATE TABLE ssd_test (id INTEGER NOT NULL, name TEXT NOT NULL, PRIMARY KEY (id), UNIQUE (name));
CREATE TABLE ssd_layout (id INTEGER NOT NULL, digest TEXT NOT NULL, content BLOB NOT NULL, PRIMARY KEY (id), UNIQUE
  (digest));
CREATE TABLE ssd_part (id INTEGER NOT NULL, run_id INTEGER NOT NULL, host_id INTEGER NOT NULL, state TEXT, message
  TEXT, source TEXT NOT NULL, digest TEXT NOT NULL, PRIMARY KEY (id), CONSTRAINT ssd_part_key UNIQUE (run_id,
  host_id), FOREIGN KEY(run_id) REFERENCES ssd_run (id), FOREIGN KEY(host_id) REFERENCES ssd_host (id));
CREATE TABLE ssd_campaign (id INTEGER NOT NULL, part_id INTEGER NOT NULL, label TEXT NOT NULL, drive_id INTEGER,
  firmware TEXT, capacity_bytes BIGINT, link TEXT, outcome TEXT, verdict TEXT NOT NULL, PRIMARY KEY (id), CONSTRAINT
  ssd_campaign_key UNIQUE (part_id, label), FOREIGN KEY(part_id) REFERENCES ssd_part (id), FOREIGN KEY(drive_id)
  REFERENCES ssd_drive (id));
CREATE TABLE ssd_measurement (id INTEGER NOT NULL, campaign_id INTEGER NOT NULL, test_id INTEGER NOT NULL, attempt
  INTEGER, outcome TEXT, verdict TEXT NOT NULL, started TEXT, finished TEXT, rounds INTEGER, layout_id INTEGER,
  figures BLOB, PRIMARY KEY (id), CONSTRAINT ssd_measurement_key UNIQUE (campaign_id, test_id), FOREIGN
  KEY(campaign_id) REFERENCES ssd_campaign (id), FOREIGN KEY(test_id) REFERENCES ssd_test (id), FOREIGN KEY(layout_id)
  REFERENCES ssd_layout (id));
CREATE TABLE ssd_judgement (id INTEGER NOT NULL, campaign_id INTEGER NOT NULL, content BLOB NOT NULL, PRIMARY KEY
  (id), CONSTRAINT ssd_judgement_key UNIQUE (campaign_id), FOREIGN KEY(campaign_id) REFERENCES ssd_campaign (id));
CREATE TABLE ssd_record (id INTEGER NOT NULL, part_id INTEGER NOT NULL, kind TEXT NOT NULL, label TEXT NOT NULL, test
  TEXT NOT NULL, time TEXT NOT NULL, content BLOB NOT NULL, PRIMARY KEY (id), CONSTRAINT ssd_record_key UNIQUE
  (part_id, kind, label, test), FOREIGN KEY(part_id) REFERENCES ssd_part (id));
INSERT INTO ssd_store VALUES (1, 1);
INSERT INTO ssd_host VALUES (1, 'rack1-07');
""".replace("\n  ", " ")


def old_store(folder):
    connection = sqlite3.connect(folder / engine.FILE)
    connection.executescript(VERSION_1)
    connection.close()
    return engine.resolve("", str(folder))


def shape(url):
    """{table: {columns, unique keys, foreign keys}} as the database has it."""
    inspector = sa.inspect(sa.create_engine(url))
    return {
        name: (
            {column["name"]: (str(column["type"]), column["nullable"]) for column in inspector.get_columns(name)},
            sorted(tuple(key["column_names"]) for key in inspector.get_unique_constraints(name)),
            sorted(
                (tuple(key["constrained_columns"]), key["referred_table"]) for key in inspector.get_foreign_keys(name)
            ),
        )
        for name in inspector.get_table_names()
    }


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
    assert engine.resolve(given, "/srv/results") == wanted


@pytest.mark.parametrize(
    "given", ["mysql://a:geheim@b/c", "/srv/store.sqlite", "sqlite://", "sqlite:///", "store:geheim"]
)
def test_what_is_no_store_is_refused_without_its_password(given):
    with pytest.raises(StoreError, match="^ssd_store_url: ") as told:
        engine.resolve(given, "/srv/results")
    assert "geheim" not in str(told.value)
    assert engine.problem(given, "/srv/results") == str(told.value)


def test_a_new_store_and_an_old_one_brought_up_are_alike(tmp_path):
    (tmp_path / "new").mkdir()
    url, new = old_store(tmp_path), engine.resolve("", str(tmp_path / "new"))
    with pytest.raises(StoreError, match="schema version 1, not 7: run playbooks/import.yml"), engine.opened(url):
        pass
    assert engine.problem("", str(tmp_path)) == "", "an import brings it up"
    for one in (url, new, url):
        with engine.opened(one, make=True) as store, store.reading() as connection:
            assert migrations.version(connection) == migrations.NEWEST
    assert shape(url) == shape(new)
    with engine.opened(url) as store, store.reading() as connection:
        assert connection.execute(sa.select(schema.tables().host.c.name)).scalars().all() == ["rack1-07"]
    with engine.opened(url) as store:
        assert importer.import_run(store, str(generator.make(tmp_path, rounds=8))).changed


def test_a_step_that_breaks_leaves_the_old_version(tmp_path, monkeypatch):
    url = old_store(tmp_path)
    before = shape(url)

    def breaks(connection):
        migrations._raw_files(connection)
        raise StoreError("broken")

    monkeypatch.setitem(migrations.STEPS, 2, breaks)
    with pytest.raises(StoreError, match="broken"), engine.opened(url, make=True):
        pass
    assert shape(url) == before


def test_every_version_has_its_step():
    assert sorted(migrations.STEPS) == list(range(2, migrations.NEWEST + 1))


def test_a_newer_store_is_left_alone(tmp_path):
    url = engine.resolve("", str(tmp_path))
    with engine.opened(url, make=True) as store, store.writing() as connection:
        connection.execute(sa.update(schema.tables().store).values(version=99))
    for make in (False, True):
        with pytest.raises(StoreError, match="schema version 99.*update the collection"), engine.opened(url, make=make):
            pass
    assert "schema version 99" in engine.problem("", str(tmp_path))


def test_preflight_is_told_of_a_store_that_is_down(tmp_path):
    assert engine.problem("none", str(tmp_path)) == ""
    assert engine.problem("", str(tmp_path)) == "" and not list(tmp_path.iterdir())
    assert "cannot be made" in engine.problem(f"sqlite:///{tmp_path}/no/folder/x.sqlite", str(tmp_path))
    (tmp_path / "text.sqlite").write_text("this is no database, but long enough to be taken for one" * 100)
    told = engine.problem(f"sqlite:///{tmp_path}/text.sqlite", str(tmp_path))
    assert told.startswith("ssd_store_url: the store sqlite:///") and "not a database" in told


def test_preflight_is_told_of_a_server_that_is_down_without_its_password(tmp_path):
    pytest.importorskip("psycopg")
    told = engine.problem("postgresql://lab:geheim@127.0.0.1:9/ssd", str(tmp_path))
    assert told.startswith("ssd_store_url: ") and "127.0.0.1" in told and "geheim" not in told


def test_missing_packages_are_named(monkeypatch, tmp_path):
    monkeypatch.setattr(packages.importlib.util, "find_spec", lambda name: None)
    assert packages.missing("", tables=True)[0].endswith("-m pip install sqlalchemy pandas pyarrow")
    assert packages.missing("postgresql://x")[0].endswith("-m pip install sqlalchemy 'psycopg[binary]'")
    assert "pip install sqlalchemy" in engine.problem("", str(tmp_path))


def test_the_packages_are_in_the_requirements():
    path = os.path.join(engine.__file__.rsplit("/plugins/", 1)[0], "requirements.txt")
    with open(path, encoding="utf-8") as source:
        names = source.read()
    assert all(f"\n{pip}>=" in names for _module, pip in packages.STORE + packages.TABLES + packages.POSTGRESQL)


def _import(folder, results, start):
    start.wait()
    with engine.opened(engine.resolve("", folder), make=True) as store:
        importer.import_all(store, results)


def test_two_controllers_write_at_once(tmp_path):
    """Each its own slice of one run and the other's too, into a store that neither has made."""
    pytest.importorskip("pandas")
    from ansible_collections.ssdlab.fleet.plugins.plugin_utils.store import frames

    drives = [generator.DEMO[0]._replace(host=f"server-{number}", serial=f"SIM{number:04}") for number in range(12)]
    for name, part in (("a", drives[:8]), ("b", drives[4:])):
        generator.make(tmp_path / name, part, rounds=6, seed=len(part))
    context = multiprocessing.get_context("fork")
    start = context.Event()
    jobs = [context.Process(target=_import, args=(str(tmp_path), str(tmp_path / name), start)) for name in "abab"]
    for job in jobs:
        job.start()
    start.set()
    for job in jobs:
        job.join(120)
    assert [job.exitcode for job in jobs] == [0] * 4
    table = frames.long(engine.resolve("", str(tmp_path)))
    assert (
        table["serial"].nunique() == 12
        and not table.duplicated([name for name in frames.LONG if name != "value"]).any()
    )
    assert not [name for name in os.listdir(tmp_path) if name.endswith("-wal")] or os.path.getsize(
        tmp_path / engine.FILE
    )


def test_a_results_folder_that_no_url_can_name_is_refused(tmp_path):
    folder = str(tmp_path / "what?")
    with pytest.raises(StoreError, match="question mark"):
        engine.resolve("", folder)
    assert "question mark" in engine.problem("", folder)
