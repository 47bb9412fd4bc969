# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the page draws: the series of each test, as small as the charts allow. Pure; units are those of the axes."""

from __future__ import annotations

import typing as t

from ..common import units
from ..verdict import fob_state
from . import latencies
from .host_journal import CELL_SERIES, Measurement
from .thinning import medians_without, phases, significant

Record = dict[str, t.Any]

MEDIAN_POINTS = 300
FEWEST_FOR_MEDIAN = 3


def active_bytes(spec: Record, size_bytes: int | None) -> int | None:
    """Return the ActiveRange of a test on a drive of so many bytes; None when the size is unknown."""
    share = (size_bytes or 0) * (spec.get("active_range_pct") or 100) // 100
    return min(share, spec.get("active_range_max_bytes") or share) or None


def outline(
    record: Record, spec: Record, about: Record, measured: Measurement | None, size_bytes: int | None
) -> Record:
    """Return what every drive of a fleet keeps of a test: the tracked curves.

    `record`: its test record; `spec`: the rendered test of plan.json ({} when unknown); `about`: its entry in run.json;
      `size_bytes`: of the
    ActiveRange. Returns {test, from_fresh, saturating (nothing was filled before), median (of the others of its model,
    by `medians`), rounds, elapsed_s, multiples, curves}.
    """
    tracked = _tracked(record, measured)
    rounds = measured.rounds if measured else []
    return {
        "test": record["test"],
        "from_fresh": not spec.get("precondition") and not fob_state.why_not(record),
        "saturating": bool(spec or "precondition" in record)
        and not (spec.get("precondition") or record.get("precondition")),
        "median": None,
        "rounds": [entry["round"] for entry in rounds],
        "elapsed_s": [significant(entry["elapsed_s"]) for entry in rounds],
        "multiples": [significant((entry["bytes_written"] or 0) / size_bytes) for entry in rounds]
        if size_bytes
        else [],
        "curves": [
            _curve(cell, metric, rounds, len({cell for cell, _metric in tracked}) > 1) for cell, metric in tracked
        ],
    }


def _tracked(record: Record, measured: Measurement | None) -> list[tuple[str, str]]:
    windows = record.get("steady_state") or []
    rounds = measured.rounds if measured else []
    tracked = [(window["cell"], window["metric"]) for window in windows]
    return list(rounds[0]["tracked"]) if rounds and not tracked else tracked


def test_series(
    record: Record, spec: Record, about: Record, measured: Measurement | None, size_bytes: int | None
) -> Record:
    """Return all that is drawn of one test of one drive: its outline (arguments as there), phases, latency, windows,
    the cell whose figures are the test's, its percentiles and histogram, fill, convergence.
    """
    drawn = outline(record, spec, about, measured, size_bytes)
    tracked, numbers = _tracked(record, measured), drawn["rounds"]
    windows = record.get("steady_state") or []
    first = windows[0] if windows else {}
    places = {number: place for place, number in reversed(list(enumerate(numbers)))}
    inside = [places[number] for number in first.get("window_rounds") or [] if number in places]
    cells = measured.cells if measured else {}
    values = drawn["curves"][0]["values"] if drawn["curves"] else []
    cell = latencies.cell_of(tracked[0][0] if tracked else None, spec.get("cells") or [], measured)
    return {
        **drawn,
        "cell": cell,
        "phases": phases(values, inside if first.get("steady") else []),
        "latency": _latency(cells, tracked, numbers),
        "windows": [_window(window, spec, about) for window in windows if window.get("window_values")],
        "percentiles": latencies.percentiles(latencies.figures_of(cell, record, measured)),
        "histogram": latencies.bars(measured.histograms.get(cell, {}) if measured else {}),
        "fill": _fill(measured.fill if measured else None),
        "convergence": _convergence(cells, tracked, spec, numbers),
    }


def _curve(cell: str, metric: str, rounds: list[Record], with_cell: bool) -> Record:
    unit, divisor = units.unit(metric)
    values = [_scaled(entry["tracked"].get((cell, metric)), divisor) for entry in rounds]
    return {
        "label": f"{cell} {metric}" if with_cell else metric,
        "cell": cell,
        "metric": metric,
        "unit": unit,
        "values": values,
    }


