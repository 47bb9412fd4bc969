# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which processes have a drive open: descriptors of every thread, mapped memory, files registered with io_uring.

Some come and go, so the guard looks several times, and inotify tells of reads and writes between two looks. Reads only.
"""

from __future__ import annotations

import ctypes
import os
import random
import re
import struct
import time
import typing as t

from ..core import ownership
from ..core.host import Host
from .descriptors import GONE, Descriptors

LOOKS = 9
LOOK_EVERY_S = 0.3  # on average: each pause is random, so that nobody keeps step with it
MOST_S = 8.0  # a host with many processes is looked at fewer times, but never fewer than a reader takes to count
READER_COUNTS = 3  # looks in which a reader has to be seen; who only passes by is seen once
# Programs that look at drives by themselves and leave them as they are; True: also when they open one for writing
# (SG_IO needs that). A site names more (ssd_passing_programs).
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
_IN_ACCESS, _IN_MODIFY = 0x1, 0x2  # inotify(7)
_INOTIFY_EVENT = struct.Struct("=iIII")
_SECTORS_WRITTEN = 6  # of Documentation/block/stat.rst
_FORKED_NO_EXEC = 0x40  # PF_FORKNOEXEC, of the flags in proc_pid_stat(5)
_LIBC = ctypes.CDLL(None, use_errno=True)


class Opener(t.NamedTuple):
    """Who has something open. name: of the program; pid: 0 where it was gone before it could be named."""

    name: str
    pid: int
    writes: bool
    passing: bool

    def text(self) -> str:
        """For people."""
        return f"{self.name} (process {self.pid})" if self.pid else self.name


def _may_count(opener: Opener) -> bool:
    """Return whether one look does not tell: who has it open for writing may write."""
    return opener.writes or not opener.passing


OpenersByKey = t.Dict[str, t.Set[Opener]]
# By the path of an executable, whether it may also open a drive for writing.
Programs = t.Mapping[str, bool]
_NO_PROGRAMS: Programs = {}


class _Program(t.NamedTuple):
    """What a process runs. known: whether it is one of PASSING; path: by which a site names it, "" for none."""

    name: str
    known: bool
    path: str

    def passes(self, writes: bool, allowed: Programs) -> bool:
        """Return whether it only passes by. writes: whether it has the drive open for writing."""
        if self.known and (PASSING[self.name] or not writes):
            return True
        return self.path in allowed and (allowed[self.path] or not writes)


class Seen(t.NamedTuple):
    """What the looks found, by key: users, and those that only pass by."""

    users: dict[str, list[str]]
    passing: dict[str, list[str]]


def judge(looks: t.Sequence[t.Mapping[str, t.Iterable[Opener]]]) -> Seen:
    """Who uses what, from several looks: a writer counts once seen, readers when somebody is there in READER_COUNTS
    looks.

    A program that is known to pass by is told and does not count.
    """
    users: dict[str, list[str]] = {}
    passing: dict[str, list[str]] = {}
    for key in sorted({key for look in looks for key in look}):
        by_look = [set(look.get(key, ())) for look in looks]
        everyone = sorted(set().union(*by_look))
        known = [opener.text() for opener in everyone if opener.passing]
        writers = [opener for opener in everyone if opener.writes and not opener.passing]
        seen = [look for look in by_look if any(not opener.passing for opener in look)]
        readers = (
            [opener for opener in everyone if not opener.passing] if len(seen) >= min(READER_COUNTS, len(looks)) else []
        )
        counting = list(dict.fromkeys(opener.text() for opener in [*writers, *readers]))
        if counting:
            users[key] = counting
        if known:
            passing[key] = known
    return Seen(users, passing)


class Watch:
    """Looks at who has what open. `extra`: keys of character devices and files that count beside all block devices.

    `nodes`: {path of a device node: its key}, whose reads and writes inotify tells between the looks. `remote`: {mount
      id: kind of file system} of
    those whose server may not answer; `far`: their device numbers. `allowed`: by key, programs that only look, beside
    PASSING. failures: what could not be read.
    """

    def __init__(
        self,
        host: Host,
        extra: set[str],
        nodes: t.Mapping[str, str],
        remote: t.Mapping[str, str],
        names: t.Mapping[str, str],
        far: t.Iterable[str] = (),
        allowed: t.Mapping[str, Programs] | None = None,
    ) -> None:
        self._host = host
        self._extra = extra
        self._nodes = nodes
        self._descriptors = Descriptors(host, extra, remote, names, far)
        self._allowed = allowed or {}
        self._programs: dict[str, _Program] = {}
        self._denied: dict[str, int] = {}
        self.failures: list[str] = []

    def observe(self, quick: bool = False) -> Seen:
        """LOOKS looks over some seconds. quick: one, and the others only where it finds somebody who may count."""
        began, written = time.monotonic(), self._written_sectors()
        with _Traffic(self._host, self._nodes) as traffic:
            looks = [self.look(deep=True)]
            if (
                quick
                and not self._denied
                and not any(_may_count(other) for key in self._watched() for other in looks[0].get(key, ()))
            ):
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
        for key, sectors in self._written_sectors().items():
            if sectors > written.get(key, 0) and any(other.writes for look in looks for other in look.get(key, ())):
                looks[-1].setdefault(key, set()).add(Opener("a process that wrote to it", 0, True, False))
        # One that is gone by the next look, such as a helper that a service starts, uses no drive.
        self.failures += [text for text, times in self._denied.items() if times >= READER_COUNTS]
        return judge(looks)

    def _written_sectors(self) -> dict[str, int]:
        """Return the kernel's count of written sectors, by key of a drive that a named program may open for writing."""
        stats = {
            key: (self._host.get(f"/sys/dev/block/{key}/stat") or "").split()
            for key, programs in self._allowed.items()
            if any(programs.values())
        }
        return {key: int(fields[_SECTORS_WRITTEN]) for key, fields in stats.items() if len(fields) > _SECTORS_WRITTEN}

    def _watched(self) -> set[str]:
        return self._extra | set(self._nodes.values())

    def look(self, deep: bool) -> OpenersByKey:
        """Who has what open now. deep: what is mapped too, which is dear and hardly changes."""
        found: OpenersByKey = {}
        for process in self._host.glob("/proc/[0-9]*"):
            pid = int(os.path.basename(process))
            if pid == os.getpid() or self._is_our_fork(process):
                continue
            try:
                keys = [(*each, False) for each in self._descriptors.open(process)]
                keys += [(*each, True) for each in self._descriptors.mapped(process)] if deep else []
            except OSError as error:
                # A security module may keep everybody out of init, which uses no drive itself (docs/wrong-drives.md).
                if error.errno not in GONE and pid != 1:
                    text = "{} ({}) cannot be examined: {}".format(
                        process, self._host.get(process + "/comm") or "?", error.strerror
                    )
                    self._denied[text] = self._denied.get(text, 0) + 1
                continue
            for key, writes, is_mapped in keys:
                program = self._program(process)
                # Nothing would show what is written through a mapping.
                passing = program.passes(writes, _NO_PROGRAMS if is_mapped else self._allowed.get(key, _NO_PROGRAMS))
                found.setdefault(key, set()).add(Opener(program.name, pid, writes, passing))
        return found

    def _is_our_fork(self, process: str) -> bool:
        """Return whether a thread of ours has just forked it, to start a program: until it does, it has a copy of all
        our descriptors, also of drives that other threads hold.
        """
        fields = self._stat(process)
        return len(fields) > 6 and fields[1] == str(os.getpid()) and bool(int(fields[6]) & _FORKED_NO_EXEC)

    def _stat(self, process: str) -> list[str]:
        """Return what follows the name in proc_pid_stat(5): the state, the parent, …"""
        return (self._host.get(process + "/stat") or "").rpartition(")")[2].split()

    def _program(self, process: str) -> _Program:
        """Return the program of a process, by the file that runs, as a name is easily taken."""
        started = self._stat(process)[19:20]
        at = process + " ".join(started)
        if at not in self._programs:
            path = re.sub(
                r" \(deleted\)$", "", self._host.readlink(process + "/exe") or ""
            )  # its package was updated since
            name = os.path.basename(path)
            shown = self._host.get(process + "/comm") or "?"
            here = self._in_our_root(process)
            known = name in PASSING and _TRUSTED_PLACES.match(path) is not None and here
            self._programs[at] = _Program(name if known else shown, known, self._named(process) if here else "")
        return self._programs[at]

    def _named(self, process: str) -> str:
        """Return the path by which a site names the very file that a process runs; "": none does, or others than root
        could change it.
        """
        for path in {path for programs in self._allowed.values() for path in programs}:
            try:
                is_it = os.path.samestat(os.stat(self._host.path(process + "/exe")), os.lstat(path))
            except OSError:
                continue
            if is_it and not (ownership.problems(os.path.dirname(path)) or ownership.alone_problems(path)):
                return path
        return ""

    def _in_our_root(self, process: str) -> bool:
        """Return whether paths mean to a process what they mean to us: in a container /usr/sbin/smartd is what its
        image put there.
        """
        try:
            return os.path.samestat(os.stat(self._host.path(process + "/root")), os.stat(self._host.path("/")))
        except OSError:
            return False


