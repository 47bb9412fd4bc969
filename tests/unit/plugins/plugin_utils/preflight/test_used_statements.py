# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Statements that a run of this controller used up, of which the host no longer knows."""

from __future__ import annotations

import datetime
import json

import pytest

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.preflight import decision
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.run_folder import last_run_of_drive, runs
from ansible_collections.ssdlab.fleet.tests.fixtures import host_answers
from ansible_collections.ssdlab.fleet.tests.fixtures.report import fleets

NOW = datetime.datetime(2026, 11, 25, 13, 0, 0, tzinfo=datetime.timezone.utc)
USED = "20261120T010000Z-purge"
RAW = ["data of an unknown kind"]


@pytest.fixture
def results(tmp_path):
    """A run that used a statement up, on another host and by another selector, and many later runs."""
    run, records = fleets.fleet(hosts=1, drives=1, run_id=USED)
    for record in records:
        if record["kind"] == "drive":
            record.update(retired="true", gives_up=RAW, time="2026-11-20T02:00:00Z")
            record["identity"] = {**record["identity"], "serial": "SN1", "wwn": "naa.5002538e00000001"}
    fleets.write(tmp_path, run, records)
    for number in range(120):
        run, records = fleets.fleet(hosts=1, drives=1, run_id=f"20261121T0{number:05d}Z-nightly")
        fleets.write(tmp_path, run, records)
    return tmp_path


def decided(results, statement, gives_up, identity=(), **variables):
    entry = {"serial": "SN1", "retired": statement}
    asked = {
        "ssd_drives": [entry],
        "ssd_plan": "demo",
        "ssd_step": "qualify",
        "ssd_mode": "destructive",
        "ssd_run_name": "qualify",
        "ssd_run_id": "",
        "ssd_results_dir": str(results),
        "ssd_tests_dirs": [],
        "ssd_parallel_drives": 1,
        "ssd_assumed_write_mib_s": 500,
        "ssd_fio_min_version": "3.28",
        **variables,
    }
    who = {"serial": "SN1", "size_bytes": 64 << 20, "logical_block_size_bytes": 512, **dict(identity)}
    drive = {"selector": entry, "drive": "SN1", "path": "/dev/x", "identity": who, "eligible": True, "refusals": []}
    facts = {"boot_id": "b", "tools": {"fio": {"path": "/usr/bin/fio", "version": "3.33"}}}
    told = host_answers.of("other-host", asked, [], facts, [{**drive, "own_data": None, "gives_up": gives_up}])
    return decision.decide(decision.Request([told], False, NOW)).findings


@pytest.mark.parametrize(
    "statement, gives_up, identity, says",
    [
        (True, RAW, {}, "used the statement up on 2026-11-20"),
        (True, ["ext, label production"], {}, "used the statement up"),
        (True, RAW, {"serial": "SN1-B", "wwn": "naa.5002538e00000001"}, "used the statement up"),
        (True, RAW, {"serial": "SN2"}, ""),
        (True, [], {}, ""),  # it is blank
        ("2026-11-24", RAW, {}, ""),
        ("2026-11-19", RAW, {}, "used the statement up"),
        (False, RAW, {}, ""),
    ],
)
def test_what_a_run_of_the_controller_used_up_lifts_nothing(results, statement, gives_up, identity, says):
    found = " ".join(decided(results, statement, gives_up, identity))
    assert says in found if says else not found, found


@pytest.mark.parametrize("given, says", [("ALL", "ssd_service_drives: 'ALL' is not a list"), ([], "")])
def test_a_decision_heeds_the_list_in_service(results, given, says):
    """The drive itself may be erased."""
    found = " ".join(decided(results, "2026-11-24", RAW, ssd_service_drives=given))
    assert found.startswith(f"other-host: {says}") if says else not found, found


def test_lines_are_found_without_reading_all(tmp_path):
    """Wherever the word stands, and only in lines that have it; an empty or missing file has none."""
    run, records = fleets.fleet(hosts=1, drives=2, run_id=USED)
    fleets.write(tmp_path, run, records)
    (own,) = runs.on_controller(str(tmp_path))
    path = tmp_path / USED / "results.jsonl"
    lines = path.read_text().splitlines()
    drives = [json.dumps({**json.loads(line), "retired": "true"}) for line in lines if '"kind": "drive"' in line]
    for text, count in (("\n".join([*drives, *lines]), 2), ("\n".join([*lines, drives[0]]), 1), ("", 0)):
        path.write_text(text)
        assert len(last_run_of_drive.used_retired([own])) == count
    path.unlink()
    assert last_run_of_drive.used_retired([own]) == []
    assert last_run_of_drive.used_retired([own], but=USED) == []
