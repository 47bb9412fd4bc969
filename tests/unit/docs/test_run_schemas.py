# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The schemas of status.json and the journal accept what the host job writes, and nothing less."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.measure import disturbances
from ansible_collections.ssdlab.fleet.plugins.module_utils.records import events
from ansible_collections.ssdlab.fleet.plugins.module_utils.run import folder
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.common import json_schema
from ansible_collections.ssdlab.fleet.tests.fixtures import documents

SCHEMAS = Path(__file__).parents[3] / "plugins" / "plugin_utils" / "common" / "schemas"
STATUS = {
    "schema_version": 1,
    "run_id": "r1",
    "run_name": "qualify",
    "host": "h1",
    "boot_id": "b",
    "pid": 7,
    "pid_start": "99",
    "unit": None,
    "engine_version": "0.1.0",
    "state": "running",
    "started": "2026-11-21T13:00:00Z",
    "updated": "2026-11-21T13:00:00.123Z",
    "restored": False,
    "message": "",
    "drives": [folder.queued("A1")],
}
SETTING = {
    "name": "governor",
    "path": "/sys/x",
    "before": "powersave",
    "wanted": "performance",
    "effective": "performance",
    "outcome": "changed",
    "message": "",
}
FIGURES = {
    "iops": 1.0,
    "bandwidth_bytes_per_s": 4096.0,
    "ios": 1,
    "bytes": 4096,
    "mean_latency_us": 1.0,
    "max_latency_us": 1.0,
    "percentiles_us": {"50": 1.0, "99.9": None},
}
DRIVE = {"drive": "A1"}
TEST = {"drive": "A1", "test": "iops", "attempt": 1}
EVENTS = {
    "job_started": {"boot_id": "b", "pid": 7, "engine_version": "0.1.0", "fio_version": "fio-3.33"},
    "tuned": {"settings": [SETTING]},
    "snapshot": {
        "cpu": {"model": None},
        "memory": {},
        "bios": {},
        "kernel": {},
        "command_line": None,
        "tools": {},
        "pcie": {},
        "numa": {},
        "tunables": {},
        "drivers": {},
    },
    "calibration": {
        "parallel_drives": 1,
        "kept_share": 0.98,
        "why": "with 2 together, A1 keeps 97.0 % in rand-4k-r100-tc4-qd32-ramp1s",
        "trials": [
            {"number": 2, "held": False, "cell": "rand-4k-r100-tc4-qd32-ramp1s", "drive": "A1", "share": 0.97},
            {"number": 3, "held": False, "cell": "rand-4k-r100-tc4-qd32-ramp1s", "drive": "A1", "share": None},
        ],
        "drives": ["A1", "B1", "C1"],
        "cells": ["rand-4k-r100-tc4-qd32-ramp1s"],
        "seconds": 91.5,
    },
    "restored": {"settings": [dict(SETTING, outcome="restored")]},
    "guard": dict(
        DRIVE, step="purge", eligible=False, refusals=[{"code": "mounted", "message": "on /"}], identity=None
    ),
    "drive_started": dict(DRIVE, identity={"serial": "A1"}, path="/dev/loop9", tests=["iops"]),
    "test_started": dict(TEST, title="Random IOPS"),
    "purge_started": dict(
        TEST,
        method="deallocate",
        why="named",
        commands=[["ioctl", "BLKDISCARD", "/dev/loop9", "0", "512"]],
        timeout_s=1800.0,
        purge_class="not_pts",
        sentinels={"size_bytes": 512, "block_bytes": 512, "seed": "ab"},
        capabilities={"max_discard_bytes": 512},
    ),
    "purge": dict(
        TEST,
        method="deallocate",
        seconds=1.0,
        verified=True,
        verification={"sentinels": 9, "survived": 0, "unreadable": 0},
        purge_class="not_pts",
    ),
    "precondition": dict(
        TEST,
        passes=2,
        bytes_written=1,
        seconds=1.0,
        bandwidth_bytes_per_s=1.0,
        remainder_bytes=0,
        block_size_bytes=131072,
        data="random",
        kernel_bytes_written=None,
    ),
    "fill_curve": dict(TEST, step_bytes=655.36, samples=9, bandwidth_bytes_per_s=[1.0, 2.0]),
    "histogram": dict(
        TEST, cell="c", direction="write", first_round=1, last_round=5, ios=3, bins={"80384": 2, "897024": 1}
    ),
    "cell": dict(
        TEST,
        round=1,
        cell="c",
        seed=1,
        causes=[],
        seconds=1.0,
        gap_s=None,
        read=None,
        write=FIGURES,
        raw="raw/x",
    ),
    "cell_refused": dict(TEST, round=1, cell="c", seed=1, message="too short"),
    "measurement_started": dict(TEST, user_capacity_bytes=1 << 30),
    "round": dict(TEST, round=1, elapsed_s=1.0),
    "test_finished": dict(
        TEST,
        ended="invalid",
        reasons=["x"],
        disturbed=["its link fell"],
        conditions=[{"cause": "link", "level": "spoils", "message": "its link fell"}],
        vendor_settings=None,
        wear=None,
    ),
    "sample": dict(
        TEST,
        temperature_c=41,
        critical_warning=0,
        warning_temp_min=0,
        critical_temp_min=0,
        throttle_counts={"t1": 0, "t2": 0},
        throttle_s=None,
        media_errors=0,
        error="",
        link_speed_gts=16.0,
        link_width=4,
        aer={"0000:01:00.0": {"correctable": 0, "nonfatal": 0, "fatal": 0}},
        seconds=0.01,
    ),
    "logs_kept": dict(
        DRIVE, reason="missed", logs=[{"log": "telemetry", "file": "", "size_bytes": None, "message": "not offered"}]
    ),
    "drive_finished": dict(DRIVE, outcome="complete", message=""),
    "job_finished": {"state": "finished"},
    "crash": {"traceback": "…"},
}
RECORDS = {
    event: dict(
        {"schema_version": 1, "time": "2026-11-21T13:00:00.123Z", "run_id": "r1", "host": "h1", "event": event},
        **fields,
    )
    for event, fields in EVENTS.items()
}


