# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a run notes in the ledger (ledger_file) of a drive that it writes to, from its first write until it is over.

That a drive is in the ledger proves nothing yet: somebody may have written since. The data is ours only where one of
two things proves it: the kernel counted no write since we let go of the drive (`write_counters.untouched`), or the
look found nothing but blank blocks and fio's data.
"""

from __future__ import annotations

import os
import typing as t
from dataclasses import replace
from types import MappingProxyType

from ..core.files import SCHEMA_VERSION, now
from ..core.host import Host
from ..records.ledger import LedgerEntry, NotedBlock, NotedFilesystem, Written
from .facts import EVIDENCE, RELEASED, WRITING, Names
from .ledger_format import Untrusted, fingerprint, load, names_of, not_roots, path_of, read, save, write
from .write_counters import written


class LedgerBefore(t.NamedTuple):
    """What the ledger said, and how much had been written, when a run began to write."""

    state_dir: str
    run_id: str
    entry: LedgerEntry | None
    written: Written


def begin(host: Host, state_dir: str, identity: Names, run_id: str, reason: str = "") -> LedgerBefore:
    """Note, before the first destructive step, that this run writes to the drive. reason: as `note`. Raises OSError,
    and Untrusted.
    """
    before = LedgerBefore(state_dir, run_id, read(state_dir, identity), written(host, identity))
    note(before, identity, reason, filesystem=before.entry.filesystem if before.entry else None)
    return before


def note(
    before: LedgerBefore,
    identity: Names,
    reason: str,
    sentinels: t.Mapping[int, bytes] = MappingProxyType({}),
    filesystem: NotedFilesystem | None = None,
) -> None:
    """Note what holds should this job die here. Raises OSError.

    reason: why the drive is to be kept as evidence by then; sentinels: the blocks that a purge is about to be proved
      with ({offset: data}), which are ours; filesystem: a test's, which may lie on it (left_filesystem).
    """
    listed = [NotedBlock(offset, len(data), fingerprint(data)) for offset, data in sorted(sentinels.items())]
    write(before.state_dir, _writing(before, identity, reason, listed, filesystem))


def _writing(
    before: LedgerBefore,
    identity: Names,
    reason: str,
    sentinels: list[NotedBlock],
    filesystem: NotedFilesystem | None,
) -> LedgerEntry:
    """Return the entry of a drive that the run has not let go of."""
    return LedgerEntry(
        before.run_id,
        WRITING,
        names_of(identity),
        SCHEMA_VERSION,
        reason=reason,
        sentinels=sentinels,
        filesystem=filesystem,
    )


def give_up(before: LedgerBefore, identity: Names, reason: str) -> None:
    """Note why we let go of a drive in the middle, without touching it: nobody knows what it holds, and what was begun
    may yet be done. Raises OSError.
    """
    try:
        noted = read(before.state_dir, identity)
    except Untrusted:  # what is noted now says that nobody may erase the drive
        noted = None
    sentinels, filesystem = (noted.sentinels, noted.filesystem) if noted else (None, None)
    write(before.state_dir, _writing(before, identity, reason, sentinels or [], filesystem))


def end(
    host: Host,
    before: LedgerBefore,
    identity: Names,
    reason: str = "",
    blank: bool = False,
    filesystem: NotedFilesystem | None = None,
) -> None:
    """Note that we let go of the drive, while it is still held and nobody of ours writes any more. Raises OSError.

    reason: why it is to be kept as evidence; "": it is not. blank: it was seen to hold nothing after our last write.
    A run that wrote nothing leaves nothing of its own: then the ledger says again what it said before; as evidence it
    is kept all the same, and what was written before then is vouched for by what was said of it.
    """
    left = written(host, identity)
    wrote = left != before.written or not left.iostats
    earlier = before.entry.written if before.entry else None
    if wrote or reason:
        entry = LedgerEntry(
            before.run_id,
            EVIDENCE if reason else RELEASED,
            names_of(identity),
            SCHEMA_VERSION,
            released=now(),
            reason=reason,
            blank=wrote and blank,
            written=left if wrote else earlier,
            filesystem=filesystem,
        )
        write(before.state_dir, entry)
    elif before.entry is not None:
        write(before.state_dir, before.entry)
    else:
        os.unlink(path_of(before.state_dir, identity))


def close(state_dir: str, run_id: str, still_written: t.Collection[str] = (), removed: bool = False) -> None:
    """Note that a run is over which died while it wrote: from now on only the content can prove what lies there. Raises
    OSError.

    still_written: files (`path_of`) of drives in which something of the run goes on by itself. removed: the host is
      about to forget the run, so that
    another of the same id is no continuation of it, for which its evidence would not count.
    """
    folder = os.path.join(state_dir, "drives")
    for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
        path = os.path.join(folder, name)
        if path not in still_written:
            close_one(path, run_id, removed)


def close_one(path: str, run_id: str, removed: bool = False) -> None:
    """As `close`, for one drive's file. What can't be trusted stays as it is, for people to see: to write it again
    would make it root's.
    """
    try:
        entry = None if not_roots(path) else load(path)
    except Untrusted:
        return
    if entry is None or entry.run_id != run_id:
        return
    closed = entry
    if entry.state == WRITING:
        closed = replace(closed, state=EVIDENCE if entry.reason else RELEASED, released=now(), written=None)
    if removed:
        closed = replace(closed, removed=True)
    if closed != entry:
        save(path, closed)
