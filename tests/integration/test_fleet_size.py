# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What grows with a fleet: how many tasks a run executes for each host, skipped ones included, each a process on the
controller; and the report out of the store.

Counted, not timed: docs/fleet-size.md and docs/store.md have what they cost, and tests/bench measures it.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).resolve().parents[1] / "bench"
CALLBACKS = BENCH / "fleet_plugins" / "callback"
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


def test_the_bench_of_the_fleets_page_works(tmp_path):
    """A sample of docs/store.md's table: the bench itself fails where the report lacks a night, the bad drive or the
    bad host.
    """
    pytest.importorskip("sqlalchemy")
    pytest.importorskip("scipy")
    command = [sys.executable, str(BENCH / "fleet_page.py"), "--drives", "100", "--runs", "3", "--metrics", "12"]
    done = subprocess.run(command, env={"TMPDIR": str(tmp_path)}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    seconds, cpu_s, peak_mib, size_mb = re.search(
        r"\| 100 \| 3 \| 3,600 \| .* \| ([0-9.]+) s \(([0-9.]+) s\) \| ([0-9]+) MiB \| ([0-9.]+) MB \|", done.stdout
    ).groups()
    assert 0 < float(cpu_s) and 0 < float(seconds) and int(peak_mib) < 1024 and 0 < float(size_mb) < 1
    assert list(tmp_path.iterdir()) == [], "the bench left its store"
