# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The report in a real browser: no errors, curves drawn, no network, usable wide and narrow, by keyboard and by screen
reader (axe).

Needs Debian's chromium and chromium-driver."""

from __future__ import annotations

import base64
import importlib.util
import json
import pathlib
import shutil
import time

import pytest

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.report import build, names
from ansible_collections.ssdlab.fleet.tests.fixtures.report import fleets, generator

webdriver = pytest.importorskip("selenium.webdriver")
CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
pytestmark = pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="chromium and chromedriver are not installed")

EVIL = "</script><script>window.harmed=1</script><img src=//192.0.2.1/x onerror=window.harmed=1>"
STOPPED = generator.Drive("server-4", "SIM0004", EVIL, 90_000, 40_000, "interrupted")
DRAWN_S = 20
AXE = (pathlib.Path(importlib.util.find_spec("axe_core_python").origin).parent / "axe.min.js").read_text()
VIOLATIONS = """
  const told = violation => [violation.id, violation.nodes.map(n => n.html.slice(0, 200) + n.failureSummary)];
  axe.run().then(result => arguments[0](result.violations.map(told)));
"""


@pytest.fixture(name="browser", scope="module")
def fixture_browser(tmp_path_factory):
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    profile = tmp_path_factory.mktemp("profile")
    for argument in (
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        f"--user-data-dir={profile}",
    ):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    driver.set_script_timeout(120)
    yield driver
    driver.quit()


def page_of(tmp_path, **options):
    run_dir = generator.make(tmp_path, **options)
    return pathlib.Path(build.make(str(run_dir.parent), run_dir.name).path)


@pytest.fixture(name="mixed", scope="module")
def fixture_mixed(tmp_path_factory):
    drives = (*generator.DEMO, STOPPED)
    return page_of(
        tmp_path_factory.mktemp("mixed"), drives=drives, tests=("wsat", "iops"), unreachable=[("server-9", "SIM0009")]
    )


@pytest.fixture(name="worn", scope="module")
def fixture_worn(mixed):
    return mixed.parent / names.drive_page("server-3", "SIM0003")


@pytest.fixture(name="fleet", scope="module")
def fleet_page(tmp_path_factory):
    """Six hosts of four drives in three racks: a bad drive on h1, and h4, which is slow as a whole and has another
    BIOS.
    """
    return fleets.page(tmp_path_factory.mktemp("fleet"))


