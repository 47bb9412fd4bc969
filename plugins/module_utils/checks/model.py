# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks of what a drive's model needs: firmware, driver, and the requirements that its maker publishes. Pure.

Source: Micron TN-FD-15, table 1 and "Hardware and Software"; PCI ids: pci.ids, vendor 1344.
"""

from __future__ import annotations

import typing as t

from ..machine.pcie import bandwidth_mb_s, link_text
from .base import BLOCKS, WARNING, Check, CheckedDrive, HostFacts, Unknown, matches, rule_text, version_key, wanted_for

GB = 10**9
MICRON_VENDOR = "0x1344"
# P320h/m/s, P325m, P420h/m, P425m: one family, one note, one driver (mtip32xx).
MICRON_PCIE = ("0x5150", "0x5151", "0x5152", "0x5153", "0x5160", "0x5161", "0x5163")


class Needs(t.NamedTuple):
    """What a maker asks of the machine for one family of drives; None: nothing."""

    title: str
    source: str
    memory_bytes: int | None = None
    slot_power_w: float | None = None
    kernel: str | None = None
    cpus: tuple[int, int] | None = None  # at least, at most
    cpu_mhz: int | None = None
    cache_bytes: int | None = None
    link: tuple[float, int] | None = None
    bits: int | None = None


NEEDS: tuple[tuple[t.Callable[[CheckedDrive], bool], Needs], ...] = (
    (
        lambda drive: (
            (drive.endpoint.vendor, drive.endpoint.device) in {(MICRON_VENDOR, device) for device in MICRON_PCIE}
        ),
        Needs(
            "P320h / P420m",
            "TN-FD-15, table 1",
            memory_bytes=6 * GB,
            slot_power_w=25.0,
            kernel="2.6.25",
            cpus=(4, 8),
            cpu_mhz=3000,
            cache_bytes=12 << 20,
            link=(5.0, 8),
            bits=64,
        ),
    ),
)


def needs(drive: CheckedDrive) -> Needs | None:
    """Return the requirements of a drive's model; None for one that nobody published any for."""
    return next((row for fits, row in NEEDS if fits(drive)), None)


def firmware(facts: HostFacts, drive: CheckedDrive) -> list[str]:
    """Find firmware other than `preflight_firmware` requires for the model.

    Reads: sysfs, VPD. Source: brief: same firmware on all.
    """
    wanted, actual = (
        wanted_for(facts.required.firmware, drive.identity.model),
        drive.identity.firmware,
    )
    if wanted is None:
        return []
    if not actual:
        return [
            Unknown(f"its firmware revision is unknown; preflight_firmware wants {rule_text(wanted)} for this model")
        ]
    return (
        []
        if matches(wanted, actual)
        else [f"its firmware is {actual}; preflight_firmware wants {rule_text(wanted)} for this model"]
    )


def driver(facts: HostFacts, drive: CheckedDrive) -> list[str]:
    """Find a kernel driver other than `preflight_drivers` requires, or an unknown one.

    Reads: `/sys/bus/pci`, `/sys/module/*/version`. Source: TN-FD-15, table 1.
    """
    driver_name, version = drive.driver.name, drive.driver.version
    name = drive.driver.module or driver_name
    if not name:
        return [] if drive.is_virtual else [Unknown("its kernel driver is unknown")]
    wanted = wanted_for(facts.required.drivers, name) or wanted_for(facts.required.drivers, driver_name)
    if wanted is None:
        return []
    if not version:
        return [Unknown(f"the version of its driver {name} is unknown; preflight_drivers wants {rule_text(wanted)}")]
    return (
        []
        if matches(wanted, version)
        else [f"its driver is {name} {version}; preflight_drivers wants {rule_text(wanted)}"]
    )


def machine_needs(facts: HostFacts, drive: CheckedDrive) -> list[str]:
    """Find less than 6 GB of memory, 3 GHz, 12 MB of cache or 4 CPUs, or more than 8 CPUs, beside a P320h or P420m.

    Reads: `/proc`, `/sys/devices/system/cpu`. Source: TN-FD-15, table 1.
    """
    row, machine = needs(drive), facts.machine
    if row is None:
        return []
    at_least = (
        ("memory", "GB", machine.memory_bytes, row.memory_bytes, GB),
        ("processor's frequency", "MHz", machine.cpu_max_mhz, row.cpu_mhz, 1),
        ("processor's cache", "MiB", machine.cache_bytes, row.cache_bytes, 1 << 20),
        ("number of CPUs", "", machine.cpus, row.cpus[0] if row.cpus else None, 1),
    )
    told = [text for text in (_short(row, *item) for item in at_least) if text]
    if row.cpus and machine.cpus and machine.cpus > row.cpus[1]:
        text = (
            "{0}: up to {1} CPUs are recommended for {2}, the machine has {3} (the role tune keeps the I/O to {1} "
            "of them)"
        )
        told.append(text.format(row.source, row.cpus[1], row.title, machine.cpus))
    return told


