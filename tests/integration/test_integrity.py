# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Integrity tests by real host jobs: drives that lie, honest ones, and drives that nobody named."""

from __future__ import annotations

import concurrent.futures
import json
import os
import types

import cells
import pytest
import simulated_ssd as simulator
from host_jobs import MIB, ODD_SIZE, events
from lies import KINDS
from waiting import wait_until

from ansible_collections.ssdlab.fleet.plugins.module_utils.core.host import Host
from ansible_collections.ssdlab.fleet.plugins.module_utils.drive import entry
from ansible_collections.ssdlab.fleet.plugins.module_utils.guard.guard_check import inspect
from ansible_collections.ssdlab.fleet.plugins.module_utils.job import resume_state
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan import render_plan as planning
from ansible_collections.ssdlab.fleet.tests.fixtures import documents

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root for loop devices")

SIZE = 4 * MIB
FAST = {"fresh_iops": 1e6, "steady_iops": 1e6, "read_iops": 1e6, "write_bandwidth": 1e9, "read_bandwidth": 1e9}
# No purge, as a sentinel may lie where the drive lies.
TEST = {"base": "integrity", "purge": False}
# {lie: {block: what it is in each of two passes, None: right}}.
LIES = {
    "flip:40960": {40960: ("bit_flips", "bit_flips")},
    "drop:49152": {49152: ("blank", "blank")},
    "stale:57344": {57344: (None, "stale")},
    "torn:65536": {65536: (None, "stale")},
    "misdirect:81920:77824": {77824: ("misdirected", "misdirected"), 81920: ("blank", "blank")},
    "read-error:1052672": {1052672: ("unreadable", "unreadable")},
    "transient:2101248": {2101248: ("transient", "transient")},
    "stale-read:2109440": {2109440: (None, "transient")},
}
GONE = ["smaller:1052672", "vanish:1052672"]
# The last of its two passes is the one that is read back.
VERIFIED = {
    "name": "verified",
    "purge": False,
    "precondition": {"passes": 2, "verify": True},
    "cells": [cells.writes(50)],
    "rounds": {"max": 2},
}


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
    return events(journal, "integrity")[-1]


@pytest.mark.parametrize("passes", [1, 2])
def test_each_lie_is_found_by_its_kind_and_nothing_else(jobs, lying, passes):
    """docs/integrity.md has this table."""
    expected = {
        (number, place): kinds[number - 1]
        for blocks in LIES.values()
        for place, kinds in blocks.items()
        for number in range(1, passes + 1)
        if kinds[number - 1]
    }
    drive = lying(",".join(LIES))
    journal, status = jobs.run(jobs.plan([drive], planning.load_plan([{**TEST, "integrity": {"passes": passes}}])))
    for record in journal:
        documents.validate(record, "journal")
    documents.validate(status, "status")
    found = read_back(journal)
    assert {(block["pass_number"], block["offset_bytes"]): block["kind"] for block in found["first"]} == expected
    assert sum(found["wrong_blocks"].values()) == len(expected) and found["complete"] and found["passes"] == passes
    assert found["bytes_written"] == found["bytes_read"] == passes * SIZE and found["other_write_bytes"] == 0
    (result,) = jobs.ended()
    assert result["outcome"] == "complete" and status["drives"][0]["outcome"] == "complete"
    kept = inspect(Host(), [entry.parse(drive.selector)], state_dir=str(jobs.folder / "state"))[0]
    assert "evidence" in {refusal["code"] for refusal in kept["refusals"]}
    (copies,) = jobs.folder.rglob("*-wrong-blocks.jsonl")
    assert len(copies.read_text().splitlines()) == len(expected)


def test_every_kind_of_lie_is_played_here():
    assert {lie.partition(":")[0] for lie in [*LIES, *GONE]} == set(KINDS)


def test_what_a_drive_can_no_longer_read_is_wrong(jobs, lying):
    """As it ends where it did not before."""
    journal, _status = jobs.run(jobs.plan([lying(GONE[0])], planning.load_plan([TEST])))
    found = read_back(journal)
    assert found["wrong_blocks"] == {"unreadable": 100} and not found["complete"]
    assert min(block["offset_bytes"] for block in found["first"]) == 1052672
    assert jobs.ended()[0]["outcome"] == "complete"


def test_a_drive_that_vanishes_is_an_error_of_its_own(jobs, lying):
    journal, status = jobs.run(jobs.plan([lying(GONE[1])], planning.load_plan([TEST])))
    assert not events(journal, "integrity") and status["drives"][0]["outcome"] == "error"
    assert "the drive did not do a write at byte " in status["drives"][0]["message"]
    assert events(journal, "drive_finished")[-1]["drive_fault"]


