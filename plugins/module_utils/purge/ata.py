# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Purge SATA drives through hdparm: what a drive offers, and the family's methods."""

from __future__ import annotations

import re
import typing as t

from ..core.host import Host
from . import ata_sanitize, ata_security
from .ata_drive import identify, sanitize_status
from .method import PurgeError

# A port of libata has a folder of its own in sysfs; behind a SAS adapter with its own translation there is none.
_AHCI = re.compile(r"/ata[0-9]+/")


def capabilities(host: Host, identity: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """Return what a SATA drive offers; {} for another. Raises PurgeError when it can't be asked."""
    if identity.get("transport") != "sata":
        return {}
    path = identity["path"]
    found = identify(host, identity)
    status, problem = None, ""
    if found.sanitize:
        try:
            status = sanitize_status(host, path)
        except PurgeError as error:
            problem = str(error)
    return {
        "path": path,
        "size_bytes": identity.get("size_bytes"),
        "sanitize": list(found.sanitize),
        "sanitize_state": status.state if status else None,
        "sanitize_problem": problem,
        "security": found.security._asdict(),
        "direct": bool(_AHCI.search(host.realpath("/sys/block/" + identity["kernel_name"]))),
    }


METHODS = ata_sanitize.METHODS + ata_security.METHODS
left_behind, recover = ata_security.left_behind, ata_security.recover
