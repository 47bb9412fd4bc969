# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import struct

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.core.host import Host, Result
from ansible_collections.ssdlab.fleet.plugins.module_utils.machine import cpus, snapshot
from ansible_collections.ssdlab.fleet.plugins.module_utils.records import base
from ansible_collections.ssdlab.fleet.plugins.module_utils.tools import systemd
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.run_folder import host_brief


def gather(*given, **named):
    """The snapshot as JSON has it."""
    return base.to_json(snapshot.gather(*given, **named))


PARTS = {"cpu", "memory", "bios", "kernel", "command_line", "tools", "pcie", "numa", "tunables", "drivers"}
# Of dmidecode(8): one block a device, blank lines between them; the third is an empty slot.
DMIDECODE = """# dmidecode 3.4

Handle 0x0011, DMI type 17, 92 bytes
Memory Device
\tSize: 32 GB
\tType: DDR4
\tSpeed: 3200 MT/s
\tConfigured Memory Speed: 2933 MT/s

Handle 0x0012, DMI type 17, 92 bytes
Memory Device
\tSize: 32 GB
\tType: DDR4
\tConfigured Memory Speed: 2933 MT/s

Handle 0x0013, DMI type 17, 92 bytes
Memory Device
\tSize: No Module Installed
\tType: Unknown
"""


@pytest.fixture
def server(fake):
    """Three CPUs with different governors, and an NVMe drive on node 1."""
    fake.answers["dmidecode"] = (0, DMIDECODE, "")
    fake.nvme("nvme0n1", "259:0", "S1", queue__scheduler="[none] mq-deadline\n")
    fake.put(
        "/proc/cpuinfo", "processor\t: 0\nvendor_id\t: GenuineIntel\nmodel name\t: Example 3.0GHz\nmicrocode\t: 0x2a\n"
    )
    fake.put("/proc/meminfo", "MemTotal:  1024 kB\nMemAvailable: 512 kB\n")
    fake.put("/proc/cmdline", "ro quiet\n")
    fake.put("/sys/class/dmi/id/bios_version", "1.2\n")
    fake.put("/sys/devices/system/cpu/online", "0-2\n")
    for cpu, governor in ((0, "powersave"), (1, "performance"), (2, "powersave")):
        fake.put(f"/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor", governor + "\n")
    for state, (name, latency) in enumerate((("POLL", 0), ("C1", 2))):
        base = f"/sys/devices/system/cpu/cpu0/cpuidle/state{state}/"
        fake.put(base + "name", name)
        fake.put(base + "latency", str(latency))
        fake.put(base + "disable", str(state))
    fake.put("/sys/devices/system/node/node1/cpulist", "0-1")
    fake.put("/sys/devices/system/node/node1/meminfo", "Node 1 MemTotal:   256 kB\n")
    fake.put("/sys/devices/system/node/node1/distance", "10\n")
    fake.put("/sys/module/nvme/version", "1.0\n")
    return fake


def test_the_snapshot_tells_what_the_host_is(server):
    seen = gather(server, tools={})
    assert set(seen) == PARTS
    assert (seen["cpu"]["model"], seen["cpu"]["microcode"], seen["cpu"]["cpus"]) == ("Example 3.0GHz", "0x2a", 3)
    assert seen["memory"] == {
        "total_bytes": 1 << 20,
        "available_bytes": 1 << 19,
        "swap_bytes": None,
        "modules": {"32 GB DDR4 2933 MT/s": 2},
    }
    assert (seen["bios"]["version"], seen["command_line"]) == ("1.2", "ro quiet")
    assert seen["numa"]["nodes"] == {"1": {"cpus": "0-1", "memory_bytes": 256 << 10, "distances": [10]}}
    assert seen["numa"]["drives"] == {"nvme0n1": 1} and seen["pcie"]["drives"] == {"nvme0n1": "0000:80:01.0"}
    assert seen["drivers"]["modules"] == {"nvme": "1.0"}


