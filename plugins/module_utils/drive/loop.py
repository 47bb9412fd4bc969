# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is behind a loop device, as the kernel knows it (LOOP_GET_STATUS64), whatever the path of its file is by now."""

from __future__ import annotations

import os
import struct
import typing as t

from ..core.host import Host

_LOOP_GET_STATUS64 = 0x4C05
# struct loop_info64 (include/uapi/linux/loop.h): lo_device, lo_inode, lo_rdevice, lo_offset, lo_sizelimit come first.
_INFO64, _INFO64_BYTES = struct.Struct("=5Q"), 232


class Loop(t.NamedTuple):
    """device, inode: of the file; node: of the block device where it is one, else ""; offset_bytes and limit_bytes (0:
    none): the part of it.
    """

    device: str
    inode: int
    node: str
    offset_bytes: int
    limit_bytes: int

    def is_file(self, status: os.stat_result) -> bool:
        """Return whether this is the status of the file behind it."""
        return (self.device, self.inode) == (_number(status.st_dev), status.st_ino)


def read(host: Host, path: str) -> Loop | None:
    """Return what is behind the loop device with this node; None where nothing is, or the kernel does not tell."""
    try:
        handle = host.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        return at(host, handle)
    finally:
        os.close(handle)


def at(host: Host, handle: int) -> Loop | None:
    """As `read`, through a descriptor of the loop device."""
    try:
        device, inode, node, offset, limit = _INFO64.unpack_from(
            host.ioctl(handle, _LOOP_GET_STATUS64, bytes(_INFO64_BYTES))
        )
    except OSError:
        return None
    return Loop(_number(device), inode, _number(node) if node else "", offset, limit)


def _number(device: int) -> str:
    return f"{os.major(device)}:{os.minor(device)}"
