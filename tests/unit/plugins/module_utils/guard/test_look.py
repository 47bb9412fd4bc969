# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Looks at files that stand for drives, fio's random fill, and superblocks at their usual places."""

from __future__ import annotations

import itertools
import math
import os
import random
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.ssdlab.fleet.plugins.module_utils.guard import blockreader, filler, look, places, structure
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.preflight.plan_text import capacity

MIB = 1 << 20
SIZE = 8 * MIB


# --- fio's random fill --------------------------------------------------------


def fill(law, sectors=8, seed=1):
    """Sectors as fio writes them by a law, each from seeds of its own."""
    chosen, data = random.Random(seed), b""
    for _sector in range(sectors):
        words = [chosen.getrandbits(64) for _word in range(law.distance)]
        while len(words) < 64:
            words.append((words[-law.distance] * law.factor % 2**64) >> law.shift)
        data += struct.pack("<64Q", *words)
    return data


@pytest.mark.parametrize("law", filler.LAWS)
def test_what_fio_writes_is_recognised(law):
    assert (
        filler.is_fill(fill(law))
        and filler.is_fill(fill(law, sectors=1))
        and filler.is_fill(bytes(512) + fill(law, sectors=7))
    )


@pytest.mark.parametrize("law", filler.LAWS[:2])
@settings(max_examples=200, deadline=None)
@given(place=st.integers(0, 4095), change=st.integers(1, 255))
def test_one_changed_byte_is_not_fios(law, place, change):
    data = bytearray(fill(law))
    data[place] ^= change
    assert not filler.is_fill(bytes(data))


@pytest.mark.parametrize(
    "data",
    [
        os.urandom(4096),
        b"\xff" * 4096,
        b"\0" * 4095 + b"\1",
        b"\1" + bytes(4095),
        b"text " * 820,
        bytes(512) + b"\7" + bytes(511),
        b"x" * 100,
    ],
)
def test_other_data_is_not_fios(data):
    assert not filler.is_fill(data)


# --- a look -------------------------------------------------------------------


@pytest.fixture(params=["aio", "threads"])
def drive(tmp_path, request, monkeypatch):
    """A file that stands for a drive: drive(size, {offset: data}) -> a look's arguments."""
    if request.param == "threads":
        monkeypatch.setattr(blockreader._Aio, "make", lambda *_args: None)
    opened = []

    def make(size=SIZE, pieces=None):
        path = tmp_path / "drive"
        with open(path, "wb") as file:
            file.truncate(size)
            for offset, data in (pieces or {}).items():
                os.pwrite(file.fileno(), data, offset)
        opened.append(os.open(path, os.O_RDONLY))
        return opened[-1], size

    yield make
    for handle in opened:
        os.close(handle)


TERMS = look.Terms(5.0)


def test_a_blank_drive_that_can_be_read_whole_is(drive):
    seen = look.take(*drive(), TERMS)
    assert seen.blank and seen.only_fill and seen.whole and seen.fills == {0} and seen.record()["seen_bytes"] == 4096


@pytest.mark.parametrize("offset", [0, 5, 4096, MIB, 3 * MIB + 77, SIZE - 1, SIZE - MIB - 1])
def test_one_byte_anywhere_is_seen_where_all_is_read(drive, offset):
    seen = look.take(*drive(SIZE, {offset: b"\1"}), TERMS)
    assert seen.foreign == offset // 4096 * 4096 and not seen.blank and not seen.only_fill


@pytest.mark.parametrize("size", [512, 4096, MIB, MIB + 512, 2 * MIB + 512, SIZE + 512, SIZE + 3584])
def test_the_last_sector_of_any_size_is_looked_at(drive, size):
    assert look.take(*drive(size), TERMS).blank
    assert look.take(*drive(size, {size - 1: b"\1"}), TERMS).foreign is not None


