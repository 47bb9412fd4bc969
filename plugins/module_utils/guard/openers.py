# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which processes have a drive open: descriptors of every thread, mapped memory, files registered with io_uring.

Some come and go, so the guard looks several times, and inotify tells of reads and writes between two looks. Reads only.
"""
from __future__ import annotations

import ctypes
import errno
import os
import platform
import random
import re
import struct
import time
from typing import Dict, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple

from ..core.host import Host
from ..drive.nodes import key_at, key_of

LOOKS = 9
LOOK_EVERY_S = 0.3  # on average: each pause is random, so that nobody keeps step with it
MOST_S = 8.0  # a host with many processes is looked at fewer times, but never fewer than a reader takes to count
READER_COUNTS = 3  # looks in which a reader has to be seen; who only passes by is seen once
# Programs that look at drives by themselves and leave them as they are; True: also when they open one for writing (SG_IO needs that).
PASSING = {
    "systemd-udevd": False,
    "udevadm": False,
    "smartd": True,
    "multipathd": False,
    "multipath": False,
    "lvm": False,
    "udisksd": False,
    "blkid": False,
    "lsblk": False,
    "wipefs": False,
}
_TRUSTED_PLACES = re.compile(r"/(usr/)?(local/)?(s?bin|lib(exec)?(/systemd|/udev|/udisks2)?)/")
_REMOTE_FUSE = re.compile(r"fuse(\..+)?$")
_KCMP_FILES = 2
_KCMP = {"x86_64": 312, "aarch64": 272, "ppc64le": 354, "s390x": 343}.get(platform.machine())  # the number of kcmp(2)
_AT_FDCWD, _AT_STATX_DONT_SYNC, _STATX_BASIC_STATS, _STATX_BYTES = -100, 0x4000, 0x7FF, 256
_IN_ACCESS, _IN_MODIFY = 0x1, 0x2  # inotify(7)
_INOTIFY_EVENT = struct.Struct("=iIII")
_MAPPING = re.compile(rb"^(\S+) \S+ \S+ (\S+) ([1-9][0-9]*) +(/.*)$", re.MULTILINE)  # proc_pid_maps(5): address, device, inode, path
_RING_FILE = re.compile(r"^\s+[0-9]+: (\S+)", re.MULTILINE)  # io_uring's fdinfo, below UserFiles: whole paths since Linux 6.7
_MOUNT_ID = re.compile(r"^mnt_id:\s*([0-9]+)$", re.MULTILINE)
_FLAGS = re.compile(r"^flags:\s*([0-7]+)$", re.MULTILINE)
GONE = (errno.ENOENT, errno.ESRCH, errno.EINVAL)  # the process ended meanwhile, or is a zombie
_LIBC = ctypes.CDLL(None, use_errno=True)


class Opener(NamedTuple):
    """Who has something open. name: of the program; pid: 0 where it was gone before it could be named."""

    name: str
    pid: int
    writes: bool
    passing: bool

    def text(self) -> str:
        """For people."""
        return "%s (process %d)" % (self.name, self.pid) if self.pid else self.name


Look = Dict[str, Set[Opener]]


class Seen(NamedTuple):
    """What the looks found, by key: users, and those that only pass by."""

    users: Dict[str, List[str]]
    passing: Dict[str, List[str]]


def judge(looks: Sequence[Mapping[str, Iterable[Opener]]]) -> Seen:
    """Who uses what, from several looks: a writer counts once seen, readers when somebody is there in READER_COUNTS looks.

    A program that is known to pass by is told and does not count.
    """
    users: Dict[str, List[str]] = {}
    passing: Dict[str, List[str]] = {}
    for key in sorted({key for look in looks for key in look}):
        by_look = [set(look.get(key, ())) for look in looks]
        everyone = sorted(set().union(*by_look))
        known = [opener.text() for opener in everyone if opener.passing]
        writers = [opener for opener in everyone if opener.writes and not opener.passing]
        seen = [look for look in by_look if any(not opener.passing for opener in look)]
        readers = [opener for opener in everyone if not opener.passing] if len(seen) >= min(READER_COUNTS, len(looks)) else []
        counting = list(dict.fromkeys(opener.text() for opener in [*writers, *readers]))
        if counting:
            users[key] = counting
        if known:
            passing[key] = known
    return Seen(users, passing)


class Watch:
    """Looks at who has what open. `extra`: keys of character devices and files that count beside all block devices.

    `nodes`: {path of a device node: its key}, whose reads and writes inotify tells between the looks. `remote`: {mount id: kind of file system} of
    those whose server may not answer; `far`: their device numbers. failures: what could not be read.
    """

    def __init__(
        self, host: Host, extra: Set[str], nodes: Mapping[str, str], remote: Mapping[str, str], names: Mapping[str, str], far: Iterable[str] = ()
    ) -> None:
        self._host = host
        self._extra = extra
        self._nodes = nodes
        self._remote = remote
        # Devices of maps (in hexadecimal there) whose files are on a server that may not answer.
        self._far = {b"%02x:%02x" % tuple(map(int, number.split(":"))) for number in far if ":" in number}
        self._numbers = {name: number for number, name in names.items()}
        self._files: Dict[Tuple[bytes, bytes], Optional[str]] = {}
        self._programs: Dict[str, Tuple[str, bool]] = {}
        self._denied: Dict[str, int] = {}
        self.failures: List[str] = []

    def observe(self, quick: bool = False) -> Seen:
        """LOOKS looks over some seconds. quick: one, and the others only where it finds somebody who may count."""
        began = time.monotonic()
        with _Traffic(self._host, self._nodes) as traffic:
            looks = [self.look(deep=True)]
            if quick and not self._denied and not any(not other.passing for key in self._watched() for other in looks[0].get(key, ())):
                return judge(looks)
            for number in range(1, LOOKS):
                time.sleep(random.uniform(0.5, 1.5) * LOOK_EVERY_S)
                looks.append(self.look(deep=number == LOOKS - 1))
                for key, opener in traffic.since():
                    # A read was theirs who pass by, as far as we can tell; none of them writes so.
                    if opener.writes or not any(other.passing for other in looks[-1].get(key, ())):
                        looks[-1].setdefault(key, set()).add(opener)
                if len(looks) >= READER_COUNTS and time.monotonic() - began > MOST_S:
                    break
        # One that is gone by the next look, such as a helper that a service starts, uses no drive.
        self.failures += [text for text, times in self._denied.items() if times >= READER_COUNTS]
        return judge(looks)

    def _watched(self) -> Set[str]:
        return self._extra | set(self._nodes.values())

    def look(self, deep: bool) -> Look:
        """Who has what open now. deep: what is mapped too, which is dear and hardly changes."""
        found: Look = {}
        for process in self._host.glob("/proc/[0-9]*"):
            pid = int(os.path.basename(process))
            if pid == os.getpid():
                continue
            try:
                keys = self._open(process)
                keys += self._mapped(process) if deep else []
            except OSError as error:
                # A security module may keep everybody out of init, which uses no drive itself (docs/wrong-drives.md).
                if error.errno not in GONE and pid != 1:
                    text = "%s (%s) cannot be looked into: %s" % (process, self._host.get(process + "/comm") or "?", error.strerror)
                    self._denied[text] = self._denied.get(text, 0) + 1
                continue
            for key, writes in keys:
                name, passing = self._program(process)
                found.setdefault(key, set()).add(Opener(name, pid, writes, passing and (PASSING[name] or not writes)))
        return found

    def _program(self, process: str) -> Tuple[str, bool]:
        """The program's name, and whether it is one that only passes by: by the file that runs, as a name is easily taken."""
        started = (self._host.get(process + "/stat") or "").rpartition(")")[2].split()[19:20]
        at = process + " ".join(started)
        if at not in self._programs:
            path = re.sub(r" \(deleted\)$", "", self._host.readlink(process + "/exe") or "")  # its package was updated since
            name = os.path.basename(path)
            shown = self._host.get(process + "/comm") or "?"
            known = name in PASSING and _TRUSTED_PLACES.match(path) is not None and self._in_our_root(process)
            self._programs[at] = (name if known else shown, known)
        return self._programs[at]

    def _in_our_root(self, process: str) -> bool:
        """Whether paths mean to a process what they mean to us: in a container /usr/sbin/smartd is what its image put there."""
        try:
            return os.path.samestat(os.stat(self._host.path(process + "/root")), os.stat(self._host.path("/")))
        except OSError:
            return False

    # --- descriptors -------------------------------------------------------------------------------------------------------------

    def _open(self, process: str) -> List[Tuple[str, bool]]:
        """(key, whether for writing) of all that a process has open, in whatever thread."""
        found = []
        for table in self._tables(process):
            for descriptor in _names(self._host.path(table + "/fd")):
                path = "%s/fd/%s" % (table, descriptor)
                link = _link(self._host.path(path))
                info = "%s/fdinfo/%s" % (table, descriptor)
                if link == "anon_inode:[io_uring]":
                    found += [(key, True) for key in self._registered(process, self._host.get(info) or "")]
                elif link.startswith("/"):
                    key = self._key(path, info)
                    if key is not None and self._counts(key):
                        found.append((key, self._writes(info)))
        return found

    def _tables(self, process: str) -> List[str]:
        """One folder for each table of descriptors: threads share one as a rule, but may have their own, and outlive the first."""
        tasks = self._host.listdir(process + "/task")
        kept: List[str] = []
        for task in tasks:
            if not any(_share_table(int(task), int(other)) for other in kept):
                kept.append(task)
        return ["%s/task/%s" % (process, task) for task in kept] or [process]

    def _key(self, path: str, info: str) -> Optional[str]:
        kind = ""
        if self._remote:
            mount = _MOUNT_ID.search(self._host.get(info) or "")
            kind = self._remote.get(mount.group(1), "") if mount else ""
        if not kind:
            return key_at(self._host, path)
        # A server that may not answer: what the kernel knows without asking it. Files from a network server are left out: even that may ask.
        return _known_key(self._host.path(path)) if _REMOTE_FUSE.match(kind) else None

    def _counts(self, key: str) -> bool:
        return key[0].isdigit() or key in self._extra

    def _writes(self, info: str) -> bool:
        flags = _FLAGS.search(self._host.get(info) or "")
        return flags is not None and int(flags.group(1), 8) & os.O_ACCMODE != os.O_RDONLY  # None: it was closed meanwhile

    def _registered(self, process: str, info: str) -> List[str]:
        """Files that an io_uring holds though their descriptors are closed. Older kernels tell the last part of the path alone."""
        found = []
        for path in _RING_FILE.findall(info.partition("UserFiles:")[2].partition("UserBufs:")[0]):
            key = key_at(self._host, process + "/root" + path) if path.startswith("/") else self._numbers.get(path)
            if key is not None and self._counts(key):
                found.append(key)
        return found

    # --- mapped memory -----------------------------------------------------------------------------------------------------------

    def _mapped(self, process: str) -> List[Tuple[str, bool]]:
        """What a process has mapped, also where its descriptor is closed. Each file of the machine is looked at once."""
        found = []
        for table in self._tables(process):  # the first thread has no memory any more once it is gone
            for address, device, inode, path in set(_MAPPING.findall(_content(self._host.path(table + "/maps")))):
                if (device, inode) not in self._files and device not in self._far:
                    # map_files is there for a whole process only; the path is what is left of one whose first thread is gone.
                    mapped = "%s/map_files/%s" % (process, _unpadded(address.decode()))
                    self._files[device, inode] = key_at(self._host, mapped) or key_at(self._host, table + "/root" + os.fsdecode(path))
                key = self._files.get((device, inode))
                if key is not None and self._counts(key):
                    found.append((key, True))
        return found


