# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The decision of preflight over a fleet: may the run start, and what is told."""

from __future__ import annotations

import datetime
import os

import pytest

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.common import json_schema, schema
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.preflight import decision, findings
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.run_folder import run_record
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.store.quarantine import Quarantined
from ansible_collections.ssdlab.fleet.tests.fixtures import host_answers
from ansible_collections.ssdlab.fleet.tests.unit.plugins.plugin_utils.preflight.fleets import NOW, decide, recorded

OF_RUN = {"run_id": "r1", "run_name": "qualify"}


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
    assert decided.fact()["run"] == expected and decided.fact()["attach"] == {}
    assert decided.fact()["starts"] == ["h1", "h2"]
    assert [(entry["host"], entry["drive"]) for entry in recorded(decided)["asked"]] == [
        ("h1", "S1"),
        ("h2", "S2"),
        ("h2", "S3"),
    ]
    assert {entry["host"]: entry["tests"] for entry in recorded(decided)["asked"]} == {
        "h1": ["wsat", "iops"],
        "h2": ["wsat", "iops"],
    }
    assert recorded(decided)["tests"]["wsat"]["tracked"] == [{"cell": "rand-4k-w100-tc1-qd64", "metric": "write_iops"}]
    assert (
        recorded(decided)["criteria"] == [{"metric": "write_iops", "min": 5}]
        and recorded(decided)["started"] == "2026-11-21T13:00:00Z"
    )


@pytest.mark.parametrize(("mode", "check"), [("plan", False), ("plan", True), ("destructive", True)])
def test_plan_and_check_mode_show_and_keep_nothing(fleet, tmp_path, mode, check):
    decided = decide(fleet(ssd_mode=mode), check=check)
    assert decided.shows_plan and not decided.destructive and decided.findings == [] == decided.fact()["starts"]
    assert "  S1: would erase /dev/xS1 (serial S1, 67.11 MB, 512 B blocks)" in decided.plan_text
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize(
    ("changes", "starts"),
    [
        ({"unreachable": "no route"}, False),
        ({"drives": None}, False),
        ({"drives": []}, False),
        ({"runs": [{**OF_RUN, "state": "running"}]}, True),
        ({"runs": [{**OF_RUN, "state": "finished"}]}, False),
        ({"runs": [{**OF_RUN, "state": "dead"}]}, True),
    ],
)
def test_a_job_starts_where_something_is_left_to_do(fleet, changes, starts):
    decided = decide(
        fleet("h2", ["S2"], ssd_run_id="r1"),
        host_answers.replaced(fleet(ssd_run_id="r1"), **changes),
    )
    assert decided.fact()["starts"] == (["h2", "h1"] if starts else ["h2"])


@pytest.mark.parametrize("mode", ["plan", "destructive"])
def test_a_refused_drive_is_a_finding_in_both_modes(fleet, mode):
    asked = {"ssd_mode": mode, "ssd_refused": "stop"}
    decided = decide(fleet(**asked), fleet("h2", ["S2"], refusals=["mounted"], **asked))
    assert decided.findings == ["h2: drive S2: mounted: no"] and recorded(decided) == {}


def test_an_unreachable_host_is_asked_for_and_stops_nobody(fleet):
    decided = decide(fleet(), fleet("h2", ["S2"], unreachable="no route"))
    assert decided.findings == [] and ("h2", "S2") in [
        (entry["host"], entry["drive"]) for entry in recorded(decided)["asked"]
    ]
    asked = {"ssd_mode": "plan", "ssd_refused": "stop"}
    assert "unreachable" in decide(fleet(**asked), fleet("h2", ["S2"], unreachable="x", **asked)).findings[0]


def test_a_live_run_is_attached_in_spite_of_held_drives(fleet):
    runs = [{"run_id": "r1", "run_name": "qualify", "state": "running"}]
    folder = decide(fleet()).results_dir
    run_record.write_run(
        os.path.join(folder, "r1"),
        {"run": {"id": "r1", "name": "qualify"}, "started": "", "asked": [{"host": "h1", "drive": "S1"}], "tests": {}},
    )
    decided = decide(fleet(refusals=["busy", "held"], runs=runs), fleet("h2", ["S2"]))
    assert decided.findings == [] and decided.run.id == "r1" and decided.fact()["attach"] == {"h1": "running"}


