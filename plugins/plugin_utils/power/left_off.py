# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which hosts a power cut left off, as the controller was killed between off and on: a file for each, written before
the power goes, and empty again once it is back. While a play works on the host, it holds the file locked.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from dataclasses import dataclass

from ...module_utils.core.files import own_slug, sync_folder
from ...module_utils.records import base

# Below ssd_results_dir: of all runs, as one of them has to be switched on before another can begin.
FOLDER = "switched-off"
HOW_ON = "restore.yml switches it on, and so does the next play of qualify.yml with ssd_mode=destructive"


@dataclass(frozen=True)
class LeftOff:
    """A host that is switched off: by which run and when, how long it may take to come back, and what DMI said on it,
    by which its BMC is proved again.
    """

    run_id: str
    time: str
    back_s: float
    uuid: str | None
    serials: list[str]

    @property
    def text(self) -> str:
        """Return it as it is told."""
        return f"run {self.run_id} cut its power at {self.time}, and ended before it had switched it on again"


class Mark:
    """The file of one host."""

    def __init__(self, results_dir: str, host: str) -> None:
        self.path = os.path.join(results_dir, FOLDER, f"{own_slug(host)}.json")
        self._handle: int | None = None

    def set(self, left: LeftOff) -> None:
        """Write it, and hold it. Raises OSError."""
        os.makedirs(os.path.dirname(self.path), exist_ok=True)
        self._handle = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        fcntl.flock(self._handle, fcntl.LOCK_EX)
        os.ftruncate(self._handle, 0)
        os.pwrite(self._handle, json.dumps(base.to_json(left)).encode(), 0)
        os.fsync(self._handle)
        sync_folder(os.path.dirname(self.path))

    def find(self) -> LeftOff | None:
        """Return what a play that was killed left, and hold it; None: nothing, or a play works on the host."""
        try:
            self._handle = os.open(self.path, os.O_RDWR | os.O_CLOEXEC)
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with open(self.path, encoding="utf-8") as source:
                return base.parse(LeftOff, json.load(source))
        except (OSError, ValueError):
            self.release()
            return None

    def clear(self) -> None:
        """Empty what is held: the host is on."""
        if self._handle is not None:
            with contextlib.suppress(OSError):
                os.ftruncate(self._handle, 0)
        self.release()

    def release(self) -> None:
        """Hold it no more; it stays."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None


def said(results_dir: str, host: str) -> str:
    """Return what is known of the power of a host that is silent, and what to do; "": nothing."""
    mark = Mark(results_dir, host)
    left = mark.find()
    mark.release()
    return f"{left.text}; {HOW_ON}" if left else ""
