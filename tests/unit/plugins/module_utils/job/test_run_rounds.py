# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rounds of one test, with a bench that measures nothing."""

from __future__ import annotations

import types

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.job.drive_context import Attempt
from ansible_collections.ssdlab.fleet.plugins.module_utils.job.run_rounds import Measuring
from ansible_collections.ssdlab.fleet.plugins.module_utils.measure.disturbances import DISTURBS
from ansible_collections.ssdlab.fleet.plugins.module_utils.measure.fio_runner import CellRun
from ansible_collections.ssdlab.fleet.plugins.module_utils.measure.histogram import RoundHistograms
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.measurement import Cause
from ansible_collections.ssdlab.fleet.plugins.module_utils.run.reducer import AttemptReducer
from ansible_collections.ssdlab.fleet.tests.fixtures import journal_events, planned, steady_test

RULE = {
    "tracked": [{"cell": "c", "metric": "write_iops"}],
    "window": 3,
    "range_limit": 0.2,
    "slope_limit": 0.1,
    "min_capacity_multiple": 2,
}
TEST = planned.spec(cells=[{"runtime_s": 60}], rounds={"capacity_multiple": 4}, steady_state=RULE)
RESULT = CellRun(journal_events.cell_details(write={**journal_events.FIGURES, "bytes": 100}), {})


class Station:
    """A drive of 80 % of its size until the guard has looked at it after the purge."""

    def __init__(self, after):
        self.held = self.target = types.SimpleNamespace(identity={"size_bytes": 800})
        nothing = {"begin_test": lambda: None, "close": lambda: None}
        self.bench = types.SimpleNamespace(**nothing, cell=lambda *_asked: RESULT)
        self._after = after
        self.reducer = AttemptReducer(TEST)

    def note(self, event, **fields):
        self.reducer.take({"event": event, **fields})

    def guard(self, _step, **_shown):
        self.held.identity = {"size_bytes": self._after}

    def active_bytes(self, _test):
        return self._after

    def __getattr__(self, _name):
        return lambda *_args, **_fields: None


@pytest.mark.parametrize(("after", "written"), [(1000, 2000), (800, 1600), (400, 800)])
def test_the_user_capacity_is_that_after_the_purge(after, written):
    """An ioMemory card is formatted to another size by its purge, and a SAS drive with other blocks."""
    station = Station(after)
    Measuring(station, Attempt("t", 1), station.reducer, RoundHistograms(), list).run(TEST, {})
    shown = station.reducer.result(steady_test.end_record()).saturation
    assert (shown.user_capacity_bytes, shown.written_before_bytes) == (after, written)


def test_what_disturbs_between_two_rounds_disturbs_the_one_that_ends():
    station, looks = Station(800), iter([["the fill's"], [], ["throttled"], *[[]] * 99])
    noted = []
    take = station.note
    station.note = lambda event, **fields: (noted.append({"event": event, **fields}), take(event, **fields))

    def causes_of_round():
        return [Cause("throttled", DISTURBS, text) for text in next(looks)]

    Measuring(station, Attempt("t", 1), station.reducer, RoundHistograms(), causes_of_round).run(TEST, {})
    rounds = [event for event in noted if event["event"] == "round"]
    assert [event["round"] for event in rounds if "causes" in event] == [2]
    (told,) = station.reducer.result(steady_test.end_record()).validity
    assert (told.cause, told.rounds, told.first) == ("throttled", [[2, 2]], "round 2: throttled")
    assert 2 not in station.reducer.span()
