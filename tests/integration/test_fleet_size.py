# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What grows with a fleet: how many tasks a run executes for each host, skipped ones included, each a process on the
controller; and the report out of the store.

Counted, not timed: docs/fleet-size.md and docs/store.md have what they cost, and tests/bench measures it.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import postgres
import pytest

BENCH = Path(__file__).resolve().parents[1] / "bench"
CALLBACKS = BENCH / "fleet_plugins" / "callback"
# Raise these only for what every host needs: 30 ms of CPU each, on the controller, for each host.
MOST = {"plan": 2, "destructive": 3}

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root for loop devices")


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


def bench(script, *arguments):
    """What a bench that worked printed. It left nothing in its temporary folder."""
    command = [sys.executable, str(BENCH / script), *arguments]
    # Not pytest's folder: PostgreSQL, which does not run as root, has to reach it.
    with tempfile.TemporaryDirectory(prefix="ssdlab-test-") as folder:
        os.chmod(folder, 0o755)
        environment = {"PATH": os.environ["PATH"], "TMPDIR": folder}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        assert os.listdir(folder) == [], "the bench left files"
    return done.stdout


@pytest.mark.long
@needs_root
def test_the_bench_of_the_fleet_works():
    """A sample of docs/fleet-size.md's table: the bench itself fails where a host lacks its verdict, or was sent too
    much.
    """
    said = bench("fleet.py", "--hosts", "3", "--busy")
    cpu_s, sent_kib = re.search(r"3 hosts: ([0-9.]+) CPU-s .* ([0-9]+) KiB sent a host", said).groups()
    assert float(cpu_s) > 0 and 500 < int(sent_kib) < 1800


@pytest.mark.long
@needs_root
def test_the_bench_of_a_fleet_with_faults_works():
    """One host hangs, one is unreachable, one answers garbage; the fourth has to get its verdict."""
    assert "4 hosts: " in bench("fleet.py", "--hosts", "4", "--faults", "--busy")


@pytest.mark.long
@needs_root
@pytest.mark.skipif(not postgres.programs(), reason="needs the package postgresql")
def test_the_bench_of_slices_works():
    """Three ansible-runner processes for each step, one PostgreSQL, one report, in which every drive has to pass."""
    assert "3 hosts in 3 slices: " in bench("slices.py", "--hosts", "3", "--slices", "3")
