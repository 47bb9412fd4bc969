# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The tables of the page and the whole view that the templates get. Pure, except that nothing is escaped here: the templates do."""

from __future__ import annotations

import datetime
import os
import typing as t
from urllib.parse import quote

from ...module_utils.measure import histogram
from ..common import units
from ..results.judge import VERDICTS
from . import conditions, curves, derived
from . import series as report_series
from .raw import HostRaw, Measurement

Mapping = t.Dict[str, t.Any]
Records = t.Dict[t.Tuple[str, str, str], Mapping]

SHOWN_DRIVES = 24  # in a larger fleet the first table shows those that passed only when asked
CELL_METRICS = ("iops", "bandwidth", "mean_latency_us", "max_latency_us")


class Sources(t.NamedTuple):
    """All that a view is made from. `records`: test records by (host, drive, test); `drives`: drive records by (host, drive)."""

    run: Mapping
    judgement: Mapping
    records: Records
    drives: dict[tuple[str, str], Mapping]
    hosts: dict[str, Mapping]
    raw: dict[str, HostRaw]
    damaged_lines: list[int]
    fleet: Mapping = {}


def view(sources: Sources) -> Mapping:
    """The view: {run, verdicts, headline, drives (worst first), fleet, hosts, damaged_lines}."""
    # Worst first: what needs attention is never below the fold.
    ordered = sorted(sources.judgement["drives"], key=lambda drive: VERDICTS.index(drive["verdict"]))
    drives = [_drive(sources, index, judged) for index, judged in enumerate(ordered)]
    _shorten(drives)
    several_hosts = len({drive["host"] for drive in drives}) > 1
    entries = [
        {
            "label": f"{drive['host']} {drive['short']}" if several_hosts else drive["short"],
            "drive": drive["index"],
            "verdict": drive["verdict"],
            "model": drive["model"] or "",
            "title": test["title"],
            "limits": test["limits"],
            "series": test["series"],
        }
        for drive in drives
        for test in drive["tests"]
        if test["series"]
    ]
    report_series.medians(entries)
    _sparklines(drives)
    _bars(drives)
    return {
        "run": sources.run["run"],
        "started": sources.run.get("started"),
        "finished": max((record.get("finished") or "" for record in sources.records.values()), default="") or None,
        "versions": sources.run.get("versions") or {},
        "criteria": sources.run.get("criteria") or [],
        "tests": sources.run.get("tests") or {},
        "verdicts": sources.judgement["verdicts"],
        "total": len(drives),
        "collapse_passed": len(drives) > SHOWN_DRIVES and sources.judgement["verdicts"]["pass"] > 0,
        "headline": _headline(drives),
        "drives": drives,
        "fleet": report_series.fleet_charts(entries),
        "hosts": [_host(sources, name) for name in sorted({drive["host"] for drive in drives} | set(sources.hosts))],
        "damaged_lines": sources.damaged_lines,
    }


def _shorten(drives: list[Mapping]) -> None:
    """Give each drive a name for tables and charts: a path without the folder that it shares with the others."""
    paths = [drive["drive"] for drive in drives if "/" in drive["drive"]]
    shared = os.path.commonprefix(paths) if len(paths) > 1 else paths[0] if paths else ""
    folder = shared[: shared.rfind("/") + 1]
    for drive in drives:
        drive["short"] = drive["drive"][len(folder) :] if "/" in drive["drive"] else drive["drive"]


def _headline(drives: list[Mapping]) -> str:
    if not drives:
        return "No drive was asked for."
    if all(drive["verdict"] == "pass" for drive in drives):
        return "The drive passed." if len(drives) == 1 else f"All {len(drives)} drives passed."
    words = {"fail": "failed", "error": "ended in error", "invalid": "not validly measured", "not_tested": "not tested", "pass": "passed"}
    counts = [(sum(drive["verdict"] == verdict for drive in drives), words[verdict]) for verdict in VERDICTS]
    said = [f"{count} {word}" for count, word in counts if count]
    return f"Of {len(drives)} drive{'s' if len(drives) > 1 else ''}, " + ", ".join(said) + "."


