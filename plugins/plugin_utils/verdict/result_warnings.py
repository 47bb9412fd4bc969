# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What to warn of about the rounds, limits and rule that a result comes from; and limits so far from what was measured
that they are probably in another unit. Pure.
"""

from __future__ import annotations

import re
import statistics
import typing as t

from ...module_utils.measure import hidden_variation
from ...module_utils.measure.disturbed_rounds import sentence
from ...module_utils.measure.steady_state import RANGE_LIMIT, SLOPE_LIMIT, WINDOW
from ...module_utils.measure.validity_limits import Limits
from ...module_utils.records import base
from ...module_utils.records.attempt import Disturbance
from ..common import cell_names, units
from ..common.values import number
from . import judged_criteria

# What a test from fresh waits for where its definition says nothing (plan/testfiles.py).
LEAST_MULTIPLE = 2
USUAL = {"range_limit": RANGE_LIMIT, "slope_limit": SLOPE_LIMIT}
# Limits that have to be reached, as those do whose names end with _min.
REACHED = ("device_depth",)
# Of a rate that a test asks for: the tolerance of a rate.
RATE_REACHED = 0.98
# What writes in sequence as a fill does: large blocks, enough of them in flight, nothing that slows it down.
FILL_LIKE = re.compile(r"seq-[0-9]+k-w100-tc[0-9]+-qd[0-9]+(-ramp[0-9]+s)?")
FILL_BLOCK_BYTES, FILL_OUTSTANDING_BYTES = 128 << 10, 1 << 20
# A fill that is so many times faster was taken by a cache, or not written.
FILL_TIMES = 2.0

Mapping = t.Mapping[str, t.Any]

# An SSD is 100 times faster than another, or than its limit, in nothing that people hold it to.
MOST_TIMES = 100
MOST_TOLD, MOST_SHOWN = 1_000_000, 1e15


def warnings(record: Mapping) -> list[str]:
    """Return what was found in a test's rounds, in words."""
    return [sentence(base.parse(Disturbance, item)) for item in record.get("validity") or []]


def not_attained(record: Mapping) -> list[str]:
    """That a test whose curve is its result (steady_state.required: false) did not become steady, as a sentence."""
    windows = record.get("steady_state") or []
    if record.get("outcome") != "complete":
        return []
    # The last window may be steady, and too early to count.
    reasons = record.get("reasons") or [text for item in windows for text in item.get("reasons") or []]
    said = "; ".join(reasons)
    if not windows or not said:
        return []
    return [f"steady state was not attained: its curve counts, its figures are those of the last window ({said})"]


def below_rate(record: Mapping) -> list[str]:
    """That cells did not reach the rate that they are limited to, a sentence each: what they show is another load."""
    found = []
    for entry in record.get("cells") or []:
        asked = _asked_iops(entry["cell"])
        iops = number((entry.get("metrics") or {}).get("iops"))
        if asked and iops is not None and iops < RATE_REACHED * asked:
            found.append(f"{entry['cell']}: it did {iops:.4g} of the {asked} IOPS that the test asks for")
    return found


def hidden_variations(record: Mapping) -> list[str]:
    """Return what a test's averages hide, a sentence for each metric: of the cell that has most of it."""
    cells = {entry["cell"]: entry.get("metrics") or {} for entry in record.get("cells") or []}
    found = []
    for metric, limit in hidden_variation.LIMITS.items():
        figures = cells if metric in hidden_variation.OF_CELL else {"": record.get("metrics") or {}}
        above = {
            cell: value
            for cell, metrics in figures.items()
            if (value := number(metrics.get(metric))) is not None and value > limit.most_pct
        }
        if above:
            most = max(above, key=lambda cell: above[cell])
            more = f", and above that in {len(above) - 1} more" if len(above) > 1 else ""
            text = limit.text.format(units.show(metric, above[most]))
            found.append(f"{most}{': ' * bool(most)}{text} (limit {limit.most_pct:g} %{more}; {metric})")
    return found


def fast_fill(record: Mapping, records: t.Iterable[Mapping]) -> list[str]:
    """That a fill was acknowledged faster than the drive writes in sequence by itself, as a sentence. records: of all
    tests of the drive.
    """
    fill = number((record.get("precondition") or {}).get("bandwidth_bytes_per_s"))
    alike = [one for one in records if one is record or not (_is_not_raw(one) or _is_not_raw(record))]
    rates = [
        (rate, f"{one['test']} {entry['cell']}")
        for one in alike
        for entry in one.get("cells") or []
        if _writes_like_a_fill(entry["cell"])
        and (rate := number((entry.get("metrics") or {}).get("write_bandwidth"))) is not None
        and rate > 0
    ]
    own, where = max(rates, default=(0.0, ""))
    if not fill or not own or fill < FILL_TIMES * own:
        return []
    return [
        f"its fill was acknowledged at {units.show('bandwidth', fill)}, {fill / own:.1f} times what it writes in "
        f"sequence by itself ({units.show('bandwidth', own)}, {where}): a cache took it, or it was not written"
    ]


def _is_not_raw(record: Mapping) -> bool:
    """Return whether a test was of something else than the drive by itself."""
    return bool(record.get("array") or record.get("filesystem"))


def _writes_like_a_fill(cell: str) -> bool:
    load = cell_names.parse(cell) if FILL_LIKE.fullmatch(cell) else {}
    size = load.get("block_size_bytes", 0)
    return size >= FILL_BLOCK_BYTES and size * load["threads"] * load["queue_depth"] >= FILL_OUTSTANDING_BYTES


