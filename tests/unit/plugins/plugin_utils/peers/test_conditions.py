# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What was measured under other conditions is named, and judged by nobody."""

from __future__ import annotations

import json

import pytest

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.peers import fleet_summary, fleet_verdicts
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.report import download_files
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.verdict import comparability, judge
from ansible_collections.ssdlab.fleet.tests.fixtures.report.fleets import MODEL, fleet

LOADS = ({"cell": "c", "threads": 8, "queue_depth": 32, "cpus": 8},)
OTHER_LOADS = ({"cell": "c", "threads": 4, "queue_depth": 64, "cpus": 4},)


def night(run_id, factor=1.0, seed=1, identity=None, asked=None, about=None, criteria=(), loads=LOADS):
    """A run of 24 drives, with what is otherwise of all of them."""
    run, records = fleet(
        run_id=run_id, low=dict.fromkeys(range(6), factor), seed=seed, noise=0.001, criteria=list(criteria)
    )
    for entry in run["asked"]:
        entry.update({"engine": "io_uring", **(asked or {})})
    for record in records:
        if record["kind"] == "drive":
            record["identity"].update(identity or {})
        elif record["kind"] == "test":
            record["loads"] = list(loads)
    run["tests"]["iops"].update({"cells": ["c"], "rounds": {"max": 25}, **(about or {})})
    return run, records


def made(now, earlier, baseline=("", None)):
    run, records = now
    judgement = judge.judge(run, records)
    before = fleet_summary.before(run, records, judgement, earlier)
    return fleet_summary.make(run, records, judge.valid_tests(run, records), judgement, before, baseline)


def summary(run, records):
    drives = {(record["host"], record["drive"]): record for record in records if record["kind"] == "drive"}
    return json.loads(download_files.summary(run, judge.judge(run, records), fleet_verdicts.NOTHING, None, drives))


OTHERWISE = [
    ({"identity": {"logical_block_size_bytes": 4096}}, "LBA format 512 → 4096"),
    ({"identity": {"metadata_bytes": 8}}, "metadata of a block 0 → 8"),
    ({"identity": {"size_bytes": 800}}, "capacity 960 → 800"),
    ({"identity": {"transport": "sata"}}, "link nvme → sata"),
    ({"asked": {"engine": "libaio"}}, "engine io_uring → libaio"),
    ({"loads": OTHER_LOADS}, "load 8 threads x depth 32 → 4 threads x depth 64"),
    ({"about": {"cells": ["c", "d"], "rounds": {"max": 5}}}, "definition of the test (cells, rounds)"),
]


@pytest.mark.parametrize(("otherwise", "told"), OTHERWISE)
def test_what_changed_beside_the_drives_is_named_and_not_judged(otherwise, told):
    """The drives are 20 % slower, and nobody knows why: that is no regression of the drives."""
    nights = [summary(*night(f"r{number}", seed=number)) for number in (3, 2, 1)]
    found = made(night("r4", 0.8, **otherwise), nights, ("r1", nights[-1]))
    for part in ("since", "nights", "baseline"):
        assert {(item["verdict"], item["changed"]) for item in found[part]["changes"]} == {("conditions changed", told)}
    assert {item["runs"] for item in found["repeatability"]} == {3}, "nor does it count as a repetition"


def test_what_is_alike_is_judged_beside_what_is_not():
    """Format changed two nights ago: the one night since counts, the two before it are named."""
    wide = {"identity": {"logical_block_size_bytes": 4096}}
    nights = [summary(*night("r3", **wide)), summary(*night("r2", seed=2)), summary(*night("r1", seed=3))]
    found = made(night("r4", 0.8, **wide), nights)
    rates = {item["changed"]: item for item in found["nights"]["changes"] if item["metric"] == "write_iops"}
    assert {key: (item["verdict"], item["nights"]) for key, item in rates.items()} == {
        "": ("worse", 1),
        "LBA format 512 → 4096": ("conditions changed", 2),
    }
    assert {item["verdict"] for item in found["since"]["changes"]} == {"worse"}


def test_the_drives_that_were_changed_are_told_from_those_that_were_not():
    run, records = night("r2", 0.8)
    for record in records:
        if record["kind"] == "drive" and record["host"] in ("h0", "h1", "h2"):
            record["identity"]["logical_block_size_bytes"] = 4096
    changes = made((run, records), [summary(*night("r1"))])["since"]["changes"]
    told = {(item["verdict"], item["changed"], item["n"]) for item in changes}
    assert told == {("worse", "", 12), ("conditions changed", "LBA format 512 → 4096", 12)}


