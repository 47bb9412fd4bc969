# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The report's files from realistic run folders: schemas, tables, and what a hostile or incomplete folder does."""

from __future__ import annotations

import json
import re
import shutil

import pytest

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.report import page_names, write_report
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.run_folder import results_log
from ansible_collections.ssdlab.fleet.tests.fixtures import documents
from ansible_collections.ssdlab.fleet.tests.fixtures.report import generator
from ansible_collections.ssdlab.fleet.tests.unit.plugins.plugin_utils.report.built import (
    all_pages,
    charts,
    drive_page,
    made,
    page,
)


def host_page(run_dir, host):
    return (run_dir / "report" / page_names.host_page(host)).read_text()


def test_files_follow_their_schemas(mixed):
    made(mixed)
    documents.validate(json.loads((mixed / "run.json").read_text()), "run")
    for line in (mixed / "results.jsonl").read_text().splitlines():
        documents.validate(json.loads(line), "results")
    summary = json.loads((mixed / "report" / "summary.json").read_text())
    documents.validate(summary, "summary")
    assert summary["verdicts"] == {"pass": 2, "not_tested": 1, "invalid": 1, "error": 0, "fail": 1}
    assert [drive["verdict"] for drive in summary["drives"]] == ["pass", "pass", "fail", "invalid", "not_tested"]


def test_the_outcome_of_the_task(mixed):
    outcome = write_report.outcome(made(mixed))
    assert outcome["all_passed"] is False
    assert outcome["report"] == str(mixed / "report" / "index.html")
    assert [line.split(": ")[:2] for line in outcome["failures"]] == [
        ["server-3 SIM0003", "fail"],
        ["server-4 SIM0004", "invalid"],
        ["server-9 SIM0009", "not tested"],
    ]
    assert re.search(r"write_iops 17,\d{3} < 35,000 \(criterion wsat write_iops min 35000\)", outcome["failures"][0])


@pytest.mark.parametrize(
    "purge, fresh",
    [
        ({}, False),
        ({"purge_class": "pts", "method": "nvme_format_crypto"}, True),
        ({"purge_class": "pts"}, False),
        ({"purge_class": "pts", "method": "nvme_format_crypto", "verified": False}, False),
        (None, False),
    ],
)
def test_only_a_verified_purge_of_the_pts_is_called_write_saturation(tmp_path, purge, fresh):
    run_dir = generator.make(tmp_path)
    path = run_dir / "results.jsonl"
    records = [json.loads(line) for line in path.read_text().splitlines()]
    for record in records:
        if record["kind"] == "test":
            record["purge"] = None if purge is None else {**record["purge"], **purge}
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    made(run_dir)
    assert ("Write saturation" in drive_page(run_dir, "server-1", "SIM0001")) == fresh
    assert ("Write saturation" in page(run_dir)) == fresh
    tests = [
        test
        for drive in json.loads((run_dir / "report" / "summary.json").read_text())["drives"]
        for test in drive["tests"]
    ]
    assert {(test["from_fresh"], "Write saturation" in test["title"]) for test in tests} == {(fresh, fresh)}


def test_a_second_report_changes_nothing(mixed):
    assert made(mixed).changed
    before = {path.name: path.stat().st_mtime_ns for path in (mixed / "report").iterdir()}
    assert not made(mixed).changed
    assert before == {path.name: path.stat().st_mtime_ns for path in (mixed / "report").iterdir()}


def test_check_mode_writes_nothing(mixed):
    assert made(mixed, write=False).changed
    assert not (mixed / "report").exists()


def test_a_run_that_is_not_there_says_what_there_is(tmp_path):
    generator.make(tmp_path)
    with pytest.raises(write_report.ReportError, match=f"no run nosuch .*Runs in {tmp_path}: {generator.RUN_ID}"):
        write_report.make(str(tmp_path), "nosuch")


@pytest.mark.parametrize("run_id", ["", "../x", "a/b", "-x"])
def test_what_is_no_run_id_is_refused(tmp_path, run_id):
    with pytest.raises(write_report.ReportError, match="ssd_run_id"):
        write_report.make(str(tmp_path), run_id)


@pytest.mark.parametrize(
    ("name", "text"),
    [("run.json", "{"), ("run.json", '{"schema_version": 9}')],
)
def test_what_cannot_be_read_is_named(tmp_path, name, text):
    run_dir = generator.make(tmp_path)
    (run_dir / name).write_text(text)
    with pytest.raises(write_report.ReportError, match=name):
        made(run_dir)


def test_without_raw_data_the_verdicts_still_stand(mixed):
    with_raw = made(mixed).judgement["verdicts"]
    shutil.rmtree(mixed / "raw")
    assert made(mixed).judgement["verdicts"] == with_raw
    assert " of 5 drives passed; " in page(mixed)


