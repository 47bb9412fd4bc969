# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Percentiles and histograms on the pages, also of tests without a rule: points behind a lead, sweeps, a few
workloads.
"""

from __future__ import annotations

import html
import json
import re
import shutil
import types

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.measure import histogram
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.report import (
    demand_intensity,
    latencies,
    page_names,
    write_report,
)
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.report import tables as tables_of
from ansible_collections.ssdlab.fleet.tests.fixtures import documents
from ansible_collections.ssdlab.fleet.tests.fixtures.report import generator, specs
from ansible_collections.ssdlab.fleet.tests.unit.plugins.plugin_utils.report.built import (
    charts,
    drive_page,
    made,
)

TESTS = ("wsat", "dirth-sweep", "dirth-most-iops", "few")
LABELS = ["mean", "50 %", "90 %", "95 %", "99 %", "99.9 %", "99.99 %", "99.999 %", "99.9999 %", "max"]
SHARES = [f"I/O ≤ {ms} ms (%)" for ms in (1, 2, 5)]
CELL = re.compile(r"<t[hd][^>]*>(.*?)</t[hd]>")
POINT, LEAD = (cell["id"] for cell in reversed(specs.point_test()["cells"]))


@pytest.fixture(name="once", scope="module")
def fixture_once(tmp_path_factory):
    run_dir = generator.make(tmp_path_factory.mktemp("latencies"), generator.DEMO[:1], TESTS, criteria=[])
    made(run_dir, asked=write_report.ReportOptions(supplier_model="SIM*"))
    return run_dir


@pytest.fixture(name="run_dir")
def fixture_run_dir(once, tmp_path):
    """A copy, to change."""
    return shutil.copytree(once, tmp_path / once.name)


def page_of(run_dir):
    return drive_page(run_dir, "server-1", "SIM0001")


def sections(page):
    """{test: its part of a page}"""
    parts = re.split(r'<section class="test">', page)[1:]
    return {re.search(r"<h3>.*?<code>(.*?)</code>", part)[1]: part for part in parts}


def tables(section, kind):
    """[[texts of a row]] of each table of a class."""
    found = re.findall(rf'<table class="{kind}">(.*?)</table>', section, re.DOTALL)
    rows = [re.findall(r"<tr>(.*?)</tr>", table, re.DOTALL) for table in found]
    return [[[html.unescape(text) for text in CELL.findall(row)] for row in table] for table in rows]


def captions(section):
    return [html.unescape(text) for text in re.findall(r"<figcaption>(.*?)</figcaption>", section)]


def kept_bins(run_dir, test, cell):
    """{direction: {ns: I/Os}} as the host's journal has them."""
    lines = (run_dir / "raw" / "server-1" / "journal.jsonl").read_text().splitlines()
    events = [event for event in map(json.loads, lines) if event["event"] == "histogram"]
    return {
        event["direction"]: {int(ns): count for ns, count in event["bins"].items()}
        for event in events
        if (event["test"], event["cell"]) == (test, cell)
    }


def test_the_tests_are_sound(once):
    summary = json.loads((once / "report" / "summary.json").read_text())
    assert [(test["test"], test["verdict"]) for test in summary["drives"][0]["tests"]] == [(t, "pass") for t in TESTS]


def test_the_histogram_of_a_point_is_that_of_the_point_and_not_of_its_lead(once):
    (drawn,) = charts(page_of(once))[2]["histogram"]
    point, lead = (kept_bins(once, "dirth-most-iops", cell)["write"] for cell in (POINT, LEAD))
    # The lead has 64 times as many I/Os in flight, hence latencies of its own.
    assert drawn["to_us"][-1] * 1000 > max(point) >= drawn["from_us"][-1] * 1000
    assert drawn["from_us"][0] * 1000 <= min(point) and drawn["to_us"][-1] * 1000 < max(lead)
    assert sum(drawn["share_pct"]) == pytest.approx(100, abs=0.01)
    section = sections(page_of(once))["dirth-most-iops"]
    assert f"Latency histogram of {POINT}, all I/O of its one round" in captions(section)
    assert section.count('data-chart="histogram"') == 1 and section.count('data-chart="percentiles"') == 1


