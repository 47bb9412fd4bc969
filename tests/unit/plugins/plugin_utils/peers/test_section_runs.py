# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the fleet of summary.json says of the runs before: drives that moved, nights, baselines."""

from __future__ import annotations

import json

import pytest

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.peers import fleet_verdicts
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.report import changes
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.watch import final_tables
from ansible_collections.ssdlab.fleet.tests.fixtures.report.fleets import fleet
from ansible_collections.ssdlab.fleet.tests.unit.plugins.plugin_utils.peers.sections import (
    made,
    night,
    of_files,
    summary,
)

BEFORE = night("r1", "2026-11-20T01:00:00Z", "h9", until="2026-11-20T03:00:00Z")


def test_a_drive_that_was_low_on_two_hosts_is_the_drive():
    run, records = fleet(hosts=12, drives=1, slow={(4, 0): 0.7})
    found = made(run, records, [BEFORE])
    assert {(item["cause"], item["why"]) for item in found["outliers"]} == {("drive", "it was low on h9 and on h4")}
    assert found["claimed_twice"] == []


@pytest.mark.parametrize(
    ("earlier", "told"),
    [
        # The operator calls the drive of h9 otherwise: only h9 says that it is this one.
        ([night("r1", "2026-11-20T01:00:00Z", "h9", "wwn-1", "2026-11-20T03:00:00Z")], ""),
        # When h9 had it nobody knows.
        ([night("r1", "2026-11-20T01:00:00Z", "h9")], ""),
        ([night("r1", "", "h9", until="2026-11-20T03:00:00Z")], ""),
        # Still measured on h9 as this run began.
        (
            [night("r1", "2026-11-20T01:00:00Z", "h9", until="2026-11-22T01:30:00Z")],
            "h9 measured it until 2026-11-22T01:30:00Z, and h4 claims it since 2026-11-22T01:00:00Z",
        ),
        # There and back, also where it was not low every time.
        (
            [BEFORE, night("r0", "2026-11-19T01:00:00Z", "h4", low=False)],
            "it is claimed by h4, then h9, then h4",
        ),
        # Of both in a run before, by a drive that was no outlier.
        (
            [
                {**BEFORE, "drives": [*BEFORE["drives"], *night("r1", "", "h4", low=False)["drives"]]},
                night("r0", "2026-11-19T01:00:00Z", "h8", until="2026-11-19T03:00:00Z"),
            ],
            "h9 and h4 both claim it in run r1",
        ),
    ],
)
def test_a_serial_that_a_host_may_have_made_up_blames_no_drive(earlier, told):
    run, records = fleet(hosts=12, drives=1, slow={(4, 0): 0.7})
    found = made(run, records, earlier)
    assert {item["cause"] for item in found["outliers"]} == {"can't tell"}
    assert [item["told"] for item in found["claimed_twice"]] == ([told] if told else [])
    assert all(told in item["why"] and "low on" not in item["why"] for item in found["outliers"])


def test_an_outlier_of_tonight_tells_later_runs_until_when_its_drive_was_there():
    run, records = fleet(hosts=12, drives=1, slow={(4, 0): 0.7})
    for record in records:
        if record["kind"] == "test":
            record["finished"] = "2026-11-22T02:00:00.5Z"
    before = {**summary(run, records), "run": {"id": "r2", "name": "qualify", "started": run["started"]}}
    later, more = fleet(hosts=12, drives=1, slow={(7, 0): 0.7}, run_id="r3")
    later["started"] = "2026-11-23T01:00:00Z"
    # The operator moved S4-0 from h4 to h7.
    for each in [*later["asked"], *more]:
        if each.get("drive") in ("S4-0", "S7-0"):
            each["drive"] = {"S4-0": "S7-0", "S7-0": "S4-0"}[each["drive"]]
        if each.get("kind") == "drive":
            each["identity"]["serial"] = each["drive"]
    found = made(later, more, [before])["outliers"]
    assert {item["why"] for item in found} == {"it was low on h4 and on h7"}
    for record in records:
        record.pop("finished", None)
    found = made(later, more, [{**summary(run, records), "run": before["run"]}])["outliers"]
    assert {item["cause"] for item in found} == {"can't tell"}


def test_since_the_last_run_a_verdict_and_a_model_changed():
    limit = [{"metric": "write_iops", "min": 95_000}]
    before = summary(*fleet(run_id="r1", criteria=limit, noise=0.001))
    run, records = fleet(criteria=limit, low=dict.fromkeys(range(6), 0.9), noise=0.001)
    found = made(run, records, [before])["since"]
    assert (
        found["run"] == "r1"
        and len(found["verdicts"]) == 24
        and found["verdicts"][0] == {"host": "h0", "drive": "S0-0", "before": "pass", "now": "fail"}
    )
    told = next(item for item in found["changes"] if item["metric"] == "write_iops")
    assert told["verdict"] == "worse" and told["n"] == 24 and told["by"] == pytest.approx(1 / 0.9 - 1, abs=0.01)


