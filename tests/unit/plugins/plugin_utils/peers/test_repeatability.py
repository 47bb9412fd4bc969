# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Two runs held to a margin, and the power cycle between them (TN-FD-15, Reliability)."""

from __future__ import annotations

import copy
import json

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.records import base
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.peers import fleet_summary, repeatability
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan.render_plan import load_plan
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.preflight import host_plans
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.report import download_files, write_report
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.verdict import judge
from ansible_collections.ssdlab.fleet.tests.fixtures import documents
from ansible_collections.ssdlab.fleet.tests.fixtures.report import fleets


def power(boot_id, cycles):
    once = {"boot_id": boot_id, "power_cycles": cycles}
    return {"first": once, "last": once}


def run_of(run_id, iops, started, told=None, run_margin=0.1):
    """One host of one drive, which measured so many IOPS: (run.json, records)."""
    run, records = fleets.fleet(hosts=1, drives=1, noise=0, run_id=run_id, slow={(0, 0): iops / 100_000})
    run["tests"]["iops"]["run_margin"] = run_margin
    for record in records:
        if record["kind"] == "drive" and told:
            record["power"] = told
    return {**run, "started": started}, records


def summary_of(run, records):
    drives = {(record["host"], record["drive"]): record for record in records if record["kind"] == "drive"}
    judgement = judge.judge(run, records)
    before = fleet_summary.before(run, records, judgement, ())
    made = fleet_summary.make(run, records, judge.valid_tests(run, records), judgement, before)
    found = json.loads(download_files.summary(run, judge.judge(run, records), made, None, drives))
    documents.validate(found, "summary")
    return found


def compared(now, before):
    run, records = now
    return base.to_json(repeatability.compare(run, judge.judge(run, records), records, summary_of(*before)))


FIRST = ("r1", 100_000, "2026-11-21T01:00:00Z", power("b1", 7))


@pytest.mark.parametrize("iops, beyond", [(100_000, {}), (109_900, {}), (91_000, {}), (111_000, {"write_iops": 0.11})])
def test_only_what_differs_by_more_than_the_margin_is_named(iops, beyond):
    found = compared(run_of("r2", iops, "2026-11-22T01:00:00Z", power("b2", 8)), run_of(*FIRST))
    (drive,) = found["drives"]
    assert (found["run"], drive["drive"], drive["cycle"]) == ("r1", "S0-0", "power cycle")
    # IOPS, bandwidth and mean latency (32 / IOPS, so 9.9 % more at 91,000), and no percentile.
    assert drive["figures"] == 3 and {item["metric"] for item in drive["beyond"]} >= set(beyond)
    assert [item["by"] for item in drive["beyond"] if item["metric"] == "write_iops"] == pytest.approx(
        list(beyond.values()), rel=1e-6
    )
    assert bool(drive["beyond"]) == bool(beyond)


@pytest.mark.parametrize("now, named", [(110.0, False), (110.001, True), (90.0, False), (89.999, True)])
def test_ten_per_cent_to_the_digit_is_within(now, named):
    before = run_of(*FIRST)
    for records, value in ((before[1], 100.0),):
        records[-1]["metrics"] = {"write_iops": value}
    mine = run_of("r2", 100_000, "2026-11-22T01:00:00Z", power("b2", 8))
    mine[1][-1]["metrics"] = {"write_iops": now}
    (drive,) = compared(mine, before)["drives"]
    assert bool(drive["beyond"]) == named and drive["figures"] == 1


