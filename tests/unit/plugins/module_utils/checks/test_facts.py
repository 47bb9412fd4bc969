# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import dataclasses
import json
import os

import emulator
import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.checks import facts as check_facts
from ansible_collections.ssdlab.fleet.plugins.module_utils.checks import host_checks, table
from ansible_collections.ssdlab.fleet.plugins.module_utils.checks.base import Driver, Machine, Required
from ansible_collections.ssdlab.fleet.plugins.module_utils.drive.entry import parse
from ansible_collections.ssdlab.fleet.plugins.module_utils.machine import pcie, snapshot
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.host_snapshot import (
    Cpu,
    Memory,
    Numa,
    NumaNode,
    Tool,
    Tunables,
)
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.identity import Identity
from ansible_collections.ssdlab.fleet.plugins.module_utils.vendors import iomemory_pci

REQUIRED = Required(min_free_memory_mib=1, min_cpus=1)
LINK = {
    "current_link_speed": "16.0 GT/s PCIe",
    "max_link_speed": "16.0 GT/s PCIe",
    "current_link_width": "4",
    "max_link_width": "4",
}


@pytest.fixture
def server(fake):
    """A server with one NVMe drive in a slot of its own."""
    fake.pci("0000:00:01.0", bridge=True, aer=(0, 0, 0), **LINK)
    path = fake.pci("0000:00:01.0", "0000:01:00.0", aer=(0, 0, 0), **LINK)
    controller = path + "/nvme/nvme0"
    for file, content in (("transport", "pcie"), ("serial", "S1"), ("model", "EXAMPLE 9000"), ("firmware_rev", "FW1")):
        fake.put(f"{controller}/{file}", content + "\n")
    block = fake.disk("nvme0n1", "259:0", controller, queue__write_cache="write through")
    fake.link(block + "/device", controller)
    fake.link(path + "/driver", "/sys/bus/pci/drivers/nvme")
    fake.put("/sys/module/nvme/version", "1.0\n")
    log = {
        "critical_warning": 0,
        "temperature": 313,
        "avail_spare": 100,
        "spare_thresh": 10,
        "percent_used": 1,
        "media_errors": 0,
    }
    log.update(thm_temp1_trans_count=0, thm_temp2_trans_count=0)
    fake.answers["nvme smart-log"] = (0, json.dumps(log), "")
    fake.answers["nvme id-ctrl"] = (0, json.dumps({"wctemp": 343, "cctemp": 353, "vwc": 0}), "")
    fake.answers["fio"] = (0, "", "")
    fake.which = lambda name: None
    fake.function = path
    return fake


def gather(host, traffic_s=0.0, readable=(), entries=({"serial": "S1"},)):
    parsed = [parse(entry) for entry in entries]
    functions = pcie.functions(host)
    observed = snapshot.gather(host, {}, functions)
    return check_facts.gather(host, parsed, observed, functions, REQUIRED, traffic_s, readable)


def test_a_drive_is_gathered_with_all_that_the_checks_need(server):
    (drive,) = gather(server, 2, ["S1"]).drives
    assert (drive.drive, drive.driver, drive.write_cache) == (
        "S1",
        Driver("nvme", "nvme", "1.0"),
        "write through",
    )
    assert [device.address for device in drive.path] == ["0000:01:00.0", "0000:00:01.0"]
    assert drive.bridges[0].address == "0000:00:01.0"
    assert drive.health.temperature_c == 40 and drive.aer_rose == {}
    found = {finding.check for finding in table.run(gather(server, 2, ["S1"]), {})}
    # This host of files has no memory, no CPUs and no nodes, but its drive is well.
    assert not found & {check.check for check in table.TABLE if check.look and check.check != "numa_unknown"}


@pytest.mark.parametrize(("told", "used"), [(1, 1), (255, 255), (5000, None), (-1, None), ("x", None), (None, None)])
def test_how_much_of_its_life_a_drive_has_used_goes_to_plan_mode(server, told, used):
    log = {"critical_warning": 0, "temperature": 313, **({} if told is None else {"percent_used": told})}
    server.answers["nvme smart-log"] = (0, json.dumps(log), "")
    given = {name: option["default"] for name, option in host_checks.OPTIONS.items()}
    said = host_checks.module_result(server, {**given, "drives": [{"serial": "S1"}, {"serial": "gone"}]})
    assert said["wear"] == [{"drive": "S1", "used_pct": used}]


def test_a_driver_whose_module_has_another_name(server):
    """ioMemory: the driver iodrive is in the module iomemory_vsl, which has the version."""
    os.unlink(server.path(server.function + "/driver"))
    server.link(server.function + "/driver", "/sys/bus/pci/drivers/iodrive")
    server.put("/sys/bus/pci/drivers/iodrive/bind", "")
    server.link("/sys/bus/pci/drivers/iodrive/module", "/sys/module/iomemory_vsl")
    server.put("/sys/module/iomemory_vsl/version", "3.2.16.1731\n")
    assert gather(server).drives[0].driver == Driver("iodrive", "iomemory_vsl", "3.2.16.1731")


