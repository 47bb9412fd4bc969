# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Count, mean and standard deviation of several groups as those of one. Pure."""

from __future__ import annotations

import math
import typing as t


class Moments(t.NamedTuple):
    """ios: how many latencies. deviation: as fio's `stddev`, by n - 1; 0 of a single one."""

    ios: int
    mean: float
    deviation: float


def pooled(groups: t.Iterable[Moments]) -> Moments:
    """Return all of them as one group."""
    some = [group for group in groups if group.ios]
    count = sum(group.ios for group in some)
    if not count:
        return Moments(0, 0.0, 0.0)
    mean = sum(group.mean * group.ios for group in some) / count
    squares = sum((group.ios - 1) * group.deviation**2 + group.ios * (group.mean - mean) ** 2 for group in some)
    return Moments(count, mean, math.sqrt(squares / (count - 1)) if count > 1 else 0.0)


def of_all(group: Moments) -> float:
    """Return the standard deviation by n, as a histogram gives it."""
    return group.deviation * math.sqrt((group.ios - 1) / group.ios) if group.ios else 0.0
