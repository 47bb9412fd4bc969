# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every check seen firing and seen not firing: a good drive in a good host finds nothing, and each row breaks one
thing.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.checks import table
from ansible_collections.ssdlab.fleet.plugins.module_utils.checks.base import (
    CheckedDrive,
    Driver,
    LinkRule,
)
from ansible_collections.ssdlab.fleet.plugins.module_utils.drive.self_test import SelfTest
from ansible_collections.ssdlab.fleet.tests.unit.plugins.module_utils.checks.machines import (
    GB,
    GOOD_HEALTH,
    IDENTITY,
    MICRON,
    QUIET,
    SATA,
    SATA_TOLD,
    SLOT8,
    drive,
    found,
    port,
)

MICRON4 = dict(MICRON, width=4, max_width=4)
HOST_ROWS = [
    (
        "versions",
        {"required": {"versions": {"fio": ">=3.35"}}},
        "fio has version 3.33; preflight_versions requires >=3.35",
    ),
    (
        "versions",
        {"required": {"versions": {"kernel": ["5.*", "6.2*"]}}},
        "kernel has version 6.1.0-31-amd64; preflight_versions requires 5.* or 6.2*",
    ),
    ("versions", {"required": {"versions": {"smartctl": "7.*"}}}, "the version of smartctl is unknown"),
    (
        "free_memory",
        {"machine": {"available_bytes": 1000 << 20}},
        "1000 MiB of memory are free; preflight_min_free_memory_mib is 1024",
    ),
    ("free_memory", {"machine": {"available_bytes": None}}, "is unknown"),
    ("cpu_count", {"machine": {"cpus": 1}}, "it has 1 CPUs; preflight_min_cpus is 2"),
    ("cpu_count", {"machine": {"cpus": None}}, "unknown"),
    ("architecture", {"machine": {"architecture": "i686"}}, "i686"),
    ("cpufreq", {"machine": {"cpufreq_driver": None}}, "no cpufreq driver"),
    ("clock_source", {"machine": {"clock_source": "hpet"}}, "its clock source is hpet, not tsc"),
    ("virtual_machine", {"machine": {"hypervisor": "kvm"}}, "virtual machine (kvm)"),
    ("container", {"machine": {"container": "podman"}}, "container (podman)"),
    (
        "numa_unknown",
        {"one": drive(model=replace(IDENTITY, numa_node=None))},
        "its NUMA node is unknown (-1) on a machine of 2 nodes",
    ),
    ("numa_unknown", {"one": drive(model=replace(IDENTITY, numa_node=None)), "machine": {"nodes": None}}, "known"),
    (
        "numa_contradiction",
        {"one": drive(bridges=[port(numa_node=1)]), "machine": {"node_cpus": {0: "0-3", 1: "4-7"}}},
        "its node is 0, but that of its root port 0000:00:01.0 is 1",
    ),
    (
        "numa_contradiction",
        {"one": drive({"local_cpus": "4-7"}), "machine": {"node_cpus": {0: "0-3", 1: "4-7"}}},
        "the firmware puts the CPUs 4-7 beside it",
    ),
]
MODEL_ROWS = [
    (
        "firmware",
        {"required": {"firmware": {"EXAMPLE*": "FW3"}}},
        "its firmware is FW2; preflight_firmware wants FW3 for this model",
    ),
    (
        "firmware",
        {"one": drive(model=replace(IDENTITY, firmware=None)), "required": {"firmware": {"*": "FW3"}}},
        "its firmware revision is unknown",
    ),
    ("driver", {"required": {"drivers": {"nvme": ">=2"}}}, "its driver is nvme 1.0; preflight_drivers wants >=2"),
    (
        "driver",
        {"one": drive(driver=Driver("nvme")), "required": {"drivers": {"nvme": ">=2"}}},
        "the version of its driver nvme is unknown",
    ),
    (
        "driver",
        {
            "one": drive(driver=Driver("iodrive", "iomemory_vsl", "3.2.8")),
            "required": {"drivers": {"iomemory_vsl*": ">=3.2.16"}},
        },
        "its driver is iomemory_vsl 3.2.8; preflight_drivers wants >=3.2.16",
    ),
    (
        "driver",
        {
            "one": drive(driver=Driver("iodrive", "iomemory_vsl", "3.2.8")),
            "required": {"drivers": {"iodrive": ">=3.2.16"}},
        },
        "its driver is iomemory_vsl 3.2.8",
    ),
    ("driver", {"one": drive(driver=Driver())}, "its kernel driver is unknown"),
    (
        "model_machine",
        {"one": drive(MICRON, [port(**SLOT8)]), "machine": {"memory_bytes": 4 * GB}},
        "requires a memory of at least 6 GB; the machine has 4",
    ),
    (
        "model_machine",
        {"one": drive(MICRON, [port(**SLOT8)]), "machine": {"cpu_max_mhz": 2400}},
        "frequency of at least 3000 MHz; the machine has 2400",
    ),
    (
        "model_machine",
        {"one": drive(MICRON, [port(**SLOT8)]), "machine": {"cache_bytes": 8 << 20}},
        "cache of at least 12 MiB; the machine has 8",
    ),
    (
        "model_machine",
        {"one": drive(MICRON, [port(**SLOT8)]), "machine": {"cpus": 2}},
        "number of CPUs of at least 4; the machine has 2",
    ),
    ("model_machine", {"one": drive(MICRON, [port(**SLOT8)]), "machine": {"cpus": 64}}, "up to 8 CPUs are recommended"),
    (
        "model_machine",
        {"one": drive(MICRON, [port(**SLOT8)]), "machine": {"cache_bytes": None}},
        "this machine's is unknown",
    ),
    (
        "model_slot",
        {"one": drive(MICRON4, [port(speed=5.0, max_speed=5.0, max_width=4)])},
        "a slot of 5 GT/s x8 is recommended, this one can do 5 GT/s x4",
    ),
    (
        "model_kernel",
        {"one": drive(MICRON, [port(**SLOT8)]), "machine": {"kernel": "2.6.18-398.el5"}},
        "needs Linux 2.6.25 or later, this is 2.6.18-398.el5",
    ),
    ("model_kernel", {"one": drive(MICRON, [port(**SLOT8)]), "machine": {"kernel": None}}, "unknown"),
    (
        "model_kernel",
        {"one": drive(MICRON, [port(**SLOT8)]), "machine": {"architecture": "i686"}},
        "needs a 64-bit system, this is i686",
    ),
    (
        "slot_power",
        {"one": drive(MICRON, [port(**SLOT8, slot_power_w=10.0)])},
        "the slot must give 25 W, its limit is 10 W",
    ),
    (
        "slot_power",
        {"one": drive(MICRON, [port(**SLOT8, slot_power_w=None)])},
        "the power limit of its slot cannot be read",
    ),
]
QEMU = {"speed": 2.5, "width": 1, "max_speed": 2.5, "max_width": 1}
NO_LIMITS = {"warning_temperature_c": None, "critical_temperature_c": None}
LINK_ROWS = [
    (
        "sata_link",
        {"one": drive(model=SATA, told=dict(SATA_TOLD, interface_gbit_s=3.0))},
        "its SATA link runs at 3 Gb/s; the drive can do 6 Gb/s",
    ),
    (
        "sata_link",
        {"one": drive(model=SATA, told=dict(SATA_TOLD, interface_max_gbit_s=None))},
        "does not report the speed of its SATA link",
    ),
    (
        "sata_port",
        {"one": drive(model=SATA, told=dict(SATA_TOLD))._replace(sata_port_gbit_s=3.0)},
        "its SATA port can do 3 Gb/s; the drive can do 6 Gb/s",
    ),
    (
        "pcie_link",
        {"one": drive({"speed": 8.0, "width": 2})},
        "its link runs at 8 GT/s x2; the drive and its slot can do 16 GT/s x4",
    ),
    ("pcie_link", {"one": drive({"width": 1})}, "16 GT/s x1; the drive and its slot can do 16 GT/s x4"),
    ("pcie_link", {"one": drive({"speed": None})}, "0000:01:00.0 shows no PCI Express link (now ? GT/s x4)"),
    (
        "pcie_link",
        {"one": drive({"max_speed": None}, [port(max_speed=None)])},
        "neither 0000:01:00.0 nor its slot reports",
    ),
    (
        "pcie_link",
        {"one": CheckedDrive("S1", IDENTITY, health=GOOD_HEALTH, driver=Driver("x"), write_cache="write through")},
        "its PCI function is unknown",
    ),
    (
        "pcie_slot",
        {"one": drive({"speed": 8.0}, [port(speed=8.0, max_speed=8.0)])},
        "its slot (0000:00:01.0) can do 8 GT/s x4, the drive 16 GT/s x4",
    ),
    # What the guest of tests/vm shows: QEMU's drive says 2.5 GT/s x1, in a slot of 16 GT/s x4.
    (
        "pcie_slot",
        {"one": drive(QEMU, [port(speed=2.5, width=1)])},
        "2.5 GT/s x1, in a slot for 16 GT/s x4",
    ),
    ("pcie_slot", {"one": drive(bridges=[])}, "the fastest link of 0000:01:00.0's slot is unknown"),
    (
        "pcie_wanted",
        {"required": {"link": {"EXAMPLE*": LinkRule(32, 4)}}},
        "runs at 16 GT/s x4; preflight_link wants 32 GT/s x4",
    ),
    (
        "pcie_wanted",
        {"one": drive({"width": None}), "required": {"link": {"*": LinkRule(width=4)}}},
        "shows no PCI Express link",
    ),
    (
        "chipset_slot",
        {"one": drive(bridges=[port("0000:00:1c.0", chipset=True)])},
        "its slot is behind the chipset (0000:00:1c.0)",
    ),
    (
        "pcie_errors",
        {"one": drive(aer_rose={"0000:00:01.0": {"correctable": 3, "fatal": 1}})},
        "0000:00:01.0 rose by 3 correctable, 1 fatal while the drive was read",
    ),
    (
        "pcie_corrected",
        {"one": drive(aer_rose={"0000:00:01.0": {"correctable": 3}})},
        "0000:00:01.0 rose by 3 correctable while the drive was read",
    ),
    (
        "pcie_errors",
        {"one": drive(aer_rose=None, traffic="fio is not installed")},
        "were not checked: fio is not installed",
    ),
    ("pcie_errors", {"one": drive({"aer": None}, [port(aer=None)])}, "counts PCI Express errors (AER)"),
    (
        "pcie_errors_before",
        {"one": drive({"aer": dict(QUIET, fatal=1)})},
        "0000:01:00.0 counted 1 fatal since the boot",
    ),
]
HEALTH_ROWS = [
    (
        "health",
        {"one": drive(told={"critical_warning": 0x05, "passed": False})},
        "it warns: the spare is below its threshold; its reliability is degraded",
    ),
    ("health", {"one": drive(told={"passed": False, "critical_warning": None})}, "its self-assessment is: failed"),
    (
        "health",
        {"one": drive(told={"failing": ("Reallocated_Sector_Ct",)})},
        "attribute Reallocated_Sector_Ct is below its threshold",
    ),
    ("health", {"one": drive(told={"passed": None})}, "nvme smart-log does not report its self-assessment"),
    ("media_errors", {"one": drive(told={"media_errors": 7})}, "it counted 7 media errors"),
    ("spare", {"one": drive(told={"spare_pct": 10})}, "its spare is 10 %, at or below its threshold of 10 %"),
    ("spare", {"one": drive(told={"spare_pct": 0, "spare_threshold_pct": 0})}, "which says nothing"),
    ("wear", {"one": drive(told={"used_pct": 90})}, "90 % of its endurance is used (preflight_max_used_pct: 90)"),
    ("temperature", {"one": drive(told={"temperature_c": 70})}, "it is at 70 °C, its limit is 70 °C"),
    ("temperature", {"one": drive(told={"temperature_c": 80, "warning_temperature_c": None})}, "its limit is 80 °C"),
    ("temperature", {"one": drive(told={"temperature_c": None})}, "does not report its temperature"),
    (
        "temperature_headroom",
        {"one": drive(told={"temperature_c": 61})},
        "it is at 61 °C, 9 °C below its limit of 70 °C",
    ),
    ("temperature_headroom", {"one": drive(told=NO_LIMITS)}, "does not report the temperatures at which it warns"),
    (
        "throttled_before",
        {"one": drive(told={"throttle_counts": {"t1": 3, "t2": 0}})},
        "3 transitions to thermal throttling 1",
    ),
    (
        "throttled_before",
        {"one": drive(told={"throttle_counts": None, "source": "smartctl"})},
        "smartctl does not report whether it was ever throttled",
    ),
    ("throttled_before", {"one": drive(told={"critical_temp_min": 2})}, "2 min above its critical temperature"),
    (
        "self_test",
        {
            "one": drive(
                model=replace(SATA, path="/dev/sda"), told=SATA_TOLD, self_test=SelfTest(True, True, "extended", 40)
            )
        },
        "its self-test (extended), 40 % left, is under way; the host job waits for it (smartctl -X /dev/sda would end",
    ),
    ("write_cache", {"one": drive(write_cache="write back")}, "its volatile write cache is on"),
    ("write_cache", {"one": drive(write_cache=None, told={"volatile_write_cache": None})}, "is unknown"),
]


