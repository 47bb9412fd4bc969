# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Partition tables as bytes, and what lies on a drive: images in files, signatures from a fixture host."""

from __future__ import annotations

import os
import struct
import uuid
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.ssdlab.fleet.plugins.module_utils.guard import on_disk_signatures, partition_tables
from ansible_collections.ssdlab.fleet.plugins.module_utils.guard.block_reader import PlaceReader
from ansible_collections.ssdlab.fleet.plugins.module_utils.guard.facts import Extent, Facts
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.found_drives import Identity

SIZE = 16 << 20
MIB = 1 << 20
EFI = "c12a7328-f81f-11d2-ba4b-00a0c93ec93b"
LINUX = "0fc63daf-8483-4772-8e79-3d69d8477de4"
VMFS = "aa31e02a-400f-11db-9590-000c2911d1b8"
OWN = "aaaaaaaa-bbbb-cccc-dddd-000000000001"


class Image(bytearray):
    """A drive's bytes; `read` as the guard's reader has it."""

    def __init__(self, size=SIZE):
        super().__init__(size)

    def read(self, offset, length):
        return bytes(self[offset : offset + length]) if offset >= 0 else b""

    def put(self, offset, data):
        self[offset : offset + len(data)] = data

    def gpt(self, kind, block=512, header=None, first=64, last=127, entry_bytes=128):
        """A header after UEFI 2.10, table 5-5, and one entry after table 5-6; the entries' checksum is
        not looked at.
        """
        header = block if header is None else header
        entries = header + block if header < len(self) // 2 else header - block
        fields = struct.pack(
            "<8s4sIIIQQQQ16sQII",
            b"EFI PART",
            b"\0\0\1\0",
            92,
            0,
            0,
            header // block,
            0,
            0,
            0,
            b"",
            entries // block,
            4,
            entry_bytes,
        )
        self.put(header, fields[:16] + struct.pack("<I", zlib.crc32(fields + bytes(4))) + fields[20:])
        self.put(entries, struct.pack("<16s16sQQ", uuid.UUID(kind).bytes_le, uuid.UUID(OWN).bytes_le, first, last))
        return self

    def mbr(self, *kinds, sector=0):
        for place, (kind, first, blocks) in enumerate(kinds):
            self.put(sector + 446 + 16 * place, struct.pack("<B3xB3xII", 0, kind, first, blocks))
        self.put(sector + 510, b"\x55\xaa")
        return self


def types(image):
    return [part.type for part in partition_tables.partitions(image.read, len(image))]


@pytest.mark.parametrize("block", [512, 4096])
@pytest.mark.parametrize("at_end", [False, True])
def test_a_gpt_is_read_from_either_end_and_with_either_block_size(block, at_end):
    image = Image().gpt(EFI, block, SIZE - block if at_end else None)
    (part,) = partition_tables.partitions(image.read, SIZE)
    assert part == (EFI, 64 * block, 64 * block, OWN) and part.type in partition_tables.EFI_SYSTEM


def test_both_copies_are_one_partition():
    assert types(Image().gpt(LINUX).gpt(LINUX, header=SIZE - 512)) == [LINUX]


def test_an_mbr_with_logical_partitions():
    image = Image().mbr((0x83, 8, 8), (0x05, 100, 1000))
    image.mbr((0xEF, 2, 8), (0x05, 200, 10), sector=100 * 512).mbr((0xFB, 2, 8), sector=300 * 512)
    assert partition_tables.partitions(image.read, SIZE) == [
        ("0x83", 4096, 4096, None),
        ("0xef", 52224, 4096, None),
        ("0xfb", 154624, 4096, None),
    ]


def test_a_chain_of_logical_partitions_that_bites_its_tail_ends():
    image = Image().mbr((0x05, 100, 1000)).mbr((0x83, 2, 8), (0x05, 0, 10), sector=100 * 512)
    assert "0x83" in types(image)


