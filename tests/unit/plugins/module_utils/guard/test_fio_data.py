# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What fio writes is recognised, and nothing else is."""

from __future__ import annotations

import random
import shutil
import struct
import subprocess
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.ssdlab.fleet.plugins.module_utils.guard import fio_data
from ansible_collections.ssdlab.fleet.plugins.module_utils.guard.fio_data import LAWS
from ansible_collections.ssdlab.fleet.tests.fixtures.fio_data import filled, scrambled

# What small_content_scramble leaves of 512 bytes: all but the first word of each 64 bytes, and the last two of the
# first 64.
KEPT = [place for place in range(64) if place % 8 and place not in (6, 7)]
SEED = 0xFE4D_51A7_0C83_9B21
laws = st.sampled_from(LAWS)
seeds = st.integers(1, 2**64 - 1).map(lambda seed: seed | 1)
writes = st.tuples(
    st.integers(0, 2**46).map(lambda block: 512 * block), st.integers(0, 2**31), st.integers(0, 10**9 - 1)
)


def written(law, seed=SEED, times=20, sectors=8):
    """A buffer after so many writes; 0: as it was filled."""
    chance, buffer = random.Random(seed), filled(law, seed, sectors)
    for _time in range(times):
        buffer = scrambled(buffer, chance.randrange(2**30) * 4096, 86_400, chance.randrange(10**9))
    return buffer


def test_scrambling_leaves_54_words():
    assert len(KEPT) == 54 and set(KEPT).isdisjoint(fio_data.SCRAMBLED) and len(fio_data.SCRAMBLED) == 10


@settings(max_examples=300, deadline=None)
@given(law=laws, seed=seeds, sectors=st.integers(1, 9), passed=st.lists(writes, max_size=12))
def test_what_fio_fills_and_scrambles_is_recognised(law, seed, sectors, passed):
    buffer = filled(law, seed, sectors)
    for write in passed:
        buffer = scrambled(buffer, *write)
    assert fio_data.is_random(buffer)


@pytest.mark.parametrize("law", LAWS)
def test_a_block_may_hold_sectors_of_several_writes(law):
    """And blank ones, which nobody wrote."""
    parts = [written(law, seed, seed, 1) for seed in (1, 3, 5, 7)]
    assert fio_data.is_random(bytes(512).join(parts))


@settings(max_examples=500, deadline=None)
@given(
    law=laws, times=st.sampled_from([0, 1, 20]), sector=st.integers(0, 7), word=st.sampled_from(KEPT), data=st.data()
)
def test_one_changed_byte_where_scrambling_does_not_reach_is_foreign(law, times, sector, word, data):
    buffer = bytearray(written(law, times=times))
    buffer[512 * sector + 8 * word + data.draw(st.integers(0, 7))] ^= data.draw(st.integers(1, 255))
    assert not fio_data.is_random(bytes(buffer))


OTHERS = [b"LABELONE", b"\x01text\0\0\0", b"\xff" * 8, b"\xc3\x91\x0e\x5f\xa8\x77\x1b\1"]
# The least that fio puts in none of these places.
JUST_BEYOND = {**dict.fromkeys(range(0, 64, 8), (256, 1 << 56)), 6: (1 << 32,), 7: (1 << 30,)}


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("times", [0, 1, 20])
def test_scrambling_puts_no_other_values_there(law, times):
    for word, beyond in JUST_BEYOND.items():
        for value in [*OTHERS, *(struct.pack("<Q", number) for number in beyond)]:
            buffer = bytearray(written(law, times=times))
            buffer[8 * word : 8 * word + 8] = value
            assert not fio_data.is_random(bytes(buffer)), (word, value)


SIZE = 1 << 20
FILL = ["--rw=write", "--bs=128k", "--refill_buffers=1"]


def run_fio(file, *options):
    shared = [f"--filename={file}", f"--size={SIZE}", "--thread=1", "--randrepeat=0", "--allow_file_create=0"]
    subprocess.run(["fio", "--name=x", *shared, *options], check=True, stdout=subprocess.DEVNULL)


