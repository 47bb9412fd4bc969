# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What decides a verdict: run.json and the records, and why the figures of a test don't count. Pure."""

from __future__ import annotations

import typing as t

from ...module_utils.records import base
from ...module_utils.records.results import DriveRecord, HostRecord
from ...module_utils.run.criteria import MEASURED, usable
from . import environment, judged_criteria, other_drives

Record = dict[str, t.Any]


class VerdictReason(t.NamedTuple):
    """One thing that decides a verdict, and the sentence that says why."""

    verdict: str
    reason: str


class RunFacts:
    """run.json and the records, found by host, drive and test. Raises base.WrongShape for what did not pass the
    gate.
    """

    def __init__(self, run: Record, records: list[Record], references: judged_criteria.References) -> None:
        self.references = references
        self.tests: Record = run.get("tests") or {}
        given = run.get("criteria") or []
        self.criteria = judged_criteria.sound(given)
        self.criterion_problems = [text for each in given for text in judged_criteria.criterion_problems(each)]
        # By host.
        self.health_criteria = {host: usable(of_host) for host, of_host in (run.get("health_criteria") or {}).items()}
        self.strict = run.get("unknown_causes") == "disturb"
        self.asked = {(entry["host"], entry["drive"]): entry for entry in run.get("asked") or []}
        self.hosts = {record["host"]: base.parse(HostRecord, record) for record in records if record["kind"] == "host"}
        self.drive_records = {
            (record["host"], record["drive"]): base.parse(DriveRecord, record)
            for record in records
            if record["kind"] == "drive"
        }
        # With what its journal adds, so not only what is stored.
        self.test_records: dict[tuple[str, str], dict[str, Record]] = {}
        for record in records:
            if record["kind"] == "test":
                self.test_records.setdefault((record["host"], record["drive"]), {})[record["test"]] = record
        self.wrong_drives = other_drives.wrong_by_host(
            record for tests in self.test_records.values() for record in tests.values()
        )
        self.streams = other_drives.streams(
            (self.model(*place), record) for place, tests in self.test_records.items() for record in tests.values()
        )

    def model(self, host: str, drive: str) -> str:
        """Return the model of a drive by its record; "": unknown."""
        record = self.drive_records.get((host, drive))
        return str((record.identity or {}).get("model") or "") if record else ""

    def drives(self) -> list[tuple[str, str]]:
        """(host, drive) of all that were asked for, then of those that only have records."""
        return list(dict.fromkeys([*self.asked, *self.drive_records, *self.test_records]))

    def tests_of(self, host: str, drive: str) -> list[str]:
        """Return the tests asked of a drive, then those that only have records."""
        asked = self.asked.get((host, drive))
        names = list(asked.get("tests") or self.tests) if asked else []
        return list(dict.fromkeys([*names, *self.test_records.get((host, drive), {})]))


def colon(message: str) -> str:
    return f": {message}" if message else ""


def invalid(facts: RunFacts, host: str, drive: str, name: str, record: Record) -> VerdictReason | None:
    """Return why a test's figures don't count, or None."""
    about = facts.tests.get(name) or {}
    required = (about.get("steady_state") or {}).get("required", True)
    found = _trouble(record, required and bool(about.get("tracked") or record.get("steady_state")))
    said = (environment.unknown_problem(record) if facts.strict else "") or _without_its_state(
        facts, host, drive, about
    )
    return found or (VerdictReason("invalid", said) if said else None)


def _trouble(record: Record, steady_asked: bool) -> VerdictReason | None:
    """Return why a record is not a valid measurement, or None."""
    outcome = record.get("outcome")
    said = "; ".join(str(reason) for reason in record.get("reasons") or [])
    windows = record.get("steady_state") or []
    rounds = f" after {record['rounds']} rounds" if record.get("rounds") else ""
    if outcome == "error":
        return VerdictReason("error", f"the test ended with an error{rounds}" + colon(said))
    if outcome == "interrupted":
        return VerdictReason("invalid", f"interrupted{rounds}" + colon(said.replace("interrupted: ", "", 1)))
    if outcome == "invalid":
        return VerdictReason("invalid", said or "the measurement is invalid, and the host gave no reason")
    # "steady" is believed only when every tracked variable's own figures say so too.
    attained = outcome == "steady" and bool(windows) and all(window.get("steady") for window in windows)
    if outcome == "not_steady" or (steady_asked and outcome in MEASURED and not attained):
        return VerdictReason("invalid", f"steady state was not attained{rounds}" + colon(said or _unsteady(windows)))
    if outcome in MEASURED:
        return None
    return VerdictReason("not_tested", f"the test has not finished (outcome {outcome!r})")


def _without_its_state(facts: RunFacts, host: str, drive: str, about: Record) -> str:
    """Return why a test that goes on from another's state (`follows`) did not have it: that one does not
    count itself.
    """
    before = about.get("follows")
    if not before:
        return ""
    record = facts.test_records.get((host, drive), {}).get(before)
    if record is not None and not invalid(facts, host, drive, before, record):
        return ""
    return f"it builds on the drive state that test {before} leaves, and that test is invalid"


def _unsteady(windows: list[Record]) -> str:
    return "; ".join(
        str(reason) for window in windows if not window.get("steady") for reason in window.get("reasons") or []
    )
