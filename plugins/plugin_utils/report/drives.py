# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The view of one drive: its tests, figures, reasons, conditions. Pure; nothing is escaped here, the templates do that."""

from __future__ import annotations

import datetime
import typing as t

from ..common import units
from . import conditions, derived, tables
from . import series as report_series
from .raw import HostRaw
from .sources import Sources

Mapping = t.Dict[str, t.Any]


def drive(sources: Sources, index: int, judged: Mapping) -> Mapping:
    """One drive of the judgement as the templates show it."""
    host, drive = judged["host"], judged["drive"]
    record = sources.drives.get((host, drive), {})
    identity = record.get("identity") or {}
    raw = sources.raw.get(host) or HostRaw({}, [], {}, {})
    found = derived_for(sources, judged)
    tests = [{**_test(sources, raw, judged, test, identity), **derived.lines(found.get(test["test"], {}))} for test in judged["tests"]]
    return {
        **{name: judged[name] for name in ("host", "drive", "serial", "model", "firmware", "verdict", "reasons")},
        "own_reasons": _own_reasons(judged),
        "index": index,
        "path": record.get("path"),
        "size_bytes": identity.get("size_bytes"),
        "identity": [(name, value) for name, value in sorted(identity.items()) if isinstance(value, (str, int, float)) and value != ""],
        "figure": _figure(judged, tests),
        "warnings": conditions.warnings(sources.run, host, drive),
        "tests": tests,
    }


def derived_of(sources: Sources) -> dict[tuple[str, str], Mapping]:
    """What follows from the figures of several cells or tests (derived.of_drive), by (host, drive)."""
    return {(judged["host"], judged["drive"]): derived_for(sources, judged) for judged in sources.judgement["drives"]}


def derived_for(sources: Sources, judged: Mapping) -> Mapping:
    """What follows from the figures of one drive."""
    host, drive = judged["host"], judged["drive"]
    records = {test: record for (of_host, of_drive, test), record in sources.records.items() if (of_host, of_drive) == (host, drive)}
    raw = sources.raw.get(host)
    return derived.of_drive(judged, records, raw.tests.get(drive, {}) if raw else {}, sources.run.get("tests") or {})


def _own_reasons(judged: Mapping) -> list[str]:
    """The reasons that no test of the drive says itself."""
    said = {f"{test['test']}: {reason}" for test in judged["tests"] for reason in test["reasons"]}
    return [reason for reason in judged["reasons"] if reason not in said]


def _figure(judged: Mapping, tests: list[Mapping]) -> Mapping | None:
    """The figure that stands for the drive: of the first criterion missed, else of the first one, else what was tracked."""
    checks = [(check["met"], test, check) for test in judged["tests"] for check in test["criteria"]]
    for met, test, check in sorted(checks, key=lambda item: (item[0] is None, item[0] or False)):
        valid = test["verdict"] in ("pass", "fail")
        return {
            **{key: check[key] for key in ("metric", "value", "min", "max")},
            "test": test["test"],
            "met": met if valid else None,
            "valid": valid,
        }
    for test in tests:
        for window in test["windows"]:
            if window.get("average") is not None:
                return {
                    "test": test["test"],
                    "metric": window["metric"],
                    "value": window["average"],
                    "min": None,
                    "max": None,
                    "met": None,
                    "valid": test["verdict"] in ("pass", "fail"),
                }
    return None


def _test(sources: Sources, raw: HostRaw, judged: Mapping, test: Mapping, identity: Mapping) -> Mapping:
    record = sources.records.get((judged["host"], judged["drive"], test["test"]))
    spec = raw.tests.get(judged["drive"], {}).get(test["test"], {})
    about = (sources.run.get("tests") or {}).get(test["test"]) or {}
    result = {**test, "series": None, "windows": [], "record": record or {}, "source": spec.get("source") or about.get("source")}
    result["description"] = about.get("description")
    result["limits"] = [_limit(check) for check in test["criteria"]]
    if record is None:
        return dict(result, matrix=None, cells=[], latency=None, not_applicable=[], gap_s=None)
    measured = raw.measurements.get((judged["drive"], test["test"], record.get("attempt", 1)))
    active_bytes = (identity.get("size_bytes") or 0) * (spec.get("active_range_pct") or 100) // 100
    return dict(
        result,
        series=report_series.test_series(record, spec, about, measured, active_bytes or None),
        windows=record.get("steady_state") or [],
        matrix=tables.matrix(spec.get("cells") or [], measured, about),
        cells=tables.cells(spec.get("cells") or [], measured),
        latency=tables.latency_table(test["metrics"]),
        not_applicable=record.get("not_applicable") or spec.get("not_applicable") or [],
        gap_s=measured.largest_gap_s if measured else None,
        samples=conditions.samples(measured.samples) if measured else None,
        duration_s=duration_s(record.get("started"), record.get("finished")),
    )


def _limit(check: Mapping) -> Mapping:
    divisor = units.unit(check["metric"])[1]
    scaled = {name: check[name] / divisor if check[name] is not None else None for name in ("min", "max")}
    return {"metric": check["metric"], "cell": check["cell"], **scaled}


def duration_s(started: str | None, finished: str | None) -> float | None:
    """Seconds between two times of records, or None."""
    try:
        begin, end = (datetime.datetime.fromisoformat(str(text).replace("Z", "+00:00")) for text in (started, finished))
    except ValueError:
        return None
    return (end - begin).total_seconds()
