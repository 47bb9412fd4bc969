# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks that no host can make alone: what differs between hosts changes results (Micron's brief on best practices).
Pure.
"""

from __future__ import annotations

import typing as t

from ...module_utils.checks.base import WARNING
from ...module_utils.checks.table import BIOS_PENDING, BIOS_UNKNOWN, FLEET_FIRMWARE, FLEET_HOSTS
from ...module_utils.records.check_finding import CheckFinding
from ..common import bmc_tables as tables
from ..power import bios
from .findings import HostAnswer, host_list

# What hosts should have alike: (name, where in a snapshot, whether only hosts of one make are compared).
ALIKE: tuple[tuple[str, tuple[str, ...], bool], ...] = (
    ("BIOS", ("bios", "version"), True),
    ("microcode", ("cpu", "microcode"), True),
    ("memory", ("memory", "total_bytes"), True),
    ("kernel", ("kernel", "release"), False),
    ("kernel command line", ("command_line",), True),
    ("clock source", ("tunables", "clock_source"), True),
    ("fio", ("tools", "fio", "version"), False),
    ("nvme-cli", ("tools", "nvme", "version"), False),
)
# A command line names the root file system of its own host.
OWN_WORDS = (
    "root=",
    "BOOT_IMAGE=",
    "initrd=",
    "resume=",
    "rd.lvm.lv=",
    "rd.luks.uuid=",
    "rd.md.uuid=",
    "ip=",
    "BOOTIF=",
)
MEMORY_STEP = 1 << 30
REMEDIES = {
    FLEET_FIRMWARE: (
        "give the drives the same firmware (preflight_firmware enforces it), or compare only those that have the same"
    ),
    FLEET_HOSTS: "make the hosts alike, or compare only hosts that are alike",
    BIOS_UNKNOWN: "check vendor_bmc_* and that the BMC answers Redfish; nothing else of the run depends on it",
    BIOS_PENDING: (
        "reboot the host, or clear them in the BMC, before figures of it are compared: the next boot has another BIOS"
    ),
}

Place = tuple[str, str]


def added(views: t.Sequence[HostAnswer]) -> list[HostAnswer]:
    """Return the views, with what differs between them among their checks."""
    found: dict[str, list[tuple[str, str]]] = {}
    for check, message, hosts in [*_firmware(views), *_hosts(views), *_bios_attributes(views), *_bmcs(views)]:
        for host in hosts:
            found.setdefault(host, []).append((check, message))
    return [
        view
        if view.checks is None
        else view._replace(checks=[*view.checks, *_levelled(view, found.get(view.name, []))])
        for view in views
    ]


def _levelled(view: HostAnswer, found: t.Sequence[tuple[str, str]]) -> list[CheckFinding]:
    """Return what was found, (check, message), in the level that the host's inventory chooses."""
    levels = (view.asked or {}).get("preflight_levels")
    chosen = levels if isinstance(levels, dict) else {}
    return [CheckFinding(check, None, chosen.get(check, WARNING), message, REMEDIES[check]) for check, message in found]


def _firmware(views: t.Sequence[HostAnswer]) -> list[tuple[str, str, list[str]]]:
    """Drives of one model with different firmware: (check, message, hosts)."""
    models: dict[str, dict[str, list[Place]]] = {}
    for view in views:
        for one in view.drives or ():
            if one.identity and one.identity.model and one.identity.firmware:
                versions = models.setdefault(one.identity.model, {})
                versions.setdefault(one.identity.firmware, []).append((view.name, str(one.drive)))
    found = []
    for model, versions in models.items():
        if len(versions) > 1:
            shown = "; ".join(f"{version} on {_drives(places)}" for version, places in sorted(versions.items()))
            hosts = list(dict.fromkeys(host for places in versions.values() for host, _drive in places))
            found.append((FLEET_FIRMWARE, f"drives of the model {model} have different firmware: {shown}", hosts))
    return found


def _drives(places: t.Sequence[Place]) -> str:
    return host_list([f"{host} ({drive})" for host, drive in places])


def _hosts(views: t.Sequence[HostAnswer]) -> list[tuple[str, str, list[str]]]:
    """Hosts that differ in what they should have alike; what a host does not tell is not compared."""
    found = []
    for name, keys, same_make in ALIKE:
        makes: dict[str, dict[str, list[str]]] = {}
        for view in views:
            value, make = _value(view, keys), _make(view) if same_make else "every host"
            if value is not None and make:
                makes.setdefault(make, {}).setdefault(value, []).append(view.name)
        for values in makes.values():
            if len(values) > 1:
                shown = "; ".join(f"{value} on {host_list(hosts)}" for value, hosts in sorted(values.items()))
                found.append(
                    (
                        FLEET_HOSTS,
                        f"the hosts differ in {name}: {shown}",
                        [host for hosts in values.values() for host in hosts],
                    )
                )
    return found


def _bios_attributes(views: t.Sequence[HostAnswer]) -> list[tuple[str, str, list[str]]]:
    """Hosts of one make whose BIOS attributes differ, each attribute with its values. What a host lacks, or its BMC
    did not tell, is not compared.
    """
    makes: dict[str, dict[str, dict[str, list[str]]]] = {}
    for view in views:
        told = view.snapshot.bios_settings if view.snapshot else None
        for name, value in (told.attributes if told else {}).items():
            if not tables.is_own(name):
                makes.setdefault(_make(view), {}).setdefault(name, {}).setdefault(str(value), []).append(view.name)
    found = []
    for attributes in makes.values():
        unlike = {name: values for name, values in sorted(attributes.items()) if len(values) > 1}
        shown = [
            f"{name}: " + "; ".join(f"{value} on {host_list(hosts)}" for value, hosts in sorted(values.items()))
            for name, values in list(unlike.items())[: bios.MOST_NAMED]
        ]
        shown += [f"and {len(unlike) - bios.MOST_NAMED} more attributes"] * (len(unlike) > bios.MOST_NAMED)
        hosts = list(dict.fromkeys(host for values in unlike.values() for named in values.values() for host in named))
        if unlike:
            found.append((FLEET_HOSTS, f"the hosts differ in BIOS attributes: {' | '.join(shown)}", hosts))
    return found


def _bmcs(views: t.Sequence[HostAnswer]) -> list[tuple[str, str, list[str]]]:
    """Hosts whose BIOS attributes are unknown, or will be others from the next boot on."""
    found = []
    for view in views:
        told = view.snapshot.bios_settings if view.snapshot else None
        if told and told.unknown:
            found.append((BIOS_UNKNOWN, f"the BIOS attributes are unknown: {told.unknown}", [view.name]))
        if told and told.pending:
            message = f"BIOS attributes wait for the next boot: {bios.listed(told.pending)}"
            found.append((BIOS_PENDING, message, [view.name]))
    return found


def _value(view: HostAnswer, keys: t.Sequence[str]) -> str | None:
    value: t.Any = view.snapshot
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else getattr(value, key, None)
    if isinstance(value, int):
        # The firmware takes some of it, on each host a little more or less.
        return f"{round(value / MEMORY_STEP)} GiB"
    if keys == ("command_line",) and value:
        return " ".join(word for word in str(value).split() if not word.startswith(OWN_WORDS))
    return str(value) if value else None


def _make(view: HostAnswer) -> str:
    bios = view.snapshot.bios if view.snapshot else {}
    return " ".join(word for word in (bios.get("system_vendor"), bios.get("system")) if word)
