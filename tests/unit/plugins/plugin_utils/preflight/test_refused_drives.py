# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""ssd_refused: what is found of one drive or host costs the others nothing; what concerns them all stops everything."""

from __future__ import annotations

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.guard.refusals import REFUSALS
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.preflight import decision
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.preflight.findings import OF_INVENTORY
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.preflight.refused_drives import SICK, WRONG_LIST, Without
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.store import quarantine
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.verdict import judge
from ansible_collections.ssdlab.fleet.tests.fixtures import host_answers
from ansible_collections.ssdlab.fleet.tests.unit.plugins.plugin_utils.preflight.fleets import NOW, decide, recorded

REFUSED = sorted(set(REFUSALS) - set(OF_INVENTORY))


def refused(view, drive, *codes):
    """The view, whose drive of that number the guard refuses."""
    return host_answers.with_drive(view, drive, refusals=[{"code": code, "message": f"it is {code}"} for code in codes])


def reasons(decided):
    return {(one["host"], one["drive"]): one.get("left_out") for one in recorded(decided)["asked"]}


@pytest.mark.parametrize("mode", ["plan", "destructive"])
@pytest.mark.parametrize("code", REFUSED)
def test_a_refused_drive_is_left_out_by_its_code_and_the_others_run(fleet, code, mode):
    decided = decide(refused(fleet(drives=["S1", "S2"], ssd_mode=mode), 1, code), fleet("h2", ["S3"], ssd_mode=mode))
    assert decided.findings == [] and decided.left_out == {"h1": ["S2"]}
    assert [drive.drive for plan in decided.plans.values() for drive in plan.drives] == ["S1", "S3"]
    assert f"h1: drive S2: {code}: it is {code}" in decided.leaves
    if mode == "destructive":
        left = {("h1", "S1"): None, ("h1", "S2"): f"{code}: it is {code}", ("h2", "S3"): None}
        assert reasons(decided) == left


@pytest.mark.parametrize("code", REFUSED)
def test_with_stop_nothing_is_started(fleet, code):
    view = refused(fleet(drives=["S1", "S2"], ssd_refused="stop"), 1, code)
    assert decide(view).findings == [f"h1: drive S2: {code}: it is {code}"]


@pytest.mark.parametrize("code", OF_INVENTORY)
def test_what_is_wrong_with_the_list_itself_stops_everything(fleet, code):
    decided = decide(refused(fleet(drives=["S1", "S2"]), 1, code), fleet("h2", ["S3"]))
    assert len(decided.findings) == 1 and f"{code}: it is {code}" in decided.findings[0]


def test_where_nobody_would_be_left_every_reason_is_told(fleet):
    decided = decide(refused(fleet(), 0, "mounted"), refused(fleet("h2", ["S2"]), 0, "signature", "unsigned_data"))
    assert len(decided.findings) == 3


def test_a_drive_with_several_reasons_tells_the_first_whole(fleet):
    decided = decide(refused(fleet(drives=["S1", "S2"]), 1, "signature", "unsigned_data"))
    assert reasons(decided)["h1", "S2"] == "signature: it is signature (also: unsigned_data)"


@pytest.mark.parametrize("option", [{"allow": ["signature"]}, {"ssd_overwrite_data": True}])
@pytest.mark.parametrize("code", WRONG_LIST)
def test_a_drive_in_use_speaks_against_the_overrides_of_its_hosts_list(fleet, code, option):
    """Host h1 got the list of another: its S1 is in use, and what the override let through was meant for a drive of
    that other one.
    """
    view = fleet(drives=["S1", {"serial": "S2", **option}, "S3"])
    decided = decide(refused(view, 0, code), fleet("h2", [{"serial": "S4", **option}]))
    assert decided.findings == [] and decided.left_out == {"h1": ["S1", "S2"]}
    assert reasons(decided)["h1", "S2"].startswith(f"wrong_list: S1 in the same list is refused ({code})")
    assert next(iter(option)) in reasons(decided)["h1", "S2"]


def test_a_drive_in_use_speaks_against_overrides_though_it_is_left_out_for_something_else(fleet):
    view = refused(fleet(drives=["S1", {"serial": "S2", "allow": ["signature"]}, "S3"], model="M"), 0, "root_disk")
    mark = quarantine.Quarantined("qualify", "serial M S1", "S1", "h1", "S1", 3, "r0", "slow")
    decided = decision.decide(decision.Request([view], False, NOW, marks=[mark]))
    assert decided.findings == [] and decided.left_out == {"h1": ["S1", "S2"]}


