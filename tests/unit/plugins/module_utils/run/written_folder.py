# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A run's folder on a host, written as the host job does."""

from __future__ import annotations

import json
import os

from ansible_collections.ssdlab.fleet.plugins.module_utils.core import files
from ansible_collections.ssdlab.fleet.plugins.module_utils.core.host import BOOT_ID, Host
from ansible_collections.ssdlab.fleet.plugins.module_utils.run import folder as rundir
from ansible_collections.ssdlab.fleet.plugins.module_utils.run import summary
from ansible_collections.ssdlab.fleet.plugins.module_utils.run.liveness import pid_start
from ansible_collections.ssdlab.fleet.tests.fixtures import planned, steady_test

RUN = "20261121T130000Z-qualify"
HOST = Host()
WAITING, BUSY = {}, {"phase": "measure"}
DONE, CUT = {"phase": "done", "outcome": "complete"}, {"phase": "done", "outcome": "interrupted"}


class Folder:
    """A run's folder, written as the host job does."""

    def __init__(self, state_dir, run_id=RUN):
        self.run_dir = rundir.RunDir(str(state_dir), run_id)
        os.makedirs(self.run_dir.path)

    def status(self, state="running", alive=True, drives=(), **more):
        pid = os.getpid() if alive else 2**22 + 1
        fields = {
            "run_id": self.run_dir.run_id,
            "run_name": "qualify",
            "host": "rack1-07",
            "boot_id": HOST.get(BOOT_ID),
            "pid": pid,
            "pid_start": pid_start(HOST, os.getpid()),
            "unit": None,
            "engine_version": "0.1.0",
            "state": state,
            "started": files.now(),
            "restored": False,
            "message": "",
            "drives": [dict(rundir.queued(name), **entry) for name, entry in drives],
        }
        rundir.Status(self.run_dir.status, fields).set(**more)
        return self

    def journal(self, *events):
        journal = rundir.Journal(self.run_dir.journal, run_id=self.run_dir.run_id, host="rack1-07")
        for event, fields in events:
            journal.add(event, **fields)
        journal.close()
        return self

    def plan(self, **test):
        drives = [{"drive": "A1", "tests": [dict(steady_test.planned_json("iops"), **test)]}]
        plan = planned.plan_json(run={"id": RUN, "name": "planned"}, drives=drives)
        files.write_atomic(self.run_dir.plan, json.dumps(plan))
        return self

    def read(self):
        return summary.read(HOST, self.run_dir)
