# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import dataclasses

import pytest

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.preflight import percentile_feasibility as feasibility
from ansible_collections.ssdlab.fleet.tests.fixtures import planned

CELL = {"id": "c", "read_pct": 100, "runtime_s": 60, "threads": 1, "queue_depth": 1}


def told(metric, cell=None, transport="nvme", rounds=5, criterion=None):
    tests = [{"cells": [{**CELL, **(cell or {})}], "rounds": {"max": rounds}}]
    drive = planned.drive(drive="D", expected={"model": "M", "transport": transport}, tests=tests)
    plans = {"h": dataclasses.replace(planned.plan_of(), drives=[drive, dataclasses.replace(drive, drive="E")])}
    criteria = [{"metric": metric, "max": 90, **(criterion or {})}]
    warned = [item.message for item in feasibility.warnings(criteria, plans)]
    return [item.message for item in feasibility.findings(criteria, plans)], warned


@pytest.mark.parametrize(
    ("metric", "cell", "refused", "warned"),
    [
        # 1,000 an hour: 1,000 x 60 s x 5 rounds are 300,000 I/Os, and 10 x 10^4 are needed; 10^6 for one nine more.
        ("read_p99_99_latency_us", {"rate_iops": 1000}, False, False),
        ("read_p99_999_latency_us", {"rate_iops": 1000}, True, False),
        # Half of them are reads.
        ("read_p99_99_latency_us", {"rate_iops": 600, "read_pct": 50}, True, False),
        # 20,000 a second at depth 1 are 6 million; at depth 2 it is enough for ten.
        ("read_p99_999_latency_us", {}, False, False),
        ("read_p99_9999_latency_us", {}, False, True),
        ("read_p99_9999_latency_us", {"queue_depth": 2}, False, False),
        # None are writes: that the test has no such figure is another finding.
        ("write_p99_latency_us", {"rate_iops": 1}, False, False),
        ("read_p100_latency_us", {"rate_iops": 1}, False, False),
        ("read_iops", {"rate_iops": 1}, False, False),
    ],
)
def test_a_rate_limit_is_sure_and_what_drives_do_is_a_guess(metric, cell, refused, warned):
    assert tuple(map(len, told(metric, cell))) == (refused, warned)


def test_it_says_which_cell_how_many_and_how_long():
    ((refused,), _none) = told("read_p99_999_latency_us", {"rate_iops": 1000})
    assert "at 1,000 IOPS, its rate limit, cell c makes 300,000 reads in the 5 rounds that count" in refused
    assert "1,000,000 are needed, which would take 17 min" in refused and "lower percentile" in refused
    _none, (warned,) = told("read_p99_9999_latency_us")
    assert "can hardly give it: at 20,000 IOPS, as a good drive does, cell c makes 6,000,000 reads" in warned


@pytest.mark.parametrize("criterion", [{"model": "Other"}, {"test": "other"}, {"cell": "other"}])
def test_a_criterion_on_something_else_is_not_held_against_it(criterion):
    assert told("read_p99_999_latency_us", {"rate_iops": 1000}, criterion=criterion) == ([], [])


@pytest.mark.parametrize(("transport", "warned"), [("sata", 2), ("sas", 2), ("nvme", 0), ("loop", 0)])
def test_throttling_that_most_drives_do_not_count_is_warned_of(transport, warned):
    refused, warnings = told("throttled_pct", transport=transport)
    assert refused == [] and len(warnings) == warned
    assert all("do not count how often they were throttled" in text for text in warnings)
