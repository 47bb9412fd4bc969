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
import typing as t

from ..core.host import Host
from ..vendors import rssdm
from ..vendors.vendor_identity import is_micron
from ..vendors.vendor_tool import ToolError
from .method import PTS, Capabilities, Command, Method, Options, PurgeError, Work, timeout_s

FAMILY = "micron"
ANSWER = "y\n"  # what `yes` of figure 9 gives to the question


def capabilities(host: Host, identity: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """Return which of rssdm's drives this is. Raises PurgeError if that is not certain."""
    if not is_micron(str(identity.get("kernel_name"))):
        return {}
    drive = _find(host, identity)
    return {
        "drive_id": drive.drive_id,
        "serial": drive.serial,
        "model": drive.model,
        "family": drive.family,
        "pci_address": drive.pci_address,
        "status": drive.status,
        "size_bytes": identity.get("size_bytes"),
    }


def _find(host: Host, identity: t.Mapping[str, t.Any]) -> rssdm.RssdmDrive:
    try:
        drive = rssdm.find(host, str(identity.get("serial") or ""))
    except ToolError as error:
        raise PurgeError(str(error)) from None
    slot = os.path.basename(host.realpath("/sys/block/{0}/device".format(identity["kernel_name"])))
    if not drive.pci_address or slot != "0000:" + drive.pci_address:
        raise PurgeError(
            (
                "rssdm says that {0} is at PCI {1}, the kernel has {2} at {3}: not the same drive; nothing was erased"
            ).format(drive.serial, drive.pci_address or "(not stated)", identity["kernel_name"], slot)
        )
    return drive


def _supported(found: Capabilities) -> str:
    return (
        ""
        if found.get("family")
        else "{0} is neither a P320h nor a P420m".format(found.get("model") or "its model (not stated)")
    )


def _commands(found: Capabilities, _options: Options) -> list[Command]:
    return [rssdm.erase_arguments(found["drive_id"])]


def _erase(work: Work) -> dict[str, t.Any]:
    now = capabilities(work.host, work.identity)
    changes = [key for key in ("drive_id", "serial", "pci_address") if now.get(key) != work.capabilities.get(key)]
    if changes:
        raise PurgeError(
            "rssdm's list changed ({0}): nothing was erased; start over with preflight".format(", ".join(changes)),
            "identity_changed",
        )
    limit = timeout_s(work.identity["size_bytes"], work.options)
    result = work.command(rssdm.erase_arguments(now["drive_id"]), limit, stdin=ANSWER)
    problem = rssdm.failure_text(result)
    if problem:
        raise PurgeError(f"the secure erase failed: {problem}")
    return {}


METHODS = (Method("micron_rssdm", FAMILY, PTS, 100, _supported, _commands, _erase, what="secure erase by rssdm"),)
