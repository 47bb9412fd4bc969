# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Unpack a host's archive into the results folder, as a whole or not at all; its manifest tells what it held, so that a
later collect mends what was damaged or lost since.
"""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import gzip
import hashlib
import os
import re
import shutil
import tarfile
import typing as t
import zlib

from ...module_utils.core import files
from ...module_utils.core.files import left_behind
from ...module_utils.run.folder import JOURNAL

# In each unpacked folder: the checksum of the archive that it came from, then that of each file.
MARKER = ".collected"
_ASIDE = re.compile(r"\.(collect-[0-9a-f]+)\.")
# The file of the locks, beside the temporary folders of all plays of this user.
LOCKS = "ssdlab-fleet-collect.lock"
# In the temporary folder of a collect: what becomes the folder, and what it was.
UNPACKED, BEFORE = "unpacked", "before"
# What a host job writes: plan.json, raw/<drive>/<test>-1-0001-<cell>.json.gz. No folder is called . or .., and no file
# like ours.
_FOLDER = r"(?!\.{1,2}/)[A-Za-z0-9._-]{1,255}/"
_NAME = re.compile(rf"(?:{_FOLDER}){{0,6}}(?!\.{{1,2}}\Z|\.collected\Z)[A-Za-z0-9._-]{{1,255}}")
# A header asks for as much memory as it is long; a host's longest file name is far below this. All headers of a file
# together may be as long: maps of sparse files, and words for all files that follow, have no other end.
_MOST_READ = 1 << 18
# A small archive may well shrink more than a large one.
_RATIO_FROM_BYTES = 64 << 20


def manifest_lines(folder: str) -> list[str]:
    """`<SHA-256>  <path below the folder>` of every file, sorted by path; not of those at its top that begin with a
    dot, which are ours.
    """
    found = []
    for base, _folders, names in os.walk(folder):
        for name in names:
            path = os.path.join(base, name)
            below = os.path.relpath(path, folder)
            if not (base == folder and name.startswith(".")):
                found.append((below, files.sha256(path)))
    return [f"{digest}  {below}" for below, digest in sorted(found)]


class UnpackError(Exception):
    """The archive is damaged, too large or not one of ours; the folder is as it was."""


@dataclasses.dataclass(frozen=True)
class ArchiveLimits:
    """What one host may bring at a time. The largest runs that were seen stay below a tenth of it.

    journal_bytes: of its journal, all of which each report reads. 24 drives with 56 cells, 25 rounds and samples of ten
    hours write some 100 MiB.
    """

    archive_bytes: int = 16 << 30
    unpacked_bytes: int = 64 << 30
    files: int = 500_000
    ratio: int = 200
    journal_bytes: int = 256 << 20


def limits(given: t.Mapping[str, t.Any]) -> ArchiveLimits:
    """ssd_collect_limits over the defaults. Raises ValueError."""
    known = [field.name for field in dataclasses.fields(ArchiveLimits)]
    for name, value in given.items():
        if name not in known:
            raise ValueError(f"{name!r} is not one of {', '.join(known)}")
        if not re.fullmatch(r"[1-9][0-9]{0,18}", str(value)):
            raise ValueError(f"{name}: {value!r} must be a whole number above 0")
    return ArchiveLimits(**{name: int(value) for name, value in given.items()})


@contextlib.contextmanager
def locked(path: str, folder: str) -> t.Iterator[None]:
    """No other play of this user unpacks into this folder meanwhile. path: the file of all locks, of which each folder
    has one byte.
    """
    with open(path, "ab") as file:
        fcntl.lockf(file, fcntl.LOCK_EX, 1, zlib.crc32(os.path.realpath(folder).encode()))
        yield


def is_current(folder: str, sha256: str) -> bool:
    """Return whether the folder holds the content of the archive with this checksum, all of it and as it was."""
    try:
        with open(os.path.join(folder, MARKER)) as marker:
            return marker.read().splitlines() == [sha256, *manifest_lines(folder)]
    except OSError:
        return False


def replace(folder: str, archive: str, sha256: str, most: ArchiveLimits = ArchiveLimits()) -> None:
    """Put the content of an archive in the place of a folder. Raises UnpackError, OSError."""
    got = files.sha256(archive)
    if got != sha256:
        raise UnpackError(f"the archive was damaged on its way: its SHA-256 is {got}, on the host {sha256}")
    aside = os.path.join(os.path.dirname(archive), UNPACKED)
    os.mkdir(aside)
    try:
        with _Content(archive, most) as content:
            # It reads, seeks forward and tells where it is: all that tarfile does with a file in this mode.
            with tarfile.open(fileobj=t.cast(t.IO[bytes], content), mode="r:") as tar:
                _extract(tar, content, aside, most)
    except (
        tarfile.TarError,
        EOFError,
        ValueError,
        OverflowError,
        RecursionError,
        zlib.error,
        gzip.BadGzipFile,
    ) as error:
        raise UnpackError(f"the archive cannot be unpacked: {error}") from error
    with open(os.path.join(aside, MARKER), "x") as marker:
        marker.write("\n".join([sha256, *manifest_lines(aside)]) + "\n")
    before = os.path.join(os.path.dirname(archive), BEFORE)
    if os.path.isdir(folder):
        # Out of the way by a rename: a kill in between leaves one of both whole.
        os.rename(folder, before)
    try:
        os.rename(aside, folder)
    except BaseException:  # a task's time may end here, and what lies beside the folder is removed then
        if os.path.isdir(before) and not os.path.isdir(folder):
            os.rename(before, folder)
        raise


def sweep(folder: str) -> None:
    """Take away what killed collects of this folder left beside it; to be called with its lock.

    Where the kill came between two renames, the whole one is put back. Raises OSError.
    """
    for aside in left_behind(os.path.dirname(folder), aside_name(folder)):
        whole = _whole(aside)
        if whole and not os.path.exists(folder):
            os.rename(whole[0], folder)
        shutil.rmtree(aside, ignore_errors=True)


def sweep_all(raw: str, hosts: t.Iterable[str], locks: str) -> None:
    """`sweep` for all hosts of a run: of one that left the inventory no collect comes any more. raw: the run's folder
    of them; locks: see `locked`.

    What belongs to none of them goes where it holds nothing whole. Raises OSError.
    """
    if not any(name.startswith(".collect-") for name in (os.listdir(raw) if os.path.isdir(raw) else ())):
        return
    folders = [
        os.path.join(raw, name)
        for name in sorted({*hosts, *os.listdir(raw)})
        if os.sep not in name and not name.startswith(".")
    ]
    for folder in folders:
        if left_behind(raw, aside_name(folder)):
            with locked(locks, folder):
                sweep(folder)
    known = tuple(f".{aside_name(folder)}." for folder in folders)
    strange = (_ASIDE.match(each) for each in os.listdir(raw) if not each.startswith(known))
    for name in {match.group(1) for match in strange if match}:
        for aside in left_behind(raw, name):
            if not _whole(aside):
                shutil.rmtree(aside, ignore_errors=True)


def _whole(aside: str) -> list[str]:
    """Return what a collect had unpacked to its end, and what was there before."""
    return [
        path
        for path in (os.path.join(aside, UNPACKED), os.path.join(aside, BEFORE))
        if os.path.exists(os.path.join(path, MARKER))
    ]


def aside_name(folder: str) -> str:
    """Return what names the temporary folders of collects of this folder: a host's name may be as long as a name can
    be.
    """
    return f"collect-{hashlib.sha256(os.path.basename(folder).encode()).hexdigest()[:16]}"


class _Content:
    """What is in a gzip file, read once from the start to the end, and no more of it than is allowed."""

    def __init__(self, archive: str, most: ArchiveLimits) -> None:
        self._file = gzip.open(archive)
        free = shutil.disk_usage(os.path.dirname(archive)).free
        ratio_bytes = max(_RATIO_FROM_BYTES, most.ratio * os.path.getsize(archive))
        self._limits = (
            (most.unpacked_bytes, f"limit unpacked_bytes, {most.unpacked_bytes}"),
            (ratio_bytes, f"limit ratio, {most.ratio} times its size"),
            # The others need some of it too.
            (free // 2, "half of the free space on the controller's disk"),
        )
        self._at, self._headers_until = 0, _MOST_READ

    def __enter__(self) -> _Content:
        return self

    def __exit__(self, *_error: t.Any) -> None:
        self._file.close()

    def begin_headers(self) -> None:
        """From here on a file's headers are read, as from the start on."""
        self._headers_until = self._at + _MOST_READ

    def begin_content(self) -> None:
        """From here on a file's content is read."""
        self._headers_until = 0

    def tell(self) -> int:
        return self._at

    def seek(self, place: int) -> int:
        """Forward only: what tarfile asks for between two files."""
        if place < self._at:
            raise tarfile.ReadError("a header points back")
        while self._at < place:
            if not self.read(min(place - self._at, _MOST_READ)):
                raise tarfile.ReadError("unexpected end of data")
        return self._at

    def read(self, size: int) -> bytes:
        if not 0 <= size <= _MOST_READ:
            raise tarfile.ReadError(f"a header of {size} bytes")
        data = self._file.read(size)
        self._at += len(data)
        if 0 < self._headers_until < self._at:
            raise tarfile.ReadError(f"the headers of a file take more than {_MOST_READ} bytes")
        for most, name in self._limits:
            if self._at > most:
                raise tarfile.ReadError(f"it holds more than {most} bytes (ssd_collect_limits.{name} may be raised)")
        return data