def _drive(sources: Sources, index: int, judged: Mapping) -> Mapping:
    host, drive = judged["host"], judged["drive"]
    record = sources.drives.get((host, drive), {})
    identity = record.get("identity") or {}
    raw = sources.raw.get(host) or HostRaw({}, [], {}, {})
    found = _derived(sources, judged)
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
    return {(judged["host"], judged["drive"]): _derived(sources, judged) for judged in sources.judgement["drives"]}


def _derived(sources: Sources, judged: Mapping) -> Mapping:
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
        matrix=matrix(spec.get("cells") or [], measured, about),
        cells=_cells(spec.get("cells") or [], measured),
        latency=_latency_table(test["metrics"]),
        not_applicable=record.get("not_applicable") or spec.get("not_applicable") or [],
        gap_s=measured.largest_gap_s if measured else None,
        samples=conditions.samples(measured.samples) if measured else None,
        duration_s=duration_s(record.get("started"), record.get("finished")),
    )


def _limit(check: Mapping) -> Mapping:
    divisor = units.unit(check["metric"])[1]
    scaled = {name: check[name] / divisor if check[name] is not None else None for name in ("min", "max")}
    return {"metric": check["metric"], "cell": check["cell"], **scaled}


def matrix(cells: list[Mapping], measured: Measurement | None, about: Mapping) -> Mapping | None:
    """Block sizes (rows) by R/W mixes (columns) of what the test tracks, averaged over the window; None when it is no matrix.

    Returns {metric, unit, mixes: [...], rows: [{block_size, values: [{text, heat (0…1) or None}]}]}.
    """
    by_place = {(cell["block_size_bytes"], cell["read_pct"]): cell["id"] for cell in cells}
    sizes, mixes = sorted({size for size, _mix in by_place}, reverse=True), sorted({mix for _size, mix in by_place}, reverse=True)
    if not measured or len(by_place) < len(cells) or len(sizes) < 2 or len(mixes) < 2:
        return None
    tracked = (about.get("tracked") or [{}])[0].get("metric") or "iops"
    metric = next((name for name in ("bandwidth", "mean_latency_us") if tracked.endswith(name)), "iops")
    unit, divisor = units.unit(metric)
    averages = {entry["cell"]: (entry.get("metrics") or {}).get(metric) for entry in measured.averages}
    known = [value for value in averages.values() if value and value > 0]
    rows = []
    for size in sizes:
        values = [averages.get(by_place.get((size, mix), "")) for mix in mixes]
        shown = [{"text": units.rounded(v / divisor) if v else "–", "heat": _heat(v, known)} for v in values]
        rows.append({"block_size": report_series.block_size(size), "values": shown})
    return {"metric": metric, "unit": unit, "mixes": [f"{mix}/{100 - mix}" for mix in mixes], "rows": rows} if known else None


def _heat(value: float | None, known: list[float]) -> float | None:
    if not value or value < 0:
        return None
    low, high = min(known), max(known)
    return round(curves.log_share(value, low, high), 3)


def _cells(specs: list[Mapping], measured: Measurement | None) -> list[Mapping]:
    """[{cell, figures: [texts of CELL_METRICS], steady: text}] averaged over the window."""
    if not measured or len(measured.averages) < 2:
        return []
    order = {cell["id"]: position for position, cell in enumerate(specs)}
    averages = sorted(measured.averages, key=lambda entry: order.get(entry["cell"], len(order)))
    return [
        {"cell": entry["cell"], "figures": [_shown(entry.get("metrics") or {}, name) for name in CELL_METRICS], "steady": _own_steadiness(entry)}
        for entry in averages
    ]


def _own_steadiness(entry: Mapping) -> str:
    """Whether a cell was steady by itself, tracked or not: "steady", or how far it ranged and moved; "–" where the test has no rule."""
    found = entry.get("steady") or {}
    if not found or found.get("steady"):
        return "steady" if found else "–"
    ratios = [f"{name} {found[key]:.0%}" for name, key in (("range", "range_ratio"), ("slope", "slope_ratio")) if found.get(key) is not None]
    return " ".join(["not steady:", ", ".join(ratios)]) if ratios else "not steady"


def _shown(metrics: Mapping, name: str) -> str:
    value = metrics.get(name)
    return units.rounded(value / units.unit(name)[1]) if isinstance(value, (int, float)) else "–"


