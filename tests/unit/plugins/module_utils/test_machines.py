# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What discovery, the guard, the choice of a purge, placement and tuning do on the machines of tests/machines."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.checks import host_checks, link, table
from ansible_collections.ssdlab.fleet.plugins.module_utils.drive import attributes, identity, zones
from ansible_collections.ssdlab.fleet.plugins.module_utils.drive.entry import parse
from ansible_collections.ssdlab.fleet.plugins.module_utils.machine import cpus
from ansible_collections.ssdlab.fleet.plugins.module_utils.purge import drive_facts, methods
from ansible_collections.ssdlab.fleet.plugins.module_utils.records import base
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.plan import InterruptCores, NumaBinding, Tune
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.purge import OfferedPurge
from ansible_collections.ssdlab.fleet.plugins.module_utils.tuning import irq, settings, tuned_host
from ansible_collections.ssdlab.fleet.plugins.module_utils.tuning import plan as tuning_plan
from ansible_collections.ssdlab.fleet.plugins.module_utils.tuning.placement import CpuPlacement, CpuRequest
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.preflight import drive_list
from ansible_collections.ssdlab.fleet.tests.fixtures import machine_trees
from ansible_collections.ssdlab.fleet.tests.fixtures.zones_of_file import ZONE_BYTES, Zones
from ansible_collections.ssdlab.fleet.tests.unit.plugins.module_utils.machine_table import (
    ATA,
    DEALLOCATE,
    MACHINES,
    Told,
)

# The checks that sysfs alone decides.
ON_THE_WAY = {check.check for check in link.CHECKS} - {"pcie_errors", "pcie_wanted"} | {
    "numa_unknown",
    "virtual_machine",
}


def examine(host, *entries):
    """Examine the drives of these entries, or discover all without one."""
    given = {"drives": entries, "discover": not entries, "state_dir": None, "look": "sample", "look_s": 0.02}
    given["passing_programs"] = []
    return drive_facts.module_result(host, given)["drives"]


def decided(drive):
    """Return what was said of a drive, as a row of the table has it."""
    offers = [base.parse(OfferedPurge, offer) for offer in drive["purge"]]
    purges = [offer.method for offer in offers if offer.supported and not offer.hits_others]
    chosen = methods.choose("auto", offers).method if purges else ""
    return Told(
        drive["identity"]["transport"],
        " ".join(refusal["code"] for refusal in drive["refusals"]),
        purges,
        chosen if chosen != next(iter(purges), "") else "",
    )


def test_each_machine_has_its_row():
    assert {path.parent.name for path in machine_trees.MACHINES.glob("*/machine.yml")} == set(MACHINES)


@pytest.mark.parametrize("machine", MACHINES)
def test_each_drive_is_decided(fake, machine):
    machine_trees.build(fake, machine)
    wanted = {
        name: told._replace(purges=list(told.purges), checks=None, cpus=None, node=None)
        for name, told in MACHINES[machine].items()
    }
    assert {drive["identity"]["kernel_name"]: decided(drive) for drive in examine(fake)} == wanted