def _members(tar: tarfile.TarFile, content: _Content) -> t.Iterator[tarfile.TarInfo]:
    """Yield each member, of which tarfile keeps none: half a million with words of their own would fill the memory."""
    while (member := tar.next()) is not None:
        content.begin_content()
        yield member
        # tarfile keeps every member and header that it has read; typeshed does not know either list.
        tar.members.clear()  # type: ignore[attr-defined]
        tar.pax_headers.clear()  # type: ignore[attr-defined]
        content.begin_headers()


def _extract(tar: tarfile.TarFile, content: _Content, target: str, most: ArchiveLimits) -> None:
    """Write the archive's files, and nothing that reaches out of the target: regular files with plain names. Raises
    tarfile.TarError, OSError.
    """
    for number, member in enumerate(_members(tar, content), 1):
        if number > most.files:
            raise tarfile.TarError(f"it holds more than {most.files} files (ssd_collect_limits.files may be raised)")
        if member.name == JOURNAL and member.size > most.journal_bytes:
            raise tarfile.TarError(
                f"{JOURNAL} has {member.size} bytes, and {most.journal_bytes} are read (limit journal_bytes); "
                "raise it in ssd_collect_limits if that is expected"
            )
        if (
            member.type not in (tarfile.REGTYPE, tarfile.AREGTYPE)
            or member.issparse()
            or not _NAME.fullmatch(member.name)
        ):
            raise tarfile.TarError(
                f"{member.name[:200]!r} is not a regular file with a plain name below the run's folder"
            )
        path = os.path.join(target, member.name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        source = tar.extractfile(member)
        with open(path, "xb") as file:
            # Never None, as typeshed has it for what is no regular file: such members were refused above.
            shutil.copyfileobj(source, file, 1 << 16)  # type: ignore[arg-type]
        if os.path.getsize(path) != member.size:
            raise tarfile.ReadError(f"{member.name} is cut off")
