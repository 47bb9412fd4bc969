# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host job that does not start in time must not start later: the play reports it failed, and its drives idle."""

from __future__ import annotations

import json
import os

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.core import locks
from ansible_collections.ssdlab.fleet.plugins.module_utils.core.files import write_atomic
from ansible_collections.ssdlab.fleet.plugins.module_utils.core.host import Host, Result
from ansible_collections.ssdlab.fleet.plugins.module_utils.job import launch, stop_process
from ansible_collections.ssdlab.fleet.plugins.module_utils.run.liveness import pid_start
from ansible_collections.ssdlab.fleet.tests.fixtures import planned

PLAN = planned.plan_of(drives=[{}])
# Slow to begin, as on a loaded host, and then it would write to a drive.
SLOW = """import signal, sys, time
{heed}
time.sleep({seconds})
open(sys.argv[2] + "/written", "w")
"""
DEAF = "signal.signal(signal.SIGTERM, signal.SIG_IGN)"
UNIT = "ssdlab-fleet-r.service"


class WithoutSystemd(Host):
    """A host where the job is a session of its own."""

    def exists(self, path):
        return path != "/run/systemd/system" and super().exists(path)


class Systemd(Host):
    """A host whose systemd answers by a table; `asked` has what it was asked."""

    def __init__(self, **answers):
        super().__init__()
        self.answers, self.asked = answers, []

    def exists(self, path):
        return path == "/run/systemd/system"

    def run(self, argv, timeout_s=60, stdin=None, started=None):
        self.asked.append([argv[0], argv[1], argv[-1]] if argv[0] == "systemctl" else [argv[0]])
        rc, stdout = self.answers.get(argv[1] if argv[0] == "systemctl" else "run", (0, ""))
        return Result(argv, rc, stdout, "no answer" if rc else "")


@pytest.fixture
def quick(run_dir, monkeypatch):
    """Short times, and the status that the module writes before it starts a job."""
    monkeypatch.setattr(launch, "START_TIMEOUT_S", 1.0)
    monkeypatch.setattr(stop_process, "STOP_TIMEOUT_S", 3.0)
    monkeypatch.setattr(locks, "LOCK_DIR", run_dir.path + "/locks")
    launch.write_starting(Host(), run_dir, PLAN)
    return run_dir


@pytest.mark.parametrize("heed", ["", DEAF], ids=["heeds SIGTERM", "deaf"])
def test_a_process_that_starts_too_late_is_ended_and_writes_nothing(quick, tmp_path, heed):
    engine = tmp_path / "engine.py"
    engine.write_text(SLOW.format(heed=heed, seconds=60))
    host = WithoutSystemd()
    end = launch.launch(host, quick, str(engine))
    with pytest.raises(launch.JobError, match="did not start within 1 s, and was ended"):
        launch.await_start(host, quick, end)
    process = end.args[-1]
    assert pid_start(host, process.pid) != process.start
    assert not os.path.exists(quick.path + "/written")
    status = quick.read_status()
    assert (status["state"], status["restored"]) == ("failed", True) and "did not start" in status["message"]


def test_a_job_that_has_written_its_status_is_left_alone(quick):
    first = {**quick.read_status(), "pid": 1, "pid_start": pid_start(Host(), 1), "state": "running"}
    write_atomic(quick.status, json.dumps(first))

    def end():
        raise AssertionError("it lives")

    assert launch.await_start(Host(), quick, end) == "running"


@pytest.mark.parametrize(
    "answers, told",
    [
        ({"stop": (0, ""), "is-active": (3, "inactive\n")}, "within 1 s, and was ended"),
        # It was collected meanwhile.
        ({"stop": (5, ""), "is-active": (4, "unknown\n")}, "within 1 s, and was ended"),
        (
            {"stop": (124, ""), "is-active": (0, "deactivating\n")},
            f"{UNIT} does not end .deactivating.*may still",
        ),
        ({"stop": (124, ""), "is-active": (124, "")}, f"{UNIT} does not end .systemd gives no answer"),
    ],
)
def test_a_unit_that_starts_too_late_is_stopped(quick, answers, told):
    host = Systemd(**answers)
    end = launch.launch(host, quick, "engine")
    with pytest.raises(launch.JobError, match=told):
        launch.await_start(host, quick, end)
    assert host.asked == [["systemd-run"], ["systemctl", "stop", UNIT], ["systemctl", "is-active", UNIT]]
    # Void in any case: a job that comes after all does nothing (test_engine.py).
    assert quick.read_status()["state"] == "failed"


@pytest.mark.parametrize("rc, asked", [(1, ["systemd-run"]), (124, ["systemd-run", "stop", "is-active"])])
def test_a_unit_that_systemd_run_gave_no_answer_for_is_stopped(quick, rc, asked):
    host = Systemd(**{"run": (rc, ""), "is-active": (3, "inactive\n")})
    with pytest.raises(launch.JobError, match=f"systemd-run could not start {UNIT}"):
        launch.launch(host, quick, "engine")
    assert [words[1] if len(words) > 1 else words[0] for words in host.asked] == asked
    # Else the host would call the run unfinished, and no later night of that name would start.
    status = quick.read_status()
    assert (status["state"], status["restored"]) == ("failed", True) and "could not start" in status["message"]


def test_a_start_of_a_unit_that_may_still_come_is_void(quick):
    host = Systemd(**{"run": (124, ""), "is-active": (0, "activating\n")})
    with pytest.raises(launch.JobError, match=f"{UNIT} does not end .activating"):
        launch.launch(host, quick, "engine")
    status = quick.read_status()
    assert status["state"] == "failed" and "systemd-run gave no answer" in status["message"]


def test_a_process_that_ends_just_before_its_signal_is_ended(quick, monkeypatch):
    """pid_start sees it, and by the time of the signal somebody has reaped it."""
    seen = iter(["7"])
    monkeypatch.setattr(stop_process, "pid_start", lambda *_: next(seen, None))
    stop_process.end_process(Host(), quick, stop_process.Process(2**22 + 1, "7"))