def test_the_values_in_force_are_told_by_value(server):
    tuned = gather(server, tools={})["tunables"]
    assert tuned["governor"] == {"powersave": "0,2", "performance": "1"}
    assert tuned["queue"]["nvme0n1"]["scheduler"] == "none"
    assert tuned["idle_states"] == [
        {"name": "POLL", "latency_us": 0, "disabled": False},
        {"name": "C1", "latency_us": 2, "disabled": True},
    ]


def test_what_changes_figures_by_stealth_is_told_in_short(server):
    """Each costs IOPS on one host of a fleet, and nobody looks there."""
    server.put("/sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet\n")
    server.put("/sys/module/nvme/parameters/poll_queues", "0\n")
    faults = "/sys/devices/system/cpu/vulnerabilities/"
    server.put(faults + "meltdown", "Not affected\n")
    server.put(faults + "spectre_v2", "Mitigation: Retpolines; IBPB: conditional; STIBP: disabled\n")
    for queue in range(3):
        server.put(f"/sys/block/nvme0n1/mq/{queue}/cpu_list", f"{queue}\n")
    function = "/sys/bus/pci/devices/0000:80:01.0"
    server.put(function + "/iommu_group/type", "DMA-FQ\n")
    express = bytearray(64)
    express[0x06], express[0x34] = 0x10, 0x40
    server.put(function + "/max_link_width", "4\n")
    server.put(function + "/config", bytes(express) + bytes([0x10, 0, 2, 0, 0, 0, 0, 0, 0x30, 0x59]))
    brief = host_brief.brief(gather(server, tools={}))
    assert (brief.clock_source, brief.nvme_poll_queues, brief.hardware_queues) == ("hpet", "0", "3")
    assert (brief.iommu, brief.payload_bytes, brief.read_request_bytes) == ("DMA-FQ", "256", "4096")
    assert brief.mitigations == {"spectre_v2": "Mitigation: Retpolines"}


def test_the_limit_on_waking_up_is_part_of_it(fake):
    assert gather(fake, tools={})["tunables"]["cpu_dma_latency_us"] is None
    fake.put(cpus.CPU_DMA_LATENCY, struct.pack("=i", 7).decode())
    assert gather(fake, tools={})["tunables"]["cpu_dma_latency_us"] == 7


def test_a_host_that_tells_nothing_has_every_part(fake):
    seen = gather(fake)
    assert set(seen) == PARTS and seen["cpu"]["model"] is None and host_brief.brief(seen).bios is None


def test_this_machine_has_a_snapshot_that_is_json_and_a_short_one():
    seen = gather(Host())
    assert seen["cpu"]["cpus"] >= 1 and seen["memory"]["total_bytes"] > 0 and seen["kernel"]["release"]
    assert len(json.dumps(base.to_json(host_brief.brief(seen)))) < 2500


class Systemd(Host):
    """systemctl show's answer for several units (systemctl(1)): blocks in their order, a blank line between them."""

    def run(self, argv, timeout_s=60, stdin=None):
        units = argv[argv.index("--") + 1 :]
        told = {
            "tuned.service": ("loaded", "active"),
            "x.timer": ("loaded", "inactive"),
            "none.service": ("not-found", "inactive"),
        }
        return Result(
            argv, 0, "\n\n".join("LoadState={}\nActiveState={}".format(*told[unit]) for unit in units) + "\n", ""
        )


def test_services_that_are_not_there_have_no_state(tmp_path):
    units = ["none.service", "tuned.service", "x.timer"]
    assert systemd.states(Systemd(str(tmp_path)), units) == dict.fromkeys(units)
    (tmp_path / "run/systemd/system").mkdir(parents=True)
    assert systemd.states(Systemd(str(tmp_path)), units) == {
        "none.service": None,
        "tuned.service": "active",
        "x.timer": "inactive",
    }