def _short(row: Needs, name: str, unit: str, actual: float | None, least: float | None, scale: int) -> str:
    """Return a sentence where there is less than asked for, an Unknown where that cannot be told; empty where all is
    well.
    """
    if least is None:
        return ""
    asked = f"{row.source}: {row.title} requires a {name} of at least {least / scale:g} {unit}".rstrip()
    if actual is None:
        return Unknown(asked + "; this machine's is unknown")
    return f"{asked}; the machine has {actual / scale:.4g}" if actual < least else ""


def slot_power(_facts: HostFacts, drive: CheckedDrive) -> list[str]:
    """Find a slot of less than 25 W under a P320h or P420m.

    Reads: slot capabilities in the port's configuration space. Source: TN-FD-15, table 1.
    """
    row = needs(drive)
    if row is None or row.slot_power_w is None:
        return []
    limit = drive.bridges[0].slot_power_w if drive.bridges else None
    if limit is None:
        return [
            Unknown(
                f"{row.source}: the slot must give {row.slot_power_w:g} W; the power limit of its slot cannot be read"
            )
        ]
    return (
        [f"{row.source}: the slot must give {row.slot_power_w:g} W, its limit is {limit:g} W"]
        if limit < row.slot_power_w
        else []
    )


def kernel(facts: HostFacts, drive: CheckedDrive) -> list[str]:
    """Find a kernel before Linux 2.6.25, or not of 64 bit, under a P320h or P420m.

    Reads: `/proc/sys/kernel/osrelease`. Source: TN-FD-15.
    """
    row, release, machine = needs(drive), facts.machine.kernel, facts.machine.architecture
    if row is None:
        return []
    told: list[str] = []
    if row.kernel and not release:
        told.append(Unknown(f"{row.source}: the driver needs Linux {row.kernel}; this kernel's release is unknown"))
    elif row.kernel and version_key(str(release)) < version_key(row.kernel):
        told.append(f"{row.source}: the driver needs Linux {row.kernel} or later, this is {release}")
    if row.bits == 64 and machine and "64" not in machine:
        told.append(f"{row.source}: {row.title} needs a 64-bit system, this is {machine}")
    return told


def slot_link(_facts: HostFacts, drive: CheckedDrive) -> list[str]:
    """Find a slot slower than 5 GT/s x8 under a P320h or P420m.

    Reads: `max_link_*` of the slot. Source: TN-FD-15, table 1.
    """
    row = needs(drive)
    slot = drive.bridges[0] if drive.bridges else None
    if row is None or row.link is None or slot is None:
        return []
    able, asked = bandwidth_mb_s(slot.max_speed_gts, slot.max_width), bandwidth_mb_s(*row.link) or 0.0
    if able is None:
        return [Unknown(f"{row.source}: a slot of {link_text(*row.link)} is recommended; this slot's limit is unknown")]
    shown = link_text(slot.max_speed_gts, slot.max_width)
    return (
        [f"{row.source}: a slot of {link_text(*row.link)} is recommended, this one can do {shown}"]
        if able < asked
        else []
    )


CHECKS: tuple[Check, ...] = (
    Check("firmware", BLOCKS, "update the firmware with the maker's tool, or change preflight_firmware", firmware),
    Check("driver", BLOCKS, "install the wanted driver, or change preflight_drivers", driver),
    Check(
        "model_machine",
        WARNING,
        "use a machine that the drive's maker recommends, or state the machine when you compare figures",
        machine_needs,
    ),
    Check("model_slot", WARNING, "move the drive to a faster slot", slot_link),
    Check("model_kernel", BLOCKS, "use a kernel that its driver supports", kernel),
    Check(
        "slot_power",
        BLOCKS,
        "move the drive to a slot with enough power, or raise the slot's limit in the BIOS",
        slot_power,
    ),
)
