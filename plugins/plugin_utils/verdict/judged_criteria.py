# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What drives are held to: a criterion's form and words, and a figure against its limits. Pure; shapes in
docs/internals.md.
"""

from __future__ import annotations

import typing as t

from ...module_utils.drive.attributes import VIRTUAL
from ...module_utils.measure import health_metrics, hidden_variation, histogram
from ...module_utils.measure.disturbances import DISTURBS, NO_PERCENTILES, TITLES
from ...module_utils.measure.disturbed_rounds import sentence
from ...module_utils.records import base
from ...module_utils.records.attempt import Disturbance
from ...module_utils.records.criterion import Criterion, Limit
from ...module_utils.run import criteria
from ...module_utils.run.criteria import is_for, is_met
from ...module_utils.run.folder import RUN_ID_PATTERN
from ..common import cell_names, units
from ..common.values import number
from .verdicts import COUNTING

NO_CRITERION = "no criterion applied"
HEALTH_ALONE = "no criterion applied but those of health"
UNJUDGED = (NO_CRITERION, HEALTH_ALONE)
# A single I/O of 4 KiB at a time, 25 times a second; and less than a bus takes. Limits below are in another unit.
LEAST_BANDWIDTH = 100_000
LEAST_LATENCY_US = 1
# The end of fio's latency histogram: no mean or percentile lies beyond, so every drive would meet such a limit.
MOST_LATENCY_US = 17e6
# Of what a drive's peers or a baseline had: more is a share in %.
MOST_SHARE = 10
# Limits as they are, and as shares of the drive's peers' median or of what a baseline run had.
ABSOLUTE = ("min", "max")
RELATIVE = ("min_of_median", "max_of_median", "min_of_baseline", "max_of_baseline")
LIMITS = ABSOLUTE + RELATIVE
TEXT_KEYS = ("test", "metric", "model", "cell", "baseline", "source")
CRITERION_KEYS = ("test", "metric", *LIMITS, "baseline", "model", "cell", "source")

Record = dict[str, t.Any]

Mapping = t.Mapping[str, t.Any]


class Reference(t.NamedTuple):
    """What a relative limit is a share of. value: None where there is none, and `of` says why; else `of` says what it
    is. apart: there is none only because of what the drive's host tells of how it measured.
    """

    value: float | None
    of: str
    apart: bool = False


# (criterion, limit of RELATIVE, host, drive, test) -> its reference
References = t.Callable[[Criterion, str, str, str, str], Reference]


def no_references(*_of: t.Any) -> Reference:
    """Return where nobody knows the fleet."""
    return Reference(None, "the fleet was not compared")


def limits_of(criterion: Criterion, names: t.Iterable[str] = LIMITS) -> dict[str, Limit]:
    """Return the limits that a criterion has of these, by name."""
    return {name: limit for name in names if (limit := getattr(criterion, name)) is not None}


def is_relative(criterion: Criterion) -> bool:
    """Return whether any of its limits needs a reference."""
    return bool(limits_of(criterion, RELATIVE))


def describe(criterion: Criterion) -> str:
    """Return a criterion in one line: "criterion wsat write_iops min 500 (model MTFD*)"."""
    return describe_given(vars(criterion))


def describe_given(criterion: Mapping) -> str:
    """Return a criterion as it was given in one line, whatever is wrong with it."""
    words = ["criterion"] + [str(criterion[field]) for field in ("test", "cell", "metric") if criterion.get(field)]
    words += [f"{limit} {units.plain(criterion[limit])}" for limit in LIMITS if criterion.get(limit) is not None]
    text = " ".join(words + ([f"run {criterion['baseline']}"] if criterion.get("baseline") else []))
    notes = [f"model {criterion['model']}"] if (criterion.get("model") or "*") != "*" else []
    notes += [str(criterion["source"])] if criterion.get("source") else []
    return f"{text} ({', '.join(notes)})" if notes else text


def sound(given: t.Iterable[t.Any]) -> list[Criterion]:
    """Return the criteria that can be applied, of those that a run, or a play, was given."""
    return criteria.usable(criterion for criterion in given if not criterion_problems(criterion))


def criteria_by_name(given: t.Iterable[t.Any]) -> dict[str, Criterion]:
    """Return the criteria that can be applied, by what a check calls them (`describe`)."""
    return {describe(criterion): criterion for criterion in sound(given)}


def criterion_problems(criterion: t.Any) -> list[str]:
    """Return why a criterion cannot be applied, as sentences; empty when it can."""
    if not isinstance(criterion, dict):
        return [f"criterion {criterion!r} is not a mapping with the keys metric and min or max"]
    name = describe_given(criterion)
    problems = [
        f"{name} has an unknown key {word}; known are {', '.join(CRITERION_KEYS)}"
        for word in criterion
        if word not in CRITERION_KEYS
    ]
    problems += [
        f"{name}: {word} is {criterion[word]!r}, not a string"
        + ("; write one criterion for each" if isinstance(criterion[word], list) else "")
        for word in TEXT_KEYS
        if criterion.get(word) is not None and not isinstance(criterion[word], str)
    ]
    if not criterion.get("metric"):
        problems.append(f"{name} names no metric")
    given = [limit for limit in LIMITS if criterion.get(limit) is not None]
    if not given:
        problems.append(f"{name} has no limit; give one of {', '.join(LIMITS)}")
    problems += [f"{name}: {limit} is not a number" for limit in given if number(criterion[limit]) is None]
    problems += [
        f"{name}: {limit}: {units_problem}" for limit in given if (units_problem := _unit_problem(criterion, limit))
    ]
    low, high = number(criterion.get("min")), number(criterion.get("max"))
    if low is not None and high is not None and low > high:
        problems.append(f"{name}: min is above max, so no figure can meet it")
    problems += [
        f"{name}: {limit} is below 0, which no figure can be"
        for limit in given
        if limit in ABSOLUTE and (number(criterion[limit]) or 0) < 0
    ]
    problems += [f"{name}: {wrong_way}" for wrong_way in [_wrong_way(criterion, given)] if wrong_way]
    problems += [f"{name}: {wrong}" for wrong in _share_problems(criterion, given)]
    of_baseline = [limit for limit in given if limit.endswith("_of_baseline")]
    if bool(of_baseline) != bool(criterion.get("baseline")):
        problems.append(f"{name}: baseline (the id of a run) and min_of_baseline or max_of_baseline go together")
    elif of_baseline and isinstance(criterion["baseline"], str) and not RUN_ID_PATTERN.fullmatch(criterion["baseline"]):
        problems.append(f"{name}: baseline: {criterion['baseline']!r} is not the id of a run")
    return problems


def _unit_problem(criterion: Record, limit: str) -> str:
    """Return why a limit is none in the metric's own unit: every drive would meet it, or none."""
    metric, value = str(criterion.get("metric") or ""), number(criterion[limit])
    if limit == "min" and value == 0:
        return "every figure is at least 0"
    if limit not in ABSOLUTE or value is None or value <= 0:
        return ""
    if "bandwidth" in metric and value < LEAST_BANDWIDTH:
        return f"{units.plain(value)} bytes/s is less than any drive does; bandwidths are in bytes/s (500 MB/s: 500e6)"
    if "_latency_us" in metric and value < LEAST_LATENCY_US:
        return f"{units.plain(value)} µs is less than any drive takes; latencies are in µs (2 ms: 2000)"
    if "_latency_us" in metric and "max_" not in metric and value > MOST_LATENCY_US:
        return f"{units.plain(value)} µs is beyond what the histogram resolves; latencies are in µs (2 ms: 2000)"
    if metric.endswith("_pct") and limit == "min" and value <= 1:
        return f"{units.plain(value)} % is less than any drive does; shares are in % (99.9 %: 99.9)"
    if metric.endswith("_pct") and value > 100:
        return f"{units.plain(value)} % is above 100 %; shares are in %"
    return ""


