# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How many tasks a run executes for each host, skipped ones included: each is a process on the controller.

Counted, not timed: docs/fleet-size.md has what they cost, and tests/bench/fleet.py measures it.
"""

from __future__ import annotations

import json
from pathlib import Path

CALLBACKS = Path(__file__).resolve().parents[1] / "bench" / "fleet_plugins" / "callback"
# Raise these only for what every host needs: 30 ms of CPU each, on the controller, for each host.
MOST = {"plan": 3, "destructive": 5}


def executed(site, mode, tmp_path):
    """Names of the tasks of a run that are executed for each host, without those for the whole fleet."""
    counted = tmp_path / (mode + ".json")
    env = {
        "ANSIBLE_CALLBACK_PLUGINS": str(CALLBACKS),
        "ANSIBLE_CALLBACKS_ENABLED": "ssdlab.fleet.fleet,task_count",
        "SSDLAB_FLEET_TASK_COUNT": str(counted),
    }
    code, output = site.play("qualify", "-e", "ssd_mode=" + mode, env=env)
    assert code == 0, output
    return [task["task"] for task in json.loads(counted.read_text()) if not task["run_once"] for _host in task["hosts"]]


def test_a_run_executes_few_tasks_for_each_host(site, loop_drive, tmp_path):
    site.hosts = {"rack1-07": {"ssd_drives": [loop_drive().selector]}}
    for mode, most in MOST.items():
        tasks = executed(site, mode, tmp_path)
        assert len(tasks) <= most, tasks
    assert site.summary()["verdicts"]["pass"] == 1
