# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is fine is not told, nor what a drive of its kind cannot have."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.checks import model as check_model
from ansible_collections.ssdlab.fleet.plugins.module_utils.checks import table
from ansible_collections.ssdlab.fleet.plugins.module_utils.checks.base import (
    CheckedDrive,
    HostFacts,
    LinkRule,
)
from ansible_collections.ssdlab.fleet.plugins.module_utils.drive import health
from ansible_collections.ssdlab.fleet.plugins.module_utils.drive.entry import NO_OPTIONS
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.identity import Identity
from ansible_collections.ssdlab.fleet.tests.unit.plugins.module_utils.checks.machines import (
    GB,
    GOOD_MACHINE,
    IDENTITY,
    MICRON,
    REQUIRED,
    SATA,
    SATA_TOLD,
    SLOT8,
    device,
    drive,
    found,
    port,
)


def test_a_good_drive_in_a_good_host_finds_nothing():
    assert found() == {}
    facts = HostFacts(GOOD_MACHINE, REQUIRED, [drive()])
    assert table.passed(table.run(facts, {})) == [check.check for check in table.TABLE]


LOOP = Identity(model="loop", transport="loop", numa_node=0)


@pytest.mark.parametrize(
    "fine",
    [
        {"required": {"firmware": {"OTHER*": "FW9"}}},
        {
            "required": {
                "firmware": {"EXAMPLE*": ["FW1", "FW2"], "*": "FW9"},
                "drivers": {"nvme": ">=1"},
                "versions": {"fio": ">=3.28", "kernel": "6.1*"},
            }
        },
        {"required": {"link": {"*": LinkRule(8, 4)}}},
        {"one": drive(model=replace(IDENTITY, numa_node=None), options=NO_OPTIONS._replace(numa_node=1))},
        {"one": drive(model=replace(IDENTITY, numa_node=None), options=NO_OPTIONS._replace(cpus="0-3"))},
        {"one": drive(model=replace(IDENTITY, numa_node=None)), "machine": {"nodes": 1}},
        # Nodes within a socket (sub-NUMA clustering): the firmware puts all of its CPUs beside the drive.
        {"one": drive({"local_cpus": "0-7"}), "machine": {"node_cpus": {0: "0-3", 1: "4-7"}}},
        {"one": drive({"speed": 8.0, "max_speed": 8.0}, [port(max_speed=32.0, max_width=16, speed=8.0)])},
        {"one": drive(write_cache="write back", options=NO_OPTIONS._replace(write_cache="on"))},
        {"one": drive(write_cache="write back"), "required": {"write_cache_chosen": True}},
        {"one": drive(write_cache=None, told={"volatile_write_cache": False})},
        {"one": drive(MICRON, [port(**SLOT8, slot_power_w=25.0)])},
        {"one": drive(MICRON, [port(**{**SLOT8, "max_speed": 5.0, "max_width": 8})])},
        {"one": drive(told={"temperature_c": 60})},
        {
            "one": drive(MICRON, [port(**SLOT8)]),
            "machine": {"memory_bytes": 6 * GB, "cpu_max_mhz": 3000, "cache_bytes": 12 << 20, "cpus": 4},
        },
        {"one": drive(MICRON, [port(**SLOT8)]), "machine": {"kernel": "2.6.25"}},
        {"one": drive(told={"source": "smartctl", "spare_pct": None, "spare_threshold_pct": None})},
        {"one": drive(model=SATA, told=SATA_TOLD)},
        {"machine": {"available_bytes": 1024 << 20, "cpus": 2, "architecture": "aarch64"}},
    ],
)
def test_what_is_fine_is_not_told(fine):
    assert found(**fine) == {}


def test_at_its_limit_a_drive_is_too_hot_and_that_is_told_once():
    assert list(found(drive(told={"temperature_c": 70}))) == ["temperature"]


def test_a_p420m_without_a_slot_in_sysfs_is_told_what_is_unknown():
    told = found(drive(MICRON, []))
    assert "the power limit of its slot cannot be read" in told["slot_power"][0] and "model_slot" not in told


@pytest.mark.parametrize("transport", ["virtio", "sas"])
def test_links_and_errors_of_a_controller_are_not_those_of_a_drive_behind_it(transport):
    """Its path is that of the controller, which here is behind a narrow link; only errors on the way to a SAS drive
    count.
    """
    controller = device("0000:01:00.0", speed=8.0, width=8, max_speed=8.0, max_width=8)
    rose = {"0000:01:00.0": {"fatal": 1}}
    one = drive(
        bridges=[port(speed=8.0, width=1)],
        model=replace(IDENTITY, transport=transport),
        aer_rose=rose,
        told={"source": "smartctl"},
    )
    told = found(one._replace(path=[controller, *one.path[1:]]))
    assert "pcie_oversubscribed" not in told and ("pcie_errors" in told) is (transport == "sas")


@pytest.mark.parametrize("identity", [LOOP, replace(LOOP, transport="virtio")])
def test_a_drive_of_software_is_told_once_for_each_and_blocks_nothing(identity):
    one = CheckedDrive("S1", identity, health=health.Health(error="loop drives report no health"))
    facts = HostFacts(GOOD_MACHINE, REQUIRED, [one])
    told = table.run(facts, {})
    assert {item.level for item in told} == {"warning"}
    assert {item.check for item in told} == {"pcie_link", "health", "media_errors", "spare", "wear", "temperature"}


@pytest.mark.parametrize("transport", ["sas", "usb", "mmc"])
def test_a_drive_behind_an_hba_is_not_judged_by_the_hbas_link(transport):
    sas = drive(
        {"speed": 8.0, "width": 4, "max_speed": 8.0, "max_width": 8},
        model=replace(IDENTITY, transport=transport),
        told={"source": "smartctl"},
    )
    assert found(sas, required={"link": {"*": LinkRule(32, 16)}}) == {}


def test_only_the_family_that_a_note_is_about_has_needs():
    assert check_model.needs(drive(MICRON)).slot_power_w == 25 and check_model.needs(drive()) is None
    assert check_model.needs(drive(dict(MICRON, device="0x51a2"))) is None
