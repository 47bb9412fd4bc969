# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a test can give the figures that criteria are on: a percentile takes I/Os, and not every drive counts how
often it was throttled. What is sure refuses, what depends on the drive warns. Pure.
"""

from __future__ import annotations

import re
import typing as t

from ...module_utils.measure import hidden_variation, histogram, io_pattern
from ...module_utils.records.criterion import Criterion
from ...module_utils.records.plan import Plan, PlannedDrive, PlannedTest
from ...module_utils.records.planned_cell import PlannedCell
from ...module_utils.run.criteria import is_for, is_of_model
from ..common import units
from ..run_folder.run_record import RunWarning
from ..verdict import judged_criteria
from . import criteria_checks
from .findings import Finding

CHECK = "criterion_figure"
_PERCENTILE = re.compile(r"(?P<side>read|write)_p(?P<percent>[0-9]+(?:_[0-9]+)?)_latency_us")
# What drives do for each I/O in flight, and at most; good ones, so that what is too little for these is so for most.
# A 4 KiB read takes them 50 µs of NVMe and 80 µs of SATA or SAS, a write that a cache takes 15 and 40 µs.
_IOPS_PER_IO = {"nvme": {"read": 20_000, "write": 66_000}, "other": {"read": 12_500, "write": 25_000}}
_MOST_IOPS = {"nvme": 1_500_000, "other": 100_000}
_SERIAL = ("sata", "sas")
_REMEDY = "raise runtime_s, or ask for a lower percentile"


class _Shortfall(t.NamedTuple):
    """A cell that gives too few I/Os. is_exact: its rate limit says so."""

    text: str
    is_exact: bool


def findings(criteria: t.Any, plans: t.Mapping[str, Plan]) -> list[Finding]:
    """Return the percentiles for which a cell with a rate limit can't give I/Os enough, by host."""
    return [
        Finding(f"ssd_criteria: {each.text}; {_REMEDY}", host)
        for host, found in _by_host(criteria, plans).items()
        for each in found
        if each.is_exact
    ]


def warnings(criteria: t.Any, plans: t.Mapping[str, Plan]) -> list[RunWarning]:
    """Return those for which a good drive would hardly give enough, and criteria on throttling that most of the drives
    do not count.
    """
    found = [
        RunWarning(host, CHECK, None, "warning", each.text, _REMEDY)
        for host, shortfalls in _by_host(criteria, plans).items()
        for each in shortfalls
        if not each.is_exact
    ]
    return found + [
        RunWarning(host, CHECK, drive.drive, "warning", _uncounted(criterion), "take out the criterion for this model")
        for host, plan in plans.items()
        for drive in plan.drives
        for criterion in criteria_checks.usable(criteria)
        if criterion.metric == hidden_variation.THROTTLED
        and drive.expected.transport in _SERIAL
        and is_of_model(criterion, drive.expected.model or "")
        and any(is_for(criterion, test.name) and test.cells for test in drive.tests)
    ]


def _uncounted(criterion: Criterion) -> str:
    return (
        f"{judged_criteria.describe(criterion)}: most SATA and SAS drives do not count how often they were throttled; "
        "of one that does not, the figure is unknown, and the drive ends invalid"
    )


def _by_host(criteria: t.Any, plans: t.Mapping[str, Plan]) -> dict[str, list[_Shortfall]]:
    """Return what a host's drives lack, each once."""
    return {
        host: list(
            dict.fromkeys(
                each
                for drive in plan.drives
                for criterion in criteria_checks.usable(criteria)
                for test in drive.tests
                for each in _of_test(criterion, test, drive)
            )
        )
        for host, plan in plans.items()
    }


def _of_test(criterion: Criterion, test: PlannedTest, drive: PlannedDrive) -> list[_Shortfall]:
    asked = _PERCENTILE.fullmatch(criterion.metric)
    if not asked or not is_for(criterion, test.name) or not is_of_model(criterion, drive.expected.model or ""):
        return []
    cell, rounds = _cell_of(criterion, test), _counted_rounds(test)
    percent = asked["percent"].replace("_", ".")
    if cell is None or not rounds or float(percent) >= 100:
        return []
    share = (cell.read_pct if asked["side"] == "read" else 100 - cell.read_pct) / 100
    rate = _rate_iops(cell, asked["side"], drive) * share
    there, needed = rate * cell.runtime_s * rounds, histogram.needed_ios(percent)
    if not rate or there >= needed:
        return []
    at = f"{rate:,.0f} IOPS, its rate limit," if cell.rate_iops else f"{rate:,.0f} IOPS, as a good drive does,"
    text = (
        f"{judged_criteria.describe(criterion)}: {test.name} can hardly give it: at {at} cell {cell.id} makes "
        f"{there:,.0f} {asked['side']}s in the {rounds} rounds that count, and {needed:,} are needed, which would take "
        f"{units.plan_duration(needed / rate)}"
    )
    exact = text.replace("can hardly give it", "cannot give it")
    return [_Shortfall(exact if cell.rate_iops else text, bool(cell.rate_iops))]


def _cell_of(criterion: Criterion, test: PlannedTest) -> PlannedCell | None:
    """Return the cell that the figure is of; None of several streams, whose parts nobody knows before."""
    tracked = test.steady_state.tracked[0].cell if test.steady_state else None
    name = criterion.cell or tracked or next((cell.id for cell in test.cells if not cell.lead), None)
    return next((cell for cell in test.cells if cell.id == name and not cell.jobs), None)


def _counted_rounds(test: PlannedTest) -> int:
    """Return from how many rounds the latencies come at least; 0: nobody knows."""
    rule = test.steady_state
    if rule:
        return (rule.window - 1) * rule.sample_every + 1
    return test.last_rounds or test.rounds.max or 0


def _rate_iops(cell: PlannedCell, side: str, drive: PlannedDrive) -> float:
    """Return the rate of all its I/Os: its limit, or what a good drive does at most."""
    if cell.rate_iops:
        return cell.rate_iops
    kind = "nvme" if drive.expected.transport == "nvme" else "other"
    return min(_MOST_IOPS[kind], io_pattern.asked_in_flight(cell) * _IOPS_PER_IO[kind][side])
