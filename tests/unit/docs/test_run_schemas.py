# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The schemas of status.json and the journal accept what the host job writes, and nothing less."""

from __future__ import annotations

import copy

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.measure import disturbances
from ansible_collections.ssdlab.fleet.plugins.module_utils.records import measurement
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.base import RunId
from ansible_collections.ssdlab.fleet.plugins.module_utils.run import folder
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.common import json_schema
from ansible_collections.ssdlab.fleet.tests.fixtures import documents
from ansible_collections.ssdlab.fleet.tests.fixtures.journal_events import RECORDS, SETTING

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


# What nobody looked at.
NOT_ALWAYS = {("test_finished", "health")}


@pytest.mark.parametrize(
    "event, field",
    [(event, field) for event, record in RECORDS.items() for field in record if (event, field) not in NOT_ALWAYS],
)
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
    assert sorted(json_schema.of(measurement.CauseName)["enum"]) == sorted(disturbances.TITLES)


def test_the_schemas_have_the_form_of_a_runs_id_that_the_code_has():
    assert json_schema.of(RunId)["pattern"] == f"^{folder.RUN_ID_PATTERN.pattern}$"
