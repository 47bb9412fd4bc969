# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Drives in service are only read: the plan in-service on a loop device with a mounted file system, from the playbook
to the report, and host jobs with plans that would do more.
"""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import subprocess
import types
from pathlib import Path

import pytest
import simulated_ssd as simulator

from ansible_collections.ssdlab.fleet.plugins.module_utils.core import files
from ansible_collections.ssdlab.fleet.plugins.module_utils.core.host import Host
from ansible_collections.ssdlab.fleet.plugins.module_utils.drive.entry import parse
from ansible_collections.ssdlab.fleet.plugins.module_utils.guard import service_drives
from ansible_collections.ssdlab.fleet.plugins.module_utils.job import engine
from ansible_collections.ssdlab.fleet.plugins.module_utils.records import base
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.plan import Plan
from ansible_collections.ssdlab.fleet.plugins.module_utils.run import digests, folder, read_only
from ansible_collections.ssdlab.fleet.plugins.module_utils.tuning import settings
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan import render_plan as planning
from ansible_collections.ssdlab.fleet.tests.fixtures import documents
from ansible_collections.ssdlab.fleet.tests.fixtures.plans import found

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root for loop devices")

MIB = 1 << 20
CELL = {"access": "random", "block_size": "4KiB", "read_pct": 100, "rate_iops": 200, "runtime_s": 1}
LATENCY = {"base": "in-service/service-latency", "cells": [CELL], "rounds": {"max": 2}}
SCRUB = {"base": "in-service/scrub", "scrub": {"rate_mib_s": 16, "duration_s": 2}}
# Two parts, as a drive of 64 MiB has two of 32.
PLAN = [LATENCY, SCRUB]


def written(drive):
    """I/Os and sectors that were written to a drive, flushes and discards, by the kernel's count."""
    stat = Path(f"/sys/block/{drive.name}/stat").read_text().split()
    return [int(stat[place]) for place in (4, 6, 11, 13, 15) if place < len(stat)]


@pytest.fixture
def mounted(loop_drive, tmp_path):
    """A drive with a mounted file system, and what is in it."""
    drive = loop_drive("data")
    subprocess.run(["mkfs.ext4", "-q", "-E", "lazy_itable_init=0,lazy_journal_init=0", drive.path], check=True)
    place = tmp_path / "mnt"
    place.mkdir()
    subprocess.run(["mount", "-o", "noatime", drive.path, str(place)], check=True)
    try:
        (place / "file").write_bytes(os.urandom(8 * MIB))
        subprocess.run(["sync", "-f", str(place)], check=True)
        yield drive, place
    finally:
        subprocess.run(["umount", str(place)], check=True)


def read(site, drive, **variables):
    site.hosts = {"server": {"ssd_service_drives": [drive.selector]}}
    site.vars.update({"ssd_mode": "read_only", "ssd_plan": PLAN, "ssd_criteria": [], **variables})
    return site.play("qualify")


def test_a_mounted_drive_is_read_and_nothing_is_written_to_it(site, mounted):
    drive, place = mounted
    before, digest = written(drive), drive.digest()
    with open(place / "file", "rb") as user:
        code, output = read(site, drive)
        assert code == 0, output
        assert len(user.read()) == 8 * MIB
    assert written(drive) == before and drive.digest() == digest
    summary = site.summary()
    documents.validate(summary, "summary")
    assert summary["verdicts"]["pass"] == 1
    latency, scrub = summary["drives"][0]["tests"]
    assert latency["metrics"]["read_p95_latency_us"] and latency["metrics"]["read_iops"] <= 210
    assert scrub["reasons"] == ["bytes 0 to 33,554,432 could be read"]
    assert not site.journal("purge") and not site.journal("left") and not site.journal("precondition")
    (run,) = site.run_folders()
    commands = [json.loads(line)["argv"] for line in (run / "commands.jsonl").read_text().splitlines()]
    fios = [argv for argv in commands if any(word.endswith(".fio") for word in argv)]
    assert fios and all("--readonly" in argv for argv in fios)
    assert all("invalidate=0" in job.read_text() for job in run.glob("raw/*/*.fio"))
    page = "\n".join(path.read_text() for path in site.results.glob("*/report/**/*.html"))
    assert "only read" in page


