# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The folder of one run on a host: its paths, the journal and the status file (shapes: docs/internals.md)."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import tempfile
import threading
import typing as t

from ..core.files import (
    SCHEMA_VERSION,
    Damaged,
    append_line,
    left_behind,
    make_folders,
    name_file,
    now,
    own_slug,
    read_json,
    write_atomic,
)
from ..records import base, events, run_files
from ..records.plan import Plan

RUN_ID_PATTERN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
# What a drive under way says changes within this time: a cell is not disturbed, and of a large drive's fill 0.1 % takes
# its time.
NEWS_S = 300.0
# Its files.
PLAN, STATUS, JOURNAL, TUNING = "plan.json", "status.json", "journal.jsonl", "tuning.json"
# A line of a journal as JSON: Line, with the fields of its event (records/events.py).
Event = t.Mapping[str, t.Any]
RESERVE, RESERVE_BYTES = ".reserve", 256 << 10


class RunDir:
    """Paths below <state_dir>/runs/<run id>."""

    def __init__(self, state_dir: str, run_id: str) -> None:
        if not RUN_ID_PATTERN.fullmatch(run_id):
            raise ValueError(
                f"run id {run_id!r}: use up to 100 of A-Z a-z 0-9 . _ - and start with a letter or a digit"
            )
        self.state_dir = state_dir
        self.run_id = run_id
        self.path = os.path.join(state_dir, "runs", run_id)
        self.plan = os.path.join(self.path, PLAN)
        self.status = os.path.join(self.path, STATUS)
        self.journal = os.path.join(self.path, JOURNAL)
        self.tuning = os.path.join(self.path, TUNING)
        self.log = os.path.join(self.path, "job.log")
        self.commands = os.path.join(self.path, "commands.jsonl")
        # Packed for a collect, which removes it; beside the folder, as it holds the folder.
        self.archive = os.path.join(state_dir, run_id + ".tar.gz")

    @classmethod
    def at(cls, path: str) -> RunDir:
        """Return the run folder with this path."""
        runs, run_id = os.path.split(os.path.normpath(path))
        return cls(os.path.dirname(runs), run_id)

    def raw(self, drive: str) -> str:
        """Return the folder of a drive's fio jobs and results, made if need be: of no other drive of the plan, though
        many letters become a _.
        """
        plan = self.read_plan()
        planned = [entry.drive for entry in plan.drives] if plan else []
        path = os.path.join(self.path, "raw", own_slug(drive, planned))
        make_folders(path)
        return path

    def sweep_archives(self) -> None:
        """Remove archives that killed processes left half made (archive.py)."""
        for path in left_behind(self.state_dir, os.path.basename(self.archive)):
            with contextlib.suppress(OSError):
                os.unlink(path)

    def note_command(self, argv: t.Sequence[str]) -> None:
        """Keep a command that is about to start: what the job did to the host can be read afterwards."""
        with contextlib.suppress(OSError):  # a full disk must not keep the job from putting the host back
            append_line(self.commands, json.dumps({"time": now(), "argv": list(argv)}))

    def read_status(self) -> dict[str, t.Any] | None:
        """status.json, or None when the run never got that far or the file is damaged (`status_damage`)."""
        try:
            return _read(self.status, run_files.Status)
        except Damaged:
            return None

    def status_damage(self) -> str:
        """Return what is wrong with status.json; "" when nothing is, or there is none."""
        try:
            _read(self.status, run_files.Status)
        except Damaged as error:
            return str(error)
        return ""

    def read_plan(self) -> Plan | None:
        """Return plan.json, or None without one. Raises Damaged."""
        written = _read(self.plan, Plan)
        return None if written is None else base.parse(Plan, written)


def _read(path: str, kind: t.Any) -> dict[str, t.Any] | None:
    data = read_json(path)
    problem = "" if data is None else base.problem(kind, data)
    if problem:
        raise Damaged(path, problem)
    return data


def run_ids(state_dir: str) -> list[str]:
    """Return the ids of the runs that a host knows, oldest name first."""
    try:
        names = os.listdir(os.path.join(state_dir, "runs"))
    except FileNotFoundError:
        return []
    return sorted(name for name in names if RUN_ID_PATTERN.fullmatch(name))


def read_journal(path: str) -> list[Event]:
    """Return all records in order, without the lines that are damaged."""
    return scan_journal(path)[0]


def scan_journal(path: str) -> tuple[list[Event], list[int]]:
    """(all records in order, the numbers of the lines that are none of ours: torn by a power loss, or damaged)."""
    records, damaged = [], []
    try:
        with open(path, errors="replace") as source:
            for number, line in enumerate(source, start=1):
                record = _record(line)
                if record is None:
                    damaged.append(number)
                else:
                    records.append(record)
    except FileNotFoundError:
        pass
    return records, damaged


