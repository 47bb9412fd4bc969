# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Integrity tests by real host jobs: drives that lie, honest ones, and drives that nobody named."""

from __future__ import annotations

import os
import types

import pytest
import simulated_ssd as simulator
from host_jobs import MIB, ODD_SIZE, events

from ansible_collections.ssdlab.fleet.plugins.module_utils.core.host import Host
from ansible_collections.ssdlab.fleet.plugins.module_utils.drive import entry
from ansible_collections.ssdlab.fleet.plugins.module_utils.guard.guard_check import inspect
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan import render_plan as planning
from ansible_collections.ssdlab.fleet.tests.fixtures import documents

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root for loop devices")

SIZE = 4 * MIB
FAST = {"fresh_iops": 1e6, "steady_iops": 1e6, "read_iops": 1e6, "write_bandwidth": 1e9, "read_bandwidth": 1e9}
# Where no sentinel of a purge lies.
PLACE, OTHER = 81920, 77824
TEST = [{"base": "integrity", "purge": {"method": "deallocate"}}]


@pytest.fixture
def lying(tmp_path):
    """Make a simulated drive with lies."""
    made = []

    def make(lies):
        record = simulator.create(tmp_path / "drives", "drive", simulator.model_plugin(SIZE, **FAST, lies=lies))
        made.append(record)
        return types.SimpleNamespace(selector={"backing_file": record["backing_file"]})

    yield make
    if made:
        simulator.destroy(tmp_path / "drives")


def read_back(journal):
    (event,) = events(journal, "integrity")
    return event


# (lie, {kind: how often in one pass}, the same in two passes)
LIES = [
    ("", {}, {}),
    (f"flip:{PLACE}", {"bit_flips": 1}, {"bit_flips": 2}),
    (f"drop:{PLACE}", {"blank": 1}, {"blank": 2}),
    (f"stale:{PLACE}", {}, {"stale": 1}),
    (f"torn:{PLACE}", {}, {"stale": 1}),
    (f"misdirect:{PLACE}:{OTHER}", {"misdirected": 1, "blank": 1}, {"misdirected": 2, "blank": 2}),
    (f"read-error:{PLACE}", {"unreadable": 1}, {"unreadable": 2}),
    (f"transient:{PLACE}", {"transient": 1}, {"transient": 2}),
]


@pytest.mark.parametrize("passes", [1, 2])
@pytest.mark.parametrize(("lies", "once", "twice"), LIES, ids=[lies or "honest" for lies, *_found in LIES])
def test_each_lie_is_found_by_its_kind(jobs, lying, lies, once, twice, passes):
    """docs/integrity.md has this table."""
    expected = once if passes == 1 else twice
    drive = lying(lies)
    tests = planning.load_plan([{**TEST[0], "integrity": {"passes": passes}}])
    journal, status = jobs.run(jobs.plan([drive], tests))
    for record in journal:
        documents.validate(record, "journal")
    found = read_back(journal)
    assert found["wrong_blocks"] == expected and found["complete"] and found["passes"] == passes
    assert found["bytes_written"] == found["bytes_read"] == passes * SIZE and found["other_write_bytes"] == 0
    assert {block["offset_bytes"] for block in found["first"]} <= {PLACE, OTHER}
    (result,) = jobs.ended()
    assert result["outcome"] == "complete" and status["drives"][0]["outcome"] == "complete"
    kept = inspect(Host(), [entry.parse(drive.selector)], state_dir=str(jobs.folder / "state"))[0]
    assert ("evidence" in {refusal["code"] for refusal in kept["refusals"]}) == bool(expected)
    assert bool(list(jobs.folder.rglob("*-wrong-blocks.jsonl"))) == bool(expected)


def test_every_byte_of_a_drive_is_written_and_no_other_drive(jobs, loop_drive):
    named, other = loop_drive(size_bytes=ODD_SIZE), loop_drive(name="other")
    before = other.digest()
    journal, status = jobs.run(jobs.plan([named], planning.load_plan(TEST)))
    found = read_back(journal)
    assert not found["wrong_blocks"] and found["bytes_written"] == found["bytes_read"] == 2 * ODD_SIZE
    data = named.file.read_bytes()
    assert all(any(data[start : start + 512]) for start in range(0, ODD_SIZE, 512))
    assert other.digest() == before
    assert [event["step"] for event in events(journal, "guard")][-2:] == ["integrity"] * 2
    assert status["drives"][0]["outcome"] == "complete"


def test_the_guard_takes_what_it_leaves_for_a_fill(jobs, loop_drive):
    """The next run of this host is not refused for it, as the ledger says whose it is and the blocks what they are."""
    drive = loop_drive()
    jobs.run(jobs.plan([drive], planning.load_plan(TEST)))
    journal, status = jobs.run(jobs.plan([drive], planning.load_plan(TEST)), run_id="second")
    assert status["drives"][0]["outcome"] == "complete", events(journal, "guard")
