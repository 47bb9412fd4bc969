# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import dataclasses
import shutil

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.run.states import RUNNING
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.preflight import approval, approval_check, decision, findings
from ansible_collections.ssdlab.fleet.tests.fixtures import host_answers
from ansible_collections.ssdlab.fleet.tests.fixtures.report import fleets
from ansible_collections.ssdlab.fleet.tests.unit.plugins.plugin_utils.preflight.fleets import NOW, QUICK

RUN_ID = "20261121T130000Z-qualify"


def decide(*views, approved=None):
    return decision.decide(decision.Request(views, False, NOW, approved=approved))


def plan_of(*views):
    """What plan mode has approved, after its way through a file."""
    planned = [view._replace(asked={**view.asked, "ssd_mode": "plan"}) for view in views]
    decided = decide(*planned)
    assert decided.findings == [] and decided.to_approve is not None
    return approval.parse(approval.dump(decided.to_approve), "plan")


def entries(view, **options):
    """The view with options in the entry of its first drive."""
    given = [dict(entry, **(options if place == 0 else {})) for place, entry in enumerate(view.asked["ssd_drives"])]
    told = [dataclasses.replace(drive, selector=entry) for drive, entry in zip(view.drives, given)]
    return view.of(view.name, {**view.asked, "ssd_drives": given}, view.runs, view.facts, told)


def ledger(run_id):
    return {
        "run_id": run_id,
        "state": "released",
        "released": "2026-11-21T14:00:00.000Z",
        "reason": "",
        "proved": "counters",
    }


def test_what_was_approved_is_taken_and_printed_with_a_line_for_each_drive(fleet):
    views = [fleet("h1", ("S1", "S2")), fleet("h2", ("S3",))]
    approved = plan_of(*views)
    decided = decide(*views, approved=approved)
    assert (decided.findings, decided.run.id, decided.to_approve) == ([], RUN_ID, None)
    head, *lines = decided.takes
    assert (
        head
        == f"Run {RUN_ID} takes 3 drives of 2 hosts, all in the approved plan (SHA-256 {approval.sha256(approved)}):"
    )
    assert [line.split(":")[0] for line in lines] == ["h1", "  S1", "  S2", "h2", "  S3"]
    assert lines[1] == f"  {approved.lines[0].text()}" and "; purge " in lines[1]


def test_a_drive_and_a_host_that_have_gone_are_less(fleet):
    approved = plan_of(fleet("h1", ("S1", "S2")), fleet("h2", ("S3",)))
    assert decide(fleet("h1", ("S2",)), approved=approved).findings == []
    assert decide(fleet("h1"), fleet("h2", ("S3",), unreachable="no route"), approved=approved).findings == []


@pytest.mark.parametrize(
    "other, told",
    [
        (
            lambda fleet: [fleet("h1", ("S1", "S9"))],
            "h1: drive S9: ssd_approved_plan: this drive is not in the approved",
        ),
        (
            lambda fleet: [fleet("h1"), fleet("h2", ("S2",))],
            "h2: drive S2: ssd_approved_plan: this host is not in the approved plan (serial S2); ",
        ),
        (lambda fleet: [fleet(ssd_plan=[QUICK])], "h1: drive S1: ssd_approved_plan: other tests: approved wsat@"),
        (lambda fleet: [fleet(purge_method="overwrite")], "other purge: approved auto, now overwrite"),
        (lambda fleet: [fleet(purge_lba_size_bytes=4096)], "now auto lba_size_bytes=4096"),
        (lambda fleet: [entries(fleet(), allow=["signature"])], 'approved none, now allow=["signature"]'),
        (lambda fleet: [entries(fleet(), ssd_overwrite_data=True)], "approved none, now ssd_overwrite_data=true"),
        (lambda fleet: [entries(fleet(), release_evidence="r1")], 'approved none, now release_evidence="r1"'),
        (lambda fleet: [fleet(ssd_look_s=0.1)], "approved none, now ssd_look_s=0.1"),
        (lambda fleet: [fleet(preflight_levels={"wear": "ok"})], 'now preflight_levels={"wear": "ok"}'),
        (lambda fleet: [fleet(vendor_iomemory=[{"card": "fct0"}])], "now vendor_iomemory="),
        (lambda fleet: [fleet(vendor_iomemory_dma_delay=3)], 'approved none, now vendor_iomemory_dma_delay="3"'),
        (lambda fleet: [fleet(vendor_power_cycle=True)], "approved none, now vendor_power_cycle=true"),
        (lambda fleet: [fleet(vendor_power_cycle_force=True)], "approved none, now vendor_power_cycle_force=true"),
        (lambda fleet: [fleet(tune_boot_enabled=True)], "approved none, now tune_boot_enabled=true"),
        (lambda fleet: [fleet(tune_boot_arguments=["a=b"])], 'approved none, now tune_boot_arguments=["a=b"]'),
        (lambda fleet: [fleet(ssd_retest=1)], "approved none, now ssd_retest=1"),
        (
            lambda fleet: [host_answers.with_identity(fleet(), wwn="eui.2")],
            "other identity: approved serial S1, now serial S1, wwn eui.2",
        ),
    ],
)
def test_anything_else_is_refused_by_name_with_what_differs(fleet, other, told):
    approved = plan_of(fleet("h1"))
    decided = decide(*other(fleet), approved=approved)
    found = decided.findings or [line for line in decided.leaves if "ssd_approved_plan" in line]
    assert len(found) == 1 and told in found[0] and approval_check.ADVICE in found[0]
    assert [drive.drive for plan in decided.plans.values() for drive in plan.drives] == ["S1"]
    assert all(drives in (["S9"], ["S2"]) for drives in decided.left_out.values())


