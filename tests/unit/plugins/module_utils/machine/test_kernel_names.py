# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.machine import kernel_names
from ansible_collections.ssdlab.fleet.tests.fixtures import machine_trees

PORT = "/sys/devices/pci0000:00/0000:00:03.1"


@pytest.mark.parametrize(
    "machine, drive, own, above",
    [
        (
            "boot-mirror-sata",
            "sda",
            {"sda", "0:0:0:0", "target0:0:0", "ata1", "ata1.00"},
            {"host0", "0000:00:17.0"},
        ),
        ("megaraid-jbod", "sda", {"sda", "0:0:1:0", "target0:0:1"}, {"host0", "megaraid_sas", "0000:18:00.0"}),
        ("megaraid-jbod", "sdb", {"sdb", "0:0:2:0", "target0:0:2"}, {"host0", "megaraid_sas", "0000:18:00.0"}),
        ("boot-mirror-nvme", "nvme0n1", {"nvme0n1", "nvme0", "0000:01:00.0", "0000:00:03.1"}, set()),
        ("vmd", "nvme0n1", {"nvme0n1", "nvme0", "10001:01:00.0", "10001:00:00.0"}, {"0000:d7:05.5"}),
    ],
)
def test_names_of_machines(fake, machine, drive, own, above):
    machine_trees.build(fake, machine)
    names = kernel_names.of_drive(fake, drive)
    assert names.own == own
    assert above <= set(names.above) and not own.intersection(names.above)
    assert kernel_names.of_all(fake)[drive] == names


def test_a_host_adapter_has_its_drivers_name(fake):
    device = "/sys/devices/pci0000:17/0000:17:02.0/0000:18:00.0/host2/port-2:0/end_device-2:0/target2:0:0/2:0:0:0"
    fake.disk("sda", "8:0", device)
    fake.put("/sys/class/scsi_host/host2/proc_name", "mpt3sas\n")
    fake.put("/sys/class/scsi_host/host2/unique_id", "1\n")
    names = kernel_names.of_drive(fake, "sda")
    assert names.own == {"sda", "2:0:0:0", "target2:0:0"}
    assert {"mpt3sas_cm1", "host2", "0000:18:00.0", "0000:17:02.0"} <= set(names.above)
    assert [part for part in names.above if part.startswith("0000")] == ["0000:18:00.0", "0000:17:02.0"]


@pytest.mark.parametrize(
    "multiplied, own", [(False, {"ata3", "ata3.00"}), (True, {"ata3.02"})], ids=["alone", "behind a port multiplier"]
)
def test_a_port_of_libata(fake, multiplied, own):
    port = "/sys/devices/pci0000:00/0000:00:17.0/ata3"
    fake.disk("sda", "8:0", f"{port}/host2/target2:2:0/2:2:0:0")
    fake.put(f"{port}/link3/ata_link/link3/sata_spd", "6.0 Gbps\n")
    if multiplied:
        fake.put(f"{port}/link3.2/ata_link/link3.2/sata_spd", "6.0 Gbps\n")
    names = kernel_names.of_drive(fake, "sda")
    assert names.own == {"sda", "2:2:0:0", "target2:2:0", *own}
    assert ("ata3" in names.above) == multiplied


def _nvme(fake, controller, function, name):
    path = f"{function}/nvme/{controller}"
    fake.put(f"{path}/transport", "pcie\n")
    fake.link(fake.disk(name, "259:0", path) + "/device", path)


def test_a_slot_is_the_drives_where_nothing_else_hangs_on_it(fake):
    _nvme(fake, "nvme0", f"{PORT}/0000:01:00.0", "nvme0n1")
    assert kernel_names.of_drive(fake, "nvme0n1").own == {"nvme0n1", "nvme0", "0000:01:00.0", "0000:00:03.1"}
    fake.put(f"{PORT}/0000:01:01.0/vendor", "0x8086\n")
    names = kernel_names.of_drive(fake, "nvme0n1")
    assert names.own == {"nvme0n1", "nvme0", "0000:01:00.0"} and "0000:00:03.1" in names.above


def test_native_multipath_has_the_names_of_all_controllers(fake):
    subsystem = "/sys/devices/virtual/nvme-subsystem/nvme-subsys0"
    fake.link(fake.disk("nvme0n1", "259:0", subsystem) + "/device", subsystem)
    for number, function in ((0, "0000:01:00.0"), (3, "0000:41:00.0")):
        path = f"/sys/devices/pci0000:00/{function}/nvme/nvme{number}"
        fake.put(f"{path}/transport", "pcie\n")
        fake.link(f"{subsystem}/nvme{number}", path)
    assert kernel_names.of_drive(fake, "nvme0n1").own == {"nvme0n1", "nvme0", "nvme3", "0000:01:00.0", "0000:41:00.0"}


def test_a_drive_over_a_network_has_its_controllers_name(fake):
    controller = "/sys/devices/virtual/nvme-fabrics/ctl/nvme2"
    fake.put(f"{controller}/transport", "tcp\n")
    fake.link(fake.disk("nvme2n1", "259:0", controller) + "/device", controller)
    assert kernel_names.of_drive(fake, "nvme2n1").own == {"nvme2n1", "nvme2"}


def test_a_drive_in_an_enclosure_has_the_name_of_its_bridge(fake):
    hub = "/sys/devices/pci0000:00/0000:00:14.0/usb2/2-1"
    fake.disk("sdb", "8:16", f"{hub}/2-1.4/2-1.4:1.0/host6/target6:0:0/6:0:0:0")
    names = kernel_names.of_drive(fake, "sdb")
    assert names.own == {"sdb", "6:0:0:0", "target6:0:0", "2-1.4"} and "2-1" in names.above


def test_software_has_no_names(fake):
    fake.disk("loop0", "7:0", "/sys/devices/virtual")
    assert kernel_names.of_all(fake) == {}
    assert kernel_names.of_drive(fake, "loop0").own == {"loop0"}
