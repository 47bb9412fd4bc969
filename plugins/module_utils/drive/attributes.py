# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Facts of a block device from sysfs and udev's database, for NVMe, SCSI and ATA, virtio and loop devices. None is
unknown.
"""

from __future__ import annotations

import os
import re
import typing as t

from ..core.host import Host
from ..core.sysfs import number, nvme_controllers
from ..vendors import vendor_identity

# Parts of a device's path in sysfs that tell how it is attached; the first that is there counts.
_TRANSPORTS = (
    (r"/usb[0-9]", "usb"),
    (r"/ata[0-9]", "sata"),
    (r"/(end_device|port)-[0-9]", "sas"),
    (r"/session[0-9]", "iscsi"),
    (r"/rport-[0-9]", "fc"),
    (r"/mmc[0-9]", "mmc"),
    (r"/virtio[0-9]", "virtio"),
)
_PCI_FUNCTION = re.compile(r"[0-9a-f]{4,}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
# Of a controller in this machine: a PCI function, or a part of Apple's chips (drivers/nvme/host/apple.c).
_LOCAL_NVME = ("pcie", "apple-nvme")
# Of SCSI disks behind another path or an unknown one, the drive's own words say what it is; a network's is not asked.
CommandSet = t.Literal["nvme", "ata", "scsi"]
_COMMAND_SETS: t.Mapping[str, CommandSet] = {"nvme": "nvme", "sata": "ata", "sas": "scsi"}
_NETWORKS = ("iscsi", "fc")
_ATA_VENDOR = "ATA"  # of every ATA drive that a translation (SAT) shows
_SOFTWARE_VENDOR = "LIO-ORG"  # of the units of the kernel's own target
NVME_VENDOR = "NVMe"  # of an NVMe drive that an adapter shows as a SCSI disk (SCSI Translation Reference, 6.1.1)
_SAS_PROTOCOL = 6  # PROTOCOL IDENTIFIER (SPC-4, 7.6.1)
_OF_UNIT, _NAA = 0, 3  # ASSOCIATION and DESIGNATOR TYPE (SPC-4, 7.8.6)
_EXTENDED = 6  # NAA IEEE Registered Extended (SPC-4, 7.8.6.6.5)
# Transports of devices of software: no model that says anything of them, no link, temperature or health.
VIRTUAL = ("loop", "virtio", "nbd")
_ATA_IDENTIFY = 60  # where IDENTIFY DEVICE starts in VPD page 89h (SAT-3, ATA Information)
_ATA_GENERAL = slice(_ATA_IDENTIFY, _ATA_IDENTIFY + 2)
# IDENTIFY word 0 (ACS-3): the drive is no ATA device, or its media can be changed.
_NOT_FIXED = 0x8080
_ATA_ROTATION = slice(_ATA_IDENTIFY + 2 * 217, _ATA_IDENTIFY + 2 * 218)
_ATA_FIRMWARE = slice(_ATA_IDENTIFY + 46, _ATA_IDENTIFY + 54)
_ATA_MODEL = slice(_ATA_IDENTIFY + 54, _ATA_IDENTIFY + 94)


def udev(host: Host, name: str) -> dict[str, str]:
    """Return what udev knows of a block device; empty without udev, and where it speaks of the device before."""
    pairs = (line[2:].partition("=") for line in _udev_lines(host, name) if line.startswith("E:"))
    return {key: value.strip() for key, _equal, value in pairs if value.strip()}


def udev_links(host: Host, name: str) -> list[str]:
    """Return the links below /dev that udev gives a block device, or would without another that has the same; empty as
    for `udev`.
    """
    return ["/dev/" + line[2:] for line in _udev_lines(host, name) if line.startswith("S:")]


def has_udev(host: Host, name: str) -> bool:
    """Return whether udev has an entry for a block device, of whatever device that is."""
    return bool(_udev_text(host, name))


def _udev_text(host: Host, name: str) -> str:
    number = host.get(f"/sys/class/block/{name}/dev") or host.get(f"/sys/block/{name}/dev")
    return host.get(f"/run/udev/data/b{number}") or ""


def udev_lags(host: Host, name: str) -> bool:
    """Return whether udev's entry is of the device that had this name before. It lags behind the kernel, more so where
    a drive is slow to answer. Since systemd 251 its links say which device it means.
    """
    found = re.findall(r"^S:disk/by-diskseq/([0-9]+)$", _udev_text(host, name), re.MULTILINE)
    now = host.get(f"/sys/class/block/{name}/diskseq")
    return bool(now and found and now not in found)


def _udev_lines(host: Host, name: str) -> list[str]:
    return [] if udev_lags(host, name) else _udev_text(host, name).splitlines()


def scsi_serial(host: Host, name: str) -> str | None:
    """Return the unit serial number of VPD page 80h: four bytes of header, of which two are the length."""
    page = _page(host, name, "vpd_pg80")
    length = int.from_bytes(page[2:4], "big")
    return _ascii(page[4 : 4 + length])


def model(host: Host, name: str) -> str | None:
    """Return the full model; SCSI cuts an ATA drive's model at 16 characters, so page 89h and udev come first."""
    if name.startswith("loop"):
        return "loop"
    return (
        _ata_text(_page(host, name, "vpd_pg89")[_ATA_MODEL])
        or vendor_identity.read(host, name).get("model")
        or _unescaped(udev(host, name).get("ID_MODEL_ENC"))
        or host.get(f"/sys/block/{name}/device/model")
        or host.get(f"/sys/block/{name}/device/name")
    )


