# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a process has open, as procfs tells: descriptors of every thread, mapped memory, files registered with io_uring.
Reads only.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import re
import struct
import typing as t

from ..core.host import Host
from ..drive.device_nodes import key_at, key_of

_REMOTE_FUSE = re.compile(r"fuse(\..+)?$")
_KCMP_FILES = 2
_KCMP = {"x86_64": 312, "aarch64": 272, "ppc64le": 354, "s390x": 343}.get(platform.machine())  # the number of kcmp(2)
_AT_FDCWD, _AT_STATX_DONT_SYNC, _STATX_BASIC_STATS, _STATX_BYTES = -100, 0x4000, 0x7FF, 256
_MAPPING = re.compile(
    rb"^(\S+) \S+ \S+ (\S+) ([1-9][0-9]*) +(/.*)$", re.MULTILINE
)  # proc_pid_maps(5): address, device, inode, path
_RING_FILE = re.compile(
    r"^\s+[0-9]+: (\S+)", re.MULTILINE
)  # io_uring's fdinfo, below UserFiles: whole paths since Linux 6.7
_MOUNT_ID = re.compile(r"^mnt_id:\s*([0-9]+)$", re.MULTILINE)
_FLAGS = re.compile(r"^flags:\s*([0-7]+)$", re.MULTILINE)
GONE = (errno.ENOENT, errno.ESRCH, errno.EINVAL)  # the process ended meanwhile, or is a zombie
_LIBC = ctypes.CDLL(None, use_errno=True)


class Descriptors:
    """What processes have open, as keys (drive/device_nodes.py). `extra`: keys of character devices and files that
    count beside all block devices.

    `remote`: {mount id: kind of file system} of those whose server may not answer; `far`: their device numbers;
      `names`: {device number: kernel name}.
    """

    def __init__(
        self,
        host: Host,
        extra: set[str],
        remote: t.Mapping[str, str],
        names: t.Mapping[str, str],
        far: t.Iterable[str] = (),
    ) -> None:
        self._host = host
        self._extra = extra
        self._remote = remote
        # Devices of maps (in hexadecimal there) whose files are on a server that may not answer.
        self._far = {b"%02x:%02x" % tuple(map(int, number.split(":"))) for number in far if ":" in number}
        self._numbers = {name: number for number, name in names.items()}
        self._files: dict[tuple[bytes, bytes], str | None] = {}

    def open(self, process: str) -> list[tuple[str, bool]]:
        """(key, whether for writing) of all that a process has open, in whatever thread."""
        found = []
        for table in self._tables(process):
            for descriptor in _names(self._host.path(table + "/fd")):
                path = f"{table}/fd/{descriptor}"
                link = _link(self._host.path(path))
                info = f"{table}/fdinfo/{descriptor}"
                if link == "anon_inode:[io_uring]":
                    found += [(key, True) for key in self._registered(process, self._host.get(info) or "")]
                elif link.startswith("/"):
                    key = self._key(path, info)
                    if key is not None and self._counts(key):
                        found.append((key, self._writes(info)))
        return found

    def _tables(self, process: str) -> list[str]:
        """One folder for each table of descriptors: threads share one as a rule, but may have their own, and outlive
        the first.
        """
        tasks = self._host.listdir(process + "/task")
        kept: list[str] = []
        for task in tasks:
            if not any(_share_table(int(task), int(other)) for other in kept):
                kept.append(task)
        return [f"{process}/task/{task}" for task in kept] or [process]

    def _key(self, path: str, info: str) -> str | None:
        kind = ""
        if self._remote:
            mount = _MOUNT_ID.search(self._host.get(info) or "")
            kind = self._remote.get(mount.group(1), "") if mount else ""
        if not kind:
            return key_at(self._host, path)
        # A server that may not answer: what the kernel knows without asking it. Files from a network server are left
        # out: even that may ask.
        return _known_key(self._host.path(path)) if _REMOTE_FUSE.match(kind) else None

    def _counts(self, key: str) -> bool:
        return key[0].isdigit() or key in self._extra

    def _writes(self, info: str) -> bool:
        flags = _FLAGS.search(self._host.get(info) or "")
        return (
            flags is not None and int(flags.group(1), 8) & os.O_ACCMODE != os.O_RDONLY
        )  # None: it was closed meanwhile

    def _registered(self, process: str, info: str) -> list[str]:
        """Files that an io_uring holds though their descriptors are closed. Older kernels tell the last part of the
        path alone.
        """
        found = []
        for path in _RING_FILE.findall(info.partition("UserFiles:")[2].partition("UserBufs:")[0]):
            key = key_at(self._host, process + "/root" + path) if path.startswith("/") else self._numbers.get(path)
            if key is not None and self._counts(key):
                found.append(key)
        return found

    def mapped(self, process: str) -> list[tuple[str, bool]]:
        """Return what a process has mapped, also where its descriptor is closed. Each file of the machine is
        looked at once.
        """
        found = []
        for table in self._tables(process):  # the first thread has no memory any more once it is gone
            for address, device, inode, path in set(_MAPPING.findall(_content(self._host.path(table + "/maps")))):
                if (device, inode) not in self._files and device not in self._far:
                    # map_files is there for a whole process only; the path is what is left of one whose first thread is
                    # gone.
                    mapped = f"{process}/map_files/{_unpadded(address.decode())}"
                    self._files[device, inode] = key_at(self._host, mapped) or key_at(
                        self._host, table + "/root" + os.fsdecode(path)
                    )
                key = self._files.get((device, inode))
                if key is not None and self._counts(key):
                    found.append((key, True))
        return found


def _link(path: str) -> str:
    """Return what a descriptor leads to; "" where it was closed meanwhile. Raises OSError where this process may not
    know.
    """
    try:
        return os.readlink(path)
    except OSError as error:
        if error.errno in GONE:
            return ""
        raise


def _names(folder: str) -> list[str]:
    """Return the names in a folder of procfs; none where the thread is gone. Raises OSError where this process
    may not know.
    """
    try:
        return os.listdir(folder)
    except OSError as error:
        if error.errno in GONE:
            return []
        raise


def _content(path: str) -> bytes:
    """Return a file of procfs, as `_names`."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        if error.errno in GONE:
            return b""
        raise


def _unpadded(address: str) -> str:
    """map_files writes addresses without the zeros that maps puts before them."""
    return "-".join(f"{int(part, 16):x}" for part in address.split("-"))


def _share_table(one: int, other: int) -> bool:
    """Return whether two threads have one table of descriptors (kcmp(2)); False where the kernel does not tell."""
    return _KCMP is not None and _LIBC.syscall(_KCMP, one, other, _KCMP_FILES, 0, 0) == 0


def _known_key(path: str) -> str | None:
    """Return the key of an open file by what the kernel knows, without asking the server of its file system (statx(2),
    AT_STATX_DONT_SYNC).
    """
    answer = ctypes.create_string_buffer(_STATX_BYTES)
    try:
        failed = _LIBC.statx(_AT_FDCWD, os.fsencode(path), _AT_STATX_DONT_SYNC, _STATX_BASIC_STATS, answer)
    except AttributeError:  # a C library before 2018
        return None
    if failed:
        return None
    (mode,), (inode,) = struct.unpack_from("=H", answer, 28), struct.unpack_from("=Q", answer, 32)
    node_major, node_minor, major, minor = struct.unpack_from("=4I", answer, 128)
    return key_of(mode, os.makedev(major, minor), inode, os.makedev(node_major, node_minor))
