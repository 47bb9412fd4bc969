# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A file system for one test: made on the held drive, mounted where nobody else sees it, unmounted and wiped.

fio works on one file of it, as large as the ActiveRange, by the descriptor that we hold. It is mounted in a mount
namespace of its own, which lives as long as a process of ours in it: should this job be killed, the kernel ends that
process (PR_SET_PDEATHSIG) and fio, and unmounts what nobody uses any more. docs/internals/filesystems.md.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
import typing as t
import uuid

from ..core.deadline import Hangs
from ..core.host import Host, Result, Running
from ..guard import ledger_format
from ..measure.fio import FioError, Interrupted
from ..measure.kernel_counters import Witness
from ..records.base import to_json
from ..records.plan import PlannedTest
from ..records.storage_layers import FilesystemDetails, FilesystemEnd, PlannedFilesystem
from ..tools import filesystems
from .drive_context import Attempt, DriveContext
from .filesystem_wipe import Wipe

FILE = "ssdlab-fleet.data"
LOST_FOUND = "lost+found"  # of ext4
TOOLS = ("unshare", "nsenter", "mount", "umount", "sleep")
# Of a large drive with a full log: minutes.
MKFS_S, MOUNT_S = 3600.0, 300.0
# The kernel ends a command with the thread that waits for it, and so with this job.
WITH_US = ["setpriv", "--pdeathsig", "KILL"]
NAMESPACE_S = 10.0
# What ext4 gives back at a commit of its log, it discards within a fifth of a second.
STILL_S, WRITE_OUT_S = 1.0, 120.0
IN_FLIGHT = 8  # of /sys/block/*/stat


class FilesystemError(FioError):
    """It could not be made, mounted or unmounted; the message says what was tried and what was said."""


def missing_requirements(host: Host, spec: PlannedFilesystem, name: str) -> str:
    """Return what a test needs that the host does not have: tools, and that the kernel counts the writes of the drive
    `name`; "" for nothing.
    """
    kind = spec.type
    packages = {**dict.fromkeys(TOOLS, "util-linux or coreutils"), f"mkfs.{kind}": filesystems.PACKAGES[kind]}
    missing = [f"{tool} is missing; install {package}" for tool, package in packages.items() if not host.which(tool)]
    if host.get(f"/sys/block/{name}/queue/iostats") == "0":  # nobody could tell whether its file system may be wiped
        missing.append(f"the kernel does not count the drive's writes; write 1 to /sys/block/{name}/queue/iostats")
    return "; ".join(missing)


class Room:
    """A mount namespace of our own: `sleep` in it, which the kernel ends when we die."""

    def __init__(self, host: Host) -> None:
        self._host = host
        argv = [*WITH_US, "unshare", "--mount", "--propagation", "private", "sleep", "infinity"]
        host.note(argv)
        nowhere = subprocess.DEVNULL
        # It lives as long as the room, which no `with` spans.
        # pylint: disable-next=consider-using-with
        self._process = subprocess.Popen(argv, stdin=nowhere, stdout=nowhere, stderr=nowhere, cwd="/")
        self._await()

    def _await(self) -> None:
        """Until it has a namespace of its own, and nothing that comes is mounted in ours."""
        deadline_s, ours = time.monotonic() + NAMESPACE_S, self._host.readlink("/proc/self/ns/mnt")
        while time.monotonic() < deadline_s and self._process.poll() is None:
            theirs = self._host.readlink(f"/proc/{self._process.pid}/ns/mnt")
            name = self._host.get(f"/proc/{self._process.pid}/comm")
            # Once it is `sleep`, the propagation is set too.
            if ours and theirs and theirs != ours and name == "sleep":
                return
            time.sleep(0.01)
        self.close()
        raise FilesystemError("cannot create a mount namespace (unshare --mount): the host job needs CAP_SYS_ADMIN")

    def inside(self, argv: t.Sequence[str]) -> list[str]:
        """Return a command that runs in the namespace."""
        return ["nsenter", f"--mount=/proc/{self._process.pid}/ns/mnt", "--", *argv]

    def path(self, path: str) -> str:
        """Return where a path of the namespace is seen from ours."""
        return f"/proc/{self._process.pid}/root{path}"

    def mounted(self, where: str) -> filesystems.Mounted | None:
        """Return what is mounted on a place of it."""
        return filesystems.mounted(self._host.read(f"/proc/{self._process.pid}/mountinfo"), where)

    def close(self) -> None:
        """End it. The kernel unmounts what is left in it."""
        self._process.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):  # it waits in the kernel for the drive
            self._process.wait(NAMESPACE_S)


