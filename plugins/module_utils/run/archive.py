# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One file of a run's folder, for the journey to the controller: the same folder gives the same bytes."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import os
import tarfile
import tempfile
import typing as t

from ..core.files import aside_prefix, sha256
from .folder import RunDir

# Of a gzip file before its name, and of the name that `pack` gives it.
_HEADER_BYTES = 10
_LISTING_BYTES = 64


class Packed(t.NamedTuple):
    """An archive: its path on the host, its size and its SHA-256."""

    path: str
    size_bytes: int
    sha256: str


def pack(run_dir: RunDir) -> Packed:
    """Make <state_dir>/<run id>.tar.gz, readable for all, unless one is there that was made of the files as they are.
    Raises OSError.
    """
    path = run_dir.archive
    run_dir.sweep_archives()
    files = _files(run_dir.path)
    listing = _listing(run_dir.path, files)
    if _made_of(path) != listing:
        _write(path, run_dir.path, files, listing)
    return Packed(path, os.path.getsize(path), sha256(path))


def _files(folder: str) -> list[str]:
    """Return every regular file below, sorted; not the hidden ones, which are about to be renamed."""
    found = []
    for base, _folders, names in os.walk(folder):
        paths = [os.path.join(base, name) for name in names if not name.startswith(".")]
        found += [path for path in paths if os.path.isfile(path) and not os.path.islink(path)]
    return sorted(found)


def _listing(folder: str, files: t.Iterable[str]) -> str:
    """Return a digest of which files there are and when each was changed: that one is newer than another a clock that
    was set does not tell.
    """
    found = hashlib.sha256()
    for path in files:
        with contextlib.suppress(FileNotFoundError):  # A live job renames and removes files.
            stat = os.stat(path)
            found.update(os.fsencode(f"{os.path.relpath(path, folder)}\0{stat.st_size} {stat.st_mtime_ns}\n"))
    return found.hexdigest()


def _made_of(path: str) -> str:
    """Return the listing of the files that an archive was made of, from its gzip header (RFC 1952, FNAME); "" where
    there is none.
    """
    try:
        with open(path, "rb") as archive:
            return archive.read(_HEADER_BYTES + _LISTING_BYTES)[_HEADER_BYTES:].decode("latin-1")
    except FileNotFoundError:
        return ""


def _write(path: str, folder: str, files: t.Iterable[str], listing: str) -> None:
    handle, aside = tempfile.mkstemp(dir=os.path.dirname(path), prefix=aside_prefix(os.path.basename(path)))
    try:
        with os.fdopen(handle, "wb") as out:
            # No time in gzip's header, so that the same folder has the same checksum.
            with gzip.GzipFile(listing, "wb", 6, out, mtime=0) as packed, tarfile.open(fileobj=packed, mode="w") as tar:
                for name in files:
                    _add(tar, name, os.path.relpath(name, folder))
            os.fchmod(out.fileno(), 0o644)
        os.replace(aside, path)
    except BaseException:
        os.unlink(aside)
        raise


def _add(tar: tarfile.TarFile, path: str, name: str) -> None:
    """Add a file with the size it has now: a live job may append to it meanwhile."""
    try:
        source = open(path, "rb")
    except FileNotFoundError:  # The job is done with it; what it left instead is in another file.
        return
    with source:
        stat = os.fstat(source.fileno())
        info = tarfile.TarInfo(name)
        info.size, info.mtime, info.mode = stat.st_size, int(stat.st_mtime), 0o644
        tar.addfile(info, t.cast(t.IO[bytes], _Whole(source)))


class _Whole:
    """A file that is read as long as it was when it was opened: what was cut off since comes as zeros, which no reader
    takes for a record.
    """

    def __init__(self, source: t.IO[bytes]) -> None:
        self._source = source

    def read(self, size: int) -> bytes:
        """Exactly `size` bytes."""
        return self._source.read(size).ljust(size, b"\0")
