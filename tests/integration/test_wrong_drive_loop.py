# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Cases 77 to 80, 89 and 100 of docs/wrong-drives.md: a loop device is what is behind it, not a path."""

from __future__ import annotations

import ctypes
import errno
import os
import sys
import tempfile
from pathlib import Path

import on_disk
import pytest
from wrong_drive import MIB, run

MS_RDONLY = 1  # linux/mount.h
# Sets where the loop device begins in its file (LOOP_SET_STATUS64), while it stays attached.
SHIFT = """
import fcntl, os, struct, sys
handle = os.open(sys.argv[1], os.O_RDWR)
info = bytearray(fcntl.ioctl(handle, 0x4C05, bytes(232)))
struct.pack_into("=Q", info, 24, int(sys.argv[2]))
fcntl.ioctl(handle, 0x4C04, bytes(info))
"""


@pytest.fixture(scope="module")
def outcome(bench):
    """The same path in another mount namespace; a blank at the end; a hard link of a file that is mounted; a link to
    itself.
    """
    inside = bench.disk("in a container")
    folder = os.path.join(bench.folder, "inside")
    os.mkdir(folder)
    path = os.path.join(folder, "drive.img")
    script = (
        'mount -t tmpfs none "$0" && truncate -s 48M "$1" && losetup --find --show "$1" > "$2" && echo ready && '
        "read -r _"
    )
    shown = os.path.join(bench.folder, "shown")
    inside.waiting("unshare", "--mount", "--propagation", "private", "sh", "-c", script, folder, path, shown)
    bench.callback(lambda: run("losetup", "--detach", Path(shown).read_text().strip()))
    Path(path).write_bytes(bytes(48 * MIB))  # what has this path for everybody else
    inside.entry = {"backing_file": path}
    blank = bench.disk("blank")
    with open(blank.file + " ", "wb") as file:
        file.truncate(48 * MIB)
    blank.entry = {"backing_file": blank.file + " "}
    mounted = bench.disk("mounted")
    run("mkfs.ext4", "-q", mounted.path)
    mounted.mount()
    linked = bench.disk("linked")
    os.link(mounted.file, linked.file + ".link")
    linked.attach(linked.file + ".link")
    linked.entry = {"backing_file": linked.file + ".link"}
    twice = bench.disk("twice")
    os.link(twice.file, twice.file + ".link")
    _swap_file(bench, bench.disk("swap file"))
    alone = [bench.disks[name].entry for name in ("spare", "in a container", "blank", "linked", "swap file")]
    return bench.play(entries=[*alone, twice.entry, {"backing_file": twice.file + ".link"}])


def _swap_file(bench, disk):
    """On a file system of its own, as a tmpfs takes none; what lies on it is lifted."""
    outer = bench.disk("outer")
    outer.sealed_bytes = 0  # it is mounted for writing
    run("mkfs.ext4", "-q", outer.path)
    where = os.path.join(bench.folder, "outer")
    os.mkdir(where)
    run("mount", outer.path, where)
    outer.undo("umount", where)
    disk.file = os.path.join(where, "swap")
    with open(disk.file, "wb") as file:
        os.fchmod(file.fileno(), 0o600)
        file.write(bytes(24 * MIB))
    run("mkswap", disk.file)
    disk.path = disk.node = disk.attach(disk.file)
    run("swapon", disk.file)
    disk.undo("swapoff", disk.file)
    disk.sealed_bytes = 4096  # the kernel may use the rest
    disk.entry = {"backing_file": disk.file, "allow": ["signature"], "ssd_overwrite_data": True}


@pytest.mark.case(77)
def test_case_77_the_same_path_in_another_mount_namespace(outcome):
    outcome.refused("in a container", "not_found")


@pytest.mark.case(78)
def test_case_78_a_blank_at_the_end_of_a_path(outcome):
    assert "bad_selector: " in outcome.output and "begins or ends with a space" in outcome.output
    outcome.nothing_happened()


@pytest.mark.case(79)
def test_case_79_a_hard_link_of_a_file_that_is_mounted(outcome):
    outcome.refused("linked", "ambiguous")


@pytest.mark.case(79)
def test_case_79_two_names_of_one_file(outcome):
    outcome.refused("twice", "duplicate")


@pytest.mark.case(89)
def test_case_89_the_file_behind_it_is_swap(outcome):
    outcome.refused("swap file", "swap")


@pytest.mark.case(100)
def test_case_100_the_file_behind_it_is_mounted_without_a_loop_device(make_bench, tmp_path):
    """As EROFS does since Linux 6.12, on file systems that have a page cache; what lies on it is given up."""
    bench = make_bench()
    disk = bench.disk("mounted as a file")
    disk.file = os.path.join(tmp_path, "drive.img")
    with open(disk.file, "wb") as file:
        file.truncate(48 * MIB)
    disk.path = disk.node = disk.attach(disk.file)
    disk.entry = {"backing_file": disk.file, "allow": ["signature"], "ssd_overwrite_data": True}
    for offset, data in on_disk.erofs():
        disk.write(offset, data)
    where = tempfile.mkdtemp(dir=bench.folder)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(disk.file.encode(), where.encode(), b"erofs", ctypes.c_ulong(MS_RDONLY), None):
        number = ctypes.get_errno()
        assert number in (errno.ENODEV, errno.ENOTBLK), os.strerror(number)
        pytest.skip("this kernel mounts no files as EROFS")
    disk.undo("umount", where)
    bench.play().refused("mounted as a file", "mounted")


@pytest.mark.case(80)
def test_case_80_another_part_of_the_file_after_preflight(make_bench):
    bench = make_bench()
    shifted = bench.disk("shifted")
    entries = [shifted.entry]
    outcome = bench.play_between(
        (sys.executable, "-c", SHIFT, shifted.path, MIB), ("losetup", "--set-capacity", shifted.path), entries=entries
    )
    outcome.refused("shifted", "identity_changed")
