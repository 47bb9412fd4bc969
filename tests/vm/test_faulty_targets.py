# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An integrity test of a drive below which the guest's own kernel loses and changes data: dm-flakey. A device of device
mapper is no drive to the guard, nor is a loop device over one, so the drive is a file of a file system on it.

Follows: Documentation/admin-guide/device-mapper/dm-flakey.rst (drop_writes, corrupt_bio_byte).
"""

from __future__ import annotations

import contextlib
import re

import pytest
from hardware import NEIGHBOUR, PLAIN

NAME, LOOP = "ssdlab-flaky", "/dev/loop7"
FOLDER = "/mnt/ssdlab-flaky"
FILE = f"{FOLDER}/drive"
FILE_MIB, BLOCK, SECTORS = 32, 4096, 8
# What dm-flakey does all the time (up for 0 s, down for an hour) to a block of the file: its writes are dropped; the
# 1000th byte of what is read from it is 0, as it is while the block is blank.
FAULTS = {256: "1 drop_writes", 512: "5 corrupt_bio_byte 1000 r 0 0"}
EXTENT = re.compile(r"^ *[0-9]+: +([0-9]+)\.\. *([0-9]+): +([0-9]+)\.\.", re.MULTILINE)


def table(node, sectors, faults=()):
    """All of a drive, as it is but for faults: (the first sector, the feature)."""
    lines, end = [], 0
    for start, feature in sorted(faults):
        lines.append(f"{end} {start - end} linear {node} {end}")
        lines.append(f"{start} {SECTORS} flakey {node} {start} 0 3600 {feature}")
        end = start + SECTORS
    return "\n".join([*lines, f"{end} {sectors - end} linear {node} {end}", ""])


def sector(extents, block):
    """Where a block of a file lies, by filefrag."""
    found = [tuple(map(int, numbers)) for numbers in EXTENT.findall(extents)]
    (physical,) = [start + block - first for first, last, start in found if first <= block <= last]
    return physical * SECTORS


@pytest.fixture
def faulty(lab, guest):
    """The entry of a loop device over a file, of which device mapper spoils two blocks."""
    node = guest.device(PLAIN)
    sectors = int(guest.run(f"blockdev --getsz {node}").stdout)
    try:
        guest.run(f"modprobe -a dm-flakey loop && dmsetup create {NAME}", stdin=table(node, sectors))
        guest.run(
            f"mkfs.ext4 -qF -b {BLOCK} -O ^has_journal -E lazy_itable_init=0 /dev/mapper/{NAME} && mkdir -p {FOLDER} "
            f"&& mount /dev/mapper/{NAME} {FOLDER} && dd if=/dev/zero of={FILE} bs=1M count={FILE_MIB} oflag=direct",
            timeout_s=300,
        )
        extents = guest.run(f"sync; filefrag -v -b{BLOCK} {FILE}").stdout
        spoilt = table(node, sectors, [(sector(extents, block), feature) for block, feature in FAULTS.items()])
        guest.run(f"dmsetup load {NAME}", stdin=spoilt)
        # Its reads and writes have to reach the device below, and not the page cache.
        guest.run(f"dmsetup suspend {NAME} && dmsetup resume {NAME} && losetup --direct-io=on {LOOP} {FILE}")
        yield {"backing_file": FILE}
    finally:
        with contextlib.suppress(Exception):
            guest.run(f"losetup -d {LOOP}; udevadm settle; umount {FOLDER}; dmsetup remove --retry {NAME}")


def test_what_the_kernel_s_own_faulty_device_does_is_found_and_nothing_else(lab, guest, faulty):
    assert guest.run(f"cat /sys/block/{LOOP[5:]}/loop/dio").stdout.strip() == "1"
    lab.host["ssd_drives"] = [faulty]
    lab.vars["ssd_plan"] = [{"base": "integrity", "purge": False}]
    before = lab.hashes()
    code, output = lab.play("qualify")
    assert code != 0 and lab.journal("integrity"), output
    assert lab.summary()["verdicts"]["fail"] == 1, output
    found = lab.journal("integrity")[-1]
    kinds = {(block["offset_bytes"] // BLOCK, block["kind"]) for block in found["first"]}
    assert kinds == {(256, "blank"), (512, "bit_flips")} and found["complete"], found
    assert found["wrong_blocks"]["blank"] == found["passes"] == 2
    after = lab.hashes()
    assert after.pop(PLAIN) != before.pop(PLAIN)
    assert after == before and NEIGHBOUR in after
