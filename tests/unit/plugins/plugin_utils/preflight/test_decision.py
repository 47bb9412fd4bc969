# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import datetime
import os

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.run import summary
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.common import schema
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.fleet import packages
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan import hostplan
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.preflight import decision, run_json
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.preflight.findings import View
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.results import run_record
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.store.quarantine import Mark

NOW = datetime.datetime(2026, 11, 21, 13, 0, 0, tzinfo=datetime.timezone.utc)
FACTS = {"boot_id": "b", "tools": {"fio": {"path": "/usr/bin/fio", "version": "3.33"}}}


@pytest.fixture
def fleet(tmp_path):
    """A factory of views with good answers, unless told otherwise."""

    def make(name="h1", drives=("S1",), refusals=(), runs=(), **variables):
        unreachable, model = variables.pop("unreachable", ""), variables.pop("model", None)
        asked = {
            "ssd_drives": [{"serial": serial} for serial in drives],
            "ssd_plan": "demo",
            "ssd_step": "qualify",
            "ssd_mode": "destructive",
            "ssd_run_name": "qualify",
            "ssd_run_id": "",
            "ssd_results_dir": str(tmp_path / "results"),
            "ssd_criteria": [{"metric": "write_iops", "min": 5}],
            "ssd_tests_dirs": [],
            "ssd_parallel_drives": 1,
            "ssd_assumed_write_mib_s": 500,
            "ssd_fio_min_version": "3.28",
            **variables,
        }
        if unreachable:
            return View(name, asked, unreachable=unreachable)
        entries = [
            {
                "selector": {"serial": serial},
                "drive": serial,
                "path": "/dev/x" + serial,
                "identity": {"serial": serial, "model": model, "size_bytes": 64 << 20, "logical_block_size_bytes": 512},
                "eligible": not refusals,
                "refusals": [{"code": code, "message": "no"} for code in refusals],
            }
            for serial in drives
        ]
        return View(name, asked, list(runs), FACTS, entries)

    return make


def decide(*views, check=False):
    return decision.decide(views, check, NOW)


def test_a_good_fleet_may_start(fleet, tmp_path):
    decided = decide(fleet(), fleet("h2", ["S2", "S3"]))
    assert decided.findings == [] and decided.destructive and not decided.shows_plan
    assert decided.run_folder == str(tmp_path / "results" / "20261121T130000Z-qualify")
    expected = {
        "id": "20261121T130000Z-qualify",
        "name": "qualify",
        "results_dir": str(tmp_path / "results"),
        "destructive": True,
    }
    assert decided.result()["ssd_run"] == expected and decided.result()["attach"] == {}
    assert [(entry["host"], entry["drive"]) for entry in decided.record["asked"]] == [
        ("h1", "S1"),
        ("h2", "S2"),
        ("h2", "S3"),
    ]
    assert {entry["host"]: entry["tests"] for entry in decided.record["asked"]} == {
        "h1": ["wsat", "iops"],
        "h2": ["wsat", "iops"],
    }
    assert decided.record["tests"]["wsat"]["tracked"] == [{"cell": "rand-4k-w100-tc1-qd32", "metric": "write_iops"}]
    assert (
        decided.record["criteria"] == [{"metric": "write_iops", "min": 5}]
        and decided.record["started"] == "2026-11-21T13:00:00Z"
    )


@pytest.mark.parametrize(("mode", "check"), [("plan", False), ("plan", True), ("destructive", True)])
def test_plan_and_check_mode_show_and_keep_nothing(fleet, tmp_path, mode, check):
    decided = decide(fleet(ssd_mode=mode), check=check)
    assert decided.shows_plan and not decided.destructive and decided.findings == []
    assert "  S1: would erase /dev/xS1 (serial S1, 64 MiB, 512 B blocks)" in decided.plan_text
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize("mode", ["plan", "destructive"])
def test_a_refused_drive_is_a_finding_in_both_modes(fleet, mode):
    decided = decide(fleet(ssd_mode=mode), fleet("h2", ["S2"], refusals=["mounted"], ssd_mode=mode))
    assert decided.findings == ["h2: drive S2: mounted: no"] and decided.record == {}


def test_an_unreachable_host_is_asked_for_and_stops_nobody(fleet):
    decided = decide(fleet(), fleet("h2", ["S2"], unreachable="no route"))
    assert decided.findings == [] and ("h2", "S2") in [
        (entry["host"], entry["drive"]) for entry in decided.record["asked"]
    ]
    assert (
        "unreachable"
        in decide(fleet(ssd_mode="plan"), fleet("h2", ["S2"], unreachable="x", ssd_mode="plan")).findings[0]
    )


