# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Cells of several streams, trims among them, and writes with flushes, under the real fio on a loop device: what the
drive gets, what the journal tells, and what the controller believes of it.
"""

from __future__ import annotations

import copy
import os
import re
import statistics

import pytest
from host_jobs import events

from ansible_collections.ssdlab.fleet.plugins.module_utils.measure import disturbances
from ansible_collections.ssdlab.fleet.plugins.module_utils.records import base
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.measurement import Seen
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.planned_cell import PlannedCell
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan import render_plan as planning
from ansible_collections.ssdlab.fleet.tests.fixtures import documents

MIB = 1 << 20
KIB = 1 << 10
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root for loop devices")
JOBS = [
    {"name": "reads", "block_size": "4KiB", "read_pct": 100, "rate_iops": 200, "range": {"from_pct": 50}},
    {
        "name": "log",
        "access": "sequential",
        "block_size": "16KiB",
        "read_pct": 0,
        "rate_iops": 50,
        "fdatasync": 1,
        "range": {"from_pct": 25, "to_pct": 50},
    },
    {
        "name": "trims",
        "access": "sequential",
        "block_size": "64KiB",
        "trim": True,
        "rate_iops": 20,
        "range": {"to_pct": 25},
    },
]
TEST = {
    "name": "streams",
    "purge": False,
    "precondition": {"passes": 1},
    "cells": [{"name": "web", "runtime_s": 2, "jobs": JOBS}],
    "rounds": {"max": 2},
}


def rate(journal, stream, direction):
    """I/Os a second of a stream, of all rounds' own counts."""
    told = [each for cell in events(journal, "cell") for each in cell["streams"]]
    return statistics.mean(each[direction]["iops"] for each in told if each["name"].endswith("." + stream))


KEPT = []


@pytest.fixture
def measured(request):
    """(the drive's bytes, plan, tests, journal, result) of one run, measured for the first test that asks."""
    if not KEPT:
        jobs, drive = request.getfixturevalue("jobs"), request.getfixturevalue("loop_drive")()
        tests = planning.load_plan([TEST])
        plan = jobs.plan([drive], tests)
        journal, _status = jobs.run(plan)
        KEPT.append((drive.file.read_bytes(), plan, tests, journal, jobs.ended()[0]))
    return copy.deepcopy(KEPT[0])


def test_streams_run_at_once_and_each_is_told_of(measured):
    data, plan, _tests, journal, end = measured
    assert (end["outcome"], end["reasons"]) == ("complete", [])
    (cell_id,) = (cell["id"] for cell in plan["drives"][0]["tests"][0]["cells"])
    cells = {entry["cell"]: entry["metrics"] for entry in end["cells"]}
    assert list(cells) == [cell_id, *(f"{cell_id}.{name}" for name in ("reads", "log", "trims"))]
    whole, reads, log, trims = cells.values()
    # Each figure is that of fio's own results, whatever rate the machine reached.
    assert reads["read_iops"] == pytest.approx(rate(journal, "reads", "read")) and "write_iops" not in reads
    assert log["write_iops"] == pytest.approx(rate(journal, "log", "write"))
    # Each of the two rounds may end between a write and its flush.
    assert 0 <= log["write_ios"] - log["sync_ios"] <= 2
    assert trims["trim_iops"] == pytest.approx(rate(journal, "trims", "trim"))
    assert trims["trim_bandwidth"] == pytest.approx(trims["trim_iops"] * 64 * KIB, rel=0.001)
    # The cell is all of them together; what was trimmed or flushed is no I/O of it.
    assert whole["read_iops"] == reads["read_iops"] and whole["trim_ios"] == trims["trim_ios"]
    assert whole["iops"] == pytest.approx(reads["read_iops"] + log["write_iops"])
    assert whole["sync_p50_latency_us"] == log["sync_p50_latency_us"] > 0
    assert end["metrics"]["read_iops"] == whole["read_iops"]
    assert all(documents.validator("journal", record["event"]).is_valid(record) for record in journal)
    # The drive got the trims where they belong, and nowhere else: the first quarter reads as nothing in part.
    trimmed = [at for at in range(0, len(data), 64 * KIB) if not data[at : at + 64 * KIB].strip(b"\0")]
    assert len(trimmed) >= trims["trim_ios"] / 2 > 10 and max(trimmed) < len(data) // 4


def test_our_own_trims_are_nobody_elses(measured):
    _data, _plan, _tests, journal, _end = measured
    for cell in events(journal, "cell"):
        assert cell["seen"]["trimmed_bytes"] == cell["trim"]["bytes"] == cell["seen"]["kernel_bytes"]["discard"] > 0
        assert [item for item in cell["causes"] if item["level"] == "disturbs"] == []


def test_a_discard_of_somebody_else_beside_our_trims_disturbs(measured):
    _data, plan, _tests, journal, _end = measured
    cell = base.parse(PlannedCell, plan["drives"][0]["tests"][0]["cells"][0])
    told = copy.deepcopy(events(journal, "cell")[0]["seen"])
    told["kernel_bytes"]["discard"] += 512
    seen = base.parse(Seen, told)
    assert [item.cause for item in disturbances.find(cell, seen) if item.level == "disturbs"] == ["discarded"]


def test_an_unlimited_stream_has_to_fill_its_queue(measured):
    _data, plan, _tests, journal, _end = measured
    (cell,) = plan["drives"][0]["tests"][0]["cells"]
    # Where others use the CPUs, the host is what limits it.
    seen = base.parse(Seen, {**events(journal, "cell")[0]["seen"], "cpu_idle": 1.0})
    jobs = [{**job, "queue_depth": 32} for job in cell["jobs"]]
    del jobs[0]["rate_iops"]
    limited = base.parse(PlannedCell, {**cell, "jobs": jobs})
    found = [item for item in disturbances.find(limited, seen) if item.level == "disturbs"]
    assert [item.cause for item in found] == ["queue_not_filled"]
    assert "stream reads: " in found[-1].message


def test_streams_from_the_playbook_to_the_report(site, loop_drive):
    drive = loop_drive()
    site.hosts = {"server": {"ssd_drives": [drive.selector]}}
    criterion = {"test": "streams", "metric": "sync_p50_latency_us", "max": 5_000_000}
    site.vars.update(ssd_plan=[TEST], ssd_criteria=[criterion])
    code, output = site.play("qualify")
    assert code == 0, output
    (test,) = site.summary()["drives"][0]["tests"]
    assert test["verdict"] == "pass" and [reason.split()[0] for reason in test["reasons"]] == ["sync_p50_latency_us"]
    assert test["metrics"]["trim_iops"] == pytest.approx(rate(site.journal(), "trims", "trim"))
    pages = [file.read_text(encoding="utf-8") for file in site.results.rglob("*.html")]
    rows = {
        stream: figures
        for page in pages
        for stream, *figures in re.findall(r'scope="row">jobs-\S+\.(\w+)</th><td>([^<]+)</td><td>([^<]+)</td>', page)
    }
    assert set(rows) == {"reads", "log", "trims"} and "–" not in [text for texts in rows.values() for text in texts]
