# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the report of a large fleet costs: time and peak memory to judge it and write its pages, the fleet page's size,
and when it is ready in Chromium.

    python tests/bench/report.py [--drives 100 1000 10000] [--metrics 60]

Four drives a host. Each size runs in a process of its own. Prints a table, of which docs/report.md has the last line,
and fails above the limits: 5 MB, 2 s.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import random
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "playbooks" / "collections"))

import busy_machine

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.report import page_list, write_report
from ansible_collections.ssdlab.fleet.tests.fixtures.report import fleets

SIZE_LIMIT_BYTES, READY_LIMIT_S, PAGE_LIMIT_S = 5_000_000, 2.0, 0.020
LOADS = 5
PAINTED = "const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now())))"
PERCENTILES = ("50", "90", "99", "99_9", "99_99", "99_999")


def metrics(speed: float, count: int) -> dict[str, float]:
    """So many figures of a drive; each tells its speed."""
    names = [
        f"{side}_{name}"
        for side in ("read", "write")
        for name in ("iops", "bandwidth", "mean_latency_us", *(f"p{p}_latency_us" for p in PERCENTILES))
    ]
    names += [f"{side}_p{number}_latency_us" for number in range(1, 50) for side in ("read", "write")]
    return {name: 1000 / speed if name.endswith("_us") else 100_000 * speed for name in names[:count]}


def run_folder(results: pathlib.Path, drives: int, count: int) -> pathlib.Path:
    """A run of so many drives on a quarter as many hosts, one of them slow and one drive bad."""
    run, records = fleets.fleet(
        drives // 4,
        4,
        slow={(1, 2): 0.6},
        low={4: 0.8},
        run_id="20261122T010000Z-qualify",
        criteria=[{"test": "iops", "metric": "write_iops", "min": 70000}],
    )
    noise = random.Random(7)
    for record in records:
        if record["kind"] == "test":
            speed = record["metrics"]["write_iops"] / 100_000
            record["metrics"] = metrics(speed * noise.gauss(1, 0.002), count)
            record.pop("cells")
    for place, entry in enumerate(run["asked"]):
        entry["rack"] = f"R{place // 80:03}"
    return fleets.write(results, run, records)


def measured(drives: int, count: int) -> dict[str, float]:
    """Seconds and peak MiB of a report, CPU seconds a page, bytes of the fleet's page, pages. Its folder is left in
    `folder`.
    """
    folder = run_folder(pathlib.Path(tempfile.mkdtemp(prefix="ssdlab-report-")), drives, count)
    spent = [0.0, 0]
    render = page_list.texts

    def timed(*args, **options):
        began = time.process_time()
        for page in render(*args, **options):
            spent[0] += time.process_time() - began
            spent[1] += 1
            yield page
            began = time.process_time()

    page_list.texts = timed
    began, busy = time.perf_counter(), time.process_time()
    index = pathlib.Path(write_report.make(str(folder.parent), folder.name).path)
    seconds = time.perf_counter() - began
    cpu = time.process_time() - busy
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    page = {
        "page_s": spent[0] / max(spent[1], 1),
        "pages": spent[1],
        "bytes": index.stat().st_size,
        "index": str(index),
    }
    return {"seconds": seconds, "cpu_s": cpu, "peak_mib": peak, **page}


def ready_s(index: str) -> float:
    """From the start of the navigation until the page is drawn and answers, the median of a few loads; NaN without
    Chromium.
    """
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not (chromium and driver):
        return float("nan")
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    browser = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    try:
        took = []
        for _load in range(LOADS):
            browser.get(pathlib.Path(index).as_uri())
            # Two frames after the scripts are done the page has been painted, and a click would be answered.
            took.append(browser.execute_async_script(PAINTED) / 1000)
        return statistics.median(took)
    finally:
        browser.quit()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--drives", type=int, nargs="+", default=[100, 1000, 10000])
    parser.add_argument("--metrics", type=int, default=60)
    busy_machine.add_argument(parser)
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measured(options.drives[0], options.metrics)))
        return 0
    failed = False
    print(
        "| drives | report | of it CPU | peak memory | fleet page | ready in Chromium | pages of drives and hosts "
        "(CPU) |\n|---|---|---|---|---|---|---|"
    )
    for drives in options.drives:
        command = [sys.executable, __file__, "--one", "--drives", str(drives), "--metrics", str(options.metrics)]
        found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[-1])
        ready = ready_s(found["index"])
        shutil.rmtree(os.path.dirname(os.path.dirname(os.path.dirname(found["index"]))))
        print(
            f"| {drives:,} | {found['seconds']:.1f} s | {found['cpu_s']:.1f} s | {found['peak_mib']:.0f} MiB | "
            f"{found['bytes'] / 1e6:.2f} MB | {ready:.2f} s"
            f" | {found['pages']}, {1000 * found['page_s']:.0f} ms each |",
            flush=True,
        )
        failed = failed or found["bytes"] > SIZE_LIMIT_BYTES or ready > READY_LIMIT_S or found["page_s"] > PAGE_LIMIT_S
    return busy_machine.exit_code(options, failed)


if __name__ == "__main__":
    sys.exit(main())
