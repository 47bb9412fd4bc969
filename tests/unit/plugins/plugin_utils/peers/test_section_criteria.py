# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Criteria that are shares of peers or of a baseline, over constructed fleets."""

from __future__ import annotations

import json

import pytest

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.peers import fleet_verdicts
from ansible_collections.ssdlab.fleet.tests.fixtures.report.fleets import fleet, measured
from ansible_collections.ssdlab.fleet.tests.unit.plugins.plugin_utils.peers.sections import made, summary


def test_relative_criteria_are_judged_by_the_peers(tmp_path):
    run, records = fleet(criteria=[{"metric": "write_iops", "min_of_median": 0.9}], slow={(2, 1): 0.8})
    drives = {
        drive["drive"]: drive for drive in fleet_verdicts.judge_run(str(tmp_path), run, records).judgement["drives"]
    }
    assert [name for name, drive in drives.items() if drive["verdict"] != "pass"] == ["S2-1"]
    assert "min_of_median 0.9: median of 23 peers)" in drives["S2-1"]["reasons"][0]
    # Of a single cell too.
    run["criteria"] = [{"test": "iops", "cell": "c", "metric": "write_iops", "min_of_median": 0.9}]
    assert fleet_verdicts.judge_run(str(tmp_path), run, records).judgement["verdicts"]["fail"] == 1


@pytest.mark.parametrize(
    ("more", "verdict", "reason"),
    [
        ([], "invalid", "iops: too few peers: 4 like it, 8 are needed (criterion write_iops min_of_median 0.9)"),
        (
            [{"metric": "write_iops", "min": 5}],
            "pass",
            "iops: too few peers: 4 like it, 8 are needed (criterion write_iops min_of_median 0.9)",
        ),
    ],
)
def test_too_few_peers_are_no_pass_where_nothing_else_is_held(tmp_path, more, verdict, reason):
    run, records = fleet(hosts=1, criteria=[{"metric": "write_iops", "min_of_median": 0.9}, *more])
    drives = fleet_verdicts.judge_run(str(tmp_path), run, records).judgement["drives"]
    assert {drive["verdict"] for drive in drives} == {verdict} and all(reason in drive["reasons"] for drive in drives)


OTHER_LOAD = [{"cell": "c", "threads": 2, "queue_depth": 128, "cpus": 2}]


@pytest.mark.parametrize(
    ("told", "name"), [({"link": "2.5 GT/s x1"}, "link"), ({"loads": OTHER_LOAD}, "load")], ids=["link", "load"]
)
def test_no_host_gets_its_drives_around_a_criterion_by_what_it_tells(tmp_path, told, name):
    """A bad drive passed by the absolute limit alone, as the only one that was measured so."""
    criteria = [{"metric": "write_iops", "min_of_median": 0.9}, {"metric": "write_iops", "min": 5}]
    run, records = fleet(criteria=criteria, slow={(2, 1): 0.5})
    for record in records:
        if record["kind"] == "test" and record["host"].endswith("2"):
            record.update(told)
    drives = {
        drive["drive"]: drive for drive in fleet_verdicts.judge_run(str(tmp_path), run, records).judgement["drives"]
    }
    apart = {label: drive["reasons"] for label, drive in drives.items() if drive["verdict"] != "pass"}
    assert set(apart) == {f"S2-{place}" for place in range(4)}
    assert {drives[label]["verdict"] for label in apart} == {"invalid"}
    said = f"iops: too few peers: 4 like it, 8 are needed; 20 more of its model differ in {name} (criterion"
    assert all(reasons[0].startswith(said) for reasons in apart.values())


