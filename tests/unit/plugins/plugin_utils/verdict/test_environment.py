# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a record's conditions are worth to the judge. A drive that is faster than assumed exceeds its wear budget, and
its report says so.
"""

from __future__ import annotations

import pytest

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.verdict import environment, judge
from ansible_collections.ssdlab.fleet.tests.unit.plugins.plugin_utils.verdict import judged_runs

UNKNOWN = {"cause": "throttled", "level": "unknown", "message": "nobody counts it"}
TOLD = {"cause": "hidden_capacity", "level": "told", "message": "20 % are hidden"}
SETTINGS = {
    "tool": "rssdm",
    "settings": {"power_limiting": False, "interrupt_coalescing": "0xD801F", "write_cache": None},
    "pending": {},
    "error": "",
}


def judged(*conditions, strict=False, **fields):
    run = {
        "tests": {"t": {}},
        "criteria": [],
        "asked": [{"host": "h", "drive": "d"}],
        **({"unknown_causes": "disturb"} if strict else {}),
    }
    drive = judged_runs.drive_record(host="h", drive="d", identity={})
    test = {
        "kind": "test",
        "host": "h",
        "drive": "d",
        "test": "t",
        "outcome": "complete",
        "reasons": [],
        "rounds": 1,
        "conditions": list(conditions),
        **fields,
    }
    (found,) = judge.judge(run, [drive, test])["drives"]
    return found["verdict"], found["tests"][0]


def test_what_is_unknown_is_said_and_disturbs_where_the_inventory_says_so():
    verdict, test = judged(UNKNOWN, TOLD)
    assert verdict == "pass" and test["remarks"] == ["unknown: nobody counts it", "20 % are hidden"]
    verdict, test = judged(UNKNOWN, TOLD, strict=True)
    assert (verdict, test["reasons"]) == ("invalid", ["nobody counts it"])
    assert judged(TOLD, strict=True)[0] == "pass"


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"precondition": {"kernel_bytes_written": 1}}, ""),
        ({"precondition": {"kernel_bytes_written": None}}, "the kernel does not count writes to this drive"),
        ({"array": {"level": 0, "chunk_bytes": 4096, "members": [{"drive": "A1", "bytes_written": 1}]}}, ""),
        (
            {"array": {"level": 0, "chunk_bytes": 4096, "members": [{"drive": "A1", "bytes_written": None}]}},
            "whether the array wrote to A1",
        ),
    ],
)
def test_writes_that_nobody_counted_are_unknown_and_said(fields, says):
    verdict, test = judged(**fields)
    said = [text for text in test["remarks"] if text.startswith("unknown: ")]
    assert verdict == "pass" and len(said) == bool(says) and says in "".join(said)
    assert judged(strict=True, **fields)[0] == ("invalid" if says else "pass")


def test_the_settings_in_force_are_said():
    assert judged(vendor_settings=SETTINGS)[1]["remarks"] == [
        "settings in force by rssdm: interrupt_coalescing 0xD801F, power_limiting False"
    ]
    assert environment.remarks({}) == environment.remarks({"vendor_settings": None, "conditions": None}) == []


WORE = {"host_bytes": 300 << 30, "media_bytes": 600 << 30, "write_amplification": 2.0, "used_pct": 3}


@pytest.mark.parametrize(
    ("used", "host_bytes", "told"),
    [
        (0, None, []),
        (0, 3 << 30, ["by the drive's own count 3.221 GB were written to it, purge and fill included"]),
        (1, None, ["by the drive's own count 1 % of its rated life is used"]),
        (None, None, []),
    ],
)
def test_a_new_drive_is_not_told_to_be_worn(used, host_bytes, told):
    spent = {"used_pct": used, "host_bytes": host_bytes, "media_bytes": None, "write_amplification": None}
    assert environment.wear({"wear": spent}) == told


@pytest.mark.parametrize(
    ("spent", "fields", "says"),
    [
        ({}, {}, ""),
        ({"used_pct": 255, "media_bytes": None, "write_amplification": 0.4}, {}, ""),
        ({"host_bytes": None, "media_bytes": None, "write_amplification": None, "used_pct": None}, {}, ""),
        ({"used_pct": -3}, {}, "-3 % used is not from 0 to 255"),
        ({"host_bytes": 10**400, "media_bytes": 10**400, "write_amplification": None}, {}, ""),
        ({"used_pct": 10**30}, {}, "% used is not from 0 to 255"),
        ({"write_amplification": 1e9}, {}, "a write amplification of 1e+09 is not from 0.01 to 100"),
        ({"write_amplification": 1.0}, {}, "its own counts give a write amplification of 2, not 1"),
        # Of pages, whose size the drive does not tell.
        ({"write_amplification": 1.0, "media_bytes": None}, {}, ""),
        ({"host_bytes": 3 << 30, "media_bytes": None}, {}, "it counted 3.221 GB, but the test wrote 322.1 GB"),
        ({"host_bytes": 900 << 30, "media_bytes": None}, {}, "it counted 966.4 GB, but the test wrote 322"),
        ({"host_bytes": 900 << 30, "media_bytes": None}, {"purge": {"method": "overwrite"}}, ""),
        ({"host_bytes": 3 << 30, "media_bytes": None}, {"outcome": "interrupted"}, ""),
        ({"host_bytes": 3 << 30, "media_bytes": None}, {"written_bytes": None}, ""),
        # Each of them gets its share.
        ({"host_bytes": 150 << 30, "media_bytes": 300 << 30}, {"array": {"members": [{}, {}]}}, ""),
    ],
)
def test_a_wear_that_cannot_be_is_told_as_such(spent, fields, says):
    record = {
        "outcome": "complete",
        "precondition": {"bytes_written": 200 << 30},
        "written_bytes": 100 << 30,
        "wear": {**WORE, **spent},
        **fields,
    }
    doubts = [text for text in environment.wear(record) if "that count can't be right" in text]
    assert says in "".join(doubts) and bool(doubts) == bool(says)


TB = 10**12
FILLED = {"written_bytes": TB, "precondition": {"bytes_written": 2 * TB}}


@pytest.mark.parametrize(
    ("records", "written"),
    [
        ([FILLED], 3 * TB),
        ([FILLED, {"precondition": None, "purge": None, "written_bytes": None}], 3 * TB),
        ([{**FILLED, "purge": {"method": "overwrite"}}], 4 * TB),
        ([{**FILLED, "purge": {"method": "format"}}], 3 * TB),
        ([{**FILLED, "array": {"members": [{}, {}]}}], 1.5 * TB),
        ([{**FILLED, "again": {"run_id": "r-again", "first": FILLED}}], 6 * TB),
        ([{**FILLED, "again": {"run_id": "r-again", "problem": "none"}}], 3 * TB),
    ],
)
def test_what_a_run_wrote_to_a_drive_is_held_to_its_budget(records, written):
    assert sum(environment.written_bytes(record, TB) for record in records) == written
    assert (
        environment.wear_budget_remark(int(written), records, TB)
        == ""
        == environment.wear_budget_remark(None, records, TB)
    )
    assert environment.wear_budget_remark(int(written) - 1, records, TB)


@pytest.mark.parametrize(
    ("budget", "told"), [({}, False), ({"wear_budget_bytes": 4 * TB}, False), ({"wear_budget_bytes": TB}, True)]
)
def test_the_report_says_so_and_the_verdict_stays(budget, told):
    run = {"tests": {"t": {}}, "criteria": [], "asked": [{"host": "h", "drive": "d", **budget}]}
    drive = judged_runs.drive_record(host="h", drive="d", identity={"size_bytes": TB})
    record = {"kind": "test", "host": "h", "drive": "d", "test": "t", "outcome": "complete", "rounds": 1, **FILLED}
    (judged,) = judge.judge(run, [drive, record])["drives"]
    said = "the run wrote at least 3 TB to this drive, more than the 1 TB of ssd_wear_budget: if it is"
    assert judged["verdict"] == "pass"
    assert any(text.startswith(said) for text in judged["tests"][0]["remarks"]) is told
