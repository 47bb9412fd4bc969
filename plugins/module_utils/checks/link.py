# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks of the way from the processor to a drive. Pure.

Sources: ioMemory VSL Peak Performance Guide, appendix D (over-subscribed bus, PCI Express errors, link width); Micron
  TN-FD-15,
table 1 (PCIe slots, chipset).
"""

from __future__ import annotations

import typing as t

from ..machine.pcie import Device, Errors, aer_text, bandwidth_mb_s, is_bridge, is_uncorrected, link_text
from .base import BLOCKS, NO_DEVICE, WARNING, Check, CheckedDrive, Harmless, HostFacts, OfVirtual, Unknown, wanted_for

# No SSD is made with less; a drive that shows it is emulated, in a recovery mode, or behind a broken adapter.
LEAST_SPEED_GTS, LEAST_WIDTH = 2.5, 1
ROUNDING = 1.001
ORDER = (
    "reseat the drive and every riser, and check again under traffic; then swap the riser, then the drive, "
    "then the board"
)


def _unknown_link(drive: CheckedDrive) -> list[str]:
    """Return why nothing can be said about a drive's link; empty where it is known."""
    if drive.is_virtual:
        return [OfVirtual(f"{drive.identity.transport} drives have no PCI Express link")]
    if not drive.path:
        return [Unknown("its PCI function is unknown, so its PCI Express link cannot be checked")]
    if drive.on_pcie and None in _link(drive.endpoint):
        return [
            Unknown(
                f"{drive.endpoint.address} shows no PCI Express link (now {link_text(*_link(drive.endpoint))}) in sysfs"
            )
        ]
    return []


def _link(device: Device) -> tuple[float | None, int | None]:
    return device.speed_gts, device.width


def _most(device: Device) -> tuple[float | None, int | None]:
    return device.max_speed_gts, device.max_width


def _lower(first: t.Any, second: t.Any) -> bool:
    """Return whether a number is known to be below another."""
    return first is not None and second is not None and first < second


def _least(*values: t.Any) -> t.Any:
    return min((value for value in values if value is not None), default=None)


def link_trained_down(_facts: HostFacts, drive: CheckedDrive) -> list[str]:
    """Find a link slower or narrower than both drive and slot support.

    Reads: `current_link_*`, `max_link_*` of both. Source: guide, appendix D.
    """
    unknown = _unknown_link(drive)
    if unknown or not drive.on_pcie:
        return unknown
    slot = drive.bridges[0] if drive.bridges else NO_DEVICE
    able = tuple(_least(*pair) for pair in zip(_most(drive.endpoint), _most(slot)))
    if None in able:
        return [Unknown(f"neither {drive.endpoint.address} nor its slot reports its fastest link")]
    if not any(_lower(now, most) for now, most in zip(_link(drive.endpoint), able)):
        return []
    return [f"its link runs at {link_text(*_link(drive.endpoint))}; the drive and its slot can do {link_text(*able)}"]


def slot_below_drive(_facts: HostFacts, drive: CheckedDrive) -> list[str]:
    """Find a slot that can do less than the drive, or a drive that claims to be 2.5 GT/s or x1 in a better slot.

    Reads: `max_link_*`. Source: guide, appendix D; TN-FD-15.
    """
    if _unknown_link(drive) or not drive.on_pcie:
        return []
    if not drive.bridges or None in _most(drive.bridges[0]):
        return [Unknown(f"the fastest link of {drive.endpoint.address}'s slot is unknown")]
    own, slot = _most(drive.endpoint), _most(drive.bridges[0])
    if any(_lower(most, needed) for most, needed in zip(slot, own)):
        return [f"its slot ({drive.bridges[0].address}) can do {link_text(*slot)}, the drive {link_text(*own)}"]
    lowest = [most is not None and most <= least for most, least in zip(own, (LEAST_SPEED_GTS, LEAST_WIDTH))]
    if any(lowest) and any(_lower(most, slot_most) for most, slot_most in zip(own, slot)):
        return [f"the drive supports only {link_text(*own)}, in a slot for {link_text(*slot)}"]
    return []


def link_as_wanted(facts: HostFacts, drive: CheckedDrive) -> list[str]:
    """Find a link below what `preflight_link` requires for the model.

    Reads: `current_link_*`. Source: guide, appendix D.
    """
    rule = wanted_for(facts.required.link, drive.identity.model)
    if rule is None or not any(rule):
        return []
    unknown = _unknown_link(drive)
    if unknown or not drive.on_pcie:
        return unknown
    if not any(_lower(now, least) for now, least in zip(_link(drive.endpoint), rule)):
        return []
    shown = link_text(rule.speed_gts or None, rule.width or None)
    return [f"its link runs at {link_text(*_link(drive.endpoint))}; preflight_link wants {shown} for this model"]


