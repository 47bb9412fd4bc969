# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rounds of one test, with a bench that measures nothing."""

from __future__ import annotations

import time
import types
from dataclasses import replace

import pytest

from ansible_collections.ssdlab.fleet.plugins.module_utils.job.drive_context import Attempt, DriveContext
from ansible_collections.ssdlab.fleet.plugins.module_utils.job.run_rounds import LINK_ROUNDS, LinkDown, Measuring
from ansible_collections.ssdlab.fleet.plugins.module_utils.measure.disturbances import DISTURBS
from ansible_collections.ssdlab.fleet.plugins.module_utils.measure.fio_runner import CellRun
from ansible_collections.ssdlab.fleet.plugins.module_utils.measure.histogram import RoundHistograms
from ansible_collections.ssdlab.fleet.plugins.module_utils.records.identity import Identity
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
        self.held = self.target = types.SimpleNamespace(identity=Identity(size_bytes=800, logical_block_size_bytes=512))
        nothing = {"begin_test": lambda: None, "close": lambda: None}
        self.bench = types.SimpleNamespace(**nothing, cell=lambda *_asked: RESULT)
        self._after = after
        self.looks = 0
        self.kernel_log = types.SimpleNamespace(note_new=self._look_at_log)
        self.reducer = AttemptReducer(TEST)

    def note(self, event, **fields):
        self.reducer.take({"event": event, **fields})

    def _look_at_log(self):
        self.looks += 1

    def guard(self, _step, **_shown):
        self.held.identity = Identity(size_bytes=self._after, logical_block_size_bytes=1)

    def seed(self, *_place):
        return 1

    def active_bytes(self, _test):
        return self._after

    def __getattr__(self, _name):
        return lambda *_args, **_fields: None


def measuring(station, causes_of_round=list, tails=None, wait=lambda: 0.0, clock=time.monotonic):
    tails = tails or RoundHistograms()
    return Measuring(station, Attempt("t", 1), station.reducer, tails, causes_of_round, wait, clock)


@pytest.mark.parametrize(("after", "written"), [(1000, 2000), (800, 1600), (400, 800)])
def test_the_user_capacity_is_that_after_the_purge(after, written):
    """An ioMemory card is formatted to another size by its purge, and a SAS drive with other blocks."""
    station = Station(after)
    measuring(station).run(TEST, {})
    shown = station.reducer.result(steady_test.end_record()).saturation
    assert (shown.user_capacity_bytes, shown.written_before_bytes) == (after, written)


def test_what_the_kernel_says_is_noted_with_each_cell():
    """A round may take an hour, and a sick drive the host with it."""
    station = Station(1000)
    measuring(station).run(TEST, {})
    assert station.looks == station.reducer.count > 1


def test_a_shuffled_test_runs_its_cells_by_their_seeds_of_each_round():
    seeds = {(1, "a"): 3, (1, "b"): 1, (1, "c"): 2, (2, "a"): 1, (2, "b"): 3, (2, "c"): 2}
    test = planned.spec(cells=[{"id": name} for name in "abc"], rounds={"max": 2}, cell_order="shuffled")
    station, ran = Station(800), []
    station.reducer = AttemptReducer(test)
    station.seed = lambda _attempt, number, cell: seeds[number, cell]
    take = station.note
    station.note = lambda event, **fields: (ran.append(fields.get("cell")), take(event, **fields))
    measuring(station).run(test, {})
    assert "".join(filter(None, ran)) == "bca" + "acb" and station.reducer.count == 2


def test_what_disturbs_between_two_rounds_disturbs_the_one_that_ends():
    station, looks = Station(800), iter([["the fill's"], [], ["throttled"], *[[]] * 99])
    noted = []
    take = station.note
    station.note = lambda event, **fields: (noted.append({"event": event, **fields}), take(event, **fields))

    def causes_of_round():
        return [Cause("throttled", DISTURBS, text) for text in next(looks)]

    measuring(station, causes_of_round).run(TEST, {})
    rounds = [event for event in noted if event["event"] == "round"]
    assert [event["round"] for event in rounds if "causes" in event] == [2]
    (told,) = station.reducer.result(steady_test.end_record()).validity
    assert (told.cause, told.rounds, told.first) == ("throttled", [[2, 2]], "round 2: throttled")
    assert 2 not in station.reducer.span()


@pytest.mark.parametrize(("looks", "ended"), [([1] * 9, 3), ([1, 1, 0, 1, 1, 1], 6), ([1, 1, 0] * 9, None)])
def test_a_link_that_stays_down_ends_the_test(looks, ended):
    """One that came back has disturbed its rounds."""
    station, seen = Station(800), iter([0, *looks, *[0] * 99])
    fell = [Cause("link", DISTURBS, "its link fell from 16 GT/s x4 to 16 GT/s x1")]
    made = measuring(station, lambda: fell * next(seen))
    if ended is None:
        made.run(TEST, {})
    else:
        with pytest.raises(LinkDown, match=f"x1, and stayed so for {LINK_ROUNDS} rounds; seat the drive again"):
            made.run(TEST, {})
        assert station.reducer.count == ended


