# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Exports say what the report says, in the words of their formats."""

from __future__ import annotations

import csv
import json
import re

import pytest

pytest.importorskip("sqlalchemy")
pandas = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.common import schema
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.report import write_report
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.store import database, exports, frames, importer, ocptv
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.store.store_requirements import StoreError
from ansible_collections.ssdlab.fleet.tests.fixtures.report import generator

STOPPED = generator.Drive("server-4", "SIM0004", '=cmd|"x"\\', 90_000, 40_000, "interrupted")
BROKEN = generator.Drive("server-5", "SIM0005", generator.MODEL, 90_000, 40_000, "error")


@pytest.fixture(name="run", scope="module")
def fixture_run(tmp_path_factory):
    """(url, run folder): pass, pass, fail, invalid, error, host unreachable, and one that was refused."""
    folder = tmp_path_factory.mktemp("results")
    lost = [("server-9", "SIM0009"), ("server-8", "SIM0008")]
    run_dir = generator.make(folder, (*generator.DEMO, STOPPED, BROKEN), rounds=12, unreachable=lost)
    lines = [json.loads(line) for line in (run_dir / "results.jsonl").read_text().splitlines()]
    for line in lines:
        if line["kind"] == "host" and line["host"] == "server-8":
            line["state"] = "ok"
    refused = {
        "path": None,
        "identity": None,
        "outcome": "refused",
        "message": "",
        "refusals": [{"code": "mounted", "message": "on /"}],
    }
    envelope = {"schema_version": 1, "kind": "drive", "time": generator.time_at(1), "run_id": run_dir.name}
    lines.append({**envelope, "host": "server-8", "drive": "SIM0008", **refused})
    (run_dir / "results.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    url = database.resolve("", str(folder))
    with database.opened(url, make=True) as store:
        importer.import_run(store, str(run_dir))
    return url, run_dir


def written(run, tmp_path, *formats):
    url, run_dir = run
    return exports.write(url, run_dir.name, str(tmp_path), formats)


def test_ocptv_follows_its_schema_and_blames_no_drive_for_its_host(run, tmp_path):
    check = schema.validator(schema.load("ocptv"))
    ends, diagnoses = {}, {}
    for path in written(run, tmp_path, "ocptv"):
        lines = [json.loads(line) for line in open(path, encoding="utf-8")]
        assert [error.message for line in lines for error in check.iter_errors(line)] == []
        assert [line["sequenceNumber"] for line in lines] == list(range(len(lines)))
        assert lines[0]["schemaVersion"] == {"major": 2, "minor": 0} and "testRunStart" in lines[1]["testRunArtifact"]
        host = lines[1]["testRunArtifact"]["testRunStart"]["dutInfo"]["name"]
        ends[host] = tuple(lines[-1]["testRunArtifact"]["testRunEnd"].values())
        steps = [line["testStepArtifact"] for line in lines if "testStepArtifact" in line]
        diagnoses[host] = [step["diagnosis"]["type"] for step in steps if "diagnosis" in step]
        assert sum("testStepStart" in step for step in steps) == sum("testStepEnd" in step for step in steps)
    ends = dict(sorted(ends.items()))
    assert ends == {
        "server-1": ("COMPLETE", "PASS"),
        "server-2": ("COMPLETE", "PASS"),
        "server-3": ("COMPLETE", "FAIL"),
        "server-4": ("ERROR", "NOT_APPLICABLE"),
        "server-5": ("ERROR", "NOT_APPLICABLE"),
        "server-8": ("SKIP", "NOT_APPLICABLE"),
        "server-9": ("ERROR", "NOT_APPLICABLE"),
    }
    said = [["PASS"], ["PASS"], ["FAIL"], ["UNKNOWN"], ["UNKNOWN"], [], []]
    assert diagnoses == dict(zip(ends, said))


def test_ocptv_shows_the_limits_of_a_figure(run, tmp_path):
    (path,) = [path for path in written(run, tmp_path, "ocptv") if "SIM0003" in path]
    measured = [
        json.loads(line)["testStepArtifact"]["measurement"]
        for line in open(path, encoding="utf-8")
        if '"measurement"' in line
    ]
    (held,) = [one for one in measured if "validators" in one]
    assert (held["name"], held["unit"]) == ("write_iops", "IOPS")
    assert [(one["type"], one["value"]) for one in held["validators"]] == [("GREATER_THAN_OR_EQUAL", 35_000.0)]


@pytest.mark.parametrize(
    "line",
    [
        {"testRunEnd": {"status": "SKIP", "result": "FAIL"}},
        {"testRunEnd": {"status": "COMPLETE", "result": "NOT_APPLICABLE"}},
        {"log": {}},
    ],
)
def test_the_ocptv_schema_refuses(line):
    check = schema.validator(schema.load("ocptv"))
    assert not check.is_valid({"sequenceNumber": 0, "timestamp": "2026-11-21T13:00:00Z", "testRunArtifact": line})


def test_every_verdict_has_an_outcome(run):
    url, run_dir = run
    with database.opened(url) as store:
        loaded = exports.load(store, run_dir.name)
    assert set(ocptv.OUTCOMES) == set(loaded.judgement["verdicts"])
    judged = write_report.make(str(run_dir.parent), run_dir.name, write=False).judgement
    assert (
        loaded.judgement["verdicts"] == judged["verdicts"]
        and loaded.judgement["all_passed"] is judged["all_passed"] is False
    )


def test_prometheus_text_keeps_the_rules_of_the_textfile_collector(run, tmp_path):
    (path,) = written(run, tmp_path, "prometheus")
    text = open(path, encoding="utf-8").read()
    assert path.endswith(".prom") and text.endswith("\n")
    sample = re.compile(r'([a-zA-Z_:][a-zA-Z0-9_:]*)\{([a-z_]+="(?:[^"\\\n]|\\[\\"n])*",?)+\} -?[0-9.e+-]+')
    family, seen = "", []
    for line in text.splitlines():
        if line.startswith("# HELP "):
            family = line.split()[2]
            seen.append(family)
        elif not line.startswith(f"# TYPE {family} gauge"):
            assert sample.fullmatch(line) and line.startswith(family + "{"), line
    assert len(seen) == len(set(seen)) and all(
        name.startswith("ssdlab_fleet_") and not name.endswith("_us") for name in seen
    )
    assert 'ssdlab_fleet_drives{run="20261121T130000Z-qualify",verdict="fail"} 1.0' in text
    assert 'model="=cmd|\\"x\\"\\\\"' in text


def test_tables_hold_every_figure(run, tmp_path):
    csv_path, parquet_path = written(run, tmp_path, "csv", "parquet")
    table = frames.long(run[0])
    assert len(pandas.read_parquet(parquet_path)) == len(table) and pandas.read_parquet(parquet_path)["value"].equals(
        table["value"]
    )
    rows = list(csv.DictReader(open(csv_path, encoding="utf-8")))
    assert len(rows) == len(table) and [float(row["value"]) for row in rows] == list(table["value"])
    assert {row["model"] for row in rows} == {generator.MODEL, "'" + STOPPED.model}, (
        "no spreadsheet takes it for a formula"
    )


def test_junit_is_that_of_the_report(run, tmp_path):
    (path,) = written(run, tmp_path, "junit")
    made = write_report.make(str(run[1].parent), run[1].name)
    report = open(made.path.replace("index.html", "junit.xml"), encoding="utf-8").read()
    cases = re.compile(r"<testcase [^>]*>")
    assert sorted(cases.findall(open(path, encoding="utf-8").read())) == sorted(cases.findall(report))


def test_drives_come_in_the_order_of_the_report(tmp_path):
    """server-2 before server-10, in every file."""
    drives = [generator.DEMO[0]._replace(host=f"server-{at}", serial=f"SIM{at}") for at in (1, 2, 10, 11)]
    run_dir = generator.make(tmp_path / "results", drives, rounds=8)
    url = database.resolve("", str(tmp_path))
    with database.opened(url, make=True) as store:
        importer.import_run(store, str(run_dir))
    (path,) = exports.write(url, run_dir.name, str(tmp_path / "out"), ["junit"])
    made = write_report.make(str(run_dir.parent), run_dir.name)
    cases = [re.findall(r'classname="([^"]*)"', open(place).read()) for place in (path, made.path[:-10] + "junit.xml")]
    assert cases[0] == cases[1] and len(cases[0]) == 4
    (path,) = exports.write(url, run_dir.name, str(tmp_path / "out"), ["prometheus"])
    hosts = re.findall(r'drive_verdict\{.*?host="([^"]*)"', open(path).read())
    assert hosts == [drive.host for drive in drives]


def test_what_is_not_there_is_told(run, tmp_path):
    with pytest.raises(StoreError, match="no run 20990101T000000Z-x: import"):
        exports.write(run[0], "20990101T000000Z-x", str(tmp_path), ["junit"])
    with pytest.raises(StoreError, match="xlsx: not a format"):
        exports.write(run[0], run[1].name, str(tmp_path), ["xlsx"])


def test_the_files_of_no_two_drives_have_the_same_name():
    """Nor one that no file system takes: a host may name a drive by some thousand letters."""
    drives = [
        ("a.b", "c"),
        ("a", "b.c"),
        ("a", "b/c"),
        ("a", "b_c"),
        ("A", "B_C"),
        ("h", "x" * 4096),
        ("h", "x" * 4095),
    ]
    names = exports._file_names(drives)
    assert len({name.lower() for name in names}) == len(drives) and max(map(len, names)) < 230
    assert exports._file_names([("server-1", "SIM0001")]) == ["server-1.SIM0001"]