def test_since_the_last_run_a_host_became_slow_and_one_is_well():
    # And h5, which is slow now, was measured nowhere before; h1 was slow, and nothing of it counts now.
    run, records = fleet(low={1: 0.8, 3: 0.8}, run_id="r1")
    before = summary(run, [record for record in records if record["host"] != "h5"])
    assert [entry["host"] for entry in before["fleet"]["low_hosts"]] == ["h1", "h3"]
    now, records = fleet(low={4: 0.8, 5: 0.8}, seed=2)
    found = made(now, [each for each in records if each["kind"] != "test" or each["host"] != "h1"], [before])
    assert {entry["host"] for entry in found["low_hosts"]} == {"h4", "h5"}
    assert (found["since"]["hosts_low"], found["since"]["hosts_well"]) == (["h4"], ["h3"])
    told = changes.news(found, {})["told"]
    assert told[:2] == ["host h4 is slow as a whole now", "host h3 is no longer slow"]
    text = "\n".join(final_tables.fleet_lines(found, {"iops": "write_iops"}))
    assert "since r1: h4 is slow as a whole now" in text and "since r1: h3 is no longer slow" in text


def test_the_last_nights_tell_more_than_the_last_one():
    """The night before was as bad as this one: only the nights before that say that the drives were better."""
    low = dict.fromkeys(range(6), 0.9)
    nights = [
        summary(*fleet(run_id=f"r{night}", low=low if night == 4 else None, seed=night)) for night in (4, 3, 2, 1, 0)
    ]
    found = made(*fleet(run_id="r5", low=low), nights)
    assert {item["verdict"] for item in found["since"]["changes"]} == {"same"} and found["nights"]["runs"] == [
        "r4",
        "r3",
        "r2",
        "r1",
        "r0",
    ]
    told = next(item for item in found["nights"]["changes"] if item["metric"] == "write_iops")
    assert (told["verdict"], told["n"], told["nights"]) == ("worse", 24, 5) and told["by"] == pytest.approx(
        1 / 0.9 - 1, abs=0.02
    )
    repeats = next(item for item in found["repeatability"] if item["metric"] == "write_iops")
    assert (repeats["drives"], repeats["runs"]) == (24, 6) and 0.01 < repeats["cv"] < repeats["cv_at_most"] < 0.1
    assert made(*fleet())["nights"] is None and made(*fleet())["repeatability"] == []


def test_a_firmware_that_the_same_drives_got_is_named():
    before = summary(*fleet(run_id="r1"))
    found = made(*fleet(firmware="D1MU030", low=dict.fromkeys(range(6), 0.9)), [before])["since"]["changes"]
    assert {(item["firmware"], item["against"], item["verdict"]) for item in found} == {("D1MU030", "D1MU020", "worse")}


def test_a_baseline_is_compared_with_and_one_without_a_report_is_told():
    accepted = summary(*fleet(run_id="r0", noise=0.001))
    run, records = fleet(low=dict.fromkeys(range(6), 0.9), noise=0.001)
    found = made(run, records, (), ("r0", accepted))["baseline"]
    assert found["run"] == "r0" and {item["verdict"] for item in found["changes"]} == {"worse"}
    lost = made(run, records, (), ("r0", None))["baseline"]
    assert "run report.yml with ssd_run_id=r0" in lost["problem"] and made(run, records)["baseline"] is None


def test_two_drives_of_one_serial_were_not_swapped():
    run, records = fleet(hosts=12, drives=1, slow={(4, 0): 0.7, (7, 0): 0.7})
    for record in records:
        if record["kind"] == "drive" and record["host"] in ("h4", "h7"):
            record["identity"]["serial"] = "0123456789"
    assert {item["cause"] for item in made(run, records)["outliers"]} == {"can't tell"}


def test_a_baseline_of_the_same_file_on_another_host_is_none(tmp_path):
    folder = tmp_path / "r1" / "report"
    folder.mkdir(parents=True)
    before = of_files(*fleet(hosts=1, drives=1, run_id="r1"))
    (folder / "summary.json").write_text(json.dumps(summary(*before)))
    run, records = of_files(
        *fleet(hosts=2, drives=1, criteria=[{"metric": "write_iops", "min_of_baseline": 0.9, "baseline": "r1"}])
    )
    told = fleet_verdicts.judge_run(str(tmp_path), run, records).judgement["drives"]
    assert [drive["verdict"] for drive in told] == ["pass", "invalid"]


def test_what_has_too_few_peers_is_a_baseline_and_a_night_all_the_same(tmp_path):
    """Its verdict is invalid, and its figures are as good as any."""
    share = {"metric": "write_iops", "min_of_median": 0.9}
    before = summary(*fleet(hosts=1, drives=7, run_id="r1", criteria=[share]))
    assert {drive["verdict"] for drive in before["drives"]} == {"invalid"}
    folder = tmp_path / "r1" / "report"
    folder.mkdir(parents=True)
    (folder / "summary.json").write_text(json.dumps(before))
    run, records = fleet(
        hosts=1, drives=7, criteria=[{"metric": "write_iops", "min_of_baseline": 0.9, "baseline": "r1"}]
    )
    judged = fleet_verdicts.judge_run(str(tmp_path), run, records)
    assert judged.judgement["verdicts"]["pass"] == 7
    assert {change["n"] for change in made(run, records, [before])["since"]["changes"]} == {7}
