# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Take away what interrupted tests left in the folders that they claimed: loop devices with their file there and what
is built on them, containers, mounts, and the memory of /dev/shm. What lies elsewhere belongs to others.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
import subprocess
import tempfile
import typing as t
from pathlib import Path

# The file that `claim` writes to; scripts/run_checks.py sets it for each check.
FOLDERS = "SSDLAB_FLEET_FOLDERS"
NAMESPACE = "mounts of "
MEMORY = Path("/dev/shm")
# tests/containers/bed.py: the folder of a bed, and the label of its containers.
BED, BED_LABEL = "ssdlab-fleet-bed-", "ssdlab-fleet-bed"
# tests/integration/own_machine.py: who uses the numbers from one on has its lock.
LOCK, LOOPS = re.compile(r"ssdlab-fleet-loops-(\d+)\.lock"), 100
LOOP_CTL_REMOVE = 0x4C81  # linux/loop.h
# plugins/module_utils/job/launch.py
JOB_UNIT = "/ssdlab-fleet-"


def claim(folder: os.PathLike | str) -> None:
    """Say that a folder of temporary files, and all that will be in it, is a test's own. Without scripts/test nobody
    listens.
    """
    path = Path(folder).resolve()
    if path in (MEMORY, Path(tempfile.gettempdir()).resolve()) or len(path.parts) < len(MEMORY.parts):
        raise ValueError(f"{path} is not one test's folder")
    _write(str(path))


def claim_mounts() -> None:
    """Say that the mount namespace of this process is a test's own."""
    _write(f"{NAMESPACE}{os.getpid()}")


def _write(line: str) -> None:
    if FOLDERS in os.environ:
        with open(os.environ[FOLDERS], "a", encoding="utf-8") as claims:
            claims.write(f"{line}\n")


def _lines(claims: Path) -> list[str]:
    return claims.read_text(encoding="utf-8").splitlines() if claims.exists() else []


def claimed(claims: Path) -> list[Path]:
    """The folders that were claimed in a file."""
    return [Path(line) for line in _lines(claims) if not line.startswith(NAMESPACE)]


def with_mounts(claims: Path) -> list[int]:
    """The pids of the processes that claimed their mounts."""
    return [int(line.removeprefix(NAMESPACE)) for line in _lines(claims) if line.startswith(NAMESPACE)]


def end_devices(folders: t.Collection[Path]) -> None:
    """Release the loop devices with their files in these folders, from the top: while what serves the files lives, as
    a device that reads a dead file system's file has no such path any more.
    """
    for device in reversed(loop_devices(folders)):
        end_holders(device)
        _quietly("losetup", "--detach", f"/dev/{device}")


def loop_devices(folders: t.Collection[Path]) -> list[str]:
    """The names of these devices, those that lie on others of them last."""
    behind = {}
    for path in Path("/sys/block").glob("loop*/loop/backing_file"):
        with contextlib.suppress(OSError):
            behind[path.parts[3]] = Path(path.read_text(errors="replace").rstrip("\n").removesuffix(" (deleted)"))
    found: list[str] = []
    while True:
        nodes = {Path("/dev", name) for name in found}
        more = [
            name
            for name, file in behind.items()
            if name not in found and (file in nodes or any(folder in file.parents for folder in folders))
        ]
        if not more:
            return found
        found += more


def end_holders(device: str) -> None:
    """Stop the arrays and mappings that were made of a device."""
    for holder in sorted(path.name for path in Path("/sys/block", device, "holders").glob("*")):
        end_holders(holder)
        stop = ("mdadm", "--stop") if holder.startswith("md") else ("dmsetup", "remove", "--force")
        _quietly(*stop, f"/dev/{holder}")


def remove_idle_loops() -> None:
    """Remove the loop devices without a file that no process of tests claims any more."""
    for path in MEMORY.glob("ssdlab-fleet-loops-*.lock"):
        number = LOCK.fullmatch(path.name)
        if number is None:
            continue
        with contextlib.suppress(OSError), _opened(path) as lock, open("/dev/loop-control", "rb") as control:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            for each in range(int(number[1]), int(number[1]) + LOOPS):
                with contextlib.suppress(OSError):
                    fcntl.ioctl(control, LOOP_CTL_REMOVE, each)


def _opened(path: Path) -> t.BinaryIO:
    """A lock's file as it is: anybody may put a link into this folder."""
    return os.fdopen(os.open(path, os.O_RDWR | os.O_NOFOLLOW), "rb+")


def end_mounts(folders: t.Collection[Path]) -> None:
    """Unmount what is mounted below these folders, the last one first."""
    points = [line.split(" ")[4] for line in Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines()]
    for point in reversed(points):
        path = Path(re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), point))
        if any(folder in path.parents for folder in folders):
            _quietly("umount", "--lazy", str(path))


def end_containers(folders: t.Iterable[Path]) -> None:
    """Remove the containers of beds that are still there."""
    for folder in folders:
        if folder.name.startswith(BED) and folder.exists():
            label = f"label={BED_LABEL}={folder.name.removeprefix(BED)}"
            names = _quietly("podman", "ps", "--all", "--quiet", "--filter", label).split()
            if names:
                _quietly("podman", "rm", "--force", "--time", "0", "--volumes", *names)


def jobs_in(folders: t.Collection[Path]) -> list[int]:
    """The pids of host jobs that work in these folders and run in units of systemd, as nobody's children."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            said = os.fsdecode((entry / "cmdline").read_bytes())
            if JOB_UNIT in (entry / "cgroup").read_text() and any(f"{folder}/" in said for folder in folders):
                found.append(int(entry.name))
    return found


def end_files(folders: t.Iterable[Path]) -> None:
    """Give the memory back; what lies on disks is left to be looked at."""
    for folder in folders:
        if MEMORY in folder.parents:
            shutil.rmtree(folder, ignore_errors=True)


def _quietly(*argv: str) -> str:
    """Run a command for what it does, if it can; what it says."""
    try:
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout
