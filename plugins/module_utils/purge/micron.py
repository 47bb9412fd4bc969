# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Secure erase of a Micron P320h or P420m by rssdm.

Source: Micron TN-FD-15, figure 9. rssdm knows drives by an id that is their place in a list. The id is looked up by the
serial number, compared with the PCI address that the kernel has for the block device, and both again right before the
erase.
"""

from __future__ import annotations

import os

from ..core.host import Host
from ..records.identity import Identity
from ..records.plan import PlannedPurge
from ..records.purge import MicronDrive as Capabilities
from ..vendors import rssdm
from ..vendors.vendor_identity import is_micron
from ..vendors.vendor_tool import ToolError
from .method import PTS, Command, Done, Method, PurgeError, Work, timeout_s

FAMILY = "micron"
ANSWER = "y\n"  # what `yes` of figure 9 gives to the question


def capabilities(host: Host, identity: Identity) -> Capabilities | None:
    """Return which of rssdm's drives this is. Raises PurgeError if that is not certain."""
    if not is_micron(str(identity.kernel_name)):
        return None
    drive = _find(host, identity)
    return Capabilities(
        drive.drive_id,
        drive.serial,
        drive.model,
        drive.family,
        drive.pci_address,
        drive.status,
        identity.size_bytes,
    )


def _find(host: Host, identity: Identity) -> rssdm.RssdmDrive:
    try:
        drive = rssdm.find(host, identity.serial or "")
    except ToolError as error:
        raise PurgeError(str(error)) from None
    slot = os.path.basename(host.realpath(f"/sys/block/{identity.kernel_name}/device"))
    if not drive.pci_address or slot != "0000:" + drive.pci_address:
        raise PurgeError(
            (
                "rssdm says that {0} is at PCI {1}, the kernel has {2} at {3}: not the same drive; nothing was erased"
            ).format(drive.serial, drive.pci_address or "(not stated)", identity.kernel_name, slot)
        )
    return drive


def _supported(found: Capabilities) -> str:
    return "" if found.family else "{0} is neither a P320h nor a P420m".format(found.model or "its model (not stated)")


def _commands(found: Capabilities, _options: PlannedPurge) -> list[Command]:
    return [rssdm.erase_arguments(found.drive_id)]


def _erase(work: Work, found: Capabilities) -> Done:
    now = capabilities(work.host, work.identity)
    changes = [key for key in ("drive_id", "serial", "pci_address") if getattr(now, key, None) != getattr(found, key)]
    if changes:
        raise PurgeError(
            "rssdm's list changed ({0}): nothing was erased; start over with preflight".format(", ".join(changes)),
            "identity_changed",
        )
    limit = timeout_s(work.size_bytes, work.options)
    result = work.command(rssdm.erase_arguments(found.drive_id), limit, stdin=ANSWER)
    problem = rssdm.failure_text(result)
    if problem:
        raise PurgeError(f"the secure erase failed: {problem}")
    return Done()


METHODS = (Method("micron_rssdm", FAMILY, PTS, 100, _supported, _commands, _erase, what="secure erase by rssdm"),)