def test_everything_is_told_at_once(fleet):
    decided = decide(
        fleet(drives=[], ssd_plan=["wsat", "ipos"]),
        fleet("h2", ["S1"], refusals=["swap"], ssd_plan=["wsat", "ipos"], ssd_results_dir="/proc/x"),
        fleet("h3", ["S1"], ssd_mode=True),
        host_answers.of("h4", None),
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
        "h5: ssd_parallel_drives: S5 and S5 have one serial number",
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
        "h1: drive S1: test big: cell rand-131072k-w100-tc1-qd1: 1 x 128 MiB do not fit into the ActiveRange "
        "of 67.11 MB"
    )


@pytest.mark.parametrize(("step", "tests"), [("purge", ["purge"]), ("precondition", ["precondition"]), ("tune", [])])
def test_a_single_step_needs_no_plan(fleet, step, tests):
    decided = decide(fleet(ssd_plan=[], ssd_step=step))
    assert decided.findings == [] and list(recorded(decided)["tests"]) == tests


def test_hosts_may_have_different_plans(fleet):
    decided = decide(fleet(ssd_plan=["wsat"]), fleet("h2", ["S2"], ssd_plan=["iops"]))
    assert [entry["tests"] for entry in recorded(decided)["asked"]] == [["wsat"], ["iops"]] and sorted(
        recorded(decided)["tests"]
    ) == ["iops", "wsat"]


def test_a_results_folder_that_cannot_be_written_is_found_before_hours_are_spent(fleet):
    (found,) = decide(fleet(ssd_results_dir="/proc/results")).findings
    assert found.startswith("ssd_results_dir: /proc/results cannot be written on the controller")


@pytest.mark.parametrize(
    ("variable", "value"), [("ssd_parallel_drives", "two"), ("tune_queue", "none"), ("tune_queue", {"a/b": 1})]
)
def test_a_wrong_value_is_one_finding_and_no_crash(fleet, variable, value):
    (found,) = decide(fleet(**{variable: value})).findings
    assert found.startswith(f"h1: {variable}")


WEARING = {
    "ssd_plan": [
        {
            "name": "read",
            "cells": [{"block_size": "4KiB", "read_pct": 100}],
            "rounds": {"max": 1},
            "purge": False,
            "precondition": {"passes": 2},
        }
    ],
    "ssd_criteria": [],
    "model": "M1",
    "ssd_rated_tbw": [{"model": "M*", "tbw": 1}],
}


def test_a_plan_beyond_the_wear_budget_is_refused_and_plan_mode_says_what_it_writes(fleet):
    assert decide(fleet(**WEARING, ssd_wear_budget="1%")).findings == []
    (found,) = decide(fleet(**WEARING, ssd_wear_budget="0.01%")).findings
    assert found.startswith(
        "h1: drive S1: ssd_wear_budget: the plan may write 134.2 MB, more than the 100 MB of the budget; "
    )
    (found,) = decide(fleet(ssd_wear_budget="lots")).findings
    assert found.startswith("h1: ssd_wear_budget: 'lots' must be empty, a share such as 5%")
    text = decide(fleet(**WEARING, ssd_mode="plan")).plan_text
    assert "    writes 134.2 MB, 0.013 % of its rated 1 TB, if it writes at most 524.3 MB/s" in text


def test_the_drives_own_count_of_its_wear_stands_in_plan_mode_and_in_a_refusal(fleet):
    worn = [{"drive": "S1", "used_pct": 12}, {"drive": "S2", "used_pct": None}]
    view = host_answers.replaced(fleet(**WEARING, ssd_mode="plan", drives=("S1", "S2")), wear=worn)
    lines = [line for line in decide(view).plan_text if line.startswith("    writes ")]
    assert ["(12 % used, by its own count), if" in line for line in lines] == [True, False]
    refused = host_answers.replaced(fleet(**WEARING, ssd_wear_budget="0.01%"), wear=worn)
    (found,) = decide(refused).findings
    assert "of the budget; 12 % of its rated life is used already, by its own count; take tests out" in found


