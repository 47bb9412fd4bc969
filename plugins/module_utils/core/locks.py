# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Locks of the host and of each drive: flock(2), so that the kernel frees those of a dead owner.

Whoever may open a lock's file may hold it, so folder and files are their owner's alone.
"""

from __future__ import annotations

import fcntl
import glob
import json
import os
import stat
import time
import typing as t

from .files import make_folders, name_file, slug
from .ownership import others_write

# One place for every controller, state folder and run on the host, where only root may write; a reboot empties it.
LOCK_DIR = "/run/ssdlab-fleet"
# Whom a look keeps away: only other looks. Below LOCK_DIR.
LOOKS = "looks"
HOST = "host"


class Locked(Exception):
    """Somebody else holds the lock; the message says who."""


class UntrustedLock(Locked):
    """The lock, or a folder that it lies in, is not ours alone: waiting does not help. The message says what to do."""


class Lock:
    """An exclusive lock by name, in lock_dir or a folder `below` it. The file is removed on release, and only by its
    holder.
    """

    def __init__(self, name: str, owner: dict[str, t.Any], lock_dir: str | None = None, below: str = "") -> None:
        top = lock_dir or LOCK_DIR
        self._folders = [top, os.path.join(top, below)] if below else [top]
        self.path = os.path.join(self._folders[-1], name + ".lock")
        self._owner = owner
        self._handle: int | None = None

    def acquire(self, wait_s: float = 0.0) -> Lock:
        """Take the lock, within wait_s, or raise Locked. Done already: nothing happens. Raises OSError where it cannot
        be made.
        """
        deadline = time.monotonic() + wait_s
        while True:
            try:
                return self._acquire()
            except UntrustedLock:
                raise
            except Locked:
                if time.monotonic() >= deadline:
                    raise
            time.sleep(0.1)

    def _acquire(self) -> Lock:
        if self._handle is not None:
            return self
        for folder in self._folders:
            _make_private(folder)
        while self._handle is None:
            handle = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, 0o600)
            try:
                _refuse_foreign(self.path, os.fstat(handle), stat.S_ISREG)
                os.fchmod(handle, 0o600)
            except BaseException:
                os.close(handle)
                raise
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                holder = os.read(handle, 4096).decode(errors="replace").strip()
                os.close(handle)
                raise Locked(f"{self.path} is held by {_named(holder)}{_asleep(holder)}") from None
            if self._is_current(handle):
                self._handle = handle
            else:
                # The holder before us removed this file between our open and our lock.
                os.close(handle)
        try:
            os.ftruncate(self._handle, 0)
            os.pwrite(self._handle, json.dumps(self._owner).encode(), 0)
        except OSError as error:  # a lock that does not say whose it is would keep others away without a word
            self.release()
            raise name_file(error, self.path) from None
        return self

    def renew(self) -> None:
        """Take the lock again where somebody removed its file, so that the next one finds it held. Raises Locked,
        OSError.
        """
        old = self._handle
        if old is None or self._is_current(old):
            return
        self._handle = None
        try:
            self._acquire()
        except BaseException:
            self._handle = old
            raise
        os.close(old)

    def _is_current(self, handle: int) -> bool:
        try:
            return os.path.samestat(os.stat(self.path), os.fstat(handle))
        except FileNotFoundError:
            return False

    def release(self) -> None:
        """Give the lock back; harmless when it is not held."""
        if self._handle is not None:
            # Somebody may have emptied the folder, and another have taken the lock since: that file is his.
            if self._is_current(self._handle):
                os.unlink(self.path)
            # Of all copies of this descriptor: a child that hangs must not go on holding the lock.
            fcntl.flock(self._handle, fcntl.LOCK_UN)
            os.close(self._handle)
            self._handle = None

    def __enter__(self) -> Lock:
        return self.acquire()

    def __exit__(self, *_exception: t.Any) -> None:
        self.release()


def _named(holder: str) -> str:
    """Return who a lock's holder is; of a host job also its state folder, which watch.yml and stop.yml need to know."""
    try:
        told = json.loads(holder)
        run, pid = told["run"], told["pid"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return holder or "another process"
    state_dir = os.path.dirname(os.path.dirname(str(told.get("folder") or "")))
    return f"{run} (process {pid}{f', with ssd_state_dir={state_dir}' if state_dir else ''})"


def _asleep(holder: str) -> str:
    """Return who of a lock's holder and its children waits in the kernel, as for a drive that hangs: no signal ends
    such a process, and until the kernel does it keeps the lock. "" for nobody. holder: what the lock says.
    """
    try:
        pid = int(json.loads(holder)["pid"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return ""
    processes = [pid, *(child for task in glob.glob(f"/proc/{pid}/task/*/children") for child in _numbers(task))]
    for process in processes:
        for task in glob.glob(f"/proc/{process}/task/*/stat"):
            # The name, in brackets, may hold anything.
            name, _bracket, rest = _read(task).partition("(")[2].rpartition(")")
            fields = rest.split()
            if fields[:1] == ["D"]:
                return (
                    f", of which PID {process} ({name}), begun {_age_s(fields):.0f} s ago, is in uninterruptible "
                    "sleep: it may wait for a drive that hangs"
                )
    return ""


def _age_s(fields: t.Sequence[str]) -> float:
    """Return how long ago a task began: it can't have slept for longer. fields: of its stat, from the state on
    (proc_pid_stat(5), starttime).
    """
    return float(_read("/proc/uptime").split()[0]) - int(fields[19]) / os.sysconf("SC_CLK_TCK")


def _numbers(path: str) -> list[int]:
    return [int(word) for word in _read(path).split() if word.isdigit()]


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as source:
            return source.read()
    except OSError:
        return ""


def _make_private(folder: str) -> None:
    """Make the locks' folder for its owner alone: whoever may open a lock may hold it. Raises UntrustedLock for one
    that others could write to.
    """
    make_folders(folder, 0o700)
    _close_empty(folder)
    status = os.lstat(folder)
    _refuse_foreign(folder, status, stat.S_ISDIR)
    if stat.S_IMODE(status.st_mode) != 0o700:
        os.chmod(folder, 0o700)


def _close_empty(folder: str) -> None:
    """Close a folder of ours that others may write to and nobody did, such as a fresh mount of a tmpfs. It is closed
    before the look, so that nobody writes between them, and opened again where something is in it.
    """
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return  # _refuse_foreign tells
    try:
        status = os.fstat(handle)
        if status.st_uid == os.geteuid() and others_write(status):
            os.fchmod(handle, 0o700)
            if os.listdir(handle):
                os.fchmod(handle, stat.S_IMODE(status.st_mode))
    finally:
        os.close(handle)


def _refuse_foreign(path: str, status: os.stat_result, is_kind: t.Callable[[int], bool]) -> None:
    """Raise UntrustedLock for what others made or may write to: who could write there may hold a lock, or have taken
    one away.
    """
    why = ""
    if status.st_uid not in (0, os.geteuid()):
        why = f"belongs to user {status.st_uid}"
    elif not is_kind(status.st_mode):
        why = "is not what this collection created"
    elif others_write(status):
        why = f"is writable by users other than root (mode {stat.S_IMODE(status.st_mode):04o})"
    if why:
        raise UntrustedLock(
            f"{path} {why}, so others could hold or remove any lock; make sure that no run is under way, then remove it"
        )


def host_holder() -> dict[str, t.Any] | None:
    """Return what the holder of the host's lock says of itself, who may be dead by now; None where there is none, or we
    may not know.
    """
    return _holder(HOST)


def run_at_work(drive: str) -> str | None:
    """Return the run whose job, which lives, holds the lock of a drive; None where there is none, or we may not know.
    drive: as for drive_lock.
    """
    job, holder = host_holder() or {}, _holder(_drive_name(drive)) or {}
    run = holder.get("run")
    is_its = isinstance(run, str) and run == job.get("run")
    return run if is_its and os.path.exists(f"/proc/{job.get('pid')}") else None


def _holder(name: str) -> dict[str, t.Any] | None:
    try:
        with open(os.path.join(LOCK_DIR, name + ".lock")) as source:
            owner = json.load(source)
    except (OSError, ValueError, RecursionError):
        return None
    return owner if isinstance(owner, dict) else None


def host_lock(owner: dict[str, t.Any]) -> Lock:
    """One host job at a time on a host."""
    return Lock(HOST, owner)


def drive_lock(name: str, owner: dict[str, t.Any]) -> Lock:
    """One campaign at a time on a drive, by its serial number, WWN or device node: the first that it has."""
    return Lock(_drive_name(name), owner)


def _drive_name(name: str) -> str:
    return "drive-" + slug(name)


def look_lock(name: str) -> Lock:
    """One look of the guard at a time on a drive, by kernel name: it would take another for a user of the drive."""
    return Lock(name, {"looks_at": name, "pid": os.getpid()}, below=LOOKS)
