# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The long table holds every figure of the run's folder and no other, and the wide one is the same turned round."""

from __future__ import annotations

import json

import pytest

sa = pytest.importorskip("sqlalchemy")
pandas = pytest.importorskip("pandas")

from ansible_collections.ssdlab.fleet.plugins.module_utils.records import base
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.plan import PlannedTest
from ansible_collections.ssdlab.fleet.plugins.module_utils.run import reducer
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.store import database, frames, importer, schema
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.store.store_requirements import StoreError
from ansible_collections.ssdlab.fleet.tests.fixtures.report import fleets, generator, records


@pytest.fixture(name="filled", scope="module")
def fixture_filled(tmp_path_factory):
    """(url, run folder) of three drives, two tests."""
    folder = tmp_path_factory.mktemp("results")
    run_dir = generator.make(folder, tests=("wsat", "iops"), rounds=12)
    url = database.resolve("", str(folder))
    with database.opened(url, make=True) as store:
        importer.import_run(store, str(run_dir))
    return url, run_dir


def expected(run_dir):
    """{(host, test, round, cell, metric): value} straight from the files; what is unknown has no row."""
    found = {}
    for line in map(json.loads, (run_dir / "results.jsonl").read_text().splitlines()):
        if line["kind"] == "test":
            found.update(
                {(line["host"], line["test"], 0, None, name): value for name, value in line["metrics"].items()}
            )
    for folder in run_dir.glob("raw/*"):
        (planned,) = json.loads((folder / "plan.json").read_text())["drives"]
        attempts = {test["name"]: reducer.AttemptReducer(base.parse(PlannedTest, test)) for test in planned["tests"]}
        for event in map(json.loads, (folder / "journal.jsonl").read_text().splitlines()):
            if event["event"] not in reducer.EVENTS:
                continue
            attempt, where = attempts[event["test"]], (event["host"], event["test"])
            attempt.take(event)
            if event["event"] == "round":
                tracked = attempt.tracked().items()
                found.update({(*where, event["round"], *variable): value for variable, value in tracked})
            elif event["event"] == "test_finished":
                cells = attempt.result().cells
                found.update({(*where, 0, one.cell, name): v for one in cells for name, v in one.metrics.items()})
    return {key: value for key, value in found.items() if value is not None}


def as_dict(table):
    cells = table["cell"].astype(object).where(table["cell"].notna(), None)
    return dict(zip(zip(table["host"], table["test"], table["round"], cells, table["metric"]), table["value"]))


def test_the_long_table_is_what_the_files_say(filled):
    url, run_dir = filled
    table = frames.long(url)
    assert tuple(table.columns) == frames.LONG
    assert as_dict(table) == expected(run_dir) and len(table) == len(expected(run_dir))
    assert set(table["serial"]) == {"SIM0001", "SIM0002", "SIM0003"} and set(table["model"]) == {generator.MODEL}
    assert (
        set(table["capacity_bytes"]) == {records.SIZE_BYTES}
        and set(table["firmware"]) == {"D1MU020"}
        and set(table["link"]) == {"sata"}
    )
    assert {str(kind) for kind in table.dtypes[["run", "host", "cell", "metric", "unit"]]} == {"category"}
    assert (
        dict(zip(table["metric"], table["unit"])).items()
        >= {"iops": "IOPS", "bandwidth": "bytes/s", "mean_latency_us": "µs"}.items()
    )


@pytest.mark.parametrize(
    ("choice", "kept"),
    [
        ({"rounds": False}, lambda key: key[2] == 0),
        ({"tests": ["wsat"]}, lambda key: key[1] == "wsat"),
        ({"metrics": ["iops", "write_iops"]}, lambda key: key[4] in ("iops", "write_iops")),
        ({"runs": ["none"]}, lambda key: False),
    ],
)
def test_a_choice_takes_what_it_names(filled, choice, kept):
    url, run_dir = filled
    table = frames.long(url, **choice)
    assert tuple(table.columns) == frames.LONG
    assert as_dict(table) == {key: value for key, value in expected(run_dir).items() if kept(key)}


def test_the_wide_table_has_a_row_for_each_measurement(filled):
    url, run_dir = filled
    table = frames.wide(frames.long(url))
    assert len(table) == 6 and tuple(table.columns[: len(frames.MEASUREMENT)]) == frames.MEASUREMENT
    for (host, test, number, cell, metric), value in expected(run_dir).items():
        if number == 0:
            row = table[(table["host"] == host) & (table["test"] == test)].iloc[0]
            assert row[f"{cell} {metric}" if cell else metric] == value