def _link(path: str) -> str:
    """What a descriptor leads to; "" where it was closed meanwhile. Raises OSError where this process may not know."""
    try:
        return os.readlink(path)
    except OSError as error:
        if error.errno in GONE:
            return ""
        raise


def _names(folder: str) -> List[str]:
    """The names in a folder of procfs; none where the thread is gone. Raises OSError where this process may not know."""
    try:
        return os.listdir(folder)
    except OSError as error:
        if error.errno in GONE:
            return []
        raise


def _content(path: str) -> bytes:
    """A file of procfs, as `_names`."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        if error.errno in GONE:
            return b""
        raise


def _unpadded(address: str) -> str:
    """map_files writes addresses without the zeros that maps puts before them."""
    return "-".join("%x" % int(part, 16) for part in address.split("-"))


def _share_table(one: int, other: int) -> bool:
    """Whether two threads have one table of descriptors (kcmp(2)); False where the kernel does not tell."""
    return _KCMP is not None and _LIBC.syscall(_KCMP, one, other, _KCMP_FILES, 0, 0) == 0


def _known_key(path: str) -> Optional[str]:
    """The key of an open file by what the kernel knows, without asking the server of its file system (statx(2), AT_STATX_DONT_SYNC)."""
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


class _Traffic:
    """Reads and writes through device nodes, as inotify tells them: also those too short for any look. It does not tell whose they are.

    Opens alone say nothing: losetup, smartd and this guard open nodes only to ask the kernel.
    """

    def __init__(self, host: Host, nodes: Mapping[str, str]) -> None:
        self._host = host
        self._nodes = nodes
        self._keys: Dict[int, str] = {}
        self._handle = -1

    def __enter__(self) -> "_Traffic":
        try:
            self._handle = _LIBC.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        except AttributeError:
            return self
        for path, key in self._nodes.items():
            if self._handle >= 0:
                watch = _LIBC.inotify_add_watch(self._handle, os.fsencode(self._host.path(path)), _IN_ACCESS | _IN_MODIFY)
                if watch >= 0:
                    self._keys[watch] = key
        return self

    def __exit__(self, *_exception: object) -> None:
        if self._handle >= 0:
            os.close(self._handle)

    def since(self) -> List[Tuple[str, Opener]]:
        """(key, who) of what happened since the last call."""
        if self._handle < 0:
            return []
        try:
            events = os.read(self._handle, 1 << 20)
        except OSError:  # nothing happened
            return []
        found: Dict[str, bool] = {}
        place = 0
        while place + _INOTIFY_EVENT.size <= len(events):
            watch, mask, _cookie, length = _INOTIFY_EVENT.unpack_from(events, place)
            place += _INOTIFY_EVENT.size + length
            if watch in self._keys:
                key = self._keys[watch]
                found[key] = found.get(key, False) or bool(mask & _IN_MODIFY)
        what = {True: "a process that wrote to it and was gone", False: "a process that reads it again and again and is gone each time"}
        return [(key, Opener(what[wrote], 0, wrote, False)) for key, wrote in found.items()]