@contextlib.contextmanager
def laid_on(station: DriveContext, test: PlannedTest, attempt: Attempt) -> t.Iterator[None]:
    """The file system that a test asks for, with fio's file on it, while inside; nothing for a test that asks for none.

    Raises FilesystemError, Refused, Hangs, Interrupted.
    """
    spec = test.filesystem
    if not spec:
        yield
        return
    station.guard("filesystem", phase="precondition")
    laid = Laid(station, spec, station.active_bytes(test))
    names = attempt._asdict()

    def wipe(node: str) -> None:
        station.note("filesystem_unmounted", **to_json(laid.wiped(node)), **names)

    with station.held.shared(wipe) as node:
        try:
            station.note("filesystem", **to_json(laid.make(node)), **names)
            yield
        except Hangs:
            laid.abandon()
            raise
        except BaseException:
            laid.undo()
            raise
        laid.undo()


def write_out(station: DriveContext) -> None:
    """Have a file system do now, after the fill of its file, what it would do at the next commit of its log, while fio
    measures: ext4 gives back blocks of an extent tree that shrank, and with the mount option discard it discards them
    and what is free around them. Nothing where fio has the drive itself. Raises FilesystemError, Hangs, Interrupted.
    """
    file = station.bench.file
    if file is not None:
        station.watchdog.call("write out its file system", lambda: _until_still(station, file), WRITE_OUT_S)
        station.bench.settle()


def _until_still(station: DriveContext, file: int) -> None:
    try:
        os.fsync(file)
    except OSError as error:
        raise FilesystemError(f"its file system cannot be written out ({error.strerror})") from None
    drive = Witness(station.job.host, os.path.basename(station.held.path), None)
    deadline_s, before = time.monotonic() + WRITE_OUT_S, drive.stat()
    while time.monotonic() < deadline_s:
        if station.job.stop.wait(STILL_S):
            raise Interrupted()
        now = drive.stat()
        if now == before and not (now and now[IN_FLIGHT]):
            return
        before = now


