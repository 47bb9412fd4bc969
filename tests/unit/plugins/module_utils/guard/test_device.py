# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What sysfs tells of a device, on fixture trees."""

from __future__ import annotations

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.drive import identity
from ansible_collections.ssdlab.fleet.plugins.module_utils.guard.device import probe_device
from ansible_collections.ssdlab.fleet.plugins.module_utils.guard.facts import Facts

PCI = "/sys/devices/pci0000:00/0000:00:03.0"
PLACES = ("fabric", "transport", "removable", "raid_volume", "placeholder", "shared", "read_only", "failures")


def found(fake, name):
    facts = Facts(name=name, path="/dev/" + name, kind="drive", identity=identity.identity(fake, name))
    probe_device(fake, facts)
    return {place: getattr(facts, place) for place in PLACES if getattr(facts, place)}


@pytest.mark.parametrize(
    "path, places",
    [
        (PCI + "/ata1/host0/target0:0:0/0:0:0:0", []),
        (PCI + "/host4/port-4:0/end_device-4:0/target4:0:0/4:0:0:0", []),
        ("/sys/devices/platform/host6/session1/target6:0:0/6:0:0:1", ["fabric"]),
        (PCI + "/host7/rport-7:0-1/target7:0:0/7:0:0:0", ["fabric"]),
        (PCI + "/usb2/2-1/2-1:1.0/host8/target8:0:0/8:0:0:0", ["transport"]),
        (PCI + "/virtio3", ["transport"]),
        (PCI + "/host1/target1:0:0/1:0:0:0", ["transport"]),  # whatever that is
    ],
)
def test_only_local_drives_pass(fake, path, places):
    block = fake.disk("sda", "8:0", path)
    fake.link(block + "/device", path)
    assert list(found(fake, "sda")) == places


@pytest.mark.parametrize("transport", ["tcp", "rdma", "fc", "loop"])
def test_nvme_over_a_network_is_a_fabric(fake, transport):
    fake.nvme("nvme0n1", "259:0", "SN1")
    fake.put("/sys/devices/pci0000:80/0000:80:01.0/nvme/nvme0/transport", transport)
    assert found(fake, "nvme0n1") == {"fabric": ["its transport is nvme-" + transport]}


def sas(fake, host, channel, driver, **files):
    path = PCI + f"/host{host}/port-{host}:0/end_device-{host}:0/target{host}:{channel}:0/{host}:{channel}:0:0"
    block = fake.disk("sda", "8:0", path)
    for name, text in files.items():
        fake.put(f"{path}/{name}", text)
    fake.link(block + "/device", path)
    fake.put(f"/sys/class/scsi_host/host{host}/proc_name", driver)


@pytest.mark.parametrize(
    "channel, driver, files, places",
    [
        ("0", "mpt3sas", {}, []),
        ("1", "mpt3sas", {}, ["raid_volume"]),
        ("0", "megaraid_sas", {"vendor": "SEAGATE", "model": "XS3840"}, []),
        ("2", "megaraid_sas", {}, ["raid_volume"]),
        ("0", "smartpqi", {"raid_level": "N/A"}, []),
        ("0", "smartpqi", {"raid_level": "RAID-0"}, ["raid_volume"]),
        ("0", "unheard_of", {"vendor": "DELL", "model": "PERC H730P Mini"}, ["raid_volume"]),
        ("0", "unheard_of", {"vendor": "LSI", "model": "Logical Volume"}, ["raid_volume"]),
        ("0", "arcmsr", {}, ["raid_volume"]),
        ("0", "unheard_of", {"model": "Virtual CDROM"}, ["removable"]),
        ("0", "unheard_of", {"model": "SATAFIRM   S11"}, ["placeholder"]),
    ],
)
def test_what_stands_behind_a_controller(fake, channel, driver, files, places):
    sas(fake, "4", channel, driver, **files)
    assert list(found(fake, "sda")) == places


@pytest.mark.parametrize("size, refused", [(2 << 20, True), (8 << 20, True), (16 << 20, False), (1 << 30, False)])
def test_a_capacity_that_no_drive_has(fake, size, refused):
    fake.nvme("nvme0n1", "259:0", "SN1", size=size)
    assert ("placeholder" in found(fake, "nvme0n1")) is refused
    fake.loop(0, "/srv/a.img", size=size)
    assert found(fake, "loop0") == {}


def test_a_serial_that_only_broken_firmware_has(fake):
    fake.nvme("nvme0n1", "259:0", "BAD_CTX 0000013x")
    assert "BAD_CTX" in found(fake, "nvme0n1")["placeholder"][0]


