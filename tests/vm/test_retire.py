# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""retire.yml with a real kernel: volume groups, crypt mappings and arrays on retired drives, and a volume that spans
one that is not.
"""

from __future__ import annotations

import contextlib

import look_guest
import pytest
from hardware import STAGED
from lab import Lab

CAKE, CAKE_TWIN, CRYPT, SPAN, SPAN_TWIN, MOUNTED = STAGED[:6]
LUKS = "cryptsetup -q {0} --key-file /root/key"
FORMAT_LUKS = LUKS.format("luksFormat --type luks2 --pbkdf pbkdf2 --pbkdf-force-iterations 1000")
STAGES = (
    (
        (CAKE, CAKE_TWIN),
        f"mdadm --create /dev/md7 --run --quiet --level=1 --metadata=1.2 --assume-clean --raid-devices=2 $1 $2 && "
        f"{FORMAT_LUKS} /dev/md7 && {LUKS.format('open')} /dev/md7 cake && pvcreate -q /dev/mapper/cake && "
        "vgcreate -q cake /dev/mapper/cake && lvcreate -qy -n one -l 40%FREE cake && "
        "lvcreate -qy -n two -l 40%FREE cake",
        "vgchange -qan cake; cryptsetup close cake; mdadm --stop --quiet /dev/md7",
    ),
    ((CRYPT,), f"{FORMAT_LUKS} $1 && {LUKS.format('open')} $1 plain", "cryptsetup close plain"),
    (
        (SPAN, SPAN_TWIN),
        "pvcreate -q $1 $2 && vgcreate -q span $1 $2 && lvcreate -qy -n all -l 100%FREE span",
        "vgchange -qan span",
    ),
    (
        (MOUNTED,),
        "pvcreate -q $1 && vgcreate -q used $1 && lvcreate -qy -n one -l 50%FREE used && mkfs.ext4 -q /dev/used/one"
        " && mkdir -p /mnt/used && mount /dev/used/one /mnt/used",
        "umount /mnt/used; vgchange -qan used",
    ),
)
ACTIVE = "ls /dev/mapper; cat /proc/mdstat"
# Holds drives for reads all at once, and lets go of them: what ssd_parallel_drives: auto does before the first purge.
HOLD = """
import sys
sys.path.insert(0, "/var/tmp/look")
from ansible_collections.ssdlab.fleet.plugins.module_utils.core.host import Host
from ansible_collections.ssdlab.fleet.plugins.module_utils.drive import entry, identity
from ansible_collections.ssdlab.fleet.plugins.module_utils.guard import data_scan, held
from ansible_collections.ssdlab.fleet.plugins.module_utils.records import base
host, terms, drives = Host(), data_scan.Terms(1.0), []
every = [entry.parse({"serial": serial, "retired": True}) for serial in sys.argv[2:]]
for one in every:
    beside = [other for other in every if other is not one]
    expected = base.to_json(identity.identity(host, *identity.find(host, one)))
    named = {"entry": one, "expected": expected, "beside": beside}
    drives.append(held.DriveToRead(host, named, {}, True, sys.argv[1], terms))
    drives[-1].take()
for drive in drives:
    drive.release()
"""


@pytest.fixture(scope="module")
def staged(guest):
    with contextlib.ExitStack() as undo:
        guest.run("echo -n secret > /root/key")
        found = guest.namespaces()
        blank = [found[serial, 1] for serials, *_scripts in STAGES for serial in serials]
        undo.callback(
            guest.run,
            f"udevadm settle; for node in {' '.join(blank)}; do wipefs -qaf $node; blkdiscard -f $node; done",
            check=False,
        )
        for serials, make, take_apart in STAGES:
            undo.callback(guest.run, take_apart, check=False)
            guest.run(f"set -- {' '.join(found[serial, 1] for serial in serials)}; {make}")
        yield guest


@pytest.mark.long
def test_what_is_on_retired_drives_alone_is_taken_apart(staged, tmp_path):
    """First only said; then done for good, and drives are given up. What spans another drive or is mounted stays."""
    lab = Lab(staged, tmp_path, "retire")
    own = (CAKE, CAKE_TWIN, CRYPT)
    lab.host["ssd_drives"] = [{"serial": serial, "retired": True} for serial in (*own, SPAN, MOUNTED)]
    code, planned = lab.play("retire", "-e", "ssd_mode=plan")
    assert code != 0 and "would run: vgchange --activate n --select vg_uuid=" in planned, planned
    before = staged.run(ACTIVE).stdout
    assert all(name in before for name in ("cake", "plain", "span-all", "used-one", "md7"))
    code, output = lab.play("retire")
    assert code != 0, output
    steps = [line.partition("done: ")[2] for line in output.splitlines() if "done: " in line]
    wanted = ["vgchange --activate n --select vg_uuid=", "cryptsetup close cake", "mdadm --stop /dev/md7"]
    assert [step for step in steps for one in wanted if step.startswith(one)] == [
        step for step in steps if "plain" not in step
    ] and len(steps) == 4, output
    assert "mounted" in output and "is on no retired drive of this host" in output
    look_guest.install(staged)
    staged.run(f"python3 - {lab.state} {' '.join(own)} && udevadm settle", stdin=HOLD)
    after = staged.run(ACTIVE).stdout
    assert "span-all" in after and "used-one" in after
    assert not any(name in after for name in ("cake", "plain", "md7")), after
    lab.host["ssd_drives"] = [{"serial": serial, "retired": True} for serial in own]
    code, output = lab.play("start", "-e", "ssd_mode=plan", "-e", "ssd_step=purge")
    assert code == 0 and "retired, gives up" in output, output
