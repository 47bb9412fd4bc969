# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host's records of a run, and the lines of results.jsonl: one that does not pass is an error of its drive or test.
Pure.
"""

from __future__ import annotations

import contextlib
import typing as t

from ...module_utils.core.files import SCHEMA_VERSION
from ...module_utils.records import base
from ...module_utils.records.results import RECORDS, DriveRecord, HostRecord, TestRecord
from . import sanitizer

# Of a drive that left the inventory since, or a plan that was another one.
MOST_UNASKED = 200
# Of one record: results.jsonl is the whole fleet's. Those of a drive with 56 cells take some 20 KiB.
MOST_SIZE = 256 << 10
NO_TIME = "1970-01-01T00:00:00Z"

Record = dict[str, t.Any]


class Checked(t.NamedTuple):
    """`records`: those that passed, and errors in place of the others; `problems`: of what cannot even be said of which
    drive it is.
    """

    records: list[Record]
    problems: list[str]
    dropped: int


def asked_of(run: t.Mapping[str, t.Any], host: str) -> set[tuple[str, str]]:
    """(drive, test), and (drive, ""), of all that a run.json asked of a host."""
    mine = [entry for entry in run.get("asked") or [] if entry.get("host") == host]
    return {
        (str(entry.get("drive")), str(name))
        for entry in mine
        for name in ["", *(entry.get("tests") or run.get("tests") or [])]
    }


def collected(
    given: t.Iterable[t.Any], run_id: str, host: str, time: str, asked: t.Collection[tuple[str, str]] | None = None
) -> Checked:
    """Return the drive and test records that a host has for a run. Whose they are and of which run the controller
    knows, whatever they say.

    time: now, by the controller's clock. A record of later would outlive what is measured after it; of several of one
    test the last counts, as in results.jsonl.
    asked: see `asked_of`; None where nobody knows. Of other drives and tests only the first MOST_UNASKED are taken:
      each takes its place in the fleet's report.
    """
    records: dict[tuple[str, str], Record] = {}
    problems: list[str] = []
    dropped, unasked = 0, 0
    for number, record in enumerate(given):
        if not isinstance(record, t.Mapping) or record.get("kind") not in ("drive", "test"):
            problems.append(f"record {number}: it is not about a drive or a test")
            continue
        try:
            clean, left_out = _passed({**record, "run_id": run_id, "host": host})
        except sanitizer.Unfit as refused:
            error = _error(record, run_id, host, time, str(refused))
            if error is None:
                problems.append(f"record {number}: {refused}")
                continue
            clean, left_out = error, 0
        key = (clean["drive"], clean.get("test", ""))
        if clean["time"].rstrip("Z") > time.rstrip("Z"):
            clean = {**clean, "time": time}
        if asked is not None and key not in asked and key not in records:
            unasked += 1
            if unasked > MOST_UNASKED:
                continue
        records[key] = clean
        dropped += left_out
    if unasked > MOST_UNASKED:
        problems.append(
            f"it reports {unasked} drives and tests that nobody asked for; {unasked - MOST_UNASKED} of them are "
            "left out"
        )
    return Checked(list(records.values()), problems, dropped)


def stored(record: t.Any) -> Record | None:
    """Return a line of results.jsonl, or in its place an error of the drive, test or host that it is about; None where
    it does not tell which.
    """
    if not isinstance(record, t.Mapping) or record.get("kind") not in list(RECORDS):  # it may have no hash
        return None
    try:
        passed: dict[str, t.Any] = _passed(record).value
        return passed
    except sanitizer.Unfit as refused:
        run_id, host = record.get("run_id"), record.get("host")
        if not (_passes(base.RunId, run_id) and _passes(base.HostName, host)):
            return None
        return _error(record, str(run_id), str(host), NO_TIME, str(refused))


def _passed(record: t.Mapping[str, t.Any]) -> sanitizer.Passed:
    version = record.get("schema_version")
    if version != SCHEMA_VERSION or isinstance(version, bool):
        raise sanitizer.Unfit(
            [
                (
                    f"schema_version {version!r}, but this ssdlab.fleet reads {SCHEMA_VERSION}: use the version that "
                    "made the run"
                )
            ]
        )
    # By its kind: what the others know is unknown here.
    return sanitizer.shape_of_record(RECORDS[record["kind"]]).passed(record, most_size=MOST_SIZE)


def prepare() -> None:
    """Make the shapes of all records, before Ansible forks a process for each host."""
    with contextlib.suppress(ImportError):  # told where a host answers
        for kind in RECORDS.values():
            sanitizer.shape_of_record(kind)


def _passes(kind: t.Any, value: t.Any) -> bool:
    try:
        sanitizer.shape_of_record(kind).passed(value)
    except sanitizer.Unfit:
        return False
    return True


def _error(record: t.Mapping[str, t.Any], run_id: str, host: str, time: str, why: str) -> Record | None:
    """Return the record of an error in place of one that does not pass; None where its drive or test has no name."""
    said = f"what {host} reports about this was rejected: {why}"
    kind, drive = record["kind"], record.get("drive")
    test: t.Any = record.get("test")
    when: t.Any = record.get("time")
    started = when
    if not _passes(base.AnyTime, when):
        # Told again the same, so that a second collect says nothing new.
        when, started = time, NO_TIME
    common = {"schema_version": SCHEMA_VERSION, "kind": kind, "time": when, "run_id": run_id, "host": host}
    if kind == "host":
        return _json(HostRecord(**common, state="failed", message=said))
    if not _passes(base.Label, drive):
        return None
    common["drive"] = drive
    if kind == "drive":
        return _json(DriveRecord(**common, path=None, identity=None, outcome="error", message=said, refusals=[]))
    if not _passes(base.TestName, test):
        return None
    return _json(
        TestRecord(
            **common,
            test=test,
            attempt=1,
            title=test,
            started=started,
            finished=None,
            outcome="error",
            reasons=[said],
            rounds=0,
            steady_state=[],
            metrics={},
            purge=None,
            precondition=None,
            not_applicable=[],
        )
    )


def _json(record: t.Any) -> Record:
    found: Record = base.to_json(record)
    return found
