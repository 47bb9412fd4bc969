# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a second measurement does to the first run's records, verdict, report and part in the store."""

from __future__ import annotations

import json

import pytest

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.report import retest, write_report
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.run_folder import remeasurement, results_log
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.store import database, frames, importer
from ansible_collections.ssdlab.fleet.tests.fixtures import documents
from ansible_collections.ssdlab.fleet.tests.fixtures.report import fleets

SHARE = {"metric": "write_iops", "min_of_median": 0.9}
BAD = ("h2", "S2-1")


@pytest.fixture(name="first")
def fixture_first(tmp_path):
    """The folder of a run in which S2-1 is slow."""
    return fleets.write(tmp_path, *fleets.fleet(slow={(2, 1): 0.8}, criteria=[SHARE]))


def second(first, speed=1.0, outcome="steady", of="r2", test=True):
    """The folder of its second measurement."""
    run, records = fleets.fleet(slow={(2, 1): speed}, criteria=[SHARE], run_id="r2-again", seed=2)
    entry = next(entry for entry in run["asked"] if entry["drive"] == BAD[1])
    run.update(asked=[{**entry, "again": ["iops"]}], again_of=of)
    mine = [record for record in records if (record["host"], record.get("drive", BAD[1])) == BAD]
    mine = [{**record, "outcome": outcome} if record["kind"] == "test" else record for record in mine]
    return fleets.write(first.parent, run, [record for record in mine if test or record["kind"] != "test"])


def judged(first):
    write_report.make(str(first.parent), first.name)
    summary = json.loads((first / "report/summary.json").read_text())
    documents.validate(summary, "summary")
    drive = next(drive for drive in summary["drives"] if (drive["host"], drive["drive"]) == BAD)
    return drive["verdict"], drive["tests"][0], " ".join(drive["reasons"])


def test_without_one_the_first_stands(first):
    verdict, test, _reasons = judged(first)
    assert verdict == "fail" and "again" not in test


def test_a_good_second_result_counts_and_the_first_is_told(first):
    second(first)
    verdict, test, reasons = judged(first)
    assert verdict == "pass" and "measured again (r2-again); the first time write_iops 8" in reasons
    assert test["again"]["first"]["metrics"]["write_iops"] < 85_000 < 95_000 < test["metrics"]["write_iops"]


def test_a_second_miss_fails(first):
    second(first, speed=0.79)
    verdict, _test, reasons = judged(first)
    assert verdict == "fail" and reasons.count("min_of_median") == 2


def test_a_second_result_that_does_not_count_is_no_failure_and_no_pass(first):
    second(first, outcome="interrupted")
    assert judged(first)[0] == "invalid"


def test_where_there_is_no_second_result_the_first_stands_and_says_why(first):
    second(first, test=False)
    verdict, test, reasons = judged(first)
    assert (
        verdict == "fail" and test["again"]["first"] is None and "not measured again (r2-again): it has no" in reasons
    )


def test_a_folder_of_that_name_that_is_no_second_measurement_of_it_counts_for_nothing(first):
    second(first, of="another")
    assert judged(first)[0] == "fail" and remeasurement.read(str(first)) is None


def test_only_what_was_to_count_is_taken(first):
    """Another drive's, or another test's, result there changes nothing: a drive fails only by two misses."""
    folder = second(first)
    other = [{**record, "drive": "S2-0"} for record in results_log.load(str(folder / "results.jsonl"))]
    results_log.append(str(folder / "results.jsonl"), other)
    records = results_log.load(str(first / "results.jsonl"))
    changed = [new["drive"] for old, new in zip(records, remeasurement.merged(str(first), records)) if old != new]
    assert changed == ["S2-1"]


def test_the_store_has_both_as_one_run(first):
    second(first)
    with database.opened(database.resolve("", str(first.parent)), make=True) as kept:
        done = importer.import_all(kept, str(first.parent))
        assert [one.run_id for one in done] == ["r2"] and done[0].changed
        assert not importer.import_all(kept, str(first.parent))[0].changed


def seen(run_dir):
    run = json.loads((run_dir / "run.json").read_text())
    found = {}
    for entry in run["asked"]:
        about = {
            "drive": entry["drive"],
            "selector": {"serial": entry["drive"]},
            "identity": {"serial": entry["drive"]},
        }
        found.setdefault(entry["host"], []).append(about)
    return found


def test_what_to_measure_again_is_the_drives_own_entry_and_nothing_else(first):
    plan = retest.plan(str(first.parent), {"id": "r2", "name": "qualify"}, seen(first))
    assert list(plan.hosts) == ["h2"]
    told = plan.hosts["h2"]
    assert (told["run_id"], told["run_name"], told["of"]) == ("r2-again", "qualify-again", "r2")
    assert (told["drives"], told["tests"], told["counts"]) == ([{"serial": "S2-1"}], ["iops"], {"S2-1": ["iops"]})


def test_one_that_was_begun_goes_on_as_it_was_asked_for_and_then_no_more(first):
    folder = second(first, test=False)
    plan = retest.plan(str(first.parent), {"id": "r2", "name": "qualify"}, seen(first))
    assert plan.hosts["h2"]["counts"] == {"S2-1": ["iops"]}
    (folder / "run.json").unlink()
    (folder / "results.jsonl").unlink()
    folder.rmdir()
    second(first, speed=0.79)
    assert retest.plan(str(first.parent), {"id": "r2", "name": "qualify"}, seen(first)) == ({}, [])


def test_a_drive_that_this_play_did_not_look_at_is_left(first):
    plan = retest.plan(str(first.parent), {"id": "r2", "name": "qualify"}, {})
    assert plan.hosts == {} and "this play did not check it" in plan.lines[-1]


def test_a_second_result_from_before_the_host_measured_anew_does_not_count(first):
    """After a cleanup.yml, for instance: the run is measured whole again, and so is the drive that misses again."""
    second(first)
    path = str(first / "results.jsonl")
    records = [record for record in results_log.load(path) if record["host"] == "h2"]
    results_log.begin_anew(path, "r2", "h2")
    later = {"time": "2036-11-24T02:00:00.000Z"}
    times = {"started": "2026-11-24T01:00:00.000Z", "finished": "2026-11-24T02:00:00.000Z"}
    results_log.append(path, [{**record, **later, **(times if record["kind"] == "test" else {})} for record in records])
    verdict, test, reasons = judged(first)
    assert verdict == "fail" and test["again"]["first"] is None and "which the host has repeated since" in reasons
    plan = retest.plan(str(first.parent), {"id": "r2", "name": "qualify"}, seen(first))
    assert plan.hosts["h2"]["counts"] == {"S2-1": ["iops"]}


def test_the_second_measurement_is_no_run_of_its_own_in_the_store(first):
    folder = second(first)
    with database.opened(database.resolve("", str(first.parent)), make=True) as kept:
        done = importer.import_run(kept, str(folder))
    assert not done.changed and "with the run that it measured again: r2" in done.problems[0]
    assert frames.started(database.resolve("", str(first.parent))) == {}