@pytest.mark.parametrize("image", [Image(), Image().mbr(), Image().mbr((0xEE, 1, 8)), Image(64), Image(0)])
def test_no_partition(image):
    assert types(image) == []


@pytest.mark.parametrize("entry_bytes", [0, 64, 8192])
def test_a_header_with_impossible_entries_has_none(entry_bytes):
    assert types(Image().gpt(EFI, entry_bytes=entry_bytes)) == []


@settings(max_examples=300, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from([0, 446, 512, 584, 1024, 4096, SIZE - 512]), st.binary(max_size=96)), max_size=6
    ),
    st.booleans(),
)
def test_no_table_makes_the_parser_fail(pieces, signed):
    image = Image(1 << 16).gpt(EFI).mbr() if signed else Image(1 << 16)
    for offset, data in pieces:
        image.put(offset % (len(image) - 100), data)
    for part in partition_tables.partitions(image.read, len(image)):
        assert part.start_bytes >= 0 and part.size_bytes >= 0


# --- a drive's content --------------------------------------------------------


def look(fake, image, partitions=()):
    facts = Facts(name="sda", path="/dev/sda", kind="drive", identity=Identity(size_bytes=len(image)))
    facts.partitions = list(partitions)
    reader = type("Reader", (), {"size_bytes": len(image), "read": staticmethod(image.read)})
    on_disk_signatures.probe_blocks(fake, facts, reader)
    return facts


@pytest.mark.parametrize("kind", [EFI, "0xef"])
def test_an_efi_system_partition_needs_no_partition_of_the_kernel(fake, kind):
    facts = look(fake, Image().mbr((0xEF, 64, 64)) if kind == "0xef" else Image().gpt(kind, header=SIZE - 512))
    assert facts.efi == ["at byte 32768"] and facts.tables and facts.cluster == []


def test_partitions_are_looked_into_by_their_place_and_their_tags_kept(fake):
    fake.answers["blkid"] = (0, "TYPE=ext4\nUUID=AB-CD\n", "")
    facts = look(fake, Image().gpt(LINUX))
    assert facts.signatures == ["partition 1: ext4"]
    assert facts.tags == {"UUID=abcd", "PARTUUID=" + OWN.replace("-", "")}
    assert ["blkid", "-p", "-o", "export", "--offset", "32768", "--size", "32768", "/dev/sda"] in fake.commands


def test_the_partitions_are_kept(fake):
    assert look(fake, Image().gpt(LINUX)).pieces == [Extent(32768, 32768)]


def test_a_partition_of_a_cluster_file_system(fake):
    assert look(fake, Image().gpt(VMFS)).cluster == ["partition 1: VMFS"]


def test_a_partition_that_the_kernel_alone_has_is_looked_into(fake):
    """But not the first record of an extended one, nor a second time what a table tells of."""
    for name, start, sectors in (("sda1", 64, 64), ("sda2", 5001, 100), ("sda3", 200, 8)):
        fake.put(f"/sys/class/block/{name}/start", f"{start}\n")
        fake.put(f"/sys/class/block/{name}/size", f"{sectors}\n")
    fake.answers["blkid"] = (0, "TYPE=ext4\n", "")
    facts = look(fake, Image().gpt(LINUX), partitions=["sda1", "sda2", "sda3", "sda4"])
    assert facts.signatures == ["partition 1: ext4", "sda2: ext4"]
    places = [argv[-4:-1] for argv in fake.commands if argv[0] == "blkid"]
    assert places == [["32768", "--size", "32768"], [str(5001 * 512), "--size", "51200"]]


