# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the guard sees of real daemons and of a drive that tells where it holds data, in a real kernel."""

from __future__ import annotations

import json

import false_refusals_guest
import look_guest
import pytest
from hardware import STAGED

MIB = 1 << 20
MAKE = """
modprobe scsi_debug lbpu=1 lbprz=1 dev_size_mb=256 && udevadm settle
drive=/dev/$(ls /sys/bus/pseudo/drivers/scsi_debug/adapter0/host*/target*/*:*/block)
dd if=/dev/urandom of=$drive bs=4k count=2 seek=25600 oflag=direct status=none
dd if=/dev/urandom of=$drive bs=1M count=1 seek=200 oflag=direct status=none
echo $drive
"""
LOOK = """
import json, os, sys
sys.path.insert(0, "/var/tmp/look")
from ansible_collections.ssdlab.fleet.plugins.module_utils.core.host import Host
from ansible_collections.ssdlab.fleet.plugins.module_utils.drive import identity
from ansible_collections.ssdlab.fleet.plugins.module_utils.guard import allocation_map, data_scan, facts
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.found_drives import Identity
host, path = Host(), sys.argv[1]
seen = facts.Facts(os.path.basename(path), path, "drive", identity.identity(host, os.path.basename(path)))
allocation_map.from_scsi(host, seen)
data_scan.whole_in_time = lambda *_drive: False
handle = os.open(path, os.O_RDONLY | os.O_DIRECT)
size = seen.identity.size_bytes
found = data_scan.scan(handle, size, data_scan.Terms(1.0), aim=seen.allocated)
print(json.dumps([seen.allocated, seen.allocated_bytes, found.foreign, found.aimed_blocks]))
"""


@pytest.mark.long
def test_daemons_that_look_at_drives_are_no_users(guest):
    """A short sample of tests/bench/false_refusals_guest.py: five drives, smartd, multipathd and udev at work."""
    guest.blank(*STAGED[:5])
    look_guest.install(guest)
    with false_refusals_guest.live_daemons(guest):
        seen = false_refusals_guest.looks(guest, STAGED[:5], 2)
    assert seen.refusals == [[]] * 10
    assert all(seen.opened.values()), f"no daemon opened a drive, so this proves nothing: {seen.opened}"


@pytest.mark.long
def test_a_thin_drive_tells_the_look_where_it_holds_data(guest):
    """GET LBA STATUS of a real kernel's drive, by the real sg_get_lba_status."""
    look_guest.install(guest)
    drive = guest.run(MAKE).stdout.strip()
    try:
        allocated, allocated_bytes, foreign, aimed = json.loads(guest.run(f"python3 - {drive}", stdin=LOOK).stdout)
    finally:
        guest.run("modprobe -r scsi_debug", check=False)
    assert allocated == [[100 * MIB, 8192], [200 * MIB, MIB]] and allocated_bytes == MIB + 8192
    assert foreign // MIB in (100, 200) and aimed > 0