def sata_trained_down(_facts: HostFacts, drive: CheckedDrive) -> list[str]:
    """Find a SATA link slower than the drive and its port support.

    Reads: `smartctl` (interface speed), `hw_sata_spd_limit`, `ahci_host_caps`, `maximum_linkrate_hw`.
    """
    if drive.identity.transport != "sata" or drive.health.error:
        return []  # a health that cannot be read is told once, by the checks of the health
    now, most = drive.health.interface_gbit_s, drive.health.interface_max_gbit_s
    if now is None or most is None:
        return [Unknown("smartctl does not report the speed of its SATA link")]
    if now >= min(most, drive.sata_port_gbit_s or most):
        return []
    return [f"its SATA link runs at {now:g} Gb/s; the drive can do {most:g} Gb/s"]


def sata_port_limits(_facts: HostFacts, drive: CheckedDrive) -> list[str]:
    """Find a SATA port slower than the drive.

    Reads: `smartctl` (interface speed), `hw_sata_spd_limit`, `ahci_host_caps`, `maximum_linkrate_hw`.
    """
    most, port = drive.health.interface_max_gbit_s, drive.sata_port_gbit_s
    if most is None or port is None or port >= most:
        return []
    return [f"its SATA port can do {port:g} Gb/s; the drive can do {most:g} Gb/s"]


def oversubscribed(facts: HostFacts, drive: CheckedDrive) -> list[str]:
    """Find a link on the way to the root that is narrower than all the links below it together.

    It harms the measurement only where the drives that are measured at the same time need more than it has.

    Reads: `/sys/bus/pci/devices`. Source: guide, appendix D.
    """
    if _unknown_link(drive) or not drive.on_pcie:
        return []
    unknown: list[str] = []
    found: list[tuple[bool, float, str]] = []
    for bridge in drive.bridges:
        available, below = bandwidth_mb_s(*_link(bridge)), links_below(facts, bridge.address)
        if available is None or None in below.values():
            unknown.append(Unknown(f"the link at {bridge.address}, or one below it, is unknown, and so is its load"))
            continue
        loads = {address: load or 0.0 for address, load in below.items()}
        if sum(loads.values()) > available * ROUNDING:
            at_once = measured_at_once(facts, loads)
            found.append(
                (
                    at_once > available * ROUNDING,
                    sum(loads.values()) / available,
                    _oversubscribed(facts, bridge, available, loads, at_once),
                )
            )
    harms, _ratio, text = max(found, default=(False, 0.0, ""))
    return [text] if harms else unknown[:1] + ([Harmless(text)] if text else [])


def _oversubscribed(
    facts: HostFacts, bridge: Device, available: float, loads: t.Mapping[str, float], at_once: float
) -> str:
    text = (
        "over-subscribed at {0}: the devices below it ({1}) need {2:.0f} MB/s, its link of {3} has {4:.0f} MB/s".format(
            bridge.address, ", ".join(sorted(loads)), sum(loads.values()), link_text(*_link(bridge)), available
        )
    )
    text += f"; what is measured at the same time (ssd_parallel_drives: {_parallel(facts)}) needs {at_once:.0f} MB/s"
    return text if at_once > available * ROUNDING else text + ", which it has while the other devices are idle"


def _parallel(facts: HostFacts) -> int:
    return facts.required.parallel_drives or 1


def measured_at_once(facts: HostFacts, loads: t.Mapping[str, float]) -> float:
    """Return the most that the drives under test among these devices can need together, in MB/s. loads: {address:
    load}.
    """
    under_test = {_slot(drive.endpoint.address) for drive in facts.drives if drive.path}
    return sum(
        sorted((load for address, load in loads.items() if _slot(address) in under_test), reverse=True)[
            : _parallel(facts)
        ]
    )


def _slot(address: str) -> str:
    """Return the part of an address that the functions of one device share."""
    return address.rpartition(".")[0]


