# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Argument lists and geometry of file systems, and superblocks as the real tools write them into a file."""

from __future__ import annotations

import dataclasses
import mmap
import shutil
import subprocess
import uuid

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.records.storage_layers import PlannedFilesystem, Stripe
from ansible_collections.ssdlab.fleet.plugins.module_utils.tools import filesystems

KIB, MIB = 1 << 10, 1 << 20
ID = "0f9c2c0e-6a3a-4a52-9d1b-3c6f0a1d2e4f"
EXT4 = PlannedFilesystem("ext4", 4 * KIB, ["noatime", "discard"], None)
XFS = dataclasses.replace(EXT4, type="xfs")
STRIPE = Stripe(64, 320)
PATH = "/usr/sbin:/sbin:/usr/bin"


def test_the_guides_example_gives_64_and_320():
    # Ten ioMemory devices, five mirrored sets, chunks of 256 KiB, blocks of 4 KiB.
    assert filesystems.geometry(256 * KIB, 4 * KIB, filesystems.data_drives(10, 10, 5)) == (64, 320)
    spec = dataclasses.replace(EXT4, stripe=STRIPE)
    assert "stride=64,stripe_width=320" in filesystems.mkfs_argv(spec, ID, "/dev/md0")[-2]


@pytest.mark.parametrize(
    ("level", "drives", "sets", "data"),
    [(0, 2, None, 2), (0, 8, None, 8), (1, 2, None, 1), (1, 3, None, 1), (5, 4, None, 3), (6, 6, None, 4)]
    + [(10, 10, 5, 5), (10, 10, None, 5), (10, 12, 4, 4), (50, 6, 2, 4), (50, 12, 3, 9), (50, 12, None, 10)],
)
def test_the_data_bearing_drives_of_each_level(level, drives, sets, data):
    assert filesystems.data_drives(level, drives, sets) == data


@pytest.mark.parametrize(
    ("level", "drives", "sets", "text"),
    [
        (2, 4, None, "level 2 must be one of 0, 1, 5, 6, 10, 50"),
        (0, 1, None, "RAID 0 needs at least 2 drives, not 1"),
        (6, 3, None, "RAID 6 needs at least 4 drives"),
        (10, 10, 3, "10 drives cannot form 3 sets"),
        (10, 10, 10, "10 drives cannot form 10 sets"),
        (10, 5, None, "5 drives cannot form 2 sets"),
        (50, 7, 2, "7 drives cannot form 2 sets"),
    ],
)
def test_an_array_that_cannot_be_is_refused(level, drives, sets, text):
    with pytest.raises(ValueError, match=text):
        filesystems.data_drives(level, drives, sets)


def test_a_chunk_of_no_whole_blocks_is_refused():
    with pytest.raises(ValueError, match="not a multiple"):
        filesystems.geometry(6 * KIB, 4 * KIB, 2)


def test_xfs_counts_its_stripe_in_bytes_and_drives():
    argv = filesystems.mkfs_argv(dataclasses.replace(XFS, stripe=STRIPE), ID, "/dev/md0")
    assert argv[argv.index("-d") + 1] == "su=262144,sw=5" and argv[-1] == "/dev/md0"


def test_nothing_is_discarded_and_nothing_left_for_later():
    ext4, xfs = (filesystems.mkfs_argv(spec, ID, "/dev/nvme0n1") for spec in (EXT4, XFS))
    assert ext4[ext4.index("-E") + 1] == "nodiscard,lazy_itable_init=0,lazy_journal_init=0"
    assert "-K" in xfs and "-d" not in xfs


def test_the_mount_options_come_after_those_that_keep_it_harmless():
    argv = filesystems.mount_argv(EXT4, "/dev/nvme0n1", "/run/x")
    assert argv == ["mount", "-t", "ext4", "-o", "nodev,nosuid,noexec,noatime,discard", "/dev/nvme0n1", "/run/x"]


MOUNTINFO = """22 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw
90 22 7:3 / /srv/a\\040b rw,nosuid,nodev,noexec,noatime shared:1 - ext4 /dev/loop3 rw,discard
91 22 7:4 / /srv/c rw,relatime - xfs /dev/loop4 rw,attr2
torn
"""


def test_what_is_mounted_and_what_of_it_is_not_in_force():
    found = filesystems.mounted(MOUNTINFO, "/srv/a b")
    assert found.major_minor == "7:3" and filesystems.missing_options(EXT4, found) == []
    other = filesystems.mounted(MOUNTINFO, "/srv/c")
    assert other.major_minor == "7:4" and filesystems.missing_options(XFS, other) == ["noatime", "discard"]
    assert filesystems.mounted(MOUNTINFO, "/srv") is None


@pytest.mark.parametrize("spec", [EXT4, XFS, dataclasses.replace(EXT4, stripe=STRIPE)])
def test_the_real_tools_take_the_arguments_and_the_superblock_has_the_identifier(spec, tmp_path):
    if not shutil.which(f"mkfs.{spec.type}", path=PATH):
        pytest.skip(f"needs {filesystems.PACKAGES[spec.type]}")
    image, identifier = tmp_path / "drive", str(uuid.uuid4())
    with open(image, "wb") as out:
        out.truncate(512 * MIB)
    argv = filesystems.mkfs_argv(spec, identifier, str(image))
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False, env={"PATH": PATH})
    assert (done.returncode, done.stderr) == (0, "")
    with open(image, "rb") as made:
        assert filesystems.superblock(made.read(filesystems.SUPERBLOCK_BYTES)) == (spec.type, identifier)


def copies(data, identifier):
    """Where a superblock with this UUID lies: in any KiB."""
    found, place = [], data.find(identifier)
    while place >= 0:
        ext4 = (place - 104) % 1024 == 0 and data[place - 48 : place - 46] == b"\x53\xef"
        xfs = (place - 32) % 512 == 0 and data[place - 32 : place - 28] == b"XFSB"
        found += [place] if ext4 or xfs else []
        place = data.find(identifier, place + 1)
    return found


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        *[("ext4", ["-b", str(size)]) for size in (1024, 2048, 4096)],
        ("ext4", ["-O", "^sparse_super,^resize_inode"]),
        ("ext4", ["-O", "sparse_super2"]),
        ("ext4", ["-O", "^64bit"]),
        ("xfs", []),
        ("xfs", ["-d", "agcount=6"]),
        ("xfs", ["-s", "size=4096"]),
    ],
)
def test_every_copy_of_a_real_superblock_is_in_one_of_its_places(kind, options, tmp_path):
    image, identifier = tmp_path / "drive", uuid.uuid4()
    with open(image, "wb") as out:
        out.truncate(512 * MIB + 90112)
    named = ["-q", "-F", "-U", str(identifier)] if kind == "ext4" else ["-q", "-m", f"uuid={identifier}"]
    subprocess.run([shutil.which("mkfs." + kind, path=PATH), *named, *options, str(image)], check=True, timeout=60)
    with open(image, "r+b") as made, mmap.mmap(made.fileno(), 0) as data:
        places = filesystems.superblock_places(data[: filesystems.SUPERBLOCK_BYTES])
        before = copies(data, identifier.bytes)
        assert len(before) > 2 and places[0] == 0 and all(place % filesystems.SUPERBLOCK_BYTES == 0 for place in places)
        for place in places:
            data[place : place + filesystems.SUPERBLOCK_BYTES] = bytes(filesystems.SUPERBLOCK_BYTES)
        assert copies(data, identifier.bytes) == []


def test_what_is_no_superblock_is_none():
    assert filesystems.superblock(bytes(4096)) is None and filesystems.superblock(b"XFSB") is None
