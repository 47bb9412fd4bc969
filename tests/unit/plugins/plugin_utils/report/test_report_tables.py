# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The report's CSV and JUnit files."""

from __future__ import annotations

import csv
import json
import re
from xml.etree import ElementTree

import pytest

from ansible_collections.ssdlab.fleet.tests.fixtures import documents
from ansible_collections.ssdlab.fleet.tests.fixtures.report import generator
from ansible_collections.ssdlab.fleet.tests.unit.plugins.plugin_utils.report.built import made


def test_csv_has_a_row_for_each_drive_and_test(mixed):
    made(mixed)
    rows = list(csv.DictReader((mixed / "report" / "results.csv").open(newline="")))
    assert [(row["drive"], row["test"], row["verdict"]) for row in rows[:4]] == [
        ("SIM0001", "wsat", "pass"),
        ("SIM0001", "iops", "pass"),
        ("SIM0002", "wsat", "pass"),
        ("SIM0002", "iops", "pass"),
    ]
    assert len(rows) == 10
    assert float(rows[0]["write_iops"]) == pytest.approx(41_200, rel=0.05)
    assert (rows[0]["purge_class"], rows[0]["purge_verified"], rows[0]["from_fresh"]) == ("not_pts", "True", "False")
    assert (rows[1]["precondition_passes"], rows[1]["precondition_data"]) == ("2", "random") and not rows[0][
        "precondition_passes"
    ]
    # Two passes over 1 % of a drive are told from two over all of it.
    records = [json.loads(line) for line in (mixed / "results.jsonl").read_text().splitlines()]
    (filled,) = [
        record["precondition"] for record in records if (record.get("drive"), record.get("test")) == ("SIM0001", "iops")
    ]
    assert (
        int(rows[1]["precondition_bytes_written"]) == filled["bytes_written"] and rows[1]["active_range_pct"] == "100"
    )
    assert rows[-1]["verdict"] == "not_tested"


def test_csv_and_summary_carry_every_tracked_window_with_its_unit(mixed):
    """A second tracked variable, in another unit, is one more group of columns."""
    path = mixed / "results.jsonl"
    records = [json.loads(line) for line in path.read_text().splitlines()]
    second = {"cell": "seq-128k-r100-tc1-qd32", "metric": "bandwidth", "average": 5e8, "fitted_end": 4.9e8}
    for record in records:
        if record.get("test") == "wsat" and record["steady_state"]:
            record["steady_state"].append({**record["steady_state"][0], **second})
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    made(mixed)
    rows = list(csv.DictReader((mixed / "report" / "results.csv").open(newline="")))
    assert [rows[0][f"tracked_{place}_{name}"] for place in (1, 2) for name in ("metric", "unit", "steady")] == [
        "write_iops",
        "IOPS",
        "True",
        "bandwidth",
        "bytes/s",
        "True",
    ]
    assert float(rows[0]["tracked_2_average"]) == 5e8 and float(rows[0]["tracked_2_fitted_end"]) == 4.9e8
    assert rows[1]["tracked_2_metric"] == ""
    summary = json.loads((mixed / "report" / "summary.json").read_text())
    documents.validate(summary, "summary")
    assert [window["unit"] for window in summary["drives"][0]["tests"][0]["windows"]] == ["IOPS", "bytes/s"]


def test_every_column_of_a_figure_says_its_unit(mixed):
    made(mixed)
    header = next(csv.reader((mixed / "report" / "results.csv").open(newline="")))
    figures = [name for name in header if re.search("iops|bandwidth|latency", name)]
    assert "write_bandwidth_bytes_per_s" in figures and "write_iops" in figures and "write_p99_latency_us" in figures
    assert [name for name in figures if not re.search("iops|_bytes_per_s|_us", name)] == []


def test_junit_has_a_case_for_each_drive_and_test(mixed):
    made(mixed)
    suite = ElementTree.parse(mixed / "report" / "junit.xml").getroot().find("testsuite")
    assert {name: suite.get(name) for name in ("tests", "failures", "errors", "skipped")} == {
        "tests": "10",
        "failures": "1",
        "errors": "2",
        "skipped": "2",
    }
    failure = suite.find("testcase/failure")
    assert "write_iops" in failure.get("message")


def test_junit_names_what_no_test_explains(tmp_path):
    run_dir = generator.make(tmp_path, criteria=[{"test": "nosuch", "metric": "iops", "min": 1}])
    made(run_dir)
    cases = ElementTree.parse(run_dir / "report" / "junit.xml").getroot().findall("testsuite/testcase")
    assert [case.get("name") for case in cases] == ["wsat", "drive"] * 3
    assert "nosuch" in cases[1].find("error").get("message")
