# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host job that finds the host taken, or comes too late."""

from __future__ import annotations

import json
import os

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.core import locks
from ansible_collections.ssdlab.fleet.plugins.module_utils.core.files import write_atomic
from ansible_collections.ssdlab.fleet.plugins.module_utils.core.host import Host
from ansible_collections.ssdlab.fleet.plugins.module_utils.job import engine, launch
from ansible_collections.ssdlab.fleet.plugins.module_utils.records import base
from ansible_collections.ssdlab.fleet.plugins.module_utils.run.liveness import first_status, starter
from ansible_collections.ssdlab.fleet.tests.fixtures import planned

PLAN = planned.plan_of()


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
    write_atomic(run_dir.plan, json.dumps(base.sparse_json(PLAN)))
    write_atomic(run_dir.status, json.dumps(first_status(Host(), PLAN, "running")))
    holder = {**engine.owner(Host(), run_dir), **({} if same_run else {"folder": "/var/lib/other/runs/s"})}
    with locks.host_lock(holder).acquire():
        assert engine.HostJob(run_dir, Host()).run() == 1
    assert run_dir.read_status()["state"] == state


@pytest.fixture
def late(run_dir, tmp_path, monkeypatch):
    """A job of the start that the status names. Nobody decided on its plan, which its work refuses first of all."""
    monkeypatch.setattr(locks, "LOCK_DIR", str(tmp_path / "locks"))
    monkeypatch.setattr(engine.signal, "signal", lambda *_: None)
    write_atomic(run_dir.plan, json.dumps(base.sparse_json(PLAN)))
    launch.write_starting(Host(), run_dir, PLAN)
    return engine.HostJob(run_dir, Host(), starter(run_dir.read_status()))


def test_a_job_works_while_its_start_stands(run_dir, late):
    assert late.run() == 1 and "no decision of preflight" in run_dir.read_status()["message"]


def void(run_dir, **changed):
    write_atomic(run_dir.status, json.dumps({**run_dir.read_status(), **changed}))


def given_up(run_dir):
    """As where the kernel, or systemd, does not end it: it may come to life any time, and holds no lock until then."""

    def end():
        raise launch.JobError("it does not end")

    with pytest.raises(launch.JobError, match="did not start within 0 s, and it does not end"):
        launch.await_start(Host(), run_dir, end)


@pytest.mark.parametrize(
    "meanwhile",
    [
        given_up,
        lambda run_dir: void(run_dir, pid=1),  # started anew
        lambda run_dir: void(run_dir, state="stopped"),
        lambda run_dir: void(run_dir, state="finished", pid=1),
        lambda run_dir: os.unlink(run_dir.status),
    ],
    ids=["given up", "restarted, stopped or given up", "stopped", "finished by another", "lost"],
)
def test_a_job_whose_start_is_void_does_nothing_even_where_nobody_has_the_lock(run_dir, late, meanwhile, monkeypatch):
    monkeypatch.setattr(launch, "START_TIMEOUT_S", 0.0)
    meanwhile(run_dir)
    before = run_dir.read_status()
    assert late.run() == 1 and run_dir.read_status() == before
    assert (before or {}).get("state") == ("failed" if meanwhile is given_up else (before or {}).get("state"))


def test_a_start_is_not_given_up_once_its_job_is_at_work(run_dir, late):
    with locks.host_lock(engine.owner(Host(), run_dir)).acquire():
        given_up_by = run_dir.read_status()
        with pytest.raises(launch.JobError), launch._given_up(run_dir, "late"):
            raise launch.JobError("it does not end")
    assert run_dir.read_status() == given_up_by
