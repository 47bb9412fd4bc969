# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the fleet's page costs out of the default store on disk: in one process that brings the newest run's folder back
from it, judges the run against its peers and the nights before, and writes the whole report. Reading is included.

    python tests/bench/fleet_page.py [--drives 100 1000 10000] [--runs 30] [--metrics 60]

Four drives a host, 60 metrics a drive, all of them a test's own, so that all are judged; one drive and one host are
bad. The first run comes through the importer, the others are copies of its rows that spread by 0.5 % (bench/store.py).
Prints a table, of which docs/store.md has the last line; seconds are of the clock, and in brackets of the CPU, which a
busy machine changes less. It works in TMPDIR. Fails above the limits: 60 s of CPU, 2 GiB.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import pathlib
import resource
import shutil
import subprocess
import sys
import tempfile
import time

import busy_machine
import report
import store

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.peers import fleet_verdicts
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.report import write_report
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.store import (
    database,
    earlier_runs,
    importer,
    restore_folders,
)

LIMIT_S, LIMIT_MIB = 60, 2048
HEAD = "| drives | runs | values | store on disk | read, judged and written | peak memory | fleet page |"


def filled(place: pathlib.Path, drives: int, runs: int, metrics: int) -> str:
    """A store in `place` with so many runs: the id of the newest. Its folder is gone: all that is left is the store."""
    run_dir = report.run_folder(place, drives, metrics)
    with database.opened(database.resolve("", str(place)), make=True) as opened:
        importer.import_run(opened, str(run_dir))
    shutil.rmtree(run_dir)
    store.multiply(str(place / database.FILE), runs)
    return run_dir.name


def made(place: pathlib.Path, run_id: str, runs: int) -> dict[str, float]:
    """Read, judge, write the report: {seconds, cpu_s, peak_mib, bytes, nights, flagged, low}."""
    began, busy = time.perf_counter(), time.process_time()
    url = database.resolve("", str(place))
    with database.opened(url) as opened:
        restore_folders.fetch(opened, str(place), run_id, "")
    against = fleet_verdicts.Baseline(nights=runs - 1, stored=functools.partial(earlier_runs.of_store, str(place), ""))
    index = pathlib.Path(write_report.make(str(place), run_id, against=against).path)
    took = time.perf_counter() - began, time.process_time() - busy
    fleet = json.loads((index.parent / "summary.json").read_text(encoding="utf-8"))["fleet"]
    told = {
        "nights": len((fleet["nights"] or {}).get("runs") or []),
        "drives": sorted({item["drive"] for item in fleet["outliers"]}),
        "low": [item["host"] for item in fleet["low_hosts"]],
    }
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"seconds": took[0], "cpu_s": took[1], "peak_mib": peak, "bytes": index.stat().st_size, **told}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--drives", type=int, nargs="+", default=[100, 1000, 10000])
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("--metrics", type=int, default=60)
    busy_machine.add_argument(parser)
    parser.add_argument("--made", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.made:
        place = pathlib.Path(options.made)
        print(json.dumps(made(place, (place / "newest").read_text(encoding="utf-8"), options.runs)))
        return 0
    failed = False
    print(HEAD + "\n|---|---|---|---|---|---|---|", flush=True)
    for drives in options.drives:
        with tempfile.TemporaryDirectory(prefix="ssdlab-bench-") as folder:
            place = pathlib.Path(folder)
            (place / "newest").write_text(filled(place, drives, options.runs, options.metrics), encoding="utf-8")
            # A process of its own: what made the store is not in its memory.
            command = [sys.executable, __file__, "--made", folder, "--runs", str(options.runs)]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            found = json.loads(done.stdout.splitlines()[-1])
            size_mib = os.path.getsize(place / database.FILE) >> 20
        if found["nights"] != options.runs - 1 or not found["low"] or not found["drives"]:
            sys.exit(f"the report does not tell what was made: {found}")
        values = drives * options.runs * options.metrics
        print(
            f"| {drives:,} | {options.runs} | {values:,} | {size_mib} MiB | {found['seconds']:.1f} s"
            f" ({found['cpu_s']:.1f} s) | {found['peak_mib']:.0f} MiB | {found['bytes'] / 1e6:.2f} MB |",
            flush=True,
        )
        failed = failed or found["cpu_s"] > LIMIT_S or found["peak_mib"] > LIMIT_MIB
    return busy_machine.exit_code(options, failed)


if __name__ == "__main__":
    sys.exit(main())
