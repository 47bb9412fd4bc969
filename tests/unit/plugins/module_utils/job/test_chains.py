# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests that go on from another's state, and points that follow from a sweep."""

from __future__ import annotations

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.job import operating_points, resume_state

TESTS = [
    {"name": "a"},
    {"name": "a-1", "follows": "a"},
    {"name": "a-2", "follows": "a-1"},
    {"name": "b", "follows": None},
]


@pytest.mark.parametrize(
    ("kept", "to_do"),
    [
        ((), ["a", "a-1", "a-2", "b"]),
        (("a", "a-1", "a-2"), ["b"]),
        (("a", "b"), ["a", "a-1", "a-2"]),
        (("a", "a-1", "b"), ["a", "a-1", "a-2"]),
        (("a", "a-1", "a-2", "b"), []),
    ],
)
def test_a_chain_is_measured_anew_as_a_whole(kept, to_do):
    assert [test["name"] for test in resume_state.waiting(TESTS, kept)] == to_do


@pytest.mark.parametrize(
    ("finished", "expected"),
    [
        ([("a", "steady")], ""),
        ([("a", "not_steady"), ("a", "complete")], ""),
        (
            [("a", "steady"), ("a", "not_steady")],
            "not measured: it builds on the drive state that test a leaves, and that test is not steady",
        ),
        (
            [("b", "steady")],
            "not measured: it builds on the drive state that test a leaves, and that test is not measured",
        ),
    ],
)
def test_without_the_state_that_it_goes_on_from_a_test_is_not_measured(finished, expected):
    records = [{"test": test, "outcome": outcome} for test, outcome in finished]
    assert resume_state.without_its_state(TESTS[1], records) == expected
    assert resume_state.without_its_state(TESTS[0], records) == resume_state.without_its_state(TESTS[3], []) == ""


SWEEP = {
    "name": "a",
    "cells": [{"id": "c1", "threads": 1, "queue_depth": 1}, {"id": "c2", "threads": 2, "queue_depth": 4}],
}
POINT = {
    "name": "a-1",
    "cells": [
        {"id": "p", "threads": 2, "queue_depth": 4, "point": {"test": "a", "take": "fewest"}},
        {"id": "c1", "threads": 1},
    ],
}


def test_a_point_has_the_load_of_the_cell_that_the_last_sweep_shows():
    old, new = ([{"cell": "c1", "metrics": {"iops": one}}, {"cell": "c2", "metrics": {"iops": 5}}] for one in (9, 1))
    records = [{"test": "a", "cells": old}, {"test": "a", "cells": new}]
    point, other = operating_points.with_points(POINT, [SWEEP, POINT], records)["cells"]
    assert (point["threads"], point["queue_depth"], point["chosen"]["cell"]) == (1, 1, "c1") and other == POINT[
        "cells"
    ][1]
    assert operating_points.with_points(SWEEP, [], []) is SWEEP


def test_cells_that_follow_the_cpus_have_their_load_and_the_record_tells_it():
    cell = {"id": "c", "threads": 8, "queue_depth": 32, "per_cpu": True}
    test = operating_points.on_cpus({"name": "t", "cells": [cell, SWEEP["cells"][0]]}, 4)
    told = {"threads": 4, "queue_depth": 64, "cpus": 4}
    assert test["cells"] == [
        {**cell, **{key: told[key] for key in ("threads", "queue_depth")}, "chosen": told},
        SWEEP["cells"][0],
    ]


def test_a_sweep_without_such_a_cell_is_told():
    limited = {
        **POINT,
        "cells": [{**POINT["cells"][0], "point": {"test": "a", "take": "most", "mean_latency_below_us": 5000}}],
    }
    with pytest.raises(operating_points.NoPoint, match="cell p: a has no cell with a mean latency below 5000 us"):
        operating_points.with_points(limited, [SWEEP], [{"test": "a", "cells": []}])