@pytest.mark.parametrize("test, span", [("dirth-most-iops", "its one round"), ("few", "all 3 rounds")])
def test_a_test_without_a_rule_has_its_percentiles(once, test, span):
    for page in (page_of(once), (once / "report" / page_names.supplier_page("SIM*")).read_text()):
        section = sections(page)[test]
        first = POINT if test == "dirth-most-iops" else specs.few_test()["cells"][0]["id"]
        assert f"Latency of {first}, over {span}" in captions(section)
        ((corner, side), *rows) = tables(section, "latency")[0]
        assert [corner, *(label for label, _text in rows)] == ["µs", *LABELS, *SHARES]
        tail = histogram.percentiles_us(kept_bins(once, test, first)[side])["99.999"]
        assert float(dict(rows)["99.999 %"].replace(",", "")) == pytest.approx(tail, rel=1e-3)


def test_of_a_rule_it_is_the_window(once):
    section = sections(page_of(once))["wsat"]
    assert "Latency, over the window" in captions(section)
    told = f"Latency histogram of {specs.WSAT_CELL}, all I/O from the window's first round to its last"
    assert told in captions(section) and len(tables(section, "latency")) == 1


def test_every_cell_has_its_percentiles(once):
    section = sections(page_of(once))["few"]
    head, *rows = tables(section, "latency by-cell")[0]
    assert head == ["Cell", "Direction", *LABELS]
    fast, mixed, slow = (cell["id"] for cell in specs.few_test()["cells"])
    assert [row[:2] for row in rows] == [[fast, "read"], [mixed, "read"], [mixed, "write"], [slow, "write"]]
    for cell, side, *texts in rows:
        tail = histogram.percentiles_us(kept_bins(once, "few", cell)[side])["99.9"]
        assert float(texts[head.index("99.9 %") - 2].replace(",", "")) == pytest.approx(tail, rel=1e-3)
        assert texts[head.index("99.9999 %") - 2] == "too few"
    # Few enough to be seen at once; those of a large test are folded away.
    assert '<details class="small" open><summary>All 3 cells' in section
    sweep = sections(page_of(once))["dirth-sweep"]
    assert len(tables(sweep, "latency by-cell")[0]) == 1 + len(specs.sweep_test()["cells"])


def test_a_sweep_tells_how_much_was_within_a_time_by_load(once):
    """On the page, and in summary.json by its schema."""
    section = sections(page_of(once))["dirth-sweep"]
    (head, *rows), cells = tables(section, "cells")
    summary = json.loads((once / "report" / "summary.json").read_text())
    documents.validate(summary, "summary")
    told = summary["drives"][0]["tests"][1]
    points = told["demand"]["points"]
    assert head[4:7] == SHARES and len(rows) == len(points) == 6
    for row, point in zip(rows, points):
        bins = kept_bins(once, "dirth-sweep", point["cell"])["write"]
        shares = [histogram.share_within_pct(bins, limit) for limit in specs.TARGETS_US]
        assert [point[f"within_{ms}ms_pct"] for ms in (1, 2, 5)] == pytest.approx(shares)
        assert row[4:7] == [latencies.share_text(share) for share in shares]
    assert all("within_1ms_pct" in point for sweep in told["sweeps"] for point in sweep["points"])
    assert min(point["within_1ms_pct"] for point in points) < 100
    # All cells have them too, the lead among them.
    assert cells[0][5:8] == SHARES and len(cells) == 8 and all(row[5:8] != ["–"] * 3 for row in cells[1:])


def test_a_test_whose_figures_are_of_its_last_rounds_says_so(run_dir):
    run = json.loads((run_dir / "run.json").read_text())
    run["tests"]["few"]["last_rounds"] = 2
    (run_dir / "run.json").write_text(json.dumps(run))
    made(run_dir)
    shown = captions(sections(page_of(run_dir))["few"])
    assert "IOPS by block size and R/W mix, average over the last 2 rounds" in shown
    first = specs.few_test()["cells"][0]["id"]
    assert f"Latency of {first}, over the last 2 rounds" in shown
    assert f"Latency histogram of {first}, all I/O of the last 2 rounds" in shown