class Laid:
    """One file system, from its making to its wiping. size_bytes: of the file that fio gets."""

    def __init__(self, station: DriveContext, spec: PlannedFilesystem, size_bytes: int) -> None:
        self._station, self._spec, self._size_bytes = station, spec, size_bytes
        self._host = station.job.host
        self._id = str(uuid.uuid4())
        self._where = os.path.join(station.job.run_dir.path, "mounted", os.path.basename(station.held.path))
        self._room: Room | None = None
        self._mounted = False
        self._wipe = Wipe(station, self._id)
        self._ended_s = 0.0

    def make(self, node: str) -> FilesystemDetails:
        """Make it through a node of our own, mount it, and give fio its file. The ledger knows first."""
        station, began = self._station, time.monotonic()
        station.held.note_filesystem(
            ledger_format.filesystem_note(self._spec.type, self._id, station.job.run_dir.run_id)
        )
        made = filesystems.mkfs_argv(self._spec, self._id, node)
        self._make(made, node)
        self._wipe.made = True
        os.makedirs(self._where, mode=0o700, exist_ok=True)
        mount = filesystems.mount_argv(self._spec, node, self._where)
        # In this thread, which lasts as long as the campaign: the kernel ends the room with the thread that made it.
        room = self._room = Room(self._host)
        found = self._bounded("mount it", lambda: self._mount(mount, node, room), MOUNT_S)
        self._stop_if_asked()
        station.bench.file = self._bounded("make a file on it", self._open, MKFS_S)
        station.bench.begin_test()
        station.bench.settle()
        spec = self._spec
        return FilesystemDetails(
            type=spec.type,
            uuid=self._id,
            block_size_bytes=spec.block_size_bytes,
            mount_options=spec.mount_options,
            options=list(found.options),
            stripe=spec.stripe,
            commands=[made, mount],
            file_bytes=self._size_bytes,
            seconds=round(time.monotonic() - began, 3),
        )

    def undo(self) -> None:
        """Take fio's file away and unmount."""
        self._ended_s = time.monotonic()
        # Also what a mkfs that was ended has in the page cache is written out.
        self._bounded("unmount its file system", self._unmount, MOUNT_S if self._wipe.made else MKFS_S)
        with contextlib.suppress(OSError):  # others have theirs in it
            os.rmdir(self._where)
            os.rmdir(os.path.dirname(self._where))
        self._station.bench.settle()

    def wiped(self, node: str) -> FilesystemEnd:
        """Wipe it, once the drive is held exclusively. node: of our own."""
        self._wipe.run(node)
        seconds = round(time.monotonic() - self._ended_s, 3)
        return FilesystemEnd(self._id, not self._wipe.reason, self._wipe.reason, seconds)

    def abandon(self) -> None:
        """Leave it to the kernel: what waits for a drive that hangs is not waited for."""
        self._station.bench.file = None
        if self._room is not None:
            self._room.close()

    def _bounded(
        self,
        what: str,
        step: t.Callable[[], t.Any],
        longer_s: float = 0.0,
        end: t.Callable[[], object] = lambda: None,
    ) -> t.Any:
        return self._station.watchdog.call(what, step, longer_s, end)

    def _stop_if_asked(self) -> None:
        if self._station.job.stop.is_set():
            raise Interrupted()

    def _make(self, argv: list[str], node: str) -> None:
        command, held = Running(self._host, [*WITH_US, *argv]), self._station.held

        def step() -> None:
            held.confirm_node(node)
            self._ended(command.run(MKFS_S), argv)
            held.confirm_node(node)

        try:
            self._bounded("make a file system", step, MKFS_S, command.end)
        except FilesystemError:
            self._stop_if_asked()
            raise
        self._stop_if_asked()

    @staticmethod
    def _ended(done: Result, argv: list[str]) -> None:
        if done.rc:
            raise FilesystemError(done._replace(argv=argv).ended())

    def _run(self, argv: list[str], room: Room) -> None:
        self._ended(Running(self._host, [*WITH_US, *room.inside(argv)]).run(MOUNT_S), argv)

    def _mount(self, argv: list[str], node: str, room: Room) -> filesystems.Mounted:
        self._station.held.confirm_node(node)
        self._run(argv, room)
        self._mounted = True
        self._station.held.confirm_node(node)
        found = room.mounted(self._where)
        number = self._station.held.identity.major_minor
        if found is None or found.major_minor != number:
            at = found.major_minor if found else "nothing"
            raise FilesystemError(f"{at} is mounted on {self._where}, not {number} ({self._station.held.path})")
        lost = filesystems.missing_options(self._spec, found)
        if lost:
            raise FilesystemError(f"mounted without {', '.join(lost)}: this kernel does not support them")
        return found

    def _open(self) -> int:
        """fio's file: its blocks are there, and the fill gives them data."""
        path = t.cast(Room, self._room).path(os.path.join(self._where, FILE))
        handle = self._host.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL)
        try:
            os.posix_fallocate(handle, 0, self._size_bytes)
            os.fsync(handle)
        except OSError as error:
            os.close(handle)
            raise FilesystemError(
                f"a file of {self._size_bytes} B does not fit on its file system ({error.strerror}): lower "
                "active_range_pct"
            ) from None
        return handle

    def _unmount(self) -> None:
        handle, self._station.bench.file = self._station.bench.file, None
        if handle is not None:
            os.close(handle)
        room, self._room = self._room, None
        if room is not None:
            try:
                if self._mounted:
                    self._wipe.foreign = {*os.listdir(room.path(self._where))} - {FILE, LOST_FOUND}
                    self._run(["umount", self._where], room)
            finally:
                room.close()
        self._wipe.begin(self._station.held.descriptor())
