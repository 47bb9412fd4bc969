# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.peers import fleet_verdicts
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.report import retest
from ansible_collections.ssdlab.fleet.tests.fixtures.report.fleets import fleet, measured

SHARE = {"metric": "write_iops", "min_of_median": 0.9}


def wanted(tmp_path, run, records):
    return retest.drives_to_remeasure(run, records, fleet_verdicts.judge_run(str(tmp_path), run, records))


def test_a_drive_that_missed_only_a_relative_criterion_is_measured_again(tmp_path):
    found = wanted(tmp_path, *fleet(slow={(2, 1): 0.8}, criteria=[SHARE, {"metric": "write_iops", "min": 1000}]))
    assert [again[:3] for again in found.drives] == [("h2", "S2-1", ("iops",))] and found.left == []
    assert found.drives[0].why.startswith("iops: write_iops 8")


@pytest.mark.parametrize(
    "criteria", [[], [{"metric": "write_iops", "min": 90_000}], [SHARE, {"metric": "write_iops", "min": 90_000}]]
)
def test_an_outlier_that_nothing_fails_and_a_missed_absolute_limit_are_not(tmp_path, criteria):
    assert wanted(tmp_path, *fleet(slow={(2, 1): 0.8}, criteria=criteria)) == ([], [])


def test_a_limit_that_is_both_is_firm_where_its_absolute_part_is_missed(tmp_path):
    both = {**SHARE, "min": 90_000}
    assert wanted(tmp_path, *fleet(slow={(2, 1): 0.8}, criteria=[both])).drives == []
    assert len(wanted(tmp_path, *fleet(slow={(2, 1): 0.8}, criteria=[{**both, "min": 70_000}])).drives) == 1


def test_a_low_hosts_drives_are_not_and_it_is_said(tmp_path):
    found = wanted(tmp_path, *fleet(hosts=8, low={3: 0.82}, slow={(5, 2): 0.8}, criteria=[SHARE]))
    assert [again.drive for again in found.drives] == ["S5-2"]
    assert len(found.left) == 4 and "its host is low as a whole" in found.left[0]


def test_many_at_once_are_no_matter_of_single_drives(tmp_path):
    slow = {(host, 0): 0.8 for host in range(6)} | {(0, 1): 0.8}
    found = wanted(tmp_path, *fleet(slow=slow, criteria=[SHARE]))
    assert found.drives == [] and "7 of 24 drives missed relative criteria" in found.left[-1]


def test_drives_that_nobody_asked_for_make_many_no_fewer(tmp_path):
    slow = {(host, 0): 0.8 for host in range(6)} | {(0, 1): 0.8}
    run, records = fleet(slow=slow, criteria=[SHARE])
    for number in range(60):
        drive = f"X{number}"
        identity = {**records[1]["identity"], "serial": drive}
        records.append({**records[1], "host": "h5", "drive": drive, "identity": identity})
        records.append(measured("h5", drive, 100_000))
    found = wanted(tmp_path, run, records)
    assert found.drives == [] and "7 of 24 drives missed relative criteria" in found.left[-1]


def test_one_host_with_most_of_them_keeps_no_others_from_it(tmp_path):
    """So few of its drives are slow that it is no low host."""
    slow = {(0, number): 0.8 for number in range(5)} | {(1, 1): 0.8}
    found = wanted(tmp_path, *fleet(hosts=2, drives=10, slow=slow, criteria=[SHARE]))
    assert [again.drive for again in found.drives] == ["S1-1"]
    assert found.left[-1].startswith("h0: 5 of its drives")


def test_the_tests_that_it_goes_on_from_come_again_too(tmp_path):
    run, records = fleet(slow={(2, 1): 0.8}, criteria=[{**SHARE, "test": "after"}])
    tests = [record for record in records if record["kind"] == "test"]
    run["tests"] = {"other": {"title": "Other"}, **run["tests"], "after": {**run["tests"]["iops"], "follows": "iops"}}
    records += [{**record, "test": "after"} for record in tests]
    assert [again.tests for again in wanted(tmp_path, run, records).drives] == [("iops", "after")]