@pytest.mark.skipif(not shutil.which("fio"), reason="needs fio")
@pytest.mark.parametrize("engine", ["libaio", "io_uring"])
@pytest.mark.parametrize(
    "fill, cell",
    [
        ([], ["--rw=randwrite", "--bs=512"]),
        ([], ["--rw=randwrite", "--bs=4k"]),
        ([], ["--rw=randwrite", "--bs=8k"]),
        ([], ["--rw=write", "--bs=128k"]),
        (FILL, ["--rw=randrw", "--rwmixread=70", "--bs=4k"]),
        (FILL, ["--rw=randrw", "--rwmixread=70", "--bs=512"]),
    ],
    ids=lambda options: " ".join(options) or "blank",
)
def test_every_block_of_a_cell_of_real_fio_is_recognised(tmp_path, engine, fill, cell):
    file = tmp_path / "drive"
    file.write_bytes(bytes(SIZE))
    if fill:
        run_fio(file, *fill)
    run_fio(file, f"--ioengine={engine}", "--iodepth=8", "--norandommap=1", f"--io_size={4 * SIZE}", *cell)
    data = file.read_bytes()
    blocks = [data[place : place + 4096] for place in range(0, SIZE, 4096)]
    assert [place for place, block in enumerate(blocks) if not fio_data.is_random(block)] == []
    assert sum(any(block) for block in blocks) > len(blocks) // 2


FEW_WORDS = struct.pack("<8Q", 4096, 0, 0, 0, 0, 0, 86_400, 123_456_789).ljust(512, b"\0")
SUPERBLOCK = struct.pack("<6I", 65536, 262144, 13107, 249189, 65525, 1).ljust(56, b"\0") + b"\x53\xef\1\0\1\0"
NOISE = random.Random(1).getrandbits(8 * 4096).to_bytes(4096, "little")  # as encrypted data are
TEXT = b"".join(b"line %d of somebody's notes\n" % number for number in range(200))


@pytest.mark.parametrize(
    "data",
    [
        NOISE,
        b"\xff" * 4096,
        b"\0" * 4095 + b"\1",
        b"\1" + bytes(4095),
        b"text " * 820,
        TEXT[:4096],
        zlib.compress(NOISE + TEXT)[:4096],
        SUPERBLOCK.ljust(4096, b"\0"),
        bytes(512) + b"\7" + bytes(511),
        FEW_WORDS * 8,
        scrambled(bytes(4096), 1 << 30, 86_400, 5),
        scrambled(b"\xff" * 4096, 1 << 30, 86_400, 5),
        struct.pack("<64Q", *(b % 2**64 for b in range(64))),
        struct.pack("<Q", 1 << 63) * 512,  # INT64_MIN: nothing, in many a table
        struct.pack("<d", -2.0) * 512,
        b"x" * 100,
    ],
    ids=lambda data: data[:8].hex(),
)
def test_other_data_is_not_fios(data):
    assert not fio_data.is_random(data)
    # Nor beside what is.
    assert not fio_data.is_random(written(LAWS[0]) + data)


@settings(max_examples=200, deadline=None)
@given(law=laws, cut=st.integers(1, 511), head=st.booleans())
def test_a_sector_that_is_only_in_part_fios_is_foreign(law, cut, head):
    """Of its own words only those that scrambling sets may be another's."""
    ours, other = written(law, sectors=1), (TEXT * 2)[:512]
    mixed = other[:cut] + ours[cut:] if head else ours[:cut] + other[cut:]
    assert not fio_data.is_random(mixed)


@settings(max_examples=300, deadline=None)
@given(st.dictionaries(st.integers(0, 63), st.integers(1, 2**64 - 1), min_size=1, max_size=10))
def test_zeros_with_a_few_words_are_foreign(words):
    data = struct.pack("<64Q", *(words.get(place, 0) for place in range(64)))
    assert not fio_data.is_random(data)