def test_a_live_run_is_attached_in_spite_of_held_drives(fleet):
    runs = [{"run_id": "r1", "run_name": "qualify", "state": "running"}]
    folder = decide(fleet()).results_dir
    run_record.write_run(
        os.path.join(folder, "r1"),
        {"run": {"id": "r1", "name": "qualify"}, "started": "", "asked": [{"host": "h1", "drive": "S1"}], "tests": {}},
    )
    decided = decide(fleet(refusals=["busy", "held"], runs=runs), fleet("h2", ["S2"]))
    assert decided.findings == [] and decided.run.id == "r1" and decided.result()["attach"] == {"h1": "running"}


def test_everything_is_told_at_once(fleet):
    decided = decide(
        fleet(drives=[], ssd_plan=["wsat", "ipos"]),
        fleet("h2", ["S1"], refusals=["swap"], ssd_plan=["wsat", "ipos"], ssd_results_dir="/proc/x"),
        fleet("h3", ["S1"], ssd_mode=True),
        View("h4", None),
        fleet("h5", ["S5", "S5"], ssd_parallel_drives=2),
    )
    text = "\n".join(decided.findings)
    same = "h2: drive S1: duplicate: is the same drive as that of h3"
    for expected in (
        "h1: ssd_drives: no drive",
        "h2: drive S1: swap",
        "ssd_mode: True",
        same,
        "h4: could not",
        "h5: ssd_parallel_drives: S5 and S5 are",
    ):
        assert expected in text
    assert (
        "h1, h2: ssd_plan[1]: no test named 'ipos'; did you mean iops?" in text
        and "ssd_results_dir: must be the same" in text
    )


def test_an_impossible_cell_names_host_drive_and_cell(fleet):
    plan = [{"name": "big", "cells": [{"block_size": "128MiB", "read_pct": 0}], "precondition": False}]
    (found,) = decide(fleet(ssd_plan=plan)).findings
    assert found == (
        "h1: drive S1: test big: cell rand-131072k-w100-tc1-qd1: 1 x 134217728 B do not fit into the ActiveRange "
        "of 67108864 B"
    )


@pytest.mark.parametrize(("step", "tests"), [("purge", ["purge"]), ("precondition", ["precondition"]), ("tune", [])])
def test_a_single_step_needs_no_plan(fleet, step, tests):
    decided = decide(fleet(ssd_plan=[], ssd_step=step))
    assert decided.findings == [] and list(decided.record["tests"]) == tests


def test_hosts_may_have_different_plans(fleet):
    decided = decide(fleet(ssd_plan=["wsat"]), fleet("h2", ["S2"], ssd_plan=["iops"]))
    assert [entry["tests"] for entry in decided.record["asked"]] == [["wsat"], ["iops"]] and sorted(
        decided.record["tests"]
    ) == ["iops", "wsat"]


def test_a_results_folder_that_cannot_be_written_is_found_before_hours_are_spent(fleet):
    (found,) = decide(fleet(ssd_results_dir="/proc/results")).findings
    assert found.startswith("ssd_results_dir: /proc/results cannot be written on the controller")


QUICK = {
    "name": "quick",
    "cells": [{"block_size": "4KiB", "read_pct": 0, "runtime_s": 2}],
    "rounds": {"max": 5},
    "steady_state": {
        "tracked": [{"block_size": "4KiB", "read_pct": 0, "metric": "write_iops"}],
        "min_capacity_multiple": 0,
        "confirm_windows": 0,
    },
    "precondition": False,
}
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
    run_record.write_run(decided.run_folder, decided.record)
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


def test_the_definition_on_the_host_counts_where_the_controller_has_no_record(fleet):
    plan = hostplan.build(
        run_json.host_variables(fleet(ssd_plan=[QUICK]).asked),
        run={"id": "r1", "name": "qualify"},
        host="h1",
        boot_id="b",
        drives=fleet().drives,
        engine_version="0",
    )
    known = [{"run_id": "r1", "run_name": "qualify", "state": "finished", "definitions": summary.definitions(plan)}]
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
        ({"ssd_unknown_causes": "warn"}, "ssd_unknown_causes spoil"),
        ({"ssd_criteria": [], "ssd_step": "purge"}, None),
    ],
)
def test_a_play_that_forgot_what_the_run_is_held_to_is_told(fleet, later, lost):
    """All drives of the run would pass by what the last slice of it asks for."""
    first = {"ssd_plan": [QUICK], "ssd_run_id": "r1", "ssd_unknown_causes": "spoil"}
    start(fleet, fleet(**first))
    decided = decide(fleet("h2", ["S2"], **{**first, **later}))
    said = [line for line in decided.warnings if "what all drives of run" in line]
    assert decided.findings == [] and bool(said) == bool(lost) and (not lost or f"judged by: {lost}." in said[0])