@pytest.mark.parametrize("check, broken, message", HOST_ROWS + MODEL_ROWS + LINK_ROWS + HEALTH_ROWS)
def test_each_check_finds_its_own_fault(check, broken, message):
    told = found(**broken)
    assert len(told.get(check, [])) == 1 and message in told[check][0], told


def test_every_check_is_seen_firing():
    rows = HOST_ROWS + MODEL_ROWS + LINK_ROWS + HEALTH_ROWS
    assert {check for check, _broken, _message in rows} | {"pcie_oversubscribed"} == {
        check.check for check in table.TABLE
    }


@pytest.mark.parametrize("passed", [True, False])
def test_heat_is_no_sickness(passed):
    told = found(drive(told={"critical_warning": 0x02, "passed": passed, "temperature_c": 71}))
    assert list(told) == ["temperature"]


def test_errors_that_a_bridge_counted_before_say_nothing_but_those_of_the_drive_do():
    told = found(drive({"aer": dict(QUIET, correctable=2)}, [port(aer=dict(QUIET, fatal=9))]))
    assert list(told) == ["pcie_errors_before"] and "0000:01:00.0" in told["pcie_errors_before"][0]
    rising = found(drive({"aer": dict(QUIET, correctable=2)}, aer_rose={"0000:01:00.0": {"nonfatal": 1}}))
    assert list(rising) == ["pcie_errors"]
    (remedy,) = [check.remedy for check in table.TABLE if check.check == "pcie_errors"]
    order = [remedy.index(step) for step in ("reseat", "swap the riser", "then the drive", "then the board")]
    assert order == sorted(order)


def test_a_self_test_that_a_drive_can_not_tell_of_is_none():
    assert "self_test" not in {**found(drive(self_test=SelfTest())), **found(drive(self_test=SelfTest(False, False)))}
