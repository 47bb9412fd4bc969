# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import emulator
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.ssdlab.fleet.plugins.module_utils.core.host import Result
from ansible_collections.ssdlab.fleet.plugins.module_utils.vendors import rssdm
from ansible_collections.ssdlab.fleet.plugins.module_utils.vendors.rssdm import (
    INTERRUPT_COALESCING,
    POWER_LIMITING,
    WRITE_CACHE,
)
from ansible_collections.ssdlab.fleet.plugins.module_utils.vendors.vendor_tool import ToolError

# What rssdm 2.20 printed for a P420m on a server (a public report of a firmware update, 2015); the serial number was
# blanked there.
RECORDED = """
Drive Id             : 0
Device Name          : mtip_rssd0
Model No             : Micron P420m-MTFDGAR700MAX
Serial No            : 00000000
FW-Rev               : B2085108
Total Size           : 700.15GB
Drive Status         : Drive is in good health
PCI Path (B:D.F)     : 04:00.0
Vendor               : Micron
Temp(C)              : 47

Drive information is retrieved successfully
CMD_STATUS   : Success
STATUS_CODE  : 0

Copyright (C) 2014 Micron Technology, Inc.
"""
DETAILS = RECORDED.replace("Temp(C)              : 47\n", "%s")


def drive(model="Micron P420m-MTFDGAR700MAX", **fields):
    return rssdm.parse_list(RECORDED.replace("Micron P420m-MTFDGAR700MAX", model))[0]._replace(**fields)


def test_a_recorded_list():
    (only,) = rssdm.parse_list(RECORDED)
    assert only[:7] == (
        "0",
        "00000000",
        "Micron P420m-MTFDGAR700MAX",
        "B2085108",
        "mtip_rssd0",
        "04:00.0",
        "Drive is in good health",
    )
    assert (only.family, only.form_factor) == ("P420m", "hhhl")
    assert "cmd_status" not in only.fields


def test_the_emulator_prints_what_was_recorded(emulated):
    host = emulated(rssdm=[emulator.p420m(0, "00000000", device="mtip_rssd0", firmware="B2085108")])
    assert host.run(["rssdm", "-L"]).stdout == RECORDED


@pytest.mark.parametrize(
    "model, family, form_factor",
    [
        ("Micron P420m-MTFDGAL700MAX", "P420m", "2.5-inch"),
        ("Micron P320h-MTFDGAR350SAH", "P320h", "hhhl"),
        ("Micron P320h", "P320h", None),
        ("Micron 9100", None, None),
    ],
)
def test_family_and_form_factor(model, family, form_factor):
    assert (drive(model).family, drive(model).form_factor) == (family, form_factor)


@pytest.mark.parametrize(
    "lines, settings",
    [
        ("Interrupt Coalescing : 0xD801F\nPower Limiting : Enabled\nWrite Cache : Disabled\n", (0xD801F, True, False)),
        (
            "Intrp Coalesce Value : 0x000D200F\nPower Limit : 0\nWrite Cache State : on (internal)\n",
            (0xD200F, False, True),
        ),
        ("Interrupt Coalescing : 858127\n", (858127, None, None)),
        ("Interrupt Coalescing : D801F\nPower Limiting : maybe\nWrite Cache :\n", (None, None, None)),
        ("Power Limiting : 0\nPower Limiting Mode : 1\n", (None, None, None)),
        ("", (None, None, None)),
    ],
)
def test_settings(lines, settings):
    (only,) = rssdm.parse_list(DETAILS % lines)
    seen = rssdm.parse_settings(only)
    assert (seen[INTERRUPT_COALESCING], seen[POWER_LIMITING], seen[WRITE_CACHE]) == settings


@pytest.mark.parametrize(
    "rc, text, says",
    [
        (0, RECORDED, None),
        (1, RECORDED, "ended with 1"),
        (0, "", "said: nothing"),
        (0, "CMD_STATUS : Success", "Success"),
        (0, RECORDED.replace(": Success", ": Failed"), "Failed"),
        (0, RECORDED.replace("  : 0\n\nC", "  : 9\n\nC"), ": 9"),
    ],
)
def test_success_must_be_said_twice(rc, text, says):
    problem = rssdm.failure_text(Result(["rssdm", "-L"], rc, text, ""))
    assert problem is None if says is None else says in problem


@pytest.mark.parametrize(
    "given_value, value", [("0xD200F", 0xD200F), ("0xd801f", 0xD801F), (0xD020F, 0xD020F), ("860175", 0xD200F)]
)
def test_the_three_coalescing_values(given_value, value):
    assert rssdm.coalescing_value(given_value) == value


@pytest.mark.parametrize("bad", ["0xD800F", "0", "", "iops", -1, True, None, "0xD801F; reboot", "0x D801F"])
def test_any_other_coalescing_value_is_refused(bad):
    with pytest.raises(ToolError, match="unexpected results.*0xD200F.*0xD801F.*0xD020F"):
        rssdm.coalescing_value(bad)


@pytest.mark.parametrize(
    "depth, value", [(1, 0xD020F), (31, 0xD020F), (32, None), (128, None), (129, 0xD801F), (256, 0xD801F)]
)
def test_choice_by_queue_depth(depth, value):
    assert rssdm.coalescing_for_depth(depth) == value


@pytest.mark.parametrize(
    "model, setting, says",
    [
        ("Micron P420m-MTFDGAR700MAX", POWER_LIMITING, None),
        ("Micron P420m-MTFDGAL700MAX", POWER_LIMITING, "2.5-inch"),
        ("Micron P420m", POWER_LIMITING, "does not say which"),
        ("Micron P420m-MTFDGAL700MAX", INTERRUPT_COALESCING, None),
        ("Micron P420m-MTFDGAR700MAX", WRITE_CACHE, "cannot be changed"),
        ("Micron P320h-MTFDGAL175SAH", WRITE_CACHE, None),
        ("Micron 9100", INTERRUPT_COALESCING, "neither"),
    ],
)
def test_what_a_drive_lets_be_set(model, setting, says):
    problem = rssdm.refusal(drive(model), setting)
    assert problem is None if says is None else says in problem


def test_argument_lists():
    assert rssdm.set_arguments(INTERRUPT_COALESCING, 0xD801F, "3") == ["rssdm", "-M", "-i", "0xD801F", "-n", "3"]
    assert rssdm.set_arguments(POWER_LIMITING, True, "3") == ["rssdm", "-M", "-p", "1", "-n", "3"]
    assert rssdm.set_arguments(WRITE_CACHE, False, "3", "-w") == ["rssdm", "-M", "-w", "0", "-n", "3"]
    assert rssdm.erase_arguments("3") == ["rssdm", "-X", "-p", "ffff", "-n", "3"]


def test_a_missing_tool_is_told(fake):
    with pytest.raises(ToolError, match="support pack"):
        rssdm.drives(fake)


ODD = ["Drive Id : x", "Drive Id: 1", "Interrupt Coalescing : 0xZZ", ":", " : ", "Serial No : 00000000"]
LINES = st.lists(st.sampled_from(RECORDED.splitlines() + ODD) | st.text(), max_size=30)


@given(LINES.map("\n".join) | st.text())
def test_garbage_never_becomes_a_drive_without_a_number(text):
    for found in rssdm.parse_list(text):
        assert found.drive_id.isdecimal()
        settings = rssdm.parse_settings(found)
        assert all(value is None or isinstance(value, (bool, int)) for value in settings.values())
    rssdm.failure_text(Result(["rssdm"], 0, text, text))
