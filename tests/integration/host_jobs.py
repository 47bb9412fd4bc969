# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Host jobs of a test's own process, on loop devices: plan, run, and what their journals say."""

from __future__ import annotations

import concurrent.futures
import json
import os
import signal

import cells
from waiting import sizes, wait_until

from ansible_collections.ssdlab.fleet.plugins.module_utils.core import files
from ansible_collections.ssdlab.fleet.plugins.module_utils.core.host import Host
from ansible_collections.ssdlab.fleet.plugins.module_utils.drive.entry import parse
from ansible_collections.ssdlab.fleet.plugins.module_utils.guard import guard_check
from ansible_collections.ssdlab.fleet.plugins.module_utils.job import engine
from ansible_collections.ssdlab.fleet.plugins.module_utils.run import folder as rundir
from ansible_collections.ssdlab.fleet.plugins.module_utils.tuning import settings as tuning
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan import render_plan as planning
from ansible_collections.ssdlab.fleet.tests.fixtures import run_results
from ansible_collections.ssdlab.fleet.tests.fixtures.plans import decided, rendered

MIB = 1 << 20
# 64 MiB and the remainder below 128 KiB that usual capacities leave.
ODD_SIZE = 64 * MIB + 90112
QUICK = {
    "name": "quick",
    "title": "Quick",
    "purge": {"method": "auto"},
    "precondition": False,
    "cells": [cells.writes(50)],
    # A loop device has no fresh state to leave.
    "steady_state": {
        "tracked": [{"block_size": "4KiB", "read_pct": 0, "metric": "write_iops"}],
        "min_capacity_multiple": 0,
        "confirm_windows": 0,
        **cells.ANY_RATES,
    },
    "rounds": {"max": 5},
}
TUNE = {"sysfs": [{"name": "nomerges", "path": "/sys/block/@ssd_name@/queue/nomerges", "value": "2"}]}


def fill_step():
    return planning.step_plan("precondition", {})


class HostJobs:
    """Host jobs of this process, with a state folder and locks of their own."""

    def __init__(self, folder):
        self.folder = folder
        self.count = 0

    def plan(self, drives, tests, parallel=1, tune=None):
        host = Host()
        seen = guard_check.inspect(host, [parse(drive.selector) for drive in drives])
        return rendered(
            tests,
            run={"id": "r", "name": "n"},
            host="h",
            boot_id=tuning.boot_id(host),
            drives=seen,
            engine_version="1",
            variables={"ssd_parallel_drives": parallel, "ssd_validity_limits": cells.ANY_MACHINE},
            tune=dict({"cpu_dma_latency_us": None, "services_stopped": [], "sysfs": [], "keep": False}, **(tune or {})),
        )

    def prepare(self, plan, run_id="r"):
        run = rundir.RunDir(str(self.folder / "state"), run_id)
        os.makedirs(run.path, exist_ok=True)
        files.write_atomic(run.plan, json.dumps(decided(plan)))
        return run

    def run_and_stop(self, plan, when, run_id="r"):
        """Run a host job, and stop it as soon as `when` is true of its journal: (journal, status)."""
        run = self.prepare(plan, run_id)

        def stop():
            try:
                wait_until(
                    lambda: when(rundir.read_journal(run.journal)), "the stop's moment", sizes((run.path, "journal*"))
                )
            finally:
                os.kill(os.getpid(), signal.SIGTERM)

        with concurrent.futures.ThreadPoolExecutor() as pool:
            stopping = pool.submit(stop)
            engine.HostJob(run, Host()).run()
            stopping.result()
        return rundir.read_journal(run.journal), run.read_status()

    def run(self, plan, run_id="r"):
        """Run a host job to its end: (journal, status)."""
        run = self.prepare(plan, run_id)
        engine.HostJob(run, Host()).run()
        return rundir.read_journal(run.journal), run.read_status()

    def ended(self, run_id="r"):
        """The results of the tests that have an end."""
        return run_results.ended(self.folder / "state/runs" / run_id)


def events(journal, name):
    return [record for record in journal if record["event"] == name]
