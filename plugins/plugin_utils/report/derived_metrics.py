# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What follows from the figures of several cells or tests: sweet spots, demand curves, the change of a repeated
stimulus, the time to precondition (Micron's brief, Determining the Precondition Time). Pure.
"""

from __future__ import annotations

import typing as t

from ...module_utils.measure import io_pattern
from ...module_utils.records import base
from ...module_utils.records.planned_cell import PlannedCell, PointOfSweep
from ..common import units
from ..verdict.verdicts import COUNTING
from . import demand_intensity, latencies
from .chart_series import block_size

PRECONDITION_FILLS = 2
PRECONDITION_BLOCK_BYTES = 128 << 10
# Of a cell that does something else besides writing the drive in sequence.
_OTHERWISE = ("jobs", "mix", "range", "rate_iops", "burst_s", "batch", "sync", "fdatasync", "point")
Mapping = t.Mapping[str, t.Any]

FEWEST_DEPTHS = 3
_SAME = (
    "access",
    "block_size_bytes",
    "read_pct",
    "threads",
    "rate_iops",
    "batch",
    "ramp_s",
    "ioengine",
    "burst_s",
    "mix",
    "range",
    "sync",
    "fdatasync",
)


def precondition_time(
    spec: Mapping, steady: bool, bandwidth: float | None, size_bytes: int | None
) -> dict[str, t.Any] | None:
    """{bandwidth_bytes_per_s, bytes, seconds}: 2 x the capacity at the rate of a test that wrote 128 KiB in sequence,
    over the whole drive and nothing else, until steady. None for any other test.

    spec: the rendered test. bandwidth: its write bandwidth over the window.
    """
    cells = spec.get("cells") or []
    if len(cells) != 1 or not steady or not bandwidth or bandwidth <= 0 or not size_bytes:
        return None
    cell = cells[0]
    wanted = {"access": "sequential", "block_size_bytes": PRECONDITION_BLOCK_BYTES, "read_pct": 0}
    if any(cell.get(key) != value for key, value in wanted.items()) or any(cell.get(key) for key in _OTHERWISE):
        return None
    if spec.get("active_range_pct") != 100 or spec.get("active_range_max_bytes") or spec.get("filesystem"):
        return None
    written = PRECONDITION_FILLS * size_bytes
    return {"bandwidth_bytes_per_s": bandwidth, "bytes": written, "seconds": round(written / bandwidth, 1)}


def precondition_time_text(found: Mapping) -> str:
    """63 min: 1.92 TB at 520 MB/s."""
    rate = units.show("bandwidth", found["bandwidth_bytes_per_s"])
    return f"{found['seconds'] / 60:,.0f} min: {units.data_size(found['bytes'])} at {rate}"


def sweeps(cells: t.Sequence[Mapping], averages: t.Sequence[Mapping]) -> list[dict[str, t.Any]]:
    """Sweeps over the queue depth: cells alike but for it, at least three depths, all with figures.

    cells: of a rendered test. averages: [{cell, metrics}] over the rounds that count. Returns [{access,
      block_size_bytes, read_pct, threads, points: [{cell, queue_depth, asked_outstanding, observed_outstanding, iops,
      mean_latency_us, within_1ms_pct … where it is known}] by depth, sweet_spot: one of the points and its share of the
      most IOPS}]. observed_outstanding is IOPS x mean latency (Little's law).
    """
    figures = {entry["cell"]: entry.get("metrics") or {} for entry in averages}
    groups: dict[tuple[t.Any, ...], list[Mapping]] = {}
    for cell in cells:
        if (
            cell.get("lead")
            or cell.get("jobs")
            or cell.get("point")
            or cell.get("per_cpu")
            or cell.get("auto_threads")
            or not all(cell.get(key) for key in ("access", "threads", "queue_depth"))
        ):
            continue  # a plan that came back from a host may lack them
        groups.setdefault(tuple(str(cell.get(key)) for key in _SAME), []).append(cell)
    found = []
    for group in groups.values():
        points = [
            _point(cell, figures.get(cell["id"], {})) for cell in sorted(group, key=lambda cell: cell["queue_depth"])
        ]
        if len(points) >= FEWEST_DEPTHS and all(points):
            first = group[0]
            about = {key: first[key] for key in ("access", "block_size_bytes", "read_pct", "threads")}
            found.append({**about, "points": points, "sweet_spot": sweet_spot(t.cast(list[Mapping], points))})
    return found


def _point(cell: Mapping, metrics: Mapping) -> dict[str, t.Any] | None:
    iops, latency_us = metrics.get("iops"), metrics.get("mean_latency_us")
    if not iops or not latency_us or iops <= 0 or latency_us <= 0:
        return None
    return {
        "cell": cell["id"],
        "queue_depth": cell["queue_depth"],
        "asked_outstanding": cell["queue_depth"] * cell["threads"],
        "observed_outstanding": round(iops * latency_us / 1e6, 3),
        "iops": iops,
        "mean_latency_us": latency_us,
        **latencies.shares(metrics),
    }


def sweet_spot(points: t.Sequence[Mapping]) -> dict[str, t.Any]:
    """Return the point of the lowest depth that reaches SWEET_SHARE of the most IOPS, with `share`, its part of them.
    points: by depth, not empty.
    """
    most = max(point["iops"] for point in points)
    spot = next(point for point in points if point["iops"] >= demand_intensity.SWEET_SHARE * most)
    return {**spot, "share": spot["iops"] / most}


def sweep_text(sweep: Mapping) -> str:
    """Return the sweet spot in a line: depth 8: 80,433 IOPS at 49 µs, 100 % of the most; at depth 256 it is …"""
    spot, last = sweep["sweet_spot"], sweep["points"][-1]
    text = (
        f"depth {spot['queue_depth']}: {units.show('iops', spot['iops'])} at "
        f"{units.show('mean_latency_us', spot['mean_latency_us'])}"
    )
    text += f", {100 * spot['share']:.1f} % of the most IOPS of the sweep"
    if last["queue_depth"] == spot["queue_depth"]:
        return f"{text}; no greater depth was measured, so it may lie beyond"
    return (
        f"{text}; at depth {last['queue_depth']} {units.show('iops', last['iops'])} at "
        f"{units.show('mean_latency_us', last['mean_latency_us'])}"
    )


def repeated(name: str, first: Mapping | None, test: Mapping | None) -> dict[str, t.Any] | None:
    """Return how a repeated stimulus differs from its first time: {first_test, metric, first, value, change_pct}; None
    without trusted figures of both.

    name: of the first test. first, test: {verdict, metric, value}, as `figure` returns them.
    """
    if not first or not test or first["metric"] != test["metric"] or not first["value"] or test["value"] is None:
        return None
    change_pct = 100.0 * (test["value"] - first["value"]) / first["value"]
    return {
        "first_test": name,
        "metric": test["metric"],
        "first": first["value"],
        "value": test["value"],
        "change_pct": round(change_pct, 2),
    }


def figure(test: Mapping, record: Mapping, metric: str | None = None) -> dict[str, t.Any] | None:
    """Return the figure that stands for a test, {metric, value}: what it tracks, averaged over the window, else its
    IOPS; None where it isn't trusted.

    metric: of a test that tracks nothing, this one in place of IOPS, if it has it.
    """
    if test["verdict"] not in COUNTING:
        return None
    windows = record.get("steady_state") or []
    if windows:
        return {"metric": windows[0]["metric"], "value": windows[0].get("average")}
    metrics = test.get("metrics") or {}
    name = metric if metric in metrics else "iops"
    return {"metric": name, "value": metrics[name]} if metrics.get(name) is not None else None


def repeated_text(found: Mapping) -> str:
    """Return the change in a line: 12.3 % lower than in brief-second-1-sequential (4,160 IOPS → 3,648 IOPS); of an
    array, how many times a drive's the figure is, and which share of as many times as it has drives.
    """
    change, drives = found["change_pct"], found.get("drives")
    if drives:
        times = found["value"] / found["first"]
        first, value = (units.show(found["metric"], found[key]) for key in ("first", "value"))
        return (
            f"{drives} drives as one give {times:.2f} times what this drive gives in {found['first_test']} ({first} → "
            f"{value}), {100 * times / drives:.0f} % of {drives} times"
        )
    how = "the same as" if change == 0 else f"{abs(change):.1f} % {'lower' if change < 0 else 'higher'} than"
    return (
        f"{how} in {found['first_test']} ({units.show(found['metric'], found['first'])} → "
        f"{units.show(found['metric'], found['value'])})"
    )


def changes(name: str, found: t.Mapping[str, Mapping]) -> Mapping | None:
    """Return the tests that repeat the stimulus of a test, as bars (label, change in per cent); None for fewer than
    two. found: of `of_drive`.
    """
    told = {test: parts["repeated"] for test, parts in found.items() if "repeated" in parts}
    told = {test: change for test, change in told.items() if change["first_test"] == name}
    if len(told) < 2:
        return None
    first = next(iter(told.values()))
    return {
        "x_title": f"0: {units.show(first['metric'], first['first'])}, of {name}",
        "y_title": "Change (%)",
        "bars": [(test.removeprefix(f"{name}-"), change["change_pct"]) for test, change in told.items()],
    }


def derived_view(found: Mapping) -> Mapping:
    """Return what the page shows of it: {sweeps: [{title, spot, shares, rows, plot}], repeated, fill_time: text or
    None, of_drives: whether `repeated` is of an array, points: [text]}.
    """
    shown = [demand_intensity.curve_view(found["demand"])] if found.get("demand") else []
    for sweep in [] if shown else found.get("sweeps") or []:
        mix = f"{sweep['read_pct']}/{100 - sweep['read_pct']}"
        title = f"{sweep['access']} {block_size(sweep['block_size_bytes'])}, R/W {mix}, over the queue depth"
        plot = demand_intensity.plot(sweep["points"], sweep["threads"])
        told = demand_intensity.table(sweep["points"], sweep["sweet_spot"])
        shown.append({"title": title, "spot": sweep_text(sweep), **told, "plot": plot})
    points = [demand_intensity.point_text(point) for point in found.get("points") or []]
    return {
        "sweeps": shown,
        "repeated": repeated_text(found["repeated"]) if found.get("repeated") else None,
        "of_drives": bool((found.get("repeated") or {}).get("drives")),
        "fill_time": precondition_time_text(found["fill_time"]) if found.get("fill_time") else None,
        "points": points,
    }


def _points(
    cells: t.Sequence[Mapping], specs: t.Mapping[str, Mapping], averages: t.Mapping[str, t.Sequence[Mapping]]
) -> list[dict[str, t.Any]]:
    """Return which cell of its sweep each point of a test was: [{cell, sweep, of, threads, queue_depth}]."""
    found = []
    for cell in cells:
        asked = cell.get("point")
        sweep = asked.get("test") if isinstance(asked, dict) else None
        if (
            isinstance(asked, dict)
            and isinstance(sweep, str)
            and sweep in specs
            and asked.get("take") in demand_intensity.TAKES
        ):
            # A plan that came back from a host may lack them.
            known = [
                item
                for item in (specs[sweep] or {}).get("cells") or []
                if item.get("threads") and item.get("queue_depth")
            ]
            point = base.parse(PointOfSweep, asked)
            metrics = {entry["cell"]: entry.get("metrics") or {} for entry in averages.get(sweep) or []}
            one = io_pattern.chosen(point, [base.parse(PlannedCell, item) for item in known], metrics)
            found += (
                [
                    {
                        "cell": cell["id"],
                        "sweep": sweep,
                        "of": one.cell,
                        "threads": one.threads,
                        "queue_depth": one.queue_depth,
                    }
                ]
                if one
                else []
            )
    return found


def of_drive(
    judged: Mapping,
    records: t.Mapping[str, Mapping],
    specs: t.Mapping[str, Mapping],
    abouts: t.Mapping[str, Mapping],
    size_bytes: int | None = None,
) -> dict[str, dict[str, t.Any]]:
    """{test: {sweeps: […], demand: …, points: […], repeated: …, fill_time: …}} of one drive, each only where there is
    something; no test without either.

    judged: the drive of a judgement. records: its test records with `cells`, specs: its rendered tests, abouts:
      run.json's tests, all by name. size_bytes: of the drive.
    """
    tests = {test["test"]: test for test in judged["tests"]}
    averages = {name: (record or {}).get("cells") or [] for name, record in records.items()}
    found: dict[str, dict[str, t.Any]] = {}
    for name, test in tests.items():
        if test["verdict"] not in COUNTING:
            continue
        cells = (specs.get(name) or {}).get("cells") or []
        curves = sweeps(cells, averages.get(name) or [])
        curve = demand_intensity.curve(curves)
        points = _points(cells, specs, averages)
        before = (abouts.get(name) or {}).get("repeats")
        one = figure(tests[before], records.get(before) or {}) if before is not None and before in tests else None
        change = (
            repeated(before, one, figure(test, records.get(name) or {}, (one or {}).get("metric"))) if before else None
        )
        steady = bool((records.get(name) or {}).get("steady_state"))
        rate = (test.get("metrics") or {}).get("write_bandwidth")
        array = (records.get(name) or {}).get("array") or {}
        filling = precondition_time(specs.get(name) or {}, steady, rate, array.get("size_bytes") or size_bytes)
        if change and array.get("members"):
            change["drives"] = len(array["members"])
        every = {"sweeps": curves, "demand": curve, "points": points, "repeated": change, "fill_time": filling}
        parts = {key: value for key, value in every.items() if value}
        if parts:
            found[name] = parts
    return found
