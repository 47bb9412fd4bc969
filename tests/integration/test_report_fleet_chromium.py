# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The fleet's page in a real browser: what it tells first, its filters, its tables, its heat map, and its size."""

from __future__ import annotations

import pathlib

import pytest
from report_browser import NEEDED, ROWS, chromium, show, violations, wait_for

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.report import page_names, write_report
from ansible_collections.ssdlab.fleet.tests.fixtures.report import fleets, generator

pytestmark = NEEDED


@pytest.fixture(name="browser", scope="module")
def fixture_browser(tmp_path_factory):
    with chromium(tmp_path_factory.mktemp("profile")) as driver:
        yield driver


@pytest.fixture(name="fleet", scope="module")
def fleet_page(tmp_path_factory):
    """Six hosts of four drives in three racks: a bad drive on h1, and h4, which is slow as a whole and has another
    BIOS.
    """
    return fleets.page(tmp_path_factory.mktemp("fleet"))


def test_a_bad_drive_and_a_bad_host_are_told_above_everything(browser, fleet):
    show(browser, fleet, height=900)
    drive, host = browser.execute_script(
        "return [...document.querySelectorAll('.first li')].map(line => [line.textContent, "
        "line.getBoundingClientRect().bottom])"
    )
    assert "h4" in host[0] and "AMI 2.4 where 5 of 5 others have AMI 2.6" in host[0] and host[1] < 350
    assert "S1-2 on h1" in drive[0] and drive[1] < 350
    told = browser.execute_script(f"return {ROWS}[0].querySelector('.why').textContent")
    assert told.startswith("write IOPS below its limit") and "It is the drive, not the host" in told
    first = browser.execute_script(
        "return document.querySelector('#heat li').textContent + document.querySelectorAll('#heat li:first-child "
        "i.worse').length"
    )
    assert first == "h44"
    browser.execute_script("document.querySelector('#heat li a').click()")
    assert "bios: AMI 2.4 where" in wait_for(browser, "return (document.querySelector('.differs') || {}).textContent")
    assert browser.get_log("browser") == []


def test_drives_can_be_filtered_and_sorted(browser, fleet):
    show(browser, fleet)
    shown = f"return {ROWS}.map(r => r.querySelector('.who a').textContent)"
    choose = """
      const select = document.querySelector(arguments[0]);
      select.value = [...select.options].find(option => option.text === arguments[1]).value;
      select.dispatchEvent(new Event('change'));
    """
    assert len(browser.execute_script(shown)) == 24
    browser.execute_script("document.querySelector('[data-sort=\"drive\"]').click()")
    assert browser.execute_script(shown)[:2] == ["S0-0", "S0-1"]
    browser.execute_script("document.querySelector('[data-sort=\"drive\"]').click()")
    assert browser.execute_script(shown)[:2] == ["S5-3", "S5-2"]
    browser.execute_script(choose, "[data-choice=rack]", "B")
    assert {name[:2] for name in browser.execute_script(shown)} == {"S2", "S3"}
    assert browser.execute_script("return document.getElementById('count').textContent") == "8 of 24 drives"
    browser.execute_script(choose, "[data-choice=host]", "h3")
    assert {name[:2] for name in browser.execute_script(shown)} == {"S3"} and browser.execute_script(
        "return document.querySelectorAll('#heat li').length"
    ) == 1
    browser.execute_script(
        "document.getElementById('clear').click(); document.querySelector('[data-filter=\"fail\"]').click()"
    )
    assert browser.execute_script(shown) == ["S1-2"]


def test_every_table_sorts_by_a_key(browser, fleet):
    """By the keyboard: a heading's button has the focus, Enter sorts."""
    show(browser, fleet)
    tables = browser.execute_script(
        "return [...document.querySelectorAll('table')].map(t => t.tHead.querySelectorAll('th button').length)"
    )
    assert len(tables) >= 3 and min(tables) >= 4
    heading = browser.find_element("css selector", "#groups thead th:nth-child(4) button")
    heading.send_keys("\ue007")
    values = browser.execute_script(
        "return [...document.querySelectorAll('#groups tbody td:nth-child(4)')].map(c => +c.dataset.v)"
    )
    assert values == sorted(values) and len(set(values)) > 1
    assert (
        browser.execute_script("return document.querySelector('#groups th:nth-child(4)').getAttribute('aria-sort')")
        == "ascending"
    )


def page_of_drives(tmp_path, drives):
    run_dir = generator.make(tmp_path, drives=drives, rounds=8)
    return pathlib.Path(write_report.make(str(run_dir.parent), run_dir.name).path)