def test_a_table_in_a_partition_is_data_and_what_it_tells_of_is_looked_into(fake):
    """A table that names itself ends too."""
    image, inner = Image().gpt(LINUX, first=2048, last=10239), Image(4 << 20).gpt(VMFS)
    image.put(MIB, bytes(inner))
    fake.answers["blkid"] = (0, "PTTYPE=gpt\n", "")
    facts = look(fake, image)
    assert "partition 1: gpt" in facts.signatures and facts.cluster == ["partition 1, partition 1: VMFS"]
    assert facts.tables == ["partition 1 of type " + LINUX]
    looked = [argv[-4:-1] for argv in fake.commands if argv[0] == "blkid"]
    assert looked == [[str(MIB), "--size", str(4 << 20)], [str(MIB + 32768), "--size", "32768"]]
    assert look(fake, Image().mbr((0x83, 0, 4096))).signatures


@pytest.mark.parametrize(("kind", "read"), [("gpt", True), ("dos", True), ("sun", False), ("mac", False)])
def test_a_table_whose_partitions_are_not_read_counts_as_data(fake, kind, read):
    fake.answers["blkid"] = (0, f"PTTYPE={kind}\n", "")
    facts = Facts(name="sda", path="/dev/sda", kind="drive", identity=Identity())
    on_disk_signatures.probe_blkid(fake, facts)
    assert facts.tables == [kind] and bool(facts.signatures) is not read


@pytest.mark.parametrize("kind", ["VMFS_volume_member", "gfs2", "ocfs2", "oracleasm"])
def test_a_cluster_file_system_is_both_data_and_shared(fake, kind):
    fake.answers["wipefs"] = (0, f'{{"signatures": [{{"type": "{kind}"}}]}}', "")
    facts = Facts(name="sda", path="/dev/sda", kind="drive", identity=Identity())
    on_disk_signatures.probe_wipefs(fake, facts)
    assert facts.cluster == facts.signatures == [kind]


def test_a_partition_that_ends_past_the_drive_is_looked_into_as_far_as_it_goes(fake):
    fake.answers["blkid"] = (0, "TYPE=ext4\n", "")
    facts = look(fake, Image().mbr((0x83, 64, 1 << 30), (0x83, SIZE // 512, 64)))
    assert facts.signatures == ["partition 1: ext4"]
    assert [argv[-4:-1] for argv in fake.commands if argv[0] == "blkid"] == [["32768", "--size", str(SIZE - 32768)]]


@pytest.mark.parametrize("block", [512, 4096])
def test_the_tables_own_bytes_are_known(fake, block):
    image = Image().gpt(LINUX, block).gpt(LINUX, block, header=SIZE - block).mbr()
    marks = {(mark.offset, mark.length) for mark in look(fake, image).marks if mark.is_table}
    assert marks == {(0, 512), (block, block), (2 * block, 512), (SIZE - block, block), (SIZE - 2 * block, 512)}


def test_a_signatures_own_block_is_known(fake):
    fake.answers["wipefs"] = (
        0,
        (
            '{"signatures": [{"type": "swap", "offset": "0xff6"}, {"type": "dos", "offset": "0x1fe"}, {"type": "x", '
            '"offset": "?"}]}'
        ),
        "",
    )
    facts = Facts(name="sda", path="/dev/sda", kind="drive", identity=Identity())
    on_disk_signatures.probe_wipefs(fake, facts)
    assert facts.marks == [(0, 4096, False), (0, 512, True)]


def test_the_reader_reads_whole_blocks_and_gives_the_bytes_asked_for(tmp_path):
    data = os.urandom(10240)
    (tmp_path / "image").write_bytes(data)
    handle = os.open(tmp_path / "image", os.O_RDONLY)
    try:
        reader = PlaceReader(handle, len(data), 512)
        for offset, length in (
            (0, 92),
            (100, 5000),
            (512, 512),
            (10239, 1),
            (10000, 5000),
            (10240, 10),
            (-512, 92),
            (20000, 5),
        ):
            assert reader.read(offset, length) == (data[offset : offset + length] if offset >= 0 else b"")
        with pytest.raises(OSError):
            PlaceReader(handle, len(data) + 4096, 512).read(10000, 4096)
    finally:
        os.close(handle)
