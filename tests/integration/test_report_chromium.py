# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The report in a real browser: no errors, curves drawn, no network, usable wide and narrow, by keyboard and by screen
reader (axe).

Needs Debian's chromium and chromium-driver."""

from __future__ import annotations

import base64
import json
import pathlib
import re
import shutil

import pytest
from report_browser import NEEDED, ROWS, chromium, drawn, requests, show, violations, wait_for

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.report import page_names, write_report
from ansible_collections.ssdlab.fleet.tests.fixtures.report import fleets, generator

pytestmark = NEEDED

EVIL = "</script><script>window.harmed=1</script><img src=//192.0.2.1/x onerror=window.harmed=1>"
STOPPED = generator.Drive("server-4", "SIM0004", EVIL, 90_000, 40_000, "interrupted")


@pytest.fixture(name="browser", scope="module")
def fixture_browser(tmp_path_factory):
    with chromium(tmp_path_factory.mktemp("profile")) as driver:
        yield driver


def page_of(tmp_path, **options):
    run_dir = generator.make(tmp_path, **options)
    return pathlib.Path(write_report.make(str(run_dir.parent), run_dir.name).path)


@pytest.fixture(name="mixed", scope="module")
def fixture_mixed(tmp_path_factory):
    drives = (*generator.DEMO, STOPPED)
    return page_of(
        tmp_path_factory.mktemp("mixed"), drives=drives, tests=("wsat", "iops"), unreachable=[("server-9", "SIM0009")]
    )


@pytest.fixture(name="worn", scope="module")
def fixture_worn(mixed):
    return mixed.parent / page_names.drive_page("server-3", "SIM0003")


@pytest.fixture(name="suites", scope="module")
def fixture_suites(tmp_path_factory):
    """The page of a drive with tests without a rule: a sweep, a point of it, a few workloads."""
    tests = ("wsat", "dirth-sweep", "dirth-most-iops", "few")
    index = page_of(tmp_path_factory.mktemp("suites"), drives=generator.DEMO[:1], tests=tests, criteria=[])
    return index.parent / page_names.drive_page("server-1", "SIM0001")


@pytest.fixture(name="fleet", scope="module")
def fleet_page(tmp_path_factory):
    """Six hosts of four drives in three racks: a bad drive on h1, and h4, which is slow as a whole and has another
    BIOS.
    """
    return fleets.page(tmp_path_factory.mktemp("fleet"))


def test_curves_are_drawn_without_errors_or_a_network(browser, mixed, worn):
    show(browser, worn)
    assert max(drawn(browser, "curve")) >= 30
    assert len(drawn(browser, "window")) == 2
    assert drawn(browser, "percentiles")
    assert len(drawn(browser, "latency")) == 3
    host = mixed.parent / page_names.host_page("server-3")
    for page in (worn, mixed, host):
        show(browser, page)
        if page != host:
            wait_for(browser, "return document.querySelectorAll('.js-line').length")
        assert browser.get_log("browser") == []
        asked = requests(browser)
        assert page.as_uri() in asked
        assert [url for url in asked if not url.startswith(("file://", "data:"))] == []
        assert ("plotly" in "".join(asked)) == (page != host)


def with_data(page, **parts):
    """A copy of a drive's page, beside it, whose first test has other data."""
    html = page.read_text()
    data = re.search(r'class="chart-data">(.*?)</script>', html, re.DOTALL)[1]
    changed = page.with_name("changed.html")
    changed.write_text(html.replace(data, json.dumps({**json.loads(data), **parts})))
    return changed


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


@pytest.mark.parametrize(
    "odd",
    [
        {"values": [0.0] * 5, "average": 0.0, "slope": 0.0},
        {"values": [None] * 5, "average": None, "slope": None},
        {"values": [5.0] * 5, "average": None},
        {"values": [None, None, -1.0, 1.0, 1e17], "average": None},
        {"rounds": [3], "values": [5.0], "average": 5.0},
    ],
)
def test_a_host_may_send_any_window(browser, worn, odd):
    show(browser, with_data(worn, windows=[{**WINDOW, **odd}]))
    assert wait_for(browser, "return document.querySelector('[data-chart=window].js-plotly-plot')")
    assert browser.get_log("browser") == []


def test_percentiles_of_both_directions_have_one_axis(browser, worn):
    sides = [
        {"direction": "write", "points": [["50", 100], ["99.9", 1000], ["max", 10_000]]},
        {"direction": "read", "points": [["50", 10], ["99", 20], ["max", 100]]},
    ]
    show(browser, with_data(worn, percentiles=sides))
    axis = "return (document.querySelector('[data-chart=percentiles]')._fullLayout || {xaxis: {}}).xaxis._categories"
    assert wait_for(browser, axis) == ["50", "99", "99.9", "max"]


