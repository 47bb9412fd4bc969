# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Cells that use a part of the ActiveRange, and the test of hot and cold data that is made of them."""

from __future__ import annotations

import dataclasses

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.measure import fio_sanity
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.planned_cell import PartOfRange
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan import platforms
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan.render_plan import PlanError, load_plan
from ansible_collections.ssdlab.fleet.tests.fixtures import documents
from ansible_collections.ssdlab.fleet.tests.fixtures.plans import identity_of, known, planned

SIZE = 1 << 30
KIB, MIB = 1 << 10, 1 << 20
HOT = {"block_size": "4KiB", "read_pct": 0, "runtime_s": 2, "range": {"to_pct": 20}}


def one(*cells, **keys):
    return {"name": "a", "purge": False, "precondition": False, "cells": list(cells), "rounds": {"max": 1}, **keys}


def rendered(*tests, size=SIZE):
    return planned(load_plan(list(tests)), identity_of(size))


def options(test):
    return [fio_sanity.sections(cell["job"])[cell["id"]] for cell in test["cells"]]


def wrong(*tests, **more):
    with pytest.raises(PlanError) as error:
        rendered(*tests, **more)
    return str(error.value)


@pytest.mark.parametrize("active_pct", [100, 70, 33])
@pytest.mark.parametrize(("begin", "end"), [(0, 20), (20, 100), (37, 38)])
def test_a_cell_stays_within_its_part_of_the_active_range(active_pct, begin, end):
    cell = {**HOT, "block_size": "64KiB", "range": {"from_pct": begin, "to_pct": end}}
    (asked,) = options(rendered(one(cell, active_range_pct=active_pct))["drives"][0]["tests"][0])
    active = SIZE * active_pct // 100 // 512 * 512
    offset, size = int(asked.get("offset", 0)), int(asked["size"])
    assert active * begin // 100 <= offset < active * begin // 100 + 64 * KIB and offset % (64 * KIB) == 0
    assert active * end // 100 - 64 * KIB < offset + size <= active * end // 100 and size % (64 * KIB) == 0


def test_threads_in_sequence_have_a_share_of_the_part_each():
    cell = {**HOT, "access": "sequential", "threads": 4, "range": {"from_pct": 50}}
    (asked,) = options(rendered(one(cell))["drives"][0]["tests"][0])
    share = SIZE // 2 // 4
    assert (asked["offset"], asked["size"], asked["offset_increment"]) == (str(SIZE // 2), str(share), str(share))


def test_a_range_is_in_the_cells_name_and_fits_the_schema_of_plans():
    every = one({key: value for key, value in HOT.items() if key != "range"}, HOT)
    matrix = {"block_size": ["4KiB", "8KiB"], "read_pct": 0, "range": {"from_pct": 20, "to_pct": 40}}
    plan = rendered(every, {**one(), "name": "b", "matrix": matrix})
    documents.validate(plan, "plan")
    names = [[cell["id"] for cell in test["cells"]] for test in plan["drives"][0]["tests"]]
    assert names == [
        ["rand-4k-w100-tc1-qd1", "rand-4k-w100-tc1-qd1-range0-20"],
        ["rand-4k-w100-tc1-qd1-range20-40", "rand-8k-w100-tc1-qd1-range20-40"],
    ]


def test_a_range_without_an_inside_or_without_room_is_refused():
    assert "from_pct 50 must be below to_pct 50" in wrong(one({**HOT, "range": {"from_pct": 50, "to_pct": 50}}))
    assert "it has no room in its part of the ActiveRange" in wrong(one({**HOT, "block_size": "1MiB"}), size=4 * MIB)
    assert "range.to: unknown key" in wrong(one({**HOT, "range": {"to": 20}}))


def test_iometer_which_has_no_parts_of_a_drive_does_without_such_a_cell():
    identity = known(size_bytes=SIZE, logical_block_size_bytes=512)
    made = platforms.files(load_plan([one(HOT)]), "iometer", "", identity, 32)
    assert "Left out, as Iometer does not support them: rand-4k-w100-tc1-qd1-range0-20." in made["README.txt"]


def test_hot_cold_fills_what_the_application_uses_and_rewrites_the_hot_part_then_all_of_it():
    hot, everything = load_plan(["hot-cold"])
    assert (hot.active_range_pct, everything.active_range_pct) == (70, 70)
    # Once, and not as often as the user capacity takes twice.
    assert hot.precondition.passes == 1 and everything.precondition is None
    assert everything.follows == everything.repeats == "hot-cold"
    loads = [dataclasses.replace(test.cells[0], id="", range=None) for test in (hot, everything)]
    assert loads[0] == loads[1] and hot.cells[0].range == PartOfRange(0, 20)
    # With the fill, as much is written before a window as of a saturation test; then all data once more.
    assert hot.steady_state.min_capacity_multiple + 0.7 == 2 and hot.steady_state.confirm_windows == 1
    assert everything.steady_state.min_capacity_multiple >= 0.7
    (asked,), (whole,) = (options(test) for test in rendered("hot-cold")["drives"][0]["tests"])
    assert int(asked["size"]) == SIZE * 70 // 100 // 512 * 512 * 20 // 100 // 4096 * 4096 and "offset" not in asked
    assert whole["size"] == "@ssd_size_bytes@"


def test_a_site_sets_its_own_shares():
    own = {
        "base": "hot-cold",
        "name": "db",
        "active_range_pct": 90,
        "cells": [{**HOT, "range": {"from_pct": 40, "to_pct": 45}}],
    }
    hot, everything = load_plan([{**own, "phases": []}, {**one(HOT), "name": "other", "repeats": "db"}])
    assert hot.active_range_pct == 90 and hot.cells[0].id.endswith("-range40-45")
    assert everything.repeats == "db"
