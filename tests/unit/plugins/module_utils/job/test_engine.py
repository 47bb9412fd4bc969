# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What systemd's ExecStopPost does for a job that is gone."""
from __future__ import annotations

import json

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.job import engine
from ansible_collections.ssdlab.fleet.plugins.module_utils.run.folder import RunDir

JOB = {"event": "job_started"}
GONE = {"boot_id": "one", "state": "failed"}


def event(name, drive="A", **more):
    return {"event": name, "drive": drive, **more}


@pytest.fixture
def released(fake, tmp_path, monkeypatch):
    """Which drives the ledger calls ours after a job with this journal."""

    def run(history):
        run_dir = RunDir(str(tmp_path), "r")
        (tmp_path / "runs" / "r").mkdir(parents=True)
        fake.put("/proc/sys/kernel/random/boot_id", "one")
        plan = {"drives": [{"drive": name, "selector": {"serial": name}} for name in "AB"]}
        for path, text in ((run_dir.plan, json.dumps(plan)), (run_dir.journal, "".join(json.dumps(record) + "\n" for record in history))):
            with open(path, "w") as out:
                out.write(text)
        seen = []
        monkeypatch.setattr(engine.own_data, "close_left", lambda _host, _state, _run, selectors: seen.extend(item["serial"] for item in selectors))
        engine._close_ledger(fake, run_dir, GONE)  # pylint: disable=protected-access
        return seen

    return run


@pytest.mark.parametrize(
    "history, expected",
    [
        ([JOB, event("drive_started")], ["A"]),
        ([JOB, event("drive_started"), event("drive_started", "B")], ["A", "B"]),
        ([JOB], []),
        # Interrupted by a power loss; the second job found foreign data on it, or never came to it, and was killed or ended.
        ([JOB, event("drive_started"), JOB], []),
        ([JOB, event("drive_started"), JOB, event("guard", eligible=False), event("drive_finished", outcome="refused")], []),
        ([JOB, event("drive_started"), JOB, event("drive_started", "B")], ["B"]),
        # It could not be read when it was let go of.
        ([JOB, event("drive_started"), event("drive_finished", outcome="error")], []),
        ([JOB, event("drive_started"), event("drive_finished"), JOB, event("drive_started")], ["A"]),
    ],
)
def test_only_what_the_dead_job_itself_held_is_called_ours(released, history, expected):
    assert released(history) == expected


@pytest.mark.parametrize(
    "left",
    [
        [event("purge_started", method="nvme_sanitize_block", test="t")],
        # Else preflight would take our password for somebody else's, and the run could not go on.
        [event("purge_started", method="ata_security_erase", test="t"), event("ata_password_set")],
    ],
)
def test_what_a_purge_left_half_done_keeps_its_drive_out_of_the_ledger(released, left):
    assert released([JOB, event("drive_started"), event("drive_started", "B"), *left]) == ["B"]