@pytest.mark.parametrize("ones", [4096, 512, SIZE // 2])
def test_blank_is_one_fill_value(drive, ones):
    assert look.take(*drive(SIZE, {0: b"\xff" * SIZE}), TERMS).blank
    seen = look.take(*drive(SIZE, {2 * MIB: b"\xff" * ones}), TERMS)
    assert not seen.blank and not seen.only_fill


def test_fio_fill_is_ours_or_not(drive):
    data = fill(filler.LAWS[0], SIZE // 2 // 512)
    seen = look.take(*drive(SIZE, {0: data}), TERMS, fill_counts=False)
    assert seen.only_fill and not seen.blank and seen.whole and seen.filled >= SIZE // 2 // 4096
    assert look.take(*drive(SIZE, {0: data}), TERMS).first_filled == 0
    assert look.take(*drive(SIZE, {0: data, SIZE - 5000: b"x"}), TERMS, fill_counts=False).foreign is not None


@pytest.mark.parametrize("elsewhere", [{}, {MIB + 8192: b"\xff" * 4096}, {0: b"\xff" * 4096}])
def test_a_block_without_the_law_of_the_fill_is_found_where_it_is_asked_for(drive, elsewhere):
    places = [look.Extent(MIB, MIB), look.Extent(2 * MIB + 4096, 512)]
    data = fill(filler.LAWS[0], MIB // 512)
    assert look.is_fill_where(*drive(SIZE, {0: data}), places)
    for offset in (0, SIZE - 1, MIB + 4096, 2 * MIB + 4096 + 511):
        assert not look.is_fill_where(*drive(SIZE, {0: data, **elsewhere, offset: b"x"}), places)
    # Ones beside zeros are neither blank nor fio's: what comes after them may be anything.
    assert not elsewhere or not look.is_fill_where(*drive(SIZE, elsewhere), places)


def test_what_is_known_does_not_count_and_what_is_beside_it_does(drive):
    pieces = {0: b"table".ljust(512, b"t"), 8192: os.urandom(4096)}
    known = [look.Extent(0, 512), look.Extent(8192, 4096)]
    assert look.take(*drive(SIZE, pieces), TERMS, known).blank
    assert look.take(*drive(SIZE, {**pieces, 600: b"x"}), TERMS, known).foreign == 0
    assert look.take(*drive(SIZE, pieces), TERMS, known[:1]).foreign == 8192


def test_a_drive_that_cannot_be_read_whole_is_sampled_for_its_time(drive, monkeypatch):
    handle, size = drive(512 * MIB)
    monkeypatch.setattr(look, "_whole_in_time", lambda *_args: False)
    seen = look.take(handle, size, look.Terms(0.3))
    assert seen.blank and not seen.whole and seen.blocks >= 32 and seen.seconds >= 0.3


def test_a_little_data_where_the_drive_says_so_is_always_seen(drive, monkeypatch):
    """On top of the random blocks: they are as many as ever."""
    monkeypatch.setattr(look, "_whole_in_time", lambda *_args: False)
    arguments = drive(64 << 30, {40 << 30: b"x" * 5000})
    assert look.take(*arguments, look.Terms(0.2), aim=[look.Extent(40 << 30, 8192)]).foreign in (
        40 << 30,
        (40 << 30) + 4096,
    )
    seen = look.take(*arguments, look.Terms(0.2), aim=[look.Extent(20 << 30, 8192)])
    assert seen.blank and seen.aimed_blocks == 2 and seen.blocks >= 32


@pytest.mark.parametrize("seconds, asked", [(5.0, 1), (5.0, 40), (None, 1), (None, 40)])
def test_a_look_ends_when_the_job_is_to_end(drive, monkeypatch, seconds, asked):
    monkeypatch.setattr(look, "_whole_in_time", lambda *_args: seconds is None)
    answers = iter([False] * asked)
    with pytest.raises(look.Stopped):
        look.take(*drive(128 * MIB), look.Terms(seconds, lambda: next(answers, True)))


def test_full_reads_all_of_it(drive):
    seen = look.take(*drive(300 * MIB, {123 * MIB + 4096: b"x"}), look.Terms(None))
    assert seen.foreign == 123 * MIB + 4096


def test_a_drive_that_does_not_read_raises(drive):
    handle, size = drive()
    with pytest.raises(OSError):
        look.take(handle, 2 * size, TERMS)


# --- the chance ---------------------------------------------------------------


def test_the_issues_example():
    record = look.Look(size_bytes=2_750_000_000_000, blocks=182_000).record()
    text = "looked at 182,000 blocks: 99.5 MiB of data anywhere on 2.75 TB would have been seen with 99.9 %"
    assert look.text(record, capacity) == text
    assert (
        look.text(dict(record, allocated_bytes=8 << 20), capacity)
        == text + "; the drive itself says that 8 MiB are in use"
    )


@given(st.integers(1, 10**6), st.integers(10**7, 10**14))
def test_the_chance_and_the_size_that_is_told_agree(blocks, size):
    data = look.seen_bytes(blocks, size, whole=False)
    assert look.chance(data, blocks, size) >= 0.999 - 1e-6 or data == size
    assert data <= 4096 or look.chance(data * 0.9 - 8192, blocks, size) < 0.9991


class Simulated:
    """A drive of blocks, of which these hold data, that answers as a reader does."""

    def __init__(self, blocks, data):
        self.size_bytes, self._data = blocks * 4096, data

    def read(self, offsets):
        return b"".join(b"data" * 1024 if offset // 4096 in self._data else bytes(4096) for offset in offsets)

    def sees(self, batches):
        """Whether one look at so many random blocks, 32 at a time, sees data."""
        seeing = look._Seeing(look.Look(self.size_bytes), (), True, look.never)
        offsets = itertools.islice(places.random_offsets(self.size_bytes, 4096, places.AT_A_TIME), batches)
        look._some(self, seeing, offsets, 1.0, lambda: 0.0)
        return seeing.look.foreign is not None


@pytest.mark.parametrize("arranged", ["in one piece", "scattered", "across blocks"])
@settings(max_examples=15, deadline=None)
@given(blocks=st.integers(64, 4096), part=st.floats(0.0005, 0.05), batches=st.integers(1, 4))
def test_data_is_seen_at_least_as_often_as_is_told(arranged, blocks, part, batches):
    """And no more often, by these blocks alone: a chance that is told too small costs nights of ssd_look: full. Data
    that lies across blocks touches one more.
    """
    count, looks = max(1, int(blocks * part)), 400
    first = random.randrange(blocks - count)
    across = arranged == "across blocks"
    data = random.sample(range(blocks), count) if arranged == "scattered" else range(first, first + count + across)
    drive = Simulated(blocks, set(data))
    told = look.chance(count * 4096, 32 * batches, drive.size_bytes)
    seen = sum(drive.sees(batches) for _look in range(looks)) / looks
    # Beyond six deviations less than once in a hundred million, and as much for a chance near 0 or 1.
    noise = 6 * math.sqrt(max(told * (1 - told), 0.01) / looks)
    assert told <= seen + noise
    assert across or seen <= told + noise


def test_a_look_at_nothing_proves_nothing():
    assert look.seen_bytes(0, 10**12, whole=False) == 10**12 and math.isclose(
        look.chance(4096, 10**5, 4096 * 10**6), 1 - (1 - 1e-6) ** 10**5
    )
    assert look.text(look.Look(SIZE, SIZE // 4096, 0.5, True).record(), capacity) == "looked at all 8 MiB in 0.5 s"


# --- superblocks --------------------------------------------------------------


def scan(pieces, size=4 << 30, block_bytes=512):
    data = dict(pieces)

    def read(offsets):
        found = b""
        for offset in offsets:
            piece = bytearray(4096)
            for place, text in data.items():
                start = place - offset
                if -len(text) < start < 4096:
                    cut = text[max(0, -start) : 4096 - start]
                    piece[max(0, start) : max(0, start) + len(cut)] = cut
            found += bytes(piece)
        return found

    return [(one.kind, one.offset) for one in structure.scan(read, size, block_bytes)]


def ext(group=0, block=2):
    """The fields of an ext superblock that are looked at: block and cluster size, magic, revision, its own group."""
    data = bytearray(1024)
    struct.pack_into("<II", data, 24, block, block)
    struct.pack_into("<H", data, 56, 0xEF53)
    struct.pack_into("<I", data, 76, 1)
    struct.pack_into("<H", data, 90, group)
    return bytes(data)


@pytest.mark.parametrize(
    "pieces, kind",
    [
        ({MIB + 1024: ext()}, "ext"),
        ({63 * 512 + 1024: ext()}, "ext"),
        ({513 * MIB + 1024: ext()}, "ext"),
        ({128 * MIB: ext(1)}, "ext"),
        ({MIB + 3 * 128 * MIB: ext(3)}, "ext"),
        ({8193 * 1024: ext(1, 0)}, "ext"),
        ({MIB: b"XFSB" + struct.pack(">I", 4096)}, "xfs"),
        ({1 << 30: b"XFSB" + struct.pack(">I", 4096)}, "xfs"),
        ({513 * MIB + 32: b"ORCLDISK"}, "oracleasm"),
        ({513 * MIB + 8192: b"OCFSV2"}, "ocfs2"),
        ({513 * MIB + 8192: b"OracleCFS"}, "ocfs"),
        ({514 * MIB: struct.pack("<II", 0xC001D00D, 24)}, "VMFS_volume_member"),
        ({515 * MIB: struct.pack("<II", 0x2FABF15E, 5)}, "VMFS"),
        ({MIB + 65536 + 64: b"_BHRfS_M"}, "btrfs"),
        ({(64 << 20) + 64: b"_BHRfS_M"}, "btrfs"),
        ({MIB + 512: b"LABELONE"}, "LVM2_member"),
        ({MIB + 4096: struct.pack("<II", 0xA92B4EFC, 1)}, "linux_raid_member"),
        ({MIB: struct.pack("<II", 0xA92B4EFC, 1)}, "linux_raid_member"),
        ({MIB + 4086: b"SWAPSPACE2"}, "swap"),
        ({MIB: b"LUKS\xba\xbe\0\2"}, "crypto_LUKS"),
        ({MIB + 131072: struct.pack("<Q", 0x00BAB10C)}, "zfs_member"),
        ({2 * MIB + 3: b"NTFS    "}, "ntfs"),
        ({MIB + 65536: struct.pack(">II", 0x01161970, 1)}, "gfs2"),
    ],
)
def test_a_superblock_is_found_at_each_usual_place(pieces, kind):
    assert kind in {found for found, _offset in scan(pieces)}


@pytest.mark.parametrize(
    "pieces", [{}, {MIB + 1024: ext(7)}, {128 * MIB: ext(3)}, {MIB: b"XFSB"}, {MIB + 1024 + 56: b"\x53\xef" * 20}]
)
def test_what_only_looks_like_one_is_none(pieces):
    assert scan(pieces) == []


def test_random_data_holds_none():
    noise = random.Random(1)  # in other noise there is one by chance, once in thousands of drives
    assert structure.scan(lambda offsets: noise.randbytes(4096 * len(offsets)), 1 << 33) == []


def test_a_drive_with_large_blocks_is_asked_for_whole_ones():
    seen = []
    structure.scan(lambda offsets: seen.extend(offsets) or bytes(4096 * len(offsets)), 1 << 30, 4096)
    assert seen and all(offset % 4096 == 0 for offset in seen)


@pytest.mark.parametrize(
    "seconds, size, least_s", [(10.0, 4 * 10**12, 0), (3600.0, 4 * 10**12, 3 * 3600), (None, 4 * 10**12, 4000)]
)
def test_a_look_is_not_taken_for_a_drive_that_hangs(seconds, size, least_s):
    """A full look at 4 TB takes longer than any other step may."""
    assert look.longer_s(look.Terms(seconds), size) >= least_s
