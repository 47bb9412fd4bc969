# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Faults inside a host job: what its writes, of the journal or of another file of its run, do at one chosen moment.

`arm` replaces write(2), fsync(2) and rename(2) as this process calls them. A spec (all keys but `action` optional):
  file    the name of the file, "journal.jsonl" (default) or another of the run's folder
  event   of the journal: the record that meets the fault; of other files there is none
  nth     which such write, from 1
  action  a key of ACTIONS
  pid, backing_file, device, filler   what the action needs
Every record that a caller was told is kept goes to the file `kept` first, which meets no fault.
"""

from __future__ import annotations

import builtins
import contextlib
import datetime
import errno
import glob
import io
import json
import os
import signal
import subprocess
import threading
import time
import types
import typing as t

Spec = t.Mapping[str, t.Any]
Write = t.Callable[[int, bytes], int]

real_write, real_fsync, real_replace = os.write, os.fsync, os.replace


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _kill_before(_spec: Spec, _fd: int, _data: bytes) -> int:
    _die()
    return 0


def _kill_after(_spec: Spec, fd: int, data: bytes) -> int:
    real_write(fd, data)
    real_fsync(fd)
    _die()
    return 0


def _torn_kill(_spec: Spec, fd: int, data: bytes) -> int:
    real_write(fd, data[: len(data) // 2])
    real_fsync(fd)
    _die()
    return 0


def _stop(_spec: Spec, fd: int, data: bytes) -> int:
    os.kill(os.getpid(), signal.SIGTERM)
    return real_write(fd, data)


def _fail(number: int) -> t.Callable[[Spec, int, bytes], int]:
    def fail(_spec: Spec, _fd: int, _data: bytes) -> int:
        raise OSError(number, os.strerror(number))

    return fail


def _torn_enospc(_spec: Spec, fd: int, data: bytes) -> int:
    real_write(fd, data[: len(data) // 2])
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _full(spec: Spec, fd: int, data: bytes) -> int:
    """Fill the disk of the run's folder, which is a small tmpfs, to its last byte; then go on as usual."""
    with open(spec["filler"], "wb", buffering=0) as filler:
        for size in (1 << 20, 4096, 1):
            try:
                while True:
                    filler.write(bytes(size))
            except OSError:
                continue
    return real_write(fd, data)


def _hang(spec: Spec, fd: int, data: bytes) -> int:
    """The drive answers no more: its server is stopped. The bench lets it go on at the end."""
    os.kill(spec["pid"], signal.SIGSTOP)
    return real_write(fd, data)


