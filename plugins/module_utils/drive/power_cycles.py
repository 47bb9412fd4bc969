# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How often a drive's power came on, as it counts itself."""

from __future__ import annotations

import typing as t

from ..core.host import Host
from . import health


def read(host: Host, identity: t.Mapping[str, t.Any]) -> int | None:
    """None where the drive, or this host's tools, do not tell."""
    path, transport = str(identity.get("path")), identity.get("transport")
    if transport == "nvme":
        log, error = health.ask(host, ["nvme", "smart-log", path, "--output-format=json"])
        told = None if error else log.get("power_cycles")
    elif transport in ("sata", "sas"):
        log, _error = health.ask(host, ["smartctl", "--json=c", "-a", path], any_code=True)
        told = log.get("power_cycle_count")
    else:
        return None
    count = health.nvme_number(told)
    return count if count is not None and count >= 0 else None
