# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Burn-ins of seconds by real host jobs and fio: an honest drive, and one that loses a write."""

from __future__ import annotations

import json
import os
import types

import pytest
import simulated_ssd as simulator
from host_jobs import MIB, events

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan import render_plan as planning
from ansible_collections.ssdlab.fleet.tests.fixtures import documents

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root for loop devices")

SIZE = 4 * MIB
FAST = {"fresh_iops": 1e6, "steady_iops": 1e6, "read_iops": 1e6, "write_bandwidth": 1e9, "read_bandwidth": 1e9}
# Writes to this block are lost, but for the first.
STALE = "stale:57344"


def burn_in(**asked):
    short = {"passes": 1, "heat_s": 1, "duration_s": 20, **asked}
    return {"base": "burn-in", "purge": {"method": "deallocate"}, "integrity": short}


@pytest.fixture
def losing(tmp_path):
    """A simulated drive that loses writes."""
    record = simulator.create(tmp_path / "drives", "drive", simulator.model_plugin(SIZE, **FAST, lies=STALE))
    yield types.SimpleNamespace(selector={"backing_file": record["backing_file"]})
    simulator.destroy(tmp_path / "drives")


def test_rounds_go_on_for_the_time_with_random_io_in_between(jobs, loop_drive):
    journal, status = jobs.run(jobs.plan([loop_drive(size_bytes=SIZE)], planning.load_plan([burn_in()])))
    for record in journal:
        documents.validate(record, "journal")
    found = events(journal, "integrity")[-1]
    ends = [end["elapsed_s"] for end in found["by_pass"]]
    assert len(ends) == found["passes"] >= 2 and ends[-2] < 20 <= ends[-1] and ends == sorted(ends)
    # fio's writes are neither the test's nor anybody else's.
    assert not found["wrong_blocks"] and found["other_write_bytes"] == 0
    assert found["bytes_written"] == found["bytes_read"] == found["passes"] * SIZE
    heats = list(jobs.folder.rglob("*-heat.json*"))
    assert len(heats) == found["passes"] - 1
    assert status["drives"][0]["outcome"] == "complete"


@pytest.mark.parametrize("stop", [True, False])
def test_a_drive_that_loses_writes_ends_it_or_is_counted(jobs, losing, stop):
    # What it holds from the first pass on is overwritten by fio, whose writes it loses too.
    plan = jobs.plan([losing], planning.load_plan([burn_in(stop_at_first=stop)]))
    journal, _status = jobs.run(plan)
    found = events(journal, "integrity")[-1]
    counts = [end["wrong_blocks"] for end in found["by_pass"]]
    assert counts[:2] == [0, 1] and (len(counts) == 2) is stop and sum(counts) == sum(found["wrong_blocks"].values())
    (result,) = jobs.ended()
    assert result["outcome"] == "complete"


def test_its_page_has_the_wrong_blocks_by_pass(site, losing):
    site.vars["ssd_plan"] = [burn_in()]
    site.hosts = {"rack1-07": {"ssd_drives": [losing.selector]}}
    code, output = site.play("qualify")
    assert code != 0
    (summary,) = site.results.glob("*/report/summary.json")
    (drive,) = json.loads(summary.read_text())["drives"]
    assert drive["verdict"] == "fail", output
    pages = "".join(" ".join(page.read_text().split()) for page in site.results.glob("*/report/**/*.html"))
    assert "Wrong blocks by pass: in 1 of 2 passes over" in pages and "first in pass 2" in pages
