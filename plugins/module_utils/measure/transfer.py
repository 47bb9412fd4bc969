# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One pass of an integrity test over a held drive, by a process of its own (block_pattern.py): all of it is written, or
read back and compared.
"""

from __future__ import annotations

import base64
import json
import os
import selectors
import subprocess
import sys
import threading
import time
import typing as t

from ..core.deadline import STEP_TIMEOUT_S
from . import block_pattern
from .block_pattern import Pattern
from .fio import DriveError, FioError, Interrupted, Killed, end_process

# How often a stop is looked for.
WAKE_S = 0.5
# Each costs the timeouts of several reads.
MOST_UNREADABLE = 100


class WrongBlock(t.NamedTuple):
    """A block that is not as it was written. found: what was read; None: it can't be read, and errno says why."""

    offset: int
    found: bytes | None
    errno: int


class Pass(t.NamedTuple):
    """What to do. handle: of the drive, open with O_DIRECT; scattered: chunks far from each other in place of a
    sequence; most_wrong, most_unreadable: after so many wrong blocks it ends; enough_s: at the first one after that
    time of the monotonic clock too; cpus: where it runs, none: anywhere.
    """

    handle: int
    size_bytes: int
    pattern: Pattern
    writes: bool
    scattered: bool
    most_wrong: int
    cpus: t.Sequence[int] = ()
    most_unreadable: int = MOST_UNREADABLE
    enough_s: float | None = None


class Done(t.NamedTuple):
    """What a pass came to. complete: it came to its end, and did not end early at a wrong block."""

    complete: bool
    bytes: int
    seconds: float


def run(
    asked: Pass,
    stop: threading.Event,
    tick: t.Callable[[float], None],
    wrong: t.Callable[[WrongBlock], None],
    silent_s: float = STEP_TIMEOUT_S,
) -> Done:
    """Do one pass. tick: gets the share done; wrong: gets each wrong block as it is found; both may raise what ends the
    pass. silent_s: a drive that does nothing for longer hangs.

    Raises Interrupted, Killed where somebody ended the process, DriveError where the drive did not take what is
    written, FioError where the host is to blame, and Hangs.
    """
    if stop.is_set():
        raise Interrupted()
    began = time.monotonic()
    process = _started(asked)
    # Not `with process`: its end waits for ever for a process that waits in the kernel for a drive.
    with t.cast("t.IO[bytes]", process.stdout):
        try:
            done = _follow(process, asked, stop, tick, wrong, silent_s)
        finally:
            end_process(process)
    return done._replace(seconds=round(time.monotonic() - began, 3))


def _started(asked: Pass) -> subprocess.Popen[bytes]:
    source = t.cast("t.Any", block_pattern.__loader__).get_source(block_pattern.__name__)
    # The kernel ends it when we die, as fio (fio.Runner.argv).
    argv = ["setpriv", "--pdeathsig", "KILL", sys.executable, "-I", "-S", "-c", source]
    process = subprocess.Popen(
        argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, pass_fds=[asked.handle], cwd="/"
    )
    pattern = asked.pattern
    settings = {**asked._asdict(), "key": pattern.key, "drive": pattern.drive, "writing": pattern.writing}
    del settings["pattern"]
    stdin = t.cast("t.IO[bytes]", process.stdin)
    stdin.write(json.dumps({**settings, "cpus": list(asked.cpus)}).encode() + b"\n")
    stdin.close()
    return process


def _follow(
    process: subprocess.Popen[bytes],
    asked: Pass,
    stop: threading.Event,
    tick: t.Callable[[float], None],
    wrong: t.Callable[[WrongBlock], None],
    silent_s: float,
) -> Done:
    done_bytes, moved_s = 0, time.monotonic()
    for told in read_lines(process, stop):
        if time.monotonic() - moved_s > silent_s:
            raise DriveError(f"the drive did no I/O for {silent_s:g} s: it hangs")
        if told is None:
            continue
        if "end" in told:
            tick(told["done_bytes"] / asked.size_bytes)
            return Done(told["end"], told["done_bytes"], 0.0)
        if "failed" in told:
            raise failed(told)
        if "wrong" in told:
            moved_s = time.monotonic()
            found = base64.b64decode(told["found"]) if told["errno"] is None else None
            wrong(WrongBlock(told["wrong"], found, told["errno"] or 0))
        elif told["done_bytes"] > done_bytes:
            done_bytes, moved_s = told["done_bytes"], time.monotonic()
            tick(done_bytes / asked.size_bytes)
    raise ended(process)


def read_lines(process: subprocess.Popen[bytes], stop: threading.Event) -> t.Iterator[dict[str, t.Any] | None]:
    """Yield what each line of JSON says that a process writes, and None where it writes none for a while; until it
    closes its output. Raises Interrupted.
    """
    pipe, rest = t.cast("t.IO[bytes]", process.stdout).fileno(), b""
    with selectors.DefaultSelector() as selector:
        selector.register(pipe, selectors.EVENT_READ)
        while True:
            if stop.is_set():
                raise Interrupted()
            if not selector.select(timeout=WAKE_S):
                yield None
                continue
            part = os.read(pipe, 1 << 20)
            if not part:
                return
            *lines, rest = (rest + part).split(b"\n")
            yield from map(json.loads, lines)


def failed(told: t.Mapping[str, t.Any]) -> DriveError:
    """Return what a process tells that the drive did not do."""
    why = os.strerror(told["errno"]) if told["errno"] else "only a part of it was done"
    return DriveError(f"the drive did not do a {told['failed']} at byte {told['offset']}: {why}")


def ended(process: subprocess.Popen[bytes]) -> Exception:
    """Return why a process ended that did not say so itself."""
    error = t.cast("t.IO[bytes]", process.stderr).read()
    process.wait()
    if process.returncode < 0:
        return Killed(f"the process that reads back was killed by signal {-process.returncode}")
    last = error.decode(errors="replace").strip().splitlines()[-1:] or [""]
    return FioError(f"the process that reads back ended with exit code {process.returncode}: {last[0]}")
