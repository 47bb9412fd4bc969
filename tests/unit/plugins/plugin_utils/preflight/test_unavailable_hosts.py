# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""ssd_refused: a host that does not answer as it should does not cost the others their night; and nothing is erased, or
passes, for that. test_refused_drives.py has the drives.
"""

from __future__ import annotations

import json
import os

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.drive.entry import parse
from ansible_collections.ssdlab.fleet.plugins.module_utils.records import base
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.preflight import (
    decision,
    excluded_drives,
    host_tests,
    unavailable_hosts,
)
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.preflight.findings import Finding, Run
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.run_folder import run_record
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.store import quarantine
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.verdict import judge
from ansible_collections.ssdlab.fleet.tests.fixtures import host_answers
from ansible_collections.ssdlab.fleet.tests.unit.plugins.plugin_utils.preflight.fleets import NOW, decide, recorded
from ansible_collections.ssdlab.fleet.tests.unit.plugins.plugin_utils.verdict import judged_runs

NEW = Run("r9", "qualify", {})
LOST = {
    "unreachable": lambda view: host_answers.of(view.name, view.asked, unreachable="ssh: timed out"),
    "garbage": lambda view: host_answers.of(
        view.name, view.asked, failures={"examine": "this answer cannot be trusted"}
    ),
    "a part failed": lambda view: view._replace(drives=None, failures={"drive_facts": "no sysfs"}),
    "other drives": lambda view: host_answers.with_drive(
        view._replace(drives=view.drives[:1]), 0, selector={"serial": "S9"}
    ),
    "an unfinished run": lambda view: host_answers.replaced(
        view, runs=[{"run_id": "r1", "run_name": "qualify", "state": "dead"}]
    ),
}


@pytest.fixture
def night(fleet):
    """Hosts of a nightly."""
    return lambda *args, **more: fleet(*args, **{"ssd_refused": "leave_out", **more})


def gone(view, drive, *more):
    """The view, whose host does not find that drive."""
    refusals = [{"code": code, "message": code} for code in ("not_found", *more)]
    number = [entry.drive for entry in view.drives].index(drive)
    return host_answers.with_drive(view, number, identity=None, path=None, refusals=refusals)


def reasons(decided):
    return {
        (each["host"], each["drive"]): each["left_out"] for each in recorded(decided)["asked"] if "left_out" in each
    }


@pytest.mark.parametrize("mode", ["plan", "destructive"])
@pytest.mark.parametrize("lost", LOST)
def test_a_lost_host_costs_the_others_nothing(night, lost, mode):
    hosts = night(ssd_mode=mode), LOST[lost](night("h2", ["S2", "S3"], ssd_mode=mode))
    decided = decide(*hosts)
    assert decided.findings == [] and list(decided.plans) == ["h1"]
    assert decided.fact()["left_out"] == {"h2": ["S2", "S3"]}
    assert list(decided.fact()["hosts_left_out"]) == decided.fact()["hosts_without_run"] == ["h2"]
    assert decided.fact()["starts"] == (["h1"] if mode == "destructive" else [])
    assert len([line for line in decided.leaves if line.startswith("h2: ")]) == 1, "once, not for each drive"
    if mode == "destructive":
        assert sorted(reasons(decided)) == [("h2", "S2"), ("h2", "S3")]


@pytest.mark.parametrize("lost", sorted(set(LOST) - {"unreachable"}))
def test_such_a_host_stops_the_run_where_that_is_wanted(night, lost):
    assert decide(night(ssd_refused="stop"), LOST[lost](night("h2", ["S2"], ssd_refused="stop"))).findings


@pytest.mark.parametrize("lost", LOST)
def test_the_report_calls_the_drives_of_a_lost_host_not_tested_and_says_why(night, lost):
    decided = decide(night(), LOST[lost](night("h2", ["S2"])))
    found = judge.judge(recorded(decided), [])
    (why,) = next(each["reasons"] for each in found["drives"] if each["host"] == "h2")
    assert found["verdicts"]["not_tested"] == 2 and not found["all_passed"]
    assert why == f"S2 on h2 was left out: {reasons(decided)['h2', 'S2']}"


@pytest.mark.parametrize("mode", ["plan", "destructive"])
def test_a_drive_that_is_gone_costs_the_others_nothing(night, mode):
    decided = decide(gone(night(drives=["S1", "S2"], ssd_mode=mode), "S2"))
    assert decided.findings == [] and decided.left_out == {"h1": ["S2"]}
    assert [drive.drive for drive in decided.plans["h1"].drives] == ["S1"]
    if mode == "destructive":
        assert "not_found" in reasons(decided)["h1", "S2"]


def test_a_host_that_is_back_after_the_others_were_prepared_stays_left_out(night):
    """A reboot of one host has all examined again; who was away then was not prepared."""
    hosts = night(), night("h2", ["S2"])
    before = decide(hosts[0], LOST["unreachable"](hosts[1]))
    again = decision.decide(decision.Request(hosts, False, NOW, gone_before=before.hosts_left_out))
    assert again.findings == [] and list(again.plans) == ["h1"]
    assert again.hosts_left_out == before.hosts_left_out
    refusing = night(ssd_refused="stop"), night("h2", ["S2"], ssd_refused="stop")
    assert list(decision.decide(decision.Request(refusing, False, NOW, gone_before=before.hosts_left_out)).plans) == [
        "h1",
        "h2",
    ]


def test_what_works_on_a_lost_host_does_not_stop_the_others(night):
    busy = [{"run_id": "other", "run_name": "other", "state": "running"}]
    lost = host_answers.replaced(LOST["a part failed"](night("h2", ["S2"])), runs=busy)
    assert decide(night(), lost).findings == []


def test_a_host_with_another_run_is_left_out_with_that_reason_alone(night):
    """What its job does to the host and the drive is no fault of theirs."""
    busy = [{"run_id": "other", "run_name": "other", "state": "running"}]
    view = host_answers.replaced(night("h2", ["S2"], refusals=["locked", "opened", "busy"]), runs=busy)
    decided = decide(night(), view)
    assert decided.findings == [] and list(decided.hosts_left_out) == ["h2"]
    assert decided.hosts_left_out["h2"].startswith("locked: run other is under way on this host; wait for it")
    assert len(decide(view).findings) == 1, "nobody else is left"


def test_what_is_wrong_with_the_variables_of_a_lost_host_is_told_all_the_same(night):
    lost = host_answers.of("h2", {**night("h2").asked, "ssd_look_s": "soon"}, unreachable="gone")
    assert any("ssd_look_s" in line for line in decide(night(), lost).findings)
    unread = decide(night(), host_answers.of("h2", None, failures={"examine": "'serial' is undefined"}))
    assert unread.findings == ["h2: could not be checked: 'serial' is undefined"]


@pytest.mark.parametrize("lost", LOST)
@pytest.mark.parametrize("order", [1, -1])
def test_a_drive_that_a_lost_host_names_is_not_erased_on_another(night, lost, order):
    """It may be one drive of two hosts, and in use on the one that nobody could look at."""
    hosts = [night(drives=["S1", "S2"]), LOST[lost](night("h2", ["S2"]))][::order]
    decided = decide(*hosts)
    assert decided.findings == [] and decided.left_out == {"h1": ["S2"], "h2": ["S2"]}
    assert reasons(decided)["h1", "S2"].startswith("duplicate: h2 names it too")


def test_a_drive_that_one_host_does_not_find_is_not_erased_on_another(night):
    decided = decide(night(), gone(night("h2", ["S1", "S3"]), "S1"))
    assert decided.findings == [] and [list(plan.drives) for plan in decided.plans.values()][0][0].drive == "S3"
    assert reasons(decided)["h1", "S1"].startswith("duplicate: h2 names it too")


def test_a_drive_is_known_by_what_the_lost_host_told_of_it(night):
    """h2 names it by another name than h1, answered about it, and then a part of its answer failed."""
    there = night("h2", ["S2"])
    named = {"wwn": "0x5000c50015ea71aa"}
    told = host_answers.with_drive(there, 0, selector=named, drive=named["wwn"])
    lost = told._replace(entries=[parse(named)], failures={"host_checks": "no dmesg"})
    decided = decide(night(drives=["S1", "S2"]), lost)
    assert decided.findings == [] and reasons(decided)["h1", "S2"].startswith("duplicate: h2 names it too")


def test_a_drive_that_is_kept_as_evidence_is_not_erased_under_another_hosts_name(night):
    refusals = [{"code": "evidence", "message": "S1: it is evidence"}]
    kept = host_answers.with_drive(night("h2", ["S1", "S3"]), 0, refusals=refusals)
    assert any("duplicate: " in line for line in decide(night(), kept).findings)


@pytest.mark.parametrize("check", [False, True])
def test_a_plan_of_which_nothing_is_left_is_refused(night, check):
    mode = "destructive" if check else "plan"
    hosts = [LOST["unreachable"](night(name, [f"S-{name}"], ssd_mode=mode)) for name in ("h1", "h2")]
    first, rest = decide(*hosts, check=check).findings
    assert "no drive is left" in first and rest.startswith("h1, h2: the host is unreachable: ssh: timed out; check")


def test_a_start_of_which_nothing_is_left_is_recorded_and_cannot_pass(night):
    """Its drives stand in the report all the same. A job slice may consist of lost hosts alone, and others remain."""
    hosts = [LOST["unreachable"](night(name, [f"S-{name}"])) for name in ("h1", "h2")]
    decided = decide(*hosts)
    assert decided.findings == [] and decided.plans == {} and len(reasons(decided)) == 2
    assert "no drive is left" in decided.nobody_left[0] and "timed out" in decided.nobody_left[1]
    assert not decision.decide(decision.Request(hosts, False, NOW, is_slice=True)).nobody_left
    assert not decide(hosts[0], night("h3", ["S3"])).nobody_left
    found = judge.judge(recorded(decided), [])
    assert not found["all_passed"] and found["verdicts"]["not_tested"] == 2


@pytest.mark.parametrize("step", ["purge", "precondition"])
def test_a_single_step_does_all_that_it_names_or_nothing(night, step):
    hosts = [night(ssd_step=step), LOST["garbage"](night("h2", ["S2"], ssd_step=step))]
    assert len(decide(*hosts, gone(night("h3", ["S3", "S4"], ssd_step=step), "S4")).findings) == 2


def begun(fleet, *hosts, **more):
    """The run r1 on record, with a drive of each host."""
    folder = os.path.join(decide(fleet()).results_dir, "r1")
    asked = [{"host": host, "drive": drive, **more} for host, drive in hosts]
    record = {"run": {"id": "r1", "name": "qualify"}, "started": "", "asked": asked, "tests": {}}
    run_record.write_run(folder, record)
    return folder


RUN_1 = [{"run_id": "r1", "run_name": "qualify", "state": "dead"}]


def test_a_host_that_is_lost_once_it_has_begun_goes_on_when_it_is_back(night):
    """What its record says is not overwritten: it did not begin without its drives."""
    folder = begun(night, ("h1", "S1"), ("h2", "S2"))
    decided = decide(night(runs=RUN_1), LOST["unreachable"](night("h2", ["S2"])))
    assert decided.findings == [] and decided.run.id == "r1" and decided.left_out == {"h2": ["S2"]}
    assert decided.fact()["hosts_without_run"] == [], "it is watched, and collected if it is back by then"
    run_record.write_run(folder, recorded(decided))
    with open(os.path.join(folder, "run.json"), encoding="utf-8") as source:
        kept = {entry["host"]: entry.get("left_out") for entry in json.load(source)["asked"]}
    assert kept == {"h1": None, "h2": None}
    back = decide(night(runs=RUN_1), night("h2", ["S2"], runs=RUN_1))
    assert back.left_out == {} and sorted(back.plans) == ["h1", "h2"]


def test_a_host_that_was_lost_when_the_run_began_and_is_back_takes_part(night):
    folder = begun(night, ("h1", "S1"))
    run_record.write_run(folder, recorded(decide(night(runs=RUN_1), LOST["unreachable"](night("h2", ["S2"])))))
    back = decide(night(runs=RUN_1), night("h2", ["S2"]))
    assert back.left_out == {} and reasons(back) == {} and sorted(back.plans) == ["h1", "h2"]


def test_a_host_whose_drive_is_gone_since_it_began_is_left_out_as_its_run_has_that_drive(night):
    """Its host job would refuse a plan without the drive, and with it nothing can be planned."""
    begun(night, ("h1", "S1"), ("h2", "S2"), ("h2", "S3"))
    decided = decide(night(runs=RUN_1), gone(night("h2", ["S2", "S3"], runs=RUN_1), "S3"))
    assert decided.findings == [] and list(decided.plans) == ["h1"] and decided.left_out == {"h2": ["S2", "S3"]}
    assert any(line.startswith("h2: it began run r1 with drive S3") for line in decided.leaves)
    assert reasons(decided) == {}


def test_the_host_job_of_a_run_that_goes_on_refuses_a_drive_itself(night):
    """Its plan has all drives that it began with, so what it measured of them stays in the results."""
    begun(night, ("h1", "S1"), ("h2", "S2"), ("h2", "S3"))
    view = night("h2", ["S2", "S3"], runs=RUN_1)
    refused = host_answers.with_drive(view, 1, refusals=[{"code": "mounted", "message": "it is mounted"}])
    decided = decide(night(runs=RUN_1), refused)
    assert decided.findings == [] and decided.left_out == {} and reasons(decided) == {}
    assert [drive.drive for drive in decided.plans["h2"].drives] == ["S2", "S3"]
    (warned,) = [one for one in recorded(decided)["warnings"] if one["check"] == "refused"]
    assert (warned["host"], warned["drive"]) == ("h2", "S3") and "mounted" in warned["message"]
    assert decide(
        night(runs=RUN_1, ssd_refused="stop"), refused._replace(asked={**refused.asked, "ssd_refused": "stop"})
    ).findings


def test_what_the_host_job_of_a_run_that_goes_on_would_not_refuse_keeps_its_host_out(night):
    """Its guard knows nothing of other hosts, of a budget or of the checks."""
    begun(night, ("h1", "S1"), ("h2", "S2"), ("h2", "S3"))
    other = night(runs=RUN_1)
    lost = LOST["unreachable"](night("h3", ["S3"]))
    sick = [{"check": "health", "drive": "S3", "level": "blocks", "message": "bad", "remedy": "replace it"}]
    for hosts in (
        [night("h2", ["S2", "S3"], runs=RUN_1), lost],
        [night("h2", ["S2", "S3"], runs=RUN_1, ssd_wear_budget="0.000001TB")],
        [host_answers.replaced(night("h2", ["S2", "S3"], runs=RUN_1), checks=sick)],
    ):
        decided = decide(other, *hosts)
        assert decided.findings == [] and list(decided.plans) == ["h1"], decided.findings
        assert decided.hosts_left_out["h2"].startswith("it began run r1 with drive S")


def test_a_second_measurement_that_lost_a_host_leaves_its_first_result_and_says_so(night):
    again = {"of": "r1", "run_id": "r1-again", "tests": ["iops"], "counts": {"S2": ["iops"]}, "identities": {}}
    lost = LOST["unreachable"](night("h2", ["S2"], ssd_again=again))
    left_out = unavailable_hosts.exclude([lost], {"h2": "no route"})
    record = decision.run_json.record(
        left_out, NEW, NOW, {"h2": {"iops": {"cells": []}}}, host_tests.of_hosts(left_out), []
    )
    (entry,) = record.asked
    assert entry.again == ["iops"] and entry.left_out == "no route"


def test_a_reason_is_one_line_of_some_length(night):
    lost = host_answers.of("h2", night("h2").asked, failures={"examine": "bad\x1b[2J\n" * 10000})
    why = unavailable_hosts.hosts([lost], NEW, {}, [])["h2"]
    assert why.isprintable() and len(why) < 1000


def test_nothing_is_left_out_without_a_run_or_where_that_is_not_wanted(fleet, night):
    lost = LOST["unreachable"](night("h2"))
    assert unavailable_hosts.hosts([lost], None, {}, []) == {}
    assert unavailable_hosts.hosts([LOST["unreachable"](fleet("h2", ssd_refused="stop"))], NEW, {}, []) == {}
    assert list(unavailable_hosts.hosts([lost], NEW, {}, [Finding("several runs")])) == ["h2"]


def test_a_lost_host_is_one_line_for_people(night):
    (found,) = unavailable_hosts.exclude([LOST["unreachable"](night("h2", ["S2", "S3"]))], {"h2": "no route"})
    assert excluded_drives.lines([found]) == ["h2: no route; its drives (S2, S3) are left out"]


WWN = "0x5000c50015ea71aa"


@pytest.mark.parametrize(
    "by_id",
    [
        "wwn-0x5000c50015ea71aa",
        "/dev/disk/by-id/wwn-0x5000c50015ea71aa",
        "nvme-eui.5000c50015ea71aa",
        "nvme-MODEL_S9",
        "nvme-MODEL_OF_TWO_S9_1",
        "scsi-SATA_M_S9",
        "ata-M-S9",
    ],
)
def test_a_drive_that_a_lost_host_names_by_id_is_not_erased_on_another(night, by_id):
    lost = host_answers.of("h1", {**night().asked, "ssd_drives": [{"by_id": by_id}]}, unreachable="no route")
    other = host_answers.with_identity(night("h2", ["S9"]), wwn=WWN)
    assert [found for found in decide(lost, other).findings if "h1 names it too" in found]
    another = host_answers.with_identity(night("h2", ["S8"]), wwn="0x5000c50015ea71ab")
    assert decide(lost, another).findings == []


def test_a_drive_in_quarantine_is_not_erased_under_another_hosts_name(fleet):
    """The mark leaves out what the guard found of it, such as a mount."""
    mark = quarantine.Quarantined("qualify", "serial M S9", "S9", "h1", "S9", 3, "r0", "slow")
    one, other = fleet("h1", ["S1", "S9"], model="M"), fleet("h2", ["S9"], model="M")
    same, wwn = {**base.to_json(one.drives[1].identity), "wwn": WWN}, {"wwn": WWN}
    one = host_answers.with_drive(one, 1, identity=same)
    other = host_answers.with_drive(other, 0, identity=same, selector=wwn, drive=WWN)._replace(entries=[parse(wwn)])
    assert decision.decide(decision.Request([one], False, NOW, marks=[mark])).findings == []
    both = decision.decide(decision.Request([one, other], False, NOW, marks=[mark]))
    assert list(both.plans) == ["h1"] and "h1 names it too" in reasons(both)["h2", WWN]


def test_what_was_left_out_when_a_run_began_is_not_erased_under_another_hosts_name(night):
    folder = begun(night, ("h1", "S1"))
    record = run_record.read_run(folder)
    record["asked"].append({"host": "h1", "drive": "S9", "left_out": "evidence of r0"})
    run_record.write_run(folder, record)
    one = night("h1", ["S1", "S9"], runs=[{"run_id": "r1", "run_name": "qualify", "state": "dead"}])
    one = host_answers.with_drive(one, 1, refusals=[{"code": "evidence", "message": "S9: it is evidence"}])
    assert decide(one).findings == []
    assert "h1 names it too" in reasons(decide(one, night("h2", ["S9"])))["h2", "S9"]


def test_no_host_has_others_left_out_by_its_word(night):
    """That it has finished a run which the others have not."""
    begun(night, ("h1", "S1"), ("h2", "S2"), ("h3", "S3"))
    dead, finished = ([{"run_id": "r1", "run_name": "qualify", "state": state}] for state in ("dead", "finished"))
    decided = decide(night("h1", ["S1"], runs=dead), night("h2", ["S2"], runs=dead), night("h3", ["S3"], runs=finished))
    assert decided.fact()["hosts_left_out"] == {} and "which other hosts have finished" in " ".join(decided.findings)


def test_labels_that_a_host_swaps_are_another_answer(night):
    host = night("h1", ["S1", "S2"])
    host = host_answers.with_drive(host_answers.with_drive(host, 0, drive="S2"), 1, drive="S1")
    assert "other drives" in decide(host, night("h2", ["S3"])).fact()["hosts_left_out"]["h1"]


def test_no_record_makes_a_drive_pass_that_was_left_out():
    run = judged_runs.run_json()
    run["asked"][0]["left_out"] = "quarantined: failed 3 nights"
    found = judge.judge(run, [judged_runs.drive_record(), judged_runs.test_record()])
    assert found["drives"][0]["verdict"] == "not_tested" and not found["all_passed"]
    assert "was left out: quarantined" in found["drives"][0]["reasons"][0]


def test_what_a_plan_left_out_for_an_earlier_run_the_start_with_its_id_leaves_out(night):
    folder = begun(night, ("h1", "S1"), ("h2", "S2"))
    with open(os.path.join(folder, run_record.RESULTS), "a") as out:
        out.write(json.dumps({"kind": "host", "host": "h2", "state": "ok"}) + "\n")
    dead, finished = ([{"run_id": "r1", "run_name": "qualify", "state": state}] for state in ("dead", "finished"))
    for given in ("", "r2"):
        one, two = (night(f"h{n}", [f"S{n}"], runs=runs, ssd_run_id=given) for n, runs in ((1, dead), (2, finished)))
        decided = decide(one, two)
        assert decided.findings == [] and list(decided.plans) == ["h2"], given
        assert "r1" in decided.fact()["hosts_left_out"]["h1"]
