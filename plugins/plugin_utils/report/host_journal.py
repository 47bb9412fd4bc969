# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a host left in raw/<host>/ (journal.jsonl, plan.json), gathered for judging and drawing."""

from __future__ import annotations

import collections
import os
import typing as t

from ...module_utils.records import base
from ...module_utils.records.plan import CollectedPlan, PlannedTest, Validity
from ...module_utils.records.results import Brief
from ...module_utils.run.folder import JOURNAL, PLAN
from ...module_utils.run.reducer import USUAL, Budget, JournalAttempt
from ..common import units
from ..run_folder import host_brief, remeasurement
from ..validation import journal
from ..verdict import comparability
from . import measured_conditions

Record = dict[str, t.Any]
# From so many settings on that went alike, one line stands for all of them.
MANY_ALIKE = 5
# At tests of drives. Two dozen drives with all tests, each begun several times, are a tenth of it.
MOST_ATTEMPTS = 5000
# Of what the kernel logged while a test was measured: the first lines, and no more of each.
MOST_KERNEL_LINES, LONGEST_KERNEL_LINE = 5, 200
# Of each cell of each round, what the charts over time show.
CELL_SERIES = ("iops", "mean_latency_us", "p99_9_latency_us", "max_latency_us")

Mapping = t.Mapping[str, t.Any]


class Measurement:
    """One attempt at one test of one drive: series over rounds, and the averages of the window.

    test, budget, validity: as JournalAttempt has them. `rounds`: {round, elapsed_s, bytes_written, tracked: {(cell,
    metric): value}} in order. `cells`: {cell: {round: {one figure for each of CELL_SERIES}}}. `averages`: [{cell,
    metrics}] of its result. `largest_gap_s`: longest pause between two cells. `samples`: of its sample records.
    `histograms`: {cell: {read, write: {ns: I/Os}}} over the window. `fill`: the fill_curve record. `link`: as the first
    sample that saw one. `kernel_lines`: the first that the kernel logged; `more_kernel_lines`: how many followed.
    """

    def __init__(
        self, test: PlannedTest | None = None, budget: Budget | None = None, validity: Validity = USUAL
    ) -> None:
        self._journal = JournalAttempt(test, budget, validity=validity)
        self.rounds: list[Record] = []
        self.cells: dict[str, dict[int, Record]] = {}
        self.averages: list[Record] = []
        self.largest_gap_s: float | None = None
        self.samples = measured_conditions.Samples()
        self.histograms: dict[str, dict[str, dict[int, int]]] = {}
        self.fill: Record | None = None
        self.link: str | None = None
        self.kernel_lines: list[str] = []
        self.more_kernel_lines = 0

    def take(self, event: Record) -> None:
        """Add one journal record of this attempt."""
        self._journal.take(event)
        if event["event"] == "round":
            self.rounds.append(
                {
                    "round": event["round"],
                    "elapsed_s": event["elapsed_s"],
                    "bytes_written": self._journal.cells_bytes,
                    "tracked": self._journal.tracked(),
                }
            )
        elif event["event"] == "cell":
            self.cells.setdefault(event["cell"], {})[event["round"]] = cell_figures(
                event.get("read"), event.get("write")
            )
            if event.get("gap_s") is not None:
                self.largest_gap_s = max(self.largest_gap_s or 0.0, event["gap_s"])
        elif event["event"] == "sample":
            self.samples.take(event)
            self.link = self.link or comparability.link_of_sample(event)
        elif event["event"] == "histogram":
            self.histograms.setdefault(event["cell"], {})[event["direction"]] = {
                int(value): count for value, count in event["bins"].items()
            }
        elif event["event"] == "fill_curve":
            self.fill = event
        elif event["event"] == "kernel_event":
            if len(self.kernel_lines) < MOST_KERNEL_LINES:
                self.kernel_lines.append(f"[{event['boot_s']:.1f}] {event['message'][:LONGEST_KERNEL_LINE]}")
            else:
                self.more_kernel_lines += 1
        elif event["event"] == "test_finished":
            self.averages = base.to_json(self._journal.result().cells)


class HostRaw(t.NamedTuple):
    """`tests`: {drive: {test: rendered test of plan.json}}; `settings`: [{name, path, before, wanted, effective,
    outcome, restored}]; `problem`: what was left out.
    """

    facts: Record
    settings: list[Record]
    tests: dict[str, dict[str, Record]]
    measurements: dict[tuple[str, str, int], Measurement]
    problem: str = ""


def folder_of(run_dir: str, host: str) -> str | None:
    """raw/<host>; None for a name that would lead out of the run's folder."""
    if host in ("", ".", "..") or os.sep in host or "\0" in host:
        return None
    return os.path.join(run_dir, "raw", host)


def read(run_dir: str, host: str) -> HostRaw:
    """Return all of one host; what is missing is empty. What was measured again are further attempts
    (run_folder/remeasurement.py).
    """
    first = _read(run_dir, host)
    then = _read(remeasurement.folder_of(run_dir), host)
    attempts = collections.Counter[tuple[str, str]]()
    for drive, test, attempt in first.measurements:
        attempts[drive, test] = max(attempts[drive, test], attempt)
    measurements = dict(first.measurements)
    for (drive, test, attempt), measured in then.measurements.items():
        if (drive, test) in attempts:
            measurements[drive, test, attempts[drive, test] + attempt] = measured
    problem = "; ".join(filter(None, (first.problem, then.problem)))
    return first._replace(measurements=measurements, problem=problem)


