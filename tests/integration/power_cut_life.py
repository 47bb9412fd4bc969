# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host job in a process of its own, in a boot that it is told of: it is killed where a host would lose its power.

Usage: power_cut_life.py RUN_FOLDER BOOT_ID LOCK_FOLDER
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "playbooks" / "collections"))

from ansible_collections.ssdlab.fleet.plugins.module_utils.core import locks
from ansible_collections.ssdlab.fleet.plugins.module_utils.core.host import BOOT_ID, Host
from ansible_collections.ssdlab.fleet.plugins.module_utils.job import engine, power_cut
from ansible_collections.ssdlab.fleet.plugins.module_utils.run.folder import RunDir


class Booted(Host):
    """This machine in a boot of this id."""

    def __init__(self, boot_id):
        super().__init__()
        self._boot_id = boot_id

    def read(self, path):
        return self._boot_id if path == BOOT_ID else super().read(path)


if __name__ == "__main__":
    locks.LOCK_DIR, power_cut.APPEARS_S = sys.argv[3], 3
    sys.exit(engine.HostJob(RunDir.at(sys.argv[1]), Booted(sys.argv[2])).run())
