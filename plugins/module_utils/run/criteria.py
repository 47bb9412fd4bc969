# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which criteria (ssd_criteria) a measured drive missed: the host keeps such a drive as it is, the judge says fail.
Pure.
"""

from __future__ import annotations

import fnmatch
import math
import typing as t

Criterion = t.Mapping[str, t.Any]
# Outcomes of a test whose figures count.
MEASURED = ("steady", "complete")
# Of a test that stands: a second job of the run keeps it and never wipes the drive for it again, but for the state that
# another test goes on from.
KEPT_OUTCOMES = (*MEASURED, "not_steady", "invalid", "error")


def number(value: t.Any) -> float | None:
    """Return a finite number, also from a numeric text (an inventory's); else None."""
    try:
        result = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return result if math.isfinite(result) and not isinstance(value, bool) else None


def is_of_model(criterion: Criterion, model: str) -> bool:
    """Return whether a criterion is about drives of a model. Drives pad their names, and tools cut that off or don't:
    blanks at the ends, and how many stand in a row, tell no two models apart.
    """
    return fnmatch.fnmatchcase(" ".join(model.split()), " ".join((criterion.get("model") or "*").split()) or "*")


def is_for(criterion: Criterion, test: str) -> bool:
    """Return whether a criterion is about a test."""
    return fnmatch.fnmatchcase(test, str(criterion.get("test") or "*"))


def metrics_of(criterion: Criterion, record: t.Mapping[str, t.Any]) -> t.Mapping[str, t.Any]:
    """Return the metrics of a test (test_finished, or a test record) that a criterion is about: those of its cell, else
    the test's.
    """
    if criterion.get("cell"):
        return next(
            (cell.get("metrics") or {} for cell in record.get("cells") or [] if cell.get("cell") == criterion["cell"]),
            {},
        )
    return record.get("metrics") or {}


def figure(criterion: Criterion, record: t.Mapping[str, t.Any]) -> float | None:
    """Return the figure that a criterion is about; None when the test has none, or too few I/Os for it."""
    return number(metrics_of(criterion, record).get(criterion["metric"]))


def is_met(criterion: Criterion, value: float) -> bool:
    """Return whether a figure keeps the limits."""
    low, high = number(criterion.get("min")), number(criterion.get("max"))
    return (low is None or value >= low) and (high is None or value <= high)


def missed(criteria: t.Iterable[Criterion], model: str, finished: t.Sequence[t.Mapping[str, t.Any]]) -> list[str]:
    """Return what a drive of a model missed, as sentences. finished: test_finished of its tests."""
    found = []
    for criterion in criteria:
        for record in finished if is_of_model(criterion, model) else ():
            value = (
                figure(criterion, record)
                if record["outcome"] in MEASURED and is_for(criterion, record["test"])
                else None
            )
            if value is not None and not is_met(criterion, value):
                limits = [f"{word} {criterion[word]}" for word in ("min", "max") if criterion.get(word) is not None]
                found.append(
                    "{0}: {1} is {2:.6g} ({3})".format(record["test"], criterion["metric"], value, ", ".join(limits))
                )
    return found