def _read(run_dir: str, host: str) -> HostRaw:
    folder = folder_of(run_dir, host)
    if folder is None:
        return HostRaw({}, [], {}, {})
    facts: Record = {}
    calibrated: Record = {}
    settings: dict[tuple[t.Any, t.Any], Record] = {}
    measurements: dict[tuple[str, str, int], Measurement] = {}
    problems, budget = journal.Problems(), Budget()
    plan = journal.plan(os.path.join(folder, PLAN), problems)
    tests, validity = tests_of(plan), plan.validity if plan else USUAL
    for event in journal.events(os.path.join(folder, JOURNAL), problems):
        kind = event["event"]
        if kind == "job_started":
            facts = {name: event.get(name) for name in ("engine_version", "fio_version", "boot_id")}
        elif kind == "snapshot":
            facts = {**facts, **_host_facts(host_brief.brief(event))}
        elif kind == "calibration":
            calibrated = {"drives_at_a_time": "; ".join(parallelism_lines(event))}
        elif kind in ("tuned", "restored"):
            _take_settings(settings, kind, event.get("settings") or [])
        elif kind in journal.OF_TESTS:
            place = (event["drive"], event["test"], event["attempt"])
            if place not in measurements and len(measurements) >= MOST_ATTEMPTS:
                problems.add(f"attempt {place[2]} at {place[1]} of {place[0]}", "it has too many attempts")
                continue
            if place not in measurements:
                measurements[place] = Measurement(tests.get(place[0], {}).get(place[1]), budget, validity)
            measurements[place].take(event)
    return HostRaw(
        {**facts, **calibrated},
        _grouped(list(settings.values())),
        base.sparse_json(tests),
        dict(measurements),
        problems.text(),
    )


def _host_facts(short: Brief) -> Record:
    """Return what the host was, as texts by name."""
    tools = ", ".join(f"{name} {version}" for name, version in short.tools.items() if version and name != "fio")
    memory = units.rounded(short.memory_bytes / 2**30) + " GiB" if short.memory_bytes else None
    listed = {name: value for name, value in vars(short).items() if isinstance(value, dict)}
    return {
        **{name: value for name, value in vars(short).items() if name not in ("memory_bytes", *listed)},
        "memory": memory,
        "tools": tools,
        **{
            name: ", ".join(f"{key}: {text}" for key, text in listed[name].items())
            for name in ("mitigations", "bios_attributes")
        },
    }


def _grouped(settings: list[Record]) -> list[Record]:
    """Return the settings, with those of many CPUs, drives or interrupts that went alike as one."""
    groups: dict[tuple[t.Any, ...], list[Record]] = {}
    for item in settings:
        value = None if item.get("outcome") == "managed" else item.get("effective")
        after = (item.get("restored") or {}).get("outcome")
        groups.setdefault(
            (item.get("name"), item.get("before"), item.get("wanted"), value, item.get("outcome"), after), []
        ).append(item)
    return [
        shown
        for alike in groups.values()
        for shown in (
            alike
            if len(alike) < MANY_ALIKE
            else [{**alike[0], "path": f"{alike[0].get('path')} and {len(alike) - 1} more"}]
        )
    ]


def tests_of(plan: CollectedPlan | None) -> dict[str, dict[str, PlannedTest]]:
    """Return the tests of a plan, by drive and name."""
    return {entry.drive: {test.name: test for test in entry.tests} for entry in plan.drives} if plan else {}


def _take_settings(settings: dict[tuple[t.Any, t.Any], Record], kind: str, items: list[Record]) -> None:
    for item in items:
        entry = settings.setdefault((item.get("name"), item.get("path")), {"restored": None})
        if kind == "restored":
            entry["restored"] = dict(item)
            entry.setdefault("name", item.get("name"))
            entry.setdefault("path", item.get("path"))
        else:
            # A job that was started again sees the tuned value as "before": the first record knows better.
            entry.update({name: value for name, value in item.items() if name != "before" or "before" not in entry})


def cell_figures(read_side: Record | None, write_side: Record | None) -> Record:
    """One figure for each of CELL_SERIES over both directions; the percentile is the slower direction's."""
    sides = [side for side in (read_side, write_side) if side]
    iops = sum(side.get("iops") or 0 for side in sides)
    if not sides or not iops:
        return dict.fromkeys(CELL_SERIES)
    tails = [tail for tail in ((side.get("percentiles_us") or {}).get("99.9") for side in sides) if tail is not None]
    return {
        "iops": iops,
        "mean_latency_us": sum((side.get("mean_latency_us") or 0) * side.get("iops", 0) for side in sides) / iops,
        "p99_9_latency_us": max(tails) if tails else None,
        "max_latency_us": max(side.get("max_latency_us") or 0 for side in sides),
    }


def parallelism_lines(told: Mapping) -> list[str]:
    """Return the number and why, then each number that was tried. told: the event `calibration`."""
    return [f"{told['parallel_drives']}: {told['why']}", *map(_trial_line, told["trials"])]


def _trial_line(trial: Mapping) -> str:
    if trial["share"] is None:
        return f"with {trial['number']} together, {trial['drive']} has too few figures for {trial['cell']}"
    least = f"{trial['drive']} kept {100 * trial['share']:.1f} % in {trial['cell']}"
    return f"with {trial['number']} together, {least}"
