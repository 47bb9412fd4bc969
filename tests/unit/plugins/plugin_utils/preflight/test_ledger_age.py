# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host's ledger that is older than what this controller knows: its state folder was restored, or is another one."""

from __future__ import annotations

import datetime
import json

import pytest

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.preflight import decision
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.run_folder import last_run_of_drive
from ansible_collections.ssdlab.fleet.tests.fixtures import host_answers
from ansible_collections.ssdlab.fleet.tests.fixtures.report import fleets
from ansible_collections.ssdlab.fleet.tests.unit.plugins.plugin_utils.preflight.fleets import recorded

NOW = datetime.datetime(2026, 11, 25, 13, 0, 0, tzinfo=datetime.timezone.utc)
PURGE = {
    "method": "nvme_format",
    "seconds": 1,
    "verified": True,
    "verification": {"sentinels": 8, "survived": 0},
    "purge_class": "pts",
}
OLD, NEW = "20261120T010000Z-qualify", "20261122T010000Z-qualify"


def ledger(run_id, state="released", released="2026-11-20T02:00:00.000Z", **more):
    return {"run_id": run_id, "state": state, "released": released, "reason": "", "proved": "counters", **more}


@pytest.fixture
def controller(tmp_path):
    """Two runs of a host with one drive. A factory: how the newer one left it, and whether it wrote."""

    def make(left="evidence", wrote=True, host="h0"):
        for run_id, state in ((OLD, "as_is"), (NEW, left)):
            run, records = fleets.fleet(hosts=1, drives=1, run_id=run_id)
            run["started"] = f"{run_id[:4]}-{run_id[4:6]}-{run_id[6:8]}T01:00:00Z"
            for record in [*records, *run["asked"]]:
                record["host"] = host
                if record.get("kind") == "drive":
                    record["left"] = state
                if record.get("kind") == "test" and wrote:
                    record["purge"] = PURGE
            fleets.write(tmp_path, run, records)

    return make


def decided(tmp_path, own_data, identity=(), entry=(), **variables):
    asked = {
        "ssd_drives": [{"serial": "S0-0", **dict(entry)}],
        "ssd_plan": "demo",
        "ssd_step": "qualify",
        "ssd_mode": "destructive",
        "ssd_run_name": "qualify",
        "ssd_run_id": "",
        "ssd_results_dir": str(tmp_path),
        "ssd_tests_dirs": [],
        "ssd_parallel_drives": 1,
        "ssd_assumed_write_mib_s": 500,
        "ssd_fio_min_version": "3.28",
        **variables,
    }
    who = {"serial": "S0-0", "size_bytes": 64 << 20, "logical_block_size_bytes": 512, **dict(identity)}
    drive = {"selector": asked["ssd_drives"][0], "drive": "S0-0", "path": "/dev/x", "identity": who, "eligible": True}
    facts = {"boot_id": "b", "tools": {"fio": {"path": "/usr/bin/fio", "version": "3.33"}}}
    return decision.decide(
        decision.Request(
            [host_answers.of("h0", asked, [], facts, [{**drive, "refusals": [], "own_data": own_data}])], False, NOW
        )
    )


@pytest.mark.parametrize("own_data", [None, ledger(OLD), ledger("another-controllers")])
def test_evidence_that_the_ledger_lost_stops_the_run(tmp_path, controller, own_data):
    controller()
    (found,) = decided(tmp_path, own_data).findings
    assert found.startswith(f"h0: drive S0-0: older_ledger: run {NEW} kept it as evidence") and "ssd_state_dir" in found
    assert f'release_evidence: "{NEW}"' in found


@pytest.mark.parametrize(
    ("own_data", "identity", "entry"),
    [
        (ledger(NEW, "evidence"), {}, {}),  # nothing is lost: the host itself refuses the drive
        (ledger(NEW), {}, {}),
        (None, {}, {"release_evidence": NEW}),
        (None, {"serial": "S9"}, {}),  # another drive by now
        (None, {"wwn": "naa.5"}, {}),
        (ledger("another-controllers", released="2026-11-23T02:00:00.000Z"), {}, {}),
        (ledger("another-controllers", "writing", None), {}, {}),
    ],
)
def test_what_is_not_surely_lost_stops_nobody(tmp_path, controller, own_data, identity, entry):
    controller()
    assert decided(tmp_path, own_data, identity, entry).findings == []


def test_a_release_of_another_run_is_none_of_this_one(tmp_path, controller):
    controller()
    assert decided(tmp_path, ledger(OLD), entry={"release_evidence": OLD}).findings


def test_evidence_of_another_host_of_that_name_of_a_drive_is_not_its(tmp_path, controller):
    controller(host="h7")
    assert decided(tmp_path, None).findings == []


def test_evidence_that_a_later_run_replaced_stops_nobody(tmp_path, controller):
    controller(left="as_is")
    path = tmp_path / OLD / "results.jsonl"
    path.write_text(path.read_text().replace('"left": "as_is"', '"left": "evidence"'))
    assert decided(tmp_path, ledger(NEW)).findings == []


@pytest.mark.parametrize(
    ("left", "wrote", "own_data", "warned"),
    [
        ("as_is", True, ledger(OLD), True),
        ("blank", True, ledger(OLD), True),
        ("as_is", False, ledger(OLD), False),  # it only read, and left the ledger as it was
        ("as_is", True, ledger(NEW), False),
        ("as_is", True, ledger("another-controllers"), False),
        ("as_is", True, None, False),  # another ssd_state_dir, or a new system
    ],
)
def test_an_older_ledger_is_a_warning(tmp_path, controller, left, wrote, own_data, warned):
    controller(left, wrote)
    told = decided(tmp_path, own_data)
    assert told.findings == []
    assert [item["check"] for item in recorded(told)["warnings"]] == ["older_ledger"] * warned
    words = f"{OLD} was the last to write", f"{NEW} wrote later"
    assert any(all(word in line for word in words) for line in told.warnings) == warned


def test_damage_of_an_earlier_run_costs_nothing(tmp_path, controller):
    controller()
    (tmp_path / NEW / "results.jsonl").write_bytes(b'{"kind": "drive", \xff\n[]\n{"kind": "drive"}\n')
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "run.json").write_text(json.dumps({"run": {"id": "x", "name": "n"}, "asked": [], "started": ""}))
    assert decided(tmp_path, None).findings == []


def test_no_more_is_read_than_preflight_can_wait_for(tmp_path, controller, monkeypatch):
    controller()
    newest = (tmp_path / NEW / "results.jsonl").stat().st_size
    monkeypatch.setattr(last_run_of_drive, "MOST_BYTES", newest)
    assert decided(tmp_path, None).findings
    monkeypatch.setattr(last_run_of_drive, "MOST_BYTES", newest - 1)
    assert decided(tmp_path, None).findings == []