def test_a_test_without_figures_has_no_table(run_dir):
    path = run_dir / "results.jsonl"
    records = [json.loads(line) for line in path.read_text().splitlines()]
    for record in records:
        if record.get("test") == "few":
            record["metrics"] = {}
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    shutil.rmtree(run_dir / "raw")
    made(run_dir)
    assert not tables(sections(page_of(run_dir))["few"], "latency")


def test_percentiles_in_order_with_the_maximum_last():
    metrics = {
        "read_p99_9_latency_us": 3,
        "read_p50_latency_us": 1,
        "read_max_latency_us": 9,
        "write_p99_latency_us": 2,
        "write_iops": 7,
    }
    assert latencies.percentiles(metrics) == [
        {"direction": "write", "points": [["99", 2]]},
        {"direction": "read", "points": [["50", 1], ["99.9", 3], ["max", 9]]},
    ]


@pytest.mark.parametrize(
    "share, text",
    [
        (100 * 52_651_003 / 52_727_650, "99.855"),
        (100, "100"),
        (99.9996, "> 99.999"),
        (50.5, "50.5"),
        (0.0004, "< 0.001"),
        (0, "0"),
        (None, "–"),
    ],
)
def test_a_share_that_is_not_all_or_nothing_does_not_look_like_it(share, text):
    assert latencies.share_text(share) == text


@pytest.mark.parametrize(
    "record, last, span",
    [
        ({"rounds": 5, "steady_state": [{}]}, None, "the window"),
        ({"rounds": 5}, None, "all 5 rounds"),
        ({"rounds": 5}, 5, "all 5 rounds"),
        ({"rounds": 1}, None, "its one round"),
        ({"rounds": 5}, 2, "the last 2 rounds"),
        ({"rounds": 5}, 1, "the last round"),
        # Which of them were disturbed does not matter here: those that count were not.
        ({"rounds": 5, "validity": [{"level": "disturbs"}]}, None, "all clean rounds"),
        ({"rounds": 5, "validity": [{"level": "disturbs"}]}, 2, "the last clean rounds"),
        ({"rounds": 5, "validity": [{"level": "unknown"}, {"level": "told"}]}, None, "all 5 rounds"),
        ({"rounds": 5, "validity": [{"level": "unknown"}]}, 2, "the last 2 rounds"),
    ],
)
def test_which_rounds_figures_are_of(record, last, span):
    assert latencies.span(record, last) == span


def test_a_host_that_names_many_figures_makes_no_wider_tables():
    """Each of 300 names in each of hundreds of cells would be a column of a row for each of them."""
    averages = []
    for number in range(100):
        named = [f"write_p{number}_{place:03}_latency_us" for place in range(50)]
        named += [f"within_{1 + 50 * number + place}ms_pct" for place in range(50)]
        metrics = dict.fromkeys(["write_mean_latency_us", "write_p99_9_latency_us", *named], 1.0)
        averages.append({"cell": f"c{number}", "metrics": metrics})
    told = types.SimpleNamespace(averages=averages)
    assert latencies.by_cell([], told)["labels"] == ["mean", "99.9 %", "max"]
    assert {len(row["shares"]) for row in tables_of.cells([], told)} == {8}
    for metrics in (one["metrics"] for one in averages):
        assert latencies.table(metrics)["labels"][:3] == ["mean", "99.9 %", "max"]
        assert latencies.percentiles(metrics) == [{"direction": "write", "points": [["99.9", 1.0]]}]
    points = [
        {**dict.fromkeys(demand_intensity.FIGURES, 1), "cell": "c", **latencies.shares(one["metrics"])}
        for one in averages
    ]
    assert {len(point) for point in points} == {5 + 8} and len(demand_intensity.table(points, points[0])["shares"]) == 8
