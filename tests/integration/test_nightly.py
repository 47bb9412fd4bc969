# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A nightly as AWX runs it: each job an ansible-runner process of its own, in a checkout of its own, with nothing in
common but the store and artifacts.
"""

from __future__ import annotations

import json
import os
import signal

import pytest
from awx_jobs import JOB_S, kill, nightly, webhook


@pytest.fixture
def chat():
    """A webhook: its address, and what was posted to it."""
    with webhook() as made:
        yield made


@pytest.fixture
def awx(site, loop_drive, tmp_path):
    """One server with two drives."""
    return nightly(site, tmp_path / "awx", loop_drive("good"), loop_drive("bad"))


def test_a_night_from_the_plan_to_the_message_with_one_bad_drive(awx, chat):
    address, posted = chat
    before = [drive.digest() for drive in awx.site.drives]
    # A survey that was left empty: ansible-core 2.19 reads it as nothing at all.
    assert awx.run("plan", ssd_run_id="")[0] == "successful"
    assert [drive.digest() for drive in awx.site.drives] == before and awx.site.run_folders() == []
    assert set(awx.artifacts) == {"ssd_attached", "ssd_run_id", "ssd_skipped"}
    run_id = awx.artifacts["ssd_run_id"]
    assert awx.run("start")[0] == "successful"
    assert [folder.name for folder in awx.site.run_folders()] == [run_id]
    awx.site.drives[1].detach()  # It dies before its turn comes.
    # A watch that ran out of time, was cancelled or killed costs nothing: the next one goes on.
    assert awx.run("watch", limit_s=4)[0] == "timeout"
    for how in (signal.SIGTERM, signal.SIGKILL):
        process, job = awx.start("watch")
        awx.await_task(process, job, "Watch until every host job has ended")
        if how == signal.SIGKILL:
            kill(process)
        else:
            os.kill(process.pid, how)
            process.wait(JOB_S)
            assert awx.ended(job)[0] == "canceled"
    # One that ends by itself, though hosts are at work, is no failure.
    assert awx.run("watch", ssd_watch_for_s=1)[0] == "successful"
    assert awx.run("watch")[0] == "successful"
    assert awx.run("collect")[0] == "successful"
    status, said = awx.run("report")
    assert status == "failed" and "1 of 2 drives did not pass" in said
    assert {"ssd_verdicts", "ssd_message", "ssd_all_passed", "ssd_report"} <= set(awx.artifacts)
    assert awx.artifacts["ssd_verdicts"]["pass"] == 1 and len(json.dumps(awx.artifacts)) < 8000
    status, said = awx.run("notify", report_webhook_url=address)
    assert status == "successful" and "secret-path" not in said
    (message,) = posted
    assert message["text"].startswith(f"{run_id}: 1 of 2 drives did not pass (") and "No earlier run" in message["text"]
    assert awx.site.drives[1].file.name in message["text"]
