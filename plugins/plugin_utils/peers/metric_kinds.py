# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which way a metric is bad, and on which scale its spread is told. Pure."""

from __future__ import annotations

import re

from ...module_utils.measure import health_metrics, hidden_variation
from ...module_utils.measure.rounds import FITTED_END

_TAIL = re.compile(r"(^|_)(p9[0-9](_[0-9]+)?|max)_latency_us$")


def is_compared(metric: str) -> bool:
    """Return whether drives are compared by a metric: not by how many I/Os there were, which says how long a window
    was, and not by what is 0 on most drives and has a limit of its own, or by a drive's health.
    """
    return not (metric.endswith("_ios") or metric in hidden_variation.LIMITS or metric in health_metrics.TABLE)


def is_latency(metric: str) -> bool:
    """More of it is worse; of every other figure less is."""
    return metric.removesuffix(FITTED_END).endswith("latency_us")


def is_tail(metric: str) -> bool:
    """Return a percentile from the 90th on, or the maximum: its spread is even on a log scale only."""
    return bool(_TAIL.search(metric))


def is_rate(metric: str) -> bool:
    """I/Os or bytes in a time: what people know a drive by."""
    return metric.removesuffix(FITTED_END).endswith(("iops", "bandwidth"))
