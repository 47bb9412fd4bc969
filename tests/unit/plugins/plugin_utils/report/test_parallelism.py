# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a host tells of how many drives ran at a time has to follow from the shares that it tells."""

from __future__ import annotations

import copy

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.measure import together
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.gate import answers, records, shape
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.results import at_once

DRIVES = ("S0", "S1", "S2", "S3")


def told(most, drives=DRIVES):
    """As a host job tells it of drives of which so many keep what they do alone."""
    alone = {"c1": {drive: [1000.0, 1001.0, 999.0] for drive in drives}}
    trials = []
    while (step := together.next_trial(drives, alone, trials)) is not None:
        share = 1.0 if step[0] <= most else most / step[0]
        parts = [{"c1": {drive: [1000.0 * share] * 3 for drive in group}} for group in together.groups(drives, *step)]
        trials.append(together.Trial(*step, parts if share == 1 else parts[:1]))
    return {**together.decide(drives, alone, trials), "drives": list(drives), "cells": ["c1"], "seconds": 90.5}


@pytest.mark.parametrize("most", [1, 2, 3, 4])
def test_what_the_rule_made_is_true_and_passes_the_gate(most):
    true = told(most)
    assert true["parallel_drives"] == most and at_once.problem(true, DRIVES) == "" == at_once.problem(true)
    host = {"schema_version": 1, "kind": "host", "time": "2026-11-21T13:00:00Z", "run_id": "r", "host": "h"}
    assert records.stored({**host, "state": "ok", "message": "", "calibration": true})["calibration"] == true
    assert answers.passed("run_info", {"runs": [], "calibration": true})["calibration"] == true
    assert len(at_once.lines(true)) == 1 + len(true["trials"])


def test_one_drive_and_a_host_without_figures_are_true_too():
    assert at_once.problem(told(1, ["S0"]), ["S0"]) == ""
    assert at_once.problem({**told(1), "trials": [], "why": "not calibrated: S1: mounted"}, DRIVES) == ""


def test_one_of_an_older_version_is_held_to_what_it_has():
    old = told(2)
    del old["alone"]
    for trial in old["trials"]:
        del trial["confirms"], trial["kept"]
    assert at_once.problem(old, DRIVES) == "" and "no trial confirmed 4 at a time" in at_once.problem(
        {**old, "parallel_drives": 4}
    )


LIES = [
    (lambda lie: lie.update(parallel_drives=4), "no trial confirmed 4 at a time"),
    (lambda lie: lie.update(parallel_drives=9), "9 of 4 drives cannot run"),
    (lambda lie: lie.update(kept_share=0.5), "must keep 98 %, not 50 %"),
    (lambda lie: lie["drives"].append("S9"), "S9, which is not a drive of this run"),
    (lambda lie: lie["trials"][0].update(drive="S9"), "S9, which is not a drive of this run"),
    (lambda lie: lie["trials"][0].update(held=True), "contradicts the reported share"),
    (lambda lie: lie["trials"][-1].update(held=False), "contradicts the reported share"),
    (lambda lie: lie["trials"][0].update(share=1.0, held=True), "the lowest share is none of the drives'"),
    (lambda lie: lie["trials"][-1]["kept"].pop(), "not every drive was measured"),
    (lambda lie: lie["trials"][-1].update(confirms=False), "no trial confirmed 2 at a time"),
    (lambda lie: lie["trials"][0].update(number=40), "there are 4 drives"),
    (lambda lie: lie["trials"].append({**lie["trials"][0], "number": 2}), "although 2 were too many"),
]


@pytest.mark.parametrize(("change", "says"), LIES, ids=[says for _change, says in LIES])
def test_a_lie_is_found_out(change, says):
    lie = copy.deepcopy(told(2))
    change(lie)
    assert says in at_once.problem(lie, DRIVES)


@pytest.mark.parametrize(
    "change", [{"parallel_drives": 0}, {"parallel_drives": True}, {"why": 5}, {"trials": [{}] * 3}, {"seconds": -1}]
)
def test_what_has_another_shape_does_not_pass(change):
    assert answers.passed("run_info", {"runs": [], "calibration": {**told(2), **change}})["failed"]


def test_a_flood_of_trials_costs_the_host_its_own_record_alone():
    flood = {**told(2), "drives": ["S" * 4000 + str(number) for number in range(200)]}
    host = {"schema_version": 1, "kind": "host", "time": "2026-11-21T13:00:00Z", "run_id": "r", "host": "h"}
    stored = records.stored({**host, "state": "ok", "message": "", "calibration": flood})
    assert stored["state"] == "failed" and len(str(stored)) < 2000
    with pytest.raises(shape.Unfit):
        shape.of("results", "calibration").passed({**told(2), "trials": told(2)["trials"] * 99})