def valid(name, document):
    event = document.get("event", "job_started") if name == "journal" else ""
    return documents.validator(name, event).is_valid(document)


def status(drive=None, **changes):
    made = dict(copy.deepcopy(STATUS), **changes)
    made["drives"][0].update(drive or {})
    return made


def test_every_event_of_the_contract_is_valid_and_may_carry_more():
    for record in RECORDS.values():
        assert valid("journal", record) and valid("journal", dict(record, added_later=1)), record


@pytest.mark.parametrize("event, field", [(event, field) for event, record in RECORDS.items() for field in record])
def test_no_field_of_an_event_may_be_missing(event, field):
    record = dict(RECORDS[event])
    del record[field]
    assert not valid("journal", record)


@pytest.mark.parametrize(
    "event, changes",
    [
        ("job_finished", {"state": "running"}),
        ("test_finished", {"ended": "steady"}),
        ("test_finished", {"disturbed": [7]}),
        ("measurement_started", {"user_capacity_bytes": 0}),
        ("round", {"round": 0}),
        ("cell", {"write": {}}),
        ("cell_refused", {"message": ""}),
        ("guard", {"refusals": ["mounted"]}),
        ("tuned", {"settings": [{}]}),
        ("tuned", {"settings": [dict(SETTING, outcome="odd")]}),
        ("snapshot", {"cpu": None}),
        ("drive_started", {"place": {"cpus": "0-3"}}),
        ("crash", {"time": "2026-11-21 13:00"}),
        ("crash", {"schema_version": 2}),
    ],
)
def test_wrong_values_are_refused(event, changes):
    assert not valid("journal", dict(RECORDS[event], **changes))


@pytest.mark.parametrize(
    "document",
    [
        status(),
        status(state="finished", drive={"phase": "done", "outcome": "refused", "message": "mounted"}),
        status(
            drive={
                "phase": "purge",
                "last": {"metric": None, "value": None, "mean_latency_us": None, "progress": 0.5},
                "time_left_s": 1.5,
            }
        ),
        status(pid_start=None, unit="ssdlab-fleet-r1.service"),
        status(parallel_drives=2, calibration={"left_s": 0, "why": "all drives together keep their speed"}),
    ],
)
def test_a_status_is_valid(document):
    assert valid("status", document)


@pytest.mark.parametrize("field", list(STATUS))
def test_no_field_of_a_status_may_be_missing(field):
    document = status()
    del document[field]
    assert not valid("status", document)


@pytest.mark.parametrize("field", list(STATUS["drives"][0]))
def test_no_field_of_a_drives_status_may_be_missing(field):
    document = status()
    del document["drives"][0][field]
    assert not valid("status", document)


@pytest.mark.parametrize(
    "document",
    [
        status(state="dead"),
        status(run_id="../x"),
        status(pid_start=99),
        status(updated="13:00"),
        status(drive={"phase": "done"}),
        status(drive={"outcome": "complete"}),
        status(drive={"last": {"progress": 0.5}}),
        status(drive={"last": {"metric": None, "value": None, "mean_latency_us": None, "progress": 50}}),
        status(drive={"time_left_s": -1}),
    ],
)
def test_a_wrong_status_is_refused(document):
    assert not valid("status", document)


def test_every_cause_that_a_cell_may_have_is_in_the_schemas():
    """The gate refuses a record with another one as the work of somebody else."""
    of_results = json.loads((SCHEMAS / "results.schema.json").read_text(encoding="utf-8"))["$defs"]["cause"]
    of_journal = json_schema.of(events.Cause)["properties"]["cause"]
    assert sorted(of_results["enum"]) == sorted(of_journal["enum"]) == sorted(disturbances.TITLES)


def test_the_schemas_have_the_form_of_a_runs_id_that_the_code_has():
    pattern = f"^{folder.RUN_ID_PATTERN.pattern}$"

    def run_ids(node, name=""):
        for key, value in node.items():
            if isinstance(value, dict):
                yield from run_ids(value, key)
            elif key == "pattern" and name in ("run_id", "id") and "{0,99}" in value:
                yield value

    names = ("answers", "results", "run")
    found = {
        name: set(run_ids(json.loads((SCHEMAS / f"{name}.schema.json").read_text(encoding="utf-8")))) for name in names
    }
    assert found == {name: {pattern} for name in found}
    assert json_schema.of(events.Line)["properties"]["run_id"]["pattern"] == pattern
