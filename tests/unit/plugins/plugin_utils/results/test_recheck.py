# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a host says of a steady window is worth as much as the values that it sends with it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.ssdlab.fleet.plugins.module_utils.measure import steady_state
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.results import judge, recheck

TRACKED = {"cell": "c", "metric": "write_iops"}
RULE = {"window": 5, "range_limit": 0.2, "slope_limit": 0.1, "tracked": [TRACKED]}
FLAT = (350.0, 352.0, 349.0, 351.0, 348.0)
FALLING = [2200.0, 1800.0, 1400.0, 1000.0, 600.0]


def record(values=FLAT, outcome="steady", **changes):
    """A record as an honest host makes it, but for what is changed."""
    told = steady_state.evaluate(values)
    window = {**told, **TRACKED, "steady": True, **changes}
    return {"outcome": outcome, "steady_state": [window], "metrics": {"write_iops": told["average"]}}


@pytest.mark.parametrize(
    "made, rule, says",
    [
        (record(), RULE, ""),
        (record(), None, ""),
        (record(), {}, ""),
        (record(FALLING, "not_steady"), RULE, ""),
        (
            record(FALLING),
            RULE,
            "the host reports it as steady, but its window values are not: the range of the window is",
        ),
        (record(FLAT[:4]), RULE, "its window has 4 values, the rule requires 5"),
        (record(window_values=[350.0, None, 349.0, 351.0, 348.0]), RULE, "a value is missing from its window"),
        (record(window_rounds=[1, 3, 4, 5, 6]), RULE, "the rounds [1, 3, 4, 5, 6], which do not follow each other"),
        (record(window_rounds=[2, 3, 4, 5, 6]), RULE, ""),
        (record(window_rounds=[2, 3, 4, 5, 6]), dict(RULE, sample_every=2), "which do not follow each other"),
        (record(window_rounds=[2, 4, 6, 8, 10]), dict(RULE, sample_every=2), ""),
        (record(average=480.0), RULE, "its average is reported as 480.0, but its window values give 350.0"),
        (record(range_ratio=0.0), RULE, "its range_ratio is reported as 0.0"),
        (record(slope_ratio=None), RULE, "its slope_ratio is reported as None"),
        (record(), dict(RULE, range_limit=0.001), "but its window values are not"),
        (record((97.0, 97.0, 112.0, 97.0, 97.0)), RULE, ""),
        (
            record((97.0, 97.0, 112.0, 97.0, 97.0)),
            dict(RULE, margin=0.1),
            "its window values are not: a value is off the window's average by 12 %",
        ),
        (
            record(),
            dict(RULE, tracked=[TRACKED, {"cell": "d", "metric": "iops"}]),
            "the record has no steady-state window for d iops",
        ),
        (dict(record(), steady_state=[]), RULE, "the record has no steady-state window for c write_iops"),
        (
            dict(record(), metrics={"write_iops": 900.0}),
            RULE,
            "its write_iops is reported as 900.0, but its window's average is 350.0",
        ),
        (dict(record(), metrics={}), RULE, ""),
    ],
)
def test_a_record_that_contradicts_its_own_values(made, rule, says):
    found = recheck.problem(made, rule)
    assert (says in found and bool(found)) if says else found == ""


@given(st.lists(st.floats(min_value=1, max_value=1e9), min_size=5, max_size=5))
def test_what_an_honest_host_calls_steady_stands(values):
    """Host and controller have one arithmetic: what one finds, the other finds."""
    assert (recheck.problem(record(values), RULE) == "") == steady_state.evaluate(values)["steady"]


def test_the_judge_asks():
    run = {"tests": {"wsat": {"steady_state": RULE}}, "criteria": [], "asked": [{"host": "h", "drive": "d"}]}
    drive = {"kind": "drive", "host": "h", "drive": "d", "outcome": "complete", "identity": {}}
    of_test = {"kind": "test", "host": "h", "drive": "d", "test": "wsat", "reasons": [], "rounds": 9}
    verdicts = [
        judge.judge(run, [drive, {**of_test, **made}])["drives"][0]["verdict"] for made in (record(), record(FALLING))
    ]
    assert verdicts == ["pass", "invalid"]


def test_a_tracked_cell_of_the_preferred_size_is_that_of_the_drives_size():
    rule = {**RULE, "tracked": [{"cell": "rand-preferred-w100-tc1-qd1", "metric": "write_iops"}]}
    made = record(cell="rand-16k-w100-tc1-qd1")
    assert recheck.problem(made, rule, 16_384) == ""
    # A host that wrote another size, and a run that does not say which.
    for size in (4_096, None):
        assert "no steady-state window for rand-" in recheck.problem(made, rule, size)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({}, ""),
        ({"rounds": 0}, "the host reports no rounds for it"),
        ({"metrics": {}}, "the host reports no figures for it"),
    ],
)
def test_a_test_that_measures_has_rounds_and_figures(changes, says):
    made = {"outcome": "complete", "rounds": 3, "metrics": {"write_iops": 350.0}, **changes}
    assert recheck.unmeasured(made, {"cells": ["c"]}) == says and recheck.unmeasured(made, {"cells": []}) == ""
    run = {"tests": {"t": {"cells": ["c"]}}, "criteria": [], "asked": [{"host": "h", "drive": "d"}]}
    drive = {"kind": "drive", "host": "h", "drive": "d", "outcome": "complete", "identity": {}}
    judged = judge.judge(run, [drive, {"kind": "test", "host": "h", "drive": "d", "test": "t", **made}])["drives"][0]
    assert judged["verdict"] == ("invalid" if says else "pass")
