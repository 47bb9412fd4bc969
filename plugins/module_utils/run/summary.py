# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a host tells about its runs: a line for each, and the `drive` and `test` records of one (shapes:
docs/internals.md).
"""

from __future__ import annotations

import hashlib
import json
import typing as t

from ..core.files import SCHEMA_VERSION, Damaged, now
from ..core.host import Host
from .folder import LIVE_STATES, UNFINISHED_STATES, RunDir, queued, run_ids, scan_journal
from .liveness import run_state

ABSENT = "absent"
# Of a run whose status and plan are both lost.
UNKNOWN = "unknown"
ENVELOPE = ("schema_version", "time", "run_id", "host", "event", "drive", "test", "attempt")

Record = t.Dict[str, t.Any]


class RunFiles(t.NamedTuple):
    """What a run's folder holds. `state`: as status.json says, `dead` when its job ended without saying so, `damaged`
    when nobody can read it, or `absent`.

    damage: a sentence for each file that is not what it should be; what it lacks is made up for from the others, as far
      as they go.
    """

    run_id: str
    state: str
    status: Record
    journal: list[Record]
    plan: Record
    damage: list[str] = []

    @property
    def live(self) -> bool:
        """Whether a host job works on it now."""
        return self.state in LIVE_STATES


def runs(host: Host, state_dir: str, run_name: str | None = None, definitions_of: str | None = None) -> list[Record]:
    """Every run that this host knows, by id: [{run_id, run_name, state, drives, updated, definitions}]; drives: how
    many.

    definitions: see `definitions`; of unfinished runs and of the run `definitions_of`, {} for others: they are many.
    """
    found = [_brief(host, RunDir(state_dir, run_id), definitions_of) for run_id in run_ids(state_dir)]
    return [run for run in found if run_name is None or run["run_name"] == run_name]


def definitions(plan: t.Mapping[str, t.Any]) -> Record:
    """What each test of a plan.json is, for comparing: {test: {key: digest}}. `cells`: those that a drive can't do
    count too.
    """
    tests: dict[str, list[Record]] = {}
    for drive in plan.get("drives", []):
        for test in drive["tests"]:
            tests.setdefault(test["name"], []).append(test)
    return {
        name: {key: _digest(value) for key, value in _definition(rendered).items()} for name, rendered in tests.items()
    }


def _definition(rendered: list[Record]) -> Record:
    """One test, from its renderings for the drives of a host."""
    test = rendered[0]
    fill = test.get("precondition")
    cells = [cell for each in rendered for cell in each.get("cells", [])]
    left_out = [cell for each in rendered for cell in each.get("not_applicable", [])]
    # By the names that they have on every drive: a format may change what a drive prefers, and no definition.
    named = {cell["id"]: cell["preferred"] for cell in cells if cell.get("preferred")}
    return {
        "purge": (test.get("purge") or {}).get("method"),
        "precondition": fill and [fill.get("passes"), fill.get("block_size_bytes")],
        "active_range_pct": test.get("active_range_pct"),
        "rounds": test.get("rounds"),
        "steady_state": _named_steady(test.get("steady_state"), named),
        "after_steady_rounds": test.get("after_steady_rounds"),
        **{key: test[key] for key in ("latency_targets_us", "last_rounds", "write_cache", "filesystem") if key in test},
        "cells": sorted({named.get(cell["id"], cell["id"]) for cell in cells + left_out}),
        "runtimes_s": sorted({cell["runtime_s"] for cell in cells}),
    }


def _named_steady(steady: Record | None, named: t.Mapping[str, str]) -> Record | None:
    if not steady:
        return steady
    tracked = [dict(item, cell=named.get(item["cell"], item["cell"])) for item in steady.get("tracked", [])]
    return dict(steady, tracked=tracked)


def _digest(value: t.Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:8]


def _brief(host: Host, run_dir: RunDir, definitions_of: str | None) -> Record:
    state, status = run_state(host, run_dir)
    known: Record = status or {}
    told = state in UNFINISHED_STATES or run_dir.run_id == definitions_of
    plan = _plan(run_dir)[0] if told or not known.get("run_name") else {}
    name = known.get("run_name") or (plan.get("run") or {}).get("name")
    return {
        "run_id": run_dir.run_id,
        "run_name": name,
        "state": state,
        "drives": len(known.get("drives") or []),
        "updated": known.get("updated"),
        "definitions": definitions(plan) if told else {},
    }


def read(host: Host, run_dir: RunDir) -> RunFiles:
    """One run, with empty parts where its folder lacks them."""
    if run_dir.run_id not in run_ids(run_dir.state_dir):
        return RunFiles(run_dir.run_id, ABSENT, {}, [], {})
    # The state first: a job that ends meanwhile is then told as live with all it wrote, never as dead with a part.
    state, status = run_state(host, run_dir)
    journal, lines = scan_journal(run_dir.journal)
    plan, of_plan = _plan(run_dir)
    torn = (
        [f"{run_dir.journal}: {len(lines)} line(s) of it are no records, the first is line {lines[0]}"] if lines else []
    )
    damage = [text for text in (run_dir.status_damage(), of_plan) if text] + torn
    return RunFiles(run_dir.run_id, state, status or _status_from(run_dir, plan, journal), journal, plan, damage)


def _plan(run_dir: RunDir) -> tuple[Record, str]:
    """(plan.json or {}, what is wrong with it)."""
    try:
        return run_dir.read_plan() or {}, ""
    except Damaged as error:
        return {}, str(error)


def _status_from(run_dir: RunDir, plan: Record, journal: list[Record]) -> Record:
    """What a lost status.json would say, as far as the plan and the journal know: {} where they know nothing."""
    drives = [queued(drive["drive"]) for drive in plan.get("drives", [])] or [queued(name) for name in _names(journal)]
    if not drives:
        return {}
    for entry in drives:
        history = [record for record in journal if record.get("drive") == entry["drive"]]
        started, ended = _last(history, "drive_started"), _last(history, "drive_started", "drive_finished")
        if started:
            entry.update(phase="guard", path=started.get("path"))
        if ended and ended["event"] == "drive_finished":
            entry.update(phase="done", outcome=ended.get("outcome"), message=ended.get("message") or "")
    host = plan.get("host") or next((record["host"] for record in journal if record.get("host")), UNKNOWN)
    name = (plan.get("run") or {}).get("name") or UNKNOWN
    # A process without a start time is nobody's.
    job: Record = {
        "boot_id": None,
        "pid": 1,
        "pid_start": None,
        "unit": None,
        "engine_version": plan.get("engine_version") or UNKNOWN,
        "state": "running",
    }
    times = [record["time"] for record in journal] or [now()]
    about = {
        "run_id": run_dir.run_id,
        "run_name": name,
        "host": host,
        "started": times[0],
        "updated": times[-1],
        "restored": False,
    }
    return dict(job, schema_version=SCHEMA_VERSION, **about, message="", drives=drives)


def _names(journal: list[Record]) -> list[str]:
    return list(dict.fromkeys(record["drive"] for record in journal if record.get("drive")))


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


def host_snapshot(run: RunFiles) -> Record | None:
    """What the host was when the run's newest job began, in short (snapshot.brief); None before there was one."""
    taken = _last(run.journal, "snapshot")
    return brief(taken) if taken else None


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
    end = _last(events, "test_finished")
    waits = end is None or (end["outcome"] == "interrupted" and entry["outcome"] is None)
    return not (run.live and waits)


