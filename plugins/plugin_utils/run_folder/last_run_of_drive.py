# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which run of this controller wrote to a drive last, and how it left it: what the host's ledger has to know as well.
Read from the results folder, through the gate.
"""

from __future__ import annotations

import mmap
import os
import typing as t

from ...module_utils.core.files import SCHEMA_VERSION
from ...module_utils.drive.identity import NAMES
from ...module_utils.records.ledger import RetiredUse
from ..validation import record_check, sanitizer
from . import results_log, run_record, runs

# Newest first: preflight is waited for, and mostly the newest run has all drives. A drive that is new on its host is in
# none of them.
MOST_RUNS = 100
MOST_BYTES = 512 << 20
# Most lines are of tests, and cost no parsing.
_DRIVE, _STARTED = b'"kind": "drive"', b'"state": "started"'
_RETIRED = b'"retired":'
_TEST = b'"kind": "test"'
Key = tuple[str, str]


class Left(t.NamedTuple):
    """run_id, started, folder: of the run. state: blank, as_is or evidence. time: of the record."""

    run_id: str
    started: str
    folder: str
    state: str
    identity: t.Mapping[str, t.Any]
    time: str


def of_drives(own: t.Iterable[runs.KnownRun], wanted: t.Collection[Key], but: str = "") -> dict[Key, Left]:
    """{(host, drive): how the newest run left it that came to its end there}. wanted: which drives. but: the run that
    is under way. Raises nothing for damage.
    """
    missing: set[Key] = set(wanted)
    found: dict[Key, Left] = {}
    read = 0
    for run in sorted(own, key=lambda run: (run.started, run.id), reverse=True)[:MOST_RUNS]:
        hosts = {host for host, _drive in missing if host in run.hosts}
        if run.id == but or not hosts:
            continue
        read += run_record.results_size(run.folder)
        if read > MOST_BYTES:
            break
        newest: dict[Key, t.Mapping[str, t.Any]] = {}
        for record in _records(run.folder, hosts, _DRIVE, _STARTED):
            if record["kind"] == "drive":
                newest[record["host"], record["drive"]] = record
            elif record["kind"] == "host" and record["state"] == results_log.STARTED:
                newest = {key: other for key, other in newest.items() if key[0] != record["host"]}
        for key in missing & set(newest):
            drive = newest[key]
            if drive.get("left"):
                identity = drive.get("identity") or {}
                found[key] = Left(run.id, run.started, run.folder, drive["left"], identity, drive["time"])
        missing -= set(found)
    return found


def begun(run: runs.KnownRun, wanted: t.Collection[Key]) -> set[Key]:
    """Return the drives that a run began with, whatever became of them: (host, drive), of those that are wanted."""
    return {
        key
        for record in _records(run.folder, {host for host, _drive in wanted}, _DRIVE)
        if record["kind"] == "drive"
        and record["outcome"] != "refused"
        and (key := (record["host"], record["drive"])) in wanted
    }


def used_retired(own: t.Iterable[runs.KnownRun], but: str = "") -> list[RetiredUse]:
    """Return the statements that a drive is retired which these runs used up, on whatever host and by whatever
    selector: a drive may be moved. All runs count, however many and large: few lines have the word.
    """
    return [
        RetiredUse(run.id, record["time"], _names(record), record["retired"], [], SCHEMA_VERSION)
        for run in own
        if run.id != but
        for record in _checked(_lines_with(run.folder, _RETIRED), run.hosts)
        if record["kind"] == "drive" and record.get("retired")
    ]


def _names(record: t.Mapping[str, t.Any]) -> dict[str, str | None]:
    identity = record.get("identity") or {}
    return {key: identity.get(key) for key in NAMES}


def _lines_with(folder: str, part: bytes) -> t.Iterator[bytes]:
    """Yield the lines of a run's results that have this in them, without looking at the others one by one."""
    try:
        with open(os.path.join(folder, run_record.RESULTS), "rb") as file, _mapped(file) as data:
            place = data.find(part)
            while place >= 0:
                end = data.find(b"\n", place)
                end = len(data) if end < 0 else end
                yield data[data.rfind(b"\n", 0, place) + 1 : end]
                place = data.find(part, end)
    except (OSError, ValueError):  # there is none, or it is empty
        return


def _mapped(file: t.BinaryIO) -> mmap.mmap:
    return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def wrote(left: Left, key: Key) -> bool:
    """Return whether a test of that run surely wrote to the drive: a run that only read leaves the ledger as it was."""
    return any(
        (record["host"], record.get("drive")) == key
        and any(record.get(step) for step in ("purge", "precondition", "integrity"))
        for record in _records(left.folder, {key[0]}, _TEST)
    )


def _records(folder: str, hosts: t.Collection[str], *parts: bytes) -> t.Iterator[dict[str, t.Any]]:
    """Yield the records of these hosts, of the lines that have one of the parts in them."""
    try:
        with open(os.path.join(folder, run_record.RESULTS), "rb") as file:
            yield from _checked((line for line in file if any(part in line for part in parts)), hosts)
    except OSError:
        return


def _checked(lines: t.Iterable[bytes], hosts: t.Collection[str]) -> t.Iterator[dict[str, t.Any]]:
    """Yield the records of these hosts that pass the gate."""
    for line in lines:
        try:
            told = sanitizer.decoded(line)
        except sanitizer.Unfit:
            continue
        # Most are of other hosts, and need not pass.
        mine = isinstance(told, dict) and isinstance(told.get("host"), str) and told["host"] in hosts
        record = record_check.stored(told) if mine else None
        if record is not None:
            yield record