def _record(line: str) -> Event | None:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    kind = record.get("event") if isinstance(record, dict) else None
    wrong = base.problem(events.Line, record) or (kind in events.EVENTS and base.problem(events.EVENTS[kind], record))
    return None if wrong else record


class Reserve:
    """Room on the disk for a job's last words: given back when the disk is full, so that the reason can be written
    down.
    """

    def __init__(self, folder: str) -> None:
        self._path = os.path.join(folder, RESERVE)

    def hold(self) -> None:
        """Take the room. Raises OSError where there is none."""
        handle = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.posix_fallocate(handle, 0, RESERVE_BYTES)
        except OSError as error:
            self.release()
            raise name_file(error, self._path) from None
        finally:
            os.close(handle)

    def release(self) -> None:
        """Give it back; harmless when it is not held."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._path)


class Journal:
    """Append-only records, each on the disk before `write` returns, or not at all."""

    def __init__(self, path: str, **common: t.Any) -> None:
        self._path = path
        # Called when the disk is full, before that is raised.
        self.on_full: t.Callable[[], None] = lambda: None
        self._lock = threading.Lock()
        self._common = dict(common, schema_version=SCHEMA_VERSION)
        self._handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)

    def _end_torn_line(self) -> None:
        size = os.fstat(self._handle).st_size
        if size and os.pread(self._handle, 1, size - 1) != b"\n":
            os.write(self._handle, b"\n")

    def record(self, event: str, **fields: t.Any) -> Event:
        """Return a record of now."""
        return dict(self._common, time=now(), event=event, **fields)

    def write(self, record: Event) -> None:
        """Append a record. Raises OSError, which names the file."""
        with self._lock:
            self._append((json.dumps(record, sort_keys=True) + "\n").encode())

    def add(self, event: str, **fields: t.Any) -> Event:
        """Write a record of now and return it. Raises OSError, which names the file."""
        record = self.record(event, **fields)
        self.write(record)
        return record

    def _put_back(self) -> None:
        """A journal that somebody removed under the job is written anew: what it held is still ours to read."""
        gone, place = self._handle, 0
        handle, aside = tempfile.mkstemp(dir=os.path.dirname(self._path), prefix="." + os.path.basename(self._path))
        try:
            with os.fdopen(handle, "wb") as out:
                for part in iter(lambda: os.pread(gone, 1 << 20, place), b""):
                    out.write(part)
                    place += len(part)
                out.flush()
                os.fchmod(out.fileno(), 0o644)
                os.fsync(out.fileno())
            os.link(aside, self._path)  # never over another job's
        finally:
            os.unlink(aside)
        self._handle = os.open(self._path, os.O_RDWR | os.O_APPEND)
        os.close(gone)

    def _append(self, line: bytes) -> None:
        if os.fstat(self._handle).st_nlink == 0:
            self._put_back()
        size = os.fstat(self._handle).st_size
        try:
            # What a killed job left, or what could not be cut off below.
            self._end_torn_line()
            while line:
                # A disk that is nearly full takes a part; the next write says why.
                line = line[os.write(self._handle, line) :]
            os.fsync(self._handle)
        except OSError as error:
            with contextlib.suppress(OSError):
                os.ftruncate(self._handle, size)
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                self.on_full()
            raise name_file(error, self._path) from None

    def close(self) -> None:
        """No more records."""
        os.close(self._handle)


class Status:
    """status.json: the job's fields and one entry for each drive, rewritten as a whole at each change."""

    def __init__(self, path: str, fields: dict[str, t.Any]) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._fields = dict(fields, schema_version=SCHEMA_VERSION)

    def set(self, **fields: t.Any) -> None:
        """Change fields of the job."""
        with self._lock:
            self._fields.update(fields)
            self._write()

    def set_drive(self, drive: str, **fields: t.Any) -> None:
        """Change fields of one drive's entry. What can't be written is part of the next write: the journal tells of a
        disk that is full.
        """
        if "time_left_s" in fields:
            fields["time_left_at"] = now()
        with self._lock:
            for entry in self._fields["drives"]:
                if entry["drive"] == drive and any(entry.get(key) != value for key, value in fields.items()):
                    entry.update(fields, updated=now())
            with contextlib.suppress(OSError):
                self._write()

    def _write(self) -> None:
        self._fields["updated"] = now()
        write_atomic(self._path, json.dumps(self._fields, indent=1) + "\n")


def queued(drive: str) -> dict[str, t.Any]:
    """Return the entry of a drive that waits for its turn."""
    return {
        "drive": drive,
        "path": None,
        "phase": "queued",
        "outcome": None,
        "test": None,
        "test_index": 0,
        "tests": 0,
        "round": 0,
        "round_max": None,
        "cell": None,
        "last": None,
        "time_left_s": None,
        "later_s": None,
        "message": "",
        "updated": None,
        "news_within_s": NEWS_S,
    }
