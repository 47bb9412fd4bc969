# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A drive that a test left fresh is fresh for the next one too."""

from __future__ import annotations

import pytest

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan.render_plan import load_plan
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan.testfiles import PlanError

WRITES = {"block_size": "4KiB", "read_pct": 0}
STEADY = {"tracked": [{"block_size": "4KiB", "read_pct": 0, "metric": "write_iops"}]}
PURGE = {
    "name": "purge",
    "purge": {"method": "deallocate"},
    "precondition": False,
    "cells": [WRITES],
    "rounds": {"max": 1},
}
STAYS = {**PURGE, "name": "stays", "purge": False, "rounds": {"max": 60}, "steady_state": STEADY}
FILLS = {**STAYS, "name": "fills", "precondition": {"passes": 2}}
LONG = {**STAYS, "name": "long", "purge": {"method": "deallocate"}}
TOLD = {**STAYS, "name": "told", "steady_state": {**STEADY, "min_capacity_multiple": 0, "confirm_windows": 0}}
AGAIN = {**STAYS, "name": "again"}


@pytest.mark.parametrize(
    "plan, waits",
    [
        ([STAYS], [0]),  # of a drive whose state nobody knows nothing is claimed
        ([LONG], [2]),
        ([PURGE, STAYS], [None, 2]),
        ([PURGE, PURGE | {"name": "more", "purge": False}, STAYS], [None, None, 2]),
        ([PURGE, STAYS, AGAIN], [None, 2, 0]),  # the one before has written as much
        ([PURGE, FILLS, STAYS], [None, 0, 0]),
        ([PURGE, TOLD, STAYS], [None, 0, 2]),
    ],
)
def test_a_window_waits_while_the_drive_may_be_fresh(plan, waits):
    told = [test.steady_state for test in load_plan(plan)]
    assert [steady and steady.min_capacity_multiple for steady in told] == waits
    assert [steady and steady.confirm_windows for steady in told] == [
        None if wait is None else int(wait > 0) for wait in waits
    ]


def test_the_limits_of_a_test_are_checked_against_what_it_has_to_wait_for():
    with pytest.raises(PlanError, match="end the test before a window may begin"):
        load_plan([PURGE, {**STAYS, "rounds": {"capacity_multiple": 1}}])
