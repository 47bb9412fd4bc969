# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Archives as no host job makes them: none of them costs more than the limits, or writes anything but plain files below
the run's folder.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import shutil
import tarfile
import tracemalloc

import pytest

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.run_folder import unpack
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.validation.host_action import files_up_to

MIB = 1 << 20


@pytest.fixture
def place(tmp_path):
    """Unpack a tar's bytes: place(data, limits), or packed(data)(limits)."""
    (tmp_path / "raw" / "h1").mkdir(parents=True)
    (tmp_path / "raw" / "h1" / "old").write_text("as it was")
    (tmp_path / "raw" / ".aside").mkdir()

    def packed(data):
        path = tmp_path / "raw" / ".aside" / "archive.tar.gz"
        shutil.rmtree(path.parent / "unpacked", ignore_errors=True)
        path.write_bytes(gzip.compress(data, 9))
        sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
        return lambda **limits: unpack.replace(str(tmp_path / "raw" / "h1"), str(path), sha256, unpack.limits(limits))

    def run(data, **limits):
        packed(data)(**limits)

    run.packed, run.folder = packed, tmp_path / "raw"
    return run


def header(name, size=0, kind=tarfile.REGTYPE, pax=None, **fields):
    info = tarfile.TarInfo(name)
    info.size, info.type = size, kind
    for key, value in fields.items():
        setattr(info, key, value)
    info.pax_headers = pax or {}
    return info.tobuf(tarfile.PAX_FORMAT if pax else tarfile.GNU_FORMAT)


END = b"\0" * 1024


def gnu_sparse():
    """One that declares 4 TiB in a header of 512 bytes (the old GNU format)."""
    raw = bytearray(header("journal.jsonl", 0, tarfile.GNUTYPE_SPARSE))
    raw[483:495] = b"\x80" + (4 << 40).to_bytes(11, "big")
    raw[148:156] = b"        "
    raw[148:156] = b"%06o\0 " % sum(raw)
    return bytes(raw) + END


def pax_sparse():
    return (
        header(
            "journal.jsonl",
            0,
            pax={
                "GNU.sparse.major": "1",
                "GNU.sparse.minor": "0",
                "GNU.sparse.name": "journal.jsonl",
                "GNU.sparse.realsize": str(4 << 40),
            },
        )
        + END
    )


def huge_header():
    """A file name of 2 GiB, as an extended header announces it."""
    return header("x", 2 << 30, tarfile.GNUTYPE_LONGNAME) + b"a" * MIB