def test_a_fill_is_read_back_before_anything_is_measured(jobs, loop_drive):
    drive, other = loop_drive(size_bytes=ODD_SIZE), loop_drive(name="other")
    before = other.digest()
    journal, status = jobs.run(jobs.plan([drive], planning.load_plan([VERIFIED])))
    assert other.digest() == before
    assert [event["step"] for event in events(journal, "guard")][:3] == ["start", "precondition", "integrity"]
    for record in journal:
        documents.validate(record, "journal")
    found = read_back(journal)
    assert not found["wrong_blocks"] and found["bytes_written"] == found["bytes_read"] == ODD_SIZE
    assert events(journal, "precondition")[-1]["bytes_written"] == ODD_SIZE
    steps = [record["event"] for record in journal if record["event"] in ("precondition", "integrity", "cell")]
    assert steps == ["precondition", "integrity", "cell", "cell"]
    # What it wrote is no other's I/O to the first cell.
    causes = [
        item["cause"] for cell in events(journal, "cell") for item in cell["causes"] if item["level"] == "disturbs"
    ]
    assert "other_io" not in causes and "discarded" not in causes
    (result,) = jobs.ended()
    assert (result["outcome"], result["rounds"]) == ("complete", 2) and status["drives"][0]["outcome"] == "complete"


def test_a_fill_that_is_not_kept_fails_before_anything_is_measured(jobs, lying):
    """The first of its passes was fio's, so it finds what two passes of an integrity test find."""
    expected = {place: kinds[1] for blocks in LIES.values() for place, kinds in blocks.items()}
    later = {**VERIFIED, "name": "later", "precondition": False}
    journal, _status = jobs.run(jobs.plan([lying(",".join(LIES))], planning.load_plan([VERIFIED, later])))
    found = read_back(journal)
    assert {block["offset_bytes"]: block["kind"] for block in found["first"]} == expected and found["passes"] == 1
    assert not events(journal, "cell") and events(journal, "left")[-1]["state"] == "evidence"
    verified, built_on_it = jobs.ended()
    assert (verified["outcome"], built_on_it["outcome"]) == ("complete", "invalid")
    assert built_on_it["reasons"] == [resume_state.not_kept("verified")]


def test_every_byte_of_a_drive_is_written_and_no_other_drive(jobs, loop_drive):
    named, other = loop_drive(size_bytes=ODD_SIZE), loop_drive(name="other")
    before = other.digest()
    journal, status = jobs.run(jobs.plan([named], planning.load_plan([TEST])))
    found = read_back(journal)
    assert not found["wrong_blocks"] and found["bytes_written"] == found["bytes_read"] == 2 * ODD_SIZE
    data = named.file.read_bytes()
    assert all(any(data[start : start + 512]) for start in range(0, ODD_SIZE, 512))
    assert other.digest() == before
    assert [event["step"] for event in events(journal, "guard")][-2:] == ["integrity"] * 2
    assert status["drives"][0]["outcome"] == "complete"


def test_what_a_drive_loses_in_the_pause_is_found(jobs, loop_drive):
    """It shows its share meanwhile: half of the only pass."""
    drive = loop_drive(size_bytes=SIZE)
    plan = jobs.plan([drive], planning.load_plan([{**TEST, "integrity": {"passes": 1, "pause_s": 40}}]))

    def is_paused():
        (shown,) = json.loads((jobs.folder / "state/runs/r/status.json").read_text())["drives"]
        return shown["phase"] == "integrity" and (shown["last"] or {}).get("progress") == 0.5

    def lose():
        wait_until(is_paused, "the pause")
        # Behind the loop device, whose kernel counts no write of it.
        with open(drive.file, "r+b") as file:
            file.seek(8192)
            file.write(bytes(4096))
            os.fsync(file.fileno())

    with concurrent.futures.ThreadPoolExecutor() as pool:
        losing = pool.submit(lose)
        journal, _status = jobs.run(plan)
        losing.result()
    found = read_back(journal)
    assert [(block["offset_bytes"], block["kind"]) for block in found["first"]] == [(8192, "blank")]
    assert found["wrong_blocks"] == {"blank": 1} and found["other_write_bytes"] == 0


def test_the_guard_takes_what_it_leaves_for_a_fill(jobs, loop_drive):
    """The next run of this host is not refused for it, as the ledger says whose it is and the blocks what they are."""
    drive = loop_drive()
    jobs.run(jobs.plan([drive], planning.load_plan([TEST])))
    journal, status = jobs.run(jobs.plan([drive], planning.load_plan([TEST])), run_id="second")
    assert status["drives"][0]["outcome"] == "complete", events(journal, "guard")


def test_a_drive_that_lost_a_write_fails_in_the_report_and_an_honest_one_passes(site, lying, loop_drive):
    """From the host's journal to the verdict, by the playbook."""
    drive, honest = lying("drop:49152"), loop_drive("honest")
    site.vars["ssd_plan"] = [TEST]
    site.hosts = {"rack1-07": {"ssd_drives": [drive.selector, honest.selector]}}
    code, output = site.play("qualify")
    assert code != 0
    (summary,) = site.results.glob("*/report/summary.json")
    found = {found["drive"]: found for found in json.loads(summary.read_text())["drives"]}
    lost, kept = (found[one.selector["backing_file"]] for one in (drive, honest))
    assert (lost["verdict"], kept["verdict"]) == ("fail", "pass"), output
    assert "not read back as written" in lost["reasons"][0]
