# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A machine of its own for each process that runs tests, so that several can run at once (pytest-xdist).

Its own are: the collection's locks and state, /dev/disk, the kernel's memory settings, and a range of loop devices. It
is a mount namespace; the kernel, its processes and the other processes' drives are still there for every probe to see,
as on a busy server.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import subprocess
import tempfile
from pathlib import Path

import leftovers

CLONE_NEWNS = 0x00020000  # linux/sched.h
MS_SLAVE, MS_SHARED, MS_BIND = 1 << 19, 1 << 20, 1 << 12  # linux/mount.h
LOOP_CTL_ADD, LOOP_CTL_REMOVE = 0x4C80, 0x4C81  # linux/loop.h
# Empty in each machine: locks, nodes and state of host jobs, and links that tests make.
EMPTY = ("/run/ssdlab-fleet", "/dev/ssdlab-fleet", "/var/lib/ssdlab-fleet", "/dev/disk")
# Host jobs set these and put them back, each believing that it is alone.
MEMORY_SETTINGS = "/proc/sys/vm"
# Podman wants to see the network namespaces of all containers, those of other machines too.
SHARED = "/run/netns"
CLAIMS = Path("/dev/shm")
# The kernel's block devices are everybody's, so what keeps two looks at one apart is too.
SHARED_LOOKS = CLAIMS / "ssdlab-fleet-looks"
# Far above the numbers that `losetup --find` gives out, so that a number which a test detaches is still free when it
# attaches another file to it.
FIRST_LOOP, LOOPS = 1000, 100
# It gives out the lowest number that the kernel has and nobody uses: there must always be one below ours.
LOW_LOOPS = 32

_claim = None  # (the lock file, the numbers), once a drive was made


def enter() -> None:
    """Give this process, and all that it will start, a machine of their own."""
    _share()
    _call("unshare", CLONE_NEWNS)  # os.unshare came with Python 3.12
    leftovers.claim_mounts()
    for where in _mounts():
        if where != SHARED and not where.startswith(SHARED + "/"):
            with contextlib.suppress(OSError):  # below another mount, out of reach
                _mount(None, where, MS_SLAVE)
    for folder in EMPTY:
        os.makedirs(folder, exist_ok=True)
        _run("mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", folder)
    os.mkdir("/dev/disk/by-id")
    SHARED_LOOKS.mkdir(mode=0o700, exist_ok=True)
    lock_folder("/run/ssdlab-fleet")
    _copy_over(MEMORY_SETTINGS)


def lock_folder(folder: os.PathLike | str) -> str:
    """Make a folder for locks of a test's own, whose looks are everybody's all the same; its path."""
    looks = os.path.join(folder, "looks")
    os.makedirs(folder, mode=0o700, exist_ok=True)
    os.makedirs(looks, mode=0o700, exist_ok=True)
    if os.geteuid() == 0 and not os.path.ismount(looks):
        _mount(str(SHARED_LOOKS), looks, MS_BIND)
    return str(folder)


@contextlib.contextmanager
def real_memory_settings():
    """The kernel's own while the block runs: for one process at a time."""
    _run("umount", MEMORY_SETTINGS)
    try:
        yield
    finally:
        _copy_over(MEMORY_SETTINGS)


def attach(file: os.PathLike | str, *options: str) -> str:
    """Attach a file to a loop device that no other machine uses, with these options of losetup; its path."""
    for number in _loops():
        if not os.path.exists(f"/sys/block/loop{number}/loop"):
            for request in (
                LOOP_CTL_REMOVE,
                LOOP_CTL_ADD,
            ):  # a new device has the kernel's own queue settings, not those of an earlier test
                _control(request, range(number, number + 1))
            if not Path(file).is_block_device():  # which lies on a file that was claimed
                leftovers.claim(Path(file).parent)
            _run("losetup", *options, f"/dev/loop{number}", str(file))
            return f"/dev/loop{number}"
    raise RuntimeError(f"all {LOOPS} loop devices of this machine are in use")


def leave() -> None:
    """Remove the loop devices that are no longer in use."""
    if _claim:
        _control(LOOP_CTL_REMOVE, _loops())


def _control(request: int, numbers: range) -> None:
    """Add or remove loop devices; those that are there, or in use, stay as they are."""
    with open("/dev/loop-control", "rb") as control:
        for number in numbers:
            with contextlib.suppress(OSError):
                fcntl.ioctl(control, request, number)


def _no_link(path: str, flags: int) -> int:
    """Anybody may put a link into this folder."""
    return os.open(path, flags | os.O_NOFOLLOW, 0o644)


def _loops() -> range:
    """The first range of numbers that nobody else has claimed; the claim ends with this process."""
    global _claim
    first = FIRST_LOOP
    while _claim is None:
        lock = open(CLAIMS / f"ssdlab-fleet-loops-{first}.lock", "a", opener=_no_link)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _claim = lock, range(first, first + LOOPS)
            _control(LOOP_CTL_ADD, range(LOW_LOOPS))
        except BlockingIOError:
            lock.close()
            first += LOOPS
    return _claim[1]


def _share() -> None:
    """Make SHARED a mount that all machines have in common, as ip-netns(8) does."""
    with (CLAIMS / "ssdlab-fleet-netns.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        os.makedirs(SHARED, exist_ok=True)
        if SHARED not in _mounts():
            _mount(SHARED, SHARED, MS_BIND)
        _mount(None, SHARED, MS_SHARED)


def _mounts() -> list[str]:
    """Where something is mounted."""
    return [line.split(" ")[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]


def _mount(source: str | None, where: str, flags: int) -> None:
    _call("mount", source and source.encode(), where.encode(), None, ctypes.c_ulong(flags), None)


def _call(name: str, *arguments: object) -> None:
    """A call of the C library's; OSError when it fails."""
    if getattr(ctypes.CDLL(None, use_errno=True), name)(*arguments):
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")


def _copy_over(folder: str) -> None:
    """Mount a copy of the folder's files over it; those that can only be written are left out."""
    with tempfile.TemporaryDirectory() as copy:
        _run("mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", copy)
        for path in Path(folder).iterdir():
            with contextlib.suppress(OSError):
                text = path.read_bytes()
                Path(copy, path.name).write_bytes(text)
                os.chmod(Path(copy, path.name), path.stat().st_mode)
        _run("mount", "--move", copy, folder)


def _run(*argv: str) -> None:
    subprocess.run(argv, check=True, stdin=subprocess.DEVNULL)
