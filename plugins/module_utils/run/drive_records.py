# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reduce a host's journal to the `drive` and `test` records of its run (records/results.py). Pure."""

from __future__ import annotations

import typing as t
from dataclasses import replace

from ..core.files import SCHEMA_VERSION
from ..measure import health_metrics
from ..measure.journaled_health import LinesOfHost
from ..records import base, measurement, results
from ..records.attempt import AttemptResult
from ..records.guard import Look, Refusal
from ..records.health import DriveLogs, HealthInArray
from ..records.plan import CollectedPlan, PlannedTest, Validity
from ..records.purge import PurgeDetails
from ..records.storage_layers import FilesystemDetails
from .folder import Event
from .reducer import Budget, JournalAttempt, KernelLines
from .states import WRITING_STEPS

RunResult = t.Union[results.DriveRecord, results.TestRecord]
Kind = t.TypeVar("Kind")
# Of which the newest of an attempt, or of a drive, goes into its record.
OF_ATTEMPT = ("purge", "precondition", "filesystem", "array", "array_stopped", "test_finished")
OF_DRIVE = ("guard", "left", "logs_kept", "drive_finished")
# Beside them.
OF_RUN = ("calibration", "snapshot", "drive_started", "test_started", "member_health")


class _Place(t.NamedTuple):
    """Which drive of which host a record is about."""

    run_id: str
    host: str
    drive: str


class _Attempt:
    """The newest attempt at a test of a drive. planned: the test in plan.json; None: the plan lacks it.

    validity: of the plan; lines: the kernel_events of its job; earlier: the attempt before, whose health counts too.
    """

    def __init__(
        self,
        start: Event,
        planned: PlannedTest | None,
        budget: Budget,
        validity: Validity,
        lines: LinesOfHost,
        earlier: _Attempt | None = None,
    ) -> None:
        self.start, self.planned = start, planned
        self._earlier = earlier.result("").metrics if earlier else {}
        self.time = start["time"]
        self._journal = JournalAttempt(planned, budget, start["attempt"], validity, lines)
        self._newest: dict[str, Event] = {}

    def take(self, event: Event) -> None:
        """Add a later event of this attempt."""
        self.time = event["time"]
        if event["event"] in OF_ATTEMPT:
            self._newest[event["event"]] = event
        self._journal.take(event)

    @property
    def end(self) -> Event | None:
        """Its test_finished."""
        return self._newest.get("test_finished")

    def result(self, message: str) -> AttemptResult:
        """Return what its rounds came to. message: why the drive's campaign ended."""
        result = self._journal.result()
        if self.end is None and message and result.outcome == "interrupted":
            result = replace(result, reasons=[f"interrupted: {message}"])
        return replace(result, metrics=health_metrics.worst(result.metrics, self._earlier))

    def details(self, event: str, kind: type[Kind]) -> Kind | None:
        """Return what its newest event of a name says."""
        return _part(kind, self._newest.get(event))

    def array(self) -> results.MeasuredArray | None:
        """Return its array, each of the members with what was written to it if the array was stopped."""
        array, stopped = self._newest.get("array"), self._newest.get("array_stopped") or {}
        written = {member["drive"]: member for member in stopped.get("members", [])}
        members = [dict(member, **written.get(member["drive"], {})) for member in (array or {}).get("members", [])]
        return _part(results.MeasuredArray, array and dict(array, members=members))


def _part(kind: type[Kind], data: Event | None) -> Kind | None:
    """Return a part of a record; None for none. What it is made of passed the gate, where it came from a host."""
    return base.parse(kind, data) if data else None


def _parts(kind: type[Kind], data: t.Iterable[Event]) -> list[Kind]:
    return [base.parse(kind, item) for item in data]


class _Drive:
    """What the events of one drive say. tests: its attempts by test; budget: of the journal; validity: of the plan."""

    def __init__(self, budget: Budget, validity: Validity) -> None:
        self._budget, self._validity = budget, validity
        self.time: str | None = None
        self.newest: dict[str, Event] = {}
        self.identity: Event | None = None
        # Of the guard's looks: once the run has written to the drive, nothing of them is found any more.
        self.look: Event | None = None
        self.overridden: t.Sequence[Event] = []
        # What its entry's `retired` gives up; the statement, once the run wrote to the drive.
        self.gives_up: list[str] = []
        self.retired: str | None = None
        # Of the jobs that took the drive: {boot_id, power_cycles}.
        self.power: list[Event] = []
        self.tests: dict[str, _Attempt] = {}
        # By test and attempt, of arrays of which it was a member.
        self.in_arrays: dict[tuple[str, int], Event] = {}

    def take(self, event: Event, planned: t.Mapping[str, PlannedTest], lines: LinesOfHost) -> None:
        """Add an event of this drive. planned: its tests in plan.json; lines: the kernel_events of the job."""
        kind, test = event["event"], str(event.get("test"))
        self.time = event["time"]
        self.identity = event.get("identity") or self.identity
        if kind in OF_DRIVE:
            self.newest[kind] = event
        if kind == "guard":
            self.look = event.get("look") or self.look
            self.overridden = event.get("overridden") or self.overridden
            self.gives_up = event.get("gives_up") or self.gives_up
            if event["eligible"] and event["step"] in WRITING_STEPS:
                self.retired = event.get("retired") or self.retired
        elif kind == "drive_started" and event.get("power"):
            self.power.append(event["power"])
        elif kind == "member_health":
            self.in_arrays[test, event["attempt"]] = event
        elif kind == "test_started":
            before = self.tests.get(test)
            self.tests[test] = _Attempt(event, planned.get(test), self._budget, self._validity, lines, before)
        elif test in self.tests:
            self.tests[test].take(event)


