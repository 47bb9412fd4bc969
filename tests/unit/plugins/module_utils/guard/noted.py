# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A file that stands for a drive to which runs of ours wrote, and its entry in the ledger."""

from __future__ import annotations

import json
import os

from ansible_collections.ssdlab.fleet.plugins.module_utils.guard import ledger, ledger_format, write_counters

SIZE = 8 << 20
IDENTITY = {
    "serial": "S1",
    "wwn": "eui.01",
    "model": "M",
    "backing_file": None,
    "size_bytes": SIZE,
    "logical_block_size_bytes": 512,
    "kernel_name": "nvme0n1",
    "diskseq": 7,
}


class Drive:
    """A drive that is a file, and its counters in sysfs."""

    def __init__(self, fake, path):
        self.host, self.path, self.state_dir = fake, path, str(path.parent / "state")
        os.makedirs(self.state_dir, mode=0o755)
        self.boot("one")
        self.counting("1")
        self.count(100)

    def boot(self, boot_id):
        self.host.put("/proc/sys/kernel/random/boot_id", boot_id)

    def counting(self, switch):
        self.host.put("/sys/block/nvme0n1/queue/iostats", switch)

    def count(self, sectors):
        self.host.put("/sys/block/nvme0n1/stat", f"1 0 8 0 2 0 {sectors} 0 0 0 0 0 0 40 0 0 0\n")

    def write(self, offset, data):
        with open(self.path, "r+b") as file:
            file.seek(offset)
            file.write(data)

    def run(self, run_id="r", sectors=200, reason="", blank=False):
        before = ledger.begin(self.host, self.state_dir, IDENTITY, run_id)
        self.count(sectors)
        ledger.end(self.host, before, IDENTITY, reason, blank)

    def seen(self, identity=None):
        """What the ledger says, if it has the drive."""
        entry = ledger_format.read(self.state_dir, identity or IDENTITY)
        return None if entry is None else ledger_format.known(entry)

    def untouched(self, identity=None):
        entry = ledger_format.read(self.state_dir, identity or IDENTITY)
        return write_counters.untouched(self.host, entry, identity or IDENTITY)

    @property
    def file(self):
        return ledger_format.path_of(self.state_dir, IDENTITY)


def rewrite(left, **fields):
    with open(left.file) as source:
        entry = json.load(source)
    with open(left.file, "w") as out:
        json.dump(dict(entry, **fields), out)
