# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The device nodes that lead to a drive, whatever they are called: its block device, SCSI generic, NVMe generic, its
controller.
"""

from __future__ import annotations

import os
import stat
import typing as t

from ..core.host import Host
from ..core.sysfs import nvme_controllers
from ..records.identity import Identity
from . import loop
from .identity import node


def key_of(mode: int, device: int, inode: int, number: int) -> str | None:
    """Return what stands for a file: `8:0` for a block device, `char 21:0`, `file 254:1 1234`; None for a folder, a
    socket ...

    `device`, `inode` and `number` as st_dev, st_ino and st_rdev.
    """
    if stat.S_ISBLK(mode):
        return f"{os.major(number)}:{os.minor(number)}"
    if stat.S_ISCHR(mode):
        return f"char {os.major(number)}:{os.minor(number)}"
    return f"file {os.major(device)}:{os.minor(device)} {inode}" if stat.S_ISREG(mode) else None


def key_at(host: Host, path: str) -> str | None:
    """Return the key of what a path leads to; None where it leads nowhere."""
    try:
        status = os.stat(host.path(path))
    except (OSError, ValueError):  # a text with a NUL byte names nothing
        return None
    return key_of(status.st_mode, status.st_dev, status.st_ino, status.st_rdev)


def other_nodes(host: Host, name: str) -> set[str]:
    """Return the keys of the character devices that lead to a drive, and of the file behind a loop device."""
    block = f"/sys/block/{name}/device/"
    paths = [path for kind in ("scsi_generic", "bsg") for path in host.glob(f"{block}{kind}/*/dev")]
    if name.startswith("nvme"):
        paths += [controller + "/dev" for controller in nvme_controllers(host, name)]
        paths.append("/sys/class/nvme-generic/ng{}/dev".format(name[len("nvme") :]))
    keys = {"char " + number for number in map(host.get, paths) if number}
    behind = loop.read(host, node(name)) if name.startswith("loop") else None
    return keys | ({f"file {behind.device} {behind.inode}"} if behind and not behind.node else set())


def strangers(host: Host, identity: Identity, words: t.Iterable[str]) -> list[str]:
    """Device nodes among the words of a command that are not this drive's now: somebody may have put another in their
    place.
    """
    own = {identity.major_minor} | other_nodes(host, str(identity.kernel_name))
    keys = {word: key_at(host, word) for word in words if word.startswith("/dev/")}
    return [
        f"{word} is device {key}, which is not the drive ({identity.major_minor})"
        for word, key in keys.items()
        if key and key not in own
    ]
