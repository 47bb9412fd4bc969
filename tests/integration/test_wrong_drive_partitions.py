# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Cases 92 to 95 of docs/wrong-drives.md: partitions that no table which is read tells of. Each drive's entry gives up
its table and raw data, and that gives up no file system.
"""

from __future__ import annotations

import struct

import on_disk
import pytest
from wrong_drive import MIB, SIZE, needs, run

GIB = 1 << 30
FIRST = 2048 * 512
ODD = 5001 * 512  # where no installer puts a partition
GIVEN_UP = {"allow": ["partition_table"], "ssd_overwrite_data": True}
NO_SIGNATURE = {"allow": ["partition_table", "signature"], "ssd_overwrite_data": True}
VMFS = "AA31E02A-400F-11DB-9590-000C2911D1B8"


def within(disk, start, *argv, length=0, **options):
    """A command on what begins at a byte of the drive, which needs no table; length: 0 for all of the rest."""
    path = run("losetup", "--find", "--show", "--offset", str(start), "--sizelimit", str(length), disk.path)
    try:
        run(*argv, path, **options)
    finally:
        run("losetup", "--detach", path)


def ext4(disk, start):
    within(disk, start, "mkfs.ext4", "-q", "-E", "lazy_itable_init=1,lazy_journal_init=1", length=24 * MIB)


def _kernels_own(disk):
    """As addpart makes it, or a driver that knows its own table."""
    ext4(disk, ODD)
    run("partx", "--delete", disk.path, check=False)
    run("addpart", disk.path, "1", str(ODD // 512), "60000")
    disk.undo("partx", "--delete", disk.path)


def _labelled(kind):
    def stage(disk):
        needs("sfdisk")
        run("sfdisk", "--quiet", "--no-reread", disk.path, input=f"label: {kind}\nstart=16065, size=64260\n")
        ext4(disk, 16065 * 512)

    return stage


def _guest(inner, stage):
    """A partition that is a virtual machine's disk, with a table of its own."""

    def make(disk):
        start = 3 * GIB + 512 * MIB
        run("sgdisk", "-n", f"1:{start // 512}:+256M", disk.path)
        within(disk, start, *inner[:-1], length=256 * MIB, **inner[-1])
        stage(disk, start + FIRST)

    return make


GPT = ("sgdisk", "-n", "1:2048:0", {})
MBR = ("sfdisk", "--quiet", "--no-reread", {"input": "label: dos\nstart=2048, type=83\n"})
# Drive: (bytes, entry, what is put on it, what it is to be refused with)
DRIVES = {
    "a partition that only the kernel has": (SIZE, GIVEN_UP, _kernels_own, ["signature"]),
    "a table of Sun's": (SIZE, GIVEN_UP, _labelled("sun"), ["signature"]),
    "a table of SGI's": (SIZE, GIVEN_UP, _labelled("sgi"), ["signature"]),
    "a machine's disk, GPT": (4 * GIB, GIVEN_UP, _guest(GPT, ext4), ["signature"]),
    "a machine's disk, MBR": (4 * GIB, GIVEN_UP, _guest(MBR, ext4), ["signature"]),
    "a machine's disk, VMFS": (
        4 * GIB,
        NO_SIGNATURE,
        _guest((*GPT[:-1], "-t", f"1:{VMFS}", {}), lambda _disk, _start: None),
        ["shared_filesystem"],
    ),
}
KINDS = ("oracleasm", "VMFS_volume_member", "VMFS", "gfs2", "ocfs2", "ocfs")


def _lost(kind):
    def stage(disk):
        for offset, data in on_disk.PIECES[kind]:
            disk.write(513 * MIB + offset, data)

    return stage


DRIVES.update({f"lost table, {kind}": (2 * GIB, NO_SIGNATURE, _lost(kind), ["shared_filesystem"]) for kind in KINDS})


def _extended(disk):
    """A logical partition in an extended one: the kernel shows the first record of the extended one as a partition."""
    run(
        "sfdisk",
        "--quiet",
        "--no-reread",
        disk.path,
        input="label: dos\nstart=2048, type=5\nstart=4096, size=8192, type=83\n",
    )
    run("partx", "--add", disk.path, check=False)
    disk.undo("partx", "--delete", disk.path)


@pytest.fixture(scope="module")
def outcome(bench):
    bench.site.vars["ssd_look_s"] = 5
    for name, (size_bytes, entry, stage, _codes) in DRIVES.items():
        disk = bench.disk(name, size_bytes)
        disk.sealed_bytes = 64 * MIB
        disk.entry.update(entry)
        stage(disk)
    for name, stage in (("an old swap's partition", _swap), ("an extended partition", _extended)):
        disk = bench.disk(name)
        disk.entry.update(NO_SIGNATURE)
        stage(disk)
    return bench.play()


def _swap(disk):
    entry = struct.pack("<B3xB3xII", 0, 0x82, FIRST // 512, SIZE // 512 - 2048)
    disk.write(446, entry + bytes(48) + b"\x55\xaa")
    within(disk, FIRST, "mkswap")


def _named(begin):
    return [name for name in DRIVES if name.startswith(begin)]


@pytest.mark.case(92)
def test_case_92_a_partition_that_only_the_kernel_has(outcome):
    outcome.refused("a partition that only the kernel has", "signature")


@pytest.mark.case(93)
@pytest.mark.parametrize("name", _named("a table of"))
def test_case_93_a_table_whose_partitions_are_not_read(outcome, name):
    outcome.refused(name, "signature")


@pytest.mark.case(94)
@pytest.mark.parametrize("name", _named("a machine's disk"))
def test_case_94_a_table_in_a_partition(outcome, name):
    outcome.refused(name, *DRIVES[name][3])


@pytest.mark.case(95)
@pytest.mark.parametrize("name", _named("lost table"))
def test_case_95_a_cluster_file_system_whose_table_is_gone(outcome, name):
    outcome.refused(name, "shared_filesystem")


def test_what_the_entry_gives_up_is_let_through(outcome):
    for name in ("an old swap's partition", "an extended partition", "spare"):
        assert outcome.codes(name) == set(), (name, outcome.findings)