def _scaled(value: t.Any, divisor: float) -> float | int | None:
    return significant(value / divisor) if isinstance(value, (int, float)) else None


def _latency(cells: dict[str, dict[int, Record]], tracked: list[tuple[str, str]], rounds: list[int]) -> Record | None:
    """Latency over the rounds, of a test with a single cell: of many cells it would mix unlike things."""
    if len(cells) != 1 or not tracked:
        return None
    figures = next(iter(cells.values()))
    names = [name for name in CELL_SERIES if name.endswith("_us")]
    return {name: [significant(figures.get(number, {}).get(name), 4) for number in rounds] for name in names}


def _window(window: Record, spec: Record, about: Record) -> Record:
    unit, divisor = units.unit(window["metric"])
    rule = spec.get("steady_state") or about.get("steady_state") or {}
    return {
        "cell": window["cell"],
        "metric": window["metric"],
        "unit": unit,
        "steady": bool(window.get("steady")),
        "rounds": window.get("window_rounds") or list(range(1, len(window["window_values"]) + 1)),
        "values": [_scaled(value, divisor) for value in window["window_values"]],
        "average": _scaled(window.get("average"), divisor),
        "slope": _scaled(window.get("slope"), divisor),
        "fitted_end": _scaled(window.get("fitted_end"), divisor),
        "range_ratio": significant(window.get("range_ratio"), 4),
        "slope_ratio": significant(window.get("slope_ratio"), 4),
        "range_limit": rule.get("range_limit"),
        "slope_limit": rule.get("slope_limit"),
    }


def _fill(curve: Record | None) -> Record | None:
    """Bandwidth over what a fill had written: {written_gb, values (MB/s)}."""
    if not curve:
        return None
    rates = curve["bandwidth_bytes_per_s"]
    return {
        "written_gb": [significant((index + 1) * curve["step_bytes"] / 1e9) for index in range(len(rates))],
        "values": [_scaled(rate, 1e6) for rate in rates],
    }


def _convergence(
    cells: dict[str, dict[int, Record]], tracked: list[tuple[str, str]], spec: Record, rounds: list[int]
) -> Record | None:
    """IOPS over the rounds for every block size at the tracked cell's R/W mix (PTS: steady-state convergence plot)."""
    specs = {cell["id"]: cell for cell in spec.get("cells") or []}
    if len(cells) < 2 or not tracked or tracked[0][0] not in specs:
        return None
    mix = specs[tracked[0][0]]["read_pct"]
    alike = [
        specs[name]
        for name in cells
        if name in specs and specs[name]["read_pct"] == mix and not specs[name].get("jobs")
    ]
    if len(alike) < 2:
        return None
    lines = [
        {
            "label": block_size(cell["block_size_bytes"]),
            "tracked": cell["id"] == tracked[0][0],
            "values": [significant(cells[cell["id"]].get(number, {}).get("iops")) for number in rounds],
        }
        for cell in sorted(alike, key=lambda cell: -cell["block_size_bytes"])
    ]
    return {"mix": f"{mix}/{100 - mix}", "lines": lines}


def block_size(size_bytes: int) -> str:
    """As the PTS writes it: 0.5 KiB, 4 KiB, 1024 KiB."""
    return f"{size_bytes / 1024:g} KiB"


def medians(entries: list[Record]) -> None:
    """Give each drive's series, of three drives of a model at least, the median curve of the others: {count, elapsed_s,
    multiples, rounds, values}.

    A drive that counted in its own median would hide in it what sets it apart.
    """
    groups: dict[tuple[str, str], list[Record]] = {}
    for entry in entries:
        if entry["series"]["curves"] and entry["series"]["multiples"]:
            groups.setdefault((entry["series"]["test"], entry["model"]), []).append(entry["series"])
    for members in groups.values():
        if len(members) < FEWEST_FOR_MEDIAN:
            continue
        curves = [(series["elapsed_s"], series["multiples"], series["curves"][0]["values"]) for series in members]
        for series, (indexes, columns) in zip(members, medians_without(curves, MEDIAN_POINTS)):
            short = [[significant(value) for value in column] for column in columns]
            series["median"] = {
                "count": len(members) - 1,
                "rounds": [index + 1 for index in indexes],
                **dict(zip(("elapsed_s", "multiples", "values"), short)),
            }
