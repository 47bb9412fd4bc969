# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether criteria can decide anything in a run, told before hours are spent. Pure; the verdicts themselves are
judge's.
"""

from __future__ import annotations

import re
import typing as t
from dataclasses import replace

from ...module_utils.measure import fio_result, health_metrics, hidden_variation, histogram, io_pattern
from ...module_utils.measure.rounds import FITTED_END, is_maximum
from ...module_utils.records.criterion import Criterion
from ...module_utils.records.plan import Plan, PlannedDrive, PlannedTest
from ...module_utils.records.planned_cell import AnyLoad, PlannedCell
from ...module_utils.run.criteria import is_for, is_of_model
from ..common.schema import suggestion
from ..peers import statistics_requirements
from ..verdict import judged_criteria
from .findings import Finding, HostAnswer, host_list

# What fio_result.metrics and histogram.metrics make; the shares of I/O within given times are of each test's own
# (latency_targets_us).
PERCENTILES = tuple("p" + percent.replace(".", "_") for percent in histogram.PERCENTILES)
WITHIN = re.compile(r"(?:(?:read|write|trim|sync)_)?(within_[1-9][0-9]{0,7}(?:us|ms)_pct)")
OF_BOTH = ("iops", "bandwidth", "mean_latency_us", "max_latency_us")
OF_ONE = (*OF_BOTH, "ios", *(f"{percentile}_latency_us" for percentile in PERCENTILES))
MEASURED = (
    *(f"{side}_{name}" for side in fio_result.SIDES for name in OF_ONE if (side, name) != ("sync", "bandwidth")),
    *OF_BOTH,
)
# What a test may track (test.schema.json): of that also where the window's fitted line ends.
TRACKABLE = tuple(
    f"{direction}{name}" for direction in ("read_", "write_", "") for name in ("iops", "bandwidth", "mean_latency_us")
)
METRICS = (
    *MEASURED,
    *(metric + FITTED_END for metric in TRACKABLE),
    *hidden_variation.LIMITS,
    *health_metrics.TABLE,
)
SHOWN_METRICS = (
    f"{', '.join(OF_BOTH)}; with the prefix read_, write_, trim_ or sync_ (flushes) also ios and p50_latency_us to "
    f"p99_9999_latency_us; for a tracked metric its name with {FITTED_END}; for a test with latency_targets_us shares "
    f"such as read_within_1ms_pct; {', '.join((*hidden_variation.LIMITS, *health_metrics.TABLE))}"
)


def usable(criteria: t.Any) -> list[Criterion]:
    """Return the well-formed ones: findings.settings tells of the others."""
    return judged_criteria.sound(criteria) if isinstance(criteria, list) else []


def findings(
    criteria: t.Any, views: t.Sequence[HostAnswer], tests: t.Mapping[str, t.Iterable[str]], plans: t.Mapping[str, Plan]
) -> list[Finding]:
    """Criteria that no figure of the run can be held against.

    tests: names of each host's tests, as far as they are right: {host: [name]}. plans: of each host, with its drives
      seen.
    """
    found = _lacking(criteria)
    for criterion in usable(criteria):
        wrong = _metric(criterion) or _names(criterion, tests) or _model(criterion, usable(criteria), views)
        found += wrong or [
            finding for host, plan in plans.items() for finding in _on_host(criterion, host, plan.drives)
        ]
    return found


def _lacking(criteria: t.Any) -> list[Finding]:
    """A relative criterion is judged with packages that the controller may lack: better told before hours are spent."""
    problem = statistics_requirements.missing_requirements()
    return [
        _finding(criterion, problem)
        for criterion in usable(criteria)
        if problem and judged_criteria.is_relative(criterion)
    ][:1]


def _metric(criterion: Criterion) -> list[Finding]:
    metric = criterion.metric
    if metric in METRICS or WITHIN.fullmatch(metric):
        return []
    return [_finding(criterion, f"{metric!r} is not a metric{suggestion(metric, METRICS)} (known: {SHOWN_METRICS})")]


def _names(criterion: Criterion, tests: t.Mapping[str, t.Iterable[str]]) -> list[Finding]:
    known = list(dict.fromkeys(name for names in tests.values() for name in names))
    if not known or any(is_for(criterion, name) for name in known):
        return []
    test = str(criterion.test)
    return [
        _finding(criterion, f"no plan has a test named {test!r}{suggestion(test, known)} (tests: {', '.join(known)})")
    ]


def _model(criterion: Criterion, criteria: t.Sequence[Criterion], views: t.Sequence[HostAnswer]) -> list[Finding]:
    """Return a model that matches no drive, while some drive is held to nothing: likely a slip. Else it may be for a
    part of the fleet left out by --limit.

    Told only where something is known of every host: the model may be that of a drive that was not seen.
    """
    seen = [[found.identity.model or "" for found in view.drives or () if found.identity] for view in views]
    models = sorted({model for models in seen for model in models})
    if not models or not all(seen) or any(is_of_model(criterion, model) for model in models):
        return []
    if all(any(is_of_model(other, model) for other in criteria) for model in models):
        return []
    named = host_list([model.strip() or "(none reported)" for model in models])
    return [
        _finding(
            criterion,
            f"model {criterion.model!r} matches no drive (models: {named}); it is a shell pattern, such as MTFD*",
        )
    ]


def _on_host(criterion: Criterion, host: str, drives: t.Sequence[PlannedDrive]) -> list[Finding]:
    """Return what judge would call an error once everything was measured, by drive; once for the host where it is the
    same for all.
    """
    problems = {drive.drive: _problem(criterion, drive) for drive in drives}
    texts = list(dict.fromkeys(filter(None, problems.values())))
    if len(texts) == 1 and all(problems.values()):
        return [_finding(criterion, texts[0], host)]
    return [_finding(criterion, text, host, drive) for drive, text in problems.items() if text]


def _problem(criterion: Criterion, drive: PlannedDrive) -> str:
    if not is_of_model(criterion, drive.expected.model or ""):
        return ""
    wanted = [test for test in drive.tests if is_for(criterion, test.name)]
    # None wanted: the criterion is about another host's plan, as `_names` has made sure.
    lacking = [test.name for test in wanted if not _yields(test, criterion)]
    if not lacking or (not criterion.test and len(lacking) < len(wanted)):
        return ""
    figure = f"{criterion.metric} of cell {criterion.cell}" if criterion.cell else criterion.metric
    advice = "a test reports the figures of its (first) tracked cell; for another cell, set the criterion's key cell"
    if criterion.metric in hidden_variation.LIMITS:
        advice = "docs/validity.md says how many rounds, and how long cells, it takes; throttled_pct is of no cell"
    if WITHIN.fullmatch(criterion.metric):
        advice += "; a test reports only the shares of the times in its latency_targets_us"
    return f"{', '.join(lacking)} does not report {figure}; {advice}"


def _yields(test: PlannedTest, criterion: Criterion) -> bool:
    """Return whether the test has the figure: of the cell named, else of the first tracked one, else of the first; a
    maximum is that of all cells (run/reducer.py).
    """
    if is_maximum(criterion.metric) and not criterion.cell:
        return any(_yields(test, replace(criterion, cell=cell.id)) for cell in test.cells)
    tracked = test.steady_state.tracked if test.steady_state else []
    name = (
        criterion.cell
        or next((item.cell for item in tracked), None)
        or next((cell.id for cell in test.cells if not cell.lead), None)
    )
    cell = next((cell for cell in test.cells if cell.id == str(name).partition(".")[0]), None)
    if cell is not None and _stream(cell, str(name)) is cell and cell.id != name:
        return False
    if cell is None:
        return False
    if criterion.metric.endswith(FITTED_END):
        return not criterion.cell and any(
            item.cell == name and item.metric + FITTED_END == criterion.metric for item in tracked
        )
    if criterion.metric == hidden_variation.THROTTLED or criterion.metric in health_metrics.TABLE:
        return not criterion.cell
    if criterion.metric in hidden_variation.OF_CELL:
        return criterion.metric in hidden_variation.possible(test, cell)
    share = WITHIN.fullmatch(criterion.metric)
    if share and share[1] not in [histogram.within_metric(limit_us) for limit_us in test.latency_targets_us]:
        return False
    side = criterion.metric.split("_")[0]
    return side not in fio_result.SIDES or side in io_pattern.sides(_stream(cell, str(criterion.cell or "")))


def _stream(cell: PlannedCell, name: str) -> AnyLoad:
    """Return the stream of a cell by its name in records, <cell>.<stream>; the cell itself for any other."""
    return next((job for job in cell.jobs or () if f"{cell.id}.{job.name}" == name), cell)


def applying(criteria: t.Any, drive: PlannedDrive) -> list[str]:
    """Return the criteria that a drive of a plan will be held to, each as one line."""
    own = [item for item in usable(criteria) if is_of_model(item, drive.expected.model or "")]
    return [
        judged_criteria.describe(item)
        for item in own
        if any(is_for(item, test.name) and _yields(test, item) for test in drive.tests)
    ]


def _finding(criterion: Criterion, message: str, host: str = "", drive: str = "") -> Finding:
    return Finding(f"ssd_criteria: {judged_criteria.describe(criterion)}: {message}", host, drive)