def test_a_drive_of_unknown_identity_has_rows_too(tmp_path):
    """Nothing is known but the name that the inventory uses: it stands for the serial, and the wide table keeps the
    drive.
    """
    run_dir = generator.make(tmp_path, generator.DEMO[:1], rounds=8)
    lines = [json.loads(line) for line in (run_dir / "results.jsonl").read_text().splitlines()]
    for line in lines:
        if line["kind"] == "drive":
            line["identity"] = None
    (run_dir / "results.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    url = database.resolve("", str(tmp_path))
    with database.opened(url, make=True) as store:
        importer.import_run(store, str(run_dir))
    table = frames.long(url)
    assert set(table["serial"]) == {"SIM0001"} and table["model"].isna().all() and table["capacity_bytes"].isna().all()
    assert len(frames.wide(table)) == 1


def test_the_load_by_the_cpus_is_told_of_each_measurement(tmp_path):
    run_dir = generator.make(tmp_path, tests=("wsat", "iops"), rounds=12)
    path = run_dir / "results.jsonl"
    records = [json.loads(line) for line in path.read_text().splitlines()]
    for record in records:
        if record.get("test") == "iops":
            record["loads"] = [{"cell": "c", "threads": 4, "queue_depth": 64, "cpus": 4}]
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    url = database.resolve("", str(tmp_path))
    with database.opened(url, make=True) as store:
        importer.import_run(store, str(run_dir))
    table = frames.long(url, columns=("test", *frames.MORE), rounds=False)
    told = {test: set(part) for test, part in table["load"].astype(object).groupby(table["test"].astype(str))}
    assert told["iops"] == {"4 threads x depth 64"} and not any(isinstance(one, str) for one in told["wsat"])
    under = {test: set(part) for test, part in table["conditions"].astype(str).groupby(table["test"].astype(str))}
    assert all("4 threads x depth 64" in text for text in under["iops"])
    assert not any("threads" in text for text in under["wsat"])


def test_no_store_is_told(tmp_path):
    with pytest.raises(StoreError, match="there is no store .*import.yml"):
        frames.long(database.resolve("", str(tmp_path)))
    assert not list(tmp_path.iterdir())


def test_an_empty_store_is_an_empty_table(tmp_path):
    url = database.resolve("", str(tmp_path))
    with database.opened(url, make=True):
        pass
    table = frames.long(url)
    assert tuple(table.columns) == frames.LONG and table.empty and frames.wide(table).empty


def test_the_file_of_a_drive_without_a_serial_goes_with_its_host(tmp_path):
    url = database.resolve("", str(tmp_path))
    run, records = fleets.fleet(hosts=2, drives=1)
    for each in [*records, *run["asked"]]:
        each.update({"drive": "/var/ssd0"} if "drive" in each else {})
        if each.get("kind") == "drive":
            each["identity"]["serial"] = None
    with database.opened(url, make=True) as store:
        importer.import_run(store, str(fleets.write(tmp_path, run, records)))
    assert set(frames.long(url)["serial"]) == {"h0 /var/ssd0", "h1 /var/ssd0"}
    assert set(frames.long(url, serials=["h1 /var/ssd0"])["host"]) == {"h1"}


@pytest.mark.parametrize("verdict", ["invalid", "fail"])
def test_what_counts_is_not_what_passed(tmp_path, verdict):
    """A drive that lacks peers counts, and one that nobody asked for does not: a host could make up any number."""
    criteria = [{"metric": "write_iops", "min_of_median": 0.9}, {"metric": "write_iops", "min": 1e6}]
    run, records = fleets.fleet(hosts=1, drives=4, criteria=criteria[: 1 if verdict == "invalid" else 2])
    run["asked"] = [entry for entry in run["asked"] if entry["drive"] != "S0-3"]
    url = database.resolve("", str(tmp_path))
    with database.opened(url, make=True) as store:
        importer.import_run(store, str(fleets.write(tmp_path, run, records)))
    assert set(frames.long(url, valid=True)["serial"]) == {"S0-0", "S0-1", "S0-2"}
    with database.opened(url) as store, store.reading() as connection:
        assert set(connection.execute(sa.select(schema.tables().measurement.c.verdict)).scalars()) == {verdict}


def test_two_drives_of_a_host_that_tell_one_serial_have_a_row_each(tmp_path):
    run, records = fleets.fleet(hosts=2, drives=3)
    for record in records:
        if record["kind"] == "drive" and record["host"] == "h1":
            record["identity"]["serial"] = "DUP"
    url = database.resolve("", str(tmp_path))
    with database.opened(url, make=True) as store:
        importer.import_run(store, str(fleets.write(tmp_path, run, records)))
    told = frames.wide(frames.long(url))
    measured = {record["metrics"]["write_iops"] for record in records if record["kind"] == "test"}
    assert len(told) == 6 and set(told["write_iops"]) == measured
