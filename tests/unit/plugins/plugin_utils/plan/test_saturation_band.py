# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which drives can end wsat, hir and dirth in steady state at all: the shipped tests, and drives of one constant rate.

A line that begins with "Wrong:" names a known fault (tests/machines/README.md).
"""

from __future__ import annotations

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.measure.rounds import Rounds
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.plan.render_plan import load_plan
from ansible_collections.ssdlab.fleet.tests.fixtures import planned

CELL = "writes"
# A round of a minute takes a little more.
RUNTIME_S, ROUND_S = 60, 60.4


def outcome(test, capacity_tb, kiops):
    """The outcome of a test on a drive that writes 4 KiB at one rate throughout, and the hours it took."""
    iops = kiops * 1000
    tracked = [{"cell": CELL, "metric": "write_iops"}]
    test = {
        **test,
        "cells": [{**test["cells"][0], "id": CELL}],
        "steady_state": {**test["steady_state"], "tracked": tracked},
    }
    rounds = Rounds(planned.spec(**test), int(capacity_tb * 1e12))
    count = 0
    while not rounds.finished():
        count += 1
        rounds.add({CELL: {"write_iops": iops, "iops": iops}}, count * int(iops * 4096 * RUNTIME_S), count * ROUND_S)
    return rounds.outcome()[0], count * ROUND_S / 3600


@pytest.mark.parametrize("name", ["wsat", "hir", "dirth"])
def test_the_limits_are_the_same_for_every_drive(name):
    """Wrong: minutes between samples and multiples of the capacity fit each other at few rates only."""
    test = load_plan([name])[0]
    rule = {key: test["steady_state"][key] for key in ("window", "sample_every", "min_capacity_multiple")}
    assert rule == {"window": 5, "sample_every": 30, "min_capacity_multiple": 2}
    assert test["rounds"] == {"max": None, "capacity_multiple": 4, "time_limit_s": 86400}


@pytest.mark.parametrize(
    "capacity_tb, kiops, expected, hours",
    [
        (1.92, 50, "steady", 10.1),
        (3.84, 100, "steady", 10.1),
        (7.68, 215, "steady", 9.6),
        (15.36, 250, "steady", 13.1),
        (30.72, 300, "steady", 18.6),
        # Wrong: too fast: 4 times the capacity is written before a window of samples follows the second time.
        (0.96, 30, "not_steady", 8.7),
        (0.96, 85, "not_steady", 3.1),
        (1.92, 130, "not_steady", 4.0),
        (3.2, 390, "not_steady", 2.2),
        (3.84, 180, "not_steady", 5.8),
        (7.68, 400, "not_steady", 5.3),
        # Wrong: too slow: a day ends before twice the capacity is written.
        (7.68, 30, "not_steady", 24.0),
        (15.36, 60, "not_steady", 24.0),
        (30.72, 120, "not_steady", 24.0),
    ],
)
def test_a_constant_rate_may_never_be_steady(capacity_tb, kiops, expected, hours):
    (test,) = load_plan(["wsat"])
    found, took_h = outcome(test, capacity_tb, kiops)
    assert (found, round(took_h, 1)) == (expected, hours)


@pytest.mark.parametrize(
    "capacity_tb, lowest, highest",
    [
        (0.48, 3.5, 13.5),
        (0.96, 7.0, 27.0),
        (1.92, 14.0, 54.5),
        (3.84, 27.5, 109.5),
        (7.68, 55.0, 219.5),
        (15.36, 110.0, 439.0),
        (30.72, 219.5, 878.5),
    ],
)
def test_the_band_of_rates_that_can_be_steady(capacity_tb, lowest, highest):
    """Wrong: of drives of any constant rate, only those of 7.2 to 28.5 kIOPS for each TB."""
    (test,) = load_plan(["wsat"])
    inside = {outcome(test, capacity_tb, kiops)[0] for kiops in (lowest, (lowest + highest) / 2, highest)}
    outside = {outcome(test, capacity_tb, kiops)[0] for kiops in (lowest - 0.5, highest + 0.5, 2 * highest)}
    assert (inside, outside) == ({"steady"}, {"not_steady"})