def links_below(facts: HostFacts, bridge: str) -> dict[str, float | None]:
    """Return what each device below a bridge can put on it, in MB/s: {address: load}. Functions of one device
    share its link.
    """
    loads: dict[str, float | None] = {}
    for address, device in facts.devices.items():
        shares = _slot(address) in map(_slot, loads)
        if bridge in device.above and not is_bridge(device.class_code) and not shares:
            loads[address] = bandwidth_mb_s(*_link(device))
    return loads


def chipset(_facts: HostFacts, drive: CheckedDrive) -> list[str]:
    """Find a slot of the chipset (southbridge): Intel's ports at 00:1a to 1d, AMD's chipset switches.

    Reads: PCI addresses and ids. Source: guide, appendix D, problem 2.
    """
    ports = [device.address for device in drive.bridges if device.chipset] if drive.on_pcie else []
    return (
        [f"its slot is behind the chipset ({ports[0]}), and shares its link to the processor with others there"]
        if ports
        else []
    )


def errors_under_traffic(_facts: HostFacts, drive: CheckedDrive) -> list[str]:
    """Find errors that were not corrected (AER), of the drive or of a port above it, while the drive is read.

    Reads: `aer_dev_*` before and after. Source: guide, appendix D.
    """
    if drive.is_virtual or not drive.path:
        return []
    if drive.aer_rose is None:
        return [
            Unknown(
                "PCI Express errors under traffic were not checked: {0}".format(
                    drive.traffic or "preflight_traffic_s is 0"
                )
            )
        ]
    if all(device.aer is None for device in drive.path):
        return [Unknown("neither the drive nor a port above it counts PCI Express errors (AER)")]
    return [_rose(address, rose) for address, rose in drive.aer_rose.items() if is_uncorrected(rose)]


def corrected_under_traffic(_facts: HostFacts, drive: CheckedDrive) -> list[str]:
    """Find errors that were corrected (AER), and no others, of the drive or of a port above it, while the drive is
    read: a fast link may repeat a packet every few seconds (1e-12 of its bits).

    Reads: `aer_dev_*` before and after. Source: PCI Express Base Specification, bit error rate.
    """
    return [_rose(address, rose) for address, rose in (drive.aer_rose or {}).items() if not is_uncorrected(rose)]


def _rose(address: str, rose: Errors) -> str:
    return f"{address} rose by {aer_text(rose)} while the drive was read"


def errors_before(_facts: HostFacts, drive: CheckedDrive) -> list[str]:
    """Find AER counters of the drive itself that are not 0; those of bridges report falsely.

    Reads: `aer_dev_*`. Source: guide, appendix D.
    """
    counts = drive.endpoint.aer
    still = [(drive.endpoint.address, counts)] if counts and any(counts.values()) else []
    return [
        f"{address} counted {aer_text(seen)} since the boot"
        for address, seen in still
        if address not in (drive.aer_rose or {})
    ]


CHECKS: tuple[Check, ...] = (
    Check(
        "pcie_link",
        BLOCKS,
        "check the slot's speed and bifurcation in the BIOS; "
        + ORDER
        + "; where the backplane is the limit but nothing tells, set preflight_levels: {pcie_link: warning}",
        link_trained_down,
    ),
    Check(
        "pcie_slot",
        WARNING,
        "move the drive to a slot that supports its speed and width, or judge it by what this slot allows",
        slot_below_drive,
    ),
    Check(
        "pcie_wanted",
        BLOCKS,
        "reseat the drive or move it to a slot that gives this link, or change preflight_link",
        link_as_wanted,
    ),
    Check(
        "sata_link",
        BLOCKS,
        "replace the cable, or use another bay or a port that supports the drive's speed; where the port itself is the "
        "limit but does not tell it, set preflight_levels: {sata_link: warning}",
        sata_trained_down,
    ),
    Check(
        "sata_port",
        WARNING,
        "move the drive to a port that supports its speed, or judge it by what this port allows",
        sata_port_limits,
    ),
    Check(
        "pcie_oversubscribed",
        WARNING,
        "spread the drives over slots connected to the processor, or lower ssd_parallel_drives",
        oversubscribed,
    ),
    Check("chipset_slot", WARNING, "move the drive to a slot connected to the processor", chipset),
    Check("pcie_errors", BLOCKS, ORDER, errors_under_traffic),
    Check(
        "pcie_corrected",
        WARNING,
        "the run counts them by the hour (corrected_pcie_errors_per_h); where there are many, " + ORDER,
        corrected_under_traffic,
    ),
    Check(
        "pcie_errors_before",
        WARNING,
        "the run reads the counters again under traffic; if they rise there, " + ORDER,
        errors_before,
    ),
)
