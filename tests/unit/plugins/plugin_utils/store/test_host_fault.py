# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host's fault in what the store says to others: never a drive's."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("sqlalchemy")
pytest.importorskip("pandas")

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.common import schema
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.report import write_report
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.store import database, exports, importer, quarantine
from ansible_collections.ssdlab.fleet.tests.fixtures.report import fleets

SHARE = {"test": "iops", "metric": "write_iops", "min_of_median": 0.9}
OF_HOST = [f"S3-{number}" for number in range(4)]


def night(folder, number, **options):
    """A run of eight hosts in the store: (its id, the marks that it leads to)."""
    run, records = fleets.fleet(hosts=8, run_id=f"2026112{number}T010000Z-qualify", criteria=[SHARE], **options)
    run["started"] = f"2026-11-2{number}T01:00:00Z"
    path = fleets.write(folder, run, records)
    write_report.make(str(folder), path.name)
    with database.opened(database.resolve("", str(folder)), make=True) as store:
        importer.import_run(store, str(path))
        return path.name, quarantine.mark_drives(store, path.name, 2)


@pytest.fixture(name="made", scope="module")
def fixture_made(tmp_path_factory):
    """Host h3 is low, S5-2 is bad, in one run: (its id, folder)."""
    folder = tmp_path_factory.mktemp("results")
    return night(folder, 1, low={3: 0.82}, slow={(5, 2): 0.7})[0], folder


def written(made, tmp_path, form):
    return exports.write(database.resolve("", str(made[1])), made[0], str(tmp_path), [form])


def test_ocptv_says_error_and_never_fail(made, tmp_path):
    check = schema.validator(schema.load("ocptv"))
    ends, diagnoses, errors = {}, {}, {}
    for path in written(made, tmp_path, "ocptv"):
        lines = [json.loads(line) for line in open(path, encoding="utf-8")]
        assert [error.message for line in lines for error in check.iter_errors(line)] == []
        drive = lines[1]["testRunArtifact"]["testRunStart"]["dutInfo"]["hardwareInfos"][0]["location"]
        ends[drive] = tuple(lines[-1]["testRunArtifact"]["testRunEnd"].values())
        steps = [line["testStepArtifact"] for line in lines if "testStepArtifact" in line]
        diagnoses[drive] = [step["diagnosis"]["type"] for step in steps if "diagnosis" in step]
        errors[drive] = [
            line["testRunArtifact"]["error"]["symptom"] for line in lines if "error" in line.get("testRunArtifact", {})
        ]
    assert {ends[drive] for drive in OF_HOST} == {("ERROR", "NOT_APPLICABLE")}
    assert {tuple(diagnoses[drive]) for drive in OF_HOST} == {("UNKNOWN",)}
    assert {tuple(errors[drive]) for drive in OF_HOST} == {("host-low",)}
    assert (ends["S5-2"], diagnoses["S5-2"], errors["S5-2"]) == (("COMPLETE", "FAIL"), ["FAIL"], [])
    assert (ends["S0-0"], diagnoses["S0-0"]) == (("COMPLETE", "PASS"), ["PASS"])


def test_prometheus_has_a_gauge_of_it(made, tmp_path):
    (path,) = written(made, tmp_path, "prometheus")
    lines = [line for line in open(path, encoding="utf-8") if line.startswith("ssdlab_fleet_drive_host_fault{")]
    assert len(lines) == 32
    assert sorted(line.split('drive="')[1][:4] for line in lines if line.endswith(" 1.0\n")) == OF_HOST


def test_the_stores_judgement_is_the_reports(made):
    run_id, folder = made
    with database.opened(database.resolve("", str(folder))) as store:
        stored = exports.load(store, run_id).judgement
    told = json.loads((folder / run_id / "report" / "summary.json").read_text())
    assert {(drive["drive"], drive.get("host_fault")) for drive in told["drives"]} == {
        (drive["drive"], drive.get("host_fault")) for drive in stored["drives"]
    }
    assert sum(drive.get("host_fault", False) for drive in stored["drives"]) == 4


def test_a_night_that_failed_by_its_host_is_none_of_a_row(tmp_path):
    """After two: S3-1 fails by its host, then twice by itself; the night of its host counts as if it had not been."""
    bad = {(3, 1): 0.7}
    assert [night(tmp_path, number, low={3: 0.82})[1] for number in (1, 2)] == [[], []]
    assert night(tmp_path, 3, slow=bad)[1] == []
    assert night(tmp_path, 4, low={3: 0.82})[1] == []
    (mark,) = night(tmp_path, 5, slow=bad)[1]
    assert (mark.drive, mark.nights) == ("S3-1", 2)


def test_a_slice_that_shows_its_host_to_be_slow_takes_a_mark_back(tmp_path):
    """By the slice that came first alone nobody could tell the host from its drives."""
    run, records = fleets.fleet(hosts=8, run_id="20261121T010000Z-qualify", criteria=[SHARE], low={3: 0.82})
    url, marked = f"sqlite:///{tmp_path}/store.sqlite", []
    for hosts in (["h0", "h3"], ["h1", "h2", "h4", "h5", "h6", "h7"]):
        mine = [entry for entry in run["asked"] if entry["host"] in hosts]
        own = [record for record in records if record["host"] in hosts]
        path = fleets.write(tmp_path / hosts[0], {**run, "asked": mine}, own)
        with database.opened(url, make=True) as store:
            importer.import_run(store, str(path))
            marked.append([mark.drive for mark in quarantine.mark_drives(store, path.name, 1)])
    assert marked == [OF_HOST, []]
    assert quarantine.standing(url, "") == []
