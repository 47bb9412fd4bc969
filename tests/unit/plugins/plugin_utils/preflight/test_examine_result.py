# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What Ansible gets to copy of a host's answer, and that preflight has all of it."""

from __future__ import annotations

import datetime

import pytest

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.preflight import examine_result

ANSWER = {
    "changed": False,
    "engines": ["engine-0.1.0-aa.pyz"],
    "failures": {},
    "drives": [{"drive": "S1", "refusals": []}, {"drive": None, "refusals": [{"code": "bad_selector"}]}],
    "asked": {"ssd_drives": [{"serial": "S1"}], "ssd_rack": "é{{ x }}\udc80"},
    "names": ["ssd_drives", "ssd_rack"],
}


@pytest.mark.parametrize("left_out", [(), ("drives",), ("engines", "drives")])
def test_all_but_a_few_names_is_one_text_that_holds_everything(left_out):
    answer = {key: value for key, value in ANSWER.items() if key not in left_out}
    packed = examine_result.packed(answer)
    assert isinstance(packed.pop("diff")["seen"], str)
    expected = {
        "changed": False,
        "engines": ANSWER["engines"],
        "failures": ANSWER["failures"],
        "drive_names": ["S1", None],
    }
    assert packed == {
        key: value for key, value in expected.items() if {key, key.replace("_names", "s")}.isdisjoint(left_out)
    }
    unpacked = examine_result.unpacked(examine_result.packed(answer))
    assert {key: unpacked[key] for key in answer} == answer


@pytest.mark.parametrize(
    "result",
    [
        {"failed": True, "msg": "no sudo", "diff": {"asked": {}}},
        {"asked": {"ssd_run_name": datetime.date(2026, 11, 1)}},
    ],
    ids=["a failure", "a date of YAML, which preflight refuses as what it is"],
)
def test_what_can_not_be_one_text_stays_as_it_is(result):
    assert examine_result.unpacked(result) == result
    assert result.get("failed") or examine_result.packed(result) == result
