# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Purge NVMe namespaces through nvme-cli: what a namespace offers, and the family's methods.

Every command goes through the controller's node, which the kernel's links lead to from the held device. nvme-cli opens
only block devices exclusively (nvme.c, open_exclusive; a character device has no exclusive open), so it works while we
hold the namespace: --force is never given, and the hold never let go of while the drive is erased.
"""

from __future__ import annotations

import typing as t

from ..core.host import Host
from ..tools import nvme_capabilities
from ..tools.nvme import NvmeError
from . import nvme_format, nvme_sanitize
from .method import PurgeError


def capabilities(host: Host, identity: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """Return what a local NVMe namespace offers; {} for another drive. Raises PurgeError when it can't be asked or is
    not understood.
    """
    if identity.get("transport") != "nvme":
        return {}
    try:
        return nvme_capabilities.gather(host, identity, identity["kernel_name"])
    except NvmeError as error:
        raise PurgeError(str(error)) from None


METHODS = tuple(sorted(nvme_sanitize.METHODS + nvme_format.METHODS, key=lambda method: -method.strength))
