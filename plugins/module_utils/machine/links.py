# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""SATA and SAS links as sysfs shows them: their rate and how they save power. A read costs the drive nothing. None is
unknown.

Sources: kernel, Documentation/ABI/testing/sysfs-ata (ata_link/*/sata_spd), sysfs-class-sas_phy (negotiated_linkrate),
  sysfs-block-device.
"""

from __future__ import annotations

import re

from ..core.host import Host

# Of a device's path: ata1; the port nearest to the drive, also behind expanders; its host adapter.
_ATA = re.compile(r"(.*/ata[0-9]+)/")
_SAS_PORT = re.compile(r"(.*/port-[0-9:]+)/end_device-")
_SCSI_HOST = re.compile(r"/(host[0-9]+)/")
_RATE = re.compile(r"([0-9]+(?:\.[0-9]+)?) (?:Gbps|Gbit)")


def rate_gbit_s(host: Host, name: str) -> float | None:
    """Return what the link of a SATA or SAS drive was negotiated to; of a wide port the slowest of its phys."""
    path = host.realpath("/sys/block/" + name)
    found = [rate(host.get(file)) for file in _rate_files(host, path)]
    known = [value for value in found if value is not None]
    return min(known) if known and len(known) == len(found) else None


def _rate_files(host: Host, path: str) -> list[str]:
    port = _SAS_PORT.match(path)
    if port:
        return host.glob(port.group(1) + "/phy-*/sas_phy/phy-*/negotiated_linkrate")
    ata = _ATA.match(path)
    # link1.0 and on are those of a port multiplier; which of them is the drive's can't be told.
    return host.glob(ata.group(1) + "/link[0-9]*/ata_link/link[0-9]*/sata_spd") if ata else []


def rate(text: str | None) -> float | None:
    """6.0 Gbps, 12.0 Gbit; anything else, such as <unknown>, is None."""
    match = _RATE.fullmatch(text or "")
    return float(match.group(1)) if match else None


def policy(host: Host, name: str) -> str | None:
    """Return how the SATA link of a drive saves power: max_performance, med_power_with_dipm …"""
    adapter = _SCSI_HOST.search(host.realpath("/sys/block/" + name))
    return host.get(f"/sys/class/scsi_host/{adapter.group(1)}/link_power_management_policy") if adapter else None


def pci_power(host: Host, address: str | None) -> str | None:
    """Return the power state of a PCI function: D0 where it works."""
    told = host.get(f"/sys/bus/pci/devices/{address}/power_state") if address else None
    return told if told and re.fullmatch(r"D[0-3](hot|cold)?", told) else None