def test_the_next_run_reads_what_the_one_before_did_not(site, loop_drive):
    drive = loop_drive("data", size_bytes=48 * MIB)
    parts = []
    for number in range(3):
        code, output = read(site, drive, ssd_plan=[SCRUB], ssd_run_id=f"night{number}")
        assert code == 0, output
        run = site.state / "runs" / f"night{number}"
        events = [json.loads(line) for line in (run / "journal.jsonl").read_text().splitlines()]
        parts += [(one["from_bytes"], one["to_bytes"]) for one in events if one["event"] == "scrub"]
    assert parts == [(0, 32 * MIB), (32 * MIB, 48 * MIB), (0, 32 * MIB)]


def test_the_lists_are_kept_apart(site, loop_drive):
    """Whatever the mode: nothing is touched where the plan, the mode and the lists don't go together."""
    data, blank = loop_drive("data"), loop_drive("blank")
    before = [(written(drive), drive.digest()) for drive in (data, blank)]

    def told(**variables):
        site.vars.update({"ssd_plan": PLAN, "ssd_criteria": [], **variables})
        code, output = site.play("qualify")
        assert code != 0, output
        return " ".join(output.split())

    site.hosts = {"server": {"ssd_drives": [blank.selector]}}
    assert "ssd_service_drives: no drive is named, and ssd_mode=read_only reads" in told(ssd_mode="read_only")
    site.hosts = {"server": {"ssd_drives": [blank.selector], "ssd_service_drives": [data.selector]}}
    assert "ssd_mode: destructive, and service-latency, scrub are for drives in service" in told(ssd_mode="destructive")
    text = told(ssd_mode="read_only", ssd_plan=["iops"])
    assert "ssd_mode: read_only only reads, and iops may write" in text
    text = told(ssd_mode="plan", ssd_plan=["iops", *PLAN])
    assert "iops may write, and service-latency, scrub are for drives in service" in text
    site.hosts = {"server": {"ssd_drives": [data.selector], "ssd_service_drives": [data.selector]}}
    for mode, plan in (("read_only", PLAN), ("destructive", ["iops"])):
        assert "in_service" in told(ssd_mode=mode, ssd_plan=plan)
    assert not site.run_folders()
    assert [(written(drive), drive.digest()) for drive in (data, blank)] == before


def test_plan_mode_shows_what_would_be_read_and_starts_nothing(site, mounted):
    drive, _place = mounted
    before = written(drive)
    code, output = read(site, drive, ssd_mode="plan", ssd_plan="in-service")
    assert code == 0, output
    text = " ".join(output.split())
    assert "ssd_mode=read_only starts it" in text and "would only read" in text
    assert "all of it in 1 run" in text
    assert written(drive) == before and not site.run_folders()


# --- The host believes no plan. ---


def plan_of(drive, tests, mode=read_only.MODE, **changes):
    """A plan as the controller would send it, and then changed by somebody who knows how to make its digest."""
    (seen,) = service_drives.found(Host(), [parse(drive.selector)])
    plan = planning.render(
        planning.load_plan(tests),
        run={"id": "r", "name": "n"},
        host="h",
        boot_id=settings.boot_id(Host()),
        drives=found([base.to_json(seen)]),
        engine_version="1",
        variables={},
        service=True,
    )
    plan = dataclasses.replace(plan, **changes)
    return dataclasses.replace(plan, decision=digests.decision(plan, mode))


def ran(jobs, plan):
    """The journal and the status of a host job with this plan."""
    run = folder.RunDir(str(jobs.folder / "state"), "r")
    shutil.rmtree(run.path, ignore_errors=True)
    os.makedirs(run.path)
    files.write_atomic(run.plan, json.dumps(base.to_json(plan)))
    assert base.parse(Plan, base.to_json(plan)) == plan
    engine.HostJob(run, Host()).run()
    return folder.read_journal(run.journal), run.read_status()


def mangled(plan, **changes):
    """A plan whose tests of cells are changed; with a digest of its own."""
    (drive,) = plan.drives
    tests = [dataclasses.replace(test, **changes) for test in drive.tests]
    changed = dataclasses.replace(plan, drives=[dataclasses.replace(drive, tests=tests)])
    return dataclasses.replace(changed, decision=digests.decision(changed, read_only.MODE))


