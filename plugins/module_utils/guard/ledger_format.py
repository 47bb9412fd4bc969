# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The ledger's entries as they lie on the host: which file is a drive's, what of it may be trusted, and what it says.

`<state_dir>/drives/<slug>.json` is a LedgerEntry. It counts only while it is a file that root alone may write; one that
others could have changed, or that is damaged, may have kept a drive as evidence, so it is told (`Untrusted`) and never
passed over.

Nothing on a test's file system tells whether somebody mounted it since, so one that its job could not wipe is refused
as any file system is; the words say whose it was.
"""

from __future__ import annotations

import hashlib
import json
import os
import typing as t

from ..core import files, ownership
from ..core.files import write_atomic
from ..drive.identity import NAMES, OWN_NAMES, may_be_one
from ..records import base
from ..records.ledger import LedgerEntry, NotedFilesystem, OwnData
from ..tools import filesystems
from .facts import EVIDENCE, WRITING, Names

_LONGEST_NAME = 80


def path_of(state_dir: str, identity: Names) -> str:
    """Return the drive's file: two namespaces of one controller share a serial, so every name counts; long ones are
    cut.
    """
    name = "_".join(str(identity[key]) for key in OWN_NAMES if identity.get(key))
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    return os.path.join(state_dir, "drives", f"{files.slug(name)[:_LONGEST_NAME]}-{digest}.json")


class Untrusted(ValueError):
    """What the ledger said of a drive can't be known. problems: texts that name the file or folder."""

    def __init__(self, problems: t.Sequence[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = list(problems)


def read(state_dir: str | None, identity: Names) -> LedgerEntry | None:
    """Return the drive's entry; None where there is none. Raises Untrusted where it is not root's alone, damaged, or
    evidence of what may be another drive.
    """
    if not state_dir:
        return None
    path = path_of(state_dir, identity)
    _refuse_evidence_elsewhere(path, identity)
    wrong = [*(ownership.problems(state_dir) if os.path.lexists(path) else ()), *not_roots(path)]
    if wrong:
        raise Untrusted(wrong)
    entry = load(path)
    if entry is None:
        return None
    # Size, block size and place are not asked: a format may change those.
    differs = [
        f"{key} was {entry.identity.get(key)}, is {identity.get(key)}"
        for key in NAMES
        if entry.identity.get(key) != identity.get(key)
    ]
    if differs and keeps_evidence(entry):
        raise Untrusted(
            [f"{path} keeps evidence of run {entry.run_id} for a drive that may be another one: {', '.join(differs)}"]
        )
    return None if differs else entry


def _refuse_evidence_elsewhere(own_path: str, identity: Names) -> None:
    """Raise Untrusted for evidence of what may be this drive, from a place that told more of its names, or others: the
    file's name is made of them.
    """
    folder, (serial, wwn) = os.path.dirname(own_path), (identity.get("serial"), identity.get("wwn"))
    parts = [files.slug(str(name))[:_LONGEST_NAME] for name in (serial, wwn) if name]
    try:
        names = sorted(name for name in os.listdir(folder) if any(part in name for part in parts))
    except OSError:  # no folder yet; what keeps it from being read is told with the entry's own file
        return
    for path in (os.path.join(folder, name) for name in names):
        try:
            entry = None if path == own_path or not_roots(path) else load(path)
        except Untrusted:  # of that drive, and told there
            continue
        if entry is not None and keeps_evidence(entry) and may_be_one(entry.identity, identity):
            raise Untrusted([f"{path} keeps evidence of run {entry.run_id} for a drive that may be this one"])


def keeps_evidence(entry: LedgerEntry) -> bool:
    """Return whether an entry of `read` keeps the drive as evidence, also that of a job that died with a
    reason noted.
    """
    return entry.state == EVIDENCE or bool(entry.state == WRITING and entry.reason)


def not_roots(path: str) -> list[str]:
    """Return why others than root may have written an entry, or taken one away."""
    return ownership.alone_problems(os.path.dirname(path), folder=True) + ownership.alone_problems(path)


def load(path: str) -> LedgerEntry | None:
    """Return an entry; None where there is none. Raises Untrusted for what is none of ours."""
    try:
        found = files.read_json(path)
    except (OSError, ValueError) as error:
        raise Untrusted([str(error) if path in str(error) else f"{path} cannot be read: {error}"]) from None
    try:
        entry = None if found is None else base.parse(LedgerEntry, found)
    except base.WrongShape:
        entry, found = None, {}
    counts = [count for item in (entry and entry.sentinels) or () for count in (item.offset, item.length)]
    if (entry is None and found is not None) or any(count < 0 for count in counts):
        raise Untrusted([f"{path} is not a ledger entry of this version"])
    return entry


def known(entry: LedgerEntry) -> OwnData:
    """Return what an entry of `read` says. Nothing proves it, until the caller finds otherwise."""
    return OwnData(
        run_id=entry.run_id,
        state=entry.state,
        proved="",
        released=entry.released,
        reason=entry.reason or "",
        removed=entry.removed,
    )


def fingerprint(data: bytes) -> str:
    """Return how the ledger names a block's data."""
    return hashlib.sha256(data).hexdigest()


def names_of(identity: Names) -> dict[str, str | None]:
    """Return what an entry keeps of a drive's identity."""
    return {key: t.cast("str | None", identity.get(key)) for key in NAMES}


def write(state_dir: str, entry: LedgerEntry) -> None:
    """Put an entry in the place of its drive's. Raises OSError."""
    path = path_of(state_dir, entry.identity)
    files.make_folders(os.path.dirname(path))
    save(path, entry)


def save(path: str, entry: LedgerEntry) -> None:
    """Write an entry's file. Raises OSError."""
    write_atomic(path, json.dumps(base.to_json(entry), indent=1) + "\n")


def filesystem_note(kind: str, identifier: str, run_id: str) -> NotedFilesystem:
    """Return what the ledger keeps of it, from before it is made until it is wiped or the drive is purged."""
    return NotedFilesystem(kind, identifier, run_id, "the run died")


def leftover_filesystem(known: NotedFilesystem | None, start: bytes) -> str:
    """Return what lies on a drive, where it is the file system that the ledger knows; "" for any other, or none. start:
    the drive's first SUPERBLOCK_BYTES.
    """
    found = filesystems.superblock(start)
    if known is None or found is None or found != (known.kind, known.uuid):
        return ""
    text = "the file system ({0}, UUID {1}) of a test of run {2}, not wiped as {3}; somebody may have used it since"
    return text.format(*found, known.run_id, known.reason)
