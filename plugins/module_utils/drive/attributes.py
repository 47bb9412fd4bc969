# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Facts of a block device from sysfs and udev's database, for NVMe, SCSI and ATA, virtio and loop devices. None is
unknown.
"""

from __future__ import annotations

import os
import re

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
# Transports of devices of software: no model that says anything of them, no link, temperature or health.
VIRTUAL = ("loop", "virtio", "nbd")
_ATA_IDENTIFY = 60  # where IDENTIFY DEVICE starts in VPD page 89h (SAT-3, ATA Information)
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
    """nvme (local, by PCIe), nvme-tcp, nvme-rdma …, pcie (P320h, P420m, ioMemory), sata, sas, usb, iscsi, fc, mmc,
    virtio, nbd or loop.
    """
    for prefix in ("loop", "nbd"):
        if name.startswith(prefix):
            return prefix
    kinds = {host.get(controller + "/transport") for controller in nvme_controllers(host, name)}
    if kinds:
        kind = kinds.pop() if len(kinds) == 1 else None
        return "nvme" if kind == "pcie" else kind and "nvme-" + kind
    path = host.realpath("/sys/block/" + name)
    found = vendor_identity.transport(name) or next(
        (kind for pattern, kind in _TRANSPORTS if re.search(pattern, path)), None
    )
    behind_hba = found == "sas" and host.get(f"/sys/block/{name}/device/vendor") == "ATA"
    return "sata" if behind_hba else found


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
