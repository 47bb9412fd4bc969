# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The records of results.jsonl. That the producers' are valid is tested where they are made."""

from __future__ import annotations

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.records import base, results
from ansible_collections.ssdlab.fleet.tests.fixtures import documents
from ansible_collections.ssdlab.fleet.tests.fixtures.journal_events import EVENTS

COMMON = {"schema_version": 1, "time": "2026-11-21T13:00:00Z", "run_id": "r1", "host": "h1"}
OF_DRIVE = {**COMMON, "drive": "S1", "outcome": "error"}
ENDED = dict(path=None, identity={"serial": "S1", "rotational": False}, message="it hangs", refusals=[])
TIMES = dict(started=COMMON["time"], finished=None)
FIGURES = dict(rounds=0, steady_state=[], metrics={"read_iops": 1.5, "write_p99_99_latency_us": None})
TEST = dict(test="iops", attempt=1, title="IOPS", reasons=[], purge=None, precondition=None, not_applicable=[])
PARTS = ("purge", "precondition", "array", "filesystem")
# Of each kind one with what it has to have alone.
BRIEF = [
    results.HostRecord(**COMMON, kind="host", state="ok", message=""),
    results.DriveRecord(**OF_DRIVE, **ENDED, kind="drive"),
    results.TestRecord(**OF_DRIVE, **TIMES, **FIGURES, **TEST, kind="test"),
]


@pytest.mark.parametrize("record", BRIEF, ids=list(results.RECORDS))
def test_a_record_with_what_it_has_to_have_is_valid_and_read_as_it_was_written(record):
    written = base.to_json(record)
    documents.validate(written, "results")
    assert base.parse(results.RECORDS[written["kind"]], written) == record
    assert not {"drive_fault", "loads", "array", "filesystem"} & set(written)


def test_a_test_record_takes_what_the_journal_says_of_its_purge_fill_array_and_file_system():
    written = base.to_json(BRIEF[-1])
    record = base.parse(results.TestRecord, {**written, **{part: EVENTS[part] for part in PARTS}})
    found = base.to_json(record)
    documents.validate(found, "results")
    names = ("drive", "test", "attempt")
    for part in PARTS:
        of_event = {key: value for key, value in EVENTS[part].items() if key not in (*names, "members")}
        assert {key: value for key, value in found[part].items() if key != "members"} == of_event
    assert [member["bytes_written"] for member in found["array"]["members"]] == [None, None]


@pytest.mark.parametrize(
    "number, change",
    [
        (0, {"state": "steady"}),
        (0, {"kind": "drive"}),
        (0, {"time": "2026-11-21T13:00:00"}),
        (0, {"snapshot": {"memory_bytes": "2 GiB"}}),
        (1, {"identity": {"serial": 7}}),
        (1, {"identity": {"size_bytes": -1}}),
        (1, {"identity": {"backing": {}}}),
        (1, {"refusals": ["mounted"]}),
        (1, {"look": {"blocks": 1}}),
        (1, {"left": "wiped"}),
        (2, {"test": "IOPS"}),
        (2, {"attempt": 0}),
        (2, {"metrics": {"forged": 1}}),
        (2, {"metrics": {"read_iops": "1"}}),
        (2, {"steady_state": [{"cell": "c", "metric": "read_iops"}]}),
        (2, {"validity": [{"cause": "moon", "level": "told", "rounds": [], "count": 1, "first": ""}]}),
        (2, {"validity": [{"cause": "stalled", "level": "told", "rounds": [[1]], "count": 1, "first": ""}]}),
        (2, {"array": None}),
        (2, {"loads": [{"cell": "c", "threads": 1, "queue_depth": 1}]}),
    ],
)
def test_a_wrong_record_is_refused(number, change):
    written = {**base.to_json(BRIEF[number]), **change}
    assert not documents.validator("results", list(results.RECORDS)[number]).is_valid(written)