def _share_problems(criterion: Record, given: t.Sequence[str]) -> list[str]:
    """Return why a relative limit is no share that some drives meet and others miss."""
    shares = {limit: number(criterion[limit]) for limit in given if limit in RELATIVE}
    if shares and criterion.get("metric") in health_metrics.TABLE:
        return [f"{next(iter(shares))}: a drive's health is not compared with others; give max, or min"]
    if shares and criterion.get("metric") in hidden_variation.LIMITS:
        return [f"{next(iter(shares))}: it is 0 on most drives, so it is not compared with others; give max"]
    low = [
        f"{limit} must be a share above 0, such as 0.9"
        for limit, share in shares.items()
        if share is not None and share <= 0
    ]
    return low + [
        f"{limit} is a share, and {units.plain(share)} of it is met by all; 120 % is 1.2"
        for limit, share in shares.items()
        if share is not None and share > MOST_SHARE
    ]


def _wrong_way(criterion: Record, given: t.Sequence[str]) -> str:
    """Return why a criterion lets the worst drive pass: it bounds the better side of its metric alone."""
    metric = str(criterion.get("metric") or "")
    ways = {limit[:3] for limit in given}
    if "_latency_us" in metric and ways == {"min"}:
        name = given[0].replace("min", "max")
        return f"a latency with a {given[0]} alone passes the slowest drive; did you mean {name}?"
    if metric == health_metrics.SPARE and ways == {"max"}:
        return "less of it is worse, so a max alone passes the worst drive; give min"
    is_bad = metric in hidden_variation.LIMITS or metric in health_metrics.TABLE and metric != health_metrics.SPARE
    if is_bad and ways == {"min"}:
        return f"more of it is worse, so a {given[0]} alone passes the worst drive; give max"
    if ways == {"max"} and any(word in metric for word in ("iops", "bandwidth", "within_")):
        name = given[0].replace("max", "min")
        return f"a rate or a share with a {given[0]} alone passes the slowest drive; did you mean {name}?"
    return ""


