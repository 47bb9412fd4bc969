# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Looks at files that stand for drives."""

from __future__ import annotations

import errno
import os

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.guard import data_scan
from ansible_collections.ssdlab.fleet.plugins.module_utils.guard.block_classifier import Stopped
from ansible_collections.ssdlab.fleet.plugins.module_utils.guard.fio_data import LAWS
from ansible_collections.ssdlab.fleet.tests.fixtures.fio_data import filled, scrambled

MIB = 1 << 20
SIZE = 8 * MIB


# --- a look -------------------------------------------------------------------


@pytest.fixture(params=["aio", "threads"])
def drive(tmp_path, request, monkeypatch):
    """A file that stands for a drive: drive(size, {offset: data}) -> a look's arguments."""
    if request.param == "threads":
        # One whose numbers of system calls the reader does not know.
        monkeypatch.setattr("platform.machine", lambda: "sparc64")
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


TERMS = data_scan.Terms(5.0)


def test_a_blank_drive_that_can_be_read_whole_is(drive):
    seen = data_scan.scan(*drive(), TERMS)
    assert seen.blank and seen.only_fill and seen.whole and seen.fills == {0} and seen.record().seen_bytes == 4096


@pytest.mark.parametrize("offset", [0, 5, 4096, MIB, 3 * MIB + 77, SIZE - 1, SIZE - MIB - 1])
def test_one_byte_anywhere_is_seen_where_all_is_read(drive, offset):
    seen = data_scan.scan(*drive(SIZE, {offset: b"\1"}), TERMS)
    assert seen.foreign == offset // 4096 * 4096 and not seen.blank and not seen.only_fill


@pytest.mark.parametrize("size", [512, 4096, MIB, MIB + 512, 2 * MIB + 512, SIZE + 512, SIZE + 3584])
def test_the_last_sector_of_any_size_is_looked_at(drive, size):
    assert data_scan.scan(*drive(size), TERMS).blank
    assert data_scan.scan(*drive(size, {size - 1: b"\1"}), TERMS).foreign is not None


