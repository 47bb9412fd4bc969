# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Unpack a host's archive into the results folder, as a whole or not at all."""
from __future__ import annotations

import hashlib
import os
import shutil
import tarfile

# In each unpacked folder: the checksum of the archive that it came from.
MARKER = ".collected"


class UnpackError(Exception):
    """The archive is damaged or not one of ours; the folder is as it was."""


def is_current(folder: str, sha256: str) -> bool:
    """Whether the folder holds the content of the archive with this checksum."""
    try:
        with open(os.path.join(folder, MARKER)) as marker:
            return marker.read().strip() == sha256
    except FileNotFoundError:
        return False


def replace(folder: str, archive: str, sha256: str) -> None:
    """Put the content of an archive in the place of a folder. Raises UnpackError, OSError."""
    got = _sha256(archive)
    if got != sha256:
        raise UnpackError(f"the archive was damaged on its way: its SHA-256 is {got}, on the host {sha256}")
    aside = os.path.join(os.path.dirname(archive), "unpacked")
    try:
        with tarfile.open(archive) as tar:
            _extract(tar, aside)
    except (tarfile.TarError, EOFError) as error:
        raise UnpackError(f"the archive cannot be unpacked: {error}") from error
    with open(os.path.join(aside, MARKER), "w") as marker:
        marker.write(sha256 + "\n")
    if os.path.isdir(folder):
        # Out of the way by a rename: a kill in between leaves one of both whole.
        os.rename(folder, os.path.join(os.path.dirname(archive), "before"))
    os.rename(aside, folder)


def _extract(tar: tarfile.TarFile, target: str) -> None:
    """Write the archive's files, and nothing that reaches out of the target: no links, no devices, no `..`.

    tarfile's own filter does more, but Debian 12's Python (3.11.2) has none. Raises tarfile.TarError.
    """
    for member in tar:
        path = os.path.normpath(os.path.join(target, member.name))
        if os.path.commonpath([path, target]) != target or not (member.isreg() or member.isdir()):
            raise tarfile.TarError(f"{member.name!r} is not a file or folder below the run's folder")
        folder = path if member.isdir() else os.path.dirname(path)
        os.makedirs(folder, exist_ok=True)
        if member.isreg():
            with tar.extractfile(member) as source, open(path, "wb") as file:
                shutil.copyfileobj(source, file)


def _sha256(path: str) -> str:
    digest = hashlib.sha256()
    with open(path, "rb") as source:
        for block in iter(lambda: source.read(1 << 20), b""):
            digest.update(block)
    return digest.hexdigest()
