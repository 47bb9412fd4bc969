# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What single values of a host may be: its name, numbers, tuning. Pure; each function returns what is wrong, as "key:
message".
"""

from __future__ import annotations

import re
import typing as t

from ...module_utils.measure.validity_limits import Limits
from ..common import argument_specs, values
from ..common import schema as schemas
from ..common.argument_specs import Rule, Variables
from ..common.schema import plain
from ..plan import cells as celling
from ..plan import health_criteria, purge_values, time_estimates, tuning_values

# Variables that a host must not have, with where they belong.
MISPLACED = {
    "ssd_overwrite_data": "ssd_overwrite_data: cannot be set for a host or group, as it gives up one drive's data; "
    'set it in the entry of that drive in ssd_drives: - {serial: "…", ssd_overwrite_data: true}',
}
LONGEST_NAME_BYTES = 200


# More than ten million are too many for an alarm on some systems.
LEAST_SECONDS, MOST_SECONDS = 10, 10_000_000
MOST_DAYS = 36500
MOST_TBW = 1_000_000_000
LEAST_LOOK_S, MOST_LOOK_S = 0.1, 3600
LEAST_INTERVAL_S, LEAST_SAMPLE_S, LEAST_RATE_MIB_S = 0.5, 1, 0.001


def _drives_at_once(value: t.Any) -> bool:
    return value == values.AUTO or (values.whole(value) or 0) >= 1


def _assumed_rate(value: t.Any) -> bool:
    return value == values.AUTO or (values.number(value) or 0) >= LEAST_RATE_MIB_S


LIMIT_S = Rule(
    f"0 (no limit) or a whole number of seconds from {LEAST_SECONDS} to {MOST_SECONDS}",
    lambda seconds: seconds == 0 or LEAST_SECONDS <= seconds <= MOST_SECONDS,
)
# Beyond type and choices, which the role's spec has.
RULES = {
    "ssd_parallel_drives": Rule("a whole number of at least 1, or auto", _drives_at_once),
    "ssd_look_s": Rule(
        f"a number of seconds from {LEAST_LOOK_S} to {MOST_LOOK_S}",
        lambda seconds: LEAST_LOOK_S <= seconds <= MOST_LOOK_S,
    ),
    "ssd_sample_interval_s": Rule(
        f"0 (no samples) or a number of at least {LEAST_SAMPLE_S}",
        lambda seconds: seconds == 0 or seconds >= LEAST_SAMPLE_S,
    ),
    "ssd_assumed_write_mib_s": Rule(f"auto or a number of at least {LEAST_RATE_MIB_S}", _assumed_rate),
    "ssd_watch_interval_s": Rule(
        f"0 (automatic) or a number of at least {LEAST_INTERVAL_S}",
        lambda seconds: seconds == 0 or seconds >= LEAST_INTERVAL_S,
    ),
    "ssd_host_timeout_s": Rule("a number above 0", lambda seconds: seconds > 0),
    "ssd_task_timeout_s": LIMIT_S,
    "ssd_collect_timeout_s": LIMIT_S,
    "ssd_keep_failed_days": Rule(f"a number of days from 0 to {MOST_DAYS}", lambda days: 0 <= days <= MOST_DAYS),
    "ssd_quarantine_after": Rule("a number of nights, or 0 (never)", lambda nights: nights >= 0),
    "ssd_watch_for_s": Rule("0 (until all have ended) or a number above 0", lambda seconds: seconds >= 0),
    "ssd_give_up_s": Rule("0 (never give up) or a number above 0", lambda seconds: seconds >= 0),
    "ssd_time_budget": Rule(
        "empty or a time such as 90min, 2h or 1.5d",
        lambda budget: not budget or time_estimates.budget_s(budget) is not None,
    ),
    "ssd_wear_budget": Rule(
        "empty, a share such as 5% or an amount such as 20TB",
        lambda budget: not budget or wear_budget(budget) is not None,
    ),
    "ssd_rated_tbw": Rule(
        "a list of mappings with model (a shell pattern) and tbw (a number of terabytes above 0, up to a billion)",
        lambda ratings: all(0 < rating["tbw"] <= MOST_TBW for rating in ratings),
    ),
    "ssd_criteria": Rule("a list of mappings with metric and min or max"),
    "ssd_health_criteria": Rule(health_criteria.WANTED, health_criteria.is_of_right_kind),
    "ssd_tests_dirs": Rule("a list of folders"),
    "ssd_validity_limits": Rule("a mapping of names to numbers"),
}
PRECONDITION_RULES = {
    "precondition_passes": argument_specs.limited(
        schemas.load("test")["properties"]["precondition"]["properties"]["passes"]
    ),
    "precondition_block_size": Rule("a block size, such as 128KiB", celling.is_size),
}
# Each says more of a wrong value than its type: findings.py.
TOLD_ELSEWHERE = ("ssd_run_name", "ssd_run_id")


WEAR_BUDGET = re.compile(r"\s*([0-9]{1,9}(?:\.[0-9]{1,6})?)\s*(%|TB)\s*")


def wear_budget(value: t.Any) -> tuple[float | None, float | None] | None:
    """ssd_wear_budget as (share in per cent, None) or (None, bytes); None: no budget, or what `problems` tells of."""
    match = WEAR_BUDGET.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        return None
    number = float(match[1])
    return (number, None) if match[2] == "%" else (None, number * 10**12)


def problems(asked: Variables) -> list[str]:
    """Wrong values of a host's variables, but for those of the role preflight (host_checks)."""
    given = {name: value for name, value in asked.items() if name not in TOLD_ELSEWHERE}
    return (
        argument_specs.problems("ssd", given, RULES)
        + _limits(asked)
        + [f"ssd_health_criteria: {text}" for text in health_criteria.problems(plain(asked.get("ssd_health_criteria")))]
        + tuning_values.problems(asked)
        + purge_values.problems(asked)
        + argument_specs.problems("precondition", asked, PRECONDITION_RULES)
        + argument_specs.problems("workload", asked)
    )


def _limits(asked: Variables) -> list[str]:
    """Return what is wrong in ssd_validity_limits."""
    given = plain(asked.get("ssd_validity_limits"))
    if not isinstance(given, dict):
        return []
    known = Limits._fields
    found = [
        f"ssd_validity_limits: unknown name {name!r}{schemas.suggestion(name, known)} (known: {', '.join(known)})"
        for name in given
        if name not in known
    ]
    numbers = [(name, value, values.number(value)) for name, value in given.items()]
    return found + [
        f"ssd_validity_limits: {name}: {value!r} must be a number of at least 0"
        for name, value, number in numbers
        if number is None or number < 0
    ]


def name_problems(name: str) -> list[str]:
    """Return why a host of this name could not get a folder for its results."""
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
