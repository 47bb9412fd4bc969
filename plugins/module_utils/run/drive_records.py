# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The `drive` and `test` records of a run, from its status and journal (shapes: docs/internals.md). Pure."""

from __future__ import annotations

import typing as t

from ..core.files import SCHEMA_VERSION
from .summary import Record, RunFiles, last, parallel_drives

ENVELOPE = ("schema_version", "time", "run_id", "host", "event", "drive", "test", "attempt")


def unfinished(run: RunFiles) -> list[str]:
    """The drives that a live job has yet to finish."""
    return [entry["drive"] for entry in run.status.get("drives", []) if run.live and entry["outcome"] is None]


def records(run: RunFiles) -> list[Record]:
    """The records of what is finished; in a run that no job works on any more, of what was cut short too.

    They depend on the run's folder alone: reading it twice gives the same records.
    """
    found = []
    for entry in run.status.get("drives", []):
        history = [record for record in run.journal if record.get("drive") == entry["drive"]]
        found += [_test(run, entry, events) for events in _latest_attempts(history) if _tellable(run, entry, events)]
        if entry["outcome"] is not None or not run.live:
            found.append(_drive(run, entry, history))
    return found


def _latest_attempts(history: t.Iterable[Record]) -> list[list[Record]]:
    """For each test, the journal records of its newest attempt."""
    tests: dict[str, list[Record]] = {}
    for record in history:
        if record["event"] == "test_started":
            tests[record["test"]] = [record]
        elif record.get("test") in tests:
            tests[record["test"]].append(record)
    return list(tests.values())


def _tellable(run: RunFiles, entry: Record, events: t.Iterable[Record]) -> bool:
    """Whether a test's result stands: a live job goes on with one that has none, or takes up again one that was
    interrupted.
    """
    end = last(events, "test_finished")
    waits = end is None or (end["outcome"] == "interrupted" and entry["outcome"] is None)
    return not (run.live and waits)


def _record(run: RunFiles, kind: str, drive: str, time: str | None, **fields: t.Any) -> Record:
    common = {"schema_version": SCHEMA_VERSION, "kind": kind, "time": time, "run_id": run.run_id}
    return dict(common, host=run.status["host"], drive=drive, **fields)


def _details(record: Record | None) -> Record | None:
    """What an event says beside what every record carries."""
    return record and {key: value for key, value in record.items() if key not in ENVELOPE}


def _test(run: RunFiles, entry: Record, events: list[Record]) -> Record:
    start, end = events[0], last(events, "test_finished")
    result: Record = {
        "outcome": "interrupted",
        "reasons": ["interrupted: {0}".format(entry["message"] or "the host job ended before this test did")],
        "rounds": sum(record["event"] == "round" for record in events),
        "steady_state": [],
        "saturation": None,
        "validity": [],
        "metrics": {},
        "conditions": [],
        "vendor_settings": None,
        "wear": None,
    }
    if end:
        result = {key: end.get(key, value) for key, value in result.items()}
    result.update({"loads": end["loads"]} if end and end.get("loads") else {})
    laid = _details(last(events, "filesystem"))
    if laid:
        result["filesystem"] = laid
    several = _details(last(events, "array"))
    if several:
        result["array"] = _with_what_was_written(several, last(events, "array_stopped"))
    return _record(
        run,
        "test",
        entry["drive"],
        events[-1]["time"],
        test=start["test"],
        attempt=start["attempt"],
        title=start.get("title", ""),
        started=start["time"],
        finished=end["time"] if end else None,
        purge=_details(last(events, "purge")),
        precondition=_details(last(events, "precondition")),
        parallel_drives=parallel_drives(run),
        not_applicable=_planned(run, entry["drive"], start["test"]).get("not_applicable", []),
        **result,
    )


def _with_what_was_written(array: Record, stopped: Record | None) -> Record:
    """An array, each of its members with what was written to it, where the array was stopped."""
    told = {item["drive"]: item for item in (stopped or {}).get("members", [])}
    return dict(array, members=[dict(member, **told.get(member["drive"], {})) for member in array["members"]])


def _planned(run: RunFiles, drive: str, test: str) -> Record:
    """The test as the plan has it."""
    drives = [item for item in run.plan.get("drives", []) if item["drive"] == drive]
    return next((item for plan in drives for item in plan["tests"] if item["name"] == test), {})


def _drive(run: RunFiles, entry: Record, history: list[Record]) -> Record:
    guard = last(history, "guard") or {}
    seen = [record for record in history if record.get("identity")]
    outcome, message = entry["outcome"], entry["message"]
    if outcome is None:
        outcome = "interrupted"
        message = (
            message
            or run.status.get("message")
            or "the host job ended before this drive {0}".format(
                "had its turn" if entry["phase"] == "queued" else "was done"
            )
        )
    return _record(
        run,
        "drive",
        entry["drive"],
        history[-1]["time"] if history else run.status["updated"],
        path=entry["path"],
        identity=seen[-1]["identity"] if seen else None,
        outcome=outcome,
        message=message,
        refusals=guard.get("refusals", []) if outcome == "refused" else [],
        # Once the run has written to the drive, nothing of this is found any more.
        look=next(
            (record["look"] for record in reversed(history) if record["event"] == "guard" and record.get("look")), None
        ),
        left=next((record["state"] for record in reversed(history) if record["event"] == "left"), None),
        logs=_logs(history),
        power=_power(history),
        **_fault(outcome, history),
        overridden=next(
            (
                record["overridden"]
                for record in reversed(history)
                if record["event"] == "guard" and record.get("overridden")
            ),
            [],
        ),
    )


def _fault(outcome: str, history: list[Record]) -> Record:
    """Whether the drive itself led to the error that its campaign ended with."""
    own = outcome == "error" and (last(history, "drive_finished") or {}).get("drive_fault") is True
    return {"drive_fault": True} if own else {}


def _logs(history: list[Record]) -> Record | None:
    """What a drive that failed said of itself: {reason, logs: [{log, file, size_bytes, message}]}."""
    kept = last(history, "logs_kept")
    return {key: kept[key] for key in ("reason", "logs")} if kept else None


def _power(history: list[Record]) -> Record | None:
    """{first, last: {boot_id, power_cycles}} of the jobs that took the drive; None where none told."""
    told = [record["power"] for record in history if record["event"] == "drive_started" and record.get("power")]
    return {"first": told[0], "last": told[-1]} if told else None
