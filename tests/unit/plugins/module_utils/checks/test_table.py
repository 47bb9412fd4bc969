# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every check seen firing and seen not firing: a good drive in a good host finds nothing, and each row breaks one
thing.
"""

from __future__ import annotations

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.checks import link, table
from ansible_collections.ssdlab.fleet.plugins.module_utils.checks import model as check_model
from ansible_collections.ssdlab.fleet.plugins.module_utils.checks.base import (
    LEVELS,
    Check,
    CheckedDrive,
    Harmless,
    HostFacts,
    Unknown,
    matches,
)
from ansible_collections.ssdlab.fleet.plugins.module_utils.drive import health
from ansible_collections.ssdlab.fleet.plugins.module_utils.machine import pcie

GB = 10**9
GOOD_MACHINE = {
    "kernel": "6.1.0-31-amd64",
    "architecture": "x86_64",
    "cpus": 8,
    "cpu_max_mhz": 3500,
    "cache_bytes": 32 << 20,
    "memory_bytes": 64 * GB,
    "available_bytes": 32 * GB,
    "cpufreq_driver": "intel_pstate",
    "nodes": 2,
    "tools": {"fio": "3.33", "nvme": "2.3"},
    "hypervisor": None,
    "container": None,
}
LIMITS = {"temperature_headroom_c": 10, "min_free_memory_mib": 1024, "min_cpus": 2, "max_used_pct": 90}
WANTED = {"firmware": {}, "drivers": {}, "versions": {}, "link": {}, **LIMITS}
GOOD_HEALTH = dict(
    health.EMPTY,
    source="nvme smart-log",
    temperature_c=35,
    warning_temperature_c=70,
    critical_temperature_c=80,
    critical_warning=0,
    passed=True,
    spare_pct=100,
    spare_threshold_pct=10,
    used_pct=1,
    media_errors=0,
    warning_temp_min=0,
    critical_temp_min=0,
    throttle_counts={"t1": 0, "t2": 0},
    throttle_s={"t1": 0, "t2": 0},
    volatile_write_cache=False,
)
IDENTITY = {"model": "EXAMPLE 9000", "firmware": "FW2", "transport": "nvme", "numa_node": 0}
QUIET = {"correctable": 0, "nonfatal": 0, "fatal": 0}


def device(address, kind="0x010802", speed=16.0, width=4, max_speed=16.0, max_width=4, **more):
    facts = {
        "address": address,
        "vendor": "0x1234",
        "device": "0x0001",
        "class": kind,
        "driver": "nvme",
        "numa_node": 0,
        "speed_gts": speed,
        "width": width,
        "max_speed_gts": max_speed,
        "max_width": max_width,
        "aer": dict(QUIET),
        "slot_power_w": None,
        "chipset": False,
    }
    return dict(facts, **more)


def port(address="0000:00:01.0", **more):
    return device(address, "0x060400", **{"slot_power_w": 75.0, **more})


def drive(endpoint=None, bridges=None, model=None, told=None, **more):
    path = [device("0000:01:00.0", **(endpoint or {})), *([port()] if bridges is None else bridges)]
    fields = {"driver": {"name": "nvme", "version": "1.0"}, "aer_rose": {}, "write_cache": "write through", **more}
    return CheckedDrive("S1", model or IDENTITY, path, dict(GOOD_HEALTH, **(told or {})), **fields)


def found(one=None, machine=None, wanted=None, devices=None):
    """{check: [messages]} of one drive in one host."""
    one = one or drive()
    known = {item["address"]: item for item in (devices or one.path)}
    above = {
        item["address"]: item.get(
            "above", [bridge["address"] for bridge in one.path[1:]] if item is one.path[0] else []
        )
        for item in known.values()
    }
    facts = HostFacts(dict(GOOD_MACHINE, **(machine or {})), dict(WANTED, **(wanted or {})), [one], known, above)
    told = {}
    for finding in table.run(facts, {}):
        told.setdefault(finding["check"], []).append(finding["message"])
    return told


def test_a_good_drive_in_a_good_host_finds_nothing():
    assert found() == {}
    facts = HostFacts(GOOD_MACHINE, WANTED, [drive()])
    assert table.passed(table.run(facts, {})) == [check.check for check in table.TABLE]


MICRON = {
    "vendor": "0x1344",
    "device": "0x5160",
    "speed": 5.0,
    "max_speed": 5.0,
    "width": 8,
    "max_width": 8,
    "driver": "mtip32xx",
}
MICRON4 = dict(MICRON, width=4, max_width=4)
SLOT8 = {"speed": 5.0, "max_speed": 8.0, "width": 8, "max_width": 16}
HOST_ROWS = [
    (
        "versions",
        {"wanted": {"versions": {"fio": ">=3.35"}}},
        "fio has version 3.33; preflight_versions requires >=3.35",
    ),
    (
        "versions",
        {"wanted": {"versions": {"kernel": ["5.*", "6.2*"]}}},
        "kernel has version 6.1.0-31-amd64; preflight_versions requires 5.* or 6.2*",
    ),
    ("versions", {"wanted": {"versions": {"smartctl": "7.*"}}}, "the version of smartctl is unknown"),
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
    ("virtual_machine", {"machine": {"hypervisor": "kvm"}}, "virtual machine (kvm)"),
    ("container", {"machine": {"container": "podman"}}, "container (podman)"),
    (
        "numa_unknown",
        {"one": drive(model=dict(IDENTITY, numa_node=None))},
        "its NUMA node is unknown (-1) on a machine of 2 nodes",
    ),
    ("numa_unknown", {"one": drive(model=dict(IDENTITY, numa_node=None)), "machine": {"nodes": None}}, "known"),
]
MODEL_ROWS = [
    (
        "firmware",
        {"wanted": {"firmware": {"EXAMPLE*": "FW3"}}},
        "its firmware is FW2; preflight_firmware wants FW3 for this model",
    ),
    (
        "firmware",
        {"one": drive(model=dict(IDENTITY, firmware=None)), "wanted": {"firmware": {"*": "FW3"}}},
        "its firmware revision is unknown",
    ),
    ("driver", {"wanted": {"drivers": {"nvme": ">=2"}}}, "its driver is nvme 1.0; preflight_drivers wants >=2"),
    (
        "driver",
        {"one": drive(driver={"name": "nvme", "version": None}), "wanted": {"drivers": {"nvme": ">=2"}}},
        "the version of its driver nvme is unknown",
    ),
    (
        "driver",
        {
            "one": drive(driver={"name": "iodrive", "module": "iomemory_vsl", "version": "3.2.8"}),
            "wanted": {"drivers": {"iomemory_vsl*": ">=3.2.16"}},
        },
        "its driver is iomemory_vsl 3.2.8; preflight_drivers wants >=3.2.16",
    ),
    (
        "driver",
        {
            "one": drive(driver={"name": "iodrive", "module": "iomemory_vsl", "version": "3.2.8"}),
            "wanted": {"drivers": {"iodrive": ">=3.2.16"}},
        },
        "its driver is iomemory_vsl 3.2.8",
    ),
    ("driver", {"one": drive(driver={})}, "its kernel driver is unknown"),
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
LOOP = {"model": "loop", "firmware": None, "transport": "loop", "numa_node": 0}
QEMU = {"speed": 2.5, "width": 1, "max_speed": 2.5, "max_width": 1}
NO_LIMITS = {"warning_temperature_c": None, "critical_temperature_c": None}
SATA = dict(IDENTITY, transport="sata")
SATA_TOLD = {"source": "smartctl", "throttle_counts": None, "interface_gbit_s": 6.0, "interface_max_gbit_s": 6.0}
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
        {"one": CheckedDrive("S1", IDENTITY, health=GOOD_HEALTH, driver={"name": "x"}, write_cache="write through")},
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
        "2.5 GT/s x1 and no more, in a slot for 16 GT/s x4",
    ),
    ("pcie_slot", {"one": drive(bridges=[])}, "what the slot of 0000:01:00.0 can do at most is unknown"),
    (
        "pcie_wanted",
        {"wanted": {"link": {"EXAMPLE*": {"speed_gts": 32, "width": 4}}}},
        "runs at 16 GT/s x4; preflight_link wants 32 GT/s x4",
    ),
    (
        "pcie_wanted",
        {"one": drive({"width": None}), "wanted": {"link": {"*": {"width": 4}}}},
        "shows no PCI Express link",
    ),
    (
        "chipset_slot",
        {"one": drive(bridges=[port("0000:00:1c.0", chipset=True)])},
        "its slot is behind the chipset (0000:00:1c.0)",
    ),
    (
        "pcie_errors",
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
        {"one": drive(told={"failing": ["Reallocated_Sector_Ct"]})},
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
    ("temperature_headroom", {"one": drive(told=NO_LIMITS)}, "does not report at which temperature it warns"),
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


@pytest.mark.parametrize(
    "fine",
    [
        {"wanted": {"firmware": {"OTHER*": "FW9"}}},
        {
            "wanted": {
                "firmware": {"EXAMPLE*": ["FW1", "FW2"], "*": "FW9"},
                "drivers": {"nvme": ">=1"},
                "versions": {"fio": ">=3.28", "kernel": "6.1*"},
            }
        },
        {"wanted": {"link": {"*": {"speed_gts": 8, "width": 4}}}},
        {"one": drive(model=dict(IDENTITY, numa_node=None), options={"numa_node": 1})},
        {"one": drive(model=dict(IDENTITY, numa_node=None), options={"cpus": "0-3"})},
        {"one": drive(model=dict(IDENTITY, numa_node=None)), "machine": {"nodes": 1}},
        {"one": drive({"speed": 8.0, "max_speed": 8.0}, [port(max_speed=32.0, max_width=16, speed=8.0)])},
        {"one": drive(write_cache="write back", options={"write_cache": "on"})},
        {"one": drive(write_cache="write back"), "wanted": {"write_cache_chosen": True}},
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
        model=dict(IDENTITY, transport=transport),
        aer_rose=rose,
        told={"source": "smartctl"},
    )
    told = found(one._replace(path=[controller, *one.path[1:]]))
    assert "pcie_oversubscribed" not in told and ("pcie_errors" in told) is (transport == "sas")


def test_errors_that_a_bridge_counted_before_say_nothing_but_those_of_the_drive_do():
    told = found(drive({"aer": dict(QUIET, correctable=2)}, [port(aer=dict(QUIET, fatal=9))]))
    assert list(told) == ["pcie_errors_before"] and "0000:01:00.0" in told["pcie_errors_before"][0]
    rising = found(drive({"aer": dict(QUIET, correctable=2)}, aer_rose={"0000:01:00.0": {"correctable": 1}}))
    assert list(rising) == ["pcie_errors"]
    (remedy,) = [check.remedy for check in table.TABLE if check.check == "pcie_errors"]
    order = [remedy.index(step) for step in ("reseat", "swap the riser", "then the drive", "then the board")]
    assert order == sorted(order)


def switch(lanes_down, width_up, count, parallel=1, under_test=None):
    """Drives of so many lanes behind one switch, all first generation as in the guide's example: (level, message) of
    each that is under test.
    """
    up, root = (
        port("0000:01:00.0", speed=2.5, width=width_up, max_speed=2.5, max_width=width_up),
        port("0000:00:02.0", speed=2.5, width=width_up),
    )
    below, drives = [], []
    for number in range(count):
        down = port(f"0000:02:0{number}.0", speed=2.5, width=lanes_down, max_speed=2.5, max_width=lanes_down)
        card = device(f"0000:0{number + 3}:00.0", speed=2.5, width=lanes_down, max_speed=2.5, max_width=lanes_down)
        above = [down["address"], up["address"], root["address"]]
        below += [dict(card, above=above), dict(down, above=above[1:])]
        drives.append(drive()._replace(path=[card, down, up, root]))
    devices = {item["address"]: item for item in [*below, dict(up, above=[root["address"]]), dict(root, above=[])]}
    above = {address: item["above"] for address, item in devices.items()}
    facts = HostFacts(GOOD_MACHINE, dict(WANTED, parallel_drives=parallel), drives[:under_test], devices, above)
    return [
        (item["level"], item["message"])
        for item in table.run(facts, {"pcie_slot": "ok"})
        if item["check"] == "pcie_oversubscribed"
    ]


def test_the_guides_balanced_and_oversubscribed_systems():
    """Appendix D: A has 16 lanes of cards and 16 to the root, B has 12 and 8; its report of such a bus says 3000 MB/s
    needed, 2000 there.
    """
    assert switch(4, 16, 4, parallel=4) == []
    told = switch(4, 8, 3, parallel=3)
    assert [level for level, _message in told] == ["warning"] * 3
    for _level, message in told:
        assert "need 3000 MB/s, its link of 2.5 GT/s x8 has 2000 MB/s" in message
        assert (
            "over-subscribed at 0000:01:00.0: the devices below it (0000:03:00.0, 0000:04:00.0, 0000:05:00.0)"
            in message
        )
        assert message.endswith("; what is measured at the same time (ssd_parallel_drives: 3) needs 3000 MB/s")


@pytest.mark.parametrize(
    "parallel, under_test, level, needs",
    [
        (1, 3, "ok", "needs 1000 MB/s, which it has"),
        (2, 3, "ok", "needs 2000 MB/s, which it has"),
        (3, 3, "warning", "needs 3000 MB/s"),
        (8, 3, "warning", "needs 3000 MB/s"),
        (3, 2, "ok", "needs 2000 MB/s, which it has"),
    ],
)
def test_an_oversubscribed_bus_harms_only_drives_that_are_measured_together(parallel, under_test, level, needs):
    told = switch(4, 8, 3, parallel, under_test)
    assert [found_level for found_level, _message in told] == [level] * under_test and all(
        needs in message for _level, message in told
    )


def test_a_bus_that_is_too_narrow_for_one_drive_alone_harms_it():
    ((level, message),) = switch(8, 4, 1)
    assert (
        level == "warning"
        and "need 2000 MB/s" in message
        and message.endswith("(ssd_parallel_drives: 1) needs 2000 MB/s")
    )


def test_the_widest_of_the_drives_count():
    card = device("0000:03:00.0", speed=2.5, width=8)
    facts = HostFacts(
        GOOD_MACHINE,
        dict(WANTED, parallel_drives=2),
        [drive()._replace(path=[dict(card, address=f"0000:0{bus}:00.0")]) for bus in (3, 4, 5)],
    )
    loads = {"0000:03:00.0": 1000.0, "0000:04:00.1": 2000.0, "0000:05:00.0": 1500.0, "0000:06:00.0": 9000.0}
    assert link.measured_at_once(facts, loads) == 3500.0


def test_what_harms_nothing_does_not_block_though_the_check_does():
    assert (
        table.level(Check("pcie_oversubscribed", "warning", "r"), Harmless("x"), {"pcie_oversubscribed": "blocks"})
        == "ok"
    )


def test_functions_of_one_device_share_its_link_and_bridges_load_nothing():
    one = drive({"speed": 2.5, "width": 4, "max_speed": 2.5})
    twin = dict(one.path[0], address="0000:01:00.1", above=["0000:00:01.0"])
    devices = {item["address"]: item for item in (*one.path, twin)}
    facts = HostFacts(
        GOOD_MACHINE, WANTED, [one], devices, {"0000:01:00.0": ["0000:00:01.0"], "0000:01:00.1": ["0000:00:01.0"]}
    )
    assert link.links_below(facts, "0000:00:01.0") == {"0000:01:00.0": 1000.0}


def test_an_unknown_link_on_the_way_is_told():
    (told,) = found(drive(bridges=[port(speed=None)]))["pcie_oversubscribed"]
    assert "the link at 0000:00:01.0, or one below it, is unknown" in told


@pytest.mark.parametrize("identity", [LOOP, dict(LOOP, transport="virtio")])
def test_a_drive_of_software_is_told_once_for_each_and_blocks_nothing(identity):
    one = CheckedDrive(
        "S1", identity, health=dict(health.EMPTY, error="a drive of transport loop has no health to read")
    )
    facts = HostFacts(GOOD_MACHINE, WANTED, [one])
    told = table.run(facts, {})
    assert {item["level"] for item in told} == {"warning"}
    assert {item["check"] for item in told} == {"pcie_link", "health", "media_errors", "spare", "wear", "temperature"}


@pytest.mark.parametrize("transport", ["sas", "usb", "mmc"])
def test_a_drive_behind_an_hba_is_not_judged_by_the_hbas_link(transport):
    sas = drive(
        {"speed": 8.0, "width": 4, "max_speed": 8.0, "max_width": 8},
        model=dict(IDENTITY, transport=transport),
        told={"source": "smartctl"},
    )
    assert found(sas, wanted={"link": {"*": {"speed_gts": 32, "width": 16}}}) == {}


def test_levels_are_the_inventorys_choice():
    facts = HostFacts(GOOD_MACHINE, WANTED, [drive({"width": 2}, told={"media_errors": 1, "passed": None})])
    by_check = {item["check"]: item["level"] for item in table.run(facts, {})}
    remedies = {item["check"]: item["remedy"] for item in table.run(facts, {})}
    assert remedies["health"] == table.UNKNOWN_REMEDY and "reseat" in remedies["pcie_link"]
    # pcie_link blocks by itself, media_errors warns, and what could not be read warns though health blocks.
    assert by_check == {"pcie_link": "blocks", "media_errors": "warning", "health": "warning"}
    chosen = {
        item["check"]: item["level"]
        for item in table.run(facts, {"pcie_link": "ok", "media_errors": "blocks", "health": "blocks"})
    }
    assert chosen == {"pcie_link": "ok", "media_errors": "blocks", "health": "blocks"}


def test_a_vendors_findings_keep_their_level_unless_the_inventory_says_otherwise():
    vendor = [{"check": "pcie_bandwidth", "drive": None, "level": "blocks", "message": "m", "remedy": "r"}]
    facts = HostFacts(GOOD_MACHINE, WANTED)
    assert table.run(facts, {}, vendor) == vendor
    assert table.run(facts, {"pcie_bandwidth": "warning"}, vendor)[0]["level"] == "warning"


def test_the_table_is_well_formed():
    assert len(set(check.check for check in table.TABLE)) == len(table.TABLE)
    for check in table.TABLE:
        assert check.level in LEVELS and check.remedy and (check.look is None) is not (check.look_host is None), (
            check.check
        )
        assert check.check in table.CODES


@pytest.mark.parametrize(
    "wanted, actual, expected",
    [
        (">=3.28", "3.28", True),
        (">=3.28", "3.9", False),
        (">= 3.28", "fio-3.33-12-gabc", True),
        ("E2MU*", "E2MU110", True),
        (["1.0", "2.0"], "2.0", True),
        (["1.0", "2.0"], "2.0.1", False),
        ("FW1", "fw1", False),
        (">=2.6.25", "6.1.0-31-amd64", True),
        (">=2", "unknown", False),
        (">=3.28.0", "3.28", True),
        (">=3", "3.0", True),
        (">=3.0.1", "3", False),
    ],
)
def test_version_rules(wanted, actual, expected):
    assert matches(wanted, actual) is expected


def test_only_the_family_that_a_note_is_about_has_needs():
    assert check_model.needs(drive(MICRON)).slot_power_w == 25 and check_model.needs(drive()) is None
    assert check_model.needs(drive(dict(MICRON, device="0x51a2"))) is None


def test_an_unknown_is_a_text_of_its_own_kind():
    assert isinstance(Unknown("x"), str) and table.level(Check("c", "blocks", "r"), Unknown("x"), {}) == "warning"
    assert table.level(Check("c", "blocks", "r"), "x", {}) == "blocks" and pcie.is_bridge("0x060400")
