# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests by zone: what they may ask, and the jobs that a zoned drive gets."""

from __future__ import annotations

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.measure import fio_sanity
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan.render_plan import load_plan
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan.testfiles import PlanError
from ansible_collections.ssdlab.fleet.tests.fixtures.plans import identity_of, planned

ZONE = 1 << 21
# A drive of seventeen zones.
DRIVE = identity_of(17 * ZONE, 4096, zone_model="host-managed", zone_bytes=ZONE, max_open_zones=4, max_active_zones=6)
WRITE = {"access": "sequential", "block_size": "128KiB", "read_pct": 0, "threads": 1, "queue_depth": 1, "runtime_s": 9}


def sections(test):
    """The sections of each cell's job, by the cell's name, less the global one."""
    made = {cell["id"]: fio_sanity.sections(cell["job"]) for cell in test["cells"]}
    return {name: part for name, parts in made.items() for key, part in parts.items() if key != "global"}


def test_the_plan_of_zoned_drives_writes_in_sequence_by_zone():
    tests = planned(load_plan("zoned"), DRIVE)["drives"][0]["tests"]
    assert [test["name"] for test in tests] == ["zoned-throughput", "zoned-reads", "zoned-latency"]
    for test in tests:
        fill = fio_sanity.sections(test["precondition"]["job"])["precondition"]
        assert test["zoned"] and (fill["zonemode"], fill["iodepth"]) == ("zbd", "1")
        for part in sections(test).values():
            assert part["zonemode"] == "zbd"
            assert part["rw"] in ("read", "randread") or (part["rw"], part["iodepth"]) == ("write", "1")
    several = sections(tests[0])["seq-128k-w100-tc4-qd1"]
    assert several["size"] == several["offset_increment"] == str(4 * ZONE)
    (left_out,) = tests[0]["not_applicable"]
    assert left_out["id"] == "seq-128k-w100-tc8-qd1"
    assert left_out["reason"] == "it writes to 8 zones at a time, and the drive can have 4 open"


def test_without_a_limit_of_open_zones_all_cells_are_for_the_drive():
    unlimited = {**DRIVE, "max_open_zones": 0, "max_active_zones": 0, "size_bytes": 64 * ZONE}
    (test, *_others) = planned(load_plan("zoned"), unlimited)["drives"][0]["tests"]
    assert len(test["cells"]) == 4 and not test["not_applicable"]


@pytest.mark.parametrize(
    ("keys", "cell", "told"),
    [
        ({}, {"queue_depth": 4}, "one write of a zone is in flight, not 4; use threads"),
        ({}, {"access": "random"}, "zones are written in sequence; use access: sequential"),
        ({}, {"read_pct": 50}, "a cell reads or writes; split it in two"),
        ({}, {"range": {"to_pct": 20}}, "cannot be combined with range"),
        ({}, {"threads": "auto"}, "cannot be combined with auto_threads"),
        ({"precondition": {"passes": 2, "verify": True}}, {}, "zoned: cannot be combined with precondition.verify"),
        ({"write_cache": "off"}, {}, "zoned: cannot be combined with write_cache"),
    ],
)
def test_what_zones_do_not_take_is_told_with_the_test(keys, cell, told):
    test = {"name": "own", "zoned": True, "cells": [{**WRITE, **cell}], "rounds": {"max": 1}, **keys}
    with pytest.raises(PlanError) as caught:
        load_plan([test])
    assert told in str(caught.value)
