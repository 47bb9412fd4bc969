# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a drive shares with others on its way to the CPU: its controller, links of switches and adapters, cores. By
these is computed which drives can't disturb each other (plugin_utils/plan/shared_limits.py).

Sources: kernel, Documentation/ABI/testing/sysfs-class-sas_phy; Intel's DMI 2.0 and AMD's UMI: 4 lanes at 5 GT/s, the
  slowest link of a chipset with ports of 6 Gb/s; Broadcom's product briefs of the 9211-8i (290,000 IOPS) and the
  9300-8i (more than a million).
"""

from __future__ import annotations

import re

from ..core.host import Host
from ..drive.entry import Entry
from ..records.found_drives import SharedPart
from ..records.identity import Identity
from . import cpus, links, pcie

CHIPSET_MB_S = 4 * pcie.LANE_MB_S[5.0]
# What SAS adapters do of 4 KiB at random, by the rate of their phys in Gbit/s.
_ADAPTER_IOPS = {6.0: 290_000, 12.0: 1_000_000}
_IO_BYTES = 4096
_EXPANDER_PORT = re.compile(r"/(port-[0-9:]+)(?=/expander-)")
_PORT_MULTIPLIER = re.compile(r"(.*/ata([0-9]+))/link[0-9]+\.[0-9]+/")
_LOOPS = "the disk or memory behind loop devices"


def of_drive(
    host: Host, name: str, identity: Identity, entry: Entry, is_virtual_machine: bool
) -> list[SharedPart] | None:
    """Return what a drive shares; None: unknown. name: the kernel's.

    is_virtual_machine: what its drives share is known to its hypervisor alone.
    """
    transport = identity.transport
    if transport == "loop":
        return [SharedPart(_LOOPS, most_drives=1)]
    address = pcie.address_of(host, name)
    if is_virtual_machine or address is None or transport not in ("nvme", "pcie", "sata", "sas"):
        return None
    own = [SharedPart(f"the controller {address}", most_drives=1)]
    parts = own if transport in ("nvme", "pcie") else _of_adapter(host, name, address)
    return parts + _bridges(host, address) + _cores(host, identity, entry)


def _bridges(host: Host, address: str) -> list[SharedPart]:
    above = [device for device in pcie.path_to_root(host, address)[1:] if pcie.is_bridge(device.class_code)]
    found = [_link(device) for device in above]
    return found + [_chipset()] * any(device.chipset for device in above)


def _link(device: pcie.Device) -> SharedPart:
    """Return the link of a port or of an adapter."""
    carries_mb_s = pcie.bandwidth_mb_s(device.speed_gts, device.width)
    return SharedPart(f"the link {pcie.link_text(device.speed_gts, device.width)} of {device.address}", carries_mb_s)


def _chipset() -> SharedPart:
    return SharedPart("the chipset's link", CHIPSET_MB_S)


def _of_adapter(host: Host, name: str, address: str) -> list[SharedPart]:
    """Return the adapter of a SATA or SAS drive, and what is between the two."""
    path, way = host.realpath("/sys/block/" + name), pcie.path_to_root(host, address)
    is_of_chipset = way[0].width is None and len(way) == 1
    found = [_chipset() if is_of_chipset else _link(way[0])]
    folders = [path[: match.end()] for match in _EXPANDER_PORT.finditer(path)]
    found += [SharedPart(f"the SAS link {folder.rpartition('/')[2]}", _phys_mb_s(host, folder)) for folder in folders]
    if "/port-" in path:
        found.append(SharedPart(f"the adapter {address}", _adapter_mb_s(host, path)))
    multiplier = _PORT_MULTIPLIER.match(path)
    if multiplier:
        folder, number = multiplier.groups()
        rate = links.rate(host.get(f"{folder}/link{number}/ata_link/link{number}/sata_spd"))
        found.append(SharedPart(f"the port multiplier of ata{number}", _mb_s(rate)))
    return found


def _phys_mb_s(host: Host, port: str) -> float | None:
    """Return what all phys of a wide port carry together."""
    files = host.glob(f"{port}/phy-*/sas_phy/phy-*/negotiated_linkrate")
    rates = [links.rate(host.get(file)) for file in files]
    return _mb_s(sum(rate for rate in rates if rate)) if rates and all(rates) else None


def _mb_s(gbit_s: float | None) -> float | None:
    return gbit_s * links.MB_S_PER_GBIT_S if gbit_s else None


def _adapter_mb_s(host: Host, path: str) -> float | None:
    """Return what a SAS adapter carries of small I/Os, by the fastest phy on the way to the drive."""
    top = path[: path.index("/port-")]
    files = host.glob(f"{top}/port-*/phy-*/sas_phy/phy-*/maximum_linkrate_hw")
    files += host.glob(f"{top}/phy-*/sas_phy/phy-*/maximum_linkrate_hw")
    fastest = max((links.rate(host.get(file)) or 0.0 for file in files), default=0.0)
    iops = [most for gbit_s, most in _ADAPTER_IOPS.items() if fastest >= gbit_s]
    return iops[-1] * _IO_BYTES / 1e6 if iops else None


def _cores(host: Host, identity: Identity, entry: Entry) -> list[SharedPart]:
    """Return the cores of which the drive gets its own, at least one; nothing where the CPUs are given by hand."""
    if entry.options.cpus:
        return []
    topology, node = cpus.usable(host), entry.options.numa_node
    node = identity.numa_node if node is None else node
    is_node = node in topology.nodes
    cores = topology.cores(topology.of_node(node) if is_node and node is not None else topology.online)
    where = f" of NUMA node {node}" if is_node else ""
    return [SharedPart(f"the {len(cores)} cores{where}", most_drives=len(cores))] if cores else []
