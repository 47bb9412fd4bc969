# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""results.jsonl of a run on the controller: append records (module_utils/records/results.py), at once or once the run's
folder is known, and read the newest of each.
"""

from __future__ import annotations

import json
import os
import typing as t

from ...module_utils.core.files import SCHEMA_VERSION, now
from ...module_utils.records import base
from ...module_utils.records.measurement import Calibration
from ...module_utils.records.results import Brief, HostRecord, HostState
from ...module_utils.run.folder import RUN_ID_PATTERN
from ..validation import printable, record_check, sanitizer
from . import run_record

# The state of a host whose job was started afresh: what stands before this record of it no longer counts.
STARTED: t.Final = "started"
ANEW = "its host job was started again under this run's id; what was collected before no longer counts"
KEY_FIELDS = ("kind", "host", "drive", "test")

Record = dict[str, t.Any]
# Of a host: every drive of it that was not tested is told it.
MOST_MESSAGE = 1000


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
        append(path, [host_record(host, STARTED, ANEW, run_id)])


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


def host_record(
    host: str,
    state: HostState,
    message: str,
    run_id: str = "",
    snapshot: Brief | None = None,
    calibration: Calibration | None = None,
) -> Record:
    """Return a host's record of now. Without a run `ResultsFile` fills it in."""
    record = HostRecord(
        kind="host",
        schema_version=SCHEMA_VERSION,
        time=now(),
        run_id=run_id,
        host=host,
        state=state,
        message=printable.line(message, MOST_MESSAGE),
        snapshot=snapshot,
        calibration=calibration,
    )
    found: Record = base.to_json(record)
    return found


class ResultsFile:
    """The results of one run. Until `open` told where they belong, and after a failed write, records wait in memory."""

    def __init__(self) -> None:
        self.folder = ""
        self._run_id = ""
        self._waiting: list[Record] = []
        self._newest: dict[t.Any, Record] | None = None
        self._size = 0

    @property
    def path(self) -> str:
        """results.jsonl, "" before the run is known."""
        return os.path.join(self.folder, run_record.RESULTS) if self.folder else ""

    def open(self, results_dir: str, run_id: str) -> None:
        """Say which run the records belong to; another run than before starts afresh. Raises ValueError for what is no
        run id.
        """
        if not RUN_ID_PATTERN.fullmatch(run_id):
            raise ValueError(f"{run_id!r} is not a run id")
        folder = os.path.join(os.path.abspath(results_dir), run_id)
        if folder != self.folder:
            self.folder, self._run_id, self._newest = folder, run_id, None

    def add(self, records: t.Iterable[Record]) -> None:
        """Append those that say something new. Raises OSError or ValueError when that fails; they are kept for the next
        time.
        """
        self._waiting += records
        self.flush()

    def flush(self) -> None:
        """Write what waits, where a run's folder is there for it. Raises as `add`."""
        # Without its folder the run was only planned; `collect` and `preflight` make it.
        if not self._waiting or not self.folder or not os.path.isdir(self.folder):
            return
        if self._newest is None or self._size != _size(self.path):  # a host that begins anew, another play of this run
            self._newest = {key(record): record for record in load(self.path)}
        fresh = []
        for record in self._waiting:
            record = dict(record, run_id=record["run_id"] or self._run_id)
            if not _same(record, self._newest.get(key(record))):
                self._newest[key(record)] = record
                fresh.append(record)
        try:
            append(self.path, fresh)
            self._size = _size(self.path)
        except BaseException:
            self._newest = None
            raise
        self._waiting = []


def _size(path: str) -> int:
    return os.path.getsize(path) if os.path.exists(path) else 0


def _same(record: Record, other: Record | None) -> bool:
    """Return whether two records differ in nothing but the time at which they were made."""
    return other is not None and dict(record, time=None) == dict(other, time=None)
