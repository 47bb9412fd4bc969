# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""fio: fill in a job, and run it so that it cannot outlive us. fio_result.py reads what it did."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import os
import re
import selectors
import shutil
import signal
import subprocess
import threading
import time
import typing as t

from ..core.deadline import Hangs
from . import read_only_job

PLACEHOLDER = re.compile(r"@ssd_[a-z_]+@")
# Options by which a job reaches files and programs other than its `filename` (fio's HOWTO).
NAMING = frozenset(
    "directory opendir filename_format nrfiles openfiles ioengine_so_path read_iolog write_iolog replay_redirect "
    "exec_prerun exec_postrun "
    "mmapfile hugepage-file aux-path include trigger trigger-file allow_mounted_write mountpoint".split()
)
# Of the placeholders; None: this host has no such thing.
Value = t.Union[str, int, None]
Values = t.Mapping[str, Value]
# How often a run looks at what else is to be done, and tells how far it is.
WAKE_S, TICK_S = 0.5, 1.0
TERMINATE_GRACE_S = 5.0
# After SIGKILL only a process that waits in the kernel for a drive is still there.
KILL_GRACE_S = 10.0
# What fio does not send itself.
FROM_OUTSIDE = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class FioError(Exception):
    """fio did not do what was asked; the message says what and where its output is."""


class DriveError(FioError):
    """The drive itself did not do its I/O: it answered with an error, or not at all."""


class Killed(Exception):
    """Somebody ended fio, or the kernel did: nothing that the drive can be blamed for, so the test is to
    be done again.
    """


class Interrupted(Exception):
    """The host job was told to stop."""


def fill(job: str, values: Values) -> str:
    """Fill the placeholders `@ssd_<name>@` of a job text.

    A line whose placeholder is None on this host is left out (a drive without a NUMA node has no node to bind to).
    Raises ValueError for a placeholder that nobody knows.
    """
    lines = []
    for line in job.splitlines():
        names = [match.strip("@")[len("ssd_") :] for match in PLACEHOLDER.findall(line)]
        unknown = [name for name in names if name not in values]
        if unknown:
            raise ValueError(f"unknown placeholder @ssd_{unknown[0]}@ in the fio job line {line!r}")
        if any(values[name] is None for name in names):
            continue
        for name in names:
            line = line.replace(f"@ssd_{name}@", str(values[name]))
        lines.append(line)
    return "\n".join(lines) + "\n"


def strays(job: str, device: str) -> list[str]:
    """Lines of a filled-in job that would have fio work on, or run, anything but `device`."""
    pairs = [
        (line.strip(), *(part.strip() for part in line.partition("=")[::2]))
        for line in job.splitlines()
        if line.strip()[:1] not in "#;["
    ]
    # "include FILE" has no =; the first word names the option.
    wrong = [
        line
        for line, key, value in pairs
        if NAMING.intersection(key.split()[:1]) or (key == "filename" and value != device)
    ]
    return wrong + (
        []
        if any(key == "filename" for _line, key, _value in pairs)
        else ["no filename: fio would create files of its own"]
    )


