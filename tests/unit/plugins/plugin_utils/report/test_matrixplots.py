# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The 2-D and 3-D plots of block sizes by mixes: what is drawn where, from the numbers alone."""

from __future__ import annotations

import itertools
import re
import types
from xml.etree import ElementTree

import pytest

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan.render_plan import load_plan
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.report import matrixplots, svg, tables
from ansible_collections.ssdlab.fleet.tests.fixtures.report import generator, specs
from ansible_collections.ssdlab.fleet.tests.unit.plugins.plugin_utils.report.built import drive_page, made

SIZES, MIXES = ["64 KiB", "8 KiB", "4 KiB"], ["100/0", "65/35", "0/100"]
VALUES = [[4_000, 2_000, 1_000], [30_000, 15_000, 8_000], [60_000, 30_000, 15_000]]
GRID = matrixplots.Grid(SIZES, MIXES, VALUES, "IOPS")


def faces(svg):
    """{title: its faces as lists of points}, in the order in which they are drawn."""
    found = {}
    for group in ElementTree.fromstring(str(svg)).iter("g"):
        paths = [re.findall(r"(-?[\d.]+) (-?[\d.]+)", path.get("d")) for path in group.iter("path")]
        found[group.find("title").text] = [[(float(x), float(y)) for x, y in path] for path in paths]
    return found


def height(sides):
    """Of a bar: how far the front edge of its top lies above its foot."""
    _top, left, _right = sides
    return left[2][1] - left[1][1]


def test_a_bar_stands_for_each_cell_and_a_power_of_ten_is_as_high_everywhere():
    drawn = faces(matrixplots.both(GRID)["solid"])
    names = {f"{size}, {mix}" for size, mix in itertools.product(SIZES, MIXES)}
    assert {name.partition(":")[0] for name in drawn} == names and "4 KiB, 100/0: 60,000" in drawn
    one, ten = height(drawn["64 KiB, 0/100: 1,000"]), height(drawn["64 KiB, 65/35: 2,000"])
    also = height(drawn["4 KiB, 0/100: 15,000"]), height(drawn["4 KiB, 65/35: 30,000"])
    assert ten - one == pytest.approx(also[1] - also[0], abs=0.2) and ten > one > 0


@pytest.mark.parametrize("values", [VALUES, [row[::-1] for row in VALUES[::-1]]])
def test_low_bars_stand_in_front_of_high_ones_whichever_way_the_figure_grows(values):
    drawn = faces(matrixplots.both(GRID._replace(values=values))["solid"])
    feet = {name: sides[1][2][1] for name, sides in drawn.items()}
    by_value = sorted(feet, key=lambda name: float(name.rpartition(" ")[2].replace(",", "")))
    assert feet[by_value[0]] == max(feet.values()) and feet[by_value[-1]] == min(feet.values())
    # Painted from the back to the front, so that none covers what is nearer.
    assert list(feet.values()) == sorted(feet.values())


def test_each_mix_is_a_line_over_the_block_sizes_the_smallest_left():
    root = ElementTree.fromstring(str(matrixplots.both(GRID)["flat"]))
    lines = {line.find("title").text: line.get("points").split() for line in root.iter("polyline")}
    assert list(lines) == MIXES and all(len(points) == 3 for points in lines.values())
    labels = [text.text for text in root.iter("text")]
    assert [label for label in labels if label in SIZES] == SIZES[::-1]
    heights = [float(point.partition(",")[2]) for point in lines["100/0"]]
    assert heights == sorted(heights)  # fewer IOPS the larger the blocks, and y grows downwards


def test_what_is_unknown_is_left_out_and_too_much_is_not_drawn():
    drawn = faces(matrixplots.both(GRID._replace(values=[[None, 0, 5], *VALUES[1:]]))["solid"])
    assert len(drawn) == 7
    assert matrixplots.both(GRID._replace(values=[[None] * 3] * 3)) == {}
    wide = GRID._replace(mixes=["m"] * 40, values=[[1.0] * 40] * 3)
    assert matrixplots.both(wide) == {}


def test_a_label_is_text_and_any_range_of_figures_has_a_few_ticks():
    grid = GRID._replace(mixes=["<b>", "x", "y"], values=[[1e-300, 1, 1e300], *VALUES[1:]])
    for drawn in matrixplots.both(grid).values():
        assert "<b>" not in drawn and str(drawn).count("<text") < 30
        ElementTree.fromstring(str(drawn))


def test_the_latency_test_reports_mean_tail_and_maximum():
    (test,) = load_plan(["latency"])
    averages = [
        {
            "cell": cell["id"],
            "metrics": {
                "mean_latency_us": 10.0 + place,
                "max_latency_us": 1000.0 + place,
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
    assert all(len(faces(matrix["plots"]["solid"])) == 9 for matrix in found)


def test_the_page_of_the_iops_test_has_both_plots_beside_the_table(tmp_path):
    one = generator.DEMO[0]
    run_dir = generator.make(tmp_path, [one], ("wsat", "iops"))
    made(run_dir)
    html = drive_page(run_dir, one.host, one.serial)
    assert html.count('class="solid"') == len(specs.BLOCK_SIZES) * len(specs.MIXES) and 'class="matrix"' in html
    assert "IOPS by block size and R/W mix in three dimensions" in html


def test_the_figure_below_a_bar_stands_above_the_bars_names():
    root = ElementTree.fromstring(str(svg.bars([("wait", 20.9), ("back", -38.5)], "x", "y")))
    places = {text.text: float(text.get("y", "0")) for text in root.iter("text")}
    assert places["back"] - places["\u221238.5"] >= 12
