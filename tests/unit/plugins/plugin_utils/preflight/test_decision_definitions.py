# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One name means one test for a run: what later plays may change of it, and what preflight refuses."""

from __future__ import annotations

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.run import digests
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan import hostplan
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.preflight import host_tests
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.run_folder import run_record
from ansible_collections.ssdlab.fleet.tests.unit.plugins.plugin_utils.preflight.fleets import QUICK, decide, recorded

CHANGES = {
    "cells": {"cells": [{"block_size": "8KiB", "read_pct": 0, "runtime_s": 2}, *QUICK["cells"]]},
    "rounds": {"rounds": {"max": 9}},
    "steady_state": {"steady_state": {**QUICK["steady_state"], "window": 4}},
    "runtimes_s": {"cells": [{"block_size": "4KiB", "read_pct": 0, "runtime_s": 3}]},
    "purge": {"purge": {"method": "overwrite"}},
    "precondition": {"precondition": True},
    "after_steady_rounds": {"after_steady_rounds": 1},
    "write_cache": {"write_cache": "off"},
}


def start(fleet, *views):
    """A first play of the run r1, of which the controller keeps run.json. Returns its decision."""
    decided = decide(*views)
    assert decided.findings == []
    run_record.write_run(decided.run_folder, recorded(decided))
    return decided


@pytest.mark.parametrize("key", CHANGES)
def test_a_run_keeps_the_definitions_that_it_was_started_with(fleet, key):
    start(fleet, fleet(ssd_plan=[QUICK], ssd_run_id="r1"))
    (found,) = decide(fleet(ssd_plan=[{**QUICK, **CHANGES[key]}], ssd_run_id="r1")).findings
    assert (
        found
        == f"h1: run r1 was started with another definition of test quick (differs in: {key}); use another ssd_run_id"
    )
    assert decide(fleet(ssd_plan=[{**QUICK, **CHANGES[key]}], ssd_run_id="r2")).findings == []


def phased(most_us):
    """A test of which a phase goes on at a point of the curve of another."""
    sweep = {"matrix": {"block_size": ["4KiB"], "read_pct": [0], "threads": [1], "queue_depth": [1, 2], "runtime_s": 1}}
    point = {"of": "sweep", "take": "most", "mean_latency_below_us": most_us}
    at_it = {"cells": [{"block_size": "4KiB", "read_pct": 0, "point": point, "runtime_s": 1}]}
    phases = [{"name": "sweep", "rounds": {"max": 1}, **sweep}, {"name": "at-it", "rounds": {"max": 1}, **at_it}]
    return [{**QUICK, "phases": phases}]


def test_the_rule_of_a_point_is_one_for_all_hosts_and_to_the_end_of_a_run(fleet):
    """A cell is named after the point, not after its rule."""
    hosts = fleet(ssd_plan=phased(5000)), fleet("h2", ["S2"], ssd_plan=phased(100))
    assert any("differs in: points" in line for line in decide(*hosts).findings), decide(*hosts).findings
    start(fleet, fleet(ssd_plan=phased(5000), ssd_run_id="r1"))
    (found,) = decide(fleet(ssd_plan=phased(100), ssd_run_id="r1")).findings
    assert "differs in: points" in found


def test_the_definition_on_the_host_counts_where_the_controller_has_no_record(fleet):
    asked = host_tests.of_hosts([fleet(ssd_plan=[QUICK])])["h1"]
    plan = hostplan.build(
        asked.variables,
        asked.tests,
        run={"id": "r1", "name": "qualify"},
        host="h1",
        boot_id="b",
        drives=fleet().drives_to_plan(),
        engine_version="0",
    )
    known = [
        {
            "run_id": "r1",
            "run_name": "qualify",
            "state": "finished",
            "definitions": digests.digests_of_tests(plan),
        }
    ]
    assert decide(fleet(runs=known, ssd_plan=[QUICK], ssd_run_id="r1")).findings == []
    changed = {**QUICK, **CHANGES["rounds"], **CHANGES["cells"]}
    (found,) = decide(fleet(runs=known, ssd_plan=[changed], ssd_run_id="r1")).findings
    assert "h1: run r1 was started with another definition of test quick (differs in: rounds, cells)" in found
    (found,) = decide(fleet(runs=known, ssd_plan=[QUICK], ssd_run_id="r1", purge_method="none")).findings
    assert "differs in: purge" in found


