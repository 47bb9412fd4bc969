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
import time

import pytest
from awx_jobs import kill, nightly, webhook
from waiting import wait_for_end


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
    began_s = time.monotonic()
    assert awx.run("plan", ssd_run_id="")[0] == "successful"
    job_s = time.monotonic() - began_s
    assert [drive.digest() for drive in awx.site.drives] == before and awx.site.run_folders() == []
    assert set(awx.artifacts) == {"ssd_approved_plan", "ssd_attached", "ssd_run_id", "ssd_skipped"}
    run_id = awx.artifacts["ssd_run_id"]
    with awx.site.held(lambda: awx.run("start")) as (status, said):
        assert status == "successful", said
        assert [folder.name for folder in awx.site.run_folders()] == [run_id]
        awx.site.drives[1].detach()  # It dies before its turn comes.
        # A watch that ran out of time, was cancelled or killed costs nothing: the next one goes on.
        assert awx.run("watch", limit_s=2 * job_s)[0] == "timeout"
        for how in (signal.SIGTERM, signal.SIGKILL):
            process, job = awx.start("watch")
            awx.await_task(process, job, "Watch until every host job has ended")
            if how == signal.SIGKILL:
                kill(process)
            else:
                os.kill(process.pid, how)
                wait_for_end(process, "the watch to be cancelled")
                assert awx.ended(job)[0] == "canceled"
        # One that ends by itself, though hosts are at work, is no failure.
        assert awx.run("watch", ssd_watch_for_s=1)[0] == "successful"
    assert awx.run("watch")[0] == "successful"
    assert awx.run("collect")[0] == "successful"
    status, said = awx.run("report")
    assert status == "failed" and "1 of 2 drives did not pass" in said, said[-3000:]
    assert {"ssd_verdicts", "ssd_message", "ssd_all_passed", "ssd_report"} <= set(awx.artifacts)
    assert awx.artifacts["ssd_verdicts"]["pass"] == 1 and len(json.dumps(awx.artifacts)) < 8000
    status, said = awx.run("notify", report_webhook_url=address)
    assert status == "successful" and "secret-path" not in said
    (message,) = posted
    assert message["text"].startswith(f"{run_id}: 1 of 2 drives passed; 1 ") and "No earlier run" in message["text"]
    assert awx.site.drives[1].file.name in message["text"]


DEAD = {"ansible_connection": "ssh", "ansible_host": "127.0.0.1", "ansible_port": 1, "ansible_user": "nobody"}


@pytest.mark.long
def test_a_lost_host_and_a_drive_that_is_gone_do_not_cost_the_others_their_night(awx, chat):
    """The second night, with its plan, of a workflow that goes on only after a plan without findings."""
    address, posted = chat
    good, bad = awx.site.drives
    assert [status for _node, status, _said in awx.workflow("nightly", notify={"report_webhook_url": address})][
        :-2
    ] == ["successful"] * 8
    assert awx.artifacts["ssd_verdicts"]["pass"] == 2
    awx.forget()
    bad.detach()
    awx.site.hosts["rack1-08"] = {**DEAD, "ssd_drives": [{"serial": "22123A4F5B6C"}]}
    jobs = {
        node: (status, said) for node, status, said in awx.workflow("nightly", notify={"report_webhook_url": address})
    }
    assert jobs["plan"][0] == "successful" and jobs["start"][0] == "successful", jobs["plan"][1] + jobs["start"][1]
    assert "rack1-08: left out, so its drives would count as not tested" in jobs["plan"][1]
    watches = [jobs[f"watch-{number}"][0] for number in (1, 2, 3, 4)]
    assert watches == ["successful"] * 4, "none waits for the host that was left out"
    assert jobs["end"][0] == "failed" and "not every drive passed" in jobs["end"][1]
    assert jobs["report"][0] == "failed" and "2 of 3 drives did not pass" in jobs["report"][1]
    verdicts = awx.artifacts["ssd_verdicts"]
    assert (verdicts["pass"], verdicts["not_tested"], sum(verdicts.values())) == (1, 2, 3)
    text = posted[-1]["text"]
    left_out = "22123A4F5B6C on rack1-08 was left out: the approved plan leaves this host out: the host is unreachable"
    assert f"not tested: rack1-08 22123A4F5B6C: {left_out}" in text
    (gone,) = [line for line in text.splitlines() if f"not tested: rack1-07 {bad.file}" in line]
    assert "was left out: the approved plan leaves it out: not_found: this host has no such drive" in gone
    assert str(good.file) not in text.replace("changed", "")
