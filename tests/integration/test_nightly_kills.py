# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The controller dies in each phase of the nightly, with all that it runs: what the next night does, and what becomes
of the night that was lost. docs/awx.md says how.
"""

from __future__ import annotations

import json
import socket

import pytest
from awx_jobs import nightly
from waiting import wait_until


@pytest.fixture
def awx(site, loop_drive, tmp_path):
    """One server with one drive."""
    return nightly(site, tmp_path / "awx", loop_drive("drive"))


def states(site):
    """{run: the state of its host job}, of the runs that the host knows."""
    paths = [folder / "status.json" for folder in site.run_folders()]
    return {path.parent.name: json.loads(path.read_text())["state"] for path in paths if path.exists()}


def host_done(site):
    wait_until(
        lambda: not set(states(site).values()) & {"starting", "running"}, "the host jobs' end", progress=site.progress
    )


def run_night(awx, *templates):
    """A new night up to and with these steps: the id of its run."""
    awx.forget()
    for template in templates:
        status, said = awx.run(template)
        assert status == "successful", said
    return awx.artifacts["ssd_run_id"]


def by_id(awx, run_id, *templates):
    """What is left to do of a night, by hand: the message of its report."""
    awx.forget()
    for template in templates:
        status, said = awx.run(template, ssd_run_id=run_id)
        assert status == "successful", said
    return awx.artifacts["ssd_message"]


@pytest.mark.long
def test_a_controller_that_dies_in_any_phase_costs_no_more_than_that_night(awx):
    site = awx.site
    # plan: nothing has happened, and the next night is as any other.
    awx.kill_in("plan", "Examine the host and its drives")
    assert site.run_folders() == []

    # start, before the host's job: the run is nobody's, and the next night begins one of its own.
    lost = run_night(awx, "plan")
    awx.kill_in("start", "Put the run into the store")
    assert states(site) == {}

    # start, when the job has begun: it measures on, and the next night attaches to it.
    going_on = run_night(awx, "plan")
    assert going_on != lost

    def begin_and_die():
        task = "Start the host job, or attach to it"
        return 0, awx.kill_in("start", task, lambda: states(site) == {going_on: "running"})

    with site.held(begin_and_die):
        # watch: as above. The host is done before the night after it, and nobody has collected what it measured.
        assert run_night(awx, "plan", "start") == going_on and len(site.run_folders()) == 1
        awx.kill_in("watch", "Watch until every host job has ended")
    host_done(site)
    assert states(site) == {going_on: "finished"}

    # collect: the next night begins a new run. By its id the night that was lost is collected and reported.
    uncollected = run_night(awx, "plan", "start", "watch")
    assert uncollected != going_on
    awx.kill_in("collect", "Collect | Collect the host's results")
    assert f"{going_on}: the drive passed" in by_id(awx, going_on, "collect", "report")

    # report: the same, and the store has all that it needs.
    unreported = run_night(awx, "plan", "start", "watch", "collect")
    assert unreported != uncollected
    awx.kill_in("report", "Judge the run and write the report")
    assert f"{unreported}: the drive passed" in by_id(awx, unreported, "report")
    assert f"{uncollected}: the drive passed" in by_id(awx, uncollected, "collect", "report")

    # notify: nobody heard of that night; the next one compares with it.
    unheard = run_night(awx, "plan", "start", "watch", "collect", "report")
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        address = f"http://127.0.0.1:{deaf.getsockname()[1]}/"
        awx.kill_in("notify", "Notify | Post the message", report_webhook_url=address)
    run_night(awx, "plan", "start", "watch", "collect", "report")
    assert f"Nothing changed since {unheard}" in awx.artifacts["ssd_message"]
    assert f"{unheard}: the drive passed" in by_id(awx, unheard, "report")
    assert len(site.run_folders()) == 5 and set(states(site).values()) == {"finished"}