def test_a_curve_of_the_fleet_leads_to_its_drive(browser, mixed, worn):
    show(browser, mixed)
    wait_for(browser, "return document.querySelectorAll('[data-chart=overlay] .js-line').length")
    # Of so few each is named.
    names = "return [...document.querySelectorAll('[data-chart=overlay] .legendtext')].map(text => text.textContent)"
    assert {"server-1 SIM0001: pass", "server-3 SIM0003: fail"} <= set(browser.execute_script(names))
    browser.execute_script("""
      const chart = document.querySelector('[data-chart=overlay]'), data = chart.data[chart.data.length - 1];
      chart.emit('plotly_click', {points: [{data}]});
    """)
    assert wait_for(browser, "return location.href.includes('/drives/') && location.href") == worn.as_uri()


def test_the_worst_comes_first(browser, mixed):
    show(browser, mixed)
    assert browser.execute_script(f"return {ROWS}.map(r => r.dataset.verdict)") == [
        "fail",
        "invalid",
        "not_tested",
        "pass",
        "pass",
    ]
    first = "document.querySelector('.first li')"
    assert browser.execute_script(f"return {first}.textContent").startswith("Failed: SIM0003 on server-3")
    assert browser.execute_script(f"return {first}.getBoundingClientRect().bottom") < 400


@pytest.mark.variants(1)
@pytest.mark.parametrize("width, scheme", [(1280, "light"), (1280, "dark"), (400, "light")])
def test_who_cannot_see_or_use_a_mouse_can_read_it(browser, mixed, worn, fleet, width, scheme):
    for page in (fleet, worn, mixed.parent / page_names.host_page("server-3")) if width > 400 else (fleet,):
        show(browser, page, width, scheme=scheme)
        if page == worn:
            drawn(browser, "curve")
        assert violations(browser) == [], page


def test_what_a_drive_says_does_no_harm(browser, mixed):
    for page in (mixed, mixed.parent / page_names.drive_page(STOPPED.host, STOPPED.serial)):
        show(browser, page)
        assert wait_for(
            browser, "return document.body.textContent.includes(arguments[0])".replace("arguments[0]", json.dumps(EVIL))
        )
        assert browser.execute_script("return window.harmed") is None
        assert browser.execute_script("return document.querySelectorAll('img').length") == 0
        assert browser.get_log("browser") == []


@pytest.mark.parametrize("width", [1280, 390])
def test_nothing_is_wider_than_the_page(browser, mixed, worn, fleet, suites, width):
    for page in (mixed, worn, fleet, suites, mixed.parent / page_names.host_page("server-3")):
        show(browser, page, width)
        browser.execute_script("document.querySelectorAll('details').forEach(d => { d.open = true; })")
        if page == worn:
            drawn(browser, "curve")
        assert (
            browser.execute_script("return document.documentElement.scrollWidth - document.documentElement.clientWidth")
            == 0
        ), page
        # What one reads from side to side fits without a scroll bar of its own.
        cut = "return [...document.querySelectorAll('.latency, .rule, .window')].filter(cutOff).length"
        assert browser.execute_script(CUT_OFF + cut) == 0, page


# A scroll bar of a phone lies over the page, and that of this browser beside it.
CUT_OFF = "const cutOff = one => one.getBoundingClientRect().right > innerWidth;"
TABLE = """
  const section = [...document.querySelectorAll('section.test')].find(
    one => one.querySelector('h3 code').textContent === arguments[0]);
  return [...section.querySelectorAll(arguments[1])].map(table => [...table.rows].map(
    row => [...row.cells].map(cell => cell.innerText.replace(/[^\\x20-\\x7e≤µ]/g, '').trim())));
"""


def test_a_sweep_shows_shares_and_a_point_its_histogram(browser, suites):
    show(browser, suites, height=9000)
    (head, *rows), _cells = browser.execute_script(TABLE, "dirth-sweep", "table.cells")
    assert head[4:] == [f"I/O ≤ {ms} ms (%)" for ms in (1, 2, 5)] + ["Sweet spot"]
    assert len(rows) == 6 and all(99 < float(row[4]) < 100 for row in rows) and rows[-1][-1] == "this one"
    head, (lead, *_figures), (point, *figures) = browser.execute_script(TABLE, "dirth-most-iops", "table.by-cell")[0]
    assert lead.endswith("-lead") and point == "rand-4k-w100-most" and "99.999 %" in head and "too few" in figures
    for chart, lines in (("histogram", 2), ("percentiles", 1)):
        # Each test on the page has a chart of that kind, with its lines.
        one = f"one.querySelectorAll(\"[data-chart='{chart}'] .scatterlayer .js-line\").length === {lines}"
        wait_for(browser, f"return [...document.querySelectorAll('section.test')].every(one => {one})")
    assert browser.get_log("browser") == [] and violations(browser) == []