def test_a_value_counts_in_its_type(fleet):
    """Surveys and -e give texts."""
    approved = plan_of(fleet(ssd_retest=1, vendor_power_cycle=False))
    assert decide(fleet(ssd_retest="1", vendor_power_cycle="no"), approved=approved).findings == []


def test_what_is_not_approved_is_left_out_where_other_drives_remain(fleet):
    approved = plan_of(fleet("h1", ("S1", "S2")), fleet("h2", ("S3",)))
    changed = fleet("h2", ("S3", "S4"), purge_method="overwrite")
    decided = decide(fleet("h1", ("S1", "S2")), changed, approved=approved)
    assert decided.findings == [] and decided.left_out == {"h2": ["S3", "S4"]}
    assert [line.split(":")[0] for line in decided.takes[1:]] == ["h1", "  S1", "  S2"]
    # In plan mode it is a finding, as any other refusal.
    assert len(decide(fleet("h1", ("S1", "S9"), ssd_mode="plan"), approved=approved).findings) == 1


def test_each_member_of_an_array_has_a_line_of_its_own(fleet):
    """The last drive carries the array's test, which writes to all."""
    approved = plan_of(fleet("h1", ("S1", "S3"), ssd_plan=["raid0"]))
    assert [(line.drive, list(line.tests)) for line in approved.lines] == [("S1", ["raid0"]), ("S3", ["raid0"])]
    decided = decide(fleet("h1", ("S1", "S2", "S3"), ssd_plan=["raid0"]), approved=approved)
    assert decided.findings == [] and decided.left_out == {"h1": ["S2"]}
    # The host has no drive of that name to build the array with.
    assert [drive.drive for drive in decided.plans["h1"].drives] == ["S1", "S3"]


def test_a_single_step_leaves_nothing_out(fleet):
    views = fleet("h1", ssd_step="purge"), fleet("h2", ("S2",), ssd_step="purge")
    approved = plan_of(views[0])
    assert len(decide(*views, approved=approved).findings) == 1


def test_a_test_of_the_same_name_counts_by_its_content(fleet):
    approved = plan_of(fleet(ssd_plan=[QUICK]))
    assert decide(fleet(ssd_plan=[{**QUICK, "title": "Other words"}]), approved=approved).findings != []
    (found,) = decide(fleet(ssd_plan=[{**QUICK, "rounds": {"max": 6}}]), approved=approved).findings
    assert "other tests: approved quick@" in found and ", now quick@" in found
    assert decide(fleet(ssd_plan=[{**QUICK, "description": "what only people read"}]), approved=approved).findings == []


@pytest.mark.parametrize("policy", ["leave_out", "stop"])
def test_a_host_that_was_lost_at_the_plan_is_not_erased_when_it_is_back(fleet, policy):
    approved = plan_of(fleet("h1"), fleet("h2", ("S2",), unreachable="no route"))
    back = [fleet(name, drives, ssd_refused=policy) for name, drives in (("h1", ("S1",)), ("h2", ("S2",)))]
    decided = decide(*back, approved=approved)
    why = f"the approved plan leaves this host out: the host is unreachable: no route; {findings.REACH_IT}"
    if policy == "leave_out":
        assert decided.findings == [] and decided.hosts_left_out == {"h2": why} and list(decided.plans) == ["h1"]
        assert any(line.startswith("h2: " + why) for line in decided.leaves)
    else:
        assert decided.findings == [] and decided.left_out == {"h2": ["S2"]}
        assert any(
            "h2: drive S2: ssd_approved_plan: this host is not in the approved plan" in line for line in decided.leaves
        )


def test_a_drive_that_the_plan_left_out_stays_left_out(fleet):
    gone = fleet("h1", ("S1", "S2"))
    lost = [{"code": "not_found", "message": "S2: no such drive"}]
    approved = plan_of(host_answers.with_drive(gone, 1, refusals=lost, identity=None))
    decided = decide(gone, approved=approved)
    assert decided.findings == [] and decided.left_out == {"h1": ["S2"]}
    assert [drive.drive for drive in decided.plans["h1"].drives] == ["S1"]
    assert any("the approved plan leaves it out: not_found: no such drive" in line for line in decided.leaves)


def test_hosts_on_which_the_run_needs_no_start_are_held_to_nothing(fleet):
    approved = plan_of(fleet("h1"))
    runs = [{"run_id": RUN_ID, "run_name": "qualify", "state": RUNNING}]
    decided = decide(fleet("h1", ("S1", "S9"), runs=runs, ssd_run_id=RUN_ID), approved=approved)
    assert decided.findings == []
    assert decided.takes[1:] == [f"h1: this run is {RUNNING} on this host, so nothing is started there"]


