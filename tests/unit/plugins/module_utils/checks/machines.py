# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A good drive in a good host, and what the checks find once something of it is changed."""

from __future__ import annotations

import dataclasses

from ansible_collections.ssdlab.fleet.plugins.module_utils.checks import table
from ansible_collections.ssdlab.fleet.plugins.module_utils.checks.base import (
    CheckedDrive,
    Driver,
    HostFacts,
    Machine,
    Required,
)
from ansible_collections.ssdlab.fleet.plugins.module_utils.drive import health
from ansible_collections.ssdlab.fleet.plugins.module_utils.machine.pcie import Device
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.identity import Identity

GB = 10**9
GOOD_MACHINE = Machine(
    kernel="6.1.0-31-amd64",
    architecture="x86_64",
    cpus=8,
    cpu_max_mhz=3500,
    cache_bytes=32 << 20,
    memory_bytes=64 * GB,
    available_bytes=32 * GB,
    cpufreq_driver="intel_pstate",
    clock_source="tsc",
    nodes=2,
    tools={"fio": "3.33", "nvme": "2.3"},
)
REQUIRED = Required()
GOOD_HEALTH = health.Health(
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
IDENTITY = Identity(model="EXAMPLE 9000", firmware="FW2", transport="nvme", numa_node=0)
QUIET = {"correctable": 0, "nonfatal": 0, "fatal": 0}


def device(address, kind="0x010802", speed=16.0, width=4, max_speed=16.0, max_width=4, **more):
    facts = {"vendor": "0x1234", "device": "0x0001", "driver": "nvme", "numa_node": 0, "aer": dict(QUIET), **more}
    return Device(address, speed, width, class_code=kind, max_speed_gts=max_speed, max_width=max_width, **facts)


def port(address="0000:00:01.0", **more):
    return device(address, "0x060400", **{"slot_power_w": 75.0, **more})


def drive(endpoint=None, bridges=None, model=None, told=None, **more):
    path = [device("0000:01:00.0", **(endpoint or {})), *([port()] if bridges is None else bridges)]
    fields = {"driver": Driver("nvme", version="1.0"), "aer_rose": {}, "write_cache": "write through", **more}
    return CheckedDrive("S1", model or IDENTITY, path, dataclasses.replace(GOOD_HEALTH, **(told or {})), **fields)


def found(one=None, machine=None, required=None):
    """{check: [messages]} of one drive in one host."""
    one = one or drive()
    known = {item.address: item for item in one.path}
    if one.path:
        bridges = tuple(bridge.address for bridge in one.path[1:])
        known[one.path[0].address] = dataclasses.replace(one.path[0], above=bridges)
    facts = HostFacts(GOOD_MACHINE._replace(**(machine or {})), REQUIRED._replace(**(required or {})), [one], known)
    told = {}
    for finding in table.run(facts, {}):
        told.setdefault(finding.check, []).append(finding.message)
    return told


MICRON = {
    "vendor": "0x1344",
    "device": "0x5160",
    "speed": 5.0,
    "max_speed": 5.0,
    "width": 8,
    "max_width": 8,
    "driver": "mtip32xx",
}
SLOT8 = {"speed": 5.0, "max_speed": 8.0, "width": 8, "max_width": 16}
SATA = dataclasses.replace(IDENTITY, transport="sata")
SATA_TOLD = {"source": "smartctl", "throttle_counts": None, "interface_gbit_s": 6.0, "interface_max_gbit_s": 6.0}