def _shrink(spec: Spec, fd: int, data: bytes) -> int:
    os.truncate(spec["backing_file"], os.path.getsize(spec["backing_file"]) // 2)
    subprocess.run(["losetup", "--set-capacity", spec["device"]], check=True)
    return real_write(fd, data)


def _damage(text: str | None) -> t.Callable[[Spec, int, bytes], int]:
    """Another file of the run is damaged while the job lives; None: it is removed."""

    def damage(spec: Spec, fd: int, data: bytes) -> int:
        if text is None:
            os.unlink(spec["victim"])
        else:
            with open(spec["victim"], "w") as out:
                out.write(text)
        return real_write(fd, data)

    return damage


def _inodes(spec: Spec, fd: int, data: bytes) -> int:
    """No file can be made any more on the disk of the run's folder, though there is room in those that are."""
    os.mkdir(spec["filler"])
    number = 0
    try:
        while True:
            os.close(os.open("{0}/{1}".format(spec["filler"], number), os.O_WRONLY | os.O_CREAT))
            number += 1
    except OSError:
        return real_write(fd, data)


def _no_process(_spec: Spec, fd: int, data: bytes) -> int:
    """No memory, or no pid, for another process, from now on."""

    def refuse(*_args: t.Any, **_kwargs: t.Any) -> t.Any:
        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    setattr(subprocess.Popen, "__init__", refuse)
    return real_write(fd, data)


def _read_only(spec: Spec, _fd: int, _data: bytes) -> int:
    """The kernel found an error on the disk of the state folder: from now on nothing there can be written."""

    def refusing(real: t.Callable[..., t.Any], writes: t.Callable[[tuple[t.Any, ...]], bool]) -> t.Callable[..., t.Any]:
        def call(*args: t.Any, **kwargs: t.Any) -> t.Any:
            place = os.readlink(f"/proc/self/fd/{args[0]}") if isinstance(args[0], int) else os.fspath(args[0])
            if place.startswith(spec["state"]) and writes(args):
                raise OSError(errno.EROFS, os.strerror(errno.EROFS), place)
            return real(*args, **kwargs)

        return call

    flags = os.O_WRONLY | os.O_RDWR | os.O_CREAT
    for name in ("write", "fsync", "ftruncate", "unlink", "replace", "rename", "mkdir", "link"):
        setattr(os, name, refusing(getattr(os, name), lambda _args: True))
    os.open = refusing(os.open, lambda args: bool(args[1] & flags))
    builtins.open = io.open = refusing(io.open, lambda args: len(args) > 1 and args[1][0] in "wax")
    raise OSError(errno.EROFS, os.strerror(errno.EROFS))


def _oom(_spec: Spec, fd: int, data: bytes) -> int:
    """The kernel is out of memory and takes the next fio."""

    def wait() -> None:
        while True:
            for child in _children():
                with contextlib.suppress(OSError):
                    if open(f"/proc/{child}/comm").read().strip() == "fio":
                        os.kill(int(child), signal.SIGKILL)
                        return
            time.sleep(0.01)

    threading.Thread(target=wait, daemon=True).start()
    return real_write(fd, data)


def _children() -> list[str]:
    """Of any thread of this process."""
    found: list[str] = []
    for path in glob.glob("/proc/self/task/*/children"):
        with contextlib.suppress(OSError):
            found += open(path).read().split()
    return found


def _clock_back(_spec: Spec, fd: int, data: bytes) -> int:
    """Somebody sets the clock a day back."""
    import product

    real_time = time.time
    setattr(time, "time", lambda: real_time() - 86400)

    class Earlier(datetime.datetime):
        """The time as it is told from now on."""

        @classmethod
        def now(cls, tz: t.Any = None) -> datetime.datetime:
            return datetime.datetime.fromtimestamp(time.time(), tz)

    setattr(product.files, "datetime", types.SimpleNamespace(datetime=Earlier, timezone=datetime.timezone))
    return real_write(fd, data)


ACTIONS: dict[str, t.Callable[[Spec, int, bytes], int]] = {
    "kill_before": _kill_before,
    "kill_after": _kill_after,
    "torn_kill": _torn_kill,
    "stop": _stop,
    "enospc": _fail(errno.ENOSPC),
    "eio": _fail(errno.EIO),
    "torn_enospc": _torn_enospc,
    "full": _full,
    "hang": _hang,
    "shrink": _shrink,
    "empty": _damage(""),
    "torn": _damage('{"boot_id": "1'),
    "lost": _damage(None),
    "inodes": _inodes,
    "no_process": _no_process,
    "read_only": _read_only,
    "oom": _oom,
    "clock_back": _clock_back,
}


class Injector:
    """Counts the writes that a spec is about, and does its action at one of them, once."""

    def __init__(self, spec: Spec) -> None:
        self._spec = spec
        self._file = spec.get("file", "journal.jsonl")
        self._left = spec.get("nth", 1)

    def _meets(self, fd: int, data: bytes | None) -> bool:
        name = os.path.basename(os.readlink(f"/proc/self/fd/{fd}"))
        if not name.lstrip(".").startswith(self._file):
            return False
        event = self._spec.get("event")
        if event and (data is None or f'"event": "{event}"'.encode() not in data):
            return False
        self._left -= 1
        return self._left == 0

    def write(self, fd: int, data: bytes) -> int:
        if self._spec["action"] == "eio_fsync" or not self._spec.get("event") or not self._meets(fd, data):
            return real_write(fd, data)
        return ACTIONS[self._spec["action"]](self._spec, fd, data)

    def fsync(self, fd: int) -> None:
        """Of a file that is written aside, this is the moment; of the journal, for `eio_fsync`."""
        if self._spec["action"] == "eio_fsync" and self._spec.get("event"):
            real_fsync(fd)
            size = os.fstat(fd).st_size
            tail = (
                os.pread(fd, 65536, max(0, size - 65536))
                if os.path.basename(os.readlink(f"/proc/self/fd/{fd}")) == self._file
                else b""
            )
            if self._meets(fd, tail.rstrip(b"\n").rpartition(b"\n")[2]):
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            return
        if not self._spec.get("event") and self._meets(fd, None):
            ACTIONS[self._spec["action"]](self._spec, fd, b"")
        real_fsync(fd)


def arm(spec: Spec) -> None:
    """Let this process meet the fault."""
    injector = Injector(spec)
    os.write, os.fsync = injector.write, injector.fsync


def keep_told(journal_class: t.Any, path: str) -> None:
    """Write down every record of which `Journal.add` said that it is on the disk."""
    add = journal_class.add
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def told(self: t.Any, event: str, **fields: t.Any) -> t.Any:
        record = add(self, event, **fields)
        real_write(handle, (json.dumps(record, sort_keys=True) + "\n").encode())
        return record

    journal_class.add = told