def sparse_map(megabytes):
    """A sparse file whose map is millions of numbers, each of which takes memory: it shrinks to a thousandth."""
    about = {"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.name": "a", "GNU.sparse.realsize": "1"}
    return header("a", megabytes * MIB, pax=about) + b"%d\n" % (megabytes * MIB) + b"1\n" * (megabytes * MIB // 2)


def extended_maps(number):
    """The old GNU format's: as many blocks of them as follow."""
    raw = bytearray(header("a", 0, tarfile.GNUTYPE_SPARSE))
    raw[482] = 1
    raw[148:156] = b"        "
    raw[148:156] = b"%06o\0 " % sum(raw)
    return bytes(raw) + (b"00000000001\0" * 42 + b"\1" + b"\0" * 7) * number


CASES = {
    "a sparse map without end": sparse_map(4),
    "extended sparse maps without end": extended_maps(5000),
    "a header of one MiB": header("a", 0, pax={"comment": "x" * MIB}) + END,
    "sparse, GNU": gnu_sparse(),
    "sparse, PAX": pax_sparse(),
    "a link": header("link", kind=tarfile.SYMTYPE, linkname="/etc") + END,
    "a hard link": header("link", kind=tarfile.LNKTYPE, linkname="../../results.jsonl") + END,
    "a device": header("disk", kind=tarfile.BLKTYPE) + END,
    "a pipe": header("pipe", kind=tarfile.FIFOTYPE) + END,
    "a folder": header("raw", kind=tarfile.DIRTYPE) + END,
    "an absolute name": header("/tmp/x") + END,
    "up": header("raw/../../x") + END,
    "a dot": header("./x") + END,
    "our marker": header(".collected") + END,
    "a name with a newline": header("a\nb") + END,
    "a name of letters from afar": header("a\u202eb") + END,
    "the same file twice": header("a") + header("a") + END,
    "a file below a file": header("a") + header("a/b") + END,
    "a name of 2 GiB": huge_header(),
    "a size without end": header("a", 8 << 30) + b"x" * 1024,
    "a thousand headers for one file": b"".join(header("x", 0, tarfile.XHDTYPE) for _n in range(5000)) + END,
    "no archive": b"x" * 5000,
}


@pytest.mark.parametrize("what", CASES)
def test_only_plain_files_are_unpacked(place, what):
    with pytest.raises((unpack.UnpackError, OSError)):
        place(CASES[what])
    assert (place.folder / "h1" / "old").read_text() == "as it was"
    assert sorted(os.listdir(place.folder)) == [".aside", "h1"]


def test_what_shrinks_too_well_is_not_unpacked(place):
    """A bomb: 300 MiB in some 300 KiB."""
    with pytest.raises(unpack.UnpackError, match="limit ratio"):
        place(header("a", 300 * MIB) + b"\0" * (300 * MIB) + END)
    place(header("a", 300 * MIB) + b"\0" * (300 * MIB) + END, ratio=2000)


@pytest.mark.parametrize("kind", [tarfile.XHDTYPE, tarfile.XGLTYPE], ids=["of each file", "of all files"])
def test_the_words_of_headers_are_not_kept(place, kind):
    """60,000 of them take 4 GiB of memory, and 20 MiB of an archive."""
    words, members = "x" * 150_000, []
    for number in range(200):
        if kind == tarfile.XGLTYPE:
            members += [tarfile.TarInfo.create_pax_global_header({f"w{number}": words}), header(f"f{number}")]
        else:
            members.append(header(f"f{number}", pax={"w": f"{number}{words}"}))
    unpacked = place.packed(b"".join([*members, END]))
    tracemalloc.start()
    try:
        unpacked()
        _now, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(os.listdir(place.folder / "h1")) == 201 and most < 5 * MIB


def test_the_limits_can_be_set(place):
    data = header("a", 3 * MIB) + os.urandom(3 * MIB) + header("b") + END
    with pytest.raises(unpack.UnpackError, match="unpacked_bytes"):
        place(data, unpacked_bytes=2 * MIB)
    with pytest.raises(unpack.UnpackError, match="more than 1 files"):
        place(data, files=1)


def test_a_journal_that_would_hold_up_the_report_is_not_unpacked(place):
    """Random hexadecimal, which shrinks to half only: no other limit stops it."""
    data = header("journal.jsonl", 2 * MIB) + os.urandom(MIB).hex().encode() + END
    with pytest.raises(unpack.UnpackError, match=r"journal.jsonl has 2097152 bytes.*journal_bytes.*ssd_collect_limits"):
        place(data, journal_bytes=2 * MIB - 1)
    assert (place.folder / "h1" / "old").read_text() == "as it was"
    # Of the journal alone: another file of that name is none.
    place(header("journal.jsonl") + header("raw/journal.jsonl", 2 * MIB) + data[512:], journal_bytes=1)
    assert unpack.ArchiveLimits().journal_bytes == 256 * MIB


@pytest.mark.parametrize(
    "given", [{"files": 0}, {"files": "many"}, {"file": 1}, {"ratio": -1}, {"ratio": "5\n"}, {"ratio": True}]
)
def test_a_limit_is_a_number_of_a_known_name(given):
    with pytest.raises(ValueError):
        unpack.limits(given)


def test_no_file_is_fetched_beyond_its_limit(tmp_path):
    with files_up_to(1000), pytest.raises(OSError), open(tmp_path / "a", "wb") as file:
        file.write(b"x" * 5000)
        file.flush()
    with open(tmp_path / "b", "wb") as file:
        file.write(b"x" * 5000)