@pytest.mark.parametrize("ones", [4096, 512, SIZE // 2])
def test_blank_is_one_fill_value(drive, ones):
    assert data_scan.scan(*drive(SIZE, {0: b"\xff" * SIZE}), TERMS).blank
    seen = data_scan.scan(*drive(SIZE, {2 * MIB: b"\xff" * ones}), TERMS)
    assert not seen.blank and not seen.only_fill


@pytest.mark.parametrize(
    "write", [lambda data: data, lambda data: scrambled(data, 0, 86_400, 5)], ids=["filled", "scrambled"]
)
def test_fios_data_are_ours_or_not(drive, write):
    data = write(filled(LAWS[0], 1, SIZE // 2 // 512))
    # Checking each block's law takes its time on a busy machine.
    seen = data_scan.scan(*drive(SIZE, {0: data}), data_scan.Terms(None), fill_counts=False)
    assert seen.only_fill and not seen.blank and seen.whole and seen.filled >= SIZE // 2 // 4096
    assert data_scan.scan(*drive(SIZE, {0: data}), TERMS).first_filled == 0
    assert data_scan.scan(*drive(SIZE, {0: data, SIZE - 5000: b"x"}), TERMS, fill_counts=False).foreign is not None


@pytest.mark.parametrize("elsewhere", [{}, {MIB + 8192: b"\xff" * 4096}, {0: b"\xff" * 4096}])
def test_a_block_without_the_law_of_the_fill_is_found_where_it_is_asked_for(drive, elsewhere):
    places = [data_scan.Extent(MIB, MIB), data_scan.Extent(2 * MIB + 4096, 512)]
    data = filled(LAWS[0], 1, MIB // 512)
    assert data_scan.is_fill_where(*drive(SIZE, {0: data}), places)
    for offset in (0, SIZE - 1, MIB + 4096, 2 * MIB + 4096 + 511):
        assert not data_scan.is_fill_where(*drive(SIZE, {0: data, **elsewhere, offset: b"x"}), places)
    # Ones beside zeros are neither blank nor fio's: what comes after them may be anything.
    assert not elsewhere or not data_scan.is_fill_where(*drive(SIZE, elsewhere), places)


def test_what_is_known_does_not_count_and_what_is_beside_it_does(drive):
    pieces = {0: b"table".ljust(512, b"t"), 8192: os.urandom(4096)}
    known = [data_scan.Extent(0, 512), data_scan.Extent(8192, 4096)]
    assert data_scan.scan(*drive(SIZE, pieces), TERMS, known).blank
    assert data_scan.scan(*drive(SIZE, {**pieces, 600: b"x"}), TERMS, known).foreign == 0
    assert data_scan.scan(*drive(SIZE, pieces), TERMS, known[:1]).foreign == 8192


def test_a_drive_that_cannot_be_read_whole_is_sampled_for_its_time(drive, monkeypatch):
    handle, size = drive(512 * MIB)
    monkeypatch.setattr(data_scan, "whole_in_time", lambda *_args: False)
    seen = data_scan.scan(handle, size, data_scan.Terms(0.3))
    assert seen.blank and not seen.whole and seen.blocks >= 32 and seen.seconds >= 0.3


def test_a_little_data_where_the_drive_says_so_is_always_seen(drive, monkeypatch):
    """On top of the random blocks: they are as many as ever."""
    monkeypatch.setattr(data_scan, "whole_in_time", lambda *_args: False)
    arguments = drive(64 << 30, {40 << 30: b"x" * 5000})
    assert data_scan.scan(*arguments, data_scan.Terms(0.2), aim=[data_scan.Extent(40 << 30, 8192)]).foreign in (
        40 << 30,
        (40 << 30) + 4096,
    )
    seen = data_scan.scan(*drive(64 << 30), data_scan.Terms(0.2), aim=[data_scan.Extent(20 << 30, 8192)])
    assert seen.blank and seen.aimed_blocks == 2 and seen.blocks >= 32


@pytest.mark.parametrize("seconds, asked", [(5.0, 1), (5.0, 40), (None, 1), (None, 40)])
def test_a_look_ends_when_the_job_is_to_end(drive, monkeypatch, seconds, asked):
    monkeypatch.setattr(data_scan, "whole_in_time", lambda *_args: seconds is None)
    answers = iter([False] * asked)
    with pytest.raises(Stopped):
        data_scan.scan(*drive(128 * MIB), data_scan.Terms(seconds, lambda: next(answers, True)))


def test_full_reads_all_of_it(drive):
    seen = data_scan.scan(*drive(300 * MIB, {123 * MIB + 4096: b"x"}), data_scan.Terms(None))
    assert seen.foreign == 123 * MIB + 4096


def test_a_drive_that_does_not_read_raises(drive):
    handle, size = drive()
    with pytest.raises(OSError):
        data_scan.scan(handle, 2 * size, TERMS)


@pytest.fixture
def bad_blocks(monkeypatch):
    """Blocks of 4 KiB that the kernel cannot give, and why; None: any."""
    bad, read = {}, os.preadv
    monkeypatch.setattr("platform.machine", lambda: "sparc64")  # threads, whose reads go through os.preadv

    def preadv(handle, buffers, offset):
        length = sum(len(buffer) for buffer in buffers)
        for place, code in bad.items():
            if place is None or offset <= place < offset + length:
                raise OSError(code, os.strerror(code))
        return read(handle, buffers, offset)

    monkeypatch.setattr(os, "preadv", preadv)
    return bad


@pytest.mark.parametrize("code", [errno.EIO, errno.ENODATA, errno.EILSEQ, errno.EREMOTEIO])
@pytest.mark.parametrize("place", [0, 4096, MIB + 8192, SIZE - 4096])
def test_a_block_that_the_drive_cannot_give_counts_as_data(drive, bad_blocks, place, code):
    bad_blocks[place] = code
    seen = data_scan.scan(*drive(), TERMS)
    assert seen.unreadable.offset <= place < seen.unreadable.offset + seen.unreadable.length
    assert seen.foreign is not None and not seen.blank and not seen.only_fill
    assert not data_scan.is_fill_where(*drive(), [data_scan.Extent(place // MIB * MIB, MIB)])


@pytest.mark.parametrize("place, code", [(None, errno.EIO), (MIB, errno.ENXIO), (MIB, errno.ENODEV)])
def test_a_drive_that_answers_nowhere_was_not_looked_at(drive, bad_blocks, place, code):
    bad_blocks[place] = code
    with pytest.raises(OSError):
        data_scan.scan(*drive(), TERMS)


@pytest.mark.parametrize(
    "seconds, size, least_s", [(10.0, 4 * 10**12, 0), (3600.0, 4 * 10**12, 3 * 3600), (None, 4 * 10**12, 4000)]
)
def test_a_look_is_not_taken_for_a_drive_that_hangs(seconds, size, least_s):
    """A full look at 4 TB takes longer than any other step may."""
    assert data_scan.longer_s(data_scan.Terms(seconds), size) >= least_s
