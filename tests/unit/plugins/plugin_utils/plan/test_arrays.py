# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests on an array of a host's drives: which drive carries them, and what is wrong with them."""

from __future__ import annotations

import pytest

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan import arrays, hostplan
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan.test_record import ArrayRequest
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan.testfiles import PlanError, load_plan
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.preflight import host_plans, plan_text, wear
from ansible_collections.ssdlab.fleet.tests.fixtures import documents
from ansible_collections.ssdlab.fleet.tests.fixtures.plans import GIB, identity_of, plan_of, planned

CELL = {"block_size": "4KiB", "read_pct": 0, "queue_depth": 4, "runtime_s": 1}
ALONE = {"name": "alone", "cells": [CELL], "rounds": {"max": 2}, "precondition": {"passes": 1}, "purge": False}
FIRST = {**ALONE, "purge": {"method": "deallocate"}}


def on_array(array=None, **keys):
    return {**ALONE, "name": "together", "array": array or {}, **keys}


def drives(*sizes, **more):
    return [
        {"selector": {"serial": f"S{place}"}, "identity": {**identity_of(size, **more), "serial": f"S{place}"}}
        for place, size in enumerate(sizes)
    ]


def test_the_last_drive_carries_it_and_all_are_members():
    plan = planned(load_plan([FIRST, on_array({"chunk": "256KiB"})]), drives=drives(GIB, GIB, GIB))
    documents.validate(plan, "plan")
    assert [[test["name"] for test in entry["tests"]] for entry in plan["drives"]] == [
        ["alone"],
        ["alone"],
        ["alone", "together"],
    ]
    assert plan["drives"][2]["tests"][1]["array"] == {
        "level": 0,
        "chunk_bytes": 256 << 10,
        "members": ["S0", "S1", "S2"],
    }


def test_its_cells_are_fitted_to_the_array_and_not_to_one_drive():
    streams = {**CELL, "access": "sequential", "threads": 2}
    plan = planned(load_plan([on_array(cells=[streams])]), drives=drives(GIB, GIB))
    # Two threads side by side: each has a half of both drives.
    assert f"offset_increment={GIB}" in plan["drives"][1]["tests"][0]["cells"][0]["job"]


@pytest.mark.parametrize(
    ("given", "sizes", "settings", "told"),
    [
        ({}, [GIB], {}, "needs at least 2 drives; this host has 1"),
        ({"drives": 4}, [GIB, GIB], {}, "needs 4 drives; this host has 2"),
        ({}, [GIB, 2 * GIB], {}, "its drives differ in size"),
        ({}, [GIB, GIB], {"workload_ioengine": "io_uring_polled"}, "an array has no poll queues"),
    ],
)
def test_drives_that_make_no_array_are_told(given, sizes, settings, told):
    with pytest.raises(PlanError, match=told):
        planned(load_plan([on_array(given)]), drives=drives(*sizes, io_poll=True), **settings)


@pytest.mark.parametrize(("given", "kept"), [({}, [GIB, GIB]), ({"drives": 3}, [GIB, GIB]), ({}, [GIB])])
def test_a_drive_that_is_left_out_stays_a_member_so_that_no_smaller_array_is_judged(given, kept):
    """The host makes no array without it."""
    left = [f"GONE{number}" for number in range(3 - len(kept))]
    plan = planned(load_plan([on_array(given)]), drives=drives(*kept), left_out=left)
    documents.validate(plan, "plan")
    assert plan["drives"][-1]["tests"][-1]["array"]["members"] == [*(f"S{n}" for n in range(len(kept))), *left]
    with pytest.raises(PlanError, match="needs 2 drives; this host has 3"):
        planned(load_plan([on_array({"drives": 2})]), drives=drives(GIB, GIB), left_out=["GONE0"])


def test_sizes_that_differ_by_less_than_a_chunk_are_one():
    assert planned(load_plan([on_array()]), drives=drives(GIB, GIB + 4096))


@pytest.mark.parametrize(
    ("plan", "told"),
    [
        ([on_array(purge={"method": "auto"})], "remove the purge"),
        ([on_array(precondition=False)], "add a precondition"),
        ([on_array(filesystem={"type": "ext4"}, active_range_pct=80)], "can't be combined with filesystem"),
        ([on_array(write_cache="on")], "can't be combined with write_cache"),
        (
            [on_array(phases=[{"name": "x", "cells": [CELL], "rounds": {"max": 1}}])],
            "phases: can't be combined with array",
        ),
        ([on_array(), ALONE], "test alone comes after together"),
        ([on_array({"level": 5})], "level"),
        ([on_array({"chunk": "48KiB"})], "chunk"),
        ([on_array({"drives": 1})], "drives"),
    ],
)
def test_what_is_wrong_with_it_is_told(plan, told):
    with pytest.raises(PlanError, match=told):
        load_plan(plan)


def test_plan_mode_names_members_and_counts_the_bytes_on_each():
    tests = load_plan([FIRST, on_array()])
    plan = plan_of(tests, drives=drives(GIB, GIB))
    text = "\n".join(plan_text.describe(plan, {}))
    assert "2. together: no purge, on a RAID 0 of 2 drives (S0, S1), chunk 64 KiB, precondition 1 x" in text
    assert "then, as part of the array that S1 carries: together" in text
    first, last = (wear.of_drive(drive) for drive in arrays.written(plan))
    # Two fills each: of its own test, and its half of the array's.
    assert first == last and first[0] == 2 * GIB
    own, _carrier = (wear.of_drive(drive) for drive in plan.drives)
    assert own[0] == GIB


def test_another_array_is_another_definition():
    one, other = (host_plans.about_test(load_plan([on_array({"chunk": chunk})])[0]) for chunk in ("64KiB", "128KiB"))
    assert host_plans.differing_keys(one, other) == ["array"]


def test_a_second_measurement_of_a_drive_makes_no_array():
    variables = {"ssd_step": "qualify", "ssd_plan": [ALONE, on_array()], "ssd_tests_dirs": []}
    again = {hostplan.AGAIN: {"tests": ["alone", "together"]}}
    tests, _left_out = hostplan.choose_tests(hostplan.load_tests(variables), {**variables, **again})
    assert [test.name for test in tests] == ["alone"]


def test_the_shipped_plan_compares_the_array_with_a_drive():
    alone, together = load_plan("iomemory-raid0")
    assert together.repeats == alone.name == "raid0-single" and not alone.array_request
    assert together.array_request == ArrayRequest(0, 256 << 10, "all")
