# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host job that finds the host taken."""

from __future__ import annotations

import json

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.core import locks
from ansible_collections.ssdlab.fleet.plugins.module_utils.core.files import write_atomic
from ansible_collections.ssdlab.fleet.plugins.module_utils.core.host import Host
from ansible_collections.ssdlab.fleet.plugins.module_utils.job import engine
from ansible_collections.ssdlab.fleet.plugins.module_utils.run.liveness import first_status

PLAN = {"engine_version": "1", "run": {"id": "r", "name": "n"}, "host": "h", "drives": []}


@pytest.mark.parametrize(
    ("same_run", "state"),
    # A play gave up a start that did not end, and the next one started this run again.
    [(True, "running"), (False, "failed")],
    ids=["this run", "another run"],
)
def test_a_job_that_comes_too_late_leaves_the_status_to_the_job_that_does_its_work(
    run_dir, tmp_path, monkeypatch, same_run, state
):
    monkeypatch.setattr(locks, "LOCK_DIR", str(tmp_path / "locks"))
    monkeypatch.setattr(engine, "LOCK_WAIT_S", 0.0)
    monkeypatch.setattr(engine.signal, "signal", lambda *_: None)
    write_atomic(run_dir.plan, json.dumps(PLAN))
    write_atomic(run_dir.status, json.dumps(first_status(Host(), PLAN, "running")))
    holder = {**engine.owner(Host(), run_dir), **({} if same_run else {"folder": "/var/lib/other/runs/s"})}
    with locks.host_lock(holder).acquire():
        assert engine.HostJob(run_dir, Host()).run() == 1
    assert run_dir.read_status()["state"] == state
