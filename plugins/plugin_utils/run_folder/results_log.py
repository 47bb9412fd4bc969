# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""results.jsonl of a run on the controller: append records, read the newest of each (shapes: docs/internals.md)."""

from __future__ import annotations

import json
import os
import typing as t

from ...module_utils.core.files import SCHEMA_VERSION, now
from ..validation import record_check, sanitizer

# The state of a host whose job was started afresh: what stands before this record of it no longer counts.
STARTED = "started"
ANEW = "its host job was started again under this run's id; what was collected before no longer counts"
KEY_FIELDS = ("kind", "host", "drive", "test")

Record = dict[str, t.Any]


class Loaded(t.NamedTuple):
    """`records`: the newest of each key, in the order in which the keys first came; `damaged_lines`: numbers of lines
    that tell of no drive, test or host.
    """

    records: list[Record]
    damaged_lines: list[int]


def key(record: Record) -> tuple[t.Any, ...]:
    """Return what a newer record replaces: kind, host, drive and test."""
    return tuple(record.get(field) for field in KEY_FIELDS)


def append(path: str, added: t.Iterable[Record]) -> None:
    """Add records and wait until they are on the disk: one write, so that two writers do not mix their lines.

    A line that a killed writer left torn is ended first. Raises OSError.
    """
    data = b"".join(json.dumps(record, sort_keys=True).encode() + b"\n" for record in added)
    if not data:
        return
    with open(path, "a+b", buffering=0) as file:
        size = file.seek(0, os.SEEK_END)
        if size:
            file.seek(size - 1)
            if file.read(1) != b"\n":
                data = b"\n" + data
        view = memoryview(data)
        while view:  # one write, except where the disk takes only a part
            view = view[file.write(view) :]
        file.flush()
        os.fsync(file.fileno())


def begin_anew(path: str, run_id: str, host: str) -> None:
    """Note that a host measures anew from now on, where its drives have results of before, which would stand for those
    that never come. Raises OSError.
    """
    if any(record["host"] == host and record["kind"] != "host" for record in load(path)):
        common = {"schema_version": SCHEMA_VERSION, "kind": "host", "time": now(), "run_id": run_id}
        append(path, [dict(common, host=host, state=STARTED, message=ANEW)])


def load(path: str) -> list[Record]:
    """Return the newest record of each key; see `load_all`."""
    return load_all(path).records


def load_all(path: str) -> Loaded:
    """Read results.jsonl; no file means no records. A torn line is left out and its number given, and so is what
    `begin_anew` made void.

    A record that does not pass, of a newer schema for instance, is an error of its drive, test or host. Raises OSError.
    """
    newest: dict[tuple[t.Any, ...], Record] = {}
    damaged = []
    try:
        with open(path, "rb") as file:
            for number, line in enumerate(file, 1):
                if not line.strip():
                    continue
                record = parsed(line)
                if record is None:
                    damaged.append(number)
                else:
                    if record["kind"] == "host" and record["state"] == STARTED:
                        newest = {known: other for known, other in newest.items() if other["host"] != record["host"]}
                    newest[key(record)] = record
    except FileNotFoundError:
        pass
    return Loaded(list(newest.values()), damaged)


def parsed(line: bytes) -> Record | None:
    """Return a line's record, None for a damaged one."""
    try:
        return record_check.stored(sanitizer.decoded(line))
    except sanitizer.Unfit:
        return None
