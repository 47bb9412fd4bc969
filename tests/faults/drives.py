# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The drives of the bench: loop devices, of which one kind can be made to swallow its I/O."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import typing as t
from pathlib import Path

import product

DRIVE_BYTES = 16 << 20


class LoopDrive:
    """A loop device of this bench; its backing file is its name."""

    def __init__(self, folder: Path, name: str) -> None:
        self.file = folder / (name + ".img")
        with open(self.file, "wb") as out:
            out.truncate(DRIVE_BYTES)
        argv = ["losetup", "--find", "--show", "--direct-io=on", str(self.file)]
        self.path = subprocess.run(argv, check=True, capture_output=True, text=True).stdout.strip()
        self.name, self.label = os.path.basename(self.path), name

    @property
    def selector(self) -> dict[str, t.Any]:
        return {"backing_file": str(self.file), "ssd_overwrite_data": True}

    def let_go_on(self) -> None:
        """Nothing holds it up."""

    def detach(self) -> None:
        subprocess.run(["losetup", "--detach", self.path], check=False)


class ServedDrive(LoopDrive):
    """A loop device over FUSE and nbdkit, so that a stopped nbdkit is a drive that swallows its I/O."""

    def __init__(self, folder: Path, name: str) -> None:
        sys.path.insert(0, str(product.ROOT / "scripts" / "simulator"))
        import simulated_ssd

        self._simulator, self._folder, self.label = simulated_ssd, folder / "served", name
        record = simulated_ssd.create(self._folder, name, ["memory", str(DRIVE_BYTES)])
        self.file, self.path = Path(record["backing_file"]), record["device"]
        self.name = os.path.basename(self.path)
        self.pid = int((self._folder / (name + ".pid")).read_text())

    def let_go_on(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGCONT)

    def detach(self) -> None:
        self.let_go_on()
        self._simulator.destroy(self._folder, self.label)
