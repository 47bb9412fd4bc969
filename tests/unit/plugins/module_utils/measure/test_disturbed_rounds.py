# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import dataclasses

from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.ssdlab.fleet.plugins.module_utils.measure.disturbed_rounds import (
    DisturbedRounds,
    ranges,
    sentence,
)
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.attempt import Disturbance
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.measurement import Cause

BUSY = Cause("other_io", "disturbs", "another process wrote")
UNSURE = Cause("other_io", "unknown", "nobody counts")


def test_rounds_are_told_by_cause_with_what_was_seen_first():
    tally = DisturbedRounds()
    for number, causes in (
        (1, []),
        (2, [UNSURE]),
        (3, [BUSY]),
        (4, [dataclasses.replace(BUSY, message="later"), UNSURE]),
        (5, []),
        (6, [BUSY]),
    ):
        tally.add(number, "a", causes)
        tally.add(number, "b", causes)
    assert [number for number in range(1, 7) if tally.has(number)] == [3, 4, 6]
    unsure, busy = tally.disturbances()
    assert busy == Disturbance("other_io", "disturbs", [[3, 4], [6, 6]], 3, "round 3, a: another process wrote")
    assert unsure.rounds == [[2, 2], [4, 4]]
    assert sentence(busy) == "other I/O in rounds 3-4, 6 (3 in all): round 3, a: another process wrote"
    tally.add(7, "a", [dataclasses.replace(BUSY, cause="idle_gap")])
    assert tally.summary(7) == "other I/O in 3 of 7 rounds (round 3, a: another process wrote); idle gap in 1"


def test_many_rounds_make_no_endless_sentence():
    tally = DisturbedRounds()
    for number in range(1, 1440, 2):
        tally.add(number, "a", [BUSY])
    told = sentence(tally.disturbances()[0])
    assert len(told) < 120 and "…" in told


@given(st.sets(st.integers(1, 300)))
def test_ranges_hold_exactly_their_numbers(numbers):
    found = ranges(sorted(numbers))
    assert {number for first, last in found for number in range(first, last + 1)} == numbers
    assert all(one[1] + 1 < other[0] for one, other in zip(found, found[1:]))


def test_one_round_is_one():
    assert sentence(Disturbance("idle_gap", "disturbs", [[7, 7]], 1, "x")) == "idle gap in round 7 (1 in all): x"


def test_a_cell_that_decides_nothing_disturbs_no_round_by_what_is_its_own():
    tally = DisturbedRounds()
    own = dataclasses.replace(BUSY, cause="host_limited")
    tally.add(1, "a", [own], decides=False)
    tally.add(2, "a", [BUSY], decides=False)
    tally.add(3, "b", [own])
    assert [number for number in (1, 2, 3) if tally.has(number)] == [2, 3]
    assert [item.count for item in tally.disturbances()] == [2, 1]
    assert tally.summary(3).startswith("other I/O in 1 of 3 rounds") and tally.summary(3).endswith("; host busy in 1")
