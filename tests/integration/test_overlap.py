# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nights that find last night's run still at work, one after the other: each says what ssd_overlap makes of it, in its
job's output and in the message.
"""

from __future__ import annotations

import json

import pytest
from awx_jobs import nightly, webhook
from conftest import SHORT_TEST

# Five rounds at least: the run is still at work when the last of these nights begins.
LONG_TEST = {**SHORT_TEST, "cells": [{**SHORT_TEST["cells"][0], "runtime_s": 4}]}


@pytest.fixture
def awx(site, loop_drive, tmp_path):
    """One server with one drive, and a long measurement."""
    made = nightly(site, tmp_path / "awx", loop_drive("drive"))
    site.vars["ssd_plan"] = [LONG_TEST]
    return made


def at_work(awx):
    """The runs that the host works on."""
    statuses = [json.loads((folder / "status.json").read_text()) for folder in awx.site.run_folders()]
    return [status["run_id"] for status in statuses if status["state"] == "running"]


def steps(awx, address, *templates):
    """These steps of a night, and its end: {template: (status, output)}."""
    done = {template: awx.run(template) for template in templates}
    return {**done, "notify": awx.run("notify", report_webhook_url=address)}


@pytest.mark.long
def test_a_night_that_finds_last_nights_run_at_work_says_what_it_does(awx):
    with webhook() as (address, posted):
        assert awx.run("plan")[0] == "successful"
        with awx.site.held(lambda: awx.run("start")) as (status, said):
            assert status == "successful", said
            (first,) = at_work(awx)
            still = f"un {first} is still at work on rack1-07: "

            awx.forget()
            awx.variables["ssd_overlap"] = "skip"
            done = steps(awx, address, "plan", "start", "watch", "collect", "report")
            assert {status for status, _said in done.values()} == {"successful"}, done
            assert f"Skipped: r{still}nothing is started (ssd_overlap: skip)" in done["plan"][1]
            assert posted.pop()["text"] == f"Skipped: r{still}nothing is started (ssd_overlap: skip)"
            assert at_work(awx) == [first] and len(awx.site.run_folders()) == 1

            awx.forget()
            awx.variables["ssd_overlap"] = "fail"
            done = steps(awx, address, "plan")  # The workflow goes on with the message.
            assert (done["plan"][0], done["notify"][0]) == ("failed", "successful"), done
            wait = f"r{still}wait for it (watch.yml), or stop it (stop.yml) (ssd_overlap: fail)"
            assert wait in done["plan"][1]
            assert posted.pop()["text"].splitlines() == ["nightly: not started, preflight found 1 thing to fix", wait]
            assert at_work(awx) == [first] and len(awx.site.run_folders()) == 1

            awx.forget()
            awx.variables["ssd_overlap"] = "attach"
            done = {template: awx.run(template) for template in ("plan", "start")}
        done.update(steps(awx, address, "watch", "collect", "report"))
        assert {status for status, _said in done.values()} == {"successful"}, done
        attached = f"R{still}this play attaches to it (ssd_overlap: attach)"
        assert attached in done["plan"][1]
        assert posted.pop()["text"].splitlines()[:2] == [attached, f"{first}: the drive passed"]
        assert at_work(awx) == [] and len(awx.site.run_folders()) == 1 and not posted
