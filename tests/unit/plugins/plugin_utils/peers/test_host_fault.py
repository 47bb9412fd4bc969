# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which failed drives failed only because of their host, over constructed fleets."""

from __future__ import annotations

import json
import random

import pytest

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.peers import fleet_verdicts
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.report import download_files, write_report
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.watch import final_tables
from ansible_collections.ssdlab.fleet.tests.fixtures import documents
from ansible_collections.ssdlab.fleet.tests.fixtures.report import fleets
from ansible_collections.ssdlab.fleet.tests.fixtures.report.fleets import fleet, measured

SHARE = {"test": "iops", "metric": "write_iops", "min_of_median": 0.9}
TAIL = {"metric": "write_p99_9_latency_us", "max_of_median": 1.1}
FIRM = {"metric": "write_iops", "min": 90_000}
LOOSE = {"metric": "write_iops", "min": 1000}
BAND = {**SHARE, "max_of_median": 1.2}
LATENCY_BAND = {"metric": "write_mean_latency_us", "max_of_median": 1.1, "min_of_median": 0.8}
LOW = {3: 0.82}
OF_HOST = [f"S3-{number}" for number in range(4)]


def judged(tmp_path, **options):
    return fleet_verdicts.judge_run(str(tmp_path), *fleet(hosts=8, **options)).judgement


def of_their_host(judgement):
    return sorted(drive["drive"] for drive in judgement["drives"] if drive.get("host_fault"))


@pytest.mark.parametrize(
    ("criteria", "low", "slow", "expected"),
    [
        ([SHARE], {3: 0.82}, {}, OF_HOST),
        ([TAIL], {3: 0.82}, {}, OF_HOST),
        ([SHARE, LOOSE], {3: 0.82}, {}, OF_HOST),
        ([{**SHARE, "min": 1000}], {3: 0.82}, {}, OF_HOST),
        # It is worse than its neighbours, too.
        ([SHARE], {3: 0.82}, {(3, 1): 0.7}, ["S3-0", "S3-2", "S3-3"]),
        # A datasheet's limit knows no host.
        ([FIRM], {3: 0.82}, {}, []),
        ([SHARE, FIRM], {3: 0.82}, {}, []),
        ([{**SHARE, "min": 90_000}], {3: 0.82}, {}, []),
        # No host is low.
        ([SHARE], {}, {(3, 1): 0.7}, []),
        # Too fast is nothing that a slow host does.
        ([BAND], {3: 0.82}, {(3, 1): 1.6}, ["S3-0", "S3-2", "S3-3"]),
        ([LATENCY_BAND], {3: 0.82}, {(3, 1): 1.7}, ["S3-0", "S3-2", "S3-3"]),
        # A figure of 0 is a figure.
        ([SHARE], {3: 0.82}, {(3, 1): 0}, ["S3-0", "S3-2", "S3-3"]),
        # The drive of a good host, beside a low one.
        ([SHARE], {3: 0.82}, {(5, 2): 0.7}, OF_HOST),
    ],
)
def test_a_drive_that_is_no_worse_than_its_neighbours_on_a_low_host(tmp_path, criteria, low, slow, expected):
    judgement = judged(tmp_path, criteria=criteria, low=low, slow=slow)
    assert of_their_host(judgement) == expected
    marked = [drive for drive in judgement["drives"] if drive.get("host_fault")]
    assert all(drive["verdict"] == "fail" and drive["host"] == "h3" for drive in marked)
    assert all(drive["reasons"][0].startswith("the host's fault: h3 is ") for drive in marked)
    assert all("host_fault" in drive or "the host" not in drive["reasons"][0] for drive in judgement["drives"])


def test_a_drive_that_is_just_below_its_limit_on_a_host_that_is_just_above_it(tmp_path):
    """S3-1 misses by what the host lacks, not by what sets it apart from the others there."""
    judgement = judged(tmp_path, criteria=[SHARE], low={3: 0.92}, slow={(3, 1): 0.96}, noise=0.003)
    assert of_their_host(judgement) == ["S3-1"]


def test_a_test_that_does_not_count_is_no_reason_why_it_failed(tmp_path):
    """The second test of h3's drives was not steady, and far below a limit of its own."""
    run, records = fleet(hosts=8, criteria=[SHARE, {"test": "other", "metric": "write_iops", "min": 90_000}], low=LOW)
    run["tests"]["other"] = {"title": "other", "tracked": []}
    for entry in run["asked"]:
        entry["tests"] = ["iops", "other"]
        on_low = entry["host"] == "h3"
        second = {**measured(entry["host"], entry["drive"], 50_000 if on_low else 100_000), "test": "other"}
        records.append({**second, **({"outcome": "not_steady", "reasons": ["too long"]} if on_low else {})})
    assert of_their_host(fleet_verdicts.judge_run(str(tmp_path), run, records).judgement) == OF_HOST