class RunReducer:
    """The results of one host's part of a run, event by event. plan: of the run's folder; None if it is lost.

    snapshot, calibration: the newest of each, None before there is one.
    """

    def __init__(self, plan: CollectedPlan | None) -> None:
        self._plan = plan or CollectedPlan([])
        self._budget = Budget()
        self._planned = {drive.drive: {test.name: test for test in drive.tests} for drive in self._plan.drives}
        self._drives: dict[str, _Drive] = {}
        self._lines = KernelLines()
        self.snapshot: Event | None = None
        self.calibration: measurement.Calibration | None = None
        self._most_drives = 0

    def take(self, event: Event) -> None:
        """Add an event, in the journal's order."""
        kind, drive = event["event"], event.get("drive")
        self._lines.take(event)
        if drive:
            seen = self._drives.setdefault(drive, _Drive(self._budget, self._plan.validity))
            seen.take(event, self._planned.get(drive, {}), self._lines.by_drive)
        elif kind == "snapshot":
            self.snapshot = event
        elif kind == "calibration":
            self.calibration = base.parse(measurement.Calibration, event)
            self._most_drives = max(self._most_drives, self.calibration.parallel_drives)

    def records(self, status: Event, run_id: str, is_live: bool) -> list[RunResult]:
        """Return the records of what is finished; in a run that no job works on any more, of what was cut short too.

        They depend on the run's folder alone: reading it twice gives the same records.
        """
        found: list[RunResult] = []
        for entry in status.get("drives", []):
            place = _Place(run_id, status["host"], entry["drive"])
            seen = self._drives.get(entry["drive"]) or _Drive(self._budget, self._plan.validity)
            for attempt in seen.tests.values():
                if not (is_live and _goes_on(attempt.end, entry)):
                    found.append(self._test(place, attempt, entry["message"]))
            if entry["outcome"] is not None or not is_live:
                found.append(_drive(place, seen, entry, status))
        return found

    def _test(self, place: _Place, attempt: _Attempt, message: str) -> results.TestRecord:
        start, end, result = attempt.start, attempt.end, attempt.result(message)
        return results.TestRecord(
            **place._asdict(),
            schema_version=SCHEMA_VERSION,
            kind="test",
            time=attempt.time,
            test=start["test"],
            attempt=start["attempt"],
            title=start.get("title", ""),
            started=start["time"],
            finished=end["time"] if end else None,
            outcome=result.outcome,
            reasons=result.reasons,
            rounds=result.rounds,
            steady_state=result.steady_state,
            metrics=result.metrics,
            purge=attempt.details("purge", PurgeDetails),
            precondition=attempt.details("precondition", measurement.PreconditionDetails),
            not_applicable=list(attempt.planned.not_applicable) if attempt.planned else [],
            saturation=result.saturation,
            written_bytes=result.written_bytes,
            validity=result.validity,
            conditions=result.conditions,
            vendor_settings=result.vendor_settings,
            wear=result.wear,
            health=result.health,
            parallel_drives=self._parallel_drives(),
            loads=result.loads,
            array=attempt.array(),
            filesystem=attempt.details("filesystem", FilesystemDetails),
            integrity=result.integrity,
            self_test=result.self_test,
            power_cut=result.power_cut,
            scrub=result.scrub,
        )

    def _parallel_drives(self) -> int | None:
        """Return how many drives were measured at the same time at most; None if that is unknown."""
        number = self._most_drives if self._plan.together else self._plan.parallel_drives
        return min(number, max(1, len(self._plan.drives))) if number else None


def _goes_on(end: Event | None, entry: Event) -> bool:
    """Return whether a live job goes on with a test, or takes up again one that was interrupted."""
    return end is None or (end["ended"] == "interrupted" and entry["outcome"] is None)


def _drive(place: _Place, seen: _Drive, entry: Event, status: Event) -> results.DriveRecord:
    outcome, message = entry["outcome"], entry["message"]
    if outcome is None:
        outcome = "interrupted"
        when = "had its turn" if entry["phase"] == "queued" else "was done"
        message = message or status.get("message") or f"the host job ended before this drive {when}"
    guard, finished = (seen.newest.get(kind) or {} for kind in ("guard", "drive_finished"))
    power = {"first": seen.power[0], "last": seen.power[-1]} if seen.power else None
    return results.DriveRecord(
        **place._asdict(),
        schema_version=SCHEMA_VERSION,
        kind="drive",
        time=seen.time or status["updated"],
        path=entry["path"],
        identity=dict(seen.identity) if seen.identity is not None else None,
        outcome=outcome,
        message=message,
        refusals=_parts(Refusal, guard.get("refusals", [])) if outcome == "refused" else [],
        look=_part(Look, seen.look),
        left=(seen.newest.get("left") or {}).get("state"),
        logs=_part(DriveLogs, seen.newest.get("logs_kept")),
        power=_part(results.PowerOfRun, power),
        # The drive itself led to the error that its campaign ended with.
        drive_fault=True if outcome == "error" and finished.get("drive_fault") is True else None,
        overridden=_parts(Refusal, seen.overridden),
        retired=seen.retired,
        gives_up=seen.gives_up if seen.retired else None,
        in_arrays=_parts(HealthInArray, seen.in_arrays.values()),
    )