class _Traffic:
    """Reads and writes through device nodes, as inotify tells them: also those too short for any look. It does not tell
    whose they are.

    Opens alone say nothing: losetup, smartd and this guard open nodes only to ask the kernel.
    """

    def __init__(self, host: Host, nodes: t.Mapping[str, str]) -> None:
        self._host = host
        self._nodes = nodes
        self._keys: dict[int, str] = {}
        self._handle = -1

    def __enter__(self) -> _Traffic:
        try:
            self._handle = _LIBC.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        except AttributeError:
            return self
        for path, key in self._nodes.items():
            if self._handle >= 0:
                watch = _LIBC.inotify_add_watch(
                    self._handle, os.fsencode(self._host.path(path)), _IN_ACCESS | _IN_MODIFY
                )
                if watch >= 0:
                    self._keys[watch] = key
        return self

    def __exit__(self, *_exception: object) -> None:
        if self._handle >= 0:
            os.close(self._handle)

    def since(self) -> list[tuple[str, Opener]]:
        """(key, who) of what happened since the last call."""
        if self._handle < 0:
            return []
        try:
            events = os.read(self._handle, 1 << 20)
        except OSError:  # nothing happened
            return []
        found: dict[str, bool] = {}
        place = 0
        while place + _INOTIFY_EVENT.size <= len(events):
            watch, mask, _cookie, length = _INOTIFY_EVENT.unpack_from(events, place)
            place += _INOTIFY_EVENT.size + length
            if watch in self._keys:
                key = self._keys[watch]
                found[key] = found.get(key, False) or bool(mask & _IN_MODIFY)
        what = {
            True: "a process that wrote to it and has ended",
            False: "short-lived processes that keep reading it",
        }
        return [(key, Opener(what[wrote], 0, wrote, False)) for key, wrote in found.items()]