def test_the_only_drive_that_is_left_is_not_taken_by_an_override_either(fleet):
    view = refused(fleet(drives=["S1", {"serial": "S2", "allow": ["signature"]}], model="M"), 0, "root_disk")
    mark = quarantine.Quarantined("qualify", "serial M S1", "S1", "h1", "S1", 3, "r0", "slow")
    decided = decision.decide(decision.Request([view], False, NOW, marks=[mark]))
    assert decided.left_out == {"h1": ["S1", "S2"]} and decided.plans == {} and decided.starts == []


@pytest.mark.parametrize("variable", [{"tune_boot_enabled": True}, {"vendor_iomemory": [{"serial": "S2"}]}])
def test_a_host_that_would_be_restarted_or_set_up_is_left_out_with_its_refused_drive(fleet, variable):
    """A restart reaches what uses the drive that is left out, and a vendor's tool the drive itself."""
    view = refused(fleet(drives=["S1", "S2"], **variable), 0, "mounted")
    decided = decide(view, fleet("h2", ["S3"]))
    assert list(decided.plans) == ["h2"] and "drive S1: mounted: it is mounted" in decided.hosts_left_out["h1"]


def test_what_one_decision_of_a_play_left_out_the_next_one_leaves_out(fleet):
    """A restart of another host has all examined again; what used the drive may have gone with that."""
    view = fleet(drives=["S1", {"serial": "S2", "allow": ["signature"]}, "S3"])
    first = decide(refused(view, 0, "opened"))
    places = {("h1", drive): why for drive, why in first.fact()["drives_left_out"]["h1"].items()}
    again = decision.decide(decision.Request([view], False, NOW, without=Without(places)))
    assert again.findings == [] and again.fact()["drives_left_out"] == first.fact()["drives_left_out"]


def test_a_finding_about_a_drive_that_nobody_named_is_its_hosts(fleet):
    decided = decide(checked(fleet(), ("temperature", "nobody")), fleet("h2", ["S3"]))
    assert list(decided.plans) == ["h2"] and list(decided.hosts_left_out) == ["h1"]


def test_a_drive_that_is_merely_not_blank_speaks_against_no_override(fleet):
    view = fleet(drives=["S1", {"serial": "S2", "allow": ["signature"]}])
    assert decide(refused(view, 0, "unsigned_data")).left_out == {"h1": ["S1"]}


def checked(view, *found):
    checks = [
        {"check": check, "drive": drive, "level": "blocks", "message": "it is bad", "remedy": "mend it"}
        for check, drive in found
    ]
    return host_answers.replaced(view, checks=checks)


def test_a_blocking_finding_takes_out_its_drive_or_its_host(fleet):
    one = checked(fleet(drives=["S1", "S2"]), ("temperature", "S2"))
    other = checked(fleet("h2", ["S3"]), ("clock", None))
    decided = decide(one, other)
    assert decided.findings == [] and decided.left_out == {"h1": ["S2"], "h2": ["S3"]}
    assert decided.hosts_left_out["h2"] == "clock: it is bad. To fix this: mend it"


@pytest.mark.parametrize("check", SICK)
def test_a_drive_that_calls_itself_bad_fails_without_being_measured(fleet, check):
    decided = decide(checked(fleet(drives=["S1", "S2"]), (check, "S2")))
    found = {one["drive"]: one for one in judge.judge(recorded(decided), [])["drives"]}
    assert found["S2"]["verdict"] == "fail" and f"{check}: it is bad" in found["S2"]["reasons"]


def test_a_drive_that_is_left_out_for_another_reason_is_not_tested(fleet):
    decided = decide(refused(fleet(drives=["S1", "S2"]), 1, "mounted"))
    found = {one["drive"]: one for one in judge.judge(recorded(decided), [])["drives"]}
    assert found["S2"]["verdict"] == "not_tested" and "mounted: it is mounted" in found["S2"]["reasons"][0]


def test_a_wrong_variable_is_told_and_nothing_is_left_out(fleet):
    view = refused(fleet(drives=["S1", "S2"], ssd_look_s="soon"), 1, "mounted")
    decided = decide(view)
    assert len(decided.findings) == 2 and decided.left_out == {}
