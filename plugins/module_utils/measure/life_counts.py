# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Counts of a drive's life, by the sources that it has for each, and how much they grew between two looks. Pure.

A SATA drive may count the same events in several attributes and in the standard's statistics, and a SAS drive other
events on each page of its error counters. A source that only one of two looks has says nothing of the time between
them, and neither does a count that fell: it was reset.
"""

from __future__ import annotations

import typing as t
from dataclasses import replace

from ..records.environment import Environment
from ..records.health import CountsBySource

NAMES = ("media_errors", "interface_crc_errors", "unsafe_shutdowns")
# The source of a count that a drive has in one place.
TOTAL = "total"

Changes = t.Dict[str, t.Tuple[int, int]]


def of(look: Environment) -> CountsBySource:
    """Return all that a look tells, or stands for."""
    totals = {name: {TOTAL: getattr(look, name)} for name in NAMES if getattr(look, name) is not None}
    return {**totals, **(look.counts_by_source or {})}


def merged(one: CountsBySource, other: CountsBySource) -> CountsBySource:
    """Return the counts of both; where both have one, as the other tells it."""
    return {name: {**one.get(name, {}), **other.get(name, {})} for name in {**one, **other}}


def with_count_of(look: Environment, now: Environment, name: str) -> Environment:
    """Return a look with one count as it is now."""
    return replace(look, counts_by_source=merged(of(look), {name: of(now).get(name, {})}))


def more(before: Environment, now: Environment, name: str) -> int | None:
    """Return by how much a count grew; None: unknown."""
    seen = _seen(before, now, name)
    rises = [other - one for one, other in seen.values() if other > one]
    if not rises and (not seen or fell(before, now, name)):
        return None
    return sum(rises) if now.transport == "sas" else max(rises, default=0)


def rose(before: Environment, now: Environment, name: str) -> Changes:
    """Return the sources that count more, and what they did."""
    return {source: both for source, both in _seen(before, now, name).items() if both[1] > both[0]}


def fell(before: Environment, now: Environment, name: str) -> Changes:
    """Return the sources that count less, and what they did."""
    return {source: both for source, both in _seen(before, now, name).items() if both[1] < both[0]}


def text(changes: Changes) -> str:
    """Changes for people: "2 to 3", "187 Reported_Uncorrect 2 to 3"."""
    return ", ".join(f"{'' if name == TOTAL else name + ' '}{one} to {other}" for name, (one, other) in changes.items())


def _seen(before: Environment, now: Environment, name: str) -> Changes:
    """Return what the sources that both looks have told."""
    one, other = of(before).get(name, {}), of(now).get(name, {})
    return {source: (one[source], count) for source, count in other.items() if source in one}
