# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a host's calibration looks like in the report, and what of it passes the gate."""

from __future__ import annotations

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.measure import parallelism_search
from ansible_collections.ssdlab.fleet.plugins.module_utils.records import events
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.common import json_schema
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.report import parallelism_text
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.validation import record_check, sanitizer

DRIVES = ("S0", "S1", "S2", "S3")


def told(most, drives=DRIVES):
    """As a host job tells it of drives of which so many keep what they do alone."""
    alone = {"c1": {drive: [1000.0, 1001.0, 999.0] for drive in drives}}
    trials = []
    while (step := parallelism_search.next_trial(drives, alone, trials)) is not None:
        share = 1.0 if step[0] <= most else most / step[0]
        parts = [
            {"c1": {drive: [1000.0 * share] * 3 for drive in group}}
            for group in parallelism_search.groups(drives, *step)
        ]
        trials.append(parallelism_search.Trial(*step, parts if share == 1 else parts[:1]))
    return {
        **parallelism_search.decide(drives, alone, trials),
        "drives": list(drives),
        "cells": ["c1"],
        "seconds": 90.5,
    }


CALIBRATION = sanitizer.Shape(json_schema.of(events.Calibration))
HOST = {"schema_version": 1, "kind": "host", "time": "2026-11-21T13:00:00Z", "run_id": "r", "host": "h", "state": "ok"}


@pytest.mark.parametrize("most", [1, 2, 3, 4])
def test_what_the_rule_made_passes_the_gate_and_is_shown(most):
    true = told(most)
    assert true["parallel_drives"] == most
    assert record_check.stored({**HOST, "message": "", "calibration": true})["calibration"] == true
    assert CALIBRATION.passed(true) == (true, 0)
    first, *trials = parallelism_text.lines(true)
    assert first == f"{most}: {true['why']}" and len(trials) == len(true["trials"])


def test_a_trial_with_too_few_figures_says_so():
    shown = {"number": 3, "confirms": True, "cell": "c1", "drive": "S1", "share": None}
    lines = parallelism_text.lines({"parallel_drives": 1, "why": "S1 is slow", "trials": [shown]})
    assert lines == ["1: S1 is slow", "with 3 together beside all neighbours, S1 has too few figures for c1"]


@pytest.mark.parametrize(
    "change", [{"parallel_drives": 0}, {"parallel_drives": True}, {"why": 5}, {"trials": [{}] * 3}, {"seconds": -1}]
)
def test_what_has_another_shape_does_not_pass(change):
    with pytest.raises(sanitizer.Unfit):
        CALIBRATION.passed({**told(2), **change})


def test_a_flood_of_trials_costs_the_host_its_own_record_alone():
    flood = {**told(2), "drives": ["S" * 4000 + str(number) for number in range(200)]}
    stored = record_check.stored({**HOST, "message": "", "calibration": flood})
    assert stored["state"] == "failed" and len(str(stored)) < 2000
    with pytest.raises(sanitizer.Unfit):
        sanitizer.shape_of("results", "calibration").passed({**told(2), "trials": told(2)["trials"] * 99})
