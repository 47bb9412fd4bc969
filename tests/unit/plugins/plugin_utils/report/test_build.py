# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The report's files from realistic run folders: schemas, tables, and what a hostile or incomplete folder does."""

from __future__ import annotations

import csv
import json
import pathlib
import re
import shutil
import statistics
from xml.etree import ElementTree

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.common import units
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.report import build, names, render
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.report import curves as report_curves
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.report import series as report_series
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.results import store
from ansible_collections.ssdlab.fleet.tests.fixtures.report import generator

SCHEMAS = pathlib.Path(__file__).parents[5] / "plugins" / "plugin_utils" / "common" / "schemas"
STOPPED = generator.Drive("server-4", "SIM0004", generator.MODEL, 90_000, 40_000, "interrupted")
EVIL = "</script><script>throw 1</script><img src=x onerror=throw(2)>"


def schema(name):
    content = json.loads((SCHEMAS / f"{name}.schema.json").read_text())
    return jsonschema.Draft202012Validator(content)


@pytest.fixture(name="mixed")
def fixture_mixed(tmp_path):
    """Two that pass, one worn, one interrupted, one unreachable; both tests."""
    drives = (*generator.DEMO, STOPPED)
    return generator.make(tmp_path, drives, ("wsat", "iops"), unreachable=[("server-9", "SIM0009")])


def made(run_dir, **options):
    return build.make(str(run_dir.parent), run_dir.name, **options)


def page(run_dir):
    return (run_dir / "report" / "index.html").read_text()


def drive_page(run_dir, host, drive):
    return (run_dir / "report" / names.drive_page(host, drive)).read_text()


def host_page(run_dir, host):
    return (run_dir / "report" / names.host_page(host)).read_text()


def all_pages(run_dir):
    return [path.read_text() for path in sorted((run_dir / "report").rglob("*.html"))]


def embedded(html, name):
    return json.loads(re.search(rf'id="{name}">(.*?)</script>', html, re.DOTALL).group(1))


def test_files_follow_their_schemas(mixed):
    made(mixed)
    schema("run").validate(json.loads((mixed / "run.json").read_text()))
    for line in (mixed / "results.jsonl").read_text().splitlines():
        schema("results").validate(json.loads(line))
    summary = json.loads((mixed / "report" / "summary.json").read_text())
    schema("summary").validate(summary)
    assert summary["verdicts"] == {"pass": 2, "not_tested": 1, "invalid": 1, "error": 0, "fail": 1}
    assert [drive["verdict"] for drive in summary["drives"]] == ["pass", "pass", "fail", "invalid", "not_tested"]


def test_the_outcome_of_the_task(mixed):
    outcome = build.outcome(made(mixed))
    assert outcome["all_passed"] is False
    assert outcome["report"] == str(mixed / "report" / "index.html")
    assert [line.split(": ")[:2] for line in outcome["failures"]] == [
        ["server-3 SIM0003", "fail"],
        ["server-4 SIM0004", "invalid"],
        ["server-9 SIM0009", "not tested"],
    ]
    assert re.search(r"write_iops 17,\d{3} < 35,000 \(criterion wsat write_iops min 35000\)", outcome["failures"][0])


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
    schema("summary").validate(summary)
    assert [window["unit"] for window in summary["drives"][0]["tests"][0]["windows"]] == ["IOPS", "bytes/s"]


def test_every_column_of_a_figure_says_its_unit(mixed):
    made(mixed)
    header = next(csv.reader((mixed / "report" / "results.csv").open(newline="")))
    figures = [name for name in header if re.search("iops|bandwidth|latency", name)]
    assert "write_bandwidth_bytes_per_s" in figures and "write_iops" in figures and "write_p99_latency_us" in figures
    assert [name for name in figures if not re.search("iops|_bytes_per_s|_us", name)] == []


