# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What single values of a host may be: its name, numbers, tuning. Pure; each function returns what is wrong, as "key:
message".
"""

from __future__ import annotations

import re
import typing as t

from ...module_utils.measure.limits import Limits
from ..common import values
from ..common.schema import plain
from ..plan import purge_values, times, tuning_values

# Variables that a host must not have, with where they belong.
MISPLACED = {
    "ssd_overwrite_data": "ssd_overwrite_data: cannot be set for a host or group, as it gives up one drive's data; "
    'set it in the entry of that drive in ssd_drives: - {serial: "…", ssd_overwrite_data: true}',
}
LONGEST_NAME_BYTES = 200


def _number(holds: t.Callable[[float], bool]) -> t.Callable[[t.Any], bool]:
    return lambda value: values.number(value) is not None and holds(float(value))


def _limit(value: t.Any) -> bool:
    seconds = values.whole(value)
    return seconds == 0 or 10 <= (seconds or 0) <= MOST_SECONDS


def _drives_at_once(value: t.Any) -> bool:
    return value == values.AUTO or (values.whole(value) or 0) >= 1


# More than ten million are too many for an alarm on some systems.
MOST_SECONDS = 10_000_000
SECONDS = f"0 (no limit) or a whole number of seconds from 10 to {MOST_SECONDS}"
# (variable, whether a value is right, what it has to be)
NUMBERS: tuple[tuple[str, t.Callable[[t.Any], bool], str], ...] = (
    ("ssd_parallel_drives", _drives_at_once, "a whole number of at least 1, or auto"),
    ("ssd_look_s", _number(lambda number: 0.1 <= number <= 3600), "a number of seconds from 0.1 to 3600"),
    (
        "ssd_sample_interval_s",
        _number(lambda number: number == 0 or number >= 1),
        "0 (no samples) or a number of at least 1",
    ),
    ("ssd_assumed_write_mib_s", _number(lambda number: number >= 0.001), "a number of at least 0.001"),
    (
        "ssd_watch_interval_s",
        _number(lambda number: number == 0 or number >= 0.5),
        "0 (automatic) or a number of at least 0.5",
    ),
    ("ssd_host_timeout_s", _number(lambda number: number > 0), "a number above 0"),
    ("ssd_task_timeout_s", _limit, SECONDS),
    ("ssd_collect_timeout_s", _limit, SECONDS),
    ("ssd_retest", lambda value: values.whole(value) in (0, 1), "0 (never) or 1 (once)"),
    ("ssd_keep_failed_days", _number(lambda number: 0 <= number <= 36500), "a number of days from 0 to 36500"),
    (
        "ssd_quarantine_after",
        _number(lambda number: number >= 0 and number == int(number)),
        "a number of nights, or 0 (never)",
    ),
    ("ssd_watch_for_s", _number(lambda number: number >= 0), "0 (until all have ended) or a number above 0"),
    ("ssd_give_up_s", _number(lambda number: number >= 0), "0 (never give up) or a number above 0"),
)


WEAR_BUDGET = re.compile(r"\s*([0-9]{1,9}(?:\.[0-9]{1,6})?)\s*(%|TB)\s*")


def wear_budget(value: t.Any) -> tuple[float | None, float | None] | None:
    """ssd_wear_budget as (share in per cent, None) or (None, bytes); None: no budget, or what `problems` tells of."""
    match = WEAR_BUDGET.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        return None
    number = float(match[1])
    return (number, None) if match[2] == "%" else (None, number * 10**12)


def rating_problem(entry: t.Any) -> str:
    """What is wrong with an entry of ssd_rated_tbw; "" if nothing is."""
    if not isinstance(entry, t.Mapping) or set(entry) != {"model", "tbw"} or not isinstance(entry["model"], str):
        return f"{entry!r} is not a mapping with model (a shell pattern) and tbw (terabytes)"
    number = values.number(entry["tbw"])
    return "" if number is not None and number > 0 else f"tbw: {entry['tbw']!r} is not a number of terabytes above 0"


def _budget_problems(asked: t.Mapping[str, t.Any]) -> list[str]:
    found = []
    time_budget = plain(asked.get("ssd_time_budget"))
    if time_budget not in (None, "") and times.budget_s(time_budget) is None:
        found.append(f"ssd_time_budget: {time_budget!r} must be empty or a time such as 90min, 2h or 1.5d")
    budget, ratings = plain(asked.get("ssd_wear_budget")), plain(asked.get("ssd_rated_tbw"))
    if budget not in (None, "") and wear_budget(budget) is None:
        found.append(f"ssd_wear_budget: {budget!r} must be empty, a share such as 5% or an amount such as 20TB")
    if ratings is not None and not isinstance(ratings, list):
        return [*found, f"ssd_rated_tbw: {ratings!r} must be a list of mappings with model and tbw"]
    return found + [f"ssd_rated_tbw: {problem}" for problem in map(rating_problem, ratings or []) if problem]


# Variables that are one of a few words.
WORDS = {
    "ssd_look": ("sample", "full"),
    "ssd_leave": ("blank", "as_is"),
    "ssd_unknown_causes": ("warn", "spoil"),
    "ssd_evidence": ("refuse", "leave_out"),
    "ssd_unavailable": ("refuse", "leave_out"),
    "ssd_overlap": ("attach", "skip", "fail"),
}


def problems(asked: t.Mapping[str, t.Any]) -> list[str]:
    """Wrong numbers, tuning and purge among a host's variables."""
    wrong = [(name, wanted) for name, right, wanted in NUMBERS if name in asked and not right(plain(asked[name]))]
    wrong += [
        (name, f"one of: {', '.join(words)}")
        for name, words in WORDS.items()
        if name in asked and plain(asked[name]) not in words
    ]
    told = [f"{name}: {plain(asked[name])!r} must be {wanted}" for name, wanted in wrong]
    return (
        told + _limits(asked) + _budget_problems(asked) + tuning_values.problems(asked) + purge_values.problems(asked)
    )


def _limits(asked: t.Mapping[str, t.Any]) -> list[str]:
    """What is wrong with ssd_validity_limits."""
    given = plain(asked.get("ssd_validity_limits"))
    if given in (None, ""):
        return []
    if not isinstance(given, dict):
        return [f"ssd_validity_limits: {given!r} must be a mapping of names to numbers"]
    known = ", ".join(Limits._fields)
    found = [
        f"ssd_validity_limits: unknown name {name!r}; known are {known}" for name in given if name not in Limits._fields
    ]
    right = _number(lambda number: number >= 0)
    return found + [
        f"ssd_validity_limits: {name}: {value!r} must be a number of at least 0"
        for name, value in given.items()
        if not right(value)
    ]


def name_problems(name: str) -> list[str]:
    """Why a host of this name could not get a folder for its results."""
    size = len(name.encode("utf-8", "surrogatepass"))
    if "/" not in name and name not in (".", "..") and name.isprintable() and size <= LONGEST_NAME_BYTES:
        return []
    limits = f"a name without / and control characters, not . or .., of at most {LONGEST_NAME_BYTES} bytes"
    return [
        (
            f"the host's inventory name cannot name the folder of its results: use {limits}, and set ansible_host to "
            "its address"
        )
    ]
