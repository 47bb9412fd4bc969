# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The names by which a host may call a drive: device numbers, resolved paths, tags."""

from __future__ import annotations

import os
import re
import stat

from ..core.host import Host
from .facts import Facts

# What udev and blkid call what these tags name.
_TAG_KEYS = {
    "UUID": ("ID_FS_UUID", "ID_FS_UUID_SUB", "UUID", "UUID_SUB"),
    "LABEL": ("ID_FS_LABEL", "ID_FS_LABEL_ENC", "LABEL"),
    "PARTUUID": ("ID_PART_ENTRY_UUID", "PART_ENTRY_UUID"),
    "PARTLABEL": ("ID_PART_ENTRY_NAME", "PART_ENTRY_NAME"),
}


def add_tags(facts: Facts, answers: dict[str, str]) -> None:
    """Keep by which tags something on the drive can be named, from what udev or blkid says of it."""
    for tag, keys in _TAG_KEYS.items():
        facts.tags |= {tag_of(tag, answers[key]) for key in keys if answers.get(key)}


def tag_of(kind: str, value: str) -> str:
    """Tags are compared without letter case, and UUIDs without separators: mdadm and blkid write them in
    other groups.
    """
    plain = value.strip("\"'").lower()
    return "{}={}".format(kind, re.sub(r"[-:]", "", plain) if kind.endswith("UUID") else plain)


def unescape(text: str) -> str:
    """procfs and fstab write a blank as \\040."""
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match.group(1), 8)), text)


def resolved(host: Host, path: str) -> str:
    """Return a device path with its links followed; other texts as they are."""
    return host.realpath(path) if path.startswith("/dev/") else path


def device_number(host: Host, path: str) -> str | None:
    """major:minor of a block device node, whatever its path is; None for anything else."""
    try:
        status = os.stat(host.path(path))
    except (OSError, ValueError):  # a text with a NUL byte names no node
        return None
    if stat.S_ISBLK(status.st_mode):
        return f"{os.major(status.st_rdev)}:{os.minor(status.st_rdev)}"
    return None
