# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Cases 43 to 52 of docs/wrong-drives.md: data that a drive's ends do not tell of, and overrides that lift what they
name and nothing else.
"""

from __future__ import annotations

import os
import random
import struct

import drive_data
import on_disk
import pytest
from wrong_drive import MIB, SIZE, needs, run

GIB = 1 << 30
FIRST = 2048 * 512
STAGES = {}


def staged(name, size_bytes=SIZE, **entry):
    """Register what a function does to the blank drive of that name, and the options of its entry."""
    return lambda function: STAGES.setdefault(name, (size_bytes, entry, function)) and function


def noise(length, seed=1):
    return random.Random(seed).randbytes(length)


def in_partition(disk, *argv, start=FIRST):
    """A command on what begins at a partition's start, which needs no table."""
    path = run("losetup", "--find", "--show", "--offset", str(start), disk.path)
    try:
        run(*argv, path)
    finally:
        run("losetup", "--detach", path)


def wiped(disk, length):
    """Zeros over the first bytes, as discard leaves them."""
    run("fallocate", "--punch-hole", "--offset", "0", "--length", str(length), disk.file)
    drive_data.flush(disk.path)


# --- what is left of a file system --------------------------------------------

LOST = {
    "lost table, ext4": ("mkfs.ext4", "-q", "-E", "lazy_itable_init=1,lazy_journal_init=1"),
    "lost table, xfs": ("mkfs.xfs", "-q"),
    "lost table, btrfs": ("mkfs.btrfs", "-q"),
    "lost table, swap": ("mkswap",),
}
for lost, argv in LOST.items():
    staged(lost, 16 * GIB)(lambda disk, argv=argv: needs(argv[0]) or in_partition(disk, *argv))


@staged("lost table, old start", 16 * GIB)
def _old_start(disk):
    in_partition(disk, "mkfs.ext4", "-q", "-E", "lazy_itable_init=1", start=63 * 512)


@staged("lost table, lvm", 16 * GIB)
def _lvm(disk):
    disk.write(FIRST + 512, on_disk.lvm_label(15 * GIB))


@staged("lost table, md 1.2", 16 * GIB)
def _md(disk):
    disk.write(FIRST + 4096, on_disk.md_superblock(8))


@staged("lost table, second partition", 16 * GIB)
def _second(disk):
    in_partition(disk, "mkfs.ext4", "-q", "-E", "lazy_itable_init=1", start=513 * MIB)


COPIES = {
    "btrfs with its mirror alone": (("mkfs.btrfs", "-q"), 16 * MIB),
    "ext4 without its start": (("mkfs.ext4", "-q", "-E", "lazy_itable_init=1,lazy_journal_init=1"), 16 * MIB),
    "xfs without its first group": (("mkfs.xfs", "-q"), 64 * MIB),
}
for copies, (argv, length) in COPIES.items():
    staged(copies, 16 * GIB)(
        lambda disk, argv=argv, length=length: (needs(argv[0]), run(*argv, disk.path), wiped(disk, length))
    )


# --- raw data -----------------------------------------------------------------

RAW = {
    "one block": lambda disk: disk.write(17 * MIB + 4096, noise(4096)),
    "one sector": lambda disk: disk.write(31 * MIB + 512, noise(512)),
    "one byte": lambda disk: disk.write(23 * MIB + 4095, b"x"),
    "ones and zeros": lambda disk: [disk.write(place, b"\xff" * 4096) for place in range(0, SIZE, 8192)],
    "ones in the middle": lambda disk: disk.write(20 * MIB, b"\xff" * MIB),
    "another fill value": lambda disk: disk.write(0, b"\x5a" * SIZE),
    "text": lambda disk: disk.write(9 * MIB, b"INSERT INTO orders VALUES (1);\n" * 200),
}
for raw, stage in RAW.items():
    staged(raw)(stage)
staged("an odd size, data in its last sector", SIZE + 512)(lambda disk: disk.write(-512, noise(512)))
staged("raw data on a large drive", 512 * GIB)(lambda disk: disk.write(0, b"") or _sparse(disk, 400 * GIB, GIB))


def _sparse(disk, offset, length):
    """A block of data in every 64 KiB: a GiB of a database that takes 64 MiB of this machine's memory."""
    with open(disk.file, "r+b") as file:
        for place in range(offset, offset + length, 65536):
            os.pwrite(file.fileno(), b"somebody's row  " * 256, place)


# --- overrides ----------------------------------------------------------------

TABLE = {"allow": ["partition_table"]}


@staged("33 partitions", 96 * MIB, **TABLE)
def _many(disk):
    """The last one takes the rest: libblkid knows no GFS2 below 32 MiB."""
    small = [word for number in range(32) for word in ("-n", f"{number + 1}:+0:+1M")]
    run("sgdisk", "-a", "1", *small, "-n", "33:0:0", disk.path)
    first = next(
        int(line.split()[1]) for line in run("sgdisk", "-p", disk.path).splitlines() if line.split()[:1] == ["33"]
    )
    for offset, data in on_disk.PIECES["gfs2"]:
        disk.write(first * 512 + offset, data)