def test_a_run_that_goes_on_is_held_to_the_plan(fleet):
    approved = plan_of(fleet("h1"))
    runs = [{"run_id": RUN_ID, "run_name": "qualify", "state": "dead"}]
    (found,) = decide(fleet("h1", ("S1", "S9"), runs=runs, ssd_run_id=RUN_ID), approved=approved).findings
    assert "h1: drive S9: ssd_approved_plan: this drive is not in" in found


@pytest.mark.parametrize(
    "variables, told",
    [
        (
            {"ssd_run_id": "other"},
            f"ssd_approved_plan: it is of run {RUN_ID}, and this is run other; give -e ssd_run_id=",
        ),
        ({"ssd_step": "tune", "ssd_run_name": "tune"}, "ssd_approved_plan: tuning erases nothing"),
        ({"ssd_step": "purge", "ssd_run_name": "purge"}, "it is a plan of qualify.yml, and this is purge.yml"),
    ],
)
def test_a_plan_for_something_else_is_refused(fleet, variables, told):
    found = decide(fleet(**variables), approved=plan_of(fleet("h1"))).findings
    assert any(told in line for line in found), found


def test_where_approval_is_required_nothing_starts_without_it(fleet):
    (found,) = decide(fleet(ssd_approval="required")).findings
    assert found.startswith("ssd_approved_plan: nothing was approved, and ssd_approval is required: ")
    assert decide(fleet(ssd_approval="required"), approved=plan_of(fleet())).findings == []
    assert decide(fleet(ssd_approval="required", ssd_mode="plan")).findings == []


def test_hosts_that_name_other_plans_are_refused(fleet):
    views = [fleet("h1", ssd_approved_plan="/a"), fleet("h2", ("S2",), ssd_approved_plan="/b")]
    assert any(line.startswith("ssd_approved_plan: must be the same on all hosts") for line in decide(*views).findings)


def test_a_second_measurement_may_have_fewer_tests_but_no_others():
    line = approval.Line("h1", "S1", "serial S1", {"a": "1", "b": "2"}, {"a": "auto", "b": "none"}, [])
    first = approval.ApprovedPlan("r", "n", "qualify", "", [line])
    again = first._replace(run_id="r-again", lines=[line._replace(tests={"b": "2"}, purge={"b": "none"})])
    assert approval_check.findings(first, again) == []
    assert len(approval_check.findings(first, again._replace(run_id="r"))) == 1
    other = again._replace(lines=[line._replace(tests={"b": "3"}, purge={"b": "none"})])
    assert len(approval_check.findings(first, other)) == 1


def test_where_nothing_would_start_nothing_has_to_be_approved(fleet):
    runs = [{"run_id": RUN_ID, "run_name": "qualify", "state": RUNNING}]
    decided = decide(fleet(runs=runs, ssd_run_id=RUN_ID, ssd_approval="required"))
    assert decided.findings == []


def test_a_plan_that_was_carried_out_is_not_carried_out_again_where_the_host_forgot_the_run(fleet, tmp_path):
    """As after cleanup.yml. The host's ledger still says which run wrote to the drive."""
    view = fleet("h1", ("S1", "S2"))
    approved = plan_of(view)
    used = host_answers.with_drive(view, 0, own_data=ledger(RUN_ID))
    decided = decide(used, approved=approved)
    assert decided.findings == [] and decided.left_out == {"h1": ["S1"]}
    told = f"h1: drive S1: ssd_approved_plan: run {RUN_ID} has already begun with this drive; make and approve a new"
    assert any(line.startswith(told) for line in decided.leaves)
    # It goes on where the host knows it, and another run's data is the guard's business.
    runs = [{"run_id": RUN_ID, "run_name": "qualify", "state": "dead"}]
    assert decide(host_answers.replaced(used, runs=runs), approved=approved).left_out == {}
    other = host_answers.with_drive(view, 0, own_data=ledger("20261122T130000Z-qualify"))
    assert decide(other, approved=approved).left_out == {}
    # Also where another run wrote to it since: by what the controller collected.
    begun, collected = fleets.fleet(hosts=1, drives=1, run_id=RUN_ID)
    asked = [{**begun["asked"][0], "host": "h1", "drive": name} for name in ("S1", "S2")]
    (record,) = [{**record, "host": "h1", "drive": "S1"} for record in collected if record["kind"] == "drive"]
    # Whatever became of it there, and of its data: a job that failed or leaves a drive as it is tells nothing of that.
    for told, out in (
        ({"left": "blank"}, {"h1": ["S1"]}),
        ({"left": None}, {"h1": ["S1"]}),
        ({"left": None, "outcome": "interrupted"}, {"h1": ["S1"]}),
        ({"left": None, "outcome": "refused"}, {}),
    ):
        shutil.rmtree(tmp_path / "results", ignore_errors=True)
        fleets.write(tmp_path / "results", {**begun, "asked": asked}, [{**record, **told}])
        assert decide(other, approved=approved).left_out == out
