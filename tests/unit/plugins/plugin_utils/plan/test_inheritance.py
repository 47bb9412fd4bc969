# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which tests are no longer those of the source that they state."""

from __future__ import annotations

import pytest

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan.render_plan import load_plan
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan.test_library import SHIPPED_DIR

PLANS = sorted(path.stem for path in SHIPPED_DIR.glob("plans/*.yml"))


def departing(plan, dirs=()):
    """{test: keys} of those that depart."""
    return {test.name: test.departs.keys for test in load_plan(plan, dirs) if test.departs}


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ("latency", {}),
        ({"base": "latency", "name": "mine", "title": "Mine", "repeats": None}, {}),
        ({"base": "latency", "purge": {"method": "deallocate"}}, {}),
        ({"base": "wsat", "write_cache": "off"}, {}),
        ({"base": "latency", "matrix": {"runtime_s": 1}}, {"latency": ["cells"]}),
        ({"base": "wsat", "rounds": {"time_limit_s": 60}}, {"wsat": ["rounds"]}),
        ({"base": "iops", "purge": False}, {"iops": ["purge"]}),
        (
            {"base": "iops", "precondition": {"passes": 1}, "active_range_pct": 5},
            {"iops": ["precondition", "active_range_pct"]},
        ),
        ({"base": "iops", "steady_state": {"range_limit": 0.5}}, {"iops": ["steady_state"]}),
        ({"base": "latency", "matrix": {"runtime_s": 1}, "source": "our own"}, {}),
        # Idle recovery without idling.
        ({"base": "hir", "phases": []}, {"hir": ["phases"]}),
        ({"base": "dirth", "phases": []}, {"dirth": ["phases"]}),
        # Phases by their own names, whatever the test is called.
        ({"base": "dirth", "name": "mine"}, {}),
        (
            {
                "base": "xsr",
                "phases": [{"name": "short", "cells": [{"block_size": "4KiB", "read_pct": 0}], "rounds": {"max": 1}}],
            },
            {"xsr": ["phases"], "xsr-short": ["phases"]},
        ),
        (
            {"name": "x", "cells": [{"block_size": "4KiB", "read_pct": 0, "runtime_s": 1}], "rounds": {"max": 1}},
            {},
        ),
    ],
)
def test_who_changes_what_a_source_prescribes_has_no_result_by_it(entry, expected):
    assert departing([entry]) == expected


@pytest.mark.parametrize("plan", PLANS)
def test_shipped_plans_state_a_source_of_their_own_but_for_short_cells_and_shared_states(plan):
    known = {"demo": {"wsat", "iops"}, "full": {"throughput-128k", "iops", "latency", "dirth", "hir", "ecw"}}
    assert set(departing(plan)) == known.get(plan, set())


def test_a_file_of_the_site_over_a_shipped_test_of_its_name(tmp_path):
    (tmp_path / "iops.yml").write_text("base: iops\nmatrix: {runtime_s: 5}\n")
    (tmp_path / "short.yml").write_text("base: iops\nrounds: {max: 6}\n")
    assert departing(["iops", "short"], [tmp_path]) == {"iops": ["cells"], "short": ["cells", "rounds"]}
    (told,) = load_plan(["short"], [tmp_path])
    assert told.departs.test == "iops" and told.source.startswith("after SNIA SSS PTS-E")


def test_each_cell_of_a_test_is_held_to_the_cell_of_that_name(tmp_path):
    (tmp_path / "grid.yml").write_text(
        "source: a note\neach_cell: true\nmatrix: {read_pct: [100, 0], block_size: 4KiB}\nrounds: {max: 2}\n"
    )
    assert departing([{"base": "grid", "name": "fine"}], [tmp_path]) == {}
    changed = departing([{"base": "grid", "name": "mine", "rounds": {"max": 3}}], [tmp_path])
    assert len(changed) == 2 and set(map(tuple, changed.values())) == {("rounds",)}
