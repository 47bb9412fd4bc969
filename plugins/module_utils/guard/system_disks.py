# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The system's own drives: from the mounts of its places down to the disks."""

from __future__ import annotations

import os
import re

from ..core.host import Host
from .device_aliases import resolved
from .facts import Machine, Mount

# What lies on these places is the system (issue: resolve them through any number of layers).
SYSTEM_PLACES = ("/", "/boot", "/boot/efi", "/efi", "/usr", "/var")


def read_system(host: Host, facts: Machine) -> None:
    """Walk from each of the system's places down to the disks: `slaves`, partitions, files behind loop devices."""
    for mount in facts.mounts:
        if mount.where in SYSTEM_PLACES:
            todo = _sources(host, facts, mount)
            while todo:
                name = todo.pop()
                if name not in facts.system:
                    facts.system[name] = mount.where
                    todo += _below(host, facts, name)


def _sources(host: Host, facts: Machine, mount: Mount) -> list[str]:
    """Return the block devices of a mount, by kernel name."""
    found = [facts.names[mount.major_minor]] if mount.major_minor in facts.names else []
    source = name_of(host, mount.source)
    if source:
        found.append(source)
    found += [name for group in facts.groups if group & set(found) for name in group]
    if mount.kind == "zfs":
        found += _pool(host, facts, mount.source.split("/")[0])
    if mount.kind == "overlay":
        paths = re.findall(r"(?:lowerdir|upperdir)=([^,]+)", mount.options)
        under = {_mount_of(facts, path) for line in paths for path in line.split(":")} - {mount, None}
        found += [facts.names[below.major_minor] for below in under if below and below.major_minor in facts.names]
    return found


def _below(host: Host, facts: Machine, name: str) -> list[str]:
    block = "/sys/class/block/" + name
    found = host.listdir(block + "/slaves")
    if host.exists(block + "/partition"):
        found.append(os.path.basename(os.path.dirname(host.realpath(block))))
    for user, path in facts.stacked:
        if user == name:
            under = _mount_of(facts, path)
            found += [name_of(host, path) or (facts.names.get(under.major_minor) if under else None) or name]
    return [each for each in found if each != name]


def _mount_of(facts: Machine, path: str) -> Mount | None:
    """Return the mount that holds a path: the longest, the last of several on one place."""
    best = None
    for mount in facts.mounts:
        inside = path == mount.where or path.startswith(mount.where.rstrip("/") + "/")
        if inside and (best is None or len(mount.where) >= len(best.where)):
            best = mount
    return best


def _pool(host: Host, facts: Machine, pool: str) -> list[str]:
    """Return the devices of a ZFS pool: no file of the kernel tells them."""
    result = host.run(["zpool", "list", "-v", "-H", "-P", "-L", pool])
    names = [name_of(host, word) for word in result.stdout.split() if word.startswith("/dev/")]
    if result.rc != 0 or not any(names):
        facts.failures.append(
            f"the system is on the ZFS pool {pool}, and zpool list does not name its drives: "
            f"{result.stderr.strip():.100}"
        )
    return [name for name in names if name]


def name_of(host: Host, path: str) -> str | None:
    """Return the kernel name behind a device path; None where there is no such block device."""
    name = resolved(host, path)[len("/dev/") :].replace("/", "!") if path.startswith("/dev/") else ""
    return name if name and host.exists("/sys/class/block/" + name) else None