def figure_of(criterion: Criterion, record: Mapping) -> float | None:
    """Return the figure of a test's record that a criterion is about; None when it has none."""
    return criteria.figure(criterion, *_figures(record))


def _figures(record: Mapping) -> tuple[Mapping, t.Iterator[tuple[str, Mapping]]]:
    """Return the metrics of a test's record, and those of each of its cells."""
    cells = ((str(cell.get("cell")), cell.get("metrics") or {}) for cell in record.get("cells") or [])
    return record.get("metrics") or {}, cells


def check(references: References, criterion: Criterion, host: str, drive: str, record: Record) -> Record | None:
    """Return the criterion against the record's figure; None when the record has no such figure."""
    value = figure_of(criterion, record)
    if value is None:
        return None
    given = {name: number(limit) for name, limit in limits_of(criterion).items()}
    found = {limit: references(criterion, limit, host, drive, record["test"]) for limit in given if limit in RELATIVE}
    lacking = [reference for reference in found.values() if reference.value is None]
    limits = {limit: share if limit in ABSOLUTE else _of(share, found[limit].value) for limit, share in given.items()}
    low = max((limit for name, limit in limits.items() if name.startswith("min") and limit is not None), default=None)
    high = min((limit for name, limit in limits.items() if name.startswith("max") and limit is not None), default=None)
    met = is_met(value, low, high)
    return {
        "criterion": describe(criterion),
        "metric": criterion.metric,
        "cell": criterion.cell,
        "value": value,
        "min": low,
        "max": high,
        # What is missed already needs no reference any more.
        "met": None if met and lacking else met,
        "reference": "; ".join(dict.fromkeys(reference.of for reference in lacking or found.values())) or None,
    }


def null_figure(criterion: Criterion, record: Record) -> list[str]:
    """Return why a measured test can neither meet nor miss a criterion, as a sentence: it has the metric, and no figure
    for it.
    """
    found = criteria.metrics_of(criterion, *_figures(record))
    if criterion.metric not in found or number(found[criterion.metric]) is not None:
        return []
    left_out = [item for item in record.get("validity") or [] if item["cause"] == NO_PERCENTILES]
    if left_out and histogram.is_of_histogram(criterion.metric):
        why = sentence(base.parse(Disturbance, left_out[0]))
        return [f"{criterion.metric} is unknown: too few rounds are left ({why}) ({describe(criterion)})"]
    return [f"{criterion.metric} has no figure ({describe(criterion)}); check why the test gave none"]


def of_another_model(asked: t.Mapping[str, t.Any], identity: t.Mapping[str, t.Any]) -> list[str]:
    """That a drive's record tells another model than preflight saw: criteria are for models. asked: of run.json."""
    before, now = asked.get("model"), identity.get("model")
    if not before or not now or before == now:
        return []
    return [f"its record has the model {now}, but preflight saw {before}; check which drive was measured"]


def of_unknown_model(criteria: t.Sequence[Criterion], identity: t.Mapping[str, t.Any]) -> list[str]:
    """Criteria that can't be told to be about a drive or not, as its record tells no model; a loop device has none."""
    if identity.get("model") or (identity and identity.get("transport") in VIRTUAL):
        return []
    bound = [describe(criterion) for criterion in criteria if (criterion.model or "*") != "*"]
    text = (
        "its record has no model, so it is unknown whether {0} applies to it; collect it again, or check why its "
        "identity is missing"
    )
    return [text.format("; ".join(bound))] if bound else []


def _of(share: float | None, reference: float | None) -> float | None:
    return None if share is None or reference is None else share * reference


def comparison(check: Record) -> str:
    """Return the figure against its limits, as a sentence with units: "write_iops 352 < 500 (criterion wsat write_iops
    min 500)".
    """
    value, low, high, metric = check["value"], check["min"], check["max"], check["metric"]
    if check["met"] is None:
        return f"{check['reference']} ({check['criterion']})"
    if low is not None and (value < low or high is None or value <= high):
        sign, limit = ("<" if value < low else ">="), low
    else:
        sign, limit = (">" if value > high else "<="), high
    shown, bound = units.format_distinct(metric, value, limit)
    of = f": {check['reference']}" if check.get("reference") else ""
    return f"{metric} {shown} {sign} {bound} ({check['criterion']}{of})"


