# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run a command, and leave nothing of it, however it ends: no process, loop device, mount or container.

python clean_run.py CLAIMS COMMAND [ARGUMENT ...]

It adopts what the command's processes leave to themselves, and ends it with the command. CLAIMS is the file of
leftovers.claim. SIGINT goes to the whole process group, and gives the command GRACE_S to clean up by itself; SIGTERM,
and the end of who started this, do that too; a SIGTERM after either ends all at once. The exit code is the command's;
that of a shell for one that a signal ended.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import time
from pathlib import Path

import leftovers

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36  # linux/prctl.h
SIGNALS = {signal.SIGCHLD, signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
# More than tests/integration/distribution.py gives the processes of pytest-xdist.
GRACE_S = 90.0
# From SIGTERM to SIGKILL, and until what got that is gone.
END_S = 5.0


class Family:
    """The command and all that descends from it."""

    def __init__(self, claims: Path, argv: list[str]) -> None:
        self._claims, self._mounts = claims, {}
        signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        libc = ctypes.CDLL(None, use_errno=True)
        libc.prctl(PR_SET_CHILD_SUBREAPER, 1)
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
        self.code: int | None = None
        self._first = os.posix_spawnp(argv[0], argv, os.environ, setsigmask=())

    def wait(self) -> None:
        """Wait until the command has ended, or has to be ended."""
        end_s = float("inf")
        while self.code is None and time.monotonic() < end_s:
            received = signal.sigtimedwait(SIGNALS, 1)
            self.reap()
            self._keep_mounts()
            if received and received.si_signo != signal.SIGCHLD:
                asked = end_s < float("inf")
                if asked and received.si_signo == signal.SIGTERM:
                    return
                if not asked and received.si_signo != signal.SIGINT:  # which they all have got
                    os.killpg(os.getpgrp(), signal.SIGINT)
                end_s = min(end_s, time.monotonic() + GRACE_S)

    def _keep_mounts(self) -> None:
        """Keep the mounts of processes that have their own: the path of a loop device's file ends with them."""
        for pid in leftovers.with_mounts(self._claims):
            if pid not in self._mounts:
                with contextlib.suppress(OSError):
                    self._mounts[pid] = os.open(f"/proc/{pid}/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)

    def release_mounts(self) -> None:
        """Let the kernel take these mounts away."""
        while self._mounts:
            os.close(self._mounts.popitem()[1])

    def reap(self) -> None:
        """Take the exit codes of all that has ended."""
        with contextlib.suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                if ended[0] == self._first:
                    code = os.waitstatus_to_exitcode(ended[1])
                    self.code = code if code >= 0 else 128 - code

    def end(self, others: list[int]) -> None:
        """End what is left, and `others`: first so that they can clean up."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            until_s = time.monotonic() + END_S
            _signal([*descendants(os.getpid()), *others], number)
            while (left := descendants(os.getpid())) and time.monotonic() < until_s:
                signal.sigtimedwait({signal.SIGCHLD}, 0.1)
                self.reap()
                if number == signal.SIGKILL:  # what was started in the meantime
                    _signal(left, number)


def _signal(pids: list[int], number: int) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def descendants(root: int) -> list[int]:
    """The pids of all that descends from a process."""
    parents = {}
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            fields = (entry / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
            parents[int(entry.name)] = int(fields[1])
    found = [root]
    for pid in found:
        found += [child for child, parent in parents.items() if parent == pid]
    return found[1:]


def main(claims: Path, argv: list[str]) -> int:
    """The command line."""
    family = Family(claims, argv)
    family.wait()
    folders = leftovers.claimed(claims)
    leftovers.end_devices(folders)
    leftovers.end_containers(folders)
    family.end(leftovers.jobs_in(folders))
    leftovers.end_devices(folders)
    family.release_mounts()
    leftovers.end_mounts(folders)
    leftovers.end_files(folders)
    leftovers.remove_idle_loops()
    return 128 + signal.SIGKILL if family.code is None else family.code


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
