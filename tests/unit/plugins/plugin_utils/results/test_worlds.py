# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a record's conditions are worth to the judge."""

from __future__ import annotations

import pytest

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.results import judge, worlds

SPOILS = {"cause": "link", "level": "spoils", "message": "its link fell"}
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


@pytest.mark.parametrize(
    "conditions, verdict",
    [((), "pass"), ((UNKNOWN, TOLD), "pass"), ((SPOILS,), "invalid"), ((SPOILS, TOLD), "invalid")],
)
def test_a_cause_that_spoils_makes_it_invalid_whatever_the_outcome_says(conditions, verdict):
    found, test = judged(*conditions)
    assert found == verdict and (verdict == "pass" or test["reasons"] == ["its link fell"])


def test_what_is_unknown_is_said_and_spoils_where_the_inventory_says_so():
    verdict, test = judged(UNKNOWN, TOLD)
    assert verdict == "pass" and test["remarks"] == ["unknown: nobody counts it", "20 % are hidden"]
    verdict, test = judged(UNKNOWN, TOLD, strict=True)
    assert (verdict, test["reasons"]) == ("invalid", ["nobody counts it"])
    assert judged(TOLD, strict=True)[0] == "pass"


def test_the_settings_in_force_are_said():
    assert judged(vendor_settings=SETTINGS)[1]["remarks"] == [
        "settings in force by rssdm: interrupt_coalescing 0xD801F, power_limiting False"
    ]
    assert worlds.remarks({}) == worlds.remarks({"vendor_settings": None, "conditions": None}) == []