def test_a_self_test_under_way_is_among_the_facts(server):
    server.nvme_says("id-ctrl", {"oacs": 0x10})
    server.nvme_says(
        "self-test-log", {"Current Device Self-Test Operation": 1, "Current Device Self-Test Completion": 20}
    )
    (drive,) = gather(server).drives
    assert (drive.self_test.kind, drive.self_test.left_pct) == ("short", 80)


def test_drives_that_may_be_read_are_read_with_readonly_and_others_not(server):
    assert gather(server, 2, []).drives[0].traffic == "it was not read"
    assert not [command for command in server.commands if command[0] == "fio"]
    gather(server, 2, ["S1"])
    (command,) = [command for command in server.commands if command[0] == "fio"]
    assert {"--readonly", "--rw=randread", "--runtime=2", "--filename=/dev/nvme0n1"} <= set(command) and not [
        word for word in command if "write" in word
    ]
    assert gather(server, 0, ["S1"]).drives[0].aer_rose is None


def test_a_device_of_software_is_not_read(fake):
    """It has no link whose errors could rise, and no temperature."""
    fake.disk("loop7", "7:7", None, loop__backing_file="/images/a.img")
    fake.which = lambda name: None
    (drive,) = gather(fake, 2, ["/images/a.img"], [{"backing_file": "/images/a.img"}]).drives
    assert drive.is_virtual and not [command for command in fake.commands if command[0] == "fio"]


@pytest.mark.parametrize(
    ("before", "rose", "why"),
    [
        (0, {"0000:01:00.0": {"correctable": 2}}, ""),
        (9, None, "the counters at 0000:01:00.0 were reset meanwhile"),
    ],
)
def test_errors_that_rise_under_traffic_are_seen_and_counters_that_were_reset(server, before, rose, why):
    answer = server.run

    def count(errors):
        server.put(server.function + "/aer_dev_correctable", f"Bad TLP {errors}\nTOTAL_ERR_COR {errors}\n")

    def run(argv, **more):
        if argv[0] == "fio":
            count(2)
        return answer(argv, **more)

    count(before)
    server.run = run
    facts = gather(server, 1, ["S1"])
    assert (facts.drives[0].aer_rose, facts.drives[0].traffic) == (rose, why)
    told = {finding.check for finding in table.run(facts, {})}
    assert told & {"pcie_errors", "pcie_corrected"} == {"pcie_corrected" if rose else "pcie_errors"}


@pytest.mark.parametrize(
    "answer, why",
    [
        ((127, "", ""), "fio is not installed"),
        ((1, "", "fio: pid=1, err=5/file:io_u.c\nmore"), "fio could not read it (1): fio: pid=1, err=5/file:io_u.c"),
    ],
)
def test_traffic_that_failed_is_told(server, answer, why):
    server.answers["fio"] = answer
    (drive,) = gather(server, 1, ["S1"]).drives
    assert drive.aer_rose is None and drive.traffic == why


def test_entries_that_name_no_single_drive_are_left_to_the_guard(server):
    assert gather(server, entries=[{"serial": "none"}, {"serial": 7}, "S1", {}]).drives == []


def test_the_machine_in_the_units_of_the_checks(fake):
    nothing = snapshot.gather(fake, tools={})
    seen = dataclasses.replace(
        nothing,
        cpu=Cpu(cpus=8, max_khz=3500000, cache="32768K", architecture="x86_64"),
        memory=Memory(total_bytes=2, available_bytes=1),
        kernel={"release": "6.1"},
        numa=Numa(nodes={"0": NumaNode("0-7"), "1": NumaNode("8-15")}),
        tunables=Tunables(frequency_driver="acpi-cpufreq", clock_source="tsc"),
        tools={"fio": Tool("/x", "3.33"), "nvme": None},
    )
    assert check_facts.machine(seen, "kvm", None) == Machine(
        kernel="6.1",
        architecture="x86_64",
        cpus=8,
        cpu_max_mhz=3500,
        cache_bytes=32 << 20,
        memory_bytes=2,
        available_bytes=1,
        cpufreq_driver="acpi-cpufreq",
        clock_source="tsc",
        nodes=2,
        node_cpus={0: "0-7", 1: "8-15"},
        tools={"fio": "3.33", "nvme": None},
        hypervisor="kvm",
    )
    assert check_facts.machine(dataclasses.replace(nothing, cpu=Cpu()), None, None) == Machine()


@pytest.mark.parametrize(
    "detect, files, kind",
    [
        ((0, "kvm\n", ""), {}, "kvm"),
        ((1, "none\n", ""), {"/proc/cpuinfo": "flags\t\t: fpu hypervisor lm\n"}, None),
        ((127, "", ""), {"/proc/cpuinfo": "flags\t\t: fpu hypervisor lm\n"}, "unknown hypervisor"),
        ((127, "", ""), {"/sys/class/dmi/id/sys_vendor": "QEMU\n"}, "QEMU"),
        ((127, "", ""), {"/sys/class/dmi/id/sys_vendor": "Dell Inc.\n", "/proc/cpuinfo": "flags\t\t: fpu lm\n"}, None),
    ],
)
def test_virtual_machines(fake, detect, files, kind):
    fake.answers["systemd-detect-virt"] = detect
    for path, content in files.items():
        fake.put(path, content)
    assert check_facts.hypervisor(fake) == kind


@pytest.mark.parametrize(
    ("path", "kind"),
    [("/run/.containerenv", "podman"), ("/.dockerenv", "docker"), ("/run/systemd/container", "lxc"), (None, None)],
)
def test_containers(fake, path, kind):
    if path:
        fake.put(path, "lxc")
    assert check_facts.container(fake) == kind
    fake.answers["systemd-detect-virt"] = (0, "podman\n", "")
    assert check_facts.container(fake) == "podman"


def test_fusion_io_is_asked_only_where_there_is_some(server, monkeypatch):
    facts = gather(server)
    assert check_facts.vendor(server, facts) == []
    monkeypatch.setattr(server, "which", lambda name: "/usr/bin/" + name)
    (unknown,) = check_facts.vendor(server, facts)
    assert unknown.check == "iomemory_unknown" and unknown.level == "warning"
    card = facts._replace(devices={"0000:03:00.0": pcie.Device("0000:03:00.0", vendor=check_facts.FUSION_IO)})
    monkeypatch.setattr(server, "which", lambda name: None)
    assert check_facts.vendor(server, card)[0].check == "iomemory_unknown"


def test_an_iomemory_card_is_looked_at_like_other_drives(emulated):
    """Health, link and driver of a drive whose block device says nothing of them."""
    host = emulated(cards=[emulator.card(0, "C1", temperature_c=79)])
    link = dict(LINK, current_link_speed="5.0 GT/s", max_link_speed="5.0 GT/s", current_link_width="1")
    host.pci("0000:00:01.0", bridge=True, aer=(0, 0, 0), **LINK)
    card = host.pci("0000:00:01.0", "0000:04:00.0", aer=(1, 0, 0), vendor="0x1aed", device="0x2001", **link)
    host.link(card + "/driver", "/sys/bus/pci/drivers/iodrive")
    host.link("/sys/bus/pci/drivers/iodrive/module", "/sys/module/iomemory_vsl")
    host.put("/sys/module/iomemory_vsl/version", "3.2.16.1731\n")
    host.block("fioa", "251:0", "")
    facts = gather(host, entries=[{"serial": "C1"}])
    told = {
        item.check: (item.drive, item.level)
        for item in table.run(facts._replace(required=Required(drivers={"iomemory_vsl": "4.*"})), {})
    }
    for check, level in (
        ("pcie_link", "blocks"),
        ("temperature", "blocks"),
        ("driver", "blocks"),
        ("pcie_errors_before", "warning"),
    ):
        assert told[check] == ("C1", level), check
    assert not {"health", "wear", "spare"} & set(told)


def test_a_card_that_is_not_measured_blocks_nothing(emulated, monkeypatch):
    trouble = {"trouble": "Status unknown: Driver is in MINIMAL MODE"}
    host = emulated(cards=[emulator.card(0, "C1", **trouble), emulator.card(1, "C2", **trouble)], pci_check="errors")
    monkeypatch.setattr(host, "which", lambda name: "/usr/bin/" + name)
    facts = check_facts.HostFacts(
        Machine(),
        REQUIRED,
        [check_facts.CheckedDrive("by-id-of-C1", Identity(serial="C1")), check_facts.CheckedDrive("loop", Identity())],
    )
    told = [
        (item.drive, item.level, item.message[:2])
        for item in check_facts.vendor(host, facts)
        if item.check == "iomemory_state"
    ]
    assert {item.drive for item in check_facts.vendor(host, facts) if item.check == "pcie_errors"} == {None}
    assert told == [("by-id-of-C1", "blocks", "C1"), (None, "warning", "C2")]


def test_fio_pci_check_is_judged_by_what_is_measured_at_the_same_time(emulated, monkeypatch):
    host, seen = emulated(cards=[emulator.card(0, "1241D0259")]), []
    monkeypatch.setattr(host, "which", lambda name: "/usr/bin/" + name)
    monkeypatch.setattr(iomemory_pci, "check", lambda _host, cards, parallel: seen.append((len(cards), parallel)) or [])
    assert check_facts.vendor(host, check_facts.HostFacts(Machine(), Required(parallel_drives=3))) == [] and seen == [
        (1, 3)
    ]


def test_fio_pci_checks_findings_come_with_the_others(emulated, monkeypatch):
    host = emulated(cards=[emulator.card(0, "1241D0259", pci="03:00.0")], pci_check="oversubscribed")
    monkeypatch.setattr(host, "which", lambda name: "/usr/bin/" + name)
    vendor = check_facts.vendor(host, check_facts.HostFacts(Machine()))
    assert {(item.check, item.level) for item in vendor} >= {("pcie_bandwidth", "blocks")}
    told = table.run(check_facts.HostFacts(Machine(), REQUIRED), {"pcie_bandwidth": "warning"}, vendor)
    assert {item.level for item in told} == {"warning"} and {item.check for item in vendor} <= set(table.CODES)
