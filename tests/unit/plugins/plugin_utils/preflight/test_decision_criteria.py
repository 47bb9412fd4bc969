# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Criteria as preflight sees them, before hours are spent."""

from __future__ import annotations

import pytest

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.peers import statistics_requirements
from ansible_collections.ssdlab.fleet.tests.unit.plugins.plugin_utils.preflight.fleets import QUICK, decide, recorded

ONE_CELL = "rand-4k-w100-tc1-qd1"


@pytest.mark.parametrize(
    ("criterion", "expected"),
    [
        (
            {"test": "nope", "metric": "write_iops"},
            "criterion nope write_iops min 1: no plan has a test named 'nope' (tests: quick)",
        ),
        ({"test": "qiuck", "metric": "write_iops"}, "did you mean quick?"),
        (
            {"metric": "wirte_iops"},
            "criterion wirte_iops min 1: 'wirte_iops' is not a metric; did you mean write_iops? (known: ",
        ),
        ({"metric": "p99_latency_us"}, "'p99_latency_us' is not a metric"),
        ({"metric": "write_p98_latency_us"}, "'write_p98_latency_us' is not a metric"),
        (
            {"metric": "read_iops"},
            "h1: ssd_criteria: criterion read_iops min 1: quick does not report read_iops; a test reports the figures",
        ),
        ({"metric": "iops", "cell": "rand-9k"}, "quick does not report iops of cell rand-9k"),
        (
            {"metric": "iops", "model": "MTDF*"},
            "criterion iops min 1 (model MTDF*): model 'MTDF*' matches no drive (models: MTFD 1); it is a shell",
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
    assert "no plan has a test named 'wsat' (tests: quick)" in decide(both[1]).findings[0]


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
    assert decision.findings == [] and recorded(decision)["criteria"] == decision.plans["h1"].criteria == [
        of_file,
        {"metric": "iops", "min": 5},
    ]
    assert [entry["engine"] for entry in recorded(decision)["asked"]] == ["libaio"]
    path.write_text("model: M*")
    found = decide(fleet(ssd_plan=[QUICK], model="M1", ssd_tests_dirs=[str(tmp_path / "site")])).findings
    assert any("m.yml (model M*): criteria: is missing" in text for text in found) and any(
        "m.yml (model M*): source: is missing" in text for text in found
    )


def test_a_relative_criterion_needs_packages_that_preflight_asks_for(fleet, monkeypatch):
    criteria = [{"metric": "write_iops", "min_of_median": 0.9}]
    assert decide(fleet(ssd_plan=[QUICK], ssd_criteria=criteria)).findings == []
    monkeypatch.setattr(statistics_requirements, "PACKAGES", ("no_such_package",))
    assert "lacks no_such_package; run: " in "".join(decide(fleet(ssd_plan=[QUICK], ssd_criteria=criteria)).findings)
    assert decide(fleet(ssd_plan=[QUICK])).findings == []


def test_criteria_for_the_whole_fleet_do_not_stop_a_part_of_it(fleet):
    criteria = [{"metric": "iops", "min": 1, "model": model} for model in ("A*", "B*")]
    assert decide(fleet(model="A1", ssd_criteria=criteria)).findings == []
    assert "matches no drive" in decide(fleet(model="C1", ssd_criteria=criteria)).findings[0]


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


def test_each_host_may_have_its_own_health_criteria(fleet):
    loose = [{"metric": "longest_io_s", "max": 60}]
    views = [
        fleet(ssd_health_criteria="default", ssd_mode="plan"),
        fleet("h2", ["S2"], ssd_health_criteria="none", ssd_mode="plan"),
        fleet("h3", ["S3"], ssd_health_criteria=loose, ssd_mode="plan"),
        fleet("h4", ["S4"], ssd_health_criteria="none", ssd_mode="plan"),
    ]
    told = [line for line in decide(*views).plan_text if line.startswith("Health criteria")]
    assert [line.partition(",")[0] for line in told[:1]] == ["Health criteria (ssd_health_criteria) of h1"]
    assert told[1:] == [
        "Health criteria (ssd_health_criteria) of h2, h4, also if a test is invalid: none",
        "Health criteria (ssd_health_criteria) of h3, also if a test is invalid: longest_io_s max 60 s",
    ]
    (alone,) = [line for line in decide(*views[1:2]).plan_text if line.startswith("Health criteria")]
    assert alone == "Health criteria (ssd_health_criteria), also if a test is invalid: none"
    started = [
        fleet("h2", ["S2"], ssd_health_criteria="none"),
        fleet("h3", ["S3"], ssd_health_criteria=loose),
    ]
    decided = decide(*started)
    assert decided.findings == [] and recorded(decided)["health_criteria"] == {"h2": [], "h3": loose}


def test_a_wrong_health_criterion_is_that_of_its_host(fleet):
    wrong = [{"metric": "media_error", "max": 0}]
    (found,) = decide(fleet(), fleet("h2", ["S2"], ssd_health_criteria=wrong)).findings
    assert found.startswith("h2: ssd_health_criteria: media_error max 0: 'media_error' is no metric of health")