def firmware(host: Host, name: str) -> str | None:
    """Return the firmware revision; SCSI cuts an ATA drive's at 4 characters, so page 89h comes first."""
    if name.startswith("loop"):
        return None
    return (
        _ata_text(_page(host, name, "vpd_pg89")[_ATA_FIRMWARE])
        or vendor_identity.read(host, name).get("firmware")
        or host.get(f"/sys/block/{name}/device/firmware_rev")
        or udev(host, name).get("ID_REVISION")
        or host.get(f"/sys/block/{name}/device/rev")
    )


def transport(host: Host, name: str) -> str | None:
    """nvme (local), nvme-tcp, nvme-rdma, nvme-rdma+tcp …, pcie (P320h, P420m, ioMemory), sata, sas, usb, iscsi, fc,
    mmc, virtio, nbd or loop.
    """
    for prefix in ("loop", "nbd"):
        if name.startswith(prefix):
            return prefix
    kinds = {host.get(controller + "/transport") for controller in nvme_controllers(host, name)}
    if kinds:
        # Several networks may lead to one namespace.
        networks = sorted(kind for kind in kinds if kind and kind not in _LOCAL_NVME)
        if networks:
            return "nvme-" + "+".join(networks)
        return None if None in kinds else "nvme"
    path = host.realpath("/sys/block/" + name)
    found = vendor_identity.transport(name) or next(
        (kind for pattern, kind in _TRANSPORTS if re.search(pattern, path)), None
    )
    if found not in (None, "sas") or not name.startswith("sd"):
        return found
    # Behind an HBA, also one whose driver has no transport class (MegaRAID, PERC, Adaptec), or none for NVMe drives.
    return "sata" if _is_ata(host, name) else "sas" if _is_sas(host, name, path) else found


def command_set(host: Host, name: str, transport_: str | None) -> CommandSet | None:
    """Return in which commands a drive answers, whatever leads to it; None for one that takes none of them."""
    found = _COMMAND_SETS.get(transport_ or "")
    if found or not name.startswith("sd") or transport_ in _NETWORKS:
        return found
    return "ata" if _is_ata(host, name) else "scsi"


def _is_ata(host: Host, name: str) -> bool:
    """Return whether a SCSI disk is an ATA drive behind a translation, by its vendor or VPD page 89h (SAT-3)."""
    vendor = host.get(f"/sys/block/{name}/device/vendor")
    return vendor == _ATA_VENDOR or bool(_page(host, name, "vpd_pg89"))


def _is_sas(host: Host, name: str, path: str) -> bool:
    """Return whether a SCSI disk behind an HBA, at this path in sysfs, has a designator of a SAS port in VPD page 83h
    (SPC-4, 7.8.6), or is an NVMe drive behind a tri-mode one. A RAID volume has no such port; a unit of software may
    name one.
    """
    vendor = host.get(f"/sys/block/{name}/device/vendor")
    if "/pci" not in path or vendor == _SOFTWARE_VENDOR:
        return False
    if vendor == NVME_VENDOR:
        return True
    return any(one[1] & 0x80 and one[0] >> 4 == _SAS_PROTOCOL for one in _designators(host, name))


def names_a_volume(host: Host, name: str) -> bool:
    """Return whether a SCSI disk has a name of the kind that RAID controllers and storage systems give their volumes
    (NAA 6). Drives have NAA 5, for their one unit needs no extension.
    """
    told = (host.get(f"/sys/block/{name}/device/wwid"), udev(host, name).get("ID_WWN"))
    if any(re.match(rf"(naa\.|0x){_EXTENDED}", text or "") for text in told):
        return True
    return any(
        one[1] >> 4 & 3 == _OF_UNIT and one[1] & 0xF == _NAA and len(one) > 4 and one[4] >> 4 == _EXTENDED
        for one in _designators(host, name)
    )


