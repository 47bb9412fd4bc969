# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a record's conditions are worth to the judge."""

from __future__ import annotations

import pytest

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.verdict import environment, judge

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
        **({"unknown_causes": "spoil"} if strict else {}),
    }
    drive = {"kind": "drive", "host": "h", "drive": "d", "outcome": "complete", "identity": {}}
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


def test_what_is_unknown_is_said_and_spoils_where_the_inventory_says_so():
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
