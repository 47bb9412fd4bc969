# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""ssd_health_criteria: what a drive's own health is held to, whatever becomes of its tests. Pure."""

from __future__ import annotations

import collections
import typing as t

from ...module_utils.measure import health_metrics, hidden_variation
from ...module_utils.records.base import Json
from ..common import schema as schemas
from ..common import units
from ..common.argument_specs import Variables
from ..common.values import number

DEFAULT, NONE = "default", "none"
METRICS = (*health_metrics.TABLE, hidden_variation.THROTTLED)
KEYS = ("metric", "min", "max", "model", "source")
WANTED = f"{DEFAULT}, {NONE}, or a list of mappings with metric and min or max"


def resolved(variables: Variables) -> list[Json]:
    """Return the criteria that a host's variables ask for; none for a single step, which measures nothing."""
    given = schemas.plain(variables.get("ssd_health_criteria", DEFAULT))
    if variables.get("ssd_step", "qualify") != "qualify":
        return []
    if isinstance(given, list):
        return [item for item in given if isinstance(item, dict)]
    return [dict(item) for item in health_metrics.DEFAULT_CRITERIA] if given == DEFAULT else []


def is_of_right_kind(value: t.Any) -> bool:
    """Return whether this is one of the words, or a list of mappings."""
    is_list = isinstance(value, list) and all(isinstance(item, dict) for item in value)
    return is_list or (isinstance(value, str) and value in (DEFAULT, NONE))


def problems(value: t.Any) -> list[str]:
    """Return what is wrong with the criteria of a list, as sentences."""
    found = []
    listed = [criterion for criterion in value if isinstance(criterion, dict)] if isinstance(value, list) else []
    for number_of, criterion in enumerate(listed, start=1):
        name = describe(criterion) if "metric" in criterion else f"number {number_of}"
        found += [
            f"{name} has an unknown key {key}{schemas.suggestion(str(key), KEYS)} (known: {', '.join(KEYS)})"
            for key in criterion
            if key not in KEYS
        ]
        metric = criterion.get("metric")
        if "metric" not in criterion:
            found.append(f"{name} has no metric")
            continue
        if metric not in METRICS:
            hint = schemas.suggestion(str(metric), METRICS)
            found.append(f"{name}: {metric!r} is no metric of health{hint} (known: {', '.join(METRICS)})")
        limits = [word for word in ("min", "max") if criterion.get(word) is not None]
        found += [f"{name}: {word} is not a number" for word in limits if number(criterion[word]) is None]
        found += [f"{name}: {word} is below 0" for word in limits if (number(criterion[word]) or 0) < 0]
        wanted = "min" if metric == health_metrics.SPARE else "max"
        if wanted not in limits:
            found.append(f"{name} has no {wanted}, so it passes the worst drive")
    given = collections.Counter((str(each.get("metric")), str(each.get("model") or "*")) for each in listed)
    repeated = [(key[0], count) for key, count in given.items() if count > 1]
    return found + [f"{metric} is there {count} times; give it once" for metric, count in repeated]


def describe(criterion: Json) -> str:
    """Return a criterion in one line: "longest_io_s max 30 s"."""
    metric = str(criterion.get("metric"))
    limits = [
        f"{word} {units.plain(criterion[word])} {units.base(metric)}".strip()
        for word in ("min", "max")
        if criterion.get(word) is not None
    ]
    model = f" (model {criterion['model']})" if (criterion.get("model") or "*") != "*" else ""
    return " ".join([metric, *limits]) + model


def told(criteria: t.Sequence[Json]) -> str:
    """Return criteria in one line."""
    return ", ".join(map(describe, criteria)) or "none"