def _designators(host: Host, name: str) -> t.Iterator[bytes]:
    """Yield the designators of VPD page 83h, each with its header of four bytes."""
    page = _page(host, name, "vpd_pg83")
    rest = page[4 : 4 + int.from_bytes(page[2:4], "big")]
    while len(rest) >= 4:
        yield rest[: 4 + rest[3]]
        rest = rest[4 + rest[3] :]


def rotation_rate(host: Host, name: str) -> int:
    """Return the MEDIUM ROTATION RATE (SBC-3, 6.6.2) of a disk: 1 is an SSD; 0: it does not tell, or this kernel does
    not show the pages in which it does.
    """
    of_scsi = int.from_bytes(_page(host, name, "vpd_pgb1")[4:6], "big")
    return of_scsi or int.from_bytes(_page(host, name, "vpd_pg89")[_ATA_ROTATION], "little")


def reads_unmapped_as_zeros(host: Host, name: str) -> bool:
    """Return whether a SCSI disk says that unmapped blocks read as zeros: LBPRZ xx1b of VPD page B2h (SBC-4, 6.6.4),
    which kernels show since 5.18.
    """
    return bool(int.from_bytes(_page(host, name, "vpd_pgb2")[5:6], "big") & 0x4)


def is_on_cable(host: Host, name: str) -> bool:
    """Return whether a PCI function on the way to a drive is outside of the machine: in an enclosure of Thunderbolt or
    USB4 (sysfs-devices-removable). A bay for hot plugging is inside.
    """
    parts = host.realpath("/sys/block/" + name).split("/")
    functions = ["/".join(parts[:count]) for count, part in enumerate(parts, 1) if _PCI_FUNCTION.fullmatch(part)]
    return any(host.get(path + "/removable") == "removable" for path in functions)


def is_fixed(host: Host, name: str) -> bool:
    """Return whether an ATA drive says that its medium can't be taken out of it. The kernel also flags any drive as
    removable that is in a port for unplugging: a bay, eSATA (ata_scsiop_inq_std).
    """
    word = _page(host, name, "vpd_pg89")[_ATA_GENERAL]
    return len(word) == 2 and not int.from_bytes(word, "little") & _NOT_FIXED


def numa_node(host: Host, name: str) -> int | None:
    """Return the NUMA node of the nearest parent device that has one; None where there is none or it is shared
    between nodes.
    """
    starts = nvme_controllers(host, name) or [f"/sys/block/{name}/device"]
    nodes = {_nearest_node(host, host.realpath(start)) for start in starts if host.exists(start)}
    found = nodes.pop() if len(nodes) == 1 else None
    return vendor_identity.numa_node(host, name) if found is None else found


def queue_depth(host: Host, name: str) -> int | None:
    """Commands that one queue of the drive takes at a time: SCSI's depth, NVMe's submission queue, else the kernel's
    tags.
    """
    sizes = [number(host, controller + "/sqsize") for controller in nvme_controllers(host, name)]
    known = [size for size in sizes if size]
    return number(host, f"/sys/block/{name}/device/queue_depth") or (
        min(known) if known else number(host, f"/sys/block/{name}/queue/nr_requests")
    )


def _nearest_node(host: Host, path: str) -> int | None:
    while path.startswith("/sys/"):
        found = number(host, path + "/numa_node")
        if found is not None:
            return found if found >= 0 else None
        path = os.path.dirname(path)
    return None


def _page(host: Host, name: str, page: str) -> bytes:
    try:
        return host.read_bytes(f"/sys/block/{name}/device/{page}")
    except OSError:
        return b""


def _ascii(data: bytes) -> str | None:
    return data.decode("ascii", "replace").strip("\0 ") or None


def _ata_text(data: bytes) -> str | None:
    """ATA texts have the two bytes of each word swapped."""
    swapped = bytearray(len(data))
    swapped[0::2], swapped[1::2] = data[1::2], data[0::2]
    return _ascii(bytes(swapped))


def _unescaped(text: str | None) -> str | None:
    """udev writes a blank as \\x20."""
    return re.sub(r"\\x([0-9a-fA-F]{2})", lambda match: chr(int(match.group(1), 16)), text or "").strip() or None
