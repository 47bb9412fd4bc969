# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""ssd_health_criteria: its words, lists, and what plan mode says of them."""

from __future__ import annotations

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.measure import health_metrics
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan import health_criteria
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.preflight import variable_rules

DEFAULT = [dict(item) for item in health_metrics.DEFAULT_CRITERIA]
OWN = [{"metric": "media_errors", "max": 2}]


@pytest.mark.parametrize(
    "variables, found",
    [
        ({}, DEFAULT),
        ({"ssd_health_criteria": "default"}, DEFAULT),
        ({"ssd_health_criteria": "none"}, []),
        ({"ssd_health_criteria": OWN}, OWN),
        ({"ssd_health_criteria": []}, []),
        ({"ssd_health_criteria": "default", "ssd_step": "purge"}, []),
    ],
)
def test_what_a_host_asks_for(variables, found):
    assert health_criteria.resolved(variables) == found


@pytest.mark.parametrize(
    "given, is_right",
    [
        ("default", True),
        ("none", True),
        ([], True),
        (OWN, True),
        ("all", False),
        (True, False),
        (["media_errors"], False),
    ],
)
def test_a_value_of_another_kind_is_refused(given, is_right):
    found = [text for text in variable_rules.problems({"ssd_health_criteria": given}) if "ssd_health_criteria" in text]
    assert bool(found) != is_right and all(health_criteria.WANTED in text for text in found)


@pytest.mark.parametrize(
    "criterion, says",
    [
        ({"metric": "media_errors", "max": 0}, ""),
        ({"metric": "throttled_pct", "max": 10}, ""),
        ({"metric": "available_spare_pct", "min": 20, "model": "MTFD*"}, ""),
        ({"metric": "media_error", "max": 0}, "is no metric of health; did you mean media_errors?"),
        ({"metric": "write_iops", "max": 0}, "is no metric of health"),
        ({"metric": "media_errors"}, "has no max, so it passes the worst drive"),
        ({"metric": "available_spare_pct", "max": 20}, "has no min, so it passes the worst drive"),
        ({"metric": "media_errors", "max": "few"}, "max is not a number"),
        ({"metric": "media_errors", "max": -1}, "max is below 0"),
        ({"metric": "media_errors", "max": 0, "cell": "c"}, "has an unknown key cell (known: "),
        ({"metrik": "media_errors", "max": 0}, "number 1 has an unknown key metrik; did you mean metric?"),
    ],
)
def test_what_is_wrong_with_a_list(criterion, says):
    found = health_criteria.problems([criterion])
    assert bool(found) == bool(says) and any(says in text for text in found or [""])


def test_a_metric_has_one_limit_for_a_model():
    given = [{"metric": "media_errors", "max": most} for most in (0, 5)]
    assert health_criteria.problems(given) == ["media_errors is there 2 times; give it once"]
    given[1]["model"] = "MTFD*"
    assert health_criteria.problems(given) == []


def test_they_are_told_in_a_line():
    line = health_criteria.told(DEFAULT)
    assert "media_errors max 0" in line and "longest_io_s max 30 s" in line
    assert health_criteria.told([]) == "none"