def test_names_are_sorted_as_people_count(browser, tmp_path):
    """Also serial numbers that begin with digits, and the runs of a drive by when they began."""
    drives = [generator.DEMO[0]._replace(serial=serial) for serial in ("2203A10", "2203A9", "19", "2203A1")]
    page = page_of_drives(tmp_path, drives)
    show(browser, page.parent / page_names.host_page("server-1"))
    browser.find_element("css selector", ".drives-of-host th:nth-child(2) button").send_keys("\ue007")
    shown = "return [...document.querySelectorAll('.drives-of-host tbody th')].map(cell => cell.textContent)"
    assert browser.execute_script(shown) == ["19", "2203A1", "2203A9", "2203A10"]
    show(browser, page)
    browser.execute_script("document.querySelector('[data-sort=\"drive\"]').click()")
    assert browser.execute_script(f"return {ROWS}.map(r => r.querySelector('.who a').textContent)") == [
        "19",
        "2203A1",
        "2203A9",
        "2203A10",
    ]


def test_a_large_fleet_is_ready_in_two_seconds(browser, tmp_path):
    """A sample of tests/bench/report.py, which has 10,000 drives: the page is there and answers, and only what needs
    attention has a page of its own.
    """
    path = fleets.page(tmp_path, hosts=250, drives=4)
    assert path.stat().st_size < 1e6
    assert len(list((path.parent / "drives").iterdir())) < 20
    show(browser, path, height=1500)
    assert wait_for(browser, "return document.documentElement.dataset.ready") == "yes"
    ready_ms = browser.execute_script(
        "return performance.timing.domContentLoadedEventEnd - performance.timing.navigationStart"
    )
    assert ready_ms < 10_000  # two seconds on a quiet machine
    assert browser.execute_script(f"return {ROWS}.length") == 100


@pytest.fixture(name="several", scope="module")
def fixture_several(tmp_path_factory):
    """A fleet's page of two models and two firmwares: h2 and h3 have another model, h1 and h3 another firmware."""
    run, records = fleets.fleet(hosts=4, drives=3, run_id="20261122T010000Z-qualify")
    for record in records:
        if record["kind"] == "drive":
            if record["host"] in ("h2", "h3"):
                record["identity"]["model"] = "OTHER"
            if record["host"] in ("h1", "h3"):
                record["identity"]["firmware"] = "FW2"
    folder = fleets.write(tmp_path_factory.mktemp("several"), run, records)
    return pathlib.Path(write_report.make(str(folder.parent), folder.name).path)


@pytest.mark.parametrize(
    ("choice", "value", "hosts"),
    [("model", "OTHER", {"S2", "S3"}), ("firmware", "FW2", {"S1", "S3"}), ("host", "h2", {"S2"})],
)
def test_each_filter_leaves_its_own_drives(browser, several, choice, value, hosts):
    show(browser, several)
    browser.execute_script(
        """
        const select = document.querySelector(`[data-choice=${arguments[0]}]`);
        select.value = [...select.options].find(option => option.text === arguments[1]).value;
        select.dispatchEvent(new Event('change'));
        """,
        choice,
        value,
    )
    shown = browser.execute_script(f"return {ROWS}.map(row => row.querySelector('.who a').textContent)")
    assert {name[:2] for name in shown} == hosts and len(shown) == 3 * len(hosts)


# A picture has no order.
SORTED = """
  const pictures = ['Over the test', 'Distribution'];
  const wrong = [];
  for (const table of document.querySelectorAll('table'))
    for (const heading of table.tHead ? table.tHead.rows[0].cells : []) {
      const button = heading.querySelector('button');
      const where = (table.className || table.id) + ': ' + heading.textContent.trim();
      if (!button) {
        const sorts = table.tBodies[0].rows.length > 1 && !pictures.includes(heading.textContent.trim());
        if (sorts) wrong.push(where + ' has no button');
        continue;
      }
      button.click();
      const first = document.body.contains(heading) ? heading.getAttribute('aria-sort') : null;
      button.click();
      const then = heading.getAttribute('aria-sort');
      const ways = [first, then].sort().join();
      if (ways !== 'ascending,descending') wrong.push(where + ' sorts ' + first + ', ' + then);
    }
  return wrong;
"""


@pytest.mark.parametrize("which", ["fleet", "host", "drive"])
def test_every_column_of_every_table_sorts_both_ways_and_axe_finds_nothing(browser, fleet, which):
    pages = {"fleet": "index.html", "host": page_names.host_page("h1"), "drive": page_names.drive_page("h1", "S1-2")}
    show(browser, fleet.parent / pages[which])
    assert violations(browser) == []
    assert browser.execute_script(SORTED) == []


def test_a_screen_reader_is_told_each_drive_of_the_heat_map(browser, fleet):
    show(browser, fleet)
    told = browser.execute_script(
        "return [...document.querySelectorAll('#heat .squares i')].map(b => [b.getAttribute('role'), b.ariaLabel])"
    )
    assert len(told) == 24 and {role for role, _text in told} == {"img"}
    assert [text for _role, text in told if text.startswith("S1-2: at least") and "fail" in text]
    # Within an image nothing is told: what holds them is a group.
    assert browser.execute_script("return document.querySelector('#heat .squares').getAttribute('role')") == "group"
