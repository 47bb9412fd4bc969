# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What tune_bios means on boards of each maker, by their own names."""

from __future__ import annotations

import re

import pytest

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.common import bmc_tables, bmc_values
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.power import bios
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.power.bios import BiosState

# As the makers' BMCs list them; Supermicro numbers its attributes.
BOARDS = {
    "Dell Inc.": {"SysProfile": "Custom", "ProcCStates": "Enabled", "NodeInterleave": "Enabled"},
    "HPE": {"WorkloadProfile": "Default", "MinProcIdlePower": "C6", "ProcTurbo": "Enabled"},
    "Lenovo": {"OperatingModes_ChooseOperatingMode": "Efficiency", "Processors_CStates": "Enable"},
    "Supermicro": {"PowerTechnology#2800": "Energy Efficient", "EnhancedHaltState(C1E)#0841": "Enable"},
}
WANTED = {
    "Dell Inc.": {"SysProfile": "PerfOptimized", "NodeInterleave": "Disabled"},
    "HPE": {"WorkloadProfile": "Custom", "MinProcIdlePower": "NoCStates"},
    "Lenovo": {"OperatingModes_ChooseOperatingMode": "MaximumPerformance"},
    "Supermicro": {"PowerTechnology#2800": "Custom", "EnhancedHaltState(C1E)#0841": "Disable"},
}


@pytest.mark.parametrize("maker", BOARDS)
def test_a_profile_is_in_a_boards_own_names(maker):
    state = BiosState(BOARDS[maker], manufacturer=maker)
    assert bios.wanted({"profile": "performance"}, state, {}) == WANTED[maker]


def test_the_first_value_that_the_registry_allows_is_taken():
    state = BiosState({"CPUC6Report": "Enabled"}, manufacturer="Supermicro")
    registry = {"CPUC6Report": ("Enabled", "Disabled", "Auto")}
    assert bios.wanted({"profile": "performance"}, state, registry) == {"CPUC6Report": "Disabled"}
    given = {"profile": "performance", "attributes": {"CPUC6Report": "Auto"}}
    assert bios.wanted(given, state, registry) == {"CPUC6Report": "Auto"}


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"profile": "guide"}, "What it has looks like c_states: CpuCStates=On; smt: SmtControl=Auto"),
        ({"attributes": {"CStates": "Off"}}, "has no attribute CStates; it has CpuCStates"),
        ({"attributes": {"SmtControl": "Never"}}, "SmtControl may be Auto, Off, not Never"),
    ],
)
def test_what_a_board_lacks_is_refused_with_what_it_has(asked, told):
    state = BiosState({"CpuCStates": "On", "SmtControl": "Auto"}, manufacturer="Example")
    with pytest.raises(bios.BiosError, match=re.escape(told)):
        bios.wanted(asked, state, {"SmtControl": ("Auto", "Off")})


def test_a_value_is_written_as_the_board_writes_it():
    state = BiosState({"ProcC1E": "Enabled", "Delay": 60, "Boost": True})
    asked = {"attributes": {"ProcC1E": False, "Delay": 30, "Boost": False}}
    assert bios.wanted(asked, state, {}) == {"ProcC1E": "Disabled", "Delay": 30, "Boost": False}


def test_what_is_staged_already_is_not_staged_again_and_what_is_staged_otherwise_is_taken_back():
    state = BiosState({"A": "On", "B": "On"}, pending={"A": "Off"})
    assert bios.to_stage({"A": "Off"}, state) == {} and bios.not_in_force({"A": "Off"}, state) == {"A": "Off"}
    assert bios.to_stage({"A": "On", "B": "On"}, state) == {"A": "On"}


def test_what_a_bmc_gives_is_printable_and_bounded():
    given = {
        "A": "x\x1b[31m",
        "B@odata.type": "x",
        "C": [1],
        "D": None,
        "E" * 300: 1,
        **dict.fromkeys(map(str, range(9000))),
    }
    found = bios.clean(given)
    assert found["A"] == "x\\x1b[31m" and found["D"] is None and len(found) == bios.MOST
    assert not {"B@odata.type", "C", "E" * 300} & set(found) and bios.clean("no mapping") == {}


@pytest.mark.parametrize(
    ("name", "is_own"),
    [
        ("AssetTag", True),
        ("SystemServiceTag", True),
        ("EmbNic1MacAddr", True),
        ("BootSeq", True),
        ("MachineCheckRecovery", False),
        ("ProcCStates", False),
        ("MemoryMappedIOH", False),
        ("NodeInterleave", False),
    ],
)
def test_what_differs_between_any_two_machines_is_not_compared(name, is_own):
    assert bmc_tables.is_own(name) == is_own


def test_each_table_names_its_sources_and_each_profile_has_known_settings():
    tables = bmc_tables.load()
    assert {maker.name for maker in tables.makers} == {"Dell", "HPE", "Lenovo", "Supermicro"}
    for maker in tables.makers:
        assert maker.sources and set(maker.profiles) == {"performance", "guide"}
        assert {choice.setting for choices in maker.profiles.values() for choice in choices} <= set(tables.settings)
    assert all(mode.sources for mode in tables.fans)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"profile": "fast"}, "must be one of: guide, performance"),
        ({"profiles": "guide"}, "has the unknown key profiles"),
        ({"attributes": {"A": [1]}}, "must be a mapping of attributes"),
        ("guide", "must be a mapping"),
        ({"attributes": {"A": True}}, ""),
    ],
)
def test_wrong_values_of_tune_bios_are_told(given, told):
    assert told in bmc_values.bios_problem(given) and bool(told) == bool(bmc_values.bios_problem(given))


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"high": ["0x30 0x45 0x01 0x01"], "restore": ["0x30 0x45 0x01 0x02"]}, ""),
        ({"high": ["0x30 0x45"]}, "must be a mapping with high and restore"),
        ({"high": ["raw 0x30"], "restore": ["0x30 0x45"]}, "high: 'raw 0x30' is not 2 to 64 bytes"),
        ({"high": ["0x30 0x145"], "restore": ["0x30 0x45"]}, "is not 2 to 64 bytes"),
        ({"high": [], "restore": ["0x30 0x45"]}, "high: must be a list"),
    ],
)
def test_wrong_values_of_tune_fans_ipmi_are_told(given, told):
    assert told in bmc_values.fans_problem(given) and bool(told) == bool(bmc_values.fans_problem(given))
