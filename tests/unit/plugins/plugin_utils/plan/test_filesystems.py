# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests on a file system: what the plan makes of the key `filesystem`, and what it refuses."""

from __future__ import annotations

import pytest

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan import filesystems, platforms
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan.render_plan import PlanError, load_plan
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.preflight import host_plans
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.verdict import test_details
from ansible_collections.ssdlab.fleet.tests.fixtures import documents, plans

KIB = 1 << 10
SIZE = 480_103_981_056
CELL = {"block_size": "4KiB", "read_pct": 0, "runtime_s": 1}
IDENTITY = {"serial": "S1", "size_bytes": SIZE, "logical_block_size_bytes": 512}


def one(filesystem, **keys):
    return {
        "name": "a",
        "filesystem": filesystem,
        "precondition": {"passes": 1, "of": "active_range"},
        "active_range_pct": 80,
        "cells": [CELL],
        "rounds": {"max": 1},
        **keys,
    }


def rendered(*tests):
    return plans.rendered(
        load_plan(list(tests)),
        run={"id": "r1", "name": "qualify"},
        host="h1",
        boot_id="b",
        engine_version="0",
        variables={},
        drives=[{"selector": {"serial": "S1"}, "identity": IDENTITY}],
    )


def wrong(*tests):
    with pytest.raises(PlanError) as error:
        rendered(*tests)
    return str(error.value)


def test_the_guides_array_is_computed_from_its_chunk_and_drives():
    raid = {"level": 10, "drives": 10, "sets": 5, "chunk": "256KiB"}
    plan = rendered(one({"type": "ext4", "mount_options": ["noatime", "discard"], "raid": raid}))
    documents.validate(plan, "plan")
    (test,) = plan["drives"][0]["tests"]
    assert test["filesystem"] == {
        "type": "ext4",
        "block_size_bytes": 4 * KIB,
        "mount_options": ["noatime", "discard"],
        "stripe": {"stride": 64, "stripe_width": 320},
    }
    assert (
        filesystems.describe(plans.typed(plan).drives[0].tests[0].filesystem)
        == "file system ext4 (noatime, discard), stride 64, stripe width 320"
    )


def planned(plan):
    return plan["drives"][0]["tests"]


def test_a_plan_without_a_file_system_says_nothing_of_one():
    # A run that was begun before there was the key goes on.
    (test,) = planned(rendered({**one(None), "active_range_pct": 100}))
    assert "filesystem" not in test and "filesystem" not in host_plans.about_test(load_plan([one(None)])[0])


@pytest.mark.parametrize(
    ("test", "text"),
    [
        (one({"type": "ext4"}, active_range_pct=95), "set active_range_pct to 90 at most"),
        (one({"type": "ext4"}, precondition=False), "filesystem: needs a precondition"),
        (one({"type": "btrfs"}), "filesystem.type"),
        (one({"type": "xfs", "mount_options": ["nobarrier"]}), "filesystem.mount_options[0]"),
        (
            one({"type": "ext4", "raid": {"level": 0, "drives": 2, "chunk": 6144}}),
            "not a multiple of the file system's",
        ),
        (one({"type": "ext4", "raid": {"level": 6, "drives": 3, "chunk": "64KiB"}}), "RAID 6 needs at least 4 drives"),
        (one({"type": "ext4"}, phases=[{"name": "b", "cells": [CELL], "rounds": {"max": 1}}]), "phases: can't be"),
        (
            one(
                {"type": "xfs"},
                cells=[
                    {
                        "name": "web",
                        "jobs": [
                            {"name": "w", "block_size": "4KiB", "read_pct": 0},
                            {"name": "t", "block_size": "4KiB", "trim": True},
                        ],
                    }
                ],
            ),
            "trims, which a file cannot",
        ),
    ],
)
def test_what_would_measure_nothing_or_cannot_be_is_refused(test, text):
    assert text in wrong(test)


def test_a_test_after_it_prepares_the_drive_itself():
    after = {**one(None), "name": "b", "purge": False, "precondition": False}
    assert "test b would continue on the file system of a" in wrong(one({"type": "ext4"}), after)
    rendered(one({"type": "ext4"}), {**after, "precondition": {"passes": 1}})


def test_the_shipped_tests_differ_in_the_file_system_alone():
    ext4, xfs, none = (load_plan([f"filesystem-{name}"])[0] for name in ("ext4", "xfs", "none"))
    assert ext4.filesystem.mount_options == xfs.filesystem.mount_options == ["noatime", "discard"]
    assert (ext4.filesystem.type, xfs.filesystem.type) == ("ext4", "xfs") and none.filesystem is None
    for test in (xfs, none):
        assert test.cells == ext4.cells and test.precondition == ext4.precondition
    plan = load_plan("iomemory-strategies")
    assert [test.repeats for test in plan[-2:]] == ["filesystem-none"] * 2


def test_no_file_system_is_rendered_for_another_system():
    with pytest.raises(PlanError, match="only on Linux"):
        platforms.files(load_plan(["filesystem-ext4"]), "windows", r"\\.\PhysicalDrive1", plans.known(**IDENTITY), 32)


ASKED = {"type": "ext4", "block_size_bytes": 4096, "mount_options": ["noatime"], "stripe": None}
RECORD = {"purge": None, "precondition": None, "filesystem": {**ASKED, "options": ["rw"], "file_bytes": 384 * 10**9}}


def test_the_report_says_that_it_is_no_figure_of_the_raw_drive():
    record = {**RECORD, "steady_state": [], "conditions": []}
    assert (
        "measured on a file of 384 GB on ext4, mounted with noatime; not the raw drive"
        in test_details.details(record, {})["remarks"]
    )
