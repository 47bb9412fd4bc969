# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.job import time_left

SIZE, RATE = 1000, 10.0
TEST = {
    "purge": {"method": "none"},
    "precondition": None,
    "active_range_pct": 100,
    "cells": [{"runtime_s": 50, "ramp_s": 10}],
    "rounds": {"max": 3, "capacity_multiple": None, "time_limit_s": None},
}
BY_BYTES = {"max": None, "capacity_multiple": 2, "time_limit_s": None}


@pytest.mark.parametrize(
    ("changes", "rate", "seconds"),
    [
        ({}, None, 180),
        ({"precondition": {"passes": 2}, "active_range_pct": 50}, RATE, 180 + 100),
        ({"precondition": {"passes": 2}}, None, None),
        ({"purge": {"method": "overwrite"}}, RATE, 180 + 100),
        ({"rounds": BY_BYTES}, RATE, 200 + 60),
        ({"rounds": BY_BYTES}, None, None),
        ({"cells": []}, None, 0),
    ],
    ids=["rounds", "a fill", "no rate yet", "an overwriting purge", "bytes", "bytes, no rate", "no cells"],
)
def test_how_long_a_test_takes_at_most(changes, rate, seconds):
    assert time_left.of_test({**TEST, **changes}, SIZE, rate) == seconds


def test_the_tests_of_a_drive_have_a_bound_where_each_has_one():
    assert time_left.of_tests([TEST, TEST], SIZE, None) == 360
    assert time_left.of_tests([TEST, {**TEST, "rounds": BY_BYTES}], SIZE, None) is None
    assert time_left.of_tests([], SIZE, None) == 0
