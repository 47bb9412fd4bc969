# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The host job and its tuning, on real loop devices: set for the run, made again after a purge, put back after it."""

from __future__ import annotations

import os
import struct

import pytest
from host_jobs import QUICK, TUNE, events

from ansible_collections.ssdlab.fleet.plugins.module_utils.core.host import Host
from ansible_collections.ssdlab.fleet.plugins.module_utils.job import engine, resume_state
from ansible_collections.ssdlab.fleet.plugins.module_utils.measure import rounds
from ansible_collections.ssdlab.fleet.plugins.module_utils.purge import sentinels as purge_sentinels
from ansible_collections.ssdlab.fleet.plugins.module_utils.tuning import cpu_dma_latency, tuned_host
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan import render_plan as planning
from ansible_collections.ssdlab.fleet.tests.fixtures import run_results


def test_settings_are_changed_during_the_run_and_back_after_it(jobs, loop_drive):
    drive = loop_drive()
    path = f"/sys/block/{drive.name}/queue/nomerges"
    Host().write(path, "0")  # a loop device keeps what an earlier test left there
    before = Host().read(path)
    journal, status = jobs.run(jobs.plan([drive], planning.load_plan([QUICK]), tune=TUNE))
    (tuned,) = events(journal, "tuned")
    assert [(item["before"], item["effective"], item["outcome"]) for item in tuned["settings"]] == [
        (before, "2", "changed")
    ]
    assert (Host().read(path), status["restored"]) == (before, True)


@pytest.mark.skipif(
    not os.path.exists(cpu_dma_latency.CPU_DMA_LATENCY), reason="this kernel has no " + cpu_dma_latency.CPU_DMA_LATENCY
)
def test_the_latency_limit_holds_while_the_job_works_and_no_longer(jobs, loop_drive, monkeypatch):
    def held():
        """(whether this process has the device open, the limit in force)."""
        with open(cpu_dma_latency.CPU_DMA_LATENCY, "rb") as device:
            limit_us = struct.unpack("=i", device.read(4))[0]
        links = [os.path.join("/proc/self/fd", number) for number in os.listdir("/proc/self/fd")]
        return cpu_dma_latency.CPU_DMA_LATENCY in [
            os.readlink(link) for link in links if os.path.islink(link)
        ], limit_us

    plant, during = purge_sentinels.Sentinels.plant, []
    monkeypatch.setattr(
        purge_sentinels.Sentinels, "plant", lambda sentinels, handle: (during.append(held()), plant(sentinels, handle))
    )
    before = held()
    jobs.run(jobs.plan([loop_drive()], planning.load_plan([QUICK]), tune={"cpu_dma_latency_us": 0}))
    assert during == [(True, 0)] and before[0] is held()[0] is False


@pytest.mark.parametrize("keep", [False, True])
def test_what_systemd_calls_after_the_job_leaves_what_tune_yml_set(jobs, loop_drive, keep):
    """ExecStopPost runs however the job ended."""
    drive = loop_drive()
    path = f"/sys/block/{drive.name}/queue/nomerges"
    Host().write(path, "0")  # a loop device keeps what an earlier test left there
    before = Host().read(path)
    plan = jobs.plan([drive], [], tune=dict(TUNE, keep=keep))
    run = jobs.prepare(plan)
    engine.HostJob(run, Host()).run()
    assert engine.main(["restore", run.path]) == 0
    assert (Host().read(path), os.path.exists(run.tuning)) == (("2", True) if keep else (before, False))


def test_settings_that_a_purge_resets_are_made_again_before_the_measurement(jobs, loop_drive, monkeypatch):
    """A format may give the drive a new queue; nothing was measured with it yet."""
    drive = loop_drive()
    path = f"/sys/block/{drive.name}/queue/nomerges"
    plant = purge_sentinels.Sentinels.plant

    def meddle(sentinels, handle):
        plant(sentinels, handle)
        Host().write(path, "1")

    monkeypatch.setattr(purge_sentinels.Sentinels, "plant", meddle)
    journal, _status = jobs.run(jobs.plan([drive], planning.load_plan([QUICK]), tune=TUNE))
    again = [record["settings"] for record in events(journal, "tuned") if record.get("test")]
    assert [[(item["before"], item["effective"]) for item in settings] for settings in again] == [[("1", "2")]]
    (end,) = jobs.ended()
    assert end["outcome"] == "steady", end


def test_a_setting_that_changes_in_a_round_disturbs_that_round_and_is_made_again(jobs, loop_drive, monkeypatch):
    drive = loop_drive()
    path = f"/sys/block/{drive.name}/queue/nomerges"
    add = rounds.Rounds.add

    def meddle(self, *given):
        add(self, *given)
        if self.count == 2:
            Host().write(path, "1")

    monkeypatch.setattr(rounds.Rounds, "add", meddle)
    journal, _status = jobs.run(jobs.plan([drive], planning.load_plan([QUICK]), tune=TUNE))
    (end,) = jobs.ended()
    (told,) = [item for item in end["validity"] if item["cause"] == "settings"]
    assert (end["outcome"], told["level"], told["rounds"]) == ("steady", "disturbs", [[3, 3]]), end
    assert path in told["first"] and 3 not in end["steady_state"][0]["window_rounds"]
    again = [item for record in events(journal, "tuned") if record.get("test") for item in record["settings"]]
    assert [(item["path"], item["before"], item["effective"]) for item in again] == [(path, "1", "2")]


def test_a_setting_that_could_not_be_made_makes_the_test_invalid_before_anything_is_done(jobs, loop_drive):
    drive = loop_drive()
    tune = {"sysfs": [{"name": "scheduler", "path": "/sys/block/@ssd_name@/queue/scheduler", "value": "bogus"}]}
    journal, _status = jobs.run(jobs.plan([drive], planning.load_plan([QUICK]), tune=tune))
    (end,) = jobs.ended()
    assert (
        end["outcome"] == "invalid"
        and end["reasons"][0] == "neither purged nor measured"
        and "tuned to bogus" in end["reasons"][1]
    )
    assert events(journal, "purge_started") == events(journal, "cell") == []


def test_what_builds_on_a_test_that_was_not_begun_is_not_begun_either(jobs, loop_drive, monkeypatch):
    """The first one's purge and fill were for both; that the host is as it should be by then does not help."""
    seen = iter([[tuned_host.Drift("a setting is not as it was made", bears=True, of_host=False)]])
    monkeypatch.setattr(tuned_host.TunedHost, "drifted", lambda *_given: next(seen, []))
    plan = planning.load_plan([QUICK, dict(QUICK, name="second", purge={"method": "none"}, precondition=False)])
    journal, _status = jobs.run(jobs.plan([loop_drive()], plan))
    ends = jobs.ended()
    assert [end["outcome"] for end in ends] == ["invalid"] * 2 and "a setting is not" in ends[1]["reasons"][1]
    # Nor in a later job, which has the journal alone.
    told = ends[0]["reasons"]
    assert resume_state.not_begun([run_results.attempt(outcome="invalid", reasons=told)]) == told[1:]
    assert resume_state.not_begun([run_results.attempt(outcome="invalid", reasons=[])]) == []
    assert events(journal, "purge_started") == events(journal, "cell") == []
