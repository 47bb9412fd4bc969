# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What files of sysfs hold: numbers, the choice in force, the controllers of an NVMe namespace. None is unknown."""

from __future__ import annotations

import os
import re

from .host import Host


def number(host: Host, path: str) -> int | None:
    """Return a whole number that a file holds."""
    text = host.get(path)
    return int(text) if text is not None and re.fullmatch(r"-?[0-9]+", text) else None


def effective(text: str) -> str:
    """Return the value in force of what sysfs shows: `[none] mq-deadline` means none."""
    if "[" in text:
        return text.split("[", 1)[1].split("]", 1)[0]
    return text.strip()


def nvme_controllers(host: Host, name: str) -> list[str]:
    """Return the controllers that lead to a namespace: with native multipath its parent is the subsystem, and
    links to them.
    """
    if not name.startswith("nvme"):
        return []
    device = f"/sys/block/{name}/device"
    if host.exists(device + "/transport"):
        return [device]
    return [path for path in host.glob(device + "/nvme*") if re.fullmatch(r"nvme[0-9]+", os.path.basename(path))]
