# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The guard on real loop devices: each way to lose data is refused with its code, and the data is untouched.

Needs root, loop devices, and the tools that make what is staged (e2fsprogs, xfsprogs, btrfs-progs, gdisk, cryptsetup-bin, lvm2).
"""
from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import uuid
import zlib

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils import drive, guard
from ansible_collections.ssdlab.fleet.plugins.module_utils.host import Host

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root for loop devices")

MIB = 1 << 20
SIZE = 128 * MIB
READ_ONLY_COMMANDS = (["wipefs", "-n", "--json"], ["wipefs", "--version"], ["blkid", "-p", "-o"])


def run(*argv, **kwargs):
    return subprocess.run(argv, check=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60, **kwargs).stdout.strip()


def waiting(stack, *argv):
    """A process that has said `ready` and ends with its standard input."""
    process = stack.enter_context(subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
    stack.callback(process.stdin.close)
    assert process.stdout.readline() == "ready\n"
    return process


class Disk:
    """A loop device of this test's own; `undo` is done first when it goes."""

    def __init__(self, stack, folder, name="disk", size=SIZE):
        self.stack = stack
        self.file = os.path.join(folder, name + ".img")
        with open(self.file, "wb") as file:
            file.truncate(size)
        self.path = self.attach()

    def attach(self, *options, file=None):
        behind = file or self.file
        path = run("losetup", "--find", "--show", *options, behind)
        self.stack.callback(self.detach, path, behind)
        return path

    @staticmethod
    def detach(path, behind):
        """Only while it is ours: a number that was freed may be somebody else's by now."""
        if drive.backing_file(Host(), os.path.basename(path)) == behind:
            run("losetup", "--detach", path)

    def undo(self, *argv):
        self.stack.callback(subprocess.run, argv, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def write(self, offset, data):
        with open(self.file, "r+b") as file:
            file.seek(offset if offset >= 0 else SIZE + offset)
            file.write(data)
        run("blockdev", "--flushbufs", self.path)

    def partitions(self):
        """Two partitions that the kernel knows, even one without a parser for tables."""
        run("sgdisk", "-n", "1:0:+64M", "-n", "2:0:0", self.path)
        subprocess.run(["partx", "--add", self.path], check=False, stderr=subprocess.DEVNULL)
        self.undo("partx", "--delete", self.path)
        return self.path + "p1"

    def mount(self, source, *options):
        where = tempfile.mkdtemp(dir=os.path.dirname(self.file))
        run("mount", *options, source, where)
        self.undo("umount", where)
        return where

    def sha256(self):
        os.sync()
        with open(self.file, "rb") as file:
            return hashlib.sha256(file.read()).hexdigest()


@pytest.fixture
def stack():
    with contextlib.ExitStack() as exits:
        yield exits


@pytest.fixture
def folder(stack):
    path = tempfile.mkdtemp(prefix="ssdlab-fleet-guard-", dir="/dev/shm")
    stack.callback(shutil.rmtree, path)
    return path


@pytest.fixture
def disk(stack, folder):
    return Disk(stack, folder)


def inspect(disk, selectors=None, held=None):
    """The guard's results; it may have run probing commands only, and may have changed no byte."""
    commands = []
    before = disk.sha256()
    results = guard.inspect(Host(log=commands.append), selectors or [{"backing_file": disk.file}], held)
    assert disk.sha256() == before
    assert all(command[:3] in READ_ONLY_COMMANDS for command in commands)
    for result in results:
        assert result["eligible"] is (not result["refusals"])
    return results


def codes(disk, selectors=None, held=None):
    return {refusal["code"] for result in inspect(disk, selectors, held) for refusal in result["refusals"]}


def needs(tool):
    if shutil.which(tool, path="/usr/sbin:/sbin:/usr/bin:/bin") is None:
        pytest.skip("no " + tool)


def test_a_blank_drive_is_eligible(disk):
    (result,) = inspect(disk)
    assert (result["eligible"], result["path"]) == (True, disk.path)
    identity = result["identity"]
    assert (identity["size_bytes"], identity["transport"], identity["model"], identity["backing_file"]) == (SIZE, "loop", "loop", disk.file)
    assert identity["major_minor"] == "%d:%d" % (os.major(os.stat(disk.path).st_rdev), os.minor(os.stat(disk.path).st_rdev))


# --- in use ---------------------------------------------------------------------------------------------------------------------------

def test_mounted(disk):
    run("mkfs.ext4", "-q", disk.path)
    disk.mount(disk.path)
    assert codes(disk) == {"mounted", "signature", "busy"}


def test_a_mounted_partition(disk):
    first = disk.partitions()
    run("mkfs.ext4", "-q", first)
    where = disk.mount(first)
    (result,) = inspect(disk)
    assert {refusal["code"] for refusal in result["refusals"]} == {"mounted", "partition_table", "signature", "busy"}
    assert any(where in refusal["message"] for refusal in result["refusals"])


def test_mounted_in_another_mount_namespace(disk, stack):
    run("mkfs.ext4", "-q", disk.path)
    where = tempfile.mkdtemp(dir=os.path.dirname(disk.file))
    script = 'mount "$0" "$1" && echo ready && read -r _'
    process = waiting(stack, "unshare", "--mount", "--propagation", "private", "sh", "-c", script, disk.path, where)
    assert where not in open("/proc/self/mounts").read()
    assert codes(disk) == {"mounted", "signature", "busy"}
    process.stdin.close()
    process.wait(timeout=10)


def test_swap(disk):
    run("mkswap", disk.path)
    run("swapon", disk.path)
    disk.undo("swapoff", disk.path)
    assert codes(disk) == {"swap", "signature", "busy"}


def test_a_loop_device_on_top(disk):
    above = disk.attach(file=disk.path)
    assert codes(disk) == {"held"}
    assert codes(disk, [{"backing_file": disk.path}]) == {"not_whole_drive"}
    assert drive.backing_file(Host(), os.path.basename(above)) == disk.path


def test_a_mount_through_a_loop_device_on_top(disk):
    run("mkfs.ext4", "-q", disk.path)
    disk.mount(disk.attach(file=disk.path))
    assert codes(disk) == {"mounted", "held", "signature"}


def test_held_exclusively_by_another_process(disk, stack):
    code = "import os, sys; os.open(sys.argv[1], os.O_RDONLY | os.O_EXCL); print('ready', flush=True); sys.stdin.read()"
    process = waiting(stack, sys.executable, "-c", code, disk.path)
    assert codes(disk) == {"busy", "opened"}
    process.stdin.close()
    process.wait(timeout=10)
    assert codes(disk) == set()


def test_mounted_between_two_checks(disk):
    assert codes(disk) == set()
    run("mkfs.ext4", "-q", disk.path)
    disk.mount(disk.path)
    assert "mounted" in codes(disk)


# --- data on it -----------------------------------------------------------------------------------------------------------------------

def crc32_lvm(data):
    """LVM's CRC starts from a value of its own and is not inverted."""
    return zlib.crc32(data, 0xF597A6CF ^ 0xFFFFFFFF) ^ 0xFFFFFFFF


def lvm_label():
    tail = struct.pack("<I8s", 32, b"LVM2 001") + uuid.uuid4().hex.encode() + struct.pack("<Q", SIZE)
    tail = tail.ljust(512 - 20, b"\0")
    return b"LABELONE" + struct.pack("<QI", 1, crc32_lvm(tail)) + tail


def md_superblock(sector):
    """Version 1.x: magic, major, feature map, padding, set uuid … super_offset and checksum."""
    block = bytearray(256)
    struct.pack_into("<III", block, 0, 0xA92B4EFC, 1, 0)
    block[16:32] = uuid.uuid4().bytes
    struct.pack_into("<Q", block, 144, sector)
    total = sum(struct.unpack("<64I", bytes(block)))
    struct.pack_into("<I", block, 216, ((total & 0xFFFFFFFF) + (total >> 32)) & 0xFFFFFFFF)
    return bytes(block)


def zfs_labels():
    """Uberblocks of the last label only, as a pool whose start was overwritten still has them."""
    return b"".join(struct.pack("<Q", 0x00BAB10C).ljust(1024, b"\0") for _slot in range(8))


MD_1_0 = -8 * 1024  # 8 KiB from the end, on a 4 KiB boundary
ZFS_LAST = -256 * 1024 + 128 * 1024


@pytest.mark.parametrize(
    "tool, argv",
    [
        ("mkfs.ext4", ["mkfs.ext4", "-q"]),
        ("mkfs.xfs", ["mkfs.xfs", "-q"]),
        ("mkfs.btrfs", ["mkfs.btrfs", "-q"]),
        ("mkswap", ["mkswap"]),
        ("cryptsetup", [*"cryptsetup luksFormat --batch-mode --pbkdf pbkdf2 --pbkdf-force-iterations 1000 --key-file /etc/hostname".split()]),
    ],
)
def test_a_signature_that_a_tool_wrote(stack, folder, tool, argv):
    needs(tool)
    disk = Disk(stack, folder, size=320 * MIB)  # xfs wants 300
    made = subprocess.run([*argv, disk.path if tool != "cryptsetup" else disk.file], check=False, capture_output=True, text=True, timeout=60)
    if made.returncode:
        pytest.skip("%s cannot do it here: %s" % (tool, made.stderr.strip()))
    run("blockdev", "--flushbufs", disk.path)
    assert codes(disk) == {"signature"}


@pytest.mark.parametrize(
    "name, offset, data",
    [
        ("LVM2_member", 512, lvm_label()),
        ("linux_raid_member", 4096, md_superblock(8)),
        ("linux_raid_member", MD_1_0, md_superblock((SIZE + MD_1_0) // 512)),
        ("zfs_member", ZFS_LAST, zfs_labels()),
    ],
)
def test_a_signature_of_an_inactive_member(disk, name, offset, data):
    disk.write(offset, data)
    (result,) = inspect(disk)
    assert {refusal["code"] for refusal in result["refusals"]} == {"signature"}
    assert name in result["refusals"][0]["message"]


def test_a_partition_table_without_partitions(disk):
    run("sgdisk", "--clear", disk.path)
    assert codes(disk) == {"partition_table"}


def test_an_unmounted_partition(disk):
    run("mkfs.ext4", "-q", disk.partitions())
    (result,) = inspect(disk)
    assert {refusal["code"] for refusal in result["refusals"]} == {"partition_table", "signature"}
    assert "partition 1: ext4" in result["refusals"][1]["message"]


def test_only_the_backup_table_at_the_end_is_left(disk):
    run("sgdisk", "-n", "1:0:0", disk.path)
    disk.write(0, bytes(MIB))
    assert "partition_table" in codes(disk)


# --- state ----------------------------------------------------------------------------------------------------------------------------

def test_read_only(disk):
    run("blockdev", "--setro", disk.path)
    disk.undo("blockdev", "--setrw", disk.path)
    assert codes(disk) == {"read_only"}
    run("blockdev", "--setrw", disk.path)


def test_no_capacity(stack, folder):
    assert "no_capacity" in codes(Disk(stack, folder, size=0))


# --- identity -------------------------------------------------------------------------------------------------------------------------

@pytest.fixture
def by_id(stack):
    """Make a link in /dev/disk/by-id, also where no udev has made the folder."""
    made = [path for path in ("/dev/disk", "/dev/disk/by-id") if not os.path.isdir(path)]
    os.makedirs("/dev/disk/by-id", exist_ok=True)

    def link(target):
        name = "ssdlab-fleet-test-" + uuid.uuid4().hex
        os.symlink(target, "/dev/disk/by-id/" + name)
        stack.callback(os.unlink, "/dev/disk/by-id/" + name)
        return name

    for path in made:  # undone last
        stack.callback(lambda folder=path: os.path.isdir(folder) and not os.listdir(folder) and os.rmdir(folder))
    return link


def test_by_id(disk, by_id):
    link = by_id(disk.path)
    assert inspect(disk, [{"by_id": link}])[0]["path"] == disk.path
    assert codes(disk, [{"by_id": link}]) == set()
    assert codes(disk, [{"by_id": by_id("/dev/ssdlab-fleet-gone")}]) == {"not_found"}
    assert codes(disk, [{"by_id": by_id("/dev/null")}]) == {"not_found"}
    assert codes(disk, [{"by_id": by_id(disk.file)}]) == {"not_found"}
    assert codes(disk, [{"by_id": by_id(disk.partitions())}]) == {"not_whole_drive"}


def test_ambiguous(disk):
    disk.attach()
    assert codes(disk) == {"ambiguous"}


def test_duplicate(disk, by_id):
    results = inspect(disk, [{"backing_file": disk.file}, {"by_id": by_id(disk.path)}])
    assert [[refusal["code"] for refusal in result["refusals"]] for result in results] == [["duplicate"], ["duplicate"]]


def test_not_found_and_bad_selectors(disk):
    for selector, code in (({"backing_file": disk.file + "x"}, "not_found"), ({"backing_file": ""}, "bad_selector"), ({"serial": 0}, "bad_selector")):
        assert codes(disk, [selector]) == {code}


def test_attached_anew_is_another_drive(disk):
    before = inspect(disk)[0]["identity"]
    disk.detach(disk.path, disk.file)
    disk.path = disk.attach()
    after = inspect(disk)[0]["identity"]
    assert [refusal["code"] for refusal in guard.compare(before, after, same_boot=True)] == ["identity_changed"]
    assert guard.compare(before, after, same_boot=False) == []


# --- held by ourselves, as the host job does ------------------------------------------------------------------------------------------

def opened(stack, path, flags=os.O_RDWR | os.O_EXCL | os.O_DIRECT):
    handle = os.open(path, flags)
    stack.callback(os.close, handle)
    return handle


def test_our_own_exclusive_open_is_no_objection(disk, stack):
    handle = opened(stack, disk.path)
    assert codes(disk) == {"busy"}
    assert codes(disk, held={disk.path: handle}) == set()


def test_a_held_descriptor_of_another_drive_is_refused(disk, stack, folder):
    other = Disk(stack, folder, "other")
    assert codes(disk, held={disk.path: opened(stack, other.path)}) == {"identity_changed"}


def test_a_drive_that_shrank_under_our_hold_is_refused(disk, stack):
    handle = opened(stack, disk.path)
    expected = inspect(disk, held={disk.path: handle})[0]["identity"]
    os.truncate(disk.file, SIZE // 2)
    run("losetup", "--set-capacity", disk.path)
    results = inspect(disk, held={disk.path: handle})
    assert guard.compare(expected, results[0]["identity"], same_boot=True)


def test_what_stacks_up_under_our_hold_is_seen(disk, stack):
    handle = opened(stack, disk.path)
    disk.attach(file=disk.path)
    assert codes(disk, held={disk.path: handle}) == {"held"}


# --- probes that fail -----------------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("tool", ["wipefs", "blkid"])
@pytest.mark.parametrize("answer", ["exit 127", "exit 1", "echo garbage", "exit 0", "kill -9 $$"])
def test_a_tool_that_fails_or_lies_is_refused(disk, folder, monkeypatch, tool, answer):
    fake = os.path.join(folder, tool)
    with open(fake, "w") as file:
        file.write("#!/bin/sh\n%s\n" % answer)
    os.chmod(fake, 0o755)
    monkeypatch.setenv("PATH", folder + ":" + os.environ["PATH"])
    assert codes(disk) == {"probe_failed"}


def test_a_drive_that_cannot_be_read_is_refused(disk):
    # The file behind it lost its second half: reads there fail, and blkid and wipefs both say "nothing found".
    os.truncate(disk.file, SIZE // 2)
    run("blockdev", "--flushbufs", disk.path)
    assert codes(disk) == {"probe_failed"}