@pytest.mark.parametrize("lacks", ["conditions", "definitions"])
def test_a_report_of_an_older_version_is_compared_as_far_as_it_tells(lacks):
    before = summary(*night("r1"))
    before.pop(lacks, None)
    for drive in before["drives"]:
        drive.pop(lacks, None)
    nights = [summary(*night("r2")), before]
    found = made(night("r3", 0.8), nights)["nights"]["changes"]
    assert {(item["verdict"], item["n"], item["nights"]) for item in found} == {("worse", 24, 2)}


@pytest.mark.parametrize("damage", ["text", ["list"], {"cells": ["no digest"]}, None, 7])
def test_damage_of_them_costs_tonights_report_nothing(damage):
    before = summary(*night("r1"))
    before["definitions"] = {"iops": damage}
    for drive in before["drives"]:
        drive["conditions"] = damage
    assert made(night("r2"), [before])["since"]["changes"]
    before["definitions"] = damage
    assert made(night("r2"), [before])["since"]["changes"]


@pytest.mark.parametrize(
    ("otherwise", "told"), [*OTHERWISE, ({"identity": {"model": "OTHER"}}, f"model {MODEL} → OTHER")]
)
def test_a_criterion_holds_nothing_to_a_baseline_of_other_conditions(tmp_path, otherwise, told):
    folder = tmp_path / "r1" / "report"
    folder.mkdir(parents=True)
    (folder / "summary.json").write_text(json.dumps(summary(*night("r1"))))
    share = [{"metric": "write_iops", "min_of_baseline": 0.9, "baseline": "r1"}]
    drives = fleet_verdicts.judge_run(str(tmp_path), *night("r2", 0.8, criteria=share, **otherwise)).judgement["drives"]
    assert {drive["verdict"] for drive in drives} == {"invalid"}
    assert all(
        f"the baseline r1 was measured under other conditions: {told}" in drive["reasons"][0] for drive in drives
    )
    drives = fleet_verdicts.judge_run(str(tmp_path), *night("r2", 0.8, criteria=share)).judgement["drives"]
    assert {drive["verdict"] for drive in drives} == {"fail"}


@pytest.mark.parametrize(
    ("now", "before", "told"),
    [
        ("8 GT/s x4", "8 GT/s x4", ""),
        ("nvme", "8 GT/s x4", ""),
        ("8 GT/s x4", "nvme", ""),
        ("8 GT/s x2", "8 GT/s x4", "link 8 GT/s x4 → 8 GT/s x2"),
        ("6 Gb/s", "sata", ""),
        ("sas", "sata", "link sata → sas"),
    ],
)
def test_a_link_of_unknown_speed_is_no_other_link(now, before, told):
    assert (
        comparability.changed(
            comparability.conditions_key({"link": now}, {}), comparability.conditions_key({"link": before}, {})
        )
        == told
    )


def test_a_run_is_no_baseline_of_itself(tmp_path):
    """Every drive would meet its own figure: from the second report on, when there is one to read."""
    own = summary(*night("r1"))
    folder = tmp_path / "r1" / "report"
    folder.mkdir(parents=True)
    (folder / "summary.json").write_text(json.dumps(own))
    share = [{"metric": "write_iops", "min_of_baseline": 0.9, "baseline": "r1"}]
    drives = fleet_verdicts.judge_run(str(tmp_path), *night("r1", criteria=share)).judgement["drives"]
    assert {drive["verdict"] for drive in drives} == {"invalid"}
    found = made(night("r1"), [], ("r1", own))["baseline"]
    assert "is this run itself" in found["problem"] and found["changes"] == []


def test_a_drive_that_moved_and_a_host_of_another_name_are_not_new():
    before = summary(*night("r1"))
    run, records = night("r2")
    for each in [*run["asked"], *records]:
        if each["host"] == "h3":
            each["host"] = "renamed"
        if each.get("drive") == "S1-2":
            each["host"] = "h0"
    assert made((run, records), [before])["since"]["verdicts"] == []
    # Whose serial number another one tells too may be any of them.
    for record in records:
        if record["kind"] == "drive" and record["drive"] == "S0-0":
            record["identity"]["serial"] = "S1-2"
    told = made((run, records), [before])["since"]["verdicts"]
    assert told == [{"host": "h0", "drive": "S1-2", "before": None, "now": "pass"}]
