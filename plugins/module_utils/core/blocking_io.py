# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files of sysfs and procfs, read and written by a process of its own: no signal reaches one that waits in the kernel,
and ours has to go on, and to end.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import sys
import time
import typing as t

from .deadline import Hangs
from .host import Host, Result

# A busy machine may take long to start a process; that is no fault of the file.
_START_S = 60.0
# A line of JSON for each request, [path, text | null to read], and for each answer, [errno, text]: bytes stand as
# Latin-1. An empty line: it is there.
_CHILD = """
import json, os, sys
print(flush=True)
for line in sys.stdin:
    path, text = json.loads(line)
    number, data = 0, b""
    try:
        descriptor = os.open(path, os.O_RDONLY if text is None else os.O_WRONLY | os.O_TRUNC)
        try:
            while text is None:
                part = os.read(descriptor, 65536)
                data += part
                if not part:
                    break
            if text is not None:
                os.write(descriptor, text.encode("utf-8"))
        finally:
            os.close(descriptor)
    except OSError as error:
        number = error.errno or 5
    print(json.dumps([number, data.decode("latin-1")]), flush=True)
"""


class _Ended(Hangs):
    """The child is gone."""


class InTime(Host):
    """A host whose files answer within `patience_s`, or raise Hangs. The child that waits is left behind then: it holds
    nothing of ours, and may yet write.
    """

    def __init__(self, host: Host, patience_s: float) -> None:
        super().__init__(host.root, host.log)
        self.patience_s = patience_s
        self._host = host
        self._child: subprocess.Popen[bytes] | None = None

    def run(
        self,
        argv: t.Sequence[str],
        timeout_s: float = 60,
        stdin: str | None = None,
        started: t.Callable[[subprocess.Popen[bytes]], object] | None = None,
    ) -> Result:
        """As the host behind runs it; `started` is passed on only where it is given."""
        more: dict[str, t.Any] = {} if started is None else {"started": started}
        return self._host.run(argv, timeout_s=timeout_s, stdin=stdin, **more)

    def read_bytes(self, path: str) -> bytes:
        """Like Host.read_bytes. Raises OSError, Hangs."""
        return self._ask(path, None)

    def read(self, path: str) -> str:
        """Like Host.read. Raises OSError, Hangs."""
        return self._ask(path, None).decode("utf-8", "replace").strip("\0 \t\r\n")

    def write(self, path: str, text: str) -> None:
        """Like Host.write. Raises OSError, Hangs."""
        self._ask(path, text)

    def _ask(self, path: str, text: str | None) -> bytes:
        try:
            return self._ask_child(path, text)
        except _Ended:  # by somebody, or a signal to our whole group: to read or write the same again does no harm
            return self._ask_child(path, text)

    def _ask_child(self, path: str, text: str | None) -> bytes:
        if self._child is None:
            try:
                self._child = subprocess.Popen(
                    [sys.executable, "-I", "-S", "-c", _CHILD],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    cwd="/",
                )
            except OSError:
                return self._without_child(path, text)
            self._answer(self._child, "starting a process", _START_S)
        sent = t.cast("t.IO[bytes]", self._child.stdin)
        what = f"reading {path}" if text is None else f"writing {text} to {path}"
        with contextlib.suppress(BrokenPipeError):  # told by the answer, which does not come
            sent.write(json.dumps([self.path(path), text]).encode() + b"\n")
            sent.flush()
        data: str
        number, data = json.loads(self._answer(self._child, what, self.patience_s))
        if number:
            raise OSError(number, os.strerror(number), path)
        return data.encode("latin-1")

    def _without_child(self, path: str, text: str | None) -> bytes:
        """Return a host that can start no process any more (memory, pids) is to be put back all the same."""
        if text is None:
            return self._host.read_bytes(path)
        self._host.write(path, text)
        return b""

    def _answer(self, child: subprocess.Popen[bytes], what: str, timeout_s: float) -> bytes:
        """Return a line of the child's. It ends only where somebody ended it."""
        pipe, until_s, line = t.cast("t.IO[bytes]", child.stdout).fileno(), time.monotonic() + timeout_s, b""
        while not line.endswith(b"\n"):
            if not select.select([pipe], [], [], max(0.0, until_s - time.monotonic()))[0]:
                self._leave()
                raise Hangs(f"no answer in {timeout_s:g} s from {what}")
            part = os.read(pipe, 65536)
            if not part:
                self._leave()
                raise _Ended(f"the process that was {what} was ended")
            line += part
        return line

    def _leave(self) -> None:
        child, self._child = self._child, None
        if child is not None:
            child.kill()
            for stream in filter(None, (child.stdin, child.stdout)):
                with contextlib.suppress(OSError):
                    stream.close()

    def close(self) -> None:
        """End the child, which has nothing to do now."""
        child = self._child
        self._leave()
        if child is not None:
            child.wait()


@contextlib.contextmanager
def in_time(host: Host, patience_s: float) -> t.Iterator[InTime]:
    """The host with deadlines for its files, for as long as the context lasts. The child is started by
    the first use.
    """
    patient = InTime(host, patience_s)
    try:
        yield patient
    finally:
        patient.close()
