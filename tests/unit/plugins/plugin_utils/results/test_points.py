# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host does not choose the load of a cell that follows a sweep."""

from __future__ import annotations

import copy

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.measure import seeds
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.results import points, proof
from ansible_collections.ssdlab.fleet.tests.unit.plugins.plugin_utils.results.proven_journals import (
    CELL,
    COMMON,
    TEST,
    journal,
)

LOW, HIGH, LEAD, POINT = (
    "rand-4k-w100-tc1-qd4",
    "rand-4k-w100-tc2-qd2",
    "rand-4k-w100-tc9-qd9-lead",
    "rand-4k-w100-most",
)
RULE = {"test": "t-sweep", "take": "most", "mean_latency_below_us": 5000}
OF_LOW = {"cell": LOW, "threads": 1, "queue_depth": 4}
OF_HIGH = {"cell": HIGH, "threads": 2, "queue_depth": 2}
ABOUT = {"t-sweep": {"cells": [LEAD, HIGH, LOW], "leads": [LEAD]}}


def rated(**rates):
    """What a sweep gave: (IOPS, mean latency) of each cell."""
    return [
        {"cell": {"low": LOW, "high": HIGH, "lead": LEAD}[name], "metrics": {"iops": iops, "mean_latency_us": mean}}
        for name, (iops, mean) in rates.items()
    ]


GIVEN = rated(lead=(999, 10), low=(100, 40), high=(900, 60))


@pytest.mark.parametrize(
    ("rule", "averages", "told", "says"),
    [
        (RULE, GIVEN, OF_HIGH, ""),
        (RULE, GIVEN, OF_LOW, "by t-sweep it is {'cell': '" + HIGH),
        (RULE, GIVEN, {**OF_HIGH, "queue_depth": 1}, "by t-sweep it is"),
        (RULE, GIVEN, {"threads": 1, "queue_depth": 1}, "its journal has the load {'threads': 1"),
        (RULE, GIVEN, {}, "its journal has the load {}; by t-sweep"),
        ({**RULE, "take": "fewest"}, GIVEN, OF_LOW, ""),
        (RULE, rated(low=(100, 40), high=(900, 6000)), OF_LOW, ""),
        (RULE, rated(low=(100, 9000), high=(900, 6000)), OF_LOW, "by t-sweep it is None"),
        (RULE, None, OF_HIGH, "its journal has no result of t-sweep before it"),
        # Nobody knows: a run before the rules were kept, or cells whose names tell no load.
        (None, GIVEN, OF_LOW, ""),
        ({**RULE, "test": "streams"}, GIVEN, OF_LOW, ""),
    ],
)
def test_a_point_has_the_load_that_its_sweep_gives(rule, averages, told, says):
    sweeps = {} if averages is None else {("r", "d", "t-sweep"): averages}
    about = {**ABOUT, "streams": {"cells": ["mixed-streams"]}}
    made = points.Points(("r", "d", "t-most"), {POINT: rule} if rule else {}, lambda name: about[name], sweeps)
    found = made.problem(POINT, told)
    assert says in found and bool(found) == bool(says)
    assert made.problem("rand-4k-w100-tc1-qd1", {}) == ""


def of_test(name, cells, **chosen):
    """The journal of a test without a rule, whose cells are all alike."""
    events = []
    for event in journal(dict(TEST, steady_state=None, rounds={"max": 3})):
        named = [copy.deepcopy(event)]
        if "cell" in event:
            named = [{**copy.deepcopy(event), "cell": cell} for cell in cells]
        events += [{**one, "test": name} for one in named]
    for event in events:
        if event["event"] == "cell":
            event["seed"] = seeds.seed("r", COMMON["drive"], name, 1, event["round"], event["cell"])
            event.update({"chosen": chosen} if chosen else {})
    events[-1]["cells"] = [{**events[-1]["cells"][0], "cell": cell} for cell in cells]
    return events


def judged(chosen, sweep=True, change=lambda events: None):
    """What is wrong with the journal of a sweep and a point that has this load."""
    tests = {
        "t-sweep": {"cells": [HIGH, LOW], "rounds": {"max": 3}, "latency_targets_us": TEST["latency_targets_us"]},
        "t-most": {"cells": [POINT], "rounds": {"max": 3}, "points": {POINT: RULE | {"mean_latency_below_us": 1e9}}},
    }
    tests["t-most"]["latency_targets_us"] = TEST["latency_targets_us"]
    run = {"tests": tests, "asked": [{"host": "h", "drive": "d", "not_applicable": {}, "validity_limits": {}}]}
    of_sweep = of_test("t-sweep", [HIGH, LOW])
    change(of_sweep)
    sweeps, wrong = {}, []
    for events in ([of_sweep] if sweep else []) + [of_test("t-most", [POINT], **chosen)]:
        name = events[0]["test"]
        load = {HIGH: {"threads": 2, "queue_depth": 2}, LOW: {}, POINT: {"point": {"test": "t-sweep"}}}
        cells = [{**CELL, "id": cell, **load[cell]} for cell in tests[name]["cells"]]
        made = proof.begin(run, "h", {"cells": cells}, proof.Attempt("r", "d", name, 1), sweeps)
        for event in events:
            made.take(event)
        wrong = made.wrong
    return "; ".join(wrong)


def untold(events):
    """As if nothing of it qualified: its end does not tell what a rule goes by."""
    for item in (events[-1], *events[-1]["cells"]):
        item["metrics"] = {name: value for name, value in item["metrics"].items() if name not in points.FIGURES}


def test_the_journal_of_a_sweep_chooses_the_load_of_a_point():
    """Its cells are equally good, so it is the first one."""
    assert judged(OF_HIGH) == ""
    assert f"round 1, {POINT}: its journal has the load {OF_LOW}; by t-sweep it is {OF_HIGH}" in judged(OF_LOW)
    assert judged(OF_HIGH, change=untold) == "" != judged(OF_LOW, change=untold)
    assert "its journal has no result of t-sweep before it" in judged(OF_HIGH, sweep=False)
