# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The pictures of a page without scripts."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.report import page_names, static_plots, write_report
from ansible_collections.ssdlab.fleet.tests.fixtures.report import generator
from ansible_collections.ssdlab.fleet.tests.unit.plugins.plugin_utils.report.built import made

WINDOW = {
    "cell": "c",
    "metric": "write_iops",
    "unit": "IOPS",
    "rounds": [3, 4, 5, 6, 7],
    "values": [90.0, 110.0, 100.0, 110.0, 90.0],
    "average": 100.0,
    "slope": 2.0,
    "range_limit": 0.2,
}
NOTHING = {
    **{"saturating": False, "multiples": [], "rounds": [], "curves": [], "windows": [], "percentiles": []},
    **{"histogram": [], "latency": None, "fill": None, "convergence": None},
}


def drawn(**parts):
    return static_plots.plots({**NOTHING, **parts}, [])


def heights(picture, css):
    """The y of the points of each line of a class, from the top."""
    lines = re.findall(rf'<polyline class="{css}" points="([^"]*)"', picture)
    return [[float(point.split(",")[1]) for point in line.split()] for line in lines]


def test_a_window_shows_its_rounds_between_the_ends_of_the_band():
    (picture,) = drawn(windows=[WINDOW])["windows"]
    ((*values,),), ((average, _same),), (fitted,) = (heights(picture, css) for css in ("c0", "c1", "c2"))
    upper, lower = (float(y) for y in re.findall(r'<line class="limit"[^>]* y1="([0-9.]+)"', picture))
    # 90 and 110 are the band's ends, 100 is half way.
    assert values == [lower, upper, average, upper, lower] and average == pytest.approx((lower + upper) / 2, abs=0.1)
    assert (
        fitted[0] - average
        == pytest.approx(average - fitted[1], abs=0.2)
        == pytest.approx((lower - upper) * 4 / 20, abs=0.2)
    )
    assert ">+10 %<" in picture and ">\u221210 %<" in picture


def test_percentiles_of_both_directions_have_one_axis():
    sides = [
        {"direction": "write", "points": [["50", 100], ["99.9", 1000], ["max", 10_000]]},
        {"direction": "read", "points": [["50", 10], ["99", 20], ["max", 100]]},
    ]
    picture = drawn(percentiles=sides)["percentiles"]
    shown = re.findall(r"<text[^>]*>([^<]*)</text>", picture)
    assert [text for text in shown if text in ("50", "99", "99.9", "max")] == ["50", "99", "99.9", "max"]
    ((first, second, third),), ((_read, *_more, most),) = heights(picture, "c0"), heights(picture, "c1")
    assert first - second == pytest.approx(second - third, abs=0.2) and most == first


def test_a_histogram_has_a_bar_for_each_that_is_there():
    side = {"direction": "write", "from_us": [0, 10, 100], "to_us": [0.004, 20, 200], "share_pct": [1, 98, 1]}
    picture = drawn(histogram=[side])["histogram"]
    bars = re.findall(r'<rect class="c0"[^>]* width="([0-9.]+)" height="([0-9.]+)"', picture)
    assert len(bars) == 3 and bars[1][0] == bars[2][0] and float(bars[1][1]) > float(bars[0][1]) > 5


@pytest.mark.parametrize(
    "odd",
    [
        {"values": [0.0] * 5, "average": 0.0, "slope": 0.0},
        {"values": [None] * 5, "average": None, "slope": None},
        {"values": [5.0] * 5, "average": None},
        {"values": [-1e308, 1e308, 1.0, 1.0, 1.0], "average": 1.7e308},
        {"rounds": [3], "values": [5.0], "average": 5.0},
    ],
)
def test_a_host_may_send_any_window(odd):
    (picture,) = drawn(windows=[{**WINDOW, **odd}])["windows"]
    assert not picture or ElementTree.fromstring(picture).tag == "svg"


def test_where_there_is_nothing_nothing_is_drawn():
    found = drawn()
    assert found.pop("windows") == [] and set(found.values()) == {""}
    empty = {"direction": "read", "from_us": [], "to_us": [], "share_pct": []}
    assert drawn(histogram=[empty])["histogram"] == "" == drawn(percentiles=[])["percentiles"]


def test_a_suppliers_page_has_them(tmp_path):
    run_dir = generator.make(tmp_path, generator.DEMO[:1], ("wsat", "dirth-most-iops"), criteria=[])
    made(run_dir, asked=write_report.ReportOptions(supplier_model="SIM*"))
    page = (run_dir / "report" / page_names.supplier_page("SIM*")).read_text()
    told = re.findall(r'<svg class="lines"[^>]* aria-label="([^"]*)"', page)
    tails = ["latency percentiles; the figures are in the table below", "share of I/O by latency"]
    assert told == [
        "write_iops over the test",
        "write_iops in the window; the figures are in the table below",
        *tails,
        "mean, 99.9 % and maximum latency over the test",
        *tails,
    ]
