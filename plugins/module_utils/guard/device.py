# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What kind of device a drive is: its transport, removable or a RAID controller's volume, in recovery mode, reached
twice.
"""

from __future__ import annotations

import os
import re
import typing as t

from ..core.host import Host
from ..core.sysfs import number, nvme_controllers
from ..drive import identity as drive
from ..drive.attributes import (
    NVME_VENDOR,
    is_fixed,
    is_on_cable,
    names_a_volume,
    rotation_rate,
    udev_lags,
)
from ..tools import hdparm
from .facts import Facts, add

LOCAL = ("nvme", "sata", "sas", "pcie", "loop")
FABRIC = re.compile(r"nvme-.+|iscsi|fc")
# Firmware that cannot start shows a bare boot loader: one of these names, or a capacity that no drive has.
_RECOVERY_NAME = re.compile(r"SATAFIRM|ERRORMOD|BAD_CTX|BOOT ?ROM|^SM22\d\d", re.IGNORECASE)
_LEAST_BYTES = 16 << 20
# (driver of the SCSI host, the channels on which its volumes lie; None: all): what else they show are drives as such,
# and so are NVMe drives on any channel (mpi3mr_os.c has them on that of its volumes).
_RAID_HOSTS: tuple[tuple[str, str | None], ...] = (
    ("megaraid_sas", "23"),
    ("mpt2sas", "1"),
    ("mpt3sas", "1"),
    ("mpi3mr", "1"),
    ("aacraid", "0"),
    ("arcmsr", None),
    ("ips", None),
    ("3w-9xxx", None),
    ("3w-sas", None),
    ("3w-xxxx", None),
    ("megaraid", None),
    ("megaraid_legacy", None),
)
# VD: volumes of Marvell's SATA controllers, under any server's name (DELLBOSS VD, ThinkSystem M.2 VD). Msft: Hyper-V's
# disk, which is virtual media. RAID5: of bridge chips (JMicron H/W RAID5). IPR-0: of IBM's adapters.
_RAID_MODEL: t.Pattern[str] = re.compile(
    r"\b(PERC|MegaRAID|MR\d{4}|Logical Volume|LOGICAL VOLUME|(?<!Msft )Virtual Disk|VD|BOSS|RAID\d*|Boot Controller)\b"
    r"|DELLBOSS|ServeRAID|\bNS204i|^IBM IPR-\d"
)
# (vendor, device) of controllers that show nothing but volumes of their own, as NVMe drives. Source: pci.ids.
_RAID_FUNCTIONS: t.Mapping[tuple[str | None, str | None], str] = {
    ("0x1b4b", "0x2241"): "Marvell 88NR2241 (Dell BOSS-N1, HPE NS204i, Lenovo M.2 kits)",
}
# Of a server's management controller, or a file of a hypervisor's.
_VIRTUAL_MEDIA = re.compile(
    r"Virtual (CD|Floppy|Media|HDisk|Disk ?\d*$|NVMe Disk|SATA)|VBOX|QEMU HARDDISK|BHYVE SATA|iDRAC|LCDRIVE",
    re.IGNORECASE,
)
# Volumes that other machines may reach: of a cloud, of SPDK, of another Linux. To sysfs they are local NVMe drives, as
# are the cloud's own SSDs.
_NETWORK_MODEL = re.compile(
    r"Elastic Block Stor|^nvme_card-pd|^MSFT NVMe Accelerator|^SPDK bdev|SNAP Controller|^Linux\b", re.IGNORECASE
)
# Vendors of network adapters, by ids of PCI: what they show as an NVMe drive is a volume on their network.
_NETWORK_VENDORS: t.Mapping[str | None, str] = {"0x15b3": "BlueField", "0x1dd8": "Pensando"}


def probe_device(host: Host, facts: Facts) -> None:
    """What sysfs tells of the device."""
    identity, block = facts.identity, "/sys/block/" + facts.name
    _flags(host, facts, block)
    transport = identity.transport
    if transport and FABRIC.fullmatch(transport):
        add(facts.fabric, f"its transport is {transport}")
    elif transport not in LOCAL:
        add(facts.transport, transport or "unknown")
    if transport == "loop":
        return
    if udev_lags(host, facts.name):
        facts.failures.append(
            f"udev has not seen it yet and still describes the drive that was {facts.path} before; wait for it "
            "(udevadm settle)"
        )
    model, size = identity.model or "", identity.size_bytes
    for key, name in (("model", model), ("serial", identity.serial or "")):
        if _RECOVERY_NAME.search(name):
            add(
                facts.placeholder,
                "{}, with the {} {}".format("unknown" if size is None else f"{size} bytes", key, name),
            )
    if size and size < _LEAST_BYTES:
        add(facts.placeholder, f"{size} bytes")
    if _VIRTUAL_MEDIA.search(model):
        add(facts.removable, model)
    if is_on_cable(host, facts.name):
        add(facts.removable, "it is in an enclosure on a cable (Thunderbolt, USB4)")
    _network(host, facts, model)
    _raid(host, facts, block, model)
    if host.get(block + "/queue/zoned") == "host-managed":
        add(facts.zoned, "{} zones".format(host.get(block + "/queue/nr_zones") or "its zones are host-managed"))
        if not facts.identity.zone_bytes:
            facts.failures.append(f"{block}/queue/chunk_sectors does not tell the size of its zones")
    rate = rotation_rate(host, facts.name)
    # scsi.py asks ATA drives, as an adapter may hide from the kernel what they say.
    if transport == "sas" or hdparm.rotation_rpm(rate):
        judge_rotation(facts, rate)
    _twins(host, facts)


def judge_rotation(facts: Facts, rate: int) -> None:
    """Refuse a hard disk, by its MEDIUM ROTATION RATE; where it does not tell, by what the kernel takes it for."""
    rpm = hdparm.rotation_rpm(rate)
    if rpm:
        add(facts.hard_disk, f"it turns {rpm} times a minute")
    elif rate != hdparm.NO_ROTATION and facts.identity.rotational:
        add(facts.hard_disk, "the kernel says that it turns (queue/rotational)")


def _flags(host: Host, facts: Facts, block: str) -> None:
    for file, place, text in (
        ("ro", facts.read_only, "by the kernel's flag"),
        ("removable", facts.removable, "by the kernel's flag"),
    ):
        flag = host.get(f"{block}/{file}")
        if flag == "1":
            of_port = file == "removable" and facts.identity.transport == "sata" and is_fixed(host, facts.name)
            add(place, *([] if of_port else [text]))
        elif flag != "0":
            facts.failures.append(f"{block}/{file} says {flag!r}")


def _network(host: Host, facts: Facts, model: str) -> None:
    if facts.identity.transport == "nvme" and _NETWORK_MODEL.search(model):
        add(facts.fabric, f"{model} is a volume on a network")
    for controller in nvme_controllers(host, facts.name):
        adapter = _NETWORK_VENDORS.get(host.get(_function(host, controller) + "/vendor"))
        add(facts.fabric, *([f"it is a volume on a network: its controller is a {adapter}"] if adapter else []))


def _function(host: Host, controller: str) -> str:
    """Return the PCI function of an NVMe controller."""
    return os.path.dirname(os.path.dirname(host.realpath(controller)))


def _raid(host: Host, facts: Facts, block: str, model: str) -> None:
    level = host.get(block + "/device/raid_level")  # hpsa and smartpqi
    if level and level != "N/A":
        add(facts.raid_volume, f"its controller says {level}")
    vendor = host.get(block + "/device/vendor") or ""
    if _RAID_MODEL.search(f"{vendor} {model}"):
        add(facts.raid_volume, f"it calls itself {model}")
    for controller in nvme_controllers(host, facts.name):
        function = _function(host, controller)
        found = _RAID_FUNCTIONS.get((host.get(function + "/vendor"), host.get(function + "/device")))
        add(facts.raid_volume, *([f"its controller is a {found}"] if found else []))
    address = re.search(r"/host(\d+)/.*/(\d+):(\d+):\d+:\d+/", host.realpath(block) + "/")
    driver = host.get(f"/sys/class/scsi_host/host{address.group(1)}/proc_name") if address else None
    for name, channels in _RAID_HOSTS:
        if address and driver == name and (channels is None or address.group(3) in channels) and vendor != NVME_VENDOR:
            add(facts.raid_volume, f"{driver} shows it on channel {address.group(3)}, where its volumes are")
    # Such names a cloud, a hypervisor and the kernel's own target give, too, whose disks are refused by another name.
    on_adapter = facts.identity.transport in ("sas", None) and "/pci" in host.realpath(block)
    may_be_drive = on_adapter and vendor != NVME_VENDOR and not _VIRTUAL_MEDIA.search(model)
    if may_be_drive and names_a_volume(host, facts.name):
        add(facts.raid_volume, "its name is one that storage systems give their volumes (NAA 6), and no drive has")


def _twins(host: Host, facts: Facts) -> None:
    """Another block device with the same name of its own is another path to the same data."""
    own = facts.identity.wwn or facts.identity.serial
    twins = [
        drive.node(name) for name in drive.whole_drives(host) if name != facts.name and _is_twin(host, facts, name)
    ]
    if not twins:
        return
    text = "{} has the same name {}".format(", ".join(twins), own)
    add(facts.shared if facts.identity.transport == "nvme" else facts.fabric, text)


def _is_twin(host: Host, facts: Facts, name: str) -> bool:
    """By the world wide name; by the serial number where only one of two SCSI devices tells the other. Without either
    name two drives may well have one serial number, and are `ambiguous` by it.
    """
    own, other, serial = facts.identity.wwn, drive.wwn(host, name), facts.identity.serial
    if own and other:
        return bool(own == other)
    scsi = facts.name.startswith("sd") and name.startswith("sd")
    return bool((own or other) and scsi and serial and drive.serial(host, name) == serial)


def out_of_sight(host: Host) -> str:
    """Return which drives may be there and are no block devices: of storage controllers in the hands of user space
    (SPDK, a VM), and of a SATA controller in RAID mode (sysfs-driver-ahci, remapped_nvme). "" for none.
    """
    found = []
    for driver in ("vfio-pci", "uio_pci_generic", "igb_uio"):
        for path in host.glob(f"/sys/bus/pci/drivers/{driver}/*:*"):
            if (host.get(path + "/class") or "").startswith("0x01"):
                found.append("{} ({})".format(path.rpartition("/")[2], driver))
    text = (
        "; storage controllers held by user space, such as SPDK or a VM: {}".format(", ".join(found)) if found else ""
    )
    for path in host.glob("/sys/bus/pci/devices/*/remapped_nvme"):
        count = number(host, path)
        if count:
            text += (
                f"; the SATA controller {path.split('/')[-2]} hides NVMe drives ({count}): set it to AHCI in the BIOS"
            )
    return text
