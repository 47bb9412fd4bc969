# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests that go on from another's state, and points that follow from a sweep."""

from __future__ import annotations

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.job import operating_points, resume_state
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.measurement import Chosen
from ansible_collections.ssdlab.fleet.tests.fixtures import planned, run_results

TESTS = [
    planned.spec(name=name, follows=before) for name, before in (("a", None), ("a-1", "a"), ("a-2", "a-1"), ("b", None))
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
    assert [test.name for test in resume_state.waiting(TESTS, kept)] == to_do


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
    records = [run_results.attempt(test=test, outcome=outcome) for test, outcome in finished]
    assert resume_state.without_its_state(TESTS[1], records) == expected
    assert resume_state.without_its_state(TESTS[0], records) == resume_state.without_its_state(TESTS[3], []) == ""


SWEEP = planned.spec(name="a", cells=[{"id": "c1"}, {"id": "c2", "threads": 2, "queue_depth": 4}])


def point(**how):
    """A test with a point of the sweep, and a cell of its own."""
    asked = {"id": "p", "threads": 2, "queue_depth": 4, "point": {"test": "a", "take": "fewest", **how}}
    return planned.spec(name="a-1", cells=[asked, {"id": "c1"}])


def test_a_point_has_the_load_of_the_cell_that_the_last_sweep_shows():
    old, new = ([{"cell": "c1", "metrics": {"iops": one}}, {"cell": "c2", "metrics": {"iops": 5}}] for one in (9, 1))
    records = [run_results.attempt(test="a", cells=cells) for cells in (old, new)]
    asked = point()
    test, loads = operating_points.with_points(asked, [SWEEP, asked], records)
    assert loads == {"p": Chosen(1, 1, cell="c1")} and test.cells[1] == asked.cells[1]
    assert (test.cells[0].threads, test.cells[0].queue_depth) == (1, 1)
    assert operating_points.with_points(SWEEP, [], []) == (SWEEP, {})


def test_cells_that_follow_the_cpus_have_their_load_and_the_record_tells_it():
    cell = {"id": "c", "threads": 8, "queue_depth": 32, "per_cpu": True}
    test, loads = operating_points.on_cpus(planned.spec(cells=[cell, {"id": "c1"}]), 4)
    assert loads == {"c": Chosen(4, 64, cpus=4)}
    assert test.cells == [planned.cell(**{**cell, "threads": 4, "queue_depth": 64}), planned.cell(id="c1")]


def test_a_sweep_without_such_a_cell_is_told():
    limited = point(take="most", mean_latency_below_us=5000)
    with pytest.raises(operating_points.NoPoint, match="cell p: a has no cell with a mean latency below 5000 us"):
        operating_points.with_points(limited, [SWEEP], [run_results.attempt(test="a")])