def _last(history: t.Iterable[Record], *events: str) -> Record | None:
    found = [record for record in history if record["event"] in events]
    return found[-1] if found else None


def _record(run: RunFiles, kind: str, drive: str, time: str | None, **fields: t.Any) -> Record:
    common = {"schema_version": SCHEMA_VERSION, "kind": kind, "time": time, "run_id": run.run_id}
    return dict(common, host=run.status["host"], drive=drive, **fields)


def _details(record: Record | None) -> Record | None:
    """What an event says beside what every record carries."""
    return record and {key: value for key, value in record.items() if key not in ENVELOPE}


def _test(run: RunFiles, entry: Record, events: list[Record]) -> Record:
    start, end = events[0], _last(events, "test_finished")
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
    laid = _details(_last(events, "filesystem"))
    if laid:
        result["filesystem"] = laid
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
        purge=_details(_last(events, "purge")),
        precondition=_details(_last(events, "precondition")),
        not_applicable=_planned(run, entry["drive"], start["test"]).get("not_applicable", []),
        **result,
    )


def _planned(run: RunFiles, drive: str, test: str) -> Record:
    """The test as the plan has it."""
    drives = [item for item in run.plan.get("drives", []) if item["drive"] == drive]
    return next((item for plan in drives for item in plan["tests"] if item["name"] == test), {})


def _drive(run: RunFiles, entry: Record, history: list[Record]) -> Record:
    guard = _last(history, "guard") or {}
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
        overridden=next(
            (
                record["overridden"]
                for record in reversed(history)
                if record["event"] == "guard" and record.get("overridden")
            ),
            [],
        ),
    )


def _logs(history: list[Record]) -> Record | None:
    """What a drive that failed said of itself: {reason, logs: [{log, file, size_bytes, message}]}."""
    kept = _last(history, "logs_kept")
    return {key: kept[key] for key in ("reason", "logs")} if kept else None


def _power(history: list[Record]) -> Record | None:
    """{first, last: {boot_id, power_cycles}} of the jobs that took the drive; None where none told."""
    told = [record["power"] for record in history if record["event"] == "drive_started" and record.get("power")]
    return {"first": told[0], "last": told[-1]} if told else None


def brief(snapshot: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """The few lines of a snapshot that go with every result; all of it is in the journal."""
    cpu, bios, tuned = (snapshot.get(key) or {} for key in ("cpu", "bios", "tunables"))
    return {
        "cpu": cpu.get("model"),
        "sockets": cpu.get("sockets"),
        "cores": cpu.get("cores"),
        "cpus": cpu.get("cpus"),
        "memory_bytes": (snapshot.get("memory") or {}).get("total_bytes"),
        "system": " ".join(text for text in (bios.get("system_vendor"), bios.get("system")) if text) or None,
        "bios": " ".join(text for text in (bios.get("vendor"), bios.get("version"), bios.get("date")) if text) or None,
        "kernel": (snapshot.get("kernel") or {}).get("release"),
        "os": (snapshot.get("kernel") or {}).get("os"),
        "command_line": snapshot.get("command_line"),
        "tools": {name: told["version"] for name, told in (snapshot.get("tools") or {}).items() if told},
        "governor": "/".join(sorted(tuned.get("governor") or {})) or None,
        "smt": tuned.get("smt"),
        "aspm_policy": tuned.get("aspm_policy"),
    }
