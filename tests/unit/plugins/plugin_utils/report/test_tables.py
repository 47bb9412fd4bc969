# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import types

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.records import base
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan.render_plan import load_plan
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.report import tables
from ansible_collections.ssdlab.fleet.tests.fixtures.report import generator, specs
from ansible_collections.ssdlab.fleet.tests.unit.plugins.plugin_utils.report.built import charts, drive_page, made

SIZES, MIXES = ["64 KiB", "8 KiB", "4 KiB"], ["100/0", "65/35", "0/100"]
VALUES = [[4_000, 2_000, 1_000], [30_000, 15_000, 8_000], [60_000, 30_000, 15_000]]


def test_a_stream_that_only_trims_has_the_figures_of_its_trims():
    averages = [
        {"cell": "jobs-x", "metrics": {"iops": 250.0, "bandwidth": 2e6, "trim_iops": 20.0, "within_1ms_pct": 99.0}},
        {"cell": "jobs-x.trims", "metrics": {"trim_iops": 20.0, "trim_bandwidth": 1e6, "trim_within_1ms_pct": 12.5}},
    ]
    rows = tables.cells([{"id": "jobs-x"}], types.SimpleNamespace(averages=averages))
    assert [row["figures"][0] for row in rows] == ["250", "20"]
    assert [row["shares"] for row in rows] == [[("I/O ≤ 1 ms (%)", text)] for text in ("99", "12.5")]


@pytest.mark.parametrize("values", [VALUES, [row[::-1] for row in VALUES[::-1]]])
def test_low_bars_stand_in_front_of_high_ones_whichever_way_the_figure_grows(values):
    solid = tables.plots(SIZES, MIXES, values, "IOPS")["solid"]
    assert solid["values"][0][0] == 60_000 and solid["values"][-1][-1] == 1_000
    assert solid["title"] == "IOPS, log"
    for size, row in zip(SIZES, values):
        for mix, value in zip(MIXES, row):
            assert solid["values"][solid["sizes"].index(size)][solid["mixes"].index(mix)] == value


def test_each_mix_is_a_line_over_the_block_sizes_the_smallest_left():
    flat = tables.plots(SIZES, MIXES, VALUES, "IOPS")["flat"]
    assert [line["label"] for line in flat["lines"]] == MIXES
    assert flat["lines"][0] == {"label": "100/0", "x": SIZES[::-1], "y": [60_000, 30_000, 4_000]}
    assert (flat["x_title"], flat["y_title"], flat["log"]) == ("Block size", "IOPS, log", True)


def test_too_much_is_not_drawn():
    assert tables.plots(SIZES, ["m"] * 40, [[1.0] * 40] * 3, "IOPS") is None


def test_the_latency_test_reports_mean_tail_and_maximum():
    (test,) = base.sparse_json(load_plan(["latency"]))
    averages = [
        {
            "cell": cell["id"],
            "metrics": {
                "mean_latency_us": 10.0 + place,
                "max_latency_us": (1e-300, 1e300, -1.0)[place] if place < 3 else 1000.0,
                "read_p99_999_latency_us": None,
                "write_p99_999_latency_us": 500.0 + place,
            },
        }
        for place, cell in enumerate(test["cells"])
    ]
    about = {"tracked": [{"metric": "write_mean_latency_us"}]}
    found = tables.matrices(test["cells"], types.SimpleNamespace(averages=averages), about, "the window")
    names = [matrix["metric"] for matrix in found]
    assert names == ["mean_latency_us", "p99_999_latency_us", "max_latency_us"]
    assert found[0]["caption"] == "Mean latency (µs) by block size and R/W mix, average over the window"
    assert [row["block_size"] for row in found[0]["rows"]] == ["8 KiB", "4 KiB", "0.5 KiB"]
    known = [[value for row in one["plots"]["solid"]["values"] for value in row if value] for one in found]
    # What a logarithm cannot show, and what no drive can have, is left out.
    assert [len(values) for values in known] == [9, 9, 7]
    assert found[0]["plots"]["solid"]["title"] == "Mean latency (µs), log"


def test_the_page_of_the_iops_test_has_both_plots_beside_the_table(tmp_path):
    one = generator.DEMO[0]
    run_dir = generator.make(tmp_path, [one], ("wsat", "iops"))
    made(run_dir)
    html = drive_page(run_dir, one.host, one.serial)
    wsat, iops = charts(html)
    assert wsat["matrices"] == []
    (matrix,) = iops["matrices"]
    assert [len(row) for row in matrix["solid"]["values"]] == [len(specs.MIXES)] * len(specs.BLOCK_SIZES)
    for kind in ("flat", "solid"):
        assert html.count(f'data-chart="{kind}"') == 1
    assert "IOPS by block size and R/W mix, average over the window in three dimensions" in html
    assert 'class="matrix"' in html