def show(browser, path, width=1280, height=4000, scheme="light"):
    for log in ("browser", "performance"):
        browser.get_log(log)
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False},
    )
    browser.execute_cdp_cmd(
        "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    )
    browser.get(path.as_uri())


def wait_for(browser, script):
    """The first truthy value of a script."""
    until = time.monotonic() + DRAWN_S
    while time.monotonic() < until:
        value = browser.execute_script(script)
        if value:
            return value
        time.sleep(0.05)
    raise AssertionError(f"not within {DRAWN_S} s: {script}")


def drawn(browser, chart):
    """The number of points in each line of the first chart of a kind."""
    script = f"""
      const chart = document.querySelector('[data-chart="{chart}"]');
      const paths = [...chart.querySelectorAll('.scatterlayer .js-line')].map(
        path => (path.getAttribute('d') || '').split(/[MLHVC]/).length - 1);
      return paths.length && paths.every(points => points > 1) ? paths : null;
    """
    return wait_for(browser, script)


def requests(browser):
    """Addresses that the browser asked for; its own pages are no matter."""
    messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    urls = [
        message["params"]["request"]["url"] for message in messages if message["method"] == "Network.requestWillBeSent"
    ]
    return [url for url in urls if not url.startswith("chrome")]


def test_curves_are_drawn_without_errors_or_a_network(browser, mixed, worn):
    show(browser, worn)
    assert max(drawn(browser, "curve")) >= 30
    assert len(drawn(browser, "window")) == 2
    assert drawn(browser, "percentiles")
    assert len(drawn(browser, "latency")) == 3
    for page in (worn, mixed):
        show(browser, page)
        wait_for(browser, "return document.querySelectorAll('svg.lines polyline, .js-line').length")
        assert browser.get_log("browser") == []
        asked = requests(browser)
        assert page.as_uri() in asked
        assert [url for url in asked if not url.startswith(("file://", "data:"))] == []
        assert ("plotly" in "".join(asked)) == (page == worn)


ROWS = "[...document.querySelectorAll('#rows tr')]"


def test_the_worst_comes_first(browser, mixed):
    show(browser, mixed)
    assert browser.execute_script(f"return {ROWS}.map(r => r.dataset.verdict)") == [
        "fail",
        "invalid",
        "not_tested",
        "pass",
        "pass",
    ]
    assert browser.execute_script("return document.querySelector('.cards .card h3').textContent").split() == [
        "✗",
        "fail",
        "SIM0003",
        "on",
        "server-3",
    ]
    assert browser.execute_script("return document.querySelector('.cards .card').getBoundingClientRect().bottom") < 400


def test_a_bad_drive_and_a_bad_host_are_told_above_everything(browser, fleet):
    show(browser, fleet, height=900)
    first = browser.execute_script(
        "const first = document.querySelector('.first'); return [first.innerText, first.getBoundingClientRect().bottom]"
    )
    assert "S1-2 on h1" in first[0] and "h4" in first[0] and first[1] < 200
    host, drive = browser.execute_script(
        "return [...document.querySelectorAll('.cards .card')].slice(0, 2).map(c => [c.textContent, "
        "c.getBoundingClientRect().bottom])"
    )
    assert "h4" in host[0] and "AMI 2.4 where 5 of 5 others have AMI 2.6" in host[0] and host[1] < 900
    news = browser.execute_script("return document.querySelector('.news').getBoundingClientRect().bottom")
    assert news < 350
    assert "S1-2 on h1" in drive[0] and "It is the drive, not the host" in drive[0] and drive[1] < 900
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


@pytest.mark.parametrize("width, scheme", [(1280, "light"), (1280, "dark"), (400, "light")])
def test_who_cannot_see_or_use_a_mouse_can_read_it(browser, mixed, worn, fleet, width, scheme):
    for page in (fleet, worn, mixed.parent / names.host_page("server-3")) if width > 400 else (fleet,):
        show(browser, page, width, scheme=scheme)
        if page == worn:
            drawn(browser, "curve")
        browser.execute_script(AXE)
        assert browser.execute_async_script(VIOLATIONS) == [], page


def test_what_a_drive_says_does_no_harm(browser, mixed):
    for page in (mixed, mixed.parent / names.drive_page(STOPPED.host, STOPPED.serial)):
        show(browser, page)
        assert wait_for(
            browser, "return document.body.textContent.includes(arguments[0])".replace("arguments[0]", json.dumps(EVIL))
        )
        assert browser.execute_script("return window.harmed") is None
        assert browser.execute_script("return document.querySelectorAll('img').length") == 0
        assert browser.get_log("browser") == []


@pytest.mark.parametrize("width", [1280, 400])
def test_nothing_is_wider_than_the_page(browser, mixed, worn, fleet, width):
    for page in (mixed, worn, fleet, mixed.parent / names.host_page("server-3")):
        show(browser, page, width)
        browser.execute_script("document.querySelectorAll('details').forEach(d => { d.open = true; })")
        if page == worn:
            drawn(browser, "curve")
        assert (
            browser.execute_script("return document.documentElement.scrollWidth - document.documentElement.clientWidth")
            == 0
        ), page


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


def test_it_prints(browser, worn, fleet):
    """The fleet, a drive, and the page for a supplier, which is a PDF without any script of ours."""
    build.make(str(fleet.parents[2]), fleet.parents[1].name, asked=build.Asked(supplier_model="MTFD*"))
    (supplier,) = fleet.parent.glob("supplier-*.html")
    assert "<script" not in supplier.read_text()
    for page in (fleet, worn, supplier):
        show(browser, page, scheme="dark")
        if page == worn:
            drawn(browser, "curve")
        pdf = base64.b64decode(browser.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})["data"])
        assert pdf.startswith(b"%PDF") and len(pdf) > 20_000
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


def test_paper_has_no_buttons_and_is_white(browser, mixed, worn, fleet):
    """Also for who looks at a dark screen: nothing to press, nothing folded up, nothing beyond the edge."""
    for page in (fleet, mixed, worn):
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
        browser.execute_script(AXE)
        assert browser.execute_async_script(VIOLATIONS) == []


def test_names_are_sorted_as_people_count(browser, tmp_path):
    """Also serial numbers that begin with digits, and the runs of a drive by when they began."""
    drives = [generator.DEMO[0]._replace(serial=serial) for serial in ("2203A10", "2203A9", "19", "2203A1")]
    page = page_of(tmp_path, drives=drives, rounds=8)
    show(browser, page.parent / names.host_page("server-1"))
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


def test_a_run_that_is_copied_alone_still_draws(browser, worn, tmp_path):
    """Plotly is there once for all runs of a results folder, and yet in every run."""
    run_dir = worn.parents[2]
    shared = next((run_dir.parent / "assets").iterdir())
    assert shared.samefile(run_dir / "report" / "plotly.min.js")
    copied = shutil.copytree(run_dir, tmp_path / "copied")
    show(browser, copied / "report" / "drives" / worn.name)
    assert max(drawn(browser, "curve")) >= 30


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
