# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""ssd_parallel_drives: auto with real fio: drives whose files lie on one simulated SSD share its reads, drives that are
simulated SSDs of their own share nothing.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import subprocess
from types import SimpleNamespace

import jsonschema
import pytest
import simulated_ssd as simulator

from ansible_collections.ssdlab.fleet.plugins.module_utils.core import files, locks
from ansible_collections.ssdlab.fleet.plugins.module_utils.core.host import Host
from ansible_collections.ssdlab.fleet.plugins.module_utils.guard import inspection
from ansible_collections.ssdlab.fleet.plugins.module_utils.job import engine
from ansible_collections.ssdlab.fleet.plugins.module_utils.run import decision
from ansible_collections.ssdlab.fleet.plugins.module_utils.run import folder as rundir
from ansible_collections.ssdlab.fleet.plugins.module_utils.tuning import settings as tuning
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.common import schema
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan import render as planning

MIB = 1 << 20
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root for loop devices")
FIGURES = {"fresh_iops": 4000, "steady_iops": 4000, "read_iops": 1500, "noise_pct": 0}
# It reads a little, and changes nothing: what the drives hold has to be what it was.
READS = {
    "name": "reads",
    "title": "Reads",
    "purge": False,
    "precondition": False,
    "rounds": {"max": 1},
    "cells": [{"access": "random", "block_size": "4KiB", "read_pct": 100, "runtime_s": 1}],
}
TUNE = {"cpu_dma_latency_us": None, "services_stopped": [], "sysfs": [], "keep": False}


@pytest.fixture(autouse=True)
def own_locks(tmp_path, monkeypatch):
    monkeypatch.setattr(locks, "LOCK_DIR", str(tmp_path / "locks"))
    # Seconds in place of tens: what is simulated has no noise.
    short = [{**cell, "runtime_s": 4, "ramp_s": 1} for cell in planning.CALIBRATION["cells"]]
    monkeypatch.setitem(planning.CALIBRATION, "cells", short)


def run_job(folder, backing_files):
    """A host job with ssd_parallel_drives: auto: (journal, status)."""
    host, seen = Host(), inspection.inspect(Host(), [{"backing_file": name} for name in backing_files])
    about = {"run": {"id": "r", "name": "n"}, "host": "h", "boot_id": tuning.boot_id(host), "engine_version": "1"}
    tests, variables = planning.load_plan([READS]), {"ssd_parallel_drives": "auto"}
    plan = planning.render(tests, drives=seen, variables=variables, tune=TUNE, **about)
    run = rundir.RunDir(str(folder / "state"), "r")
    os.makedirs(run.path)
    files.write_atomic(run.plan, json.dumps(dict(plan, decision=decision.made(plan))))
    engine.HostJob(run, host).run()
    return rundir.read_journal(run.journal), run.read_status()


def run_cmd(*argv):
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout.strip()


@contextlib.contextmanager
def sharing_drives(folder, count=2):
    """Loop devices over files on one simulated SSD: what it reads in a second, they share."""
    mount = folder / "mount"
    mount.mkdir(parents=True)
    figures = simulator.model_plugin(size_bytes=64 * MIB, **FIGURES)
    with simulator.simulated_ssd(folder / "drives", "under", figures) as under, contextlib.ExitStack() as stack:
        run_cmd("mkfs.ext4", "-q", "-O", "^has_journal", "-E", "nodiscard", under["device"])
        run_cmd("mount", under["device"], str(mount))
        stack.callback(run_cmd, "umount", str(mount))
        made = []
        for number in range(count):
            path = mount / f"drive{number}"
            path.write_bytes(b"")
            run_cmd("fallocate", "-l", str(16 * MIB), str(path))
            device = run_cmd("losetup", "--find", "--show", "--direct-io=on", str(path))
            stack.callback(run_cmd, "losetup", "-d", device)
            made.append(SimpleNamespace(file=path, device=device))
        run_cmd("sync")
        yield made


def calibrated(journal):
    names = [record["event"] for record in journal]
    assert names.index("calibrated") < names.index("drive_started")
    (record,) = [record for record in journal if record["event"] == "calibrated"]
    jsonschema.validate(record, schema.load("journal"))
    assert record["message"] == ""
    return record


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_drives_that_share_a_limit_are_measured_one_at_a_time(tmp_path):
    with sharing_drives(tmp_path) as drives:
        journal, status = run_job(tmp_path, [str(drive.file) for drive in drives])
        record = calibrated(journal)
        assert record["at_once"] == status["parallel_drives"] == 1
        (tried,) = record["tried"]
        # Half each, by the cell that is held down the most.
        assert tried["at_once"] == 2 and all(0.3 < share < 0.7 for share in tried["shares"].values())
        assert [drive["outcome"] for drive in status["drives"]] == ["complete", "complete"]
    raw = tmp_path / "state" / "runs" / "r" / "raw"
    assert len(list(raw.rglob("calibration-*.json.gz"))) == 2 * 2 * 2


def test_drives_that_share_nothing_are_measured_together_and_nothing_is_written(tmp_path):
    with contextlib.ExitStack() as stack:
        figures = simulator.model_plugin(size_bytes=16 * MIB, **FIGURES)
        made = [
            stack.enter_context(simulator.simulated_ssd(tmp_path / "drives", name, figures)) for name in ("one", "two")
        ]
        paths = [tmp_path / "drives" / name / "drive" for name in ("one", "two")]
        before = [digest(path) for path in paths]
        for attempt in range(3):  # other work on this machine may hold one of them up
            journal, status = run_job(tmp_path / str(attempt), [entry["backing_file"] for entry in made])
            record = calibrated(journal)
            if record["at_once"] == 2:
                break
        assert record["at_once"] == status["parallel_drives"] == 2
        assert min(record["tried"][0]["shares"].values()) >= 0.98
        began = {entry["drive"]: entry["time"] for entry in journal if entry["event"] == "drive_started"}
        ended = {entry["drive"]: entry["time"] for entry in journal if entry["event"] == "drive_finished"}
        assert max(began.values()) < min(ended.values())
        assert [digest(path) for path in paths] == before