def measured_again(
    references: References, criteria: t.Sequence[Criterion], host: str, drive: str, record: Record
) -> Record:
    """Of a test that was to be measured again (run_folder/remeasurement.py): {run_id of the second measurement, told:
    what came of it, as a sentence, first: {outcome, metrics} of the first, None where that one counts}.
    """
    then = record["again"]
    first = then.get("first")
    if first is None:
        told = f"not measured again ({then['run_id']}): {then['problem']}"
        return {"run_id": then["run_id"], "told": told, "first": None}
    checks = [
        check(references, criterion, host, drive, first) for criterion in criteria if is_for(criterion, first["test"])
    ]
    missed = "; ".join(comparison(each) for each in checks if each and each["met"] is False)
    before = f"; the first time {missed}" if missed else ""
    figures = {name: value if number(value) is not None else None for name, value in first["metrics"].items()}
    return {
        "run_id": then["run_id"],
        "told": f"measured again ({then['run_id']}){before}",
        "first": {"outcome": first["outcome"], "metrics": figures},
    }


def of_left_out(criterion: Criterion, left_out: t.Iterable[str], cells: t.Mapping[str, t.Any]) -> list[str]:
    """Return a criterion on tests that were not measured for want of time, as a sentence; without a test it is on all
    that could have its figure. cells: of those tests, {test: ids}; one that is missing could.
    """
    names = [name for name in left_out if is_for(criterion, name)]
    if not criterion.test:
        names = [name for name in names if _could_have(criterion, cells.get(name))]
    return [f"{describe(criterion)} was not judged: ssd_time_budget left out {', '.join(names)}"] if names else []


def _could_have(criterion: Criterion, cells: t.Sequence[str] | None) -> bool:
    """Return whether one of these cells has the criterion's figure, by whether it reads and writes."""
    if cells is None:
        return True
    side, cell = criterion.metric.partition("_")[0], criterion.cell
    shares = [cell_names.parse(name).get("read_pct") for name in cells if cell in (None, name)]
    without = {"read": 0, "write": 100}.get(side)
    return any(share is None or share != without for share in shares)


def without_figure(criterion: Criterion, tests: list[Record], of_run: t.Iterable[str]) -> list[str]:
    """A criterion that nothing could be held against is said, not skipped, once its tests are all measured; one about
    another drive's plan is not.
    """
    wanted = [test for test in tests if is_for(criterion, test["test"])]
    name = describe(criterion)
    if not wanted and any(is_for(criterion, test) for test in of_run):
        return []
    if not wanted:
        return [f"{name} names no test of this drive's plan ({', '.join(test['test'] for test in tests) or 'none'})"]
    # One that fails by its drive's health may have no figures.
    measured = [test for test in wanted if test["verdict"] in COUNTING and not test.get("health")]
    if len(measured) < len(wanted):
        return []
    lacking = [test["test"] for test in wanted if name not in {check["criterion"] for check in test["criteria"]}]
    # With no test named, the criterion is for every test that has the metric: one is enough.
    if not lacking or (not criterion.test and len(lacking) < len(wanted)):
        return []
    missing = f"{criterion.metric} of cell {criterion.cell}" if criterion.cell else criterion.metric
    return [f"{name} has no figure to compare with: {', '.join(lacking)} gave no {missing}"]


def unresolved_percentile(criterion: Criterion, record: Mapping, described: str) -> list[str]:
    """Return why a measured test's record has no figure for a criterion on a percentile, as a sentence; empty for any
    other criterion.
    """
    short = histogram.too_few(criterion.metric, criteria.metrics_of(criterion, *_figures(record)))
    if short is None:
        return []
    there, needed = short
    disturbed = _why_few_rounds(record, there, needed)
    if disturbed:
        return [
            f"{criterion.metric} is unknown: {disturbed}; the {there:,} I/Os of the others are too few, "
            f"{needed:,} are needed for {histogram.LEAST_BEYOND} beyond it ({described})"
        ]
    text = (
        f"{criterion.metric} is unknown: {there:,} I/Os in the window are too few, {needed:,} are needed for "
        f"{histogram.LEAST_BEYOND} beyond it"
        f" ({described}); measure longer, or ask for a lower percentile"
    )
    return [text]


def _why_few_rounds(record: Mapping, there: int, needed: int) -> str:
    """Return which cause left too few rounds, where all of them would have had I/Os enough; "" where that is not why.
    A window is as long as the test has it, whatever was disturbed.
    """
    found = [item for item in record.get("validity") or [] if item["level"] == DISTURBS]
    rounds = record.get("rounds") or 0
    disturbed = {number for item in found for first, last in item["rounds"] for number in range(first, last + 1)}
    kept = rounds - len(disturbed)
    if not disturbed or kept <= 0 or record.get("steady_state") or there * rounds < needed * kept:
        return ""
    most = max(found, key=lambda item: item["count"])
    return f"{TITLES[most['cause']]} in {most['count']} of {rounds} rounds ({most['first']})"