@pytest.mark.parametrize(
    "purge, fresh",
    [({}, False), ({"purge_class": "pts"}, True), ({"purge_class": "pts", "verified": False}, False), (None, False)],
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
    with pytest.raises(build.ReportError, match=f"no run nosuch .*Runs in {tmp_path}: {generator.RUN_ID}"):
        build.make(str(tmp_path), "nosuch")


@pytest.mark.parametrize("run_id", ["", "../x", "a/b", "-x"])
def test_what_is_no_run_id_is_refused(tmp_path, run_id):
    with pytest.raises(build.ReportError, match="ssd_run_id"):
        build.make(str(tmp_path), run_id)


@pytest.mark.parametrize(
    ("name", "text"),
    [("run.json", "{"), ("run.json", '{"schema_version": 9}')],
)
def test_what_cannot_be_read_is_named(tmp_path, name, text):
    run_dir = generator.make(tmp_path)
    (run_dir / name).write_text(text)
    with pytest.raises(build.ReportError, match=name):
        made(run_dir)


def test_without_raw_data_the_verdicts_still_stand(mixed):
    with_raw = made(mixed).judgement["verdicts"]
    shutil.rmtree(mixed / "raw")
    assert made(mixed).judgement["verdicts"] == with_raw
    assert "Of 5 drives" in page(mixed)


def test_a_damaged_line_is_said_on_the_page(mixed):
    with (mixed / "results.jsonl").open("a") as file:
        file.write('{"kind": "test", "host')
    made(mixed)
    assert "1 unreadable line of results.jsonl" in page(mixed)


@pytest.mark.parametrize(
    "evil",
    [
        EVIL,
        "\u2028throw 3\u2029",
        "{{ 7 * 7 }}",
        "'\"><svg onload=throw(4)>",
        "-->]]><!--",
        "</style>",
        "javascript:throw(5)",
    ],
)
def test_what_hosts_say_is_text_only(tmp_path, evil):
    drive = generator.Drive("server-4", "=cmd|'/c calc'!A0", evil, 90_000, 40_000, "steady")
    run_dir = generator.make(tmp_path, [*generator.DEMO, drive], unreachable=[(evil, evil)])
    build.make(str(tmp_path), run_dir.name, asked=build.Asked(supplier_model="*"))
    pages = all_pages(run_dir)
    assert len(pages) == 1 + 5 + 5 + 1
    for html in pages:
        for tag in ("<img", "<svg onload", "<!--"):
            assert tag not in html
        assert not any(
            separator in script
            for script in re.findall(r"<script.*?</script>", html, re.DOTALL)
            for separator in "\u2028\u2029"
        )
        # Every script is one of ours, and every one ends where it was meant to.
        opened = re.findall(r"<script([^>]*)>", html)
        assert len(opened) == html.count("</script>") <= 3 and html.count("</style>") <= 1
        assert set(opened) <= {
            "",
            *(f' type="application/json" id="{name}-data"' for name in ("drive", "fleet")),
            *SCRIPTS,
        }
        assert not re.search(r'(?:href|src)="javascript', html)
    data = embedded(page(run_dir), "fleet-data")
    # The gate shows separators of lines as what they are.
    shown = evil.replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
    assert shown in data["models"] and evil in [host[0] for host in data["hosts"]] and "49" not in data["models"]
    assert embedded(drive_page(run_dir, drive.host, drive.serial), "drive-data")["model"] == shown
    rows = list(csv.DictReader((run_dir / "report" / "results.csv").open(newline="")))
    assert rows[3]["drive"] == "'" + drive.serial


SCRIPTS = {f' src="{up}{name}" defer' for up in ("", "../") for name in ("plotly.min.js", "pages.js")}


@pytest.mark.parametrize("text", ["</script>", "\u2028", "\u2029", "<!--", "&amp;", "\ud800", "é", '"', "\\"])
def test_data_for_scripts_holds_every_text_and_ends_no_script(text):
    shown = render.script_data({"key": text})
    assert not re.search("[<>&\u2028\u2029\ud800]", shown) and json.loads(shown) == {"key": text}


def test_pages_have_path_safe_names_that_differ(tmp_path):
    given = ["a/b", "a_b", "A_b", "..", "../../etc/passwd", "x" * 255, "", "a\0b", "é", ".hidden"]
    found = (
        [names.host_page(name) for name in given]
        + [names.drive_page("h", name) for name in given]
        + [names.supplier_page(name) for name in given]
    )
    assert len({name.lower() for name in found}) == len(found)
    assert all(
        re.fullmatch(r"(?:hosts/|drives/|supplier-)[A-Za-z0-9_-][A-Za-z0-9._-]{0,180}\.html", name) for name in found
    )


def test_characters_that_xml_cannot_hold(tmp_path):
    run_dir = generator.make(tmp_path, unreachable=[("h\x00\x1b[31m", "d\ufffe")])
    made(run_dir)
    ElementTree.parse(run_dir / "report" / "junit.xml")


def test_a_host_name_does_not_lead_out_of_the_run(tmp_path):
    run_dir = generator.make(tmp_path)
    for name in ("..", "../../etc"):
        store.append(
            str(run_dir / "results.jsonl"),
            [{"schema_version": 1, "kind": "host", "host": name, "state": "ok", "message": ""}],
        )
    made(run_dir)


def test_the_page_has_the_curve_the_window_and_the_phases(tmp_path):
    run_dir = generator.make(tmp_path)
    made(run_dir)
    worn = embedded(drive_page(run_dir, "server-3", "SIM0003"), "drive-data")
    series = worn["tests"][0]
    assert worn["verdict"] == "fail" and worn["limits"][0][0]["min"] == 35_000
    assert len(series["rounds"]) == len(series["multiples"]) == len(series["curves"][0]["values"]) == 60
    assert series["multiples"][-1] > 4
    assert 0 < series["phases"]["fresh_end"] < series["phases"]["level_start"] < series["phases"]["window_start"] == 55
    window = series["windows"][0]
    assert (window["range_limit"], window["slope_limit"], len(window["values"])) == (0.2, 0.1, 5)
    assert [point[0] for point in series["percentiles"][0]["points"]] == ["50", "99", "99.9", "99.99", "99.999", "max"]
    assert series["median"]["count"] == 2
    # On the fleet's page one line a drive, the worst last and so on top.
    assert re.findall(r'<polyline class="(\w+)', page(run_dir)) == ["pass", "pass", "fail"]
    healthy = [embedded(drive_page(run_dir, f"server-{n}", f"SIM000{n}"), "drive-data")["tests"][0] for n in (1, 2)]
    # Of two others the median lies half way between them; the worn drive is not among its own.
    middle = sum(test["curves"][0]["values"][59] for test in healthy) / 2
    assert series["median"]["values"][-1] == pytest.approx(middle, rel=1e-3)


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
    records = store.load(str(mixed / "results.jsonl"))
    broken = next(record for record in records if record["kind"] == "test")
    broken["steady_state"][0]["window_values"][2] = float("nan")
    broken["steady_state"][0]["average"] = float("inf")
    broken["metrics"]["write_p99_latency_us"] = float("nan")
    store.append(str(mixed / "results.jsonl"), [broken])
    made(mixed)
    embedded_texts = re.findall(
        r'<script type="application/json"[^>]*>(.*?)</script>', "".join(all_pages(mixed)), re.DOTALL
    )
    assert len(embedded_texts) == 1 + 5
    for text in [*embedded_texts, (mixed / "report" / "summary.json").read_text()]:
        json.loads(text, parse_constant=pytest.fail)


# Curves


@given(
    st.lists(st.one_of(st.none(), st.floats(min_value=0, max_value=1e9)), min_size=1, max_size=400),
    st.integers(min_value=2, max_value=120),
)
def test_thinning_keeps_the_extremes_and_the_order(values, most):
    xs, ys = report_curves.thin(list(range(len(values))), values, most)
    assert len(ys) <= max(most, 2) and xs == sorted(xs)
    assert all(values[x] == y for x, y in zip(xs, ys))
    known = [value for value in values if value is not None]
    if known:
        assert max(known) in ys and min(known) in ys


@pytest.mark.parametrize(
    ("values", "window", "expected"),
    [
        (
            [90, 91, 90, 60, 45, 41, 40, 40, 40, 40],
            range(5, 10),
            {"fresh_end": 3, "level_start": 5, "window_start": 5, "window_end": 9},
        ),
        (
            [90, 91, 50, 90, 60, 41, 40, 40, 40, 40, 40],
            range(6, 11),
            {"fresh_end": 4, "level_start": 5, "window_start": 6, "window_end": 10},
        ),
        ([40, 41, 40, 40, 40], range(5), {"fresh_end": 0, "level_start": 0, "window_start": 0, "window_end": 4}),
        ([40, 41], range(3, 8), None),
        ([None, None], [0, 1], None),
        ([], [], None),
    ],
)
def test_phases(values, window, expected):
    assert report_curves.phases(values, list(window)) == expected


def test_the_median_curve_of_the_others_ends_when_most_have_ended():
    curves = [([1, 2, 3], [1, 2, 3], [10, 20, 30]), ([1, 2], [1, 2], [12, 22]), ([1], [1], [50])]
    found = report_curves.medians_without(curves, 100)
    assert [(indexes, columns[2]) for indexes, columns in found] == [
        ([0, 1], [31, 22]),
        ([0, 1], [30, 20]),
        ([0, 1], [11, 21]),
    ]


@given(st.lists(st.floats(min_value=-1e6, max_value=1e6), min_size=2, max_size=20))
def test_the_median_without_a_drive_is_that_of_the_others(values):
    for index, value in enumerate(values):
        others = values[:index] + values[index + 1 :]
        assert report_curves.median_without(sorted(values), value) == pytest.approx(statistics.median(others))
    assert report_curves.median_without(sorted(values), None) == pytest.approx(statistics.median(values))


def test_a_drive_is_not_among_those_that_its_figure_is_compared_with(tmp_path):
    """With itself in it the median of the three would be 20,000, and the middle one would be at no distance."""
    drives = [
        generator.Drive("h", f"S{n}", generator.MODEL, 90_000, iops, "steady")
        for n, iops in enumerate((40_000, 20_000, 10_000))
    ]
    run_dir = generator.make(tmp_path, drives)
    made(run_dir)
    said = re.findall(r"([0-9.]+) % (above|below) the median of the others of its model", "".join(all_pages(run_dir)))
    # Against 15,000, 25,000 and 30,000, within noise.
    assert sorted((round(float(figure), -1), side) for figure, side in said) == [
        (20, "below"),
        (70, "below"),
        (160, "above"),
    ]


@pytest.mark.parametrize(
    ("value", "short"),
    [
        (41234.567, 41235),
        (0.0123456, 0.012346),
        (0, 0),
        (float("nan"), None),
        (float("inf"), None),
        (None, None),
        (True, None),
        ("1", None),
    ],
)
def test_significant(value, short):
    assert report_curves.significant(value) == short


def test_percentiles_in_order_with_the_maximum_last():
    metrics = {
        "read_p99_9_latency_us": 3,
        "read_p50_latency_us": 1,
        "read_max_latency_us": 9,
        "write_p99_latency_us": 2,
        "write_iops": 7,
    }
    assert report_series.percentiles(metrics) == [
        {"direction": "write", "points": [["99", 2]]},
        {"direction": "read", "points": [["50", 1], ["99.9", 3], ["max", 9]]},
    ]


# Units


@pytest.mark.parametrize(
    ("metric", "value", "text"),
    [
        ("write_iops", 41200.5, "41,200 IOPS"),
        ("bandwidth", 512_345_678, "512.3 MB/s"),
        ("read_p99_latency_us", 89.123, "89.12 µs"),
        ("iops", 0, "0 IOPS"),
        ("other", 0.07131, "0.07131"),
    ],
)
def test_figures_have_units_and_separators(metric, value, text):
    assert units.show(metric, value) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.04, "0.04 s"),
        (59, "59 s"),
        (250.4, "4 min 10 s"),
        (3600, "1 h 0 min"),
        (25500, "7 h 5 min"),
        (59.99, "1 min 0 s"),
    ],
)
def test_durations(seconds, text):
    assert units.duration(seconds) == text


@given(st.floats(min_value=1e-3, max_value=1e12), st.floats(min_value=1e-3, max_value=1e12))
def test_different_figures_never_look_the_same(value, limit):
    texts = units.apart("write_iops", value, limit)
    assert (texts[0] == texts[1]) <= (abs(value - limit) <= 1e-9 + 1e-14 * limit)