class Runner:
    """Runs one fio at a time for one drive and ends it when the job is stopped. `reads_only`: fio refuses to write;
    `in_service`: so do we, for a drive that holds data.
    """

    def __init__(
        self, stop: threading.Event, fio_path: str = "fio", reads_only: bool = False, in_service: bool = False
    ) -> None:
        self._stop = stop
        self._in_service = in_service
        self._fio_path = fio_path
        self._options = ["--readonly"] if reads_only or in_service else []

    def argv(self, job_path: str, output_path: str) -> list[str]:
        """Return the command line. setpriv makes the kernel kill fio when we die, also by SIGKILL and without
        systemd.
        """
        return [
            "setpriv",
            "--pdeathsig",
            "KILL",
            self._fio_path,
            "--output=" + output_path,
            "--output-format=json+",
            "--eta=never",
            *self._options,
            job_path,
        ]

    def run(
        self,
        job_path: str,
        output_path: str,
        tick: t.Callable[[], None] | None = None,
        deadline_s: float | None = None,
        at_end: t.Callable[[int], None] | None = None,
        at_start: t.Callable[[int], None] | None = None,
        tick_s: float = TICK_S,
    ) -> tuple[int, str]:
        """Run fio to its end: (exit code, stderr). `tick` is called about every `tick_s`. Raises Interrupted, Killed,
        and Hangs for a fio that can't be ended.

        deadline_s: fio is ended, and FioError raised, when it takes longer. at_start: called with its pid. at_end:
          called with its pid once it has ended, while the kernel still has its counts.
        """
        if self._stop.is_set():
            raise Interrupted()
        argv = self.argv(job_path, output_path)
        if self._in_service:
            self._refuse_writes(argv, job_path)
        process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            cwd=os.path.dirname(output_path),
        )
        try:
            if at_start:
                at_start(process.pid)
            stderr = self._wait(process, tick, tick_s, deadline_s, at_end)
        finally:
            end_process(process)
        if self._stop.is_set():
            raise Interrupted()
        if -process.returncode in FROM_OUTSIDE:
            text = (
                "fio was killed by signal {0}: the host ran out of memory (see the kernel log), or somebody killed it"
            )
            raise Killed(text.format(-process.returncode))
        return process.returncode, stderr

    @staticmethod
    def _refuse_writes(argv: t.Sequence[str], job_path: str) -> None:
        """Raise FioError for a job that may do more than read."""
        with open(job_path, encoding="utf-8", errors="replace") as source:
            problem = read_only_job.job_problem(argv, source.read())
        if problem:
            raise FioError(f"the drive is in service and only read: {problem}; nothing was run")

    def _wait(
        self,
        process: subprocess.Popen[bytes],
        tick: t.Callable[[], None] | None,
        tick_s: float,
        deadline_s: float | None,
        at_end: t.Callable[[int], None] | None,
    ) -> str:
        # The end of stderr wakes us at once; Popen.wait with a timeout would sleep through it.
        began = last_tick = time.monotonic()
        stderr = b""
        pipe = t.cast(t.IO[bytes], process.stderr)
        with selectors.DefaultSelector() as selector:
            selector.register(pipe, selectors.EVENT_READ)
            while not self._stop.is_set():
                if selector.select(timeout=min(WAKE_S, tick_s)):
                    chunk = os.read(pipe.fileno(), 65536)
                    if not chunk:
                        if at_end:
                            # Ended, but not reaped: /proc/PID still tells.
                            os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
                            at_end(process.pid)
                        process.wait()
                        break
                    stderr += chunk
                if deadline_s is not None and time.monotonic() - began > deadline_s:
                    raise FioError(f"fio did not end within {deadline_s:g} s: the drive or fio hangs; fio was killed")
                if tick and time.monotonic() - last_tick >= tick_s:
                    tick()
                    last_tick = time.monotonic()
        return stderr.decode(errors="replace")


def end_process(process: subprocess.Popen[bytes]) -> None:
    """Make sure that the process is gone: SIGTERM, then SIGKILL. Raises Hangs when neither ends it; it is left behind
    then.
    """
    try:
        for end, grace_s in ((process.terminate, TERMINATE_GRACE_S), (process.kill, KILL_GRACE_S)):
            if process.poll() is None:
                end()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(grace_s)
        if process.returncode is None:
            raise Hangs(
                f"the drive hangs: fio (pid {process.pid}) waits for it in the kernel, and SIGKILL does not end it"
            )
    finally:
        if process.stderr is not None:
            process.stderr.close()


def filled(job: str, values: Values) -> str:
    """Return the job with its placeholders filled in. Raises FioError for one that names anything but the drive."""
    text = fill(job, values)
    others = strays(text, str(values["device"]))
    if others:
        raise FioError("the fio job names more than the drive: {0}; nothing was run".format("; ".join(others)))
    return text


def read_output(path: str) -> str:
    """Return the text of fio's output file; "" where it wrote none."""
    try:
        with open(path, "rb") as source:
            return source.read().decode(errors="replace")
    except FileNotFoundError:
        return ""


def compress(path: str) -> None:
    """Keep a file as <path>.gz. One of the two is there and whole at any time. Raises OSError."""
    folder, name = os.path.split(path)
    aside = os.path.join(folder, f".{name}.gz")
    try:
        with open(path, "rb") as source, gzip.open(aside, "wb", compresslevel=6) as out:
            shutil.copyfileobj(source, out)
    except FileNotFoundError:
        return
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(aside)
        raise
    os.replace(aside, path + ".gz")
    os.unlink(path)


def seed(*parts: t.Any) -> int:
    """Return a seed of its own for each cell, the same when the same cell is asked for again: 31 bits of a hash
    of its names.
    """
    digest = hashlib.sha256("/".join(str(part) for part in parts).encode()).digest()
    return int.from_bytes(digest[:4], "big") >> 1
