# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The boundary to a host: run a probing command, read and write files of sysfs and procfs.

Nothing else probes a host, so a test replaces `root` by a tree of fixture files and `run` by a table of answers.
"""

from __future__ import annotations

import contextlib
import fcntl
import fnmatch
import glob as globbing
import json
import os
import shutil
import signal
import stat
import subprocess
import typing as t

from .files import append_line

BOOT_ID = "/proc/sys/kernel/random/boot_id"
# What lies on these places is the system.
SYSTEM_PLACES = ("/", "/boot", "/boot/efi", "/efi", "/usr", "/var")

COMMAND_NOT_FOUND = 127
CANNOT_RUN = 126
COMMAND_LOG = "SSDLAB_FLEET_COMMAND_LOG"  # names a file that gets every command before it starts
TIMED_OUT = 124
# A plain user's PATH lacks the places where wipefs, blkid and losetup live.
SEARCH_PATH = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")


class Result(t.NamedTuple):
    """What a command gave: its argument list, exit code and texts.

    rc 127: no such command; 126: it cannot be started; 124: timed out; -n: ended by signal n.
    """

    argv: list[str]
    rc: int
    stdout: str
    stderr: str

    def ended(self, said: str = "") -> str:
        """Return how it failed, in a line. said: what of its texts tells why, by default the last line."""
        said = said or (self.stderr.strip() or self.stdout.strip() or "nothing").splitlines()[-1]
        return f"{' '.join(self.argv)} ended with {self.rc} and said: {said:.300}"


def _text(data: object) -> str:
    """Output of a command that was cut short may be bytes, text or None, by Python version."""
    if data is None:
        return ""
    return data.decode("utf-8", "replace") if isinstance(data, bytes) else str(data)


def _unseen(path: str, flags: int) -> int:
    """Open without noting the time of access: a look writes nothing, not even that to a file system on a drive. It
    takes the owner or root.
    """
    try:
        return os.open(path, flags | os.O_NOATIME)
    except PermissionError:
        return os.open(path, flags)


def _names(folder: str) -> list[str]:
    """Return the names in a folder, sorted; empty where there is no such folder."""
    try:
        descriptor = _unseen(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return []
    try:
        return sorted(os.listdir(descriptor))
    except OSError:
        return []
    finally:
        os.close(descriptor)


def _matches(name: str, pattern: str) -> bool:
    """As a shell has it: what begins with a dot is meant only by name."""
    return fnmatch.fnmatchcase(name, pattern) and (pattern.startswith(".") or not name.startswith("."))


def _abandon(process: subprocess.Popen[bytes], with_all: bool) -> None:
    """End a command, but never wait for one that hangs in the kernel with a dead drive: no signal reaches it there."""
    (end_session if with_all else subprocess.Popen.kill)(process)
    try:
        process.communicate(timeout=1)
    except subprocess.TimeoutExpired:
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                stream.close()


def end_session(process: subprocess.Popen[bytes]) -> None:
    """Kill a command that has a session of its own, with all that it started."""
    # Until it is reaped, no other session gets its number.
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


# PROC_PID_INIT_INO (include/linux/proc_ns.h): the namespace that has every process of the machine.
_FIRST_PID_NAMESPACE = "pid:[4026531836]"


class Host:
    """This machine, seen from `root` ("/", or a fixture tree in tests).

    `log` gets each argument list before it runs, and so does the file that SSDLAB_FLEET_COMMAND_LOG names.
    """

    def __init__(self, root: str = "/", log: t.Callable[[list[str]], object] | None = None) -> None:
        self.root = root
        self.log = log

    def path(self, path: str) -> str:
        """Return the real file behind an absolute path of the host."""
        if self.root == "/":
            return path
        return os.path.join(self.root, path.lstrip("/"))

    def which(self, name: str) -> str | None:
        """Return where a tool is, as an absolute path, or None."""
        return shutil.which(name, path=_search_path())

    def run(
        self,
        argv: t.Sequence[str],
        timeout_s: float = 60,
        stdin: str | None = None,
        started: t.Callable[[subprocess.Popen[bytes]], object] | None = None,
    ) -> Result:
        """Run a command, given as an argument list; never raises for what the command or its absence does.

        `started` gets the process, which then has a session of its own.
        """
        command = [str(word) for word in argv]
        self.note(command)
        environment = dict(os.environ, LC_ALL="C", PATH=_search_path())
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=environment,
                start_new_session=started is not None,
            )
        except OSError as error:
            # A host without memory or pids is not one that lacks a package.
            rc = COMMAND_NOT_FOUND if isinstance(error, FileNotFoundError) else CANNOT_RUN
            return Result(command, rc, "", f"cannot run {command[0]}: {error.strerror}")
        if started is not None:
            started(process)
        try:
            output, errors = process.communicate(None if stdin is None else stdin.encode("utf-8"), timeout=timeout_s)
        except subprocess.TimeoutExpired as error:
            _abandon(process, with_all=started is not None)
            return Result(command, TIMED_OUT, _text(error.stdout), f"{command[0]} gave no answer in {timeout_s:g} s")
        return Result(command, process.returncode, _text(output), _text(errors))

    def note(self, argv: t.Sequence[str]) -> None:
        """Log a command that is about to start. Raises OSError when the log cannot be written: then
        nothing may start.
        """
        words = [str(word) for word in argv]
        if self.log is not None:
            self.log(words)
        path = os.environ.get(COMMAND_LOG)
        if path:
            append_line(path, json.dumps(words))

    def note_ioctl(self, name: str, path: str, offset: int, length: int) -> None:
        """Log a destructive ioctl (such as BLKDISCARD) that is about to be made on a drive, in bytes."""
        self.note(["ioctl", name, path, str(offset), str(length)])

    def read(self, path: str) -> str:
        """Return a file's text without the white space around it. Raises OSError."""
        return self.read_bytes(path).decode("utf-8", "replace").strip("\0 \t\r\n")

    def read_bytes(self, path: str) -> bytes:
        """Return a file's bytes, for the binary pages of sysfs. Raises OSError."""
        with open(self.path(path), "rb", opener=_unseen) as file:
            return file.read()

    def get(self, path: str) -> str | None:
        """Like `read`, and None where the file is missing, unreadable or empty."""
        try:
            return self.read(path) or None
        except OSError:
            return None

    def write(self, path: str, text: str) -> None:
        """Write a value to an existing file of sysfs or procfs in one write(2). Raises OSError, as the kernel refused
        it.
        """
        descriptor = os.open(self.path(path), os.O_WRONLY | os.O_TRUNC)
        try:
            os.write(descriptor, text.encode("utf-8"))
        finally:
            os.close(descriptor)

    def open(self, path: str, flags: int) -> int:
        """Return a descriptor of a device's node, which no child inherits. Raises OSError."""
        return os.open(self.path(path), flags | os.O_CLOEXEC)

    def device_number(self, handle: int) -> str | None:
        """Return the number ("8:0") of the block device that a descriptor is of; None where it is of another kind.
        Raises OSError.
        """
        status = os.fstat(handle)
        number = status.st_rdev
        return f"{os.major(number)}:{os.minor(number)}" if stat.S_ISBLK(status.st_mode) else None

    def ioctl(self, handle: int, request: int, argument: bytes) -> bytes:
        """Return what the driver behind a descriptor makes of a request. Raises OSError."""
        return fcntl.ioctl(handle, request, argument)

    def exists(self, path: str) -> bool:
        """Return whether the path is there; a dangling link is not."""
        return os.path.exists(self.path(path))

    def glob(self, pattern: str) -> list[str]:
        """Return the host's paths that match a shell pattern, sorted; ** matches any number of folders."""
        if "**" in pattern:
            return sorted(self._strip(path) for path in globbing.glob(self.path(pattern), recursive=True))
        found = [self.path("/")]
        for part in pattern.strip("/").split("/"):
            if globbing.has_magic(part):
                found = [
                    os.path.join(folder, name) for folder in found for name in _names(folder) if _matches(name, part)
                ]
            else:
                found = [os.path.join(folder, part) for folder in found]
        return sorted(self._strip(path) for path in found if os.path.lexists(path))

    def realpath(self, path: str) -> str:
        """Return the path with its links resolved. Links of a fixture tree must be relative."""
        return self._strip(os.path.realpath(self.path(path)))

    def readlink(self, path: str) -> str | None:
        """Return what a link says, as it stands; None where there is no such link or it may not be read."""
        try:
            return os.readlink(self.path(path))
        except OSError:
            return None

    def listdir(self, path: str) -> list[str]:
        """Return the names in a folder, sorted; empty where there is no such folder."""
        return _names(self.path(path))

    def _strip(self, path: str) -> str:
        if self.root == "/":
            return path
        base = os.path.realpath(self.root)
        real = path if path.startswith(base) else os.path.join(base, os.path.relpath(path, self.root))
        return "/" + os.path.relpath(real, base)


def _search_path() -> str:
    given = [entry for entry in os.environ.get("PATH", "").split(os.pathsep) if entry]
    return os.pathsep.join(given + [entry for entry in SEARCH_PATH if entry not in given])


def container(host: Host) -> str:
    """Return the PID namespace that this process is in, where that is not the machine's own: processes outside do not
    show there. "" for the machine itself.
    """
    namespace = host.readlink("/proc/self/ns/pid") or "an unknown one"
    return "" if namespace == _FIRST_PID_NAMESPACE else namespace


class Running:
    """One command, once."""

    def __init__(self, host: Host, argv: t.Sequence[str]) -> None:
        self._host, self._argv = host, argv
        self._process: subprocess.Popen[bytes] | None = None
        self._is_over = False

    def run(self, timeout_s: float, stdin: str | None = None) -> Result:
        """As `Host.run`."""
        return self._host.run(self._argv, timeout_s=timeout_s, stdin=stdin, started=self._begin)

    def _begin(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        if self._is_over:
            end_session(process)

    def end(self) -> None:
        """Kill it, also where it has yet to start. Whoever runs it gets its result."""
        self._is_over = True
        if self._process is not None:
            end_session(self._process)
