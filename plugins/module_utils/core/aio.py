# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kernel's asynchronous I/O (io_submit(2) and the like), which neither Python nor the C library has."""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
import sys

# Numbers of io_setup, io_destroy, io_getevents, io_submit (arch/*/tables of Linux).
SETUP, DESTROY, GETEVENTS, SUBMIT = range(4)
_SYSCALLS = {
    "x86_64": (206, 207, 208, 209),
    "aarch64": (0, 1, 4, 2),
    "riscv64": (0, 1, 4, 2),
    "ppc64le": (227, 228, 229, 230),
}
# include/uapi/linux/aio_abi.h, little-endian: data, key, rw_flags, opcode, priority, fd, buffer, bytes, offset …
IOCB = struct.Struct("<QIIHhIQQqQII")
EVENT = struct.Struct("<QQqq")
PREAD, PWRITE = 0, 1
# include/uapi/linux/fs.h
RWF_DSYNC = 2

_libc = ctypes.CDLL(None, use_errno=True)


def setup(count: int) -> ctypes.c_ulong | None:
    """Return a context for so many I/Os in flight; None where this machine has none, or no more (fs.aio-max-nr)."""
    if platform.machine() not in _SYSCALLS or sys.byteorder != "little" or ctypes.sizeof(ctypes.c_void_p) != 8:
        return None
    context = ctypes.c_ulong(0)
    try:
        syscall(SETUP, count, ctypes.byref(context))
    except OSError:
        return None
    return context


def syscall(which: int, *arguments: object) -> int:
    """Return what one of the four gives. Raises OSError; goes on where a signal came in between."""
    number = ctypes.c_long(_SYSCALLS[platform.machine()][which])
    given = [ctypes.c_long(value) if isinstance(value, int) else value for value in arguments]
    while True:
        done = _libc.syscall(number, *given)
        if done >= 0:
            return int(done)
        code = ctypes.get_errno()
        if code not in (errno.EINTR, errno.EAGAIN):
            raise OSError(code, os.strerror(code))