@pytest.mark.parametrize(
    ("asked", "allowed"),
    [
        ({"ssd_wear_budget": "90TB"}, [90 * 10**12]),
        ({"ssd_wear_budget": "50%", "ssd_rated_tbw": [{"model": "*", "tbw": 1000}]}, [500 * 10**12]),
        ({}, [None]),
    ],
)
def test_the_record_says_what_the_run_may_write_to_each_drive(fleet, asked, allowed):
    """Preflight goes by an assumed rate: the judge looks at what was written."""
    decided = decide(fleet(**{**WEARING, **asked}))
    assert decided.findings == [] and schema.problems(recorded(decided), json_schema.of(run_record.RunRecord)) == []
    assert [entry.get("wear_budget_bytes") for entry in recorded(decided)["asked"]] == allowed
    # The host measures no disturbed round again once as much is written.
    assert [drive.wear_budget_bytes for drive in decided.plans["h1"].drives] == allowed


def test_what_the_time_budget_leaves_out_is_neither_asked_for_nor_planned_but_told(fleet):
    read = {
        "cells": [{"block_size": "4KiB", "read_pct": 100, "runtime_s": 60}],
        "purge": {"method": "none"},
        "precondition": {"passes": 1},
    }
    plan = [{**read, "name": "short", "rounds": {"max": 5}}, {**read, "name": "long", "rounds": {"max": 60}}]
    decided = decide(fleet(ssd_plan=plan, model="MTFD 1", ssd_criteria=[], ssd_time_budget="10min"))
    assert decided.findings == [] and [entry["tests"] for entry in recorded(decided)["asked"]] == [["short"]]
    assert [entry["left_out_tests"] for entry in recorded(decided)["asked"]] == [["long"]]
    assert [list(entry["left_out_cells"]) for entry in recorded(decided)["asked"]] == [["long"]]
    assert [entry["model"] for entry in recorded(decided)["asked"]] == ["MTFD 1"]
    assert [test.name for test in decided.plans["h1"].drives[0].tests] == ["short"]
    assert decided.plans["h1"].time_budget_s == 600
    assert "  left out by ssd_time_budget (10min per drive): long (up to 1 h)" in decided.plan_text
    # A run that is started at once shows no plan: it warns of it, and its report does, on the page of each drive.
    said = "left out by ssd_time_budget (10min per drive): long (up to 1 h)"
    assert [line for line in decided.warnings if said in line]
    shown = decide(fleet(ssd_plan=plan, ssd_criteria=[], ssd_time_budget="10min", ssd_mode="plan"))
    assert f"  {said}" in shown.plan_text and not [line for line in shown.warnings if said in line]
    assert [(item["host"], item["drive"], item["message"]) for item in recorded(decided)["warnings"]] == [
        ("h1", "S1", said)
    ]
    (found,) = decide(fleet(ssd_plan=plan, ssd_criteria=[], ssd_time_budget="1min")).findings
    assert found.startswith(
        "h1: ssd_time_budget: no test of the plan fits into 1min: the shortest, short, may take 5 min 2 s"
    )


def test_one_host_with_thousands_of_findings_pushes_nobody_elses_away(fleet):
    """It calls ten thousand runs live, and two thousand tools missing."""
    live = [{"run_id": f"r{number}", "run_name": "other", "state": "running"} for number in range(3000)]
    told = decide(fleet("flood", runs=live), fleet("h2", drives=("S2",), refusals=("mounted",))).findings
    assert any(line.startswith("h2: drive S2: mounted") for line in told)
    assert len(told) < 210 and told[-1] == f"flood: and {3000 - findings.MOST_OF_HOST} more findings like these"


@pytest.mark.parametrize("policy", ["attach", "skip", "fail"])
def test_a_night_that_finds_last_nights_run_at_work(fleet, policy):
    """Skipped or refused before anything else is looked at, and nothing would be written."""
    first = decide(fleet())
    run_record.write_run(first.run_folder, recorded(first))
    known = [{"run_id": first.run.id, "run_name": "qualify", "state": "running"}]
    decided = decision.decide(
        decision.Request([fleet(runs=known, ssd_overlap=policy)], False, NOW + datetime.timedelta(days=1))
    )
    told = {"attach": decided.warnings[0:1], "skip": [decided.skipped], "fail": decided.findings[0:1]}[policy]
    assert [f"un {first.run.id} is still at work on h1" in line for line in told] == [True]
    assert decided.destructive == (policy != "skip") and bool(decided.findings) == (policy == "fail")
    assert decided.fact()["skipped"] == decided.skipped and decided.fact()["run"]["id"] == first.run.id
    assert decided.fact()["attached"] == ("".join(told) if policy == "attach" else "")


