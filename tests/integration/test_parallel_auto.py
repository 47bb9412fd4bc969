# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""ssd_parallel_drives: auto, with real fio on loop devices: calibrated by reads, told, and used."""

from __future__ import annotations

import csv
import dataclasses
import json

import pytest
from host_jobs import QUICK, events

from ansible_collections.ssdlab.fleet.plugins.module_utils.job import engine
from ansible_collections.ssdlab.fleet.plugins.module_utils.measure import fio_runner, parallelism_search
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan import parallel_drives
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan import render_plan as planning
from ansible_collections.ssdlab.fleet.tests.fixtures import documents


@pytest.fixture(autouse=True)
def slow_reads(monkeypatch):
    """Reads at a fixed rate, and a tenth of it for a machine that is busy: what decides at 98 % has its own tests."""
    read = {**parallel_drives.READS[0], "threads": 1, "queue_depth": 4, "rate_iops": 200}
    monkeypatch.setattr(parallelism_search, "KEPT_SHARE", 0.9)
    monkeypatch.setattr(parallelism_search, "MOST_SPREAD", 0.1)
    monkeypatch.setattr(parallel_drives, "READS", (read,))
    monkeypatch.setattr(parallel_drives, "LENGTH", {"read_pct": 100, "runtime_s": 2})


def one_port(monkeypatch):
    """As if the drives shared a port: what reads at the same time shares the rate."""
    cell = fio_runner.Workbench.cell

    def shared(self, name, *arguments):
        result = cell(self, name, *arguments)
        if name.startswith("together-"):  # then how many drives read
            read = dataclasses.replace(result.details.read, iops=result.details.read.iops / int(name.split("-")[1]))
            return result._replace(details=dataclasses.replace(result.details, read=read))
        return result

    monkeypatch.setattr(fio_runner.Workbench, "cell", shared)


def spans(journal):
    """When each drive's tests began and ended, in this order."""
    begun = {record["drive"]: record["time"] for record in events(journal, "drive_started")}
    ended = {record["drive"]: record["time"] for record in events(journal, "drive_finished")}
    return sorted((begun[drive], ended[drive]) for drive in begun)


@pytest.mark.exclusive(depth=4, iops=200)
@pytest.mark.variants(1)
@pytest.mark.parametrize(
    ("shared", "number", "why"), [(False, 2, "all drives together keep their speed"), (True, 1, "keeps")]
)
def test_a_run_calibrates_tells_and_measures(jobs, loop_drive, monkeypatch, shared, number, why):
    drives = [loop_drive("one"), loop_drive("two")]
    if shared:
        one_port(monkeypatch)
    plan = jobs.plan(drives, planning.load_plan([QUICK]), parallel="auto")
    documents.validate(dict(plan, decision={"mode": "destructive", "digest": "0" * 64}), "plan")
    journal, status = jobs.run(plan)
    (told,) = events(journal, "calibration")
    documents.validate(told, "journal")
    assert (told["parallel_drives"], status["parallel_drives"]) == (number, number) and why in told["why"], told
    assert [(trial["number"], trial["held"]) for trial in told["trials"]] == [(2, not shared)]
    assert status["calibration"] == {"left_s": 0, "why": told["why"]}
    assert [record["outcome"] for record in jobs.ended()] == ["steady", "steady"]
    assert told["time"] < min(record["time"] for record in events(journal, "purge_started"))
    (_begun, first_end), (second_begin, _end) = spans(journal)
    assert (second_begin < first_end) is not shared
    again, _status = jobs.run(plan)
    assert len(events(again, "calibration")) == 1, "a run that goes on keeps its number"


def test_a_job_that_would_write_is_refused_by_fio_itself(jobs, loop_drive, monkeypatch):
    drives = [loop_drive("one"), loop_drive("two")]
    monkeypatch.setattr(engine.Campaign, "run", lambda self: "complete")
    before = [drive.digest() for drive in drives]
    plan = jobs.plan(drives, planning.load_plan([QUICK]), parallel="auto")
    (cell,) = plan["together"]["cells"]
    cell["job"] = cell["job"].replace("rw=randread", "rw=randwrite")
    journal, status = jobs.run(plan)
    (told,) = events(journal, "calibration")
    assert told["parallel_drives"] == status["parallel_drives"] == 1 and told["trials"] == []
    assert told["why"].startswith("not calibrated: ") and [drive.digest() for drive in drives] == before
    commands = (jobs.folder / "state/runs/r/commands.jsonl").read_text().splitlines()
    argvs = [json.loads(line)["argv"] for line in commands]
    assert all("--readonly" in argv for argv in argvs if "together-" in argv[-1]) and "together-" in str(argvs)


@pytest.mark.long
def test_a_play_tells_how_many_and_why_beforehand_and_on_the_hosts_page(site, loop_drive):
    """The default, without a trial: what is behind loop devices is shared."""
    drives = [loop_drive("one"), loop_drive("two")]
    site.hosts["rack1-07"] = {"ssd_drives": [drive.selector for drive in drives]}
    why = "2 drives share the disk or memory behind loop devices"
    code, output = site.play("qualify", "-e", "ssd_mode=plan")
    assert code == 0 and f"2 drives, 1 at a time: {why}" in output, output
    assert not site.run_folders()
    code, output = site.play("qualify")
    (told,) = site.journal("calibration")
    assert (told["parallel_drives"], told["why"], told["trials"], told["seconds"]) == (1, why, [], 0), told
    (page,) = site.results.glob("*/report/hosts/rack1-07-*.html")
    text = page.read_text()
    assert f"<dt>drives at a time</dt><dd>1: {why}" in text
    assert f"<p>1 of 2: {why}. By what the drives share, without a trial.</p>" in text
    # The run's own record says it too, of the host with each step, and of each test.
    records = [json.loads(line) for path in site.results.glob("*/results.jsonl") for line in path.open()]
    hosts = [record for record in records if record["kind"] == "host" and record.get("calibration")]
    assert hosts[-1]["state"] == "ok" and hosts[-1]["calibration"]["why"] == why, hosts
    measured = [record for record in records if record["kind"] == "test"]
    assert {record["parallel_drives"] for record in measured} == {1}
    (table,) = site.results.glob("*/report/results.csv")
    assert {row["parallel_drives"] for row in csv.DictReader(table.open())} == {"1"}
