# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A criterion on a percentile that too few I/Os lie beyond: it can be neither met nor missed. Pure."""

from __future__ import annotations

import typing as t

from ...module_utils.measure import histogram
from ...module_utils.run.criteria import metrics_of

Mapping = t.Mapping[str, t.Any]


def too_few(criterion: Mapping, record: Mapping, described: str) -> list[str]:
    """Return why a measured test's record has no figure for a criterion on a percentile, as a sentence; empty for any
    other criterion.
    """
    short = histogram.too_few(criterion["metric"], metrics_of(criterion, record))
    if short is None:
        return []
    there, needed = short
    text = (
        f"{criterion['metric']} is unknown: {there:,} I/Os in the window are too few, {needed:,} are needed for "
        f"{histogram.LEAST_BEYOND} beyond it"
        f" ({described}); measure longer, or ask for a lower percentile"
    )
    return [text]