@pytest.mark.parametrize("file, place", [("ro", "read_only"), ("removable", "removable")])
def test_flags_of_the_kernel(fake, file, place):
    block = fake.nvme("nvme0n1", "259:0", "SN1")
    fake.put(f"{block}/{file}", "1")
    assert list(found(fake, "nvme0n1")) == [place]
    fake.put(f"{block}/{file}", "x")
    assert list(found(fake, "nvme0n1")) == ["failures"]


def test_two_devices_with_one_name_are_two_ways_to_one_drive(fake):
    for name, number in (("nvme0n1", "259:0"), ("nvme1n1", "259:1"), ("nvme2n1", "259:2")):
        fake.nvme(name, number, name, wwid="eui.0025385b71b00eb0" if name != "nvme2n1" else "eui.0025385b71b00eb2")
    assert "/dev/nvme1n1" in found(fake, "nvme0n1")["shared"][0]
    assert found(fake, "nvme2n1") == {}


def test_two_scsi_paths_to_one_unit_are_multipath(fake):
    for name, number, host in (("sda", "8:0", "4"), ("sdb", "8:16", "5")):
        path = PCI + "/host%s/port-%s:0/end_device-%s:0/target%s:0:0/%s:0:0:0" % ((host,) * 5)
        block = fake.disk(name, number, path)
        fake.put(path + "/wwid", "naa.5000c500a1b2c3d4")
        fake.link(block + "/device", path)
    assert "/dev/sdb" in found(fake, "sda")["fabric"][0]


@pytest.mark.parametrize(("serial", "wwid", "twins"), [("SN1", "", True), ("SN2", "", False), ("", "", False)])
def test_a_second_path_that_tells_no_wwn_is_known_by_the_serial(fake, serial, wwid, twins):
    """One controller asks the drive for its name, the other's firmware does not pass it on."""
    for name, number, host, own in (("sda", "8:0", "4", "naa.5000c500a1b2c3d4"), ("sdb", "8:16", "5", wwid)):
        path = PCI + "/host%s/port-%s:0/end_device-%s:0/target%s:0:0/%s:0:0:0" % ((host,) * 5)
        block = fake.disk(name, number, path)
        text = "SN1" if name == "sda" else serial
        fake.put(path + "/vpd_pg80", b"\0\x80\0" + bytes([len(text)]) + text.encode())
        fake.put(path + "/wwid", own)
        fake.link(block + "/device", path)
    assert ("fabric" in found(fake, "sda")) is twins and ("fabric" in found(fake, "sdb")) is twins


@pytest.mark.parametrize(
    ("model", "places"),
    [
        ("Amazon Elastic Block Store", ["fabric"]),
        ("nvme_card-pd", ["fabric"]),
        ("MSFT NVMe Accelerator v1.0", ["fabric"]),
        ("Alibaba Cloud Elastic Block Storage", ["fabric"]),
        ("VMware Virtual NVMe Disk", ["removable"]),
        ("ORCL-VBOX-NVME-VER12", ["removable"]),
        ("Amazon EC2 NVMe Instance Storage", []),
        ("nvme_card", []),
        ("Microsoft NVMe Direct Disk", []),
        ("SAMSUNG MZQL23T8HCLS-00A07", []),
    ],
)
def test_a_volume_on_a_network_or_of_a_hypervisor_that_calls_itself_nvme(fake, model, places):
    """It is a local PCIe device by all that sysfs tells."""
    fake.nvme("nvme0n1", "259:0", "SN1")
    fake.put("/sys/devices/pci0000:80/0000:80:01.0/nvme/nvme0/model", model.ljust(40))
    assert list(found(fake, "nvme0n1")) == places


@pytest.mark.parametrize("model", ["VMware Virtual SATA Hard Drive", "VBOX HARDDISK"])
def test_a_disk_of_a_hypervisor_that_calls_itself_sata(fake, model):
    path = PCI + "/ata1/host0/target0:0:0/0:0:0:0"
    block = fake.disk("sda", "8:0", path)
    fake.put(path + "/model", model)
    fake.link(block + "/device", path)
    assert list(found(fake, "sda")) == ["removable"]


def test_udev_that_has_yet_to_hear_of_a_drive_is_waited_for(fake):
    """Its names are what fstab and other files are searched for."""
    fake.nvme("nvme0n1", "259:0", "SN1", diskseq="7")
    fake.put("/run/udev/data/b259:0", "S:disk/by-diskseq/7\nE:ID_SERIAL_SHORT=SN1\n")
    assert found(fake, "nvme0n1") == {}
    fake.put("/run/udev/data/b259:0", "S:disk/by-diskseq/3\nE:ID_SERIAL_SHORT=SN1\n")
    assert "udevadm settle" in found(fake, "nvme0n1")["failures"][0]