def test_a_damaged_line_is_said_on_the_page(mixed):
    with (mixed / "results.jsonl").open("a") as file:
        file.write('{"kind": "test", "host')
    made(mixed)
    assert "1 unreadable line of results.jsonl" in page(mixed)


def test_the_page_has_the_curve_the_window_and_the_phases(tmp_path):
    run_dir = generator.make(tmp_path)
    made(run_dir)
    (series,) = charts(drive_page(run_dir, "server-3", "SIM0003"))
    assert series["verdict"] == "fail" and series["limits"][0]["min"] == 35_000
    assert len(series["rounds"]) == len(series["multiples"]) == len(series["curves"][0]["values"]) == 60
    assert series["multiples"][-1] > 4
    assert 0 < series["phases"]["fresh_end"] < series["phases"]["level_start"] < series["phases"]["window_start"] == 55
    window = series["windows"][0]
    assert (window["range_limit"], window["slope_limit"], len(window["values"])) == (0.2, 0.1, 5)
    assert [point[0] for point in series["percentiles"][0]["points"]] == [
        "50",
        "90",
        "95",
        "99",
        "99.9",
        "99.99",
        "99.999",
        "max",
    ]
    assert series["median"]["count"] == 2
    # On the fleet's page one line a drive, the worst last and so on top.
    (overlay,) = charts(page(run_dir))
    assert [line["kind"] for line in overlay["lines"]] == ["pass", "pass", "fail"]
    assert overlay["limits"] == [[35_000, "at least 35,000 IOPS"]] and overlay["y_title"] == "write IOPS"
    assert overlay["lines"][-1]["href"] == page_names.drive_page("server-3", "SIM0003")
    healthy = [charts(drive_page(run_dir, f"server-{n}", f"SIM000{n}"))[0] for n in (1, 2)]
    # Of two others the median lies half way between them; the worn drive is not among its own.
    middle = sum(test["curves"][0]["values"][59] for test in healthy) / 2
    assert series["median"]["values"][-1] == pytest.approx(middle, rel=1e-3)


def test_the_load_by_the_cpus_is_on_the_page_and_in_the_files(tmp_path):
    run_dir = generator.make(tmp_path)
    path = run_dir / "results.jsonl"
    records = [json.loads(line) for line in path.read_text().splitlines()]
    for record in records:
        if record["kind"] == "test" and record["host"] == "server-1":
            record["loads"] = [{"cell": "c", "threads": 4, "queue_depth": 64, "cpus": 5}]
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    made(run_dir)
    shown = [drive_page(run_dir, f"server-{n}", f"SIM000{n}") for n in (1, 2)]
    assert ["chosen by the host</dt><dd>4 threads x depth 64</dd>" in text for text in shown] == [True, False]
    summary = json.loads((run_dir / "report" / "summary.json").read_text())
    documents.validate(summary, "summary")
    told = {drive["host"]: drive["tests"][0].get("load") for drive in summary["drives"]}
    assert told == {"server-1": "4 threads x depth 64", "server-2": None, "server-3": None}
    assert '"4 threads x depth 64"' in (run_dir / "report" / "results.csv").read_text()


def test_the_pages_have_the_matrix_and_the_cells_that_do_not_apply(mixed):
    made(mixed)
    html = drive_page(mixed, "server-1", "SIM0001")
    assert html.count('class="matrix"') == 1
    assert "0.5 KiB is below the logical block" in html
    assert "class not_pts" in html and "remainder of 90,112 B" in html
    assert "connection timed out" in page(mixed) and "connection timed out" in host_page(mixed, "server-9")
    assert "scaling_governor" in host_page(mixed, "server-1")


def test_every_figure_of_the_page_is_json_that_browsers_read(mixed):
    """NaN and infinity of a strange record must not reach the page."""
    records = results_log.load(str(mixed / "results.jsonl"))
    broken = next(record for record in records if record["kind"] == "test")
    broken["steady_state"][0]["window_values"][2] = float("nan")
    broken["steady_state"][0]["average"] = float("inf")
    broken["metrics"]["write_p99_latency_us"] = float("nan")
    results_log.append(str(mixed / "results.jsonl"), [broken])
    made(mixed)
    embedded_texts = re.findall(
        r'<script type="application/json"[^>]*>(.*?)</script>', "".join(all_pages(mixed)), re.DOTALL
    )
    assert len(embedded_texts) == 1 + 2 + 4 * 2  # the fleet's list and curves, both tests of four drives
    for text in [*embedded_texts, (mixed / "report" / "summary.json").read_text()]:
        json.loads(text, parse_constant=pytest.fail)