def test_the_axis_can_be_changed(browser, worn):
    show(browser, worn)
    drawn(browser, "curve")
    title = "return document.querySelector('[data-chart=\"curve\"] .xtitle').textContent"
    assert "capacity" in browser.execute_script(title)
    browser.execute_script("document.querySelector('input[value=\"elapsed_s\"]').click()")
    assert wait_for(browser, title) == "Time (min)"
    browser.execute_script("document.querySelector('input[value=\"log\"]').click()")
    assert wait_for(browser, "return document.querySelector('[data-chart=\"curve\"]')._fullLayout.yaxis.type") == "log"
    assert browser.get_log("browser") == []


def test_it_prints(browser, mixed, worn, fleet, tmp_path):
    """The fleet, a drive, and the page for a supplier, which is one file: all charts are drawn for the paper."""
    asked = write_report.ReportOptions(supplier_model="SIM*")
    write_report.make(str(mixed.parents[2]), mixed.parents[1].name, asked=asked)
    (made,) = mixed.parent.glob("supplier-*.html")
    supplier = made.rename(tmp_path / made.name)
    for page in (fleet, worn, supplier):
        show(browser, page, scheme="dark")
        if page == worn:
            drawn(browser, "curve")
        pdf = base64.b64decode(browser.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})["data"])
        assert pdf.startswith(b"%PDF") and len(pdf) > 20_000
        assert browser.execute_script("return document.querySelectorAll('.chart:not(.js-plotly-plot)').length") == 0
        assert browser.get_log("browser") == []


PRINTED = """
  const shown = kind => [...document.querySelectorAll(kind)].filter(element => element.getClientRects().length);
  return {
    controls: shown('button, select, input').filter(element => !element.closest('th')).length,
    arrows: shown('th > button').filter(element => getComputedStyle(element, '::after').display !== 'none').length,
    folded: document.querySelectorAll('details:not([open])').length,
    paper: getComputedStyle(document.body).backgroundColor,
    cut: document.documentElement.scrollWidth - document.documentElement.clientWidth,
    narrow: shown('#rows td.why, #groups tbody th').filter(cell => cell.getBoundingClientRect().width < 110).length,
  };
"""


WHITE = {"paper": "rgb(255, 255, 255)"}


def test_paper_has_no_buttons_and_is_white(browser, mixed, worn, fleet, suites):
    """Also for who looks at a dark screen: nothing to press, nothing folded up, nothing beyond the edge."""
    for page in (fleet, mixed, worn, suites):
        show(browser, page, width=718, scheme="dark")
        if page == worn:
            drawn(browser, "curve")
        browser.execute_cdp_cmd(
            "Emulation.setEmulatedMedia",
            {"media": "print", "features": [{"name": "prefers-color-scheme", "value": "dark"}]},
        )
        browser.execute_script("window.dispatchEvent(new Event('beforeprint'))")
        found = browser.execute_script(PRINTED)
        browser.execute_script("window.dispatchEvent(new Event('afterprint'))")
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
        assert found == {"controls": 0, "arrows": 0, "folded": 0, **WHITE, "cut": 0, "narrow": 0}, page


@pytest.mark.parametrize(("hosts", "drives", "outcome"), [(1, 0, "steady"), (1, 1, "steady"), (6, 4, "invalid")])
def test_a_fleet_of_none_of_one_and_of_nothing_that_counts(browser, tmp_path, hosts, drives, outcome):
    page = fleets.odd_page(tmp_path, hosts, drives, outcome)
    for width, scheme in ((1400, "light"), (700, "dark")):
        show(browser, page, width, scheme=scheme)
        wait_for(browser, "return document.readyState === 'complete'")
        cut = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
        assert browser.get_log("browser") == [] and browser.execute_script(cut) == 0
        assert browser.execute_script(f"return {ROWS}.length") == (24 if drives == 4 else 0)
        assert violations(browser) == []


def test_a_run_that_is_copied_alone_still_draws(browser, worn, tmp_path):
    """Plotly is there once for all runs of a results folder, and yet in every run."""
    run_dir = worn.parents[2]
    shared = next((run_dir.parent / "assets").iterdir())
    assert shared.samefile(run_dir / "report" / "plotly.min.js")
    copied = shutil.copytree(run_dir, tmp_path / "copied")
    show(browser, copied / "report" / "drives" / worn.name)
    assert max(drawn(browser, "curve")) >= 30