def test_a_baseline_run_is_held_drive_by_drive(tmp_path):
    folder = tmp_path / "r1" / "report"
    folder.mkdir(parents=True)
    (folder / "summary.json").write_text(json.dumps(summary(*fleet(hosts=1, run_id="r1"))))
    run, records = fleet(
        hosts=1, slow={(0, 2): 0.7}, criteria=[{"metric": "write_iops", "min_of_baseline": 0.9, "baseline": "r1"}]
    )
    drives = fleet_verdicts.judge_run(str(tmp_path), run, records).judgement["drives"]
    assert [drive["verdict"] for drive in drives] == ["pass", "pass", "fail", "pass"] and "in run r1" in drives[2][
        "reasons"
    ][0]
    run["criteria"][0]["baseline"] = "r0"
    assert fleet_verdicts.judge_run(str(tmp_path), run, records).judgement["verdicts"]["invalid"] == 4


@pytest.mark.parametrize(
    ("key", "before", "now"),
    [
        ("link", "8 GT/s x4", "2.5 GT/s x1"),
        ("loads", [{**OTHER_LOAD[0], "threads": 4, "queue_depth": 64, "cpus": 4}], OTHER_LOAD),
    ],
)
def test_no_host_gets_its_drives_around_a_baseline_by_what_it_tells(tmp_path, key, before, now):
    verdicts = []
    for name, told, slow in (("r1", before, {}), ("r2", before, {}), ("r2", now, {(0, 2): 0.7})):
        run, records = fleet(hosts=1, run_id=name, slow=slow)
        for record in records:
            record.update({key: told} if record["kind"] == "test" else {})
        if name == "r1":
            found = summary(run, records)
            for drive in found["drives"]:
                drive["conditions"].update({"link": told} if key == "link" else {})
            (tmp_path / "r1" / "report").mkdir(parents=True)
            (tmp_path / "r1" / "report" / "summary.json").write_text(json.dumps(found))
        criterion = {"metric": "write_iops", "min_of_baseline": 0.5, "baseline": "r1"}
        run["criteria"] = [criterion, {"metric": "write_iops", "min": 5}]
        judgement = fleet_verdicts.judge_run(str(tmp_path), run, records).judgement
        verdicts.append({drive["verdict"] for drive in judgement["drives"]})
    assert verdicts[1:] == [{"pass"}, {"invalid"}]


def test_a_host_outvotes_nobody_with_drives_that_nobody_asked_for(tmp_path):
    """As many as the gate takes of them, of the fleet's own model and far faster: the others would miss the median."""
    run, records = fleet(criteria=[{"metric": "write_iops", "min_of_median": 0.9}])
    claimed = [dict(record, host="h5", drive="made up") for record in records if record["kind"] == "drive"][:1]
    for number in range(200):
        records.append(dict(claimed[0], drive=f"F{number}", identity=dict(claimed[0]["identity"], serial=f"F{number}")))
        records.append(measured("h5", f"F{number}", 300_000 + number))
    judged = fleet_verdicts.judge_run(str(tmp_path), run, records).judgement["drives"]
    assert {drive["verdict"] for drive in judged if not drive["drive"].startswith("F")} == {"pass"}
    found = made(run, records)
    assert (found["outliers"], found["low_hosts"]) == ([], [])


def test_a_host_that_claims_anothers_serial_takes_it_no_baseline(tmp_path):
    """The inventory names S0-0 by its serial; h1 says the same of a drive that is called otherwise."""
    run, records = fleet(hosts=2, run_id="r1")
    for record in records:
        if record["kind"] == "drive" and record["host"] == "h1":
            record["identity"]["serial"] = "S0-0"
    folder = tmp_path / "r1" / "report"
    folder.mkdir(parents=True)
    for order in (1, -1):
        told = summary(run, records)
        told["drives"] = told["drives"][::order]
        (folder / "summary.json").write_text(json.dumps(told))
        of_now = fleet(hosts=1, criteria=[{"metric": "write_iops", "min_of_baseline": 0.9, "baseline": "r1"}])
        drives = fleet_verdicts.judge_run(str(tmp_path), *of_now).judgement["drives"]
        assert {drive["verdict"] for drive in drives} == {"pass"}