def _asked_iops(cell: str) -> int:
    """Return the rate of a cell as fio gets it, whole for each thread and direction (plan/jobs.py); 0: none."""
    load = cell_names.parse(cell)
    if not load.get("rate_iops") or not load.get("threads"):
        return load.get("rate_iops") or 0
    shares = (load["read_pct"], 100 - load["read_pct"])
    return sum(load["rate_iops"] * share // 100 // load["threads"] * load["threads"] for share in shares)


def passed_over(record: Mapping, about: Mapping) -> list[str]:
    """That a test's window passes over disturbed rounds, and over how many, as a sentence. about: of the test in
    run.json.
    """
    window: Mapping = next(iter(record.get("steady_state") or []), {})
    numbers = window.get("window_rounds") or []
    every = number((about.get("steady_state") or {}).get("sample_every")) or 1
    count = int(numbers[-1] - numbers[0] - (len(numbers) - 1) * every) if numbers else 0
    if count <= 0:
        return []
    return [
        f"its window passes over {count} disturbed round{'s' * (count > 1)}, measured again after "
        f"{'them' if count > 1 else 'it'}: a deviation from the SNIA PTS, whose windows are of consecutive rounds"
    ]


def loosened(limits: Mapping) -> list[str]:
    """Return what a drive's cells were held to that is looser than usual (ssd_validity_limits), as a sentence."""
    usual = Limits()._asdict()
    found = []
    for name, value in limits.items():
        limit = number(value)
        if name not in usual or limit is None:
            continue
        # Of what has to be reached less is looser, of all others more.
        if (limit < usual[name]) if name.endswith("_min") or name in REACHED else (limit > usual[name]):
            found.append(f"{name} {limit:g} (usual {usual[name]:g})")
    return [f"cells were checked with looser limits than usual: {', '.join(found)}"] if found else []


def looser_rule(about: Mapping) -> list[str]:
    """Return what a test's figures stand on that is looser than the SNIA PTS, after which it may be called, as a
    sentence.

    about: of the test in run.json.
    """
    rule = about.get("steady_state") or {}
    limits = {name: (number(rule.get(name)) or 0, usual) for name, usual in USUAL.items()}
    found = [f"{name} {limit:g} ({usual:g})" for name, (limit, usual) in limits.items() if limit > usual]
    found += [f"window {rule['window']} ({WINDOW})"] if 0 < (rule.get("window") or 0) < WINDOW else []
    told = [f"its rule of steady state is looser than that of the SNIA PTS: {', '.join(found)}"] if found else []
    fresh = (about.get("purge") or {}).get("method", "none") != "none" and not about.get("precondition")
    multiple = rule.get("min_capacity_multiple")
    # A test from fresh that only reads has none to wait for.
    if fresh and multiple is not None and multiple < LEAST_MULTIPLE and _writes(rule):
        text = (
            "its window may begin after {0:g} x the user capacity ({1} is usual): a fresh drive is faster than a full "
            "one"
        )
        told.append(text.format(multiple, LEAST_MULTIPLE))
    return told


def _writes(rule: Mapping) -> bool:
    """Return whether what a rule tracks writes."""
    return any(cell_names.parse(item["cell"]).get("read_pct", 0) < 100 for item in rule.get("tracked") or [])


def unsteady_cell(record: Mapping, cell: str | None) -> list[str]:
    """That a cell that a criterion names was not steady itself over the window, as a sentence."""
    found = [entry.get("steady") or {} for entry in record.get("cells") or [] if cell and entry.get("cell") == cell]
    return [
        f"{cell}: its own {item.get('metric')} was not steady over the window "
        f"(range {(number(item.get('range_ratio')) or 0):.0%} of the average)"
        for item in found
        if item.get("steady") is False
    ]


def implausible_limits(run: Mapping, judgement: Mapping) -> list[str]:
    """Return a sentence for each absolute limit that is more than MOST_TIMES times what was measured, or as much less.

    run: run.json. judgement: of judge.judge; of its figures those that count.
    """
    values: dict[str, list[float]] = {}
    for drive in judgement["drives"]:
        for test in drive["tests"]:
            for check in test["criteria"] if test["counts"] else ():
                values.setdefault(check["criterion"], []).append(check["value"])
    found = []
    for name, criterion in judged_criteria.criteria_by_name(run.get("criteria") or []).items():
        measured = statistics.median(values[name]) if name in values else 0
        for limit in (number(criterion.min), number(criterion.max)):
            if limit and measured > 0 and not 1 / MOST_TIMES <= limit / measured <= MOST_TIMES:
                found.append(f"{name}: {_implausible(criterion.metric, limit, measured, len(values[name]))}")
    return found


def _implausible(metric: str, limit: float, measured: float, count: int) -> str:
    more = limit > measured
    large, small = (limit, measured) if more else (measured, limit)
    # A host may tell any number, and a quotient of such numbers is none.
    times = units.rounded(large / small) if large < MOST_TOLD * small else f"over {MOST_TOLD:,}"
    return (
        f"{_shown(metric, limit)} is {times} times {'more' if more else 'less'} than what was measured, "
        f"{_shown(metric, measured)} (median of {count} figure{'' if count == 1 else 's'}); check its unit"
    )


def _shown(metric: str, value: float) -> str:
    """With its unit, unless it has more digits than anybody reads."""
    return units.show(metric, value) if 1 / MOST_SHOWN < value < MOST_SHOWN else f"{value:.3g}"