def test_a_plan_that_does_more_is_not_begun(jobs, loop_drive):
    drive = loop_drive("data")
    before = written(drive), drive.digest()
    plan = plan_of(drive, [LATENCY])
    (test,) = plan.drives[0].tests
    purge = dataclasses.replace(test.purge, method="deallocate")
    (cell,) = test.cells
    writes = [dataclasses.replace(cell, read_pct=0)]
    wrong = {
        "it purges": mangled(plan, purge=purge),
        "writes": mangled(plan, cells=writes),
        "not for drives in service": mangled(plan, in_service=None),
        "blank": plan_of(drive, [LATENCY], leave="blank"),
        "preflight decided for ssd_mode=destructive": plan_of(drive, [LATENCY], mode="destructive"),
        "are not what preflight approved": dataclasses.replace(mangled(plan, cells=writes), decision=plan.decision),
    }
    for text, one in wrong.items():
        journal, status = ran(jobs, one)
        assert status["state"] == "failed" and text in status["message"], (text, status["message"])
        assert not [event for event in journal if event["event"] in ("guard", "test_started")]
    assert (written(drive), drive.digest()) == before


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("rw=randread", "rw=randwrite", "rw=randwrite"),
        ("rw=randread", "rw=randtrim", "rw=randtrim"),
        ("invalidate=0", "invalidate=1", "has not invalidate=0"),
        ("randrepeat=0", "verify=crc32c", "verify is no option of a job that only reads"),
    ],
)
def test_a_job_that_does_more_is_not_run(jobs, loop_drive, old, new, told):
    """A cell that says that it reads, with a job that writes: it is seen where fio is started."""
    drive = loop_drive("data")
    before = written(drive), drive.digest()
    plan = plan_of(drive, [LATENCY])
    (cell,) = plan.drives[0].tests[0].cells
    assert old in cell.job
    _journal, status = ran(jobs, mangled(plan, cells=[dataclasses.replace(cell, job=cell.job.replace(old, new))]))
    message = jobs.ended()[0]["reasons"][0]
    assert told in message and "nothing was run" in message, status
    assert (written(drive), drive.digest()) == before


def test_a_busy_drive_is_left_to_its_users(jobs, loop_drive):
    drive = loop_drive("data")
    asked = {"in_service": {"busy_iops": 20, "busy_mib_s": 1, "patience_s": 2}}
    plan = plan_of(drive, [{**LATENCY, **asked}, {**SCRUB, **asked}])
    user = subprocess.Popen(
        ["fio", "--name=user", f"--filename={drive.path}", "--rw=randread", "--direct=1", "--rate_iops=200"]
        + ["--time_based", "--runtime=120", "--readonly", "--invalidate=0"],
        stdout=subprocess.DEVNULL,
    )
    try:
        _journal, status = ran(jobs, plan)
    finally:
        user.terminate()
        user.wait()
    ended = jobs.ended()
    assert [result["outcome"] for result in ended] == ["invalid", "invalid"], status
    assert all(result["reasons"][0].startswith("the drive was busy with the host's own I/O") for result in ended)


def test_unreadable_blocks_fail_the_drive_with_their_place(jobs, tmp_path):
    where = [1 * MIB + 4096, 3 * MIB]
    fast = {"read_iops": 1e6, "read_bandwidth": 1e9, "fresh_iops": 1e6, "steady_iops": 1e6, "write_bandwidth": 1e9}
    lies = ",".join(f"read-error:{place}" for place in where)
    with simulator.simulated_ssd(
        tmp_path / "drives", "ssd", simulator.model_plugin(4 * MIB, **fast, lies=lies)
    ) as made:
        drive = types.SimpleNamespace(selector={"backing_file": made["backing_file"]})
        (seen,) = service_drives.found(Host(), [parse(drive.selector)])
        # What was never written has no lie.
        with open(seen.path, "wb") as device:
            device.write(bytes(4 * MIB))
            os.fsync(device.fileno())
        journal, status = ran(jobs, plan_of(drive, [SCRUB]))
    for record in journal:
        documents.validate(record, "journal")
    (result,) = jobs.ended()
    assert result["outcome"] == "complete", status
    assert [one["offset_bytes"] for one in result["scrub"]["first"]] == where
    assert result["scrub"]["unreadable_blocks"] == 2 and result["scrub"]["complete"]
