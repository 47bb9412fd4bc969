# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The report in a real browser: no errors, curves drawn, no network, usable wide and narrow. Needs Debian's chromium and chromium-driver."""

from __future__ import annotations

import json
import pathlib
import re
import shutil
import time

import pytest

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.report import build
from ansible_collections.ssdlab.fleet.tests.fixtures.report import generator

webdriver = pytest.importorskip("selenium.webdriver")
CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
pytestmark = pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="chromium and chromedriver are not installed")

EVIL = "</script><script>window.harmed=1</script><img src=//192.0.2.1/x onerror=window.harmed=1>"
STOPPED = generator.Drive("server-4", "SIM0004", EVIL, 90_000, 40_000, "interrupted")
DRAWN_S = 20


@pytest.fixture(name="browser", scope="module")
def fixture_browser(tmp_path_factory):
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    profile = tmp_path_factory.mktemp("profile")
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", f"--user-data-dir={profile}"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    yield driver
    driver.quit()


def page_of(tmp_path, **options):
    run_dir = generator.make(tmp_path, **options)
    return pathlib.Path(build.make(str(run_dir.parent), run_dir.name).path)


@pytest.fixture(name="mixed", scope="module")
def fixture_mixed(tmp_path_factory):
    drives = (*generator.DEMO, STOPPED)
    return page_of(tmp_path_factory.mktemp("mixed"), drives=drives, tests=("wsat", "iops"), unreachable=[("server-9", "SIM0009")])


def show(browser, path, width=1280, height=4000):
    for log in ("browser", "performance"):
        browser.get_log(log)
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride", {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
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
      const paths = [...chart.querySelectorAll('.scatterlayer .js-line')].map(path => (path.getAttribute('d') || '').split(/[MLHVC]/).length - 1);
      return paths.length && paths.every(points => points > 1) ? paths : null;
    """
    return wait_for(browser, script)


def requests(browser):
    """Addresses that the browser asked for; its own pages are no matter."""
    messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    urls = [message["params"]["request"]["url"] for message in messages if message["method"] == "Network.requestWillBeSent"]
    return [url for url in urls if not url.startswith("chrome")]


def test_curves_are_drawn_without_errors_or_a_network(browser, mixed):
    show(browser, mixed)
    assert len(drawn(browser, "fleet")) == 4
    assert max(drawn(browser, "curve")) >= 30
    assert len(drawn(browser, "window")) == 2
    assert drawn(browser, "percentiles")
    assert len(drawn(browser, "latency")) == 3
    assert browser.get_log("browser") == []
    asked = requests(browser)
    assert mixed.as_uri() in asked
    assert [url for url in asked if not url.startswith(("file://", "data:"))] == []
    assert (
        browser.execute_script("return performance.getEntriesByType('resource').filter(e => !e.name.startsWith('file:')).map(e => e.name)")
        == []
    )


def test_the_worst_comes_first_and_only_failing_drives_are_open(browser, mixed):
    show(browser, mixed)
    assert browser.execute_script("return [...document.querySelectorAll('.drives tbody tr')].map(r => r.dataset.verdict)") == [
        "fail",
        "invalid",
        "not_tested",
        "pass",
        "pass",
    ]
    assert browser.execute_script("return [...document.querySelectorAll('details.drive')].map(d => d.open)") == [
        True,
        False,
        False,
        False,
        False,
    ]
    top = browser.execute_script("return document.querySelector('.drives tbody tr.fail').getBoundingClientRect().bottom")
    assert top < 400


def test_a_closed_drive_is_drawn_when_it_is_opened(browser, mixed):
    show(browser, mixed)
    drawn(browser, "curve")
    inside = "return document.querySelectorAll('#drive-3 .js-line').length"
    assert browser.execute_script(inside) == 0
    browser.execute_script("document.querySelector('a[href=\"#drive-3\"]').click()")
    assert wait_for(browser, inside) >= 2


def test_what_a_drive_says_does_no_harm(browser, mixed):
    show(browser, mixed)
    drawn(browser, "fleet")
    browser.execute_script(
        "document.querySelectorAll('details').forEach(d => { d.open = true; }); document.getElementById('drive-1').scrollIntoView()"
    )
    wait_for(browser, "return document.querySelectorAll('#drive-1 .js-line').length")
    assert browser.execute_script("return window.harmed") is None
    assert browser.execute_script("return document.querySelectorAll('img').length") == 0
    assert EVIL in browser.execute_script("return document.querySelector('.drives tr.invalid .who').textContent")
    assert browser.get_log("browser") == []


@pytest.mark.parametrize("width", [1280, 400])
def test_nothing_is_wider_than_the_page(browser, mixed, width):
    show(browser, mixed, width)
    browser.execute_script("document.querySelectorAll('details').forEach(d => { d.open = true; })")
    drawn(browser, "fleet")
    assert browser.execute_script("return document.documentElement.scrollWidth - document.documentElement.clientWidth") == 0


def test_the_axis_can_be_changed(browser, mixed):
    show(browser, mixed)
    drawn(browser, "fleet")
    title = "return document.querySelector('[data-chart=\"fleet\"] .xtitle').textContent"
    assert "capacity" in browser.execute_script(title)
    browser.execute_script("document.querySelector('input[value=\"elapsed_s\"]').click()")
    assert wait_for(browser, title) == "Time (min)"
    browser.execute_script("document.querySelector('input[value=\"log\"]').click()")
    assert wait_for(browser, "return document.querySelector('[data-chart=\"fleet\"]')._fullLayout.yaxis.type") == "log"
    assert browser.get_log("browser") == []


def test_drives_can_be_filtered(browser, mixed):
    show(browser, mixed)
    browser.execute_script("document.querySelector('[data-filter=\"fail\"]').click()")
    shown = "return [...document.querySelectorAll('.drives tbody tr')].filter(r => !r.hidden).map(r => r.dataset.verdict)"
    assert browser.execute_script(shown) == ["fail"]


def test_it_prints(browser, mixed):
    show(browser, mixed)
    drawn(browser, "fleet")
    pdf = browser.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})["data"]
    assert len(pdf) > 50_000
    assert browser.get_log("browser") == []


def test_a_hundred_drives_of_a_day_each(browser, tmp_path):
    """1,440 rounds a drive: the size of the page, the time to make it and the time until the fleet's curves are there."""
    many = [
        generator.Drive(f"r{n // 20}-{n % 20:02}", f"SIM{n:04}", generator.MODEL, 92_000, 17_000 if n == 63 else 41_000, "steady")
        for n in range(100)
    ]
    run_dir = generator.make(tmp_path, drives=many, rounds=1440)
    began = time.monotonic()
    path = pathlib.Path(build.make(str(tmp_path), run_dir.name).path)
    made_s = time.monotonic() - began
    assert path.stat().st_size < 12e6
    assert made_s < 60
    show(browser, path, height=1500)
    assert len(drawn(browser, "fleet")) == 100
    ready_ms = browser.execute_script("return performance.timing.domContentLoadedEventEnd - performance.timing.navigationStart")
    assert ready_ms < 15_000
    assert browser.execute_script("return [...document.querySelectorAll('.drives tbody tr')].filter(r => r.offsetHeight).length") == 1
    assert re.match("SIM0063", browser.execute_script("return document.querySelector('.drives tbody tr .who').textContent"))
    print(
        f"report of 100 drives x 1440 rounds: {path.stat().st_size / 1e6:.1f} MB, made in {made_s:.1f} s, read in {ready_ms / 1000:.1f} s"
    )
