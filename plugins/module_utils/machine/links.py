# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Links of drives as sysfs shows them: their rate, and how those of SATA and SAS save power. A read costs the drive
nothing. None is unknown.

Sources: kernel, Documentation/ABI/testing/sysfs-ata (ata_link/*/sata_spd), sysfs-class-sas_phy (negotiated_linkrate,
  maximum_linkrate_hw), sysfs-block-device, sysfs-class-scsi_host (ahci_host_caps); AHCI 1.3.1, section 3.1.1 (CAP.ISS).
"""

from __future__ import annotations

import re

from ..core.host import Host
from . import pcie

# Of a device's path: ata1, and the drive's channel there; the port nearest to the drive, also behind expanders; its
# host adapter.
_ATA = re.compile(r"(.*/ata([0-9]+))/.*/[0-9]+:([0-9]+):[0-9]+:[0-9]+/")
_SAS_PORT = re.compile(r"(.*/port-[0-9:]+)/end_device-")
_SCSI_HOST = re.compile(r"/(host[0-9]+)/")
# Interface speed support of an AHCI controller, the bits 23:20 of its capabilities.
_AHCI_GBIT_S = {1: 1.5, 2: 3.0, 3: 6.0}
_RATE = re.compile(r"([0-9]+(?:\.[0-9]+)?) (?:Gbps|Gbit)")
# Usable MB/s for each Gbit/s, after the line code 8b/10b.
MB_S_PER_GBIT_S = 100


def carries_mb_s(host: Host, name: str, transport: str | None) -> float | None:
    """Return what the link of a drive carries one way, as it was negotiated."""
    if transport in ("sata", "sas"):
        gbit_s = rate_gbit_s(host, name)
        return None if gbit_s is None else gbit_s * MB_S_PER_GBIT_S
    address = pcie.address_of(host, name) if transport in ("nvme", "pcie") else None
    if address is None:
        return None
    link = pcie.live(host, address)
    return pcie.bandwidth_mb_s(link.speed_gts, link.width)


def rate_gbit_s(host: Host, name: str) -> float | None:
    """Return what the link of a SATA or SAS drive was negotiated to; of a wide port the slowest of its phys."""
    found = _rates(host, name, sata="sata_spd", sas="negotiated_linkrate")
    known = [value for value in found if value is not None]
    return min(known) if known and len(known) == len(found) else None


def port_gbit_s(host: Host, name: str) -> float | None:
    """Return the most that the port of a SATA or SAS drive can do: of its controller, host adapter or expander."""
    found = [*_rates(host, name, sata="hw_sata_spd_limit", sas="maximum_linkrate_hw"), _ahci_gbit_s(host, name)]
    return min((value for value in found if value is not None), default=None)


def _ahci_gbit_s(host: Host, name: str) -> float | None:
    """Return what the drive's AHCI controller can do: libata's limit of a link knows nothing of it."""
    caps = _of_adapter(host, name, "ahci_host_caps") or ""
    return _AHCI_GBIT_S.get(int(caps, 16) >> 20 & 0xF) if re.fullmatch("[0-9a-f]{1,8}", caps) else None


def _rates(host: Host, name: str, sata: str, sas: str) -> list[float | None]:
    """Return what the file of this name tells of each link or phy that leads to the drive."""
    path, files = host.realpath("/sys/block/" + name), []
    port, ata = _SAS_PORT.match(path), _ATA.match(path)
    if port:
        files = host.glob(f"{port.group(1)}/phy-*/sas_phy/phy-*/{sas}")
    elif ata:
        folder, number, channel = ata.groups()
        # Behind a port multiplier, link1.0 is the drive's on channel 0 (libata-transport.c), and link1 that of all.
        names = (f"link{number}", f"link{number}.{channel}")
        paths = [f"{folder}/{link}/ata_link/{link}/{sata}" for link in names]
        files = [path for path in paths if host.exists(path)]
    return [rate(host.get(file)) for file in files]


def rate(text: str | None) -> float | None:
    """6.0 Gbps, 12.0 Gbit; anything else, such as <unknown>, is None."""
    match = _RATE.fullmatch(text or "")
    return float(match.group(1)) if match else None


def policy(host: Host, name: str) -> str | None:
    """Return how the SATA link of a drive saves power: max_performance, med_power_with_dipm …"""
    return _of_adapter(host, name, "link_power_management_policy")


def _of_adapter(host: Host, name: str, file: str) -> str | None:
    adapter = _SCSI_HOST.search(host.realpath("/sys/block/" + name))
    return host.get(f"/sys/class/scsi_host/{adapter.group(1)}/{file}") if adapter else None


def pci_power(host: Host, address: str | None) -> str | None:
    """Return the power state of a PCI function: D0 where it works."""
    told = host.get(f"/sys/bus/pci/devices/{address}/power_state") if address else None
    return told if told and re.fullmatch(r"D[0-3](hot|cold)?", told) else None
