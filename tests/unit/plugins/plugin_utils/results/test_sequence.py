# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A journal whose records were left out, added, put in another order or taken from elsewhere does not count."""

from __future__ import annotations

import copy

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.measure import seeds
from ansible_collections.ssdlab.fleet.plugins.plugin_utils.results import proof, sequence
from ansible_collections.ssdlab.fleet.tests.unit.plugins.plugin_utils.results.proven_journals import (
    journal,
    last,
    proved,
    record_of,
)


def cells_of(events):
    return [event for event in events if event["event"] == "cell"]


def swap(events):
    """The figures of two rounds, each with its evidence, under each other's number."""
    one, other = cells_of(events)[2:4]
    for key in ("write", "seen", "seed"):
        one[key], other[key] = other[key], one[key]


def of_another(*names):
    """The rounds of another measurement, as that wrote them."""

    def change(events):
        for cell in cells_of(events):
            cell["seed"] = seeds.seed(*names, cell["round"], "c")

    return change


def end_twice(events):
    events.append(copy.deepcopy(events[-1]))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda events: None, ""),
        (swap, "round 3, c of another measurement"),
        (of_another("r", "other", "t", 1), "round 1, c of another measurement"),
        (of_another("r", "d", "other", 1), "round 1, c of another measurement"),
        (of_another("r", "d", "t", 2), "round 1, c of another measurement"),
        (of_another("r-before", "d", "t", 1), "round 1, c of another measurement"),
        (lambda events: events.remove(last(events, "cell")), "lacks c of round 14"),
        (lambda events: events.insert(1, events.pop(2)), "its journal has round 2, c after round 0"),
        (lambda events: cells_of(events)[-1].update(cell="d"), "its journal has round 14, d, which is not in its plan"),
        (lambda events: events.append(copy.deepcopy(events[1])), ""),  # after the end: the second end would need it
    ],
)
def test_records_follow_each_other_as_the_engine_writes_them(change, says):
    events = journal()
    change(events)
    said = "; ".join(proved(events).wrong)
    assert says in said and bool(said) == bool(says)


def test_a_test_ends_once():
    """A second end with better figures would be told against rounds that nobody looks at any more."""
    events = journal()
    end_twice(events)
    events[-1]["metrics"]["write_iops"] = 9000.0
    record = record_of(events)
    assert "after the end of the test" in proof.problem(record)


def test_a_journal_of_nothing_but_wrong_records_is_not_told_one_by_one():
    made = sequence.Sequence(["c"])
    for number in range(1000):
        made.take({"event": "round", "round": number})
    assert len(made.wrong) == sequence.MOST
