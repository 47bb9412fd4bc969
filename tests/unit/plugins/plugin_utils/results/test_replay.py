# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rounds of a journal give the window that the engine took, or the test does not count."""

from __future__ import annotations

import pytest

from ansible_collections.ssdlab.fleet.plugins.plugin_utils.results import replay
from ansible_collections.ssdlab.fleet.tests.unit.plugins.plugin_utils.results.proven_journals import (
    RULE,
    TEST,
    figures_of_window,
    journal,
    proved,
)

PLAIN = {**TEST, "steady_state": {**RULE, "min_capacity_multiple": 0, "confirm_windows": 0}}
NO_RULE = {**TEST, "steady_state": None, "rounds": {"max": 30}, "last_rounds": 5}


def longer(test, rounds):
    """A journal of an honest host whose rule was another: it went on."""
    return journal({**test, "steady_state": {**test["steady_state"], "settle_s": 60 * (rounds - 5)}})


def lucky(events, last):
    """Let the figures be those of the window that ends with a round, all that follows from it included."""
    figures_of_window(events, list(range(last - 4, last + 1)))


def test_a_test_that_went_on_until_a_better_window_does_not_count():
    assert proved(journal(PLAIN), test=PLAIN).wrong == []
    wrong = "; ".join(proved(longer(PLAIN, 12), test=PLAIN).wrong)
    assert "its journal has 12 rounds, and the test ends after round 5" in wrong


def test_an_earlier_window_than_that_of_the_end_does_not_count():
    events = longer(PLAIN, 12)
    lucky(events, 8)
    test = {**PLAIN, "steady_state": {**PLAIN["steady_state"], "settle_s": 60 * 7}}
    assert "its figures come from the rounds 4 to 8, but its journal gives 8 to 12" in "; ".join(
        proved(events, test=test).wrong
    )


@pytest.mark.parametrize(("rounds", "says"), [(30, ""), (6, "its test ended after round 6, before")])
def test_a_test_without_a_rule_lasts_as_long_as_the_run_asks(rounds, says):
    """A write for eight hours that ended after minutes would have the fresh drive's rate."""
    wrong = "; ".join(proved(journal({**NO_RULE, "rounds": {"max": rounds}}), test=NO_RULE).wrong)
    assert says in wrong and bool(says) == bool(wrong)


def test_a_window_of_rounds_that_there_are_not_does_not_count():
    events = journal()
    events[-1]["steady_state"][0]["window_rounds"] = [101, 102, 103, 104, 105]
    assert "its figures come from rounds that its journal does not have" in "; ".join(proved(events).wrong)


def test_fewer_rounds_than_the_journal_has_do_not_count():
    events = longer(PLAIN, 12)
    lucky(events, 8)
    events[-1]["rounds"] = 8
    assert "8 rounds are reported, its journal has 12" in "; ".join(proved(events, test=PLAIN).wrong)


def test_tracked_variables_have_one_window():
    test = {**TEST, "steady_state": {**RULE, "tracked": [*RULE["tracked"], {"cell": "c", "metric": "write_bandwidth"}]}}
    events = journal(test)
    assert proved(events, test=test).wrong == []
    shifted = events[-1]["steady_state"][1]
    shifted["window_rounds"] = [number - 5 for number in shifted["window_rounds"]]
    assert "windows of different rounds" in "; ".join(proved(events, test=test).wrong)


def test_whole_milliseconds_of_a_journal_are_no_contradiction():
    """The engine ended at 60.0004 s or went on at 59.9996 s: its journal says 60.0 of both."""
    about = {"rounds": {"time_limit_s": 60}, "steady_state": None}
    for rounds in (1, 2):
        played = [replay.Played({"c": {}}, 0, 60.0 * number, False) for number in range(1, rounds + 1)]
        assert replay.problem(played, about, list(range(1, rounds + 1)), None) == ""
    early = [replay.Played({"c": {}}, 0, 50.0, False)]
    assert "before" in replay.problem(early, about, [1], None)


def test_what_a_run_does_not_tell_is_not_asked():
    played = [replay.Played({"c": {}}, 0, 1.0, False)]
    assert replay.problem(played, {}, [1], None) == ""
    assert replay.problem(played, {"rounds": {"max": None, "capacity_multiple": 4}}, [1], None) == ""
