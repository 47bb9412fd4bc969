# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A run's folder from the store: what a job of AWX finds of the job before."""

from __future__ import annotations

import json

import pytest

sa = pytest.importorskip("sqlalchemy")

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.report import write_report
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.run_folder import results_log
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.store import database, importer, restore_folders, schema
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.store.store_requirements import StoreError
from ansible_collections.ssdlab.fleet.tests.fixtures.report import generator


@pytest.fixture(name="run_dir")
def fixture_run_dir(tmp_path):
    return generator.make(tmp_path / "there", tests=("iops", "wsat"), rounds=12, unreachable=[("server-9", "SIM0009")])


@pytest.fixture(name="url")
def fixture_url(tmp_path):
    return database.resolve("", str(tmp_path))


def put(url, run_dir, raw=True):
    with database.opened(url, make=True) as store:
        return importer.import_run(store, str(run_dir), raw)


def fetch(url, results_dir, run_id=generator.RUN_ID, run_name="", raw=True):
    with database.opened(url) as store:
        return restore_folders.fetch(store, str(results_dir), run_id, run_name, raw)


def files(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_run_comes_back_with_the_same_verdicts_and_raw_files(url, run_dir, tmp_path):
    put(url, run_dir)
    assert fetch(url, tmp_path / "here") == [restore_folders.Fetched(generator.RUN_ID, True, 4)]
    told = [json.loads(line) for line in open(tmp_path / "here" / generator.RUN_ID / "results.jsonl", encoding="utf-8")]
    known = [json.loads(line) for line in open(run_dir / "results.jsonl", encoding="utf-8")]
    assert sorted(json.dumps(one, sort_keys=True) for one in told) == sorted(
        json.dumps(one, sort_keys=True) for one in known
    )
    there, here = (write_report.make(str(folder), generator.RUN_ID) for folder in (run_dir.parent, tmp_path / "here"))
    assert here.message == there.message and here.judgement == there.judgement
    assert files(run_dir / "raw") and files(run_dir / "raw") == files(tmp_path / "here" / generator.RUN_ID / "raw")


def test_what_is_there_already_changes_nothing_and_what_is_newer_stays(url, run_dir):
    put(url, run_dir)
    path = run_dir / "results.jsonl"
    newer = dict(json.loads(path.read_text().splitlines()[-1]), time="2030-01-01T00:00:00Z")
    results_log.append(str(path), [newer])
    before = path.read_text()
    assert fetch(url, run_dir.parent, raw=False) == [restore_folders.Fetched(generator.RUN_ID, False, 4)]
    assert path.read_text() == before


def test_runs_are_found_by_name_and_one_that_nobody_knows_is_no_error(url, run_dir, tmp_path):
    put(url, run_dir)
    name = json.loads((run_dir / "run.json").read_text())["run"]["name"]
    assert [one.run_id for one in fetch(url, tmp_path / "here", "", name)] == [generator.RUN_ID]
    assert fetch(url, tmp_path / "here", "20990101T000000Z-x") == [] == fetch(url, tmp_path / "here", "", "nobody")


def test_what_a_host_measured_before_it_began_anew_does_not_come_back(url, run_dir, tmp_path):
    """The job that starts, and the one that reports, share nothing but the store."""
    put(url, run_dir)
    fetch(url, tmp_path / "start", raw=False)
    host = json.loads((run_dir / "results.jsonl").read_text().splitlines()[-1])["host"]
    results_log.begin_anew(str(tmp_path / "start" / generator.RUN_ID / "results.jsonl"), generator.RUN_ID, host)
    put(url, tmp_path / "start" / generator.RUN_ID)
    fetch(url, tmp_path / "report", raw=False)
    left = results_log.load(str(tmp_path / "report" / generator.RUN_ID / "results.jsonl"))
    assert {record["kind"] for record in left if record["host"] == host} == {"host"}
    assert [record for record in left if record["kind"] == "test"]
    verdicts = {
        drive["host"]: drive["verdict"]
        for drive in write_report.make(str(tmp_path / "report"), generator.RUN_ID).judgement["drives"]
    }
    assert verdicts[host] == "not_tested"


def test_a_name_from_the_store_does_not_lead_out_of_the_results_folder(url, run_dir, tmp_path):
    put(url, run_dir)
    with database.opened(url) as store, store.writing() as connection:
        connection.execute(sa.update(schema.tables().run).values(run_id="../x"))
    with pytest.raises(StoreError, match="no readable record of run '../x'"):
        fetch(url, tmp_path / "here", "../x")


def test_the_run_before_comes_along_for_the_report_to_compare_with(url, run_dir, tmp_path):
    put(url, run_dir)
    record = json.loads((run_dir / "run.json").read_text())
    for run_id, name, started in (
        ("older", record["run"]["name"], "2020-01-01T00:00:00Z"),
        ("before", record["run"]["name"], "2020-01-02T00:00:00Z"),
        ("other", "by-hand", "2020-01-03T00:00:00Z"),
    ):
        there = tmp_path / "earlier" / run_id
        there.mkdir(parents=True)
        (there / "run.json").write_text(json.dumps({**record, "run": {"id": run_id, "name": name}, "started": started}))
        lines = [json.loads(line) for line in (run_dir / "results.jsonl").read_text().splitlines()]
        (there / "results.jsonl").write_text("".join(json.dumps({**line, "run_id": run_id}) + "\n" for line in lines))
        put(url, there)
    assert [one.run_id for one in fetch(url, tmp_path / "here")] == [generator.RUN_ID]
    assert sorted(path.name for path in (tmp_path / "here").iterdir()) == sorted(["before", generator.RUN_ID])
    assert "No earlier run" not in write_report.make(str(tmp_path / "here"), generator.RUN_ID).message
