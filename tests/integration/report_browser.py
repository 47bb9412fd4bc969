# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The report in a real browser: what its tests share. Needs Debian's chromium and chromium-driver."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import pathlib
import shutil

import pytest
from waiting import wait_until

webdriver = pytest.importorskip("selenium.webdriver")
CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
NEEDED = pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="chromium and chromedriver are not installed")

AXE = (pathlib.Path(importlib.util.find_spec("axe_core_python").origin).parent / "axe.min.js").read_text()
VIOLATIONS = """
  const told = violation => [violation.id, violation.nodes.map(n => n.html.slice(0, 200) + n.failureSummary)];
  axe.run().then(result => arguments[0](result.violations.map(told)));
"""
ROWS = "[...document.querySelectorAll('#rows tr')]"


@contextlib.contextmanager
def chromium(profile):
    """A browser of its own, for as long as the block runs."""
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
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
    try:
        yield driver
    finally:
        driver.quit()


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
    return wait_until(lambda: browser.execute_script(script), script)


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


def violations(browser):
    """What axe finds wrong with the page that is shown."""
    browser.execute_script(AXE)
    return browser.execute_async_script(VIOLATIONS)
