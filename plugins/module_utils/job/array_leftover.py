# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The array that a run made on its host: noted before it is there, so that whoever comes after a dead job stops it."""

from __future__ import annotations

import contextlib
import json
import os
import time
import typing as t

from ..core.files import Damaged, now, read_json, write_atomic
from ..core.host import BOOT_ID, Host
from ..records import base
from ..records.run_files import MadeArray
from ..records.tuning import Setting
from ..run.folder import RunDir
from ..tools import mdadm

FILE = "array.json"
# udev looks at a device that somebody closed after writing, and keeps it open meanwhile.
STOP_ATTEMPTS, STOP_PAUSE_S = 20, 0.5
STOP_S = 60.0


def path_of(run_dir: RunDir) -> str:
    """Return the file of a run that has an array; there is none without."""
    return os.path.join(run_dir.path, FILE)


def note(host: Host, run_dir: RunDir, name: str, members: t.Iterable[str]) -> None:
    """Remember an array (its kernel name, the device numbers of its members) before it is made. Raises OSError."""
    record = MadeArray(host.get(BOOT_ID), name, sorted(members), now())
    write_atomic(path_of(run_dir), json.dumps(base.to_json(record), indent=1) + "\n")


def is_left(run_dir: RunDir) -> bool:
    """Return whether a run may have left an array."""
    return os.path.lexists(path_of(run_dir))


def stop(host: Host, run_dir: RunDir) -> list[Setting]:
    """Stop the array that a run noted, if it is there and still that one, and forget it: what was done, as settings.

    An array of other drives, or with a superblock, is somebody else's and stays. After a reboot none is left.
    """
    try:
        written = read_json(path_of(run_dir))
        record = None if written is None else base.parse(MadeArray, written)
    except (Damaged, base.WrongShape) as error:
        advice = "stop our array, if /proc/mdstat has one, and remove this file"
        return [_done(path_of(run_dir), "failed", f"{error}; {advice}")]
    if record is None:
        return []
    device = "/dev/" + record.name
    said, was_there = "", False
    for attempt in range(STOP_ATTEMPTS):
        if record.boot_id != host.get(BOOT_ID) or not _is_it(mdadm.read_array(host, record.name), record):
            break
        time.sleep(STOP_PAUSE_S * bool(attempt))
        was_there = True
        said = host.run(mdadm.stop_argv(device), STOP_S).stderr.strip()
    else:
        last = (said.splitlines() or ["it said nothing"])[-1]
        return [_done(device, "failed", f"mdadm --stop did not stop it: {last:.300}")]
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path_of(run_dir))
    return [_done(device, "restored", "the array was stopped")] if was_there else []


def _is_it(found: mdadm.Array | None, record: MadeArray) -> bool:
    """A member that was pulled since is missing in it."""
    return found is not None and found.metadata == "none" and found.members <= set(record.members)


def _done(path: str, outcome: str, message: str) -> Setting:
    return Setting("", "array", path, None, outcome=outcome, message=message)