@staged("table, raw data in the first MiB", **TABLE)
def _first(disk):
    run("sgdisk", "-n", "1:0:0", disk.path)
    disk.write(64 * 1024, noise(4096))


@staged("table, raw data in the last MiB", **TABLE)
def _last(disk):
    run("sgdisk", "-n", "1:0:0", disk.path)
    disk.write(-128 * 1024, noise(4096))


@staged("table, raw data in a partition", **TABLE)
def _inside(disk):
    run("sgdisk", "-n", "1:0:0", disk.path)
    disk.write(30 * MIB, noise(4096))


@staged("a partition that ends past the drive", **TABLE)
def _past(disk):
    entry = struct.pack("<B3xB3xII", 0, 0x83, FIRST // 512, 2 * SIZE // 512)
    disk.write(446, entry + bytes(48) + b"\x55\xaa")
    in_partition(disk, "mkfs.ext4", "-q")


@staged("a partition that begins past the drive", **TABLE)
def _behind(disk):
    entry = struct.pack("<B3xB3xII", 0, 0x83, 4 * SIZE // 512, SIZE // 512)
    disk.write(446, entry + bytes(48) + b"\x55\xaa")
    disk.write(40 * MIB, noise(4096))


staged("a table alone", **TABLE)(lambda disk: run("sgdisk", "-n", "1:0:0", disk.path))
staged("an old swap, and raw data", allow=["signature"])(
    lambda disk: (run("mkswap", disk.path), disk.write(20 * MIB, noise(MIB)))
)
staged("an old swap alone", allow=["signature"])(lambda disk: run("mkswap", disk.path))
staged("ext4 with a file", allow=["signature"])(
    lambda disk: (run("mkfs.ext4", "-q", disk.path), disk.write(40 * MIB, noise(MIB)))
)
staged("a signature and a table", allow=["signature"])(
    lambda disk: (run("sgdisk", "-n", "1:0:0", disk.path), in_partition(disk, "mkfs.ext4", "-q"))
)
staged("ext4 given up", allow=["signature"], ssd_overwrite_data=True)(lambda disk: run("mkfs.ext4", "-q", disk.path))


@pytest.fixture(scope="module")
def outcome(bench):
    bench.site.vars["ssd_look_s"] = 20  # many looks at once, and single blocks are to be found for certain
    for name, (size_bytes, entry, stage) in STAGES.items():
        disk = bench.disk(name, size_bytes)
        disk.sealed_bytes = min(size_bytes, 64 * MIB)
        disk.entry.update(entry)
        stage(disk)
    return bench.play()


@pytest.mark.case(43)
@pytest.mark.parametrize("name", [name for name in STAGES if name.startswith("lost table")])
def test_case_43_a_partition_table_that_is_gone(outcome, name):
    outcome.refused(name, "signature")


@pytest.mark.case(44)
@pytest.mark.parametrize("name", COPIES)
def test_case_44_only_copies_of_the_superblock_are_left(outcome, name):
    outcome.refused(name, "signature")


@pytest.mark.case(45)
@pytest.mark.parametrize(
    "name",
    [
        "one block",
        "one sector",
        "one byte",
        "text",
        "an odd size, data in its last sector",
        "raw data on a large drive",
    ],
)
def test_case_45_raw_data_of_any_size(outcome, name):
    outcome.refused(name, "unsigned_data")


@pytest.mark.case(46)
@pytest.mark.parametrize("name", ["ones and zeros", "ones in the middle", "another fill value"])
def test_case_46_blank_is_one_fill_value(outcome, name):
    outcome.refused(name, "unsigned_data")


@pytest.mark.case(47)
def test_case_47_more_partitions_than_anybody_makes(outcome):
    outcome.refused("33 partitions", "shared_filesystem", "signature")


@pytest.mark.case(48)
@pytest.mark.parametrize("where", ["the first MiB", "the last MiB", "a partition"])
def test_case_48_raw_data_beside_a_table_that_is_allowed(outcome, where):
    outcome.refused("table, raw data in " + where, "unsigned_data")


@pytest.mark.case(49)
def test_case_49_a_partition_that_ends_or_begins_past_the_drive(outcome):
    outcome.refused("a partition that ends past the drive", "signature")
    outcome.refused("a partition that begins past the drive", "unsigned_data")


@pytest.mark.case(50)
def test_case_50_a_signature_that_is_allowed_lifts_no_other_data(outcome):
    outcome.refused("an old swap, and raw data", "unsigned_data")
    outcome.refused("ext4 with a file", "unsigned_data")
    outcome.refused("a signature and a table", "partition_table")


def test_what_is_allowed_lets_through_what_it_names(outcome):
    """Without this, nothing told that an override works at all."""
    for name in ("a table alone", "an old swap alone", "ext4 given up", "spare"):
        assert outcome.codes(name) == set(), (name, outcome.findings)
    outcome.nothing_happened()
