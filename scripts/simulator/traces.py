# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What there is of simulated SSDs on this machine: records, processes, loop devices, mounts. It takes nothing for a
drive's that is not.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import stat
import subprocess
import time
from pathlib import Path

# The mounts' name in /proc/self/mountinfo: nobody else's mount is ever taken down.
FILE_SYSTEM = "simulated-ssd"
RECORD_BYTES_MAX = 4096


def _record(directory, name):
    """What a drive's record says: its marker, and where it is, as a copy elsewhere is no record."""
    return {"made_by": "ssdlab.fleet simulated-ssd", "backing_file": f"{directory}/{name}/drive"}


def write_record(directory, name):
    """Note the drive before anything of it is started. Raises FileExistsError."""
    with open(f"{directory}/{name}.json", "x", encoding="utf-8") as file:
        file.write(json.dumps(_record(directory, name)))


def recorded(directory):
    """The names of the drives that have a record in the directory."""
    return {path.stem for path in directory.glob("*.json") if _is_record(path)}


def _is_record(path):
    # ValueError: no UTF-8, no JSON; RecursionError: [[[[ ….
    with contextlib.suppress(OSError, ValueError, RecursionError):
        if _is_own_file(path) and path.lstat().st_size <= RECORD_BYTES_MAX:
            return json.loads(path.read_bytes()) == _record(path.parent, path.stem)
    return False


def _is_own_file(path):
    """Whether it is a file or socket of this user's, and no link."""
    with contextlib.suppress(OSError):
        status = path.lstat()
        return status.st_uid == os.geteuid() and (stat.S_ISREG(status.st_mode) or stat.S_ISSOCK(status.st_mode))
    return False


def remove_files(directory, name):
    """Remove the files of a drive that is gone; the record last: while anything is left, the drive is found again."""
    record = Path(f"{directory}/{name}.json")
    for suffix in (".log", ".pid", ".socket", ".power"):
        path = Path(f"{directory}/{name}{suffix}")
        if _is_own_file(path):
            path.unlink()
    if _is_record(record):
        record.unlink()


def processes(backing_file, pid_file):
    """Living nbdfuse and nbdkit of one drive: those whose own arguments name its file."""
    pids = (int(entry.name) for entry in Path("/proc").glob("[0-9]*"))
    return [pid for pid in pids if _is_ours(pid, backing_file, pid_file)]


def _is_ours(pid, backing_file, pid_file):
    try:
        program, *arguments = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return False
    return os.path.basename(program) in ("nbdfuse", "nbdkit") and (backing_file in arguments or pid_file in arguments)


def signal_process(pid, number, backing_file, pid_file):
    """Signal the process, by a handle opened before the last look: a pid used again by another process is safe."""
    with contextlib.suppress(ProcessLookupError):
        handle = os.pidfd_open(pid)
        try:
            if _is_ours(pid, backing_file, pid_file):
                signal.pidfd_send_signal(handle, number)
        finally:
            os.close(handle)


def loops(backing_file):
    found = []
    for path in Path("/sys/block").glob("loop*/loop/backing_file"):
        with contextlib.suppress(OSError):
            if path.read_text().rstrip("\n").removesuffix(" (deleted)") == backing_file:
                found.append(f"/dev/{path.parts[3]}")
    return found


def mounted_files(directory):
    """The files that nbdfuse shows right below the directory."""
    found = []
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        fields = line.split()
        point = Path(re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), fields[4]))
        if point.parent == directory and FILE_SYSTEM in line.partition(" - ")[2].split():
            found.append(point / "drive")
    return found


def unmount(mount):
    return subprocess.run(["umount", str(mount)], capture_output=True, check=False).returncode == 0


def poll(condition, timeout_s):
    deadline_s = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline_s:
            return False
        time.sleep(0.05)
    return True