def test_a_zoned_drive_that_may_be_tested_is_looked_at_by_its_zones(fake):
    """It takes allow: [zoned]; then zones that are not empty are data, also where they read as zeros."""
    machine_trees.build(fake, "zoned-namespace")
    (drive,) = examine(fake)
    assert drive["identity"]["zone_bytes"] == 1 << 20 and "allow: [zoned]" in drive["refusals"][0]["message"]
    path = Path(fake.path("/dev/nvme0n2"))
    made, others = Zones(path, count=path.stat().st_size // ZONE_BYTES), fake.ioctl
    is_of_zones = (zones.BLKREPORTZONE, zones.BLKRESETZONE)
    fake.ioctl = lambda *given: made.ioctl(*given) if given[1] in is_of_zones else others(*given)
    entry = {"serial": drive["identity"]["serial"], "allow": ["zoned"]}
    (blank,) = examine(fake, entry)
    assert blank["eligible"] and [offer["method"] for offer in blank["purge"]] == ["zone_reset"]
    made.write(3, bytes(4096))
    (used,) = examine(fake, entry)
    assert [refusal["code"] for refusal in used["refusals"]] == ["unsigned_data"]
    assert f"1 of its {made.count} zones are not empty" in used["refusals"][0]["message"]
    (released,) = examine(fake, {**entry, "ssd_overwrite_data": True})
    assert released["eligible"]


def of_eligible(machine, column):
    """Return what the table says of the machine's drives that may be erased, by kernel name."""
    return {name: getattr(told, column) for name, told in MACHINES[machine].items() if not told.refusals}


def rows(column):
    """Return the machines of which the table has it."""
    return [name for name in MACHINES if any(value is not None for value in of_eligible(name, column).values())]


@pytest.mark.parametrize("machine", rows("checks"))
def test_the_way_to_each_drive_is_checked(fake, machine):
    machine_trees.build(fake, machine)
    wanted = of_eligible(machine, "checks")
    options = {
        **{name: option.get("default") for name, option in host_checks.OPTIONS.items()},
        "drives": [{"wwn": identity.wwn(fake, name)} for name in wanted],
        "parallel_drives": len(wanted),
    }
    found = [
        finding
        for finding in host_checks.module_result(fake, options)["findings"]
        if finding["check"] in ON_THE_WAY and finding["level"] != "ok"
    ]
    levels = {check.check: check.level for check in table.TABLE}
    told = {
        name: {
            finding["check"] + ("" if finding["level"] == levels[finding["check"]] else ":" + finding["level"])
            for finding in found
            if finding["drive"] in (None, identity.wwn(fake, name))
        }
        for name in wanted
    }
    assert told == {name: set(codes.split()) for name, codes in wanted.items()}


@pytest.mark.parametrize("machine", rows("cpus"))
def test_each_drive_gets_its_place(fake, machine):
    machine_trees.build(fake, machine)
    wanted = of_eligible(machine, "cpus")
    requests = [CpuRequest(name, attributes.numa_node(fake, name)) for name in wanted]
    places = CpuPlacement(cpus.topology(fake), requests, parallel=len(requests))
    taken = {name: places.take(name) for name in wanted}
    assert {name: place.cpus for name, place in taken.items()} == wanted
    assert {name: place.node for name, place in taken.items()} == of_eligible(machine, "node")


@pytest.mark.parametrize(
    "model, function, refusals",
    [
        ("SAMSUNG MZQL21T9HCJR-00A07", "0x144d 0xa80a", []),
        ("WDC SN840 VDX", "0x1b96 0x2500", []),
        ("Dell BOSS-N1", "0x1b4b 0x2241", ["raid_volume"]),
        ("Dell BOSS-N1", "", ["raid_volume"]),
        # Under a name that nobody knows.
        ("M.2 Mirror", "0x1b4b 0x2241", ["raid_volume"]),
    ],
)
def test_a_boot_mirror_is_known_by_its_controller_or_its_name(fake, model, function, refusals):
    machine_trees.build(fake, "boot-mirror-nvme")
    fake.put("/sys/class/nvme/nvme0/model", model)
    for file, value in zip(("vendor", "device"), function.split()):
        fake.put(f"/sys/devices/pci0000:00/0000:00:03.1/0000:01:00.0/{file}", value)
    (drive,) = examine(fake)
    assert [refusal["code"] for refusal in drive["refusals"]] == refusals


def test_a_controller_that_hides_a_drive_is_named_where_that_is_missing(fake):
    machine_trees.build(fake, "remapped-nvme")
    (drive,) = examine(fake, {"serial": "SN1"})
    (refusal,) = drive["refusals"]
    assert "the SATA controller 0000:00:17.0 hides NVMe drives (1): set it to AHCI" in refusal["message"]


ASKED = {
    "ata": {"hdparm", "sg_raw"},
    "scsi": {"sg_turs", "sg_requests", "sg_persist", "sg_raw", "sg_opcodes"},
}


def is_asked(fake, commands):
    return commands <= {command[0] for command in fake.commands}


def test_drives_behind_a_raid_controller_are_asked_what_they_are(fake):
    machine_trees.build(fake, "megaraid-jbod")
    examine(fake, {"serial": "SN-SATA-1"}, {"serial": "SN-SAS-1"})
    assert is_asked(fake, ASKED["ata"] | ASKED["scsi"])


@pytest.mark.parametrize("serial, commands", [("SN-SATA-1", "ata"), ("SN-SAS-1", "scsi")])
def test_an_allowed_transport_skips_no_question(fake, serial, commands):
    """As on USB: the path is allowed, and what the drive is decides what it is asked."""
    machine_trees.build(fake, "megaraid-jbod")
    name = {"SN-SATA-1": "sda", "SN-SAS-1": "sdb"}[serial]
    usb = "/sys/devices/pci0000:00/0000:00:14.0/usb1/1-1/1-1:1.0/host9/target9:0:0/9:0:0:0"
    old = os.path.dirname(os.path.dirname(fake.realpath(f"/sys/block/{name}")))
    os.makedirs(os.path.dirname(fake.path(usb)))
    os.rename(fake.path(old), fake.path(usb))
    for place in (f"/sys/block/{name}", f"/sys/class/block/{name}", f"{usb}/block/{name}/device"):
        os.unlink(fake.path(place))
    fake.link(f"{usb}/block/{name}/device", usb)
    for place in (f"/sys/block/{name}", f"/sys/class/block/{name}"):
        fake.link(place, f"{usb}/block/{name}")
    (drive,) = examine(fake, {"serial": serial, "allow": ["transport"]})
    assert (drive["identity"]["transport"], drive["refusals"]) == ("usb", [])
    assert [code["code"] for code in drive["overridden"]] == ["transport"]
    assert is_asked(fake, ASKED[commands])


def test_an_allowed_transport_lifts_no_password(fake):
    machine_trees.build(fake, "megaraid-jbod")
    drive = {"model": "EXAMPLE SATA SSD", "vpd_pg80": "SN-SATA-1"}
    # Security supported, enabled, locked.
    locked = machine_trees.identify_device({**drive, machine_trees.IDENTIFY: {"128": "0027"}})
    fake.answers["hdparm --Istdout /dev/sda"] = (0, locked, "")
    (drive,) = examine(fake, {"serial": "SN-SATA-1", "allow": ["transport"]})
    assert [refusal["code"] for refusal in drive["refusals"]] == ["ata_security"]


def test_a_hard_disk_is_no_ssd_and_can_be_allowed(fake):
    machine_trees.build(fake, "hard-disk")
    (drive,) = examine(fake)
    text = drive_list.render({"rack1-07": {"drives": [drive]}})
    assert "hard_disk: it is a hard disk: it turns 7200 times a minute" in text
    (drive,) = examine(fake, {"serial": "SN-HDD-1", "allow": ["hard_disk"]})
    assert decided(drive) == Told("sata", "", [method for method in ATA if method != DEALLOCATE])


@pytest.mark.parametrize(
    "below, vendor, kind",
    [
        ("pci0000:17/0000:17:02.0/0000:18:00.0", "EXAMPLE", "sas"),
        ("pci0000:17/0000:17:02.0/0000:18:00.0", "LIO-ORG", None),
        ("tcm_loop_0/tcm_loop_adapter_0", "LIO-ORG", None),
        ("pseudo_0/adapter0", "Linux", None),
        ("virtual/x", "EXAMPLE", None),
    ],
)
def test_a_unit_of_software_that_names_a_sas_port_is_no_sas_drive(fake, below, vendor, kind):
    """LIO, the kernel's own target, names one on each loopback of its own."""
    device = f"/sys/devices/{below}/host0/target0:0:1/0:0:1:0"
    fake.put(device + "/vendor", vendor)
    fake.put(device + "/vpd_pg83", b"\0\x83\0\x0c\x61\x93\0\x08\x50\0\0\0\0\0\0\x03")
    fake.put(device + "/block/sda/dev", "8:0")
    fake.link("/sys/block/sda", device + "/block/sda")
    fake.link(device + "/block/sda/device", device)
    assert attributes.transport(fake, "sda") == kind


SLOW = "its CPUs {} are slower than this host's others: set `cpus` to compare drives"


@pytest.mark.parametrize(
    "drives, cpus_of, slow",
    [
        ("a", ["0-11"], [""]),
        ("abc", ["0-3", "4-7", "8-11"], [""] * 3),
        # More drives than fast cores.
        ("abcdefg", ["0-1", "2-3", "4-5", "6-7", "8-9", "10-11", "12"], [""] * 6 + ["12"]),
    ],
)
def test_drives_beside_each_other_get_like_cores(fake, drives, cpus_of, slow):
    machine_trees.build(fake, "hybrid-cpu")
    places = CpuPlacement(cpus.topology(fake), [CpuRequest(name, 0) for name in drives], parallel=len(drives))
    taken = [places.take(name) for name in drives]
    assert [place.cpus for place in taken] == cpus_of
    assert [place.note for place in taken] == [SLOW.format(listed) if listed else "" for listed in slow]
    assert {place.interrupt_cpus for place in taken} == {"13-19" if any(slow) else "12-19"}


@pytest.mark.parametrize(
    "fast, drives, cpus_of",
    [(1, "a", ["0-6"]), (3, "a", ["0-6"]), (4, "a", ["0-3"]), (4, "ab", ["0-2", "3-5"]), (8, "ab", ["0-3", "4-7"])],
)
def test_too_few_fast_cores_are_not_all_that_a_drive_gets(fake, fast, drives, cpus_of):
    """As on ARM: a prime core or two beside many others."""
    count = 2 * fast if fast == 8 else 8
    fake.put("/sys/devices/system/cpu/online", f"0-{count - 1}")
    for cpu in range(count):
        fake.put(f"/sys/devices/system/cpu/cpu{cpu}/cpu_capacity", "1024" if cpu < fast else "446")
    places = CpuPlacement(cpus.topology(fake), [CpuRequest(name) for name in drives], parallel=len(drives))
    assert [places.take(name).cpus for name in drives] == cpus_of


@pytest.mark.parametrize("capacities, slow", [({0: 1024, 1: 446}, {1}), ({0: 1024, 1: 1000}, set()), ({}, set())])
def test_slow_cores_are_known_by_their_capacity(fake, capacities, slow):
    """As ARM's kernels tell; the fastest of like cores differ by a few per cent."""
    fake.put("/sys/devices/system/cpu/online", "0-1")
    for cpu, capacity in capacities.items():
        fake.put(f"/sys/devices/system/cpu/cpu{cpu}/cpu_capacity", str(capacity))
    assert cpus.topology(fake).slow == slow


@pytest.mark.parametrize(
    "code, message",
    [
        (errno.ENOSPC, "No space left on device: no interrupt vector is free on the CPUs 14-15"),
        # Both CPUs are on.
        (errno.EINVAL, "Invalid argument: it can't be moved"),
    ],
)
def test_an_admin_vector_that_cannot_be_moved(fake, tmp_path, monkeypatch, code, message):
    """No measured command uses it, so it disturbs nothing."""
    machine_trees.build(fake, "vmd")
    write = fake.write
    # The kernel places the vectors of the I/O queues itself.
    refused = {irq.path(60): code, irq.path(61): errno.EPERM, irq.path(62): errno.EPERM}

    def refuse(path, text):
        if path in refused:
            raise OSError(refused[path], os.strerror(refused[path]))
        write(path, text)

    monkeypatch.setattr(fake, "write", refuse)
    tune = Tune(interrupts=InterruptCores("auto"), numa=NumaBinding([]))
    plan = tuning_plan.TuningPlan(tune, [tuning_plan.DriveToTune("SN1", parse({"serial": "SN1"}))], 1)
    found = tuning_plan.targets(fake, plan.drives)
    wanted = tuning_plan.expand(fake, plan.tune, found, tuning_plan.Places(fake, plan, found))
    applied = settings.apply(fake, wanted, str(tmp_path / "tuning.json"))
    assert [(item.path, item.outcome) for item in applied] == [
        (irq.path(60), "failed"),
        (irq.path(61), "managed"),
        (irq.path(62), "managed"),
    ]
    assert applied[0].message == "/proc/irq/60/smp_affinity_list: " + message
    (drift,) = tuned_host.drifted_settings(fake, applied, "nvme0n1")
    assert drift.text.startswith("/proc/irq/60/smp_affinity_list is 0-15, tuned to 14-15")
    assert not drift.bears and not drift.was_made
