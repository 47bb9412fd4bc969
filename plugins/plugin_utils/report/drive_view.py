# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The view of one drive's page: its tests, figures, reasons, conditions, files. Pure; nothing is escaped here, the
templates do that.
"""

from __future__ import annotations

import datetime
import typing as t

from ..common import units
from . import (
    chart_series,
    derived_metrics,
    error_curve,
    interference,
    latencies,
    measured_conditions,
    power_cuts,
    svg,
    tables,
)
from .host_journal import HostRaw
from .run_sources import Sources

Record = dict[str, t.Any]
# Of a test without a rule, no table tells so many cells by other means: they are seen at once.
MOST_OPEN = 12


def drive(sources: Sources, row: Record, judged: Record) -> Record:
    """Return a row (drive_rows.rows) and its entry in the judgement, with all that the page of the drive shows: path,
    size_bytes, identity (with fio_engine), warnings, given_up, tests.
    """
    key = (judged["host"], judged["drive"])
    record = sources.drives.get(key, {})
    identity = record.get("identity") or {}
    raw = sources.raw(judged["host"])
    found = sources.derived.get(key, {})
    tests = [
        {
            **_test(sources, raw, judged, test, identity),
            **derived_metrics.derived_view(found.get(test["test"], {})),
            "changes": derived_metrics.changes(test["test"], found),
        }
        for test in judged["tests"]
    ]
    for test in tests:
        if test["series"]:
            test["series"].update(
                verdict=row["verdict"],
                model=row["model"] or "",
                median=sources.outlines.get(key, {}).get(test["test"], {}).get("median"),
                limits=[_limit(check) for check in test["criteria"]],
                matrices=[matrix.get("plots") for matrix in test["matrices"]],
                changes=test["changes"],
                sweeps=[sweep["plot"] for sweep in test["sweeps"]],
            )
    return {
        **row,
        "path": record.get("path"),
        "size_bytes": identity.get("size_bytes"),
        "identity": [
            (name, value)
            for name, value in [*sorted(identity.items()), ("fio_engine", _engine(sources.run, *key))]
            if isinstance(value, (str, int, float)) and value != ""
        ],
        "warnings": measured_conditions.warnings(sources.run, *key),
        "logs": record.get("logs"),
        "given_up": _given_up(record),
        "tests": tests,
    }


def _given_up(record: Record) -> list[str]:
    """Return what the run erased as the drive's entry says that it is retired, in words."""
    if not record.get("retired"):
        return []
    return [f"Its entry says retired: {record['retired']}. The run gave up:", *(record.get("gives_up") or ["nothing"])]


def _engine(run: Record, host: str, drive: str) -> str | None:
    """Return fio's engine as the run asked for it (workload_ioengine)."""
    asked = [entry for entry in run.get("asked") or [] if (entry["host"], entry["drive"]) == (host, drive)]
    return asked[-1].get("engine") if asked else None


def _test(sources: Sources, raw: HostRaw, judged: Record, test: Record, identity: Record) -> Record:
    record = sources.tests.get((judged["host"], judged["drive"]), {}).get(test["test"])
    spec = raw.tests.get(judged["drive"], {}).get(test["test"], {})
    about = (sources.run.get("tests") or {}).get(test["test"]) or {}
    result = {
        **test,
        "series": None,
        "windows": [],
        "record": record or {},
        "source": spec.get("source") or about.get("source"),
        "departs": about.get("departs"),
        "in_service": bool(about.get("in_service")),
    }
    result["description"] = about.get("description")
    if record is None:
        return dict(result, matrices=[], cells=[], latency=None, latencies=None, not_applicable=[], gap_s=None)
    measured = raw.measurements.get((judged["drive"], test["test"], record.get("attempt", 1)))
    active_bytes = chart_series.active_bytes(spec, identity.get("size_bytes"))
    rates = interference.table(spec.get("cells") or [], measured)
    over = latencies.span(record, about.get("last_rounds"))
    series = chart_series.test_series(record, spec, about, measured, active_bytes)
    cells = tables.cells(spec.get("cells") or [], measured)
    return dict(
        result,
        series=series,
        windows=record.get("steady_state") or [],
        matrices=[rates] if rates else tables.matrices(spec.get("cells") or [], measured, about, over),
        cells=cells,
        cells_open=not record.get("steady_state") and len(cells) <= MOST_OPEN,
        captions=latencies.captions(over, series["cell"], alone=not cells),
        latency=latencies.table(latencies.figures_of(series["cell"], record, measured)),
        latencies=latencies.by_cell(spec.get("cells") or [], measured),
        not_applicable=record.get("not_applicable") or spec.get("not_applicable") or [],
        gap_s=measured.largest_gap_s if measured else None,
        samples=measured.samples.shown() if measured else None,
        kernel_lines=measured.kernel_lines if measured and test["verdict"] != "pass" else [],
        more_kernel_lines=measured.more_kernel_lines if measured else 0,
        duration_s=duration_s(record.get("started"), record.get("finished")),
        wrong_map=_wrong_map(record.get("integrity") or {}),
        error_curve=error_curve.of_test(record),
        power_cuts=power_cuts.of_test(record),
    )


def _wrong_map(found: Record) -> Record | None:
    """{picture, said, size_bytes} of where on the drive wrong blocks lie; None where none do, or nobody tells where."""
    counts = found.get("wrong_by_part")
    if not counts:
        return None
    hit = sum(count > 0 for count in counts)
    said = f"in {hit} of {len(counts)} equal parts of what was written, {max(counts):,} at most in one of them"
    about = f"{sum(counts):,} wrong blocks {said}"
    size_bytes = found["bytes_written"] // found["passes"]
    return {"picture": svg.strip(counts, None, (), about), "said": said, "size_bytes": size_bytes}


def _limit(check: Record) -> Record:
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
