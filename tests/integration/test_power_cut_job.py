# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Power-cut tests by real host jobs on simulated drives with a volatile cache, which is thrown away: a job is killed,
and the next one runs in another boot. The controller's part: test_power_cut_play.py.
"""

from __future__ import annotations

import hashlib
import os
import random
import subprocess
import sys
import time
import types
from pathlib import Path

import pytest
import simulated_ssd as simulator
from host_jobs import MIB, events
from waiting import sizes, wait_until

from ansible_collections.ssdlab.fleet.plugins.module_utils.core import locks
from ansible_collections.ssdlab.fleet.plugins.module_utils.run import folder as rundir
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan import render_plan as planning
from ansible_collections.ssdlab.fleet.tests.fixtures import documents, run_results

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root for loop devices")

SIZE = 16 * MIB
FAST = {"fresh_iops": 1e6, "steady_iops": 1e6, "read_iops": 1e6, "write_bandwidth": 1e9, "read_bandwidth": 1e9}
LIFE = Path(__file__).with_name("power_cut_life.py")
FAULTS = ("lost_flushed", "stale", "resurrected", "misplaced", "foreign", "corrupt", "unreadable")


class Lives:
    """A run of a host whose power is cut: the lives of its job."""

    def __init__(self, jobs, tmp_path, lies, cycles):
        self._folder, self._boot = tmp_path / "drives", 0
        power_file = simulator.power_file(self._folder, "drive")
        plugin = simulator.model_plugin(SIZE, **FAST, cache_bytes=SIZE, power_file=power_file, power_lies=lies)
        record = simulator.create(self._folder, "drive", plugin)
        drive = types.SimpleNamespace(selector={"backing_file": record["backing_file"]})
        asked = {"cycles": cycles, "mode": "hard", "min_write_s": 1, "max_write_s": 2}
        test = {"base": "power-cut", "purge": False, "power_cut": asked}
        plan = jobs.plan([drive], planning.load_plan([test]))
        self.run = jobs.prepare({**plan, "look": {"seconds": 1}})
        self.device, self._draw = record["device"], random.Random(lies)

    def start(self, is_new_boot=True):
        self._boot += is_new_boot
        argv = [sys.executable, str(LIFE), self.run.path, f"boot-{self._boot}", locks.LOCK_DIR]
        return subprocess.Popen(argv, start_new_session=True)

    def step(self):
        status = self.run.read_status()
        cut = (status or {"drives": [{}]})["drives"][0].get("power_cut")
        return cut["step"] if cut else ""

    def live_until_cut(self, is_new_boot=True, cuts_power=True):
        """Have a job write, and then kill it with all it started; return whether it was writing, and not done."""
        process = self.start(is_new_boot)
        cycle = len(self.events("power_cut_armed"))

        def is_writing():
            return self.step() == "writing" and len(self.events("power_cut_armed")) > cycle

        watched = sizes((self.run.path, "**/*"))
        wait_until(lambda: is_writing() or process.poll() is not None, "the drive is written to", watched)
        if process.poll() is not None:
            return False
        time.sleep(self._draw.uniform(0.3, 1.0))
        process.kill()
        process.wait()
        wait_until(lambda: not _opens(self.device), "the writers are gone")
        if cuts_power:
            simulator.cut_power(self._folder, "drive")
        return True

    def events(self, name):
        return events(rundir.read_journal(self.run.journal), name)

    def end(self):
        simulator.destroy(self._folder)


def _digest(device):
    return hashlib.sha256(Path(device).read_bytes()).hexdigest()


def _opens(device):
    """Whether a process has a device open, or is about to go."""
    for link in Path("/proc").glob("[0-9]*/fd/*"):
        try:
            if os.readlink(link) == device:
                return True
        except OSError:
            continue
    return False


@pytest.fixture
def lives(jobs, tmp_path):
    made = []

    def make(lies="", cycles=3):
        made.append(Lives(jobs, tmp_path, lies, cycles))
        return made[-1]

    yield make
    for one in made:
        one.end()


def test_an_honest_drive_passes_however_often_its_job_dies(jobs, lives):
    run = lives(cycles=2)
    assert run.live_until_cut()
    # A job that dies alone makes no cycle of it, and loses none.
    assert run.live_until_cut(cuts_power=False)
    assert run.live_until_cut(is_new_boot=False)
    assert not run.live_until_cut()
    journal = rundir.read_journal(run.run.journal)
    for record in journal:
        documents.validate(record, "journal")
    cycles = run.events("power_cut_cycle")
    assert [cycle["cut"] for cycle in cycles] == [True, False, True]
    assert not any(cycle[kind] for cycle in cycles for kind in FAULTS), cycles
    assert all(cycle["writes_acknowledged"] and cycle["found"] and not cycle["records_lost"] for cycle in cycles)
    assert len(run.events("test_started")) == 1 and len(run.events("purge")) == 0
    (result,) = jobs.ended()
    assert result["outcome"] == "complete" and len(result["power_cut"]["cycles"]) == len(cycles)
    assert run.run.read_status()["state"] == "finished"


@pytest.mark.variants(1)
@pytest.mark.parametrize(
    ("lies", "kinds"),
    [
        ("no-flush", {"lost_flushed", "stale", "resurrected"}),
        ("rollback", {"lost_flushed", "stale", "resurrected"}),
        # A block that was trimmed may lie at the place of another.
        ("shift", {"misplaced", "lost_flushed", "stale"}),
    ],
)
def test_a_lying_drive_fails_at_its_first_loss(jobs, lives, lies, kinds):
    run = lives(lies, cycles=8)
    while run.live_until_cut():
        pass
    cycles = run.events("power_cut_cycle")
    found = {kind for cycle in cycles for kind in FAULTS if cycle[kind]}
    assert found and found <= kinds, cycles
    assert not any(cycle[kind] for cycle in cycles[:-1] for kind in FAULTS)
    (result,) = jobs.ended()
    assert result["outcome"] == "complete"
    assert run.events("left")[-1]["state"] == "evidence"


def test_a_drive_that_somebody_took_after_the_boot_is_read_and_not_written_to(lives):
    run = lives()
    assert run.live_until_cut()
    # What the killed job's writers have under way holds the drive a moment longer.
    make = ["mkfs.ext4", "-q", "-F", run.device]
    wait_until(lambda: subprocess.run(make, check=False).returncode == 0, "the drive lets itself be formatted")
    before = _digest(run.device)
    assert not run.live_until_cut()
    assert _digest(run.device) == before
    (cycle,) = run.events("power_cut_cycle")
    assert cycle["cut"] and cycle["corrupt"] + cycle["lost_flushed"] + cycle["stale"]
    refused = [event for event in run.events("guard") if not event["eligible"]]
    assert "signature" in {one["code"] for one in refused[-1]["refusals"]}, refused
    assert len(run.events("power_cut_armed")) == 1
    # What was found stands, whoever asks.
    (record,) = [one for one in run_results.records(run.run) if one["kind"] == "test"]
    assert record["outcome"] == "complete" and record["power_cut"]["cycles"] == [
        {key: value for key, value in cycle.items() if key in record["power_cut"]["cycles"][0]}
    ]


def test_a_drive_that_does_not_come_back_is_noted(lives):
    run = lives()
    assert run.live_until_cut()
    run.end()
    assert not run.live_until_cut()
    (cycle,) = run.events("power_cut_cycle")
    assert cycle["cut"] and not cycle["found"] and not cycle["blocks_checked"]
    assert run.run.read_status()["drives"][0]["outcome"] == "refused"
