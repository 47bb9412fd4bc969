# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A plan does not read what nobody wrote."""

from __future__ import annotations

import pytest

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan import testfiles

READ, WRITE, MIXED = ({"block_size": "4KiB", "read_pct": share} for share in (100, 0, 65))


def made(name, *cells, **keys):
    return {"name": name, "cells": list(cells), "rounds": {"max": 1}, **keys}


OWN_RANGE = {"passes": 1, "of": "active_range"}
SLICE = made("a", READ, active_range_pct=50, active_range_max_gib=64, precondition=OWN_RANGE)


@pytest.mark.parametrize(
    "plan",
    [
        [made("a", READ, precondition=False)],
        [made("a", MIXED, precondition=False)],
        [made("a", WRITE, READ, precondition=False)],
        [made("a", READ, active_range_pct=50), made("b", READ, purge=False, precondition=False)],
        [SLICE, made("b", READ, purge=False, precondition=False)],
        [SLICE, made("b", READ, purge=False, precondition=False, active_range_pct=50, active_range_max_gib=65)],
    ],
)
def test_reads_of_a_purged_drive_are_refused(plan):
    with pytest.raises(testfiles.PlanError) as refused:
        testfiles.load_plan(plan)
    (problem,) = refused.value.problems
    assert "not written since" in problem and "rand-4k-r" in problem and "precondition" in problem


@pytest.mark.parametrize(
    "plan",
    [
        [made("a", READ)],
        [made("a", WRITE, precondition=False)],
        [made("a", READ, purge={"method": "overwrite"}, precondition=False)],
        [made("a", READ, purge=False, precondition=False)],  # what is on the drive is the operator's business
        [made("a", READ), made("b", READ, purge=False, precondition=False)],
        [made("a", READ, active_range_pct=50), made("b", READ, purge=False, precondition=False, active_range_pct=50)],
        [made("a", WRITE, precondition=False), made("b", READ, purge=False, precondition=False)],
        [SLICE, made("b", READ, purge=False, precondition=False, active_range_pct=40, active_range_max_gib=64)],
    ],
)
def test_what_was_written_or_may_have_been_is_read(plan):
    assert len(testfiles.load_plan(plan)) == len(plan)


@pytest.mark.parametrize("name", testfiles.Library().names("plans"))
def test_no_shipped_plan_reads_what_nobody_wrote(name):
    assert testfiles.load_plan(name)
