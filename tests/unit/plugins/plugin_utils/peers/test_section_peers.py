# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who is a peer of whom in the fleet of summary.json."""

from __future__ import annotations

import pytest

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.peers import fleet_verdicts
from ansible_collections.ssdlab.fleet.tests.fixtures.report.fleets import MODEL, fleet, measured
from ansible_collections.ssdlab.fleet.tests.unit.plugins.plugin_utils.peers.sections import (
    flagged,
    made,
    of_files,
    summary,
)


@pytest.mark.parametrize(("drives", "few"), [(7, [(7, 8)]), (8, [])])
def test_fewer_than_eight_are_reported_and_not_judged(drives, few):
    found = made(*fleet(hosts=1, drives=drives, slow={(0, 0): 0.5}))
    assert [(item["n"], item["needed"]) for item in found["too_few"]] == few and found["groups"][0]["n"] == drives
    assert (flagged(found) == []) == bool(few)


def test_another_firmware_is_no_peer_and_both_are_compared():
    run, records = fleet(hosts=4)
    other, newer = fleet(hosts=4, firmware="D1MU030", low=dict.fromkeys(range(4), 0.8), seed=2)
    for record in newer + other["asked"]:
        record["host"] = "n" + record["host"]
    run["asked"] += other["asked"]
    found = made(run, records + newer)
    assert found["outliers"] == [] and {item["n"] for item in found["groups"]} == {16}
    told = next(item for item in found["firmwares"] if item["metric"] == "write_iops")
    assert (told["firmware"], told["against"], told["verdict"]) == ("D1MU030", "D1MU020", "worse") and told[
        "by"
    ] == pytest.approx(0.25, abs=0.05)


@pytest.mark.parametrize(("names", "told"), [(("1.9", "1.10"), ("1.10", "1.9")), (("1.9", None), None)])
def test_the_newer_firmware_is_the_one_that_people_count_as_newer(names, told):
    run, records = fleet(hosts=4)
    for record in records:
        if record["kind"] == "drive":
            record["identity"]["firmware"] = names[record["host"] in ("h2", "h3")]
    found = {(item["firmware"], item["against"]) for item in made(run, records)["firmwares"]}
    assert found == ({told} if told else set())


def test_how_a_tool_pads_a_model_makes_no_peers_of_their_own():
    run, records = fleet(hosts=2, slow={(1, 1): 0.5})
    padded, plain = f"{MODEL[:4]}   {MODEL[4:]} ", f"{MODEL[:4]} {MODEL[4:]}"
    for record in records:
        if record["kind"] == "drive":
            record["identity"]["model"] = padded if record["host"] == "h1" else plain
    found = made(run, records)
    assert not found["too_few"] and {item["drive"] for item in found["outliers"]} == {"S1-1"}


def test_what_did_not_count_is_nobodys_peer():
    run, records = fleet(hosts=2)
    next(record for record in records if record["kind"] == "test")["outcome"] = "invalid"
    found = made(run, records)
    assert [item["n"] for item in found["too_few"]] == [7]


def test_an_empty_run_has_an_empty_fleet():
    found = made({"run": {"id": "r"}, "asked": [], "tests": {}}, [])
    assert found["groups"] == [] and found["too_few"] == [] and found["comparisons"] == 0


def test_without_pandas_the_run_is_judged_and_says_what_to_install(monkeypatch):
    run, records = fleet(criteria=[{"metric": "write_iops", "min_of_median": 0.9}])
    monkeypatch.setattr(fleet_verdicts.statistics_requirements, "PACKAGES", ("pandas", "no_such_package"))
    judged = fleet_verdicts.judge_run("/nowhere", run, records)
    assert "lacks no_such_package; run: " in judged.fleet["problem"] and judged.fleet["groups"] == []
    assert judged.judgement["verdicts"]["invalid"] == 24


def test_a_record_of_a_test_without_its_drive_is_still_a_figure():
    run, records = fleet(hosts=1, drives=0)
    run["asked"] = [{"host": "h0", "drive": "S9"}]
    assert made(run, [*records, measured("h0", "S9", 5.0)])["too_few"][0]["model"] == ""


def test_the_same_file_on_another_host_is_another_drive():
    now = of_files(*fleet(hosts=12, drives=1, slow={(4, 0): 0.7, (7, 0): 0.7}))
    before = summary(*of_files(*fleet(hosts=12, drives=1, slow={(9, 0): 0.7}, run_id="r1", seed=5)))
    found = made(*now, earlier=[before])
    assert before["fleet"]["outliers"] and {item["cause"] for item in found["outliers"]} == {"can't tell"}
    assert {change["n"] for change in found["since"]["changes"]} == {12}
    assert {(item["drives"], item["runs"]) for item in found["repeatability"]} == {(12, 2)}


def test_drives_with_metadata_beside_their_blocks_are_peers_of_their_own():
    """512+8 is another LBA format than 512+0; before Linux 6.8 the drive's own word after its purge tells it."""
    run, records = fleet(hosts=5)
    for record in records:
        if record["kind"] == "drive" and record["host"] == "h0":
            record["identity"]["metadata_bytes"] = 8
        elif record["kind"] == "drive" and record["host"] == "h1":
            record["identity"]["metadata_bytes"] = None
        elif record["kind"] == "test" and record["host"] == "h1":
            record["purge"] = {"lba_format_after": {"index": 1, "data_bytes": 512, "metadata_bytes": 8}}
    assert {(group["metadata_bytes"], group["n"]) for group in made(run, records)["groups"]} == {(0, 12), (8, 8)}


def test_drives_on_links_of_other_speeds_are_no_peers():
    run, records = fleet(hosts=5)
    for record in records:
        if record["kind"] == "test":
            record["link"] = "8 GT/s x2" if record["host"] in ("h0", "h1") else "8 GT/s x4"
    assert {(group["link"], group["n"]) for group in made(run, records)["groups"]} == {
        ("8 GT/s x2", 8),
        ("8 GT/s x4", 12),
    }
