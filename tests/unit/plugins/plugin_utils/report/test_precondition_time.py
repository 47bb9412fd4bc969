# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan.render_plan import load_plan
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.report import derived_metrics, precondition_time

# It counts 1 GB as 1,024 MB.
MB = 10**6
GB = 1024 * MB
# Micron's brief, Table 1: capacity (GB), 128K SEQ write rate (MB/s), fill x2 (minutes).
TABLE_1 = [(480, 380, 43), (960, 520, 63), (1920, 520, 126), (7680, 520, 504)]
(FROM_FRESH,) = [test for test in load_plan("micron-brief") if test["name"] == "brief-second-1-sequential"]


@pytest.mark.parametrize(("capacity", "rate", "minutes"), TABLE_1)
def test_the_time_of_two_fills_is_that_of_the_briefs_table(capacity, rate, minutes):
    found = precondition_time.of_test(FROM_FRESH, True, rate * MB, capacity * GB)
    assert found["bytes"] == 2 * capacity * GB and int(found["seconds"] / 60) == minutes


def changed(**cell):
    return {**FROM_FRESH, "cells": [{**FROM_FRESH["cells"][0], **cell}]}


@pytest.mark.parametrize(
    "other",
    [
        {"spec": changed(access="random")},
        {"spec": changed(block_size_bytes=64 << 10)},
        {"spec": changed(read_pct=50)},
        {"spec": changed(rate_iops=100)},
        {"spec": changed(range={"from_pct": 0, "to_pct": 20})},
        {"spec": {**FROM_FRESH, "cells": FROM_FRESH["cells"] * 2}},
        {"spec": {**FROM_FRESH, "active_range_pct": 75}},
        {"spec": {}},
        {"steady": False},
        {"bandwidth": None},
        {"bandwidth": 0.0},
        {"size_bytes": None},
    ],
)
def test_any_other_test_tells_none(other):
    assert (
        precondition_time.of_test(
            **{"spec": FROM_FRESH, "steady": True, "bandwidth": 5e8, "size_bytes": 10**12, **other}
        )
        is None
    )


@pytest.mark.parametrize(("verdict", "told"), [("pass", True), ("fail", True), ("invalid", False)])
def test_the_report_tells_it_where_the_rate_is_trusted(verdict, told):
    test = {"test": "fill", "verdict": verdict, "metrics": {"write_bandwidth": 520.0 * MB}}
    record = {"steady_state": [{"metric": "iops", "average": 3967.0}]}
    found = derived_metrics.of_drive({"tests": [test]}, {"fill": record}, {"fill": FROM_FRESH}, {}, 960 * GB)
    assert ("fill_time" in found.get("fill", {})) is told
    if told:
        assert derived_metrics.derived_view(found["fill"])["fill_time"] == "63 min: 1.966 TB at 520 MB/s"
