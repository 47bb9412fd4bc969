# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The pictures of the suites in the docs: scaled runs of HIR, DIRTH and the blog's sweep by the playbook and the real
fio on a simulated drive, then Chromium. Needs root; takes about ten minutes, on an otherwise idle machine: where the
simulated drive waits for a CPU, its figures are noise, and nothing gets steady.

    python tests/bench/suite_pictures.py [--folder docs/images] [--results FOLDER, of a run that is there]
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "scripts" / "simulator"), str(ROOT / "playbooks" / "collections")]

import busy_machine
import simulated_ssd as simulator
from pictures import chromium

# So few I/Os a second that a machine without a free CPU keeps up. 200 ms a request hide two in flight, not four. A wait
# gives back room for 30 writes a second from its fourth second on, so that the pauses between rounds give back nothing.
FIGURES = {
    "size_bytes": 16 << 20,
    "fresh_iops": 60,
    "steady_iops": 15,
    "read_iops": 3000,
    "noise_pct": 2,
    "idle_gc_bandwidth": 30 * 4096,
    "collect_after_s": 3,
    "spare_pct": 50,
    "latency_s": 0.2,
}
LOAD = {"access": "random", "block_size": "4KiB", "read_pct": 0, "threads": 1, "queue_depth": 16, "runtime_s": 5}
# Two fills in place of hours of small writes: the drive is as worn.
UNTIL_STEADY = {
    "cells": [LOAD],
    "precondition": {"passes": 2},
    "steady_state": {"sample_every": 1, "tracked": [{"metric": "write_iops"}]},
    "rounds": {"max": 25, "capacity_multiple": None, "time_limit_s": None},
}
WAITS_S = (4, 5, 7)


def hir() -> dict:
    """Host idle recovery with waits and bursts of seconds."""
    phases = []
    for wait in WAITS_S:
        bursts = {**LOAD, "burst_s": 2, "idle_s": wait, "runtime_s": 2 * (2 + wait)}
        phases.append({"name": f"wait-{wait}s", "repeats": True, "cells": [bursts], "rounds": {"max": 1}})
        phases.append(
            {"name": f"back-{wait}s", "repeats": True, "cells": [LOAD], "rounds": {"max": 4}, "last_rounds": 3}
        )
    return {"name": "hir", "base": "hir", **UNTIL_STEADY, "phases": phases}


def dirth() -> dict:
    """Demand intensity over three thread counts and four depths, and two of its points."""
    sweep = {"block_size": "4KiB", "read_pct": 0, "threads": [4, 2, 1], "queue_depth": [8, 4, 2, 1], "runtime_s": 5}
    phases = [{"name": "sweep", "lead": LOAD, "matrix": sweep, "rounds": {"max": 1}}]
    for take in ("most", "fewest"):
        point = {**LOAD, "runtime_s": 10, "point": {"of": "sweep", "take": take}}
        phases.append({"name": f"{take}-iops", "lead": LOAD, "cells": [point], "rounds": {"max": 1}})
    return {"name": "dirth", "base": "dirth", **UNTIL_STEADY, "phases": phases}


def blog() -> list[dict]:
    """The sweep of Micron's blog over the depth, behind its own settling."""
    sweep = {"read_pct": 0, "block_size": "4KiB", "queue_depth": [1, 2, 4, 8, 16, 32], "runtime_s": 5}
    return [
        {"name": "blog-settle-4k", "purge": {"method": "auto"}, **UNTIL_STEADY},
        {
            "name": "blog-sweep-4k",
            "title": "4 KiB random writes over the queue depth",
            "purge": False,
            "precondition": False,
            "matrix": sweep,
            "rounds": {"max": 1},
        },
    ]


# (file, test, what of its section)
SHOTS = (
    ("suite-hir.png", "hir", "Repeated stimuli"),
    ("suite-dirth.png", "dirth-sweep", "Demand intensity"),
    ("suite-sweep.png", "blog-sweep-4k", "over the queue depth"),
)


def short() -> tuple[list[dict], tuple, dict]:
    """A sweep over three depths alone, its picture, and a drive that answers sooner."""
    sweep = {**blog()[-1], "matrix": {"read_pct": 0, "block_size": "4KiB", "queue_depth": [1, 2, 4], "runtime_s": 1}}
    return [sweep], SHOTS[-1:], {**FIGURES, "latency_s": 0.01}


def measure(place: pathlib.Path, tests: list[dict], figures: dict) -> pathlib.Path:
    """The run's folder."""
    with simulator.simulated_ssd(place / "drives", "ssd", simulator.model_plugin(**figures)) as drive:
        hosts = {"server": {"ssd_drives": [{"backing_file": drive["backing_file"]}]}}
        variables = {
            "ansible_connection": "local",
            "ansible_python_interpreter": sys.executable,
            "ssd_become": False,
            "ssd_mode": "destructive",
            "ssd_state_dir": str(place / "state"),
            "ssd_results_dir": str(place / "results"),
            "ssd_look_s": 1,
            "ssd_watch_interval_s": 5,
            "ssd_validity_limits": {"in_flight_min": 0, "idle_gap_s": 60, **busy_machine.OTHERS_LOAD},
            "ssd_criteria": [],
            "ssd_plan": tests,
        }
        inventory = place / "inventory.json"
        inventory.write_text(json.dumps({"all": {"children": {"ssd_servers": {"vars": variables, "hosts": hosts}}}}))
        playbook = str(pathlib.Path(sys.executable).parent / "ansible-playbook")
        command = [playbook, str(ROOT / "playbooks" / "qualify.yml"), "-i", str(inventory)]
        environment = {**os.environ, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg")}
        subprocess.run(command, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, check=True)
    return place / "results"


def shoot(results: pathlib.Path, folder: pathlib.Path, shots: tuple) -> None:
    """A picture of a figure of each test, of the newest run's page."""
    index = max(results.glob("*/report/index.html"), key=lambda path: path.stat().st_mtime)
    with chromium() as browser:
        size = {"width": 1000, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        browser.get(index.as_uri())
        browser.execute_async_script("setTimeout(arguments[0], 3000)")
        for file, test, caption in shots:
            where = f"//section[h3/code='{test}']//figure[contains(figcaption, '{caption}')]"
            figure = browser.find_element("xpath", where)
            # A chart is drawn when it comes near the screen.
            browser.execute_async_script("arguments[0].scrollIntoView(); setTimeout(arguments[1], 1000)", figure)
            figure.screenshot(str(folder / file))
            print(folder / file, (folder / file).stat().st_size, "bytes", flush=True)


def main() -> None:
    """Measure, unless it was measured before, and take the pictures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=pathlib.Path, default=ROOT / "docs" / "images")
    parser.add_argument("--results", type=pathlib.Path)
    parser.add_argument("--short", action="store_true", help="one picture, of a sweep of seconds")
    given = parser.parse_args()
    # It takes little of a CPU, but must get it in time.
    os.nice(-10)
    with tempfile.TemporaryDirectory(prefix="ssdlab-pictures-") as place:
        tests, shots, figures = short() if given.short else ([hir(), dirth(), *blog()], SHOTS, FIGURES)
        shoot(given.results or measure(pathlib.Path(place), tests, figures), given.folder, shots)


if __name__ == "__main__":
    main()
