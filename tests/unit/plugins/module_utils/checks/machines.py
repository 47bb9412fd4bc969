# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A good drive in a good host, and what the checks find once something of it is changed."""

from __future__ import annotations

from ansible_collections.ssdlab.fleet.plugins.module_utils.checks import table
from ansible_collections.ssdlab.fleet.plugins.module_utils.checks.base import (
    CheckedDrive,
    HostFacts,
)
from ansible_collections.ssdlab.fleet.plugins.module_utils.drive import health

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
SATA = dict(IDENTITY, transport="sata")
SATA_TOLD = {"source": "smartctl", "throttle_counts": None, "interface_gbit_s": 6.0, "interface_max_gbit_s": 6.0}
