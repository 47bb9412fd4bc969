# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a plan takes on all drives of a host, and of the fleet: how long, how much is written, which share of a drive's
rated life that is. Pure.
"""

from __future__ import annotations

import datetime
import typing as t

from ...module_utils.records.plan import Plan
from ..common import units
from ..common.units import plan_duration_span

Span = tuple[float, float]


class Worn(t.NamedTuple):
    """What a plan writes to a drive in bytes, at least and at most, and its rated life; None: not known."""

    least: float
    most: float
    rated: float | None


class Total(t.NamedTuple):
    """Of all drives of a host. how: in words, how they take this time."""

    drives: int
    low_s: float
    high_s: float
    how: str
    worn: t.Sequence[Worn]


def of_host(plan: Plan, spans: t.Sequence[Span], reads_s: Span, worn: t.Sequence[Worn] = ()) -> Total:
    """Return that of a host. spans: the time of each drive without the reads, in s; reads_s: that of the reads."""
    if not spans:
        return Total(0, 0.0, 0.0, "", worn)
    low, high = ([span[end] for span in spans] for end in (0, 1))
    most = min(plan.parallel_drives, len(spans))
    least = min(plan.together.otherwise, most) if plan.together else most
    # Nobody knows which drive comes last.
    longest_s = sum(high) / least + max(high) * (1 - 1 / least) if least < len(spans) else max(high)
    shortest_s, longest_s = reads_s[0] + max(*low, sum(low) / most), reads_s[1] + longest_s
    numbers = f"{most}" if least == most else f"{least} to {most}"
    how = f"{plan_duration_span(shortest_s, longest_s)}, {numbers} at a time"
    return Total(len(spans), shortest_s, longest_s, how, worn)


def host_lines(total: Total) -> list[str]:
    """Return the line of a host; none for a single drive."""
    return [f"  all {total.drives} drives: {total.how}{_worn(total.worn)}"] if total.drives > 1 else []


def fleet_lines(totals: t.Sequence[Total], now: datetime.datetime) -> list[str]:
    """Return the line of the fleet; none for a single host. now: in UTC."""
    if len(totals) < 2:
        return []
    low_s, high_s = max(total.low_s for total in totals), max(total.high_s for total in totals)
    by = [now + datetime.timedelta(seconds=seconds) for seconds in (low_s, high_s)]
    ends = list(dict.fromkeys(f"{moment:%Y-%m-%d %H:%M}" for moment in by))
    drives, worn = sum(total.drives for total in totals), [one for total in totals for one in total.worn]
    took = f"{plan_duration_span(low_s, high_s)}, done by {' to '.join(ends)} UTC if it starts now"
    return [f"All {drives} drives of {len(totals)} hosts: {took}{_worn(worn)}"]


def _worn(worn: t.Sequence[Worn]) -> str:
    """Return how much is written, and the share of a rated life where all are known."""
    most = sum(one.most for one in worn)
    if not most:
        return ""
    written = "; writes at most " + units.data_size(most)
    shares = [100 * one.most / one.rated for one in worn if one.rated]
    return written + (f", {max(shares):.2g} % of a drive's rated life" if len(shares) == len(worn) else "")
