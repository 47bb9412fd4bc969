# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a figure has to keep: a criterion of ssd_criteria, of ssd_health_criteria, or of a file."""

from __future__ import annotations

import typing as t
from dataclasses import dataclass

from .base import Json, OrMissing, Text

# As it was given; an inventory may write a number as text.
Limit = t.Union[float, str, None]


@dataclass(frozen=True)
class Criterion:
    """What a figure has to keep, once it was checked (plugin_utils/verdict/judged_criteria.py). Plans and run.json have
    it as it was given.
    """

    metric: Text
    # Shell pattern; without it, every test that has the metric.
    test: OrMissing[str] = None
    min: Limit = None
    max: Limit = None
    # A share of the median of the drive's peers.
    min_of_median: Limit = None
    max_of_median: Limit = None
    # A share of what this drive had in the run `baseline`.
    min_of_baseline: Limit = None
    max_of_baseline: Limit = None
    # The id of a run.
    baseline: t.Optional[str] = None
    # Where the limit comes from, such as a datasheet's page.
    source: t.Optional[str] = None
    # Shell pattern over the drive's model.
    model: OrMissing[str] = None
    # A cell's id; without it, the test's figures.
    cell: t.Optional[str] = None

    JSON_SCHEMA: t.ClassVar[Json] = {
        "anyOf": [
            {"required": ["min"]},
            {"required": ["max"]},
            {"required": ["min_of_median"]},
            {"required": ["max_of_median"]},
            {"required": ["min_of_baseline", "baseline"]},
            {"required": ["max_of_baseline", "baseline"]},
        ],
        "additionalProperties": False,
    }