def _latency_table(metrics: Mapping) -> Mapping | None:
    """{labels, shares, rows: [(direction, texts in µs, then in %)]} of the tracked cell."""
    directions = [side for side in ("read", "write") if f"{side}_mean_latency_us" in metrics]
    if not directions:
        return None
    names = ["mean", *report_series.percentile_names(metrics), "max"]
    shares = report_series.share_names(metrics)
    rows = [
        (side, [_tail(metrics, f"{side}_{name}_latency_us") for name in names] + [_shown(metrics, f"{side}_{name}") for name in shares])
        for side in directions
    ]
    labels = [name if name in ("mean", "max") else name[1:].replace("_", ".") + " %" for name in names]
    return {"labels": labels, "shares": [report_series.share_label(name) for name in shares], "rows": rows}


def _tail(metrics: Mapping, name: str) -> str:
    """A latency as a text; of a percentile that cannot be known, why."""
    short = histogram.too_few(name, metrics)
    return f"too few: {short[0]:,} of {short[1]:,} I/Os" if short else _shown(metrics, name)


def _host(sources: Sources, name: str) -> Mapping:
    raw = sources.raw.get(name) or HostRaw({}, [], {}, {})
    record = sources.hosts.get(name) or {}
    outcomes = [setting.get("outcome") for setting in raw.settings]
    left = [setting for setting in raw.settings if (setting.get("restored") or {}).get("outcome") == "failed"]
    return {
        "name": name,
        "state": record.get("state") or "nothing collected",
        "message": "; ".join(part for part in (record.get("message"), raw.problem) if part),
        "facts": raw.facts,
        "settings": raw.settings,
        "changed": outcomes.count("changed"),
        "not_restored": len(left),
        "warnings": conditions.warnings(sources.run, name, None),
        "journal": f"../raw/{quote(name, safe='')}/journal.jsonl" if raw.facts else None,
    }


def _sparklines(drives: list[Mapping]) -> None:
    """Give each drive the small curve of its first test, all drawn to the same scale, so that a low one shows."""
    series = {
        drive["index"]: next((test["series"] for test in drive["tests"] if test["series"] and test["series"]["curves"]), None)
        for drive in drives
    }
    drawn = [entry for entry in series.values() if entry]
    most: dict[str, float] = {}
    for entry in drawn:
        values = [value for value in entry["curves"][0]["values"] if value is not None]
        most[entry["test"]] = max([most.get(entry["test"], 0.0), *values])
    for drive in drives:
        entry = series[drive["index"]]
        drive["sparkline"] = ""
        if entry:
            values = entry["curves"][0]["values"]
            drive["sparkline"] = curves.sparkline(range(len(values)), values, len(values) - 1, most[entry["test"]])


def _bars(drives: list[Mapping]) -> None:
    """Give each figure its share of the longest bar of the same test and metric, the limit's, and its distance from the median of the others."""
    most: dict[tuple[str, str], float] = {}
    for drive in drives:
        figure = drive["figure"]
        if figure:
            place = (figure["test"], figure["metric"])
            most[place] = max(most.get(place, 0), figure["value"], figure["min"] or 0, figure["max"] or 0)
    peers: dict[tuple[str, str, str], list[float]] = {}
    for drive in drives:
        if drive["figure"] and drive["figure"]["valid"]:
            peers.setdefault(_peers(drive), []).append(drive["figure"]["value"])
    for drive in drives:
        figure = drive["figure"]
        if figure:
            known = sorted(peers.get(_peers(drive), []))
            own = figure["value"] if figure["valid"] else None
            middle = curves.median_without(known, own) if len(known) >= report_series.FEWEST_FOR_MEDIAN else 0
            figure["off_median"] = figure["value"] / middle - 1 if middle else None
            longest = most[(figure["test"], figure["metric"])] or 1
            limit = figure["min"] if figure["min"] is not None else figure["max"]
            figure["share_pct"] = round(100 * figure["value"] / longest, 1)
            figure["limit_pct"] = round(100 * limit / longest, 1) if limit is not None else None


def _peers(drive: Mapping) -> tuple[str, str, str]:
    return drive["figure"]["test"], drive["figure"]["metric"], drive["model"] or ""


def duration_s(started: str | None, finished: str | None) -> float | None:
    """Seconds between two times of records, or None."""
    try:
        begin, end = (datetime.datetime.fromisoformat(str(text).replace("Z", "+00:00")) for text in (started, finished))
    except ValueError:
        return None
    return (end - begin).total_seconds()