def test_latencies_of_a_disturbed_cell_are_not_kept():
    station, tails = Station(800), RoundHistograms()
    bins = {"": {"write": {100: 5}}}
    busy = {"causes": [{"cause": "host_limited", "level": "disturbs", "message": "busy"}]}
    figures = {**journal_events.FIGURES, "bytes": 100}
    runs = iter(
        [CellRun(journal_events.cell_details(write=figures, **busy), bins)] + [CellRun(RESULT.details, bins)] * 99
    )
    station.bench.cell = lambda *_asked: next(runs)
    measuring(station, tails=tails).run(TEST, {})
    assert tails.merged([1]) == {} and tails.merged([1, 2]) == {"c": {"write": {100: 5}}}


@pytest.mark.parametrize(
    ("disturbed", "spent", "rounds", "outcome"),
    [
        # Four undisturbed rounds are asked for; the budget is checked from the fourth on.
        ([], True, 4, "complete"),
        ([2], False, 5, "complete"),
        ([2], True, 4, "complete"),
        ([1, 2, 3, 4], True, 4, "invalid"),
        ([1, 2, 3, 4, 5, 6, 7, 8], False, 8, "invalid"),
    ],
)
def test_disturbed_rounds_are_measured_again_as_far_as_the_budget_goes(disturbed, spent, rounds, outcome):
    test = planned.spec(cells=[{"runtime_s": 60}], rounds={"max": 4}, steady_state=None)
    station = Station(800)
    station.reducer = AttemptReducer(test)
    station.is_budget_spent = lambda: spent
    looks = iter([[], *([Cause("throttled", DISTURBS, "hot")] * (number in disturbed) for number in range(1, 99))])
    measuring(station, lambda: next(looks)).run(test, {})
    result = station.reducer.result(steady_test.end_record())
    assert (result.rounds, result.outcome) == (rounds, outcome)


def test_a_wait_is_no_time_of_the_rounds():
    """Else it would end a test with a time limit, or bend a curve."""
    test = planned.spec(cells=[{"runtime_s": 60}], rounds={"max": 3}, steady_state=None)
    station, ends, now = Station(800), [], [0.0]
    station.reducer = AttemptReducer(test)
    take, waits = station.note, iter([0.0, 5000.0, 0.0])

    def note(event, **fields):
        ends.extend([fields["elapsed_s"]] if event == "round" else [])
        take(event, **fields)

    def passes(seconds, result=RESULT):
        now[0] += seconds
        return result

    station.note, station.bench.cell = note, lambda *_asked: passes(60)

    def wait():
        seconds = next(waits)
        return passes(seconds, seconds)

    measuring(station, wait=wait, clock=lambda: now[0]).run(test, {})
    assert ends == [60, 120, 180]


def test_an_idle_gap_after_a_wait_of_ours_says_so():
    test = planned.spec(cells=[{"id": "a", "runtime_s": 60}, {"id": "b", "runtime_s": 60}], rounds={"max": 2})
    test = replace(test, steady_state=None)
    station, told, waits = Station(800), [], iter([1e-6, 5000.0])
    station.reducer = AttemptReducer(test)
    gap = {"causes": [{"cause": "idle_gap", "level": "disturbs", "message": "the drive idled for 5001.0 s"}]}
    run = CellRun(journal_events.cell_details(write={**journal_events.FIGURES, "bytes": 100}, **gap), {})
    station.bench.cell = lambda *_asked: run
    take = station.note

    def note(event, **fields):
        told.extend([fields["causes"][0]["message"]] if event == "cell" else [])
        take(event, **fields)

    station.note = note
    measuring(station, wait=lambda: next(waits, 0.0)).run(test, {})
    waited = "the drive idled for 5001.0 s; for 5000 s of it the host job waited for a self-test of the drive"
    assert told[:4] == ["the drive idled for 5001.0 s"] * 2 + [waited, "the drive idled for 5001.0 s"]


HOUR_AGO = 3600.0


@pytest.mark.parametrize(
    ("most_s", "most_bytes", "kernel", "passes_bytes", "spent"),
    [
        (None, None, (0, 10**9), 0, False),
        (3000, None, (0, 0), 0, True),
        (4000, None, (0, 0), 0, False),
        # 200 bytes by jobs of the run before, 100 by the cells of the test that is under way.
        (None, 1000, (500, 1200), 0, False),
        (None, 1000, (500, 1300), 0, True),
        (None, 300, (None, None), 0, True),
        (None, 301, (0, None), 0, False),
        # What an integrity test has written, which no event tells before its end, counts where the kernel does not.
        (None, 1000, (None, None), 799, False),
        (None, 1000, (None, None), 800, True),
        (None, 1000, (500, 1200), 800, False),
    ],
)
def test_a_budget_is_spent_by_time_or_by_bytes(most_s, most_bytes, kernel, passes_bytes, spent):
    station = object.__new__(DriveContext)
    station.job = types.SimpleNamespace(time_budget_s=most_s)
    station.plan = types.SimpleNamespace(wear_budget_bytes=most_bytes)
    station.results = [types.SimpleNamespace(written_bytes=200)]
    station.reducer = types.SimpleNamespace(written_bytes=100)
    station.held = types.SimpleNamespace(bytes_written=lambda: kernel[1])
    station.taken(time.monotonic() - HOUR_AGO, kernel[0])
    assert station.is_budget_spent(passes_bytes) is spent
