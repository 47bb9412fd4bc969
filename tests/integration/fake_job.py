# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Stands in for the host job: keeps a status.json for some seconds or until its input ends, then leaves a finished run.
fake_job.py STATE_DIR RUN_ID SECONDS
"""

from __future__ import annotations

import json
import os
import select
import sys
import typing as t

from ansible_collections.ssdlab.fleet.plugins.module_utils.core import files
from ansible_collections.ssdlab.fleet.plugins.module_utils.core.host import BOOT_ID, Host
from ansible_collections.ssdlab.fleet.plugins.module_utils.run import folder
from ansible_collections.ssdlab.fleet.plugins.module_utils.run.liveness import pid_start
from ansible_collections.ssdlab.fleet.tests.fixtures import planned, steady_test

DRIVE, TEST = "A1", "iops"


def started(host: Host, run_id: str) -> dict[str, t.Any]:
    """The status as the job begins."""
    return {
        "run_id": run_id,
        "run_name": "qualify",
        "host": "as-planned",
        "boot_id": host.get(BOOT_ID),
        "pid": os.getpid(),
        "pid_start": pid_start(host, os.getpid()),
        "unit": None,
        "engine_version": "0.1.0",
        "state": "running",
        "started": files.now(),
        "restored": False,
        "message": "",
        "drives": [folder.queued(DRIVE), folder.queued("B2")],
    }


def main(state_dir: str, run_id: str, seconds: str) -> None:
    run_dir, host = folder.RunDir(state_dir, run_id), Host()
    os.makedirs(run_dir.path, exist_ok=True)
    status = folder.Status(run_dir.status, started(host, run_id))
    drives = [{"drive": DRIVE, "tests": [steady_test.planned_json(TEST)]}]
    plan = planned.plan_json(run={"id": run_id, "name": "qualify"}, drives=drives)
    files.write_atomic(run_dir.plan, json.dumps(plan))
    journal = folder.Journal(run_dir.journal, run_id=run_id, host="as-planned")
    test = {"drive": DRIVE, "test": TEST, "attempt": 1}
    journal.add(
        "drive_started", drive=DRIVE, identity={"serial": DRIVE, "model": "Fake"}, path="/dev/null", tests=[TEST]
    )
    journal.add("test_started", title="Random IOPS", **test)
    with open(os.path.join(run_dir.raw(DRIVE), "iops-1-0001-c.json"), "w") as raw:
        raw.write("{}")
    left = {"metric": None, "value": None, "mean_latency_us": None, "progress": 0.5}
    status.set_drive(
        DRIVE, phase="precondition", test=TEST, test_index=1, tests=1, last=left, time_left_s=float(seconds)
    )
    print("running", flush=True)
    select.select([sys.stdin], [], [], float(seconds))
    for event in steady_test.events(41200.6):
        journal.add(**event, **test)
    for name in (DRIVE, "B2"):
        status.set_drive(name, phase="done", outcome="complete")
    status.set(state="finished", restored=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
