# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The pictures of the docs, of this version's pages, by Chromium: a constructed fleet of 96 drives on 12 hosts with one
bad drive and one bad host, and the night before, when both were fine. Beside them: digests of the words of the pages'
templates, by which a unit test finds pictures that are older than these.

    python tests/bench/pictures.py [--folder docs/images]
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import html
import json
import pathlib
import random
import re
import shutil
import sys
import tempfile
import typing as t

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "playbooks" / "collections"))

from ansible_collections.ssdlab.fleet.plugins.module_utils.records import base
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.report import page_names, write_report
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.run_folder import host_brief
from ansible_collections.ssdlab.fleet.tests.fixtures.report import generator

HOSTS, DRIVES = 12, 8
BAD_DRIVE, BAD_HOST = (3, 5), 9
CRITERIA = [{"test": "wsat", "metric": "write_iops", "min": 30_000, "source": "datasheet rev. 4, table 3"}]
# (file, page, width, height, dark)
SHOTS = (
    ("report-fleet.png", "fleet", 1200, 900, False),
    ("report-host.png", "host", 1200, 900, False),
    ("report-drive.png", "drive", 1200, 1000, True),
)
TEMPLATES = ROOT / "plugins" / "plugin_utils" / "report" / "templates"
# Of the pages that the pictures show.
PICTURED = ("base", "index", "host", "drivepage", "drive", "findings", "parts")
WORDS = "report.json"


def words(template: str) -> list[str]:
    """The words that a template shows: its text, and the texts in its expressions; neither tags nor names."""
    text = re.sub(r"{#.*?#}|<(script|style)\b.*?</\1>", " ", template, flags=re.DOTALL)
    text = re.sub(r"<[^<>{}]*({{.*?}}[^<>{}]*)*>", " ", text, flags=re.DOTALL)
    said = re.sub(r"{[{%](.*?)[}%]}", lambda code: _texts(code.group(1)), text, flags=re.DOTALL)
    return re.findall(r"[^\W\d_]+", html.unescape(said))


def _texts(code: str) -> str:
    """The texts of an expression that are more than one lower-case word: those may be names."""
    found = [single or double for single, double in re.findall(r"'([^']*)'|\"([^\"]*)\"", code)]
    return " " + " ".join(text for text in found if " " in text.strip() or text[:1].isupper()) + " "


def digests() -> dict[str, str]:
    """{template: digest of its words}."""
    said = {name: words((TEMPLATES / f"{name}.html.j2").read_text(encoding="utf-8")) for name in PICTURED}
    return {name: hashlib.sha256(" ".join(told).encode()).hexdigest()[:16] for name, told in said.items()}


def host_name(number: int) -> str:
    """rack1-01 … rack3-04."""
    return f"rack{number // 4 + 1}-{number % 4 + 1:02}"


def snapshot(number: int) -> dict:
    """What a host is; the bad one has another BIOS and its C-states on."""
    bad = number == BAD_HOST
    return {
        "cpu": {"model": "EPYC 7443P", "sockets": 1, "cores": 24, "cpus": 48},
        "memory": {"total_bytes": 128 << 30},
        "bios": {"vendor": "AMI", "version": "2.4" if bad else "2.6", "system_vendor": "Example", "system": "R7515"},
        "kernel": {"release": "6.1.0-31-amd64", "os": "Debian 12"},
        "command_line": "quiet",
        "tools": {"fio": {"path": "/usr/bin/fio", "version": "3.33"}},
        "pcie": {},
        "numa": {},
        "tunables": {
            "governor": {"performance": "0-47"},
            "smt": "on",
            "aspm_policy": "performance",
            "idle_states": [{"name": f"C{depth}", "latency_us": 18**depth, "disabled": False} for depth in (1, 2)],
            "cpu_dma_latency_us": None if bad else 0,
        },
        "drivers": {},
    }


def drives(noise: random.Random, slow: bool) -> list[generator.Drive]:
    """All of the fleet's; slow: as the bad ones made them."""
    made = []
    for host in range(HOSTS):
        for number in range(DRIVES):
            speed = noise.gauss(1, 0.01) * (0.79 if slow and host == BAD_HOST else 1)
            speed *= 0.52 if slow and (host, number) == BAD_DRIVE else 1
            serial = f"22{host:02}3A4F{number:02}"
            steady, fresh = 41_000 * speed, 92_000 * noise.gauss(1, 0.01)
            made.append(generator.Drive(host_name(host), serial, generator.MODEL, fresh, steady, "steady"))
    return made


def fleet(results: pathlib.Path) -> pathlib.Path:
    """The report of the constructed fleet."""
    write_report.make(str(results), generator.moved(run_of(results, drives(random.Random(5), False)), 20).name)
    run_dir = run_of(results, drives(random.Random(4), True))
    return pathlib.Path(write_report.make(str(run_dir.parent), run_dir.name).path)


def run_of(results: pathlib.Path, made: list[generator.Drive]) -> pathlib.Path:
    """The folder of a run of these drives, with racks and what the hosts are."""
    run_dir = generator.make(results, drives=made, rounds=40, criteria=CRITERIA)
    known = {host_name(number): snapshot(number) for number in range(HOSTS)}
    run = json.loads((run_dir / "run.json").read_text())
    for entry in run["asked"]:
        entry["rack"] = entry["host"][len("rack")]
    (run_dir / "run.json").write_text(json.dumps(run))
    records = [json.loads(line) for line in (run_dir / "results.jsonl").read_text().splitlines()]
    for record in records:
        if record["kind"] == "host":
            record["snapshot"] = base.to_json(host_brief.brief(known[record["host"]]))
    (run_dir / "results.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    for host, told in known.items():
        journal = run_dir / "raw" / host / "journal.jsonl"
        first, _end, rest = journal.read_text().partition("\n")
        envelope = {key: json.loads(first)[key] for key in ("schema_version", "time", "run_id", "host")}
        journal.write_text(f"{first}\n{json.dumps({**envelope, 'event': 'snapshot', **told})}\n{rest}")
    return run_dir


@contextlib.contextmanager
def chromium() -> t.Iterator[t.Any]:
    """A browser without a screen; it ends with the block."""
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"):
        options.add_argument(argument)
    browser = webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))
    try:
        yield browser
    finally:
        browser.quit()


def shoot(index: pathlib.Path, folder: pathlib.Path) -> None:
    """Take the pictures."""
    bad = f"22{BAD_DRIVE[0]:02}3A4F{BAD_DRIVE[1]:02}"
    pages = {
        "fleet": index,
        "host": index.parent / page_names.host_page(host_name(BAD_HOST)),
        "drive": index.parent / page_names.drive_page(host_name(BAD_DRIVE[0]), bad),
    }
    with chromium() as browser:
        for file, page, width, height, dark in SHOTS:
            scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
            browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": scheme})
            size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
            browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
            browser.get(pages[page].as_uri())
            browser.execute_async_script("setTimeout(arguments[0], 3000)")
            browser.save_screenshot(str(folder / file))
            print(folder / file, flush=True)


def main() -> None:
    """Make the fleet and take its pictures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=pathlib.Path, default=ROOT / "docs" / "images")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ssdlab-pictures-") as place:
        shoot(fleet(pathlib.Path(place)), given.folder)
    (given.folder / WORDS).write_text(json.dumps(digests(), indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