def test_a_host_whose_drives_are_all_in_quarantine_stops_nobody_and_its_drives_are_still_asked_for(fleet):
    mark = Quarantined("qualify", "serial  S1", "S1", "h1", "S1", 3, "r3", "wsat: write_iops 3 < 5")
    views = [fleet(), fleet("h2", ["S2"])]
    decided = decision.decide(decision.Request(views, False, NOW, [mark]))
    assert decided.findings == [] and set(decided.plans) == {"h2"}
    assert decided.fact()["left_out"] == {"h1": ["S1"]}
    asked = {(entry["host"], entry["drive"]): entry.get("left_out", "") for entry in recorded(decided)["asked"]}
    assert asked[("h2", "S2")] == "" and asked[("h1", "S1")].startswith("quarantined: failed 3 nights in a row")
    assert [line for line in decided.leaves if "S1" in line and "quarantined" in line]
    assert schema.problems(recorded(decided), json_schema.of(run_record.RunRecord)) == []


def preferring(view, size_bytes):
    """The view of a host whose drives prefer writes of a size."""
    return host_answers.with_identity(view, minimum_io_size_bytes=size_bytes)


PREFERRED = [{"name": "own", "precondition": False, "cells": [{"block_size": "preferred", "read_pct": 0}]}]


def test_the_record_says_which_size_each_drive_prefers(fleet):
    one, two = preferring(fleet(ssd_plan=PREFERRED), 16_384), preferring(fleet("h2", ["S2"], ssd_plan=PREFERRED), 512)
    decided = decide(one, two)
    assert decided.findings == []
    assert [entry["preferred_write_bytes"] for entry in recorded(decided)["asked"]] == [16_384, 4_096]
    plain = recorded(decide(preferring(fleet(), 16_384)))["asked"]
    assert not any("preferred_write_bytes" in entry for entry in plain)


def test_a_run_that_is_under_way_keeps_the_size_that_it_began_with(fleet):
    first = decide(preferring(fleet(ssd_plan=PREFERRED), 16_384))
    run_record.write_run(first.run_folder, recorded(first))
    runs = [{"run_id": first.run.id, "run_name": "qualify", "state": "running"}]
    # Its purge has formatted the drive since.
    again = decide(preferring(fleet(ssd_plan=PREFERRED, runs=runs), 65_536))
    assert again.findings == [] and again.run.attach == {"h1": "running"}
    merged = run_record.merge_run(recorded(first), recorded(again))
    assert [entry["preferred_write_bytes"] for entry in merged["asked"]] == [16_384]
    # One that begins anew has that of now.
    anew = decide(preferring(fleet(ssd_plan=PREFERRED, ssd_run_id=first.run.id), 65_536))
    merged = run_record.merge_run(recorded(first), recorded(anew))
    assert [entry["preferred_write_bytes"] for entry in merged["asked"]] == [65_536]


def test_beside_another_run_a_drive_that_it_does_not_hold_still_shows_why_it_is_refused(fleet):
    mounted, opened = ({"code": code, "message": f"it is {code}"} for code in ("mounted", "opened"))
    host = fleet(drives=["S1", "S2"], ssd_mode="plan", ssd_refused="stop")
    for place, refusals in enumerate([[opened, mounted], [mounted]]):
        host = host_answers.with_drive(host, place, eligible=False, refusals=refusals)
    live = host._replace(runs=host_answers.of("h1", {}, [{**OF_RUN, "run_id": "r9", "state": "running"}]).runs)
    found = decide(live).findings
    assert any("run r9" in line for line in found)
    assert [line.split(":")[1].strip() for line in found if "mounted" in line] == ["drive S2"], found


def test_totals_count_no_drive_that_is_refused(fleet):
    read = {"cells": [{"block_size": "4KiB", "read_pct": 100, "runtime_s": 60}], "rounds": {"max": 5}}
    plan = [{**read, "name": "short", "purge": {"method": "none"}, "precondition": {"passes": 1}}]
    host = fleet(drives=["S1", "S2", "S3"], ssd_mode="plan", ssd_plan=plan, ssd_criteria=[], ssd_refused="stop")
    host = host_answers.with_drive(host, 0, eligible=False, refusals=[{"code": "mounted", "message": "on /"}])
    (line,) = [line for line in decide(host).plan_text if line.startswith("  all ")]
    assert line.startswith("  all 2 drives: ")
