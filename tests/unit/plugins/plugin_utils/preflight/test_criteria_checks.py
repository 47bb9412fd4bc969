# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Criteria before a run; what preflight makes of them is in test_decision_criteria.py."""

from __future__ import annotations

import dataclasses
import re

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.measure import (
    fio_result,
    health_metrics,
    hidden_variation,
    histogram,
)
from ansible_collections.ssdlab.fleet.plugins.module_utils.records import base
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.attempt import METRIC_PATTERN
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.measurement import Figures
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.common.schema import COLLECTION, load
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.preflight import criteria_checks
from ansible_collections.ssdlab.fleet.tests.fixtures import journal_events, planned


def test_the_known_metrics_are_those_that_a_cell_gives():
    template = (COLLECTION / "roles" / "workload" / "templates" / "job.fio.j2").read_text(encoding="utf-8")
    percentiles = re.search(r"percentile_list=(\S+)", template).group(1).split(":")
    side = base.parse(Figures, journal_events.FIGURES)
    assert histogram.PERCENTILES == tuple(percentiles)
    assert set(criteria_checks.MEASURED) == set(fio_result.metrics(side, side, side, side)) | set(
        histogram.metrics({name: {1: 1} for name in fio_result.SIDES})
    )
    tracked = load("test")["properties"]["steady_state"]["properties"]["tracked"]["items"]["properties"]["metric"][
        "enum"
    ]
    assert set(criteria_checks.METRICS) - set(criteria_checks.MEASURED) == {
        *(metric + "_fitted_end" for metric in tracked),
        *hidden_variation.LIMITS,
        *health_metrics.TABLE,
        *health_metrics.TABLE,
    }


@pytest.mark.parametrize(
    ("criterion", "runtime_s", "lacks"),
    [
        ({"metric": "throttled_pct", "max": 0}, 1, False),
        ({"metric": "throttled_pct", "max": 0, "cell": "c4096"}, 1, True),
        ({"metric": "slowest_second_pct", "max": 50}, 15, False),
        ({"metric": "slowest_second_pct", "max": 50, "cell": "c4096"}, 15, False),
        ({"metric": "slowest_second_pct", "max": 50}, 4, True),
        ({"metric": "alternation_pct", "max": 5}, 4, True),
    ],
)
def test_what_averages_hide_takes_rounds_and_cells_that_can_show_it(criterion, runtime_s, lacks):
    cells = [{"id": "c4096", "read_pct": 0, "runtime_s": runtime_s}]
    tests = [{"cells": cells, "rounds": {"max": 3}}]
    drives = [planned.drive(drive="D", expected={"model": "M"}, tests=tests)]
    plans = {"h": dataclasses.replace(planned.plan_of(), drives=drives)}
    told = criteria_checks.findings([criterion], [], {"h": ["t"]}, plans)
    assert [("docs/validity.md" in finding.message) for finding in told] == [True] * lacks


def drive(block_sizes=(4096, 8192)):
    cells = [{"id": f"c{size}", "block_size_bytes": size, "read_pct": 0} for size in block_sizes]
    return planned.drive(drive=f"D{len(cells)}", expected={"model": "M"}, tests=[{"cells": cells}])


@pytest.mark.parametrize(
    ("drives", "where"),
    [([drive(), drive((8192,))], ["h: drive D1: "]), ([drive((8192,)), drive((8192,))], ["h: ssd_"])],
)
def test_a_cell_that_a_drive_cannot_do_is_told_for_that_drive_or_once_for_all(drives, where):
    found = criteria_checks.findings(
        [{"metric": "iops", "cell": "c4096", "min": 1}],
        [],
        {"h": ["t"]},
        {"h": dataclasses.replace(planned.plan_of(), drives=drives)},
    )
    assert [finding.text().startswith(text) for finding, text in zip(found, where)] == [True] and len(found) == 1


@pytest.mark.parametrize(
    "metric, targets, fine",
    [
        ("write_within_1ms_pct", [1000, 2000], True),
        ("within_2ms_pct", [1000, 2000], True),
        ("write_within_250us_pct", [250], True),
        ("write_within_3ms_pct", [1000], False),
        ("read_within_1ms_pct", [1000], False),
        ("write_within_1ms", [1000], False),
    ],
)
def test_a_share_is_of_a_time_that_the_test_asks_for(metric, targets, fine):
    one = drive()
    test = dataclasses.replace(one.tests[0], latency_targets_us=targets)
    plan = dataclasses.replace(planned.plan_of(), drives=[dataclasses.replace(one, tests=[test])])
    found = criteria_checks.findings([{"metric": metric, "min": 99}], [], {"h": ["t"]}, {"h": plan})
    assert (found == []) == fine


@pytest.mark.parametrize("limit_us", [1, 250, 999, 1000, 1500, 2000, 17_000_000])
def test_every_share_has_a_name_that_is_known(limit_us):
    (name,) = (
        set(histogram.metrics({"read": {1: 1}}, [limit_us]))
        - set(histogram.metrics({"read": {1: 1}}))
        - {"read_" + histogram.within_metric(limit_us)}
    )
    assert criteria_checks.WITHIN.fullmatch(name)[1] == name
    assert re.fullmatch(METRIC_PATTERN.strip("^$"), "write_" + name)
