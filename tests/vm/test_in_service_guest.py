# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A run with ssd_mode: read_only on an NVMe drive with a mounted file system: what is on it, and the kernel's count of
what was written to it, stay as they were.
"""

from __future__ import annotations

import pytest
from hardware import PLAIN
from lab import Lab

CELL = {"access": "random", "block_size": "4KiB", "read_pct": 100, "rate_iops": 20, "runtime_s": 5}
PLAN = [
    "self-test-short",
    {"base": "in-service/service-latency", "cells": [CELL], "rounds": {"max": 2}},
    {"base": "in-service/scrub", "scrub": {"rate_mib_s": 4, "duration_s": 4}},
]
MAKE = (
    "mkfs.ext4 -q -E lazy_itable_init=0,lazy_journal_init=0 $1 && mkdir -p /mnt/service && "
    "mount -o noatime $1 /mnt/service && head -c 4M /dev/urandom > /mnt/service/data && sync && sleep 6 && sync"
)


@pytest.fixture(name="node")
def fixture_node(guest):
    node = guest.namespaces()[PLAIN, 1]
    try:
        guest.run(f"set -- {node}; {MAKE}")
        yield node
    finally:
        guest.run(f"umount /mnt/service; wipefs -qaf {node}; blkdiscard -f {node}", check=False)


@pytest.mark.long
def test_a_mounted_nvme_drive_is_only_read(guest, node, tmp_path):
    lab = Lab(guest, tmp_path, "in-service")
    lab.host = {"ssd_service_drives": [{"serial": PLAIN}]}
    lab.vars.update({"ssd_mode": "read_only", "ssd_plan": PLAN, "ssd_criteria": []})

    def counted():
        """I/Os and sectors written, discards and flushes, by the kernel."""
        stat = guest.run(f"cat /sys/block/{node.rpartition('/')[2]}/stat").stdout.split()
        return [stat[place] for place in (4, 6, 11, 13, 15) if place < len(stat)]

    def digests():
        """Of the file, and of all blocks; flushes."""
        return guest.run("sha256sum /mnt/service/data").stdout, lab.hashes()[PLAIN]

    held, written = digests(), counted()
    code, output = lab.play("qualify")
    assert code == 0 and counted() == written and digests() == held, output
    (drive,) = lab.summary()["drives"]
    tests = {test["test"]: test for test in drive["tests"]}
    assert drive["verdict"] == "pass" and tests["service-latency"]["metrics"]["read_iops"] > 0
    assert "could be read" in " ".join(tests["scrub"]["reasons"])
    # One of the two found the drive's self-test, or that it has none.
    assert "self-test-short" in tests or "the drive has no self-tests" in output, output