def test_criteria_titles_and_further_tests_may_change(fleet):
    start(fleet, fleet(ssd_plan=[QUICK], ssd_run_id="r1"))
    later = fleet(
        ssd_plan=[{**QUICK, "title": "New"}, "wsat"], ssd_run_id="r1", ssd_criteria=[{"metric": "write_iops", "min": 6}]
    )
    assert decide(later).findings == []


@pytest.mark.parametrize(
    ("later", "lost"),
    [
        ({}, None),
        ({"ssd_criteria": [{"metric": "write_iops", "min": 5}, {"metric": "iops", "min": 1}]}, None),
        ({"ssd_criteria": []}, "criterion write_iops min 5"),
        ({"ssd_criteria": [{"metric": "write_iops", "min": 4}]}, "criterion write_iops min 5"),
        ({"ssd_unknown_causes": "warn"}, "ssd_unknown_causes disturb"),
        ({"ssd_criteria": [], "ssd_step": "purge"}, None),
    ],
)
def test_a_play_that_forgot_what_the_run_is_held_to_is_told(fleet, later, lost):
    """All drives of the run would pass by what the last slice of it asks for."""
    first = {"ssd_plan": [QUICK], "ssd_run_id": "r1", "ssd_unknown_causes": "disturb"}
    start(fleet, fleet(**first))
    decided = decide(fleet("h2", ["S2"], **{**first, **later}))
    said = [line for line in decided.warnings if "this play drops criteria" in line]
    assert decided.findings == [] and bool(said) == bool(lost)
    assert not lost or f"for all of its drives: {lost}." in said[0]


def test_a_play_that_forgot_what_the_health_of_a_hosts_drives_is_held_to_is_told(fleet):
    first = {"ssd_plan": [QUICK], "ssd_run_id": "r1"}
    start(fleet, fleet(**first), fleet("h2", ["S2"], **first, ssd_health_criteria="none"))
    later = fleet(**first, ssd_health_criteria="none"), fleet("h2", ["S2"], **first, ssd_health_criteria="none")
    (said,) = [line for line in decide(*later).warnings if "this play drops" in line]
    assert said.startswith("h1: ") and "health criteria that run r1 began with, for all drives of this host: " in said
    assert "media_errors max 0; " in said


def test_one_name_means_one_test_for_all_hosts_of_a_run(fleet):
    other = {**QUICK, **CHANGES["steady_state"]}
    expected = (
        "h2: test quick: is defined differently on h1 (differs in: steady_state); give the two definitions "
        "different names"
    )
    assert decide(fleet(ssd_plan=[QUICK]), fleet("h2", ["S2"], ssd_plan=[other])).findings == [expected]
    start(fleet, fleet(ssd_plan=[QUICK], ssd_run_id="r1"))
    assert decide(fleet("h2", ["S2"], ssd_plan=[other], ssd_run_id="r1")).findings == [expected]
    assert decide(fleet("h2", ["S2"], ssd_plan=[{**other, "name": "quick4"}], ssd_run_id="r1")).findings == []


def test_a_single_step_may_have_other_settings_on_each_host(fleet):
    both = [fleet(ssd_step="precondition"), fleet("h2", ["S2"], ssd_step="precondition", precondition_passes=3)]
    assert decide(*both).findings == []


def test_a_damaged_record_is_told(fleet, tmp_path):
    (tmp_path / "results" / "r1").mkdir(parents=True)
    (tmp_path / "results" / "r1" / "run.json").write_text("{")
    (found,) = decide(fleet(ssd_run_id="r1")).findings
    assert "r1/run.json is damaged" in found and "another ssd_run_id" in found
