# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Cases 16 to 28 of docs/wrong-drives.md: drives that are in use, or hold somebody's data. All are staged, then played
at once.
"""

from __future__ import annotations

import os
import random
import sys

import on_disk
import pytest
from wrong_drive import MIB, REPO, SIZE, needs, run

OPEN = "import os, sys; os.open(sys.argv[1], os.O_RDONLY%s); print('ready', flush=True); sys.stdin.read()"
STAGES = {}


def staged(name, size_bytes=SIZE):
    """Register what a function does to the blank drive of that name."""
    return lambda function: STAGES.setdefault(name, (size_bytes, function)) and function


@staged("boot folder")
def _boot(disk):
    run("mkfs.ext4", "-q", disk.path)
    disk.bench.in_namespace("mount", "-o", "ro,noload", disk.path, "/boot")


@staged("boot folder through a layer")
def _boot_layered(disk):
    assert not REPO.is_relative_to("/var"), (
        "a checkout below /var is hidden by what this test mounts there: test in another folder"
    )
    run("mkfs.ext4", "-q", disk.path)
    disk.bench.in_namespace("mount", "-o", "ro,noload", disk.attach(file=disk.path), "/var")


@staged("efi system partition")
def _esp(disk):
    disk.partitions("-t", "1:C12A7328-F81F-11D2-BA4B-00A0C93EC93B")


@staged("another system")
def _another_system(disk):
    run("sfdisk", "--quiet", "--label", "dos", disk.path, input="start=2048, type=7, bootable\n")
    disk.write(3 + MIB, b"NTFS    ")


@staged("idle disk of a netbooted host")
def _idle(disk):
    run("mkfs.ext4", "-q", disk.partitions())


@staged("mounted partition")
def _mounted_partition(disk):
    first = disk.partitions()
    run("mkfs.ext4", "-q", first)
    disk.mount(first)


@staged("mounted")
def _mounted(disk):
    run("mkfs.ext4", "-q", disk.path)
    disk.mount()


@staged("mounted elsewhere")
def _mounted_elsewhere(disk):
    run("mkfs.ext4", "-q", disk.path)
    where = os.path.join(disk.bench.folder, "elsewhere")
    os.mkdir(where)
    script = 'mount -o ro,noload "$0" "$1" && echo ready && read -r _'
    disk.waiting("unshare", "--mount", "--propagation", "private", "sh", "-c", script, disk.path, where)
    assert where not in open("/proc/self/mounts").read()


@staged("swap")
def _swap(disk):
    run("mkswap", disk.path)
    run("swapon", disk.path)
    disk.undo("swapoff", disk.path)
    disk.sealed_bytes = 4096  # its header: the kernel uses the rest


@staged("hibernation")
def _hibernation(disk):
    command_line = os.path.join(disk.bench.folder, "cmdline")
    with open(command_line, "w") as file:
        file.write(f"BOOT_IMAGE=/vmlinuz quiet resume={disk.path}\n")
    disk.bench.in_namespace("mount", "--bind", command_line, "/proc/cmdline")


@staged("lvm member")
def _lvm(disk):
    disk.write(512, on_disk.lvm_label(SIZE))


@staged("md member, 1.2")
def _md_start(disk):
    disk.write(4096, on_disk.md_superblock(8))


@staged("md member, 1.0")
def _md_end(disk):
    disk.write(-8 * 1024, on_disk.md_superblock((SIZE - 8 * 1024) // 512))


def _made(*argv):
    return lambda disk: needs(argv[0]) or run(*argv, disk.path)


def _pieces(pieces):
    return lambda disk: [disk.write(offset, data) for offset, data in pieces]


for kind in ("crypto_LUKS", "bcache", "ceph_bluestore"):
    staged(kind)(_pieces(on_disk.PIECES[kind]))
staged("zfs_member", 128 * MIB)(_pieces(on_disk.PIECES["zfs_member"]))
staged("btrfs", 128 * MIB)(_made("mkfs.btrfs", "-q"))
staged("xfs", 320 * MIB)(_made("mkfs.xfs", "-q"))
staged("bcachefs")(_pieces(on_disk.BCACHEFS))


@staged("table without partitions")
def _empty_table(disk):
    run("sgdisk", "--clear", disk.path)


@staged("backup table only")
def _backup_table(disk):
    run("sgdisk", "-n", "1:0:0", disk.path)
    disk.write(0, bytes(MIB))


# Of a database on the raw drive: its first block, an eighth of the drive in the middle, its last block.
RAW = {
    "raw data at the start": (0, 4096),
    "raw data in the middle": (SIZE // 2, SIZE // 8),
    "raw data at the end": (-4096, 4096),
}
for raw, (start, length) in RAW.items():
    staged(raw)(lambda disk, start=start, length=length: disk.write(start, random.Random(start).randbytes(length)))


@staged("opened")
def _opened(disk):
    disk.waiting(sys.executable, "-c", OPEN % "", disk.path)


@staged("held exclusively")
def _held_exclusively(disk):
    disk.waiting(sys.executable, "-c", OPEN % " | os.O_EXCL", disk.path)


@staged("loop device on top")
def _loop_on_top(disk):
    disk.attach(file=disk.path)


@staged("mounted through a loop device")
def _mounted_through_a_loop(disk):
    run("mkfs.ext4", "-q", disk.path)
    disk.mount(disk.attach(file=disk.path))


CONFIGURED = {
    "fstab": "%s /srv ext4 noauto 0 0\n",
    "crypttab": "secret %s none luks\n",
    "mdadm/mdadm.conf": "DEVICE %s\nARRAY /dev/md0 devices=%s\n",
    "systemd/system/srv.mount": "[Mount]\nWhat=%s\nWhere=/srv\n",
    "zfs/zpool.cache": "\0\0path\0\0\0\r%s\0\0",
    "kubernetes/manifests/local.yaml": "spec:\n  local:\n    path: %s\n",
}
for config in CONFIGURED:
    staged(config)(lambda disk: None)


@pytest.fixture(scope="module")
def outcome(bench):
    for name, (size_bytes, stage) in STAGES.items():
        stage(bench.disk(name, size_bytes))
    bench.lay_over("/etc", {path: text.replace("%s", bench.disks[path].path) for path, text in CONFIGURED.items()})
    return bench.play()


@pytest.mark.case(16)
def test_case_16_a_folder_that_the_system_needs(outcome):
    outcome.refused("boot folder", "root_disk", "mounted", "signature", "busy")
    outcome.refused("boot folder through a layer", "root_disk", "mounted", "held", "signature")


@pytest.mark.case(17)
def test_case_17_an_efi_system_partition_that_is_not_mounted(outcome):
    outcome.refused("efi system partition", "efi_system_partition", "partition_table")


@pytest.mark.case(18)
def test_case_18_the_disk_of_another_system_or_of_a_netbooted_host(outcome):
    outcome.refused("another system", "partition_table")
    outcome.refused("idle disk of a netbooted host", "partition_table", "signature")


@pytest.mark.case(19)
def test_case_19_the_whole_disk_while_a_partition_is_mounted(outcome):
    outcome.refused("mounted partition", "mounted", "partition_table", "signature", "busy")
    assert outcome.bench.folder in outcome.message("mounted partition", "mounted")  # says where
    outcome.refused("mounted", "mounted", "signature", "busy")


@pytest.mark.case(20)
def test_case_20_mounted_in_another_namespace(outcome):
    outcome.refused("mounted elsewhere", "mounted", "signature", "busy")


@pytest.mark.case(21)
def test_case_21_swap_and_hibernation(outcome):
    outcome.refused("swap", "swap", "signature", "busy")
    outcome.refused("hibernation", "hibernation")


@pytest.mark.case(23)
@pytest.mark.parametrize("name", ["lvm member", "md member, 1.2", "crypto_LUKS", "bcache", "btrfs", "xfs"])
def test_case_23_a_member_that_is_not_assembled(outcome, name):
    outcome.refused(name, "signature")


@pytest.mark.case(24)
@pytest.mark.parametrize("name", ["md member, 1.0", "zfs_member", "ceph_bluestore"])
def test_case_24_a_signature_at_the_end_or_at_an_offset(outcome, name):
    outcome.refused(name, "signature")


@pytest.mark.case(24)
def test_case_24_a_table_at_the_end_or_a_superblock_that_no_tool_knows(outcome):
    outcome.refused("table without partitions", "partition_table")
    outcome.refused("backup table only", "partition_table")
    outcome.refused("bcachefs", "unsigned_data")


@pytest.mark.case(25)
@pytest.mark.parametrize("name", RAW)
def test_case_25_data_without_a_signature(outcome, name):
    outcome.refused(name, "unsigned_data")


@pytest.mark.case(26)
def test_case_26_in_use_by_a_process_or_a_loop_device(outcome):
    outcome.refused("opened", "opened")
    outcome.refused("held exclusively", "opened", "busy")
    outcome.refused("loop device on top", "held")
    outcome.refused("mounted through a loop device", "mounted", "held", "signature")


@pytest.mark.case(28)
@pytest.mark.parametrize("name", CONFIGURED)
def test_case_28_named_in_a_configuration(outcome, name):
    outcome.refused(name, "configured")


def test_a_drive_with_nothing_on_it_is_no_finding(outcome):
    assert outcome.codes("spare") == set()
    outcome.nothing_happened()
