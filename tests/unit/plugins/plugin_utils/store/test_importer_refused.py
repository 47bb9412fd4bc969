# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a store does not take, or not whole, costs nobody else anything."""

from __future__ import annotations

import json
import math
import shutil
import sqlite3
from pathlib import Path

import pytest

pytest.importorskip("sqlalchemy")

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.store import (
    database,
    exports,
    import_records,
    importer,
    rawfiles,
    schema,
)
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.store.store_requirements import StoreError
from ansible_collections.ssdlab.fleet.tests.unit.plugins.plugin_utils.store.imports import change, put, read, verdicts


def test_a_killed_transaction_leaves_nothing_of_its_host(url, run_dir, monkeypatch):
    """The third host breaks in mid-write: the others are whole, it is not there at all, and the next import adds it
    alone.
    """
    upsert = importer.upsert
    hosts = []

    def broken(connection, table, *arguments, **how):
        upsert(connection, table, *arguments, **how)
        # The last of a host's part.
        if table.name == schema.tables().measurement.name:
            hosts.append(table)
        if len(hosts) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(importer, "upsert", broken)
    with pytest.raises(KeyboardInterrupt):
        put(url, run_dir)
    assert len(read(url, "part")) == 2 and len(read(url, "campaign")) == 2
    monkeypatch.undo()
    assert put(url, run_dir).hosts == 3
    assert len(verdicts(url)) == 5


def test_a_raw_file_that_leads_out_is_refused(url, run_dir, tmp_path):
    put(url, run_dir, raw=True)
    connection = sqlite3.connect(database.path(url))
    connection.execute("UPDATE ssd_raw_file SET path = '../../evil' WHERE path = 'plan.json'")
    connection.commit()
    connection.close()
    with database.opened(url) as store, pytest.raises(StoreError, match="which would be outside"):
        rawfiles.extract(store, run_dir.name, str(tmp_path / "back"))
    assert not (tmp_path / "evil").exists()


@pytest.mark.parametrize(
    "damage", ["{", "[]", '{"schema_version": 2, "run": {"id": "r"}, "asked": [], "tests": {}}', None]
)
def test_a_damaged_run_is_told_and_the_others_go_on(url, run_dir, damage):
    other = run_dir.parent / "20261120T000000Z-other"
    other.mkdir()
    (other / "run.json").write_text(damage) if damage else shutil.rmtree(other)
    with database.opened(url, make=True) as store:
        done = importer.import_all(store, str(run_dir.parent))
    assert any(one.run_id == run_dir.name and one.changed for one in done)
    assert [bool(one.problems) for one in done if one.run_id == other.name] == [True] * bool(damage)
    assert len(verdicts(url)) == 5


def test_figures_that_are_no_numbers_are_not_there(url, run_dir):
    lines = [json.loads(line) for line in (run_dir / "results.jsonl").read_text().splitlines()]
    for line in lines:
        if line["kind"] == "test":
            line["metrics"]["iops"] = None
    (run_dir / "results.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    put(url, run_dir)
    from ansible_collections.ssdlab.fleet.plugins.plugin_utils.store import frames

    pytest.importorskip("pandas")
    table = frames.long(url, metrics=["iops"])
    assert table[table["cell"].isna()].empty and not table.empty
    assert all(math.isfinite(value) for value in table["value"])


@pytest.mark.parametrize(
    ("kind", "field", "value"),
    [
        ("test", "attempt", 2**63),
        ("test", "rounds", 2**64),
        ("drive", "identity", {"size_bytes": 2**64}),
        ("drive", "identity", {"transport": True}),
    ],
)
def test_a_figure_that_no_column_holds_is_that_hosts_error_and_the_others_are_taken(run_dir, url, kind, field, value):
    change(
        run_dir,
        lambda record: {**record, field: {**record[field], **value} if isinstance(value, dict) else value},
        "server-2",
        kind,
    )
    put(url, run_dir)
    told = verdicts(url)
    assert told["SIM0001"] == "pass" and told["SIM0003"] == "fail" and (told["SIM0002"] == "error" or kind == "drive")


def test_values_that_the_store_does_not_take_cost_that_host_its_place_alone(run_dir, url, monkeypatch):
    """Behind the gate a column may still be too small, PostgreSQL's index for a name of some thousand letters: the
    others' parts are written.
    """
    complete = import_records.complete

    def too_large(folder, host):
        found, problem = complete(folder, host)
        return [
            {**record, "attempt": 2**63} if (host, record["kind"]) == ("server-2", "test") else record
            for record in found
        ], problem

    monkeypatch.setattr(import_records, "complete", too_large)
    done = put(url, run_dir)
    assert [problem for problem in done.problems if "server-2" in problem and "too large" in problem] and len(
        done.problems
    ) == 1
    assert set(verdicts(url)) >= {"SIM0001", "SIM0003", "SIM0004"} and "SIM0002" not in verdicts(url)


def test_a_round_that_no_table_holds_ends_nobodys_export(run_dir, url, tmp_path):
    """It stands in the store's layouts, which every later read of any run goes through."""
    pytest.importorskip("pandas")
    place = run_dir / "raw" / "server-2" / "journal.jsonl"
    lines = [json.loads(line) for line in place.read_text().splitlines()]
    for line in lines:
        if line["event"] in ("cell", "round"):
            line["round"] += 2**53
    place.write_text("".join(json.dumps(line) + "\n" for line in lines))
    put(url, run_dir)
    (path,) = exports.write(url, run_dir.name, str(tmp_path / "export"), ["csv"])
    text = Path(path).read_text()
    assert "SIM0001" in text and "SIM0003" in text and str(2**53)[:-2] not in text
