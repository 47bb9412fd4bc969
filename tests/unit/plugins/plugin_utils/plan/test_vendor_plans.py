# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The plans after the vendors' documents hold what the documents say."""

from __future__ import annotations

import json

import pytest

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan.render_plan import PlanError, load_plan
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan.time_estimates import window_s
from ansible_collections.ssdlab.fleet.tests.fixtures import documents
from ansible_collections.ssdlab.fleet.tests.fixtures.plans import planned

PLANS = ("micron-p420m", "micron-p420m-dd", "micron-p420m-small", "iomemory-guide")


def test_a_cards_own_sector_size_counts_for_what_follows():
    cell = {"block_size": "512B", "read_pct": 0}
    purge = {"method": "iomemory_format", "iomemory_sector_bytes": 512}
    (test,) = rendered([{"name": "own", "purge": purge, "precondition": False, "cells": [cell]}], block=4096)["drives"][
        0
    ]["tests"]
    assert len(test["cells"]) == 1 and test["purge"] == purge


def rendered(plan, block=512):
    identity = {"serial": "S1", "size_bytes": 700_150_000_000 // 4096 * 4096, "logical_block_size_bytes": block}
    return planned(load_plan(plan), identity)


@pytest.mark.parametrize("plan", ["micron-p420m", "micron-p420m-dd", "micron-p420m-small"])
def test_a_window_spans_what_the_note_measures_and_comes_after_it_settled(plan):
    """TN-FD-15, figure 11: 3000 s to settle, 1600 s to measure; and no window of a real drive spans less than half an
    hour.
    """
    for test in load_plan(plan):
        steady = test.steady_state
        assert window_s(test) >= 1800, test["name"]
        assert steady.settle_s >= 3000 or len(test.cells) > 1, test.name


def test_a_shipped_saturation_test_waits_until_the_drive_can_have_left_its_fresh_state():
    """No shipped plan lowers the minimum, and the windows of those for real drives span half an hour and more."""
    (wsat,) = load_plan(["wsat"])
    demo = next(test for test in load_plan("demo") if test.name == "wsat")
    for test in (wsat, demo):
        assert test.steady_state.min_capacity_multiple == 2 and test.steady_state.confirm_windows == 1
    assert window_s(wsat) >= 1800


@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("block", [512, 4096])
def test_they_fit_the_schema_and_keep_their_cells(plan, block):
    if (plan, block) == ("micron-p420m-small", 4096):
        with pytest.raises(PlanError, match="below the drive's logical block size"):
            rendered(plan, block)
        return
    done = rendered(plan, block)
    documents.validate(json.loads(json.dumps(done)), "plan")
    for test in done["drives"][0]["tests"]:
        assert test["cells"], test["name"]
        if plan == "iomemory-guide":  # each is formatted for its blocks first
            assert test["not_applicable"] == [], test["name"]


@pytest.mark.parametrize("plan, passes", [("micron-p420m", 2), ("micron-p420m-small", 2), ("micron-p420m-dd", 1)])
def test_micron_keeps_256_in_flight_on_at_most_8_threads(plan, passes):
    tests = load_plan(plan)
    for test in tests:
        for cell in test.cells:
            assert cell.threads * cell.queue_depth == 256 and cell.threads <= 8, cell
        assert test.purge.method == "auto" and test.precondition.passes == passes
        assert test.rounds.max * 60 >= 1600
        assert test.precondition.data == ("zeros" if plan.endswith("dd") else None)


def test_micron_reads_all_after_one_fill_and_writes_one_metric_at_a_time():
    """TN-FD-15, Recommended Performance Testing Workflow: reads need purge and fill once, any other
    workload its own.
    """
    reads, *others = load_plan("micron-p420m")
    assert {cell.read_pct for cell in reads.cells} == {100}
    assert len({(cell.access, cell.block_size_bytes) for cell in reads.cells}) == len(reads.cells) == 2 * 12
    assert others and all(len(test.cells) == 1 and test.cells[0].read_pct < 100 for test in others)


def test_micron_has_the_whole_of_figure_11():
    """Random and sequential, 512 B to 1 MiB, reads, writes and mixes; what is below 4 KiB and writes is a plan of its
    own.
    """
    tests = [*load_plan("micron-p420m"), *load_plan("micron-p420m-small")]
    done = [(cell.access, cell.read_pct, cell.block_size_bytes) for test in tests for cell in test.cells]
    wanted = {
        (access, mix, 512 << power)
        for access in ("random", "sequential")
        for mix in (0, 10, 30, 50, 70, 90, 100)
        for power in range(12)
    }
    assert len(done) == len(wanted) and set(done) == wanted
    assert {cell.block_size_bytes for test in load_plan("micron-p420m-small") for cell in test.cells} == {
        512,
        1024,
        2048,
    }


def test_zeros_are_written_by_the_fill_alone():
    for test in rendered("micron-p420m-dd")["drives"][0]["tests"]:
        fill = test["precondition"]
        for job in (fill["job"], fill["remainder_job"]):
            assert "zero_buffers=1" in job and "refill_buffers" not in job
        assert fill["data"] == "zeros" and all("zero_buffers" not in cell["job"] for cell in test["cells"])
        assert "zero_buffers" not in test["purge"].get("job", "")


def test_iomemory_formats_for_each_block_size_and_fills_before_reads():
    jobs = []
    for test in load_plan("iomemory-guide"):
        assert test.purge.method == "iomemory_format"
        for cell in test.cells:
            assert test.purge.lba_size_bytes == (512 if cell.block_size_bytes < 4096 else 4096), test.name
            assert bool(test.precondition) == (cell.read_pct == 100), test.name
            jobs.append(
                (
                    cell.access,
                    cell.block_size_bytes,
                    cell.read_pct,
                    cell.threads,
                    cell.queue_depth,
                    cell.batch,
                )
            )
            assert (cell.runtime_s, cell.ramp_s) == (30, 5), test.name
    small, large = 512, 1 << 20
    assert jobs == [
        ("random", small, 0, 1, 1, None),
        ("random", small, 0, 4, 32, 16),
        ("sequential", small, 0, 4, 32, 16),
        ("random", large, 0, 4, 32, 16),
        ("random", small, 100, 1, 1, None),
        ("random", small, 100, 4, 32, 16),
        ("sequential", small, 100, 4, 32, 16),
        ("random", large, 100, 4, 32, 16),
    ]