def test_one_name_means_one_test_for_all_hosts_of_a_run(fleet):
    other = {**QUICK, **CHANGES["steady_state"]}
    expected = (
        "h2: test quick: is defined in another way on h1 (differs in: steady_state); give the two definitions "
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


@pytest.mark.parametrize(
    ("variable", "value"), [("ssd_parallel_drives", "two"), ("tune_queue", "none"), ("tune_queue", {"a/b": 1})]
)
def test_a_wrong_value_is_one_finding_and_no_crash(fleet, variable, value):
    (found,) = decide(fleet(**{variable: value})).findings
    assert found.startswith(f"h1: {variable}")


ONE_CELL = "rand-4k-w100-tc1-qd1"


@pytest.mark.parametrize(
    ("criterion", "expected"),
    [
        (
            {"test": "nope", "metric": "write_iops"},
            "criterion nope write_iops min 1: test 'nope' names no test of any plan (tests: quick)",
        ),
        ({"test": "qiuck", "metric": "write_iops"}, "did you mean quick?"),
        (
            {"metric": "wirte_iops"},
            "criterion wirte_iops min 1: 'wirte_iops' is no metric; did you mean write_iops? (known: ",
        ),
        ({"metric": "p99_latency_us"}, "'p99_latency_us' is no metric"),
        ({"metric": "write_p98_latency_us"}, "'write_p98_latency_us' is no metric"),
        (
            {"metric": "read_iops"},
            "h1: ssd_criteria: criterion read_iops min 1: quick will give no read_iops; a test reports the figures of",
        ),
        ({"metric": "iops", "cell": "rand-9k"}, "quick will give no iops of cell rand-9k"),
        (
            {"metric": "iops", "model": "MTDF*"},
            "criterion iops min 1 (model MTDF*): model 'MTDF*' fits no drive (models: MTFD 1); it is a shell pattern",
        ),
        ({"metric": "iops", "test": "quick", "model": "MTFD*", "cell": ONE_CELL}, None),
        ({"metric": "write_p99_99_latency_us"}, None),
        ({"metric": "max_latency_us", "test": None, "model": None, "cell": None}, None),
    ],
)
def test_a_criterion_that_decides_nothing_is_found_before_hours_are_spent(fleet, criterion, expected):
    limit = {"max": 5000} if "latency" in criterion["metric"] else {"min": 1}
    found = decide(fleet(ssd_plan=[QUICK], model="MTFD 1", ssd_criteria=[{**limit, **criterion}])).findings
    assert len(found) == bool(expected) and (expected or "") in "".join(found)


def test_a_model_may_be_that_of_a_host_that_did_not_answer(fleet):
    criteria = [{"metric": "iops", "min": 1, "model": "X*"}]
    assert (
        decide(
            fleet(model="M", ssd_criteria=criteria), fleet("h2", ["S2"], unreachable="no route", ssd_criteria=criteria)
        ).findings
        == []
    )
    assert (
        len(decide(fleet(model="M", ssd_criteria=criteria), fleet("h2", ["S2"], ssd_criteria=criteria)).findings) == 1
    )


def test_a_criterion_may_be_about_another_hosts_plan(fleet):
    criteria = [{"metric": "write_iops", "min": 1, "test": "wsat"}]
    both = [
        fleet(ssd_plan=["wsat"], ssd_criteria=criteria),
        fleet("h2", ["S2"], ssd_plan=[QUICK], ssd_criteria=criteria),
    ]
    assert decide(*both).findings == []
    assert "names no test of any plan (tests: quick)" in decide(both[1]).findings[0]


def test_files_of_criteria_are_those_of_the_run_and_of_each_plan(fleet, tmp_path):
    (tmp_path / "site" / "criteria").mkdir(parents=True)
    path = tmp_path / "site" / "criteria" / "m.yml"
    path.write_text("model: M*\nsource: sheet 3\ncriteria: [{test: quick, metric: write_iops, min: 7}]")
    decision = decide(
        fleet(
            ssd_plan=[QUICK],
            model="M1",
            ssd_tests_dirs=[str(tmp_path / "site")],
            ssd_criteria=[{"metric": "iops", "min": 5}],
        )
    )
    of_file = {"model": "M*", "source": "sheet 3", "test": "quick", "metric": "write_iops", "min": 7}
    assert decision.findings == [] and decision.record["criteria"] == decision.plans["h1"]["criteria"] == [
        of_file,
        {"metric": "iops", "min": 5},
    ]
    assert [entry["engine"] for entry in decision.record["asked"]] == ["libaio"]
    path.write_text("model: M*")
    found = decide(fleet(ssd_plan=[QUICK], model="M1", ssd_tests_dirs=[str(tmp_path / "site")])).findings
    assert any("m.yml (model M*): criteria: is missing" in text for text in found) and any(
        "m.yml (model M*): source: is missing" in text for text in found
    )


def test_a_relative_criterion_needs_packages_that_preflight_asks_for(fleet, monkeypatch):
    criteria = [{"metric": "write_iops", "min_of_median": 0.9}]
    assert decide(fleet(ssd_plan=[QUICK], ssd_criteria=criteria)).findings == []
    monkeypatch.setattr(packages, "PACKAGES", ("no_such_package",))
    assert "lacks no_such_package; run: " in "".join(decide(fleet(ssd_plan=[QUICK], ssd_criteria=criteria)).findings)
    assert decide(fleet(ssd_plan=[QUICK])).findings == []


def test_criteria_for_the_whole_fleet_do_not_stop_a_part_of_it(fleet):
    criteria = [{"metric": "iops", "min": 1, "model": model} for model in ("A*", "B*")]
    assert decide(fleet(model="A1", ssd_criteria=criteria)).findings == []
    assert "fits no drive" in decide(fleet(model="C1", ssd_criteria=criteria)).findings[0]


def test_plan_mode_says_what_each_drive_will_be_held_to(fleet):
    criteria = [{"metric": "write_iops", "min": 5, "model": "A*"}]
    text = decide(
        fleet(model="A1", ssd_criteria=criteria, ssd_mode="plan"),
        fleet("h2", ["S2"], ssd_criteria=criteria, ssd_mode="plan"),
    ).plan_text
    own = text.index("h2: 1 drive, 1 at a time")
    assert "    criterion write_iops min 5 (model A*)" in text[:own] and "    no criterion applies" in text[own:]
    assert text.count("    no criterion applies") == 1
    assert not [line for line in decide(fleet(ssd_step="purge", ssd_mode="plan")).plan_text if "criteri" in line]


def test_a_plan_beyond_the_wear_budget_is_refused_and_plan_mode_says_what_it_writes(fleet):
    plan = [
        {
            "name": "read",
            "cells": [{"block_size": "4KiB", "read_pct": 100}],
            "rounds": {"max": 1},
            "purge": False,
            "precondition": {"passes": 2},
        }
    ]
    given = {"ssd_plan": plan, "ssd_criteria": [], "model": "M1", "ssd_rated_tbw": [{"model": "M*", "tbw": 1}]}
    assert decide(fleet(**given, ssd_wear_budget="1%")).findings == []
    (found,) = decide(fleet(**given, ssd_wear_budget="0.01%")).findings
    assert found.startswith(
        "h1: drive S1: ssd_wear_budget: the plan may write 128 MiB, more than the 95.37 MiB of the budget; "
    )
    (found,) = decide(fleet(ssd_wear_budget="lots")).findings
    assert found.startswith("h1: ssd_wear_budget: 'lots' must be empty, a share such as 5%")
    text = decide(fleet(**given, ssd_mode="plan")).plan_text
    assert "    writes 128 MiB, 0.013 % of its rated 1 TB, if it writes 500 MiB/s at most" in text


def test_what_the_time_budget_leaves_out_is_neither_asked_for_nor_planned_but_told(fleet):
    read = {
        "cells": [{"block_size": "4KiB", "read_pct": 100, "runtime_s": 60}],
        "purge": {"method": "none"},
        "precondition": {"passes": 1},
    }
    plan = [{**read, "name": "short", "rounds": {"max": 5}}, {**read, "name": "long", "rounds": {"max": 60}}]
    decided = decide(fleet(ssd_plan=plan, model="MTFD 1", ssd_criteria=[], ssd_time_budget="10min"))
    assert decided.findings == [] and [entry["tests"] for entry in decided.record["asked"]] == [["short"]]
    assert [entry["left_out_tests"] for entry in decided.record["asked"]] == [["long"]]
    assert [entry["model"] for entry in decided.record["asked"]] == ["MTFD 1"]
    assert [test["name"] for test in decided.plans["h1"]["drives"][0]["tests"]] == ["short"]
    assert "  left out by ssd_time_budget (10min a drive): long (up to 1 h)" in decided.plan_text
    (found,) = decide(fleet(ssd_plan=plan, ssd_criteria=[], ssd_time_budget="1min")).findings
    assert found.startswith(
        "h1: ssd_time_budget: no test of the plan fits into 1min: the shortest, short, may take 0.1 h"
    )


def test_one_host_with_thousands_of_findings_pushes_nobody_elses_away(fleet):
    """It calls ten thousand runs live, and two thousand tools missing."""
    live = [{"run_id": f"r{number}", "run_name": "other", "state": "running"} for number in range(3000)]
    told = decide(fleet("flood", runs=live), fleet("h2", drives=("S2",), refusals=("mounted",))).findings
    assert any(line.startswith("h2: drive S2: mounted") for line in told)
    assert len(told) < 210 and told[-1] == f"flood: and {3000 - decision.MOST_OF_HOST} more findings like these"


@pytest.mark.parametrize("policy", ["attach", "skip", "fail"])
def test_a_night_that_finds_last_nights_run_at_work(fleet, policy):
    """Skipped or refused before anything else is looked at, and nothing would be written."""
    first = decide(fleet())
    run_record.write_run(first.run_folder, first.record)
    known = [{"run_id": first.run.id, "run_name": "qualify", "state": "running"}]
    decided = decision.decide([fleet(runs=known, ssd_overlap=policy)], False, NOW + datetime.timedelta(days=1))
    told = {"attach": decided.warnings[0:1], "skip": [decided.skipped], "fail": decided.findings[0:1]}[policy]
    assert [f"un {first.run.id} is still at work on h1" in line for line in told] == [True]
    assert decided.destructive == (policy != "skip") and bool(decided.findings) == (policy == "fail")
    assert decided.result()["why_skipped"] == decided.skipped and decided.result()["ssd_run"]["id"] == first.run.id


def test_a_host_whose_drives_are_all_in_quarantine_stops_nobody_and_its_drives_are_still_asked_for(fleet):
    mark = Mark("qualify", "serial  S1", "S1", "h1", "S1", 3, "r3", "wsat: write_iops 3 < 5")
    views = [fleet(), fleet("h2", ["S2"])]
    decided = decision.decide(views, False, NOW, [mark])
    assert decided.findings == [] and set(decided.plans) == {"h2"}
    assert decided.result()["left_out"] == {"h1": ["S1"]}
    asked = {(entry["host"], entry["drive"]): entry.get("left_out", "") for entry in decided.record["asked"]}
    assert asked[("h2", "S2")] == "" and asked[("h1", "S1")].startswith("quarantined: failed 3 nights in a row")
    assert [line for line in decided.plan_text + decided.warnings if "S1" in line and "quarantined" in line]
    assert schema.problems(decided.record, schema.load("run")) == []


def preferring(view, size_bytes):
    """The view of a host whose drives prefer writes of a size."""
    for entry in view.drives:
        entry["identity"]["minimum_io_size_bytes"] = size_bytes
    return view


PREFERRED = [{"name": "own", "precondition": False, "cells": [{"block_size": "preferred", "read_pct": 0}]}]


def test_the_record_says_which_size_each_drive_prefers(fleet):
    one, two = preferring(fleet(ssd_plan=PREFERRED), 16_384), preferring(fleet("h2", ["S2"], ssd_plan=PREFERRED), 512)
    decided = decide(one, two)
    assert decided.findings == []
    assert [entry["preferred_write_bytes"] for entry in decided.record["asked"]] == [16_384, 4_096]
    plain = decide(preferring(fleet(), 16_384)).record["asked"]
    assert not any("preferred_write_bytes" in entry for entry in plain)


def test_a_run_that_is_under_way_keeps_the_size_that_it_began_with(fleet):
    first = decide(preferring(fleet(ssd_plan=PREFERRED), 16_384))
    run_record.write_run(first.run_folder, first.record)
    runs = [{"run_id": first.run.id, "run_name": "qualify", "state": "running"}]
    # Its purge has formatted the drive since.
    again = decide(preferring(fleet(ssd_plan=PREFERRED, runs=runs), 65_536))
    assert again.findings == [] and again.run.attach == {"h1": "running"}
    merged = run_record.merge_run(first.record, again.record)
    assert [entry["preferred_write_bytes"] for entry in merged["asked"]] == [16_384]
    # One that begins anew has that of now.
    anew = decide(preferring(fleet(ssd_plan=PREFERRED, ssd_run_id=first.run.id), 65_536))
    merged = run_record.merge_run(first.record, anew.record)
    assert [entry["preferred_write_bytes"] for entry in merged["asked"]] == [65_536]