@pytest.mark.parametrize(
    ("limits", "now", "slow", "was", "noise"),
    [
        # Its neighbours miss what they had, it the others' median.
        ({"min_of_median": 0.9, "min_of_baseline": 0.5}, 0.82, 0.87, 2.4, 0.03),
        # Its neighbours are as fast as they were.
        ({"min_of_baseline": 0.9, "min": 75_000}, 0.76, 84 / 76, 0.76, 0.01),
    ],
)
def test_neighbours_that_are_held_to_another_of_its_limits_excuse_nothing(tmp_path, limits, now, slow, was, noise):
    """now, was: the speed of h3's drives, and in the baseline; there that of S3-1 was 1. slow: how S3-1 differs now."""
    folder = fleets.write(
        tmp_path, *fleet(hosts=8, low={3: was}, slow={(3, 1): 1 / was}, run_id="20261101T010000Z-qualify")
    )
    write_report.make(str(tmp_path), folder.name)
    criterion = {"test": "iops", "metric": "write_iops", **limits, "baseline": folder.name}
    judgement = judged(tmp_path, criteria=[criterion], low={3: now}, slow={(3, 1): slow}, noise=noise, seed=2)
    verdicts = {drive["drive"]: drive["verdict"] for drive in judgement["drives"]}
    assert verdicts["S3-1"] == "fail" and "S3-1" not in of_their_host(judgement)


def test_drives_of_another_model_excuse_nothing(tmp_path):
    """h3 slows its drives of one model in iops, and those of the other in another test: S3-5, of the other model, is
    low in iops where the others of its model are not.
    """
    run, records = fleet(hosts=8, drives=8, criteria=[SHARE])
    noise = random.Random(3)
    run["tests"]["other"] = {"title": "other", "tracked": [{"cell": "c", "metric": "write_iops"}]}
    made = []
    for entry in run["asked"]:
        entry["tests"] = ["iops", "other"]
        host, drive, is_second = entry["host"], entry["drive"], int(entry["drive"][-1]) >= 4
        first, second = (noise.gauss(100_000, 6000), noise.gauss(100_000, 1000)) if is_second else (100_000, 100_000)
        if host == "h3":
            first, second = (first, 80_000) if is_second else (80_000, second)
        first = 84_000 if drive == "S3-5" else first
        made += [measured(host, drive, first), {**measured(host, drive, second), "test": "other"}]
    for record in records:
        if record["kind"] == "drive" and int(record["drive"][-1]) >= 4:
            record["identity"]["model"] = "OTHER"
    records = [record for record in records if record["kind"] != "test"] + made
    found = fleet_verdicts.judge_run(str(tmp_path), run, records)
    assert [len(entry["drives"]) for entry in found.fleet["low_hosts"]] == [8]
    failed = {drive["drive"] for drive in found.judgement["drives"] if drive["verdict"] == "fail"}
    assert "S3-5" in failed and set(OF_HOST) <= failed
    assert of_their_host(found.judgement) == OF_HOST


@pytest.mark.parametrize("nights", [1, fleet_verdicts.EARLIER_RUNS])
def test_a_drive_that_was_low_on_two_hosts_is_not_its_hosts(tmp_path, nights):
    """S3-1 was in h6 the night before, and low there beside good neighbours."""
    options = {"hosts": 8, "criteria": [SHARE]}
    before, records = fleet(slow={(6, 1): 0.8}, run_id="20261121T010000Z-qualify", **options)
    before["started"] = "2026-11-21T01:00:00Z"
    renamed = json.loads(
        json.dumps([before, records]).replace("S3-1", "X").replace("S6-1", "S3-1").replace('"X"', '"S6-1"')
    )
    for record in renamed[1]:
        if record["kind"] == "test":
            record["finished"] = "2026-11-21T02:00:00Z"
    reported(tmp_path, *renamed)
    # A night between, in which nothing was low: figures may be compared with this one alone.
    between, fine = fleet(run_id="20261121T120000Z-qualify", **options)
    reported(tmp_path, {**between, "started": "2026-11-21T12:00:00Z"}, fine)
    run, records = fleet(low={3: 0.82}, run_id="20261122T010000Z-qualify", **options)
    report = fleet_verdicts.judge_run(str(tmp_path), run, records, fleet_verdicts.Baseline(nights=nights)).judgement
    assert of_their_host(report) == ["S3-0", "S3-2", "S3-3"]
    # As the store judges, which nobody tells how many nights figures are compared with.
    assert fleet_verdicts.judgement_of(str(tmp_path), run, records) == report


def reported(results, run, records):
    made = fleet_verdicts.judge_run(str(results), run, records)
    folder = results / run["run"]["id"]
    (folder / "report").mkdir(parents=True)
    (folder / "run.json").write_text(json.dumps({"schema_version": 1, **run}))
    (folder / "report" / "summary.json").write_text(download_files.summary(run, made.judgement, made.fleet))


def test_it_is_in_every_output(tmp_path):
    run, records = fleet(hosts=8, low={3: 0.82}, slow={(5, 2): 0.7}, criteria=[SHARE])
    made = fleet_verdicts.judge_run(str(tmp_path), run, records)
    summary = json.loads(download_files.summary(run, made.judgement, made.fleet))
    documents.validate(summary, "summary")
    assert summary["verdicts"]["fail"] == 5
    junit = download_files.junit(run, made.judgement)
    assert junit.count('<error type="host_fault"') == 4 and junit.count("<failure") == 1
    assert 'failures="1" errors="4"' in junit
    lines = final_tables.lines(run, records, summary)
    (told,) = [line for line in lines if "the host's fault: h3" in line]
    assert told.startswith("[1] 4 drives") and sum("[1]" in line for line in lines) == 1 + 4
