# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The digest by which tests tell that a drive was left alone sees what reading all of it would."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import drive_data
from hypothesis import given
from hypothesis import strategies as st

PIECE = drive_data.PIECE_BYTES
SIZE = 5 * PIECE + 512
WRITES = st.lists(
    st.tuples(
        st.integers(0, SIZE - 1),
        st.sampled_from([1, 512, PIECE, 2 * PIECE + 1]),
        st.sampled_from([b"\0", b"a", b"b"]),
    ),
    max_size=5,
)


def made(folder, name, writes, size=SIZE):
    """A sparse file with these bytes (offset, length, byte) on it."""
    path = Path(folder, name)
    with open(path, "wb") as file:
        for offset, length, byte in writes:
            file.seek(offset)
            file.write(byte * length)
        file.truncate(size)
    return path


@given(WRITES, WRITES, st.integers(0, SIZE))
def test_equal_digests_are_equal_data(one, other, size):
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        files = made(folder, "one", one), made(folder, "other", other)
        for limit in (None, size):
            data = [file.read_bytes()[:limit] for file in files]
            digests = {drive_data.digest(file, limit) for file in files}
            assert (len(digests) == 1) == (data[0] == data[1])


def test_each_byte_counts_and_so_does_the_size(tmp_path):
    before = drive_data.digest(made(tmp_path, "blank", []))
    for offset in (0, PIECE - 1, PIECE, SIZE - 1):
        assert drive_data.digest(made(tmp_path, "written", [(offset, 1, b"x")])) != before
    assert drive_data.digest(made(tmp_path, "longer", [], SIZE + 1)) != before


def test_as_a_program_it_notes_the_digest_of_each_file(tmp_path):
    files = [made(tmp_path, name, [(7, 9, name.encode())]) for name in "ab"]
    subprocess.run([sys.executable, drive_data.__file__, *files], check=True)
    assert [drive_data.sealed(file).read_text() for file in files] == [drive_data.digest(file) for file in files]