@pytest.mark.parametrize(
    "before, now, cycle, says",
    [
        (power("b1", 7), power("b2", 8), "power cycle", "counts 8 power cycles (7 before)"),
        (power("b1", 7), power("b1", 7), "no power cycle between", "was not rebooted between"),
        # A warm reboot: the drive kept its power.
        (power("b1", 7), power("b2", 7), "no power cycle between", "the host was rebooted, but the drive counts 7"),
        # Another drive lost power under a running host: that is not the system's cycle that the note asks for.
        (power("b1", 7), power("b1", 8), "no power cycle between", "was not rebooted between"),
        (power("b1", None), power("b2", 8), "unknown", "does not report its power cycles"),
        # A drive that answers was switched on once at least: this one keeps no count (QEMU's does not).
        (power("b1", 0), power("b2", 0), "unknown", "keeps no count of its power cycles (0)"),
        (power(None, 7), power("b2", 8), "unknown", "no boot id"),
        (None, power("b2", 8), "unknown", "no boot id"),
        (power("b1", 9), power("b2", 8), "unknown", "(9 before)"),
        # The run before was itself interrupted by a power cycle: its last job counts.
        (
            {"first": {"boot_id": "b0", "power_cycles": 6}, "last": {"boot_id": "b1", "power_cycles": 7}},
            {"first": {"boot_id": "b1", "power_cycles": 7}, "last": {"boot_id": "b2", "power_cycles": 8}},
            "no power cycle between",
            "was not rebooted between",
        ),
    ],
)
def test_a_power_cycle_is_proved_by_the_boot_and_the_drives_own_count(before, now, cycle, says):
    found, why = repeatability.cycled(now, before)
    assert found == cycle and says in why


def test_without_a_margin_nothing_is_compared():
    mine = run_of("r2", 50_000, "2026-11-22T01:00:00Z", power("b2", 8), run_margin=None)
    assert compared(mine, run_of(*FIRST)) is None


def test_what_was_measured_otherwise_is_not_compared():
    """A smaller drive, or another ioengine, is no lack of repeatability."""
    before, mine = run_of(*FIRST), run_of("r2", 50_000, "2026-11-22T01:00:00Z", power("b2", 8))
    before[0]["asked"][0]["engine"], mine[0]["asked"][0]["engine"] = "io_uring", "io_uring_polled"
    (drive,) = compared(mine, before)["drives"]
    assert (drive["figures"], drive["beyond"]) == (0, [])
    assert drive["otherwise"] == {"iops": "engine io_uring → io_uring_polled"}


def test_a_run_that_does_not_count_and_another_drive_are_not_compared():
    before = run_of(*FIRST)
    disturbed = copy.deepcopy(before)
    disturbed[1][-1]["outcome"] = "invalid"
    mine = run_of("r2", 50_000, "2026-11-22T01:00:00Z", power("b2", 8))
    assert compared(mine, disturbed) is None
    other = copy.deepcopy(before)
    for record in other[1]:
        if record["kind"] == "drive":
            record["identity"]["serial"] = "ANOTHER"
    assert compared(mine, other) is None


def test_the_plan_of_the_note_has_its_margin_and_run_json_keeps_it():
    tests = load_plan("micron-p420m")
    assert {test.run_margin for test in tests} == {0.1}
    assert {host_plans.about_test(test)["run_margin"] for test in tests} == {0.1}
    assert "run_margin" not in host_plans.about_test(load_plan(["iops"])[0])


def test_the_report_names_the_figure_and_says_that_no_power_cycle_lay_between(tmp_path):
    fleets.write(tmp_path, *run_of(*FIRST))
    write_report.make(str(tmp_path), "r1")
    fleets.write(tmp_path, *run_of("r2", 80_000, "2026-11-22T01:00:00Z", power("b2", 7)))
    write_report.make(str(tmp_path), "r2")
    told = json.loads((tmp_path / "r2" / "report" / "summary.json").read_text())["fleet"]["margin"]
    assert told["drives"][0]["cycle"] == "no power cycle between"
    page = (tmp_path / "r2" / "report" / "index.html").read_text()
    part = " ".join(page[page.index('id="margin-title"') : page.index('id="since-title"')].split())
    assert "no power cycle between (the host was rebooted, but the drive counts 7 power cycles as before)" in part
    assert "iops write_iops is 80,000" in part and "−20 % against 100,000" in part
