# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether the rounds that a result comes from were clean, checked again from the records, and what to warn of. Pure."""

from __future__ import annotations

import typing as t

from ...module_utils.measure.causes import DISCARDED, SPOILS, UNKNOWN
from ...module_utils.measure.limits import Limits
from ...module_utils.measure.spoilt import sentence
from ...module_utils.measure.steady_state import RANGE_LIMIT, SLOPE_LIMIT, WINDOW
from ..common import cellnames
from ..common.values import number

# What a test from fresh waits for where its definition says nothing (plan/saturation.py).
LEAST_MULTIPLE = 2
USUAL = {"range_limit": RANGE_LIMIT, "slope_limit": SLOPE_LIMIT}
# Limits that have to be reached, as those do whose names end with _min.
REACHED = ("device_depth",)

Mapping = t.Mapping[str, t.Any]


def problem(record: Mapping, rule: Mapping | None, strict: bool = False, last_rounds: int = 0) -> str:
    """Why a steady or complete record can't count; an empty string when it may.

    record: of the test, with `validity` (docs/internals.md). rule: the test's steady_state as run.json keeps it.
      strict: what is unknown spoils (ssd_unknown_causes). last_rounds: of a test without a rule.
    The windows that have to agree with the one that counts must be clean too, and the rounds between samples.
    """
    levels = (SPOILS, UNKNOWN) if strict else (SPOILS,)
    causes = [item for item in record.get("validity") or [] if item.get("level") in levels]
    windows = [window["window_rounds"] for window in record.get("steady_state") or [] if window.get("window_rounds")]
    if not windows:
        return _all_spoilt(causes, record.get("rounds") or 0, last_rounds)
    first, last = _span(windows, rule or {})
    found = [
        item
        for item in causes
        if any(begin <= last and (end >= first or item["cause"] == DISCARDED) for begin, end in item["rounds"])
    ]
    return (
        f"its window, rounds {first} to {last}, holds spoilt rounds: {'; '.join(map(sentence, found))}" if found else ""
    )


def warnings(record: Mapping) -> list[str]:
    """What was found in a test's rounds, in words."""
    return [sentence(item) for item in record.get("validity") or []]


def loosened(limits: Mapping) -> list[str]:
    """What a drive's cells were held to that is looser than usual (ssd_validity_limits), as a sentence."""
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
    """What a test's figures stand on that is looser than the SNIA PTS, after which it may be called, as a sentence.

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
    """Whether what a rule tracks writes."""
    return any(cellnames.told(item["cell"]).get("read_pct", 0) < 100 for item in rule.get("tracked") or [])


def unsteady_cell(record: Mapping, cell: str | None) -> list[str]:
    """That a cell that a criterion names was not steady itself over the window, as a sentence."""
    found = [entry.get("steady") or {} for entry in record.get("cells") or [] if cell and entry.get("cell") == cell]
    return [
        f"{cell}: its own {item.get('metric')} was not steady over the window "
        f"(range {(number(item.get('range_ratio')) or 0):.0%} of the average)"
        for item in found
        if item.get("steady") is False
    ]


def _span(windows: t.Sequence[t.Sequence[int]], rule: Mapping) -> tuple[int, int]:
    """The first and the last round that the result stands on."""
    first, last = min(map(min, windows)), max(map(max, windows))
    length = (rule.get("window") or 0) * (rule.get("sample_every") or 1)
    return max(1, first - (rule.get("confirm_windows") or 0) * length), last


def _all_spoilt(causes: t.Sequence[Mapping], rounds: int, last: int) -> str:
    """Without a steady-state rule the clean rounds count: there must be one, of several at the end near it. After a
    discard none is.
    """
    lost = [item for item in causes if item["cause"] == DISCARDED]
    if lost:
        return f"the drive was not as the test made it: {'; '.join(map(sentence, lost))}"
    # Not counted one by one: a host may report two milliards of rounds.
    first = max(1, rounds - 2 * last + 1) if last else 1
    reached = first - 1
    for begin, end in sorted(pair for item in causes for pair in item["rounds"]):
        if begin <= reached + 1:
            reached = max(reached, end)
    if not rounds or reached < rounds:
        return ""
    which = f"all of its last {2 * last}" if first > 1 else f"all of its {rounds}"
    return f"{which} rounds are spoilt: {'; '.join(map(sentence, causes))}"
