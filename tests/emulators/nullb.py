# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A block device for an emulated card, so that the kernel sees what its tools did: Linux's null_blk, whose disk has the
name of its folder in configfs (Linux 5.19 and newer; `modprobe null_blk nr_devices=0` first). The card's `nullb` gives
more of null_blk's attributes: {} for none.

Its data is in memory, stays while the disk is switched off (detached), and goes with the folder (formatted).
"""

from __future__ import annotations

import errno
import os
import subprocess

from emulator import fail

ROOT = "/sys/kernel/config/nullb"
MIB = 1 << 20


def whole(size_bytes: int) -> int:
    """A size as null_blk can have it, in whole MiB."""
    return size_bytes // MIB * MIB


def attach(name: str) -> None:
    """The disk appears."""
    _write(name, "power", 1)
    subprocess.run(["udevadm", "settle", "--timeout=60"], check=True)


def detach(name: str) -> None:
    """The disk goes; one that somebody has for himself is refused, which null_blk would not do."""
    try:
        os.close(os.open("/dev/" + name, os.O_RDONLY | os.O_EXCL))
    except OSError as error:
        if error.errno != errno.EBUSY:
            raise
        fail(f"Error: /dev/{name} is in use; unmount it first.")
    _write(name, "power", 0)


def make(name: str, sector_bytes: int, size_bytes: int, attributes: dict[str, int]) -> None:
    """A disk of zeros, switched off, in place of the one of that name."""
    folder = os.path.join(ROOT, name)
    if os.path.isdir(folder):
        os.rmdir(folder)  # and with it all of its data
    os.mkdir(folder)
    shape = {"blocksize": sector_bytes, "size": size_bytes // MIB, "memory_backed": 1, "discard": 1, **attributes}
    for attribute, value in shape.items():
        _write(name, attribute, value)


def _write(name: str, attribute: str, value: int) -> None:
    with open(os.path.join(ROOT, name, attribute), "w", encoding="ascii") as file:
        file.write(str(value))
