# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PCI Express as sysfs shows it: which devices lead to a drive, their links, error counters and slot power."""

from __future__ import annotations

import dataclasses
import os
import re
import typing as t

from ..core.host import Host
from ..core.sysfs import number
from ..vendors import vendor_identity

DEVICES = "/sys/bus/pci/devices"
ADDRESS = re.compile(r"[0-9a-f]{4,}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
BRIDGE_CLASS = "0x0604"
# Usable MB/s of a lane by its rate in GT/s, after the line code: 8b/10b up to 5 GT/s, 128b/130b up to 32, FLITs at 64
# (PCIe 6.0, 4.2.1).
LANE_MB_S = {2.5: 250.0, 5.0: 500.0, 8.0: 984.6, 16.0: 1969.2, 32.0: 3938.5, 64.0: 7563.0}

# Which file of a device counts which errors, and the line that is their sum (sysfs-bus-pci-devices-aer_stats).
AER_FILES = {
    "correctable": ("aer_dev_correctable", "TOTAL_ERR_COR"),
    "nonfatal": ("aer_dev_nonfatal", "TOTAL_ERR_NONFATAL"),
    "fatal": ("aer_dev_fatal", "TOTAL_ERR_FATAL"),
}

# Ports of a chipset (southbridge): Intel's PCH has them at 00:1a to 1d; AMD's is a switch of its own with these ids
# (pci.ids).
_INTEL_CHIPSET_PORT = re.compile(r"0+:00:1[a-d]\.[0-7]")
_AMD_CHIPSET_PORTS = ("0x43b0", "0x43b1", "0x43b4", "0x43c6", "0x43c7", "0x43e9", "0x43f4", "0x43f5", "0x57ad")

# Offsets and bits of the configuration space (PCIe Base Specification, 7.5).
_STATUS, _CAPABILITIES, _EXPRESS_ID = 0x06, 0x34, 0x10
_HAS_LIST, _HAS_SLOT = 0x10, 0x100
_DEVICE_CONTROL, _SLOT_CAPABILITIES = 0x08, 0x14
_POWER_SCALE = (1.0, 0.1, 0.01, 0.001)
# From F0h on, and only at scale 1, the value is a code.
_POWER_CODES = {0xF0: 250.0, 0xF1: 275.0, 0xF2: 300.0}

# Errors since the boot, by the kinds of AER_FILES.
Errors = t.Dict[str, int]
# Kinds of errors that a link did not correct.
UNCORRECTED = ("nonfatal", "fatal")


@dataclasses.dataclass(frozen=True)
class Link:
    """What changes of a function. None is unknown."""

    address: str
    speed_gts: float | None = None
    # Its lanes.
    width: int | None = None
    # None: the function, or this kernel, does not count them.
    aer: Errors | None = None


@dataclasses.dataclass(frozen=True)
class Device(Link):
    """A function of PCI Express."""

    # Ids and class code as sysfs writes them: 0x8086.
    vendor: str | None = None
    device: str | None = None
    class_code: str | None = None
    driver: str | None = None
    numa_node: int | None = None
    # The CPUs beside it, as the firmware's tables have it: a list as the kernel writes it.
    local_cpus: str | None = None
    max_speed_gts: float | None = None
    max_width: int | None = None
    # Of a port's slot.
    slot_power_w: float | None = None
    # A port of the chipset.
    chipset: bool = False
    # The most that it sends in one packet, and that it asks for in one.
    payload_bytes: int | None = None
    read_request_bytes: int | None = None
    # How its addresses are translated: "DMA", "DMA-FQ", "identity" (sysfs-kernel-iommu_groups).
    iommu: str | None = None
    # The addresses of the bridges above it, nearest first; only of `functions`.
    above: tuple[str, ...] = ()


def address_of(host: Host, name: str) -> str | None:
    """Return the PCI address of the function that a block device hangs on; None where it hangs on none, or on several
    (native multipath).
    """
    found = {_last_address(host.realpath(start)) for start in _starts(host, name)}
    address = found.pop() if len(found) == 1 else None
    return address or _told_by_its_tool(host, name)


def _told_by_its_tool(host: Host, name: str) -> str | None:
    """An ioMemory's block device has no parent in sysfs, but fio-status knows its card's address."""
    short = vendor_identity.read(host, name).get("pci_address") if vendor_identity.is_iomemory(name) else None
    address = f"0000:{short}"
    return address if short and host.exists(f"{DEVICES}/{address}") else None


def _starts(host: Host, name: str) -> list[str]:
    device = f"/sys/block/{name}/device"
    controllers = [path for path in host.glob(device + "/nvme*") if re.fullmatch(r"nvme[0-9]+", os.path.basename(path))]
    # With native multipath the drive's parent is the subsystem, which is virtual and links to its controllers.
    if controllers and "/virtual/" in host.realpath(device):
        return controllers
    return [device if host.exists(device) else "/sys/block/" + name]


def _last_address(path: str) -> str | None:
    found = [part for part in path.split("/") if ADDRESS.fullmatch(part)]
    return found[-1] if found else None


def path_to_root(host: Host, address: str | None) -> list[Device]:
    """Return the devices from a drive's function up to its root port, in this order; empty where the address is
    unknown.
    """
    if address is None:
        return []
    parts = host.realpath(f"{DEVICES}/{address}").split("/")
    return [read(host, part) for part in reversed(parts) if ADDRESS.fullmatch(part)]


def functions(host: Host) -> dict[str, Device]:
    """Return, by address, the functions with a link, and the bridges above others."""
    above = topology(host)
    bridges = {address for others in above.values() for address in others}
    found = {address: dataclasses.replace(read(host, address), above=tuple(over)) for address, over in above.items()}
    return {address: seen for address, seen in found.items() if seen.max_width is not None or address in bridges}


def topology(host: Host) -> dict[str, list[str]]:
    """For every function, the bridges above it, nearest first: {address: [address]}. Bridges are in it too; virtual
    functions, which have no link, not.
    """
    found = {}
    for address in host.listdir(DEVICES):
        if host.exists(f"{DEVICES}/{address}/physfn"):
            continue
        parts = [part for part in host.realpath(f"{DEVICES}/{address}").split("/") if ADDRESS.fullmatch(part)]
        found[address] = parts[-2::-1]
    return found


def read(host: Host, address: str) -> Device:
    """One function's facts."""
    base = f"{DEVICES}/{address}/"
    vendor, device, kind = (host.get(base + name) for name in ("vendor", "device", "class"))
    driver, config = host.readlink(base + "driver"), _config(host, base)
    payload, read_request = packet_sizes(config)
    return Device(
        **vars(live(host, address)),
        vendor=vendor,
        device=device,
        class_code=kind,
        driver=os.path.basename(driver) if driver else None,
        numa_node=number(host, base + "numa_node"),
        local_cpus=host.get(base + "local_cpulist"),
        max_speed_gts=speed_gts(host.get(base + "max_link_speed")),
        max_width=lanes(host.get(base + "max_link_width")),
        slot_power_w=slot_power_w(config) if is_bridge(kind) else None,
        chipset=is_chipset_port(address, vendor, device) if is_bridge(kind) else False,
        payload_bytes=payload,
        read_request_bytes=read_request,
        iommu=host.get(base + "iommu_group/type"),
    )


def live(host: Host, address: str) -> Link:
    """Return what changes of a function. It costs the device one read of its configuration space."""
    base = f"{DEVICES}/{address}/"
    speed, width = (host.get(base + "current_link_" + name) for name in ("speed", "width"))
    return Link(address, speed_gts(speed), lanes(width), aer(host, address))


def is_bridge(kind: str | None) -> bool:
    """Return whether a class code is that of a PCI-to-PCI bridge, which every port of PCI Express is."""
    return (kind or "").startswith(BRIDGE_CLASS)


def is_chipset_port(address: str, vendor: str | None, device: str | None) -> bool:
    """Return whether a port belongs to a chipset, which shares one link to the processor with USB, SATA and network."""
    if vendor == "0x8086":
        return _INTEL_CHIPSET_PORT.fullmatch(address) is not None
    return vendor == "0x1022" and device in _AMD_CHIPSET_PORTS


def speed_gts(text: str | None) -> float | None:
    """Return a link's rate: "16.0 GT/s PCIe", of older kernels "8 GT/s"; "Unknown" is None."""
    match = re.match(r"([0-9]+(?:\.[0-9]+)?) GT/s", text or "")
    return float(match.group(1)) if match else None


def lanes(text: str | None) -> int | None:
    """Return a link's width; the kernel writes 0 where there is no link, and 255 for what it can't tell."""
    return int(text) if text and re.fullmatch(r"[0-9]{1,2}", text) and int(text) > 0 else None


def bandwidth_mb_s(gts: float | None, width: int | None) -> float | None:
    """Return what a link carries, one way."""
    lane = LANE_MB_S.get(gts or 0.0)
    return lane * width if lane and width else None


def link_text(gts: float | None, width: int | None) -> str:
    """Return a link for people: 16 GT/s x4."""
    return "{0} x{1}".format("? GT/s" if gts is None else f"{gts:g} GT/s", "?" if width is None else width)


def aer(host: Host, address: str) -> Errors | None:
    """Return the errors since the boot; None where the function or this kernel does not count them."""
    found = {}
    for kind, (file, total) in AER_FILES.items():
        count = aer_total(host.get(f"{DEVICES}/{address}/{file}"), total)
        if count is None:
            return None
        found[kind] = count
    return found


def aer_total(text: str | None, total: str) -> int | None:
    """Return the errors in one AER file: its total, or the sum of its lines where that is more, as one message may tell
    of several.
    """
    counts = re.findall(r"^(.+?)\s+([0-9]+)\s*$", text or "", re.MULTILINE)
    if not counts:
        return None
    stated = sum(int(count) for name, count in counts if name == total)
    return max(stated, sum(int(count) for name, count in counts if not name.startswith("TOTAL_")))


def aer_increase(before: t.Mapping[str, Errors | None], after: t.Mapping[str, Errors | None]) -> dict[str, Errors]:
    """Return what the counters rose by, by address, only where they rose."""
    found = {}
    for address, counts in after.items():
        start = before.get(address) or {}
        rose = {kind: count - start.get(kind, 0) for kind, count in (counts or {}).items()}
        rose = {kind: more for kind, more in rose.items() if more > 0}
        if rose:
            found[address] = rose
    return found


def aer_fell(before: t.Mapping[str, Errors | None], after: t.Mapping[str, Errors | None]) -> list[str]:
    """Return the addresses of counters that fell: they were reset, and how many errors are new is unknown."""
    return [
        address
        for address, counts in after.items()
        if any(count < (before.get(address) or {}).get(kind, 0) for kind, count in (counts or {}).items())
    ]


def is_uncorrected(counts: t.Mapping[str, int]) -> bool:
    """Return whether some of the errors were not corrected."""
    return any(counts.get(kind) for kind in UNCORRECTED)


def aer_text(counts: t.Mapping[str, int]) -> str:
    """Counters for people: 3 correctable, 1 fatal."""
    return ", ".join(f"{count} {kind}" for kind, count in counts.items() if count)


def slot_power_w(config: bytes) -> float | None:
    """Return the slot power limit in a port's configuration space; None where it is cut short (no root) or the port has
    no slot.
    """
    start = _capability(config, _EXPRESS_ID)
    if start is None or start + _SLOT_CAPABILITIES + 4 > len(config):
        return None
    if not int.from_bytes(config[start + 2 : start + 4], "little") & _HAS_SLOT:
        return None
    slot = int.from_bytes(config[start + _SLOT_CAPABILITIES : start + _SLOT_CAPABILITIES + 4], "little")
    value, scale = slot >> 7 & 0xFF, slot >> 15 & 3
    if scale == 0 and value in _POWER_CODES:
        return _POWER_CODES[value]
    # A port that nobody told its limit shows 0.
    return round(value * _POWER_SCALE[scale], 3) or None


def packet_sizes(config: bytes) -> tuple[int | None, int | None]:
    """Return the most that a function sends in one packet and asks for in one, in bytes, by its Device Control; None
    where it is cut short (no root).
    """
    start = _capability(config, _EXPRESS_ID)
    if start is None or start + _DEVICE_CONTROL + 2 > len(config):
        return None, None
    control = int.from_bytes(config[start + _DEVICE_CONTROL : start + _DEVICE_CONTROL + 2], "little")
    return 128 << (control >> 5 & 7), 128 << (control >> 12 & 7)


def _capability(config: bytes, wanted: int) -> int | None:
    """Return where a capability starts; the list is followed once around at most."""
    if len(config) <= _CAPABILITIES or not config[_STATUS] & _HAS_LIST:
        return None
    position, seen = config[_CAPABILITIES] & 0xFC, set()
    while position and position not in seen and position + 2 <= len(config):
        if config[position] == wanted:
            return position
        seen.add(position)
        position = config[position + 1] & 0xFC
    return None


def _config(host: Host, base: str) -> bytes:
    try:
        return host.read_bytes(base + "config")
    except OSError:
        return b""
