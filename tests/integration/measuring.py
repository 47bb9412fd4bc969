# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Single cells on a drive of the test's own, by the workbench that host jobs use, for tests and benches: no guard, no
purge, no rounds.
"""

from __future__ import annotations

import dataclasses
import os
import threading

from ansible_collections.ssdlab.fleet.plugins.module_utils.core.host import Host
from ansible_collections.ssdlab.fleet.plugins.module_utils.drive import identity
from ansible_collections.ssdlab.fleet.plugins.module_utils.measure import fio
from ansible_collections.ssdlab.fleet.plugins.module_utils.measure.fio_runner import Workbench
from ansible_collections.ssdlab.fleet.plugins.module_utils.records import base
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.planned_cell import PlannedCell
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan import cells as celling
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan import jobs


class OpenDrive:
    """A drive held open exclusively, as the guard leaves it."""

    def __init__(self, path):
        self.path = path
        self.identity = identity.identity(Host(), os.path.basename(path))
        self._handle = os.open(path, os.O_RDWR | os.O_EXCL | os.O_DIRECT)

    def descriptor(self):
        return self._handle

    def close(self):
        os.close(self._handle)


class Measuring:
    """Cells on one drive, one after the other."""

    def __init__(self, path, folder, host=None):
        self._drive = OpenDrive(path)
        raw = folder / "raw" / "drive"
        raw.mkdir(parents=True, exist_ok=True)
        self.bench = Workbench(host or Host(), self._drive, fio.Runner(threading.Event()), str(raw))
        self._count = 0

    def cell(self, **changes):
        """Run a cell, of 4 KiB random writes at depth 1 for a second but for `changes`; what the
        workbench tells of it.
        """
        cell = {
            "access": "random",
            "block_size_bytes": 4096,
            "read_pct": 0,
            "threads": 1,
            "queue_depth": 1,
            "runtime_s": 1,
            **changes,
        }
        size = self._drive.identity.size_bytes
        planned = base.parse(PlannedCell, {"id": "", **cell})
        planned = dataclasses.replace(planned, id=celling.cell_id(planned))
        planned = jobs.with_job(planned, "libaio", [jobs.section_of(planned, size)])
        self._count += 1
        return self.bench.cell(f"cell-{self._count}", planned, size, self._count).details

    def close(self):
        self.bench.close()
        self._drive.close()


def found(result, *levels):
    """The causes of a cell: {cause: its messages}, of these levels."""
    texts = {}
    for item in result.causes:
        if item.level in (levels or ("disturbs",)):
            texts.setdefault(item.cause, []).append(item.message)
    return {cause: "; ".join(messages) for cause, messages in texts.items()}
