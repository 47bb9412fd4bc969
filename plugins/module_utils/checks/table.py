# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What would make a result worthless: the table of all checks, and what they find. Pure; the facts come from
facts.py.

A new check is a line in the CHECKS of its family; a new family is a line in TABLE.
"""

from __future__ import annotations

import re
import typing as t
from dataclasses import replace

from ..core import packages
from ..records.check_finding import CheckFinding, CheckLevel
from . import health, host, link, model
from .base import OK, WARNING, Check, Harmless, HostFacts, OfVirtual, Unknown

TABLE: tuple[Check, ...] = model.CHECKS + link.CHECKS + health.CHECKS + host.CHECKS
# Codes under which a vendor's own tool reports (iomemory_pci.py: fio-pci-check, fio-status); each finding there has a
# level of its own.
VENDOR_CODES = ("pcie_errors", "pcie_link_width", "pcie_bandwidth", "pcie_other", "iomemory_state", "iomemory_unknown")
# What the controller finds between hosts (plugin_utils/preflight/fleet_checks.py).
FLEET_FIRMWARE, FLEET_HOSTS = "fleet_firmware", "fleet_hosts"
# What the controller finds by the host's BMC (the same file).
BIOS_UNKNOWN, BIOS_PENDING = "bios_unknown", "bios_pending"
OF_CONTROLLER = (FLEET_FIRMWARE, FLEET_HOSTS, BIOS_UNKNOWN, BIOS_PENDING)
CODES: tuple[str, ...] = tuple(dict.fromkeys([*(check.check for check in TABLE), *VENDOR_CODES, *OF_CONTROLLER]))

# The remedy of the fault itself would send people to reseat drives whose link is merely unseen.
UNKNOWN_REMEDY = "check it by hand, then set this check to ok in preflight_levels"
# Of what no virtual drive has.
VIRTUAL_REMEDY = "measure drives of hardware, or set this check to ok in preflight_levels"
# What module_utils/drive/health.py and facts.py say of a tool that a host lacks.
_NOT_INSTALLED = re.compile(r"\b(nvme|smartctl|fio) is not installed")


def run(
    facts: HostFacts, levels: t.Mapping[str, CheckLevel], vendor: t.Iterable[CheckFinding] = ()
) -> list[CheckFinding]:
    """Everything that was found.

    levels: what the inventory chose for some checks (preflight_levels). vendor: findings that a vendor's tool made.
    Where all is well there is no finding; `ok` stands for one that the inventory lets pass.
    """
    found = [
        _finding(check, None, message, levels)
        for check in TABLE
        if check.look_host
        for message in check.look_host(facts)
    ]
    for drive in facts.drives:
        found += [
            _finding(check, drive.drive, message, levels)
            for check in TABLE
            if check.look
            for message in check.look(facts, drive)
        ]
    return found + [replace(item, level=levels.get(item.check, item.level)) for item in vendor]


def _finding(check: Check, drive: str | None, message: str, levels: t.Mapping[str, CheckLevel]) -> CheckFinding:
    remedy = _unknown_remedy(message) if isinstance(message, Unknown) else check.remedy
    return CheckFinding(check.check, drive, level(check, message, levels), str(message), remedy)


def _unknown_remedy(message: str) -> str:
    """Return what makes it known; of several tools that a host lacks the first one does."""
    if isinstance(message, OfVirtual):
        return VIRTUAL_REMEDY
    lacks = _NOT_INSTALLED.search(message)
    return f"install {packages.of_tool(lacks[1])}" if lacks else UNKNOWN_REMEDY


def level(check: Check, message: str, levels: t.Mapping[str, CheckLevel]) -> CheckLevel:
    """Return a finding's level: the inventory's choice, else the check's own; what could not be read only warns unless
    the inventory says more.
    """
    if isinstance(message, Harmless):
        return OK
    chosen = levels.get(check.check)
    if chosen is not None:
        return chosen
    return WARNING if isinstance(message, Unknown) else check.level


def passed(found: t.Iterable[CheckFinding]) -> list[str]:
    """Return the checks that found nothing on this host."""
    fired = {finding.check for finding in found}
    return [check.check for check in TABLE if check.check not in fired]
