# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""False alarms and true rates: whole campaigns on simulated drives whose rates are known, undisturbed, through the host
job, the gate and the judge.

A campaign purges, writes a fresh drive into steady state, fills it and measures mixed cells: none of them may be judged
`invalid`. With --known three drives of known rates are measured instead, each within 1 % of what it was made to do. Run
as root from the repository's root:

    .venv/bin/python tests/bench/campaigns.py [--number 50] [--known] [--share 1/8] [--drives 4] [--results FILE]
        [--budget 0] [--short] [--busy]

Several drives are measured at a time, each by a host job of its own (shares.py); what FILE holds is not run again.
"""

from __future__ import annotations

import argparse
import collections
import functools
import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path[:0] = [
    os.path.join(ROOT, "playbooks", "collections"),
    os.path.join(ROOT, "scripts", "simulator"),
    os.path.join(ROOT, "tests", "bench"),
]

# A script finds the collection only after sys.path is set, so its imports stand below.
import busy_machine
import shares
import simulated_ssd as simulator

from ansible_collections.ssdlab.fleet.plugins.module_utils.core import files, locks
from ansible_collections.ssdlab.fleet.plugins.module_utils.core.host import Host
from ansible_collections.ssdlab.fleet.plugins.module_utils.drive.entry import parse
from ansible_collections.ssdlab.fleet.plugins.module_utils.guard import guard_check
from ansible_collections.ssdlab.fleet.plugins.module_utils.job import engine
from ansible_collections.ssdlab.fleet.plugins.module_utils.run import folder as rundir
from ansible_collections.ssdlab.fleet.plugins.module_utils.run import summary
from ansible_collections.ssdlab.fleet.plugins.module_utils.tuning import settings
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan import render_plan as planning
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.preflight import host_plans
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.run_folder import host_folder
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.validation import record_check
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.verdict import judge
from ansible_collections.ssdlab.fleet.tests.fixtures.plans import decided, rendered

MIB = 1 << 20
# Slow enough for a shared machine to keep up with, so that the simulated drive and not its host is what is measured.
FIGURES = {"size_bytes": 16 * MIB, "fresh_iops": 1200, "steady_iops": 500, "read_iops": 2000}
KNOWN_IOPS = (250, 600, 1000)
LIMIT = 0.01
LONGEST_S = 90.0
WRITES = {"access": "random", "block_size": "4KiB", "read_pct": 0, "threads": 1, "queue_depth": 32, "runtime_s": 1}
TRACKED = {"block_size": "4KiB", "read_pct": 0, "metric": "write_iops"}
CAMPAIGN = [
    {
        "name": "wsat",
        "title": "Write saturation",
        "purge": {"method": "deallocate"},
        "precondition": False,
        "cells": [WRITES],
        "steady_state": {"tracked": [TRACKED]},
        "rounds": {"max": 60, "time_limit_s": 80},
    },
    {
        "name": "mixed",
        "purge": False,
        "precondition": {"passes": 1},
        "cells": [WRITES, {**WRITES, "read_pct": 65}],
        "steady_state": {"tracked": [TRACKED]},
        "rounds": {"max": 12},
    },
]
# Shows that a campaign goes its way, in seconds.
SHORT = [
    {**{key: value for key, value in test.items() if key != "steady_state"}, "rounds": {"max": 2}} for test in CAMPAIGN
]
STEADY = [
    {
        "name": "known",
        "purge": {"method": "deallocate"},
        "precondition": {"passes": 2},
        "cells": [{**WRITES, "runtime_s": 5}],
        "steady_state": {"tracked": [TRACKED]},
        "rounds": {"max": 12},
    },
]


def planned(host, run, loaded, drive, **variables):
    """The JSON of the plan of a run with these tests of a simulated drive, which is in its folder then."""
    os.makedirs(run.path)
    plan = rendered(
        loaded,
        run={"id": run.run_id, "name": "campaigns"},
        host="bench",
        boot_id=settings.boot_id(host),
        drives=guard_check.inspect(host, [parse({"backing_file": drive["backing_file"]})]),
        engine_version="bench",
        variables={"ssd_sample_interval_s": 2, "ssd_look_s": 1, **variables},
        tune={"cpu_dma_latency_us": None, "services_stopped": [], "sysfs": [], "keep": False},
    )
    files.write_atomic(run.plan, json.dumps(decided(plan)))
    return plan


def campaign(folder, number, tests, figures):
    """One run of a host job on a drive of its own: (the judged drive, seconds)."""
    host, loaded = Host(), planning.load_plan(tests)
    plugin = simulator.model_plugin(**{**figures, "seed": number + 1})
    with simulator.simulated_ssd(os.path.join(folder, "drives"), f"drive{number}", plugin) as drive:
        began = time.monotonic()
        run = rundir.RunDir(folder, f"campaign{number}")
        about = planned(host, run, loaded, drive)["run"]
        engine.HostJob(run, host).run()
        taken_s = time.monotonic() - began
    ended = summary.read(host, run)
    results = host_folder.read(run.path, run.run_id, ended.state, ended.status)
    told = record_check.collected(results.records, run.run_id, "bench", files.now())
    assert not results.problems + told.problems, results.problems + told.problems
    asked = [
        {
            "host": "bench",
            "drive": drive["backing_file"],
            "tests": [test.name for test in loaded],
            "validity_limits": {},
        }
    ]
    kept = {
        "run": about,
        "asked": asked,
        "criteria": [],
        "tests": {test.name: host_plans.about_test(test) for test in loaded},
    }
    (judged,) = judge.judge(kept, told.records)["drives"]
    return judged, taken_s


def work(folder, budget_s, tests, lane, numbers, tell):
    """Campaigns of these numbers, one after the other; begins none after budget_s."""
    began, folder = time.monotonic(), os.path.join(folder, f"lane{lane}")
    os.makedirs(folder)
    locks.LOCK_DIR = os.path.join(folder, "locks")
    for number in numbers:
        if budget_s and time.monotonic() - began > budget_s:
            break
        judged, taken_s = campaign(folder, number, tests, FIGURES)
        rates = [round(test["metrics"].get("write_iops") or 0) for test in judged["tests"]]
        tell(
            {
                "number": number,
                "verdict": judged["verdict"],
                "seconds": round(taken_s, 1),
                "rates": rates,
                "reasons": judged["reasons"],
                "remarks": [text for test in judged["tests"] for text in test["remarks"]],
            }
        )


def false_alarms(folder, options):
    """Campaigns, several at a time; 0 if none of them was invalid and none too long."""
    results = options.results or Path(folder, "results.jsonl")
    numbers = shares.wanted(options.number, options.share, shares.read(results))
    tests = SHORT if options.short else CAMPAIGN
    done = shares.run(functools.partial(work, folder, options.budget, tests), numbers, options.drives, results).values()
    verdicts, longest_s = (
        collections.Counter(result["verdict"] for result in done),
        max([result["seconds"] for result in done] or [0]),
    )
    loads = [result["load"] for result in done] or [0.0]
    print(
        f"{len(done)} campaigns: {dict(verdicts)}; {longest_s:.1f} s at most (limit {LONGEST_S:g}); load average "
        f"{min(loads):.1f} to {max(loads):.1f}"
    )
    return busy_machine.exit_code(options, set(verdicts) != {"pass"} or longest_s > LONGEST_S)


def known_rates(folder, options):
    """Three drives whose steady rate is known; 0 if each was measured within LIMIT."""
    off = []
    for number, rate in enumerate(KNOWN_IOPS):
        judged, taken_s = campaign(folder, number, STEADY, dict(FIGURES, steady_iops=rate, fresh_iops=2 * rate))
        (test,) = judged["tests"]
        values = [window["average"] for window in test["windows"]]
        ratio = test["windows"][0]["range_ratio"]
        off.append(abs(test["metrics"]["write_iops"] / rate - 1))
        print(
            f"{rate} IOPS: {judged['verdict']}, {statistics.fmean(values):.1f} measured, {off[-1]:.2%} off, "
            "range of "
            f"the window {ratio:.2%}, {taken_s:.1f} s"
        )
    print(f"largest distance {max(off):.2%} (limit {LIMIT:.0%})")
    return busy_machine.exit_code(options, max(off) > LIMIT)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--number", type=int, default=50, help="campaigns")
    parser.add_argument("--budget", type=float, default=0, help="begin none after so many seconds; 0: all")
    parser.add_argument("--known", action="store_true", help="measure three drives of known rates instead")
    parser.add_argument("--short", action="store_true", help="two rounds of each test instead of steady state")
    busy_machine.add_argument(parser)
    shares.add_arguments(parser, drives=4)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ssdlab-campaigns-") as folder:
        locks.LOCK_DIR = os.path.join(folder, "locks")
        return (known_rates if options.known else false_alarms)(folder, options)


if __name__ == "__main__":
    sys.exit(main())
