# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One file of a run's folder, for the journey to the controller: the same folder gives the same bytes."""

from __future__ import annotations

import contextlib
import gzip
import os
import tarfile
import tempfile
import typing as t

from ..core.files import aside_prefix, left_behind, sha256
from .folder import RunDir


def pack(run_dir: RunDir) -> dict[str, t.Any]:
    """Make <state_dir>/<run id>.tar.gz, readable for all, unless one is there that is newer than all it would hold.

    Returns {path, size_bytes, sha256}. Raises OSError.
    """
    path = run_dir.archive
    sweep(run_dir)
    files = _files(run_dir.path)
    newest_ns = max([_mtime_ns(name) for name in files] or [0])
    if not _is_newer(path, newest_ns):
        _write(path, run_dir.path, files)
    return {"path": path, "size_bytes": os.path.getsize(path), "sha256": sha256(path)}


def sweep(run_dir: RunDir) -> None:
    """Remove archives that killed processes left half made."""
    for path in left_behind(run_dir.state_dir, os.path.basename(run_dir.archive)):
        with contextlib.suppress(OSError):
            os.unlink(path)


def _files(folder: str) -> list[str]:
    """Every regular file below, sorted; not the hidden ones, which are about to be renamed."""
    found = []
    for base, _folders, names in os.walk(folder):
        paths = [os.path.join(base, name) for name in names if not name.startswith(".")]
        found += [path for path in paths if os.path.isfile(path) and not os.path.islink(path)]
    return sorted(found)


def _mtime_ns(path: str) -> int:
    """When it was last changed; 0 where it is gone: a live job renames and removes files."""
    try:
        return os.stat(path).st_mtime_ns
    except FileNotFoundError:
        return 0


def _is_newer(path: str, than_ns: int) -> bool:
    try:
        return os.stat(path).st_mtime_ns > than_ns
    except FileNotFoundError:
        return False


def _write(path: str, folder: str, files: t.Iterable[str]) -> None:
    handle, aside = tempfile.mkstemp(dir=os.path.dirname(path), prefix=aside_prefix(os.path.basename(path)))
    try:
        with os.fdopen(handle, "wb") as out:
            # No time and no name in gzip's header, so that equal content has an equal checksum.
            with gzip.GzipFile("", "wb", 6, out, mtime=0) as packed, tarfile.open(fileobj=packed, mode="w") as tar:
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
