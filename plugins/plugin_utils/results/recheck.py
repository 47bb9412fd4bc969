# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a record that says "steady" is so by its own window values: the rule of run.json is applied to them again.
Pure.
"""

from __future__ import annotations

import typing as t

from ...module_utils.measure import steady_state
from ..common import cellnames
from ..common.values import number

# Sums of floats in another order differ in their last digits; figures in JSON have all of theirs.
ROUNDING = 1e-9
FIGURES = ("average", "range_ratio", "slope_ratio")

Mapping = t.Mapping[str, t.Any]


def problem(record: Mapping, rule: Mapping | None, preferred_bytes: int | None = None) -> str:
    """Why a steady record contradicts itself or the rule; an empty string when it does not.

    record: of the test. rule: the test's steady_state as run.json keeps it; without its window and limits nothing is
      checked. preferred_bytes: the drive's preferred write size, as preflight saw it.
    """
    if (
        record.get("outcome") != "steady"
        or not rule
        or any(rule.get(key) is None for key in ("window", "range_limit", "slope_limit"))
    ):
        return ""
    windows = record.get("steady_state") or []
    wanted = {(cellnames.on_drive(item["cell"], preferred_bytes), item["metric"]) for item in rule.get("tracked") or []}
    missing = wanted - {(window.get("cell"), window.get("metric")) for window in windows}
    if missing:
        return "the record has no steady-state window for " + ", ".join(" ".join(item) for item in sorted(missing))
    found = next(
        (
            f"{window['cell']} {window['metric']}: {said}"
            for window in windows
            for said in [_window(window, rule)]
            if said
        ),
        "",
    )
    return found or _figure(record, windows)


def unmeasured(record: Mapping, about: Mapping) -> str:
    """Why a record that counts has nothing to count; "" where it has. about: the test in run.json; without cells it
    measures nothing.
    """
    if not about.get("cells"):
        return ""
    if not record.get("rounds"):
        return "the host reports no rounds for it"
    return "" if record.get("metrics") else "the host reports no figures for it"


def _window(window: Mapping, rule: Mapping) -> str:
    """What is wrong with one tracked variable's window."""
    values = window.get("window_values") or []
    if len(values) != rule["window"]:
        return f"its window has {len(values)} values, the rule requires {rule['window']}"
    if any(value is None for value in values):
        return "a value is missing from its window"
    rounds, every = window.get("window_rounds"), rule.get("sample_every") or 1
    if rounds is not None and list(rounds) != list(
        range(rounds[-1] - every * (len(values) - 1), rounds[-1] + 1, every)
    ):
        return f"its window is of the rounds {rounds}, which do not follow each other"
    again = steady_state.by_rule(values, rule)
    if not again["steady"]:
        return f"the host reports it as steady, but its window values are not: {'; '.join(again['reasons'])}"
    wrong = [name for name in FIGURES if not same(window.get(name), again[name])]
    return "; ".join(
        f"its {name} is reported as {window.get(name)}, but its window values give {again[name]}" for name in wrong
    )


def _figure(record: Mapping, windows: t.Sequence[Mapping]) -> str:
    """The figure that criteria are held against is the average of the first tracked variable's window."""
    metric, average = windows[0]["metric"], windows[0]["average"]
    told = (record.get("metrics") or {}).get(metric)
    return (
        ""
        if told is None or same(told, average)
        else f"its {metric} is reported as {told}, but its window's average is {average}"
    )


def same(one: t.Any, other: t.Any) -> bool:
    """Whether two figures are one, but for rounding; what is no number is only like itself."""
    first, second = number(one), number(other)
    if first is None or second is None:
        return first is second
    return abs(first - second) <= ROUNDING * max(abs(first), abs(second), 1e-12)
