# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Result files as an operator gives them: found, decoded, and read by the tool that wrote them. Reads files, changes
nothing.
"""

from __future__ import annotations

import codecs
import os
import typing as t

from .measured_run import Document, IngestError

# Of one file; fio's JSON of a cell is some 300 KiB.
MOST_BYTES = 256 << 20
MOST_FILES = 20_000
# What a folder of results has beside them: the jobs, access specifications, notes, what fio logs.
OTHERS = (".fio", ".icf", ".txt", ".md", ".cmd", ".bat", ".ps1", ".sh", ".log", ".yml")
# PowerShell 5 writes UTF-16 where fio's output is redirected.
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


def read(paths: t.Sequence[str]) -> list[Document]:
    """Return the files, and those of folders, in the order of their names. Raises IngestError."""
    found: dict[str, Document] = {}
    for path in paths:
        for name, whole in _files(path):
            if name in found:
                raise IngestError(f"files: two of them are called {name}: give the folder above both instead")
            found[name] = _read(name, whole)
    if not found:
        raise IngestError(
            f"files: no result in {', '.join(paths) or 'an empty list'}: give fio's JSON or Iometer's CSV files, or "
            "the folder that they are in"
        )
    return list(found.values())


def _files(path: str) -> list[tuple[str, str]]:
    """(name, path) of a file, or of all files of a folder that may be results."""
    if os.path.isfile(path):
        return [(os.path.basename(path), path)]
    if not os.path.isdir(path):
        raise IngestError(f"files: {path} is not there; correct the path, relative to where you run this")
    found = []
    for base, folders, names in os.walk(path):
        folders.sort()
        for name in sorted(names):
            whole = os.path.join(base, name)
            if not name.startswith(".") and not name.lower().endswith(OTHERS) and os.path.isfile(whole):
                found.append((os.path.relpath(whole, path), whole))
        if len(found) > MOST_FILES:
            raise IngestError(f"files: {path} has more than {MOST_FILES} files; give the folder of the results alone")
    return found


def _read(name: str, path: str) -> Document:
    try:
        with open(path, "rb") as file:
            content = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise IngestError(f"{path}: cannot be read: {error.strerror}") from error
    if len(content) > MOST_BYTES:
        raise IngestError(f"{name}: has more than {MOST_BYTES >> 20} MiB, so it is no result; leave it out")
    encoding = next((name for mark, name in _MARKS if content.startswith(mark)), "utf-8")
    try:
        text = content.decode(encoding)
    except UnicodeDecodeError:
        # Of Windows' code pages only names can differ.
        text = content.decode("cp1252", errors="replace")
    return Document(name, text.replace("\r\n", "\n"), content)
