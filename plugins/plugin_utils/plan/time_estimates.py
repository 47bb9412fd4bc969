# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long tests take, and which of a plan fit into a time budget. Pure."""

from __future__ import annotations

import re
import typing as t

from ...module_utils.drive import self_test
from ...module_utils.measure import thread_choice
from ...module_utils.measure.rounds import CELL_OVERHEAD_S, MOST_TIMES, cell_s
from ...module_utils.purge import methods
from ...module_utils.records.identity import Identity
from ...module_utils.records.plan import PlannedPowerCut, PlannedTest, SteadyStateRule

# A purge by command is fast next to writing the drive in full; nobody knows how fast before it was done once.
SHARE_OF_FILL = 0.1
BUDGET = re.compile(r"\s*([0-9]{1,6}(?:\.[0-9]{1,3})?)\s*(min|h|d)\s*")
UNIT_S = {"min": 60, "h": 3600, "d": 86400}
# To write and to read back as much, of one CPU (docs/integrity.md has the bench).
READ_BACK_CPU_S_PER_GIB = 0.6
# Of a server, until ssh answers; of a drive in its slot.
USUAL_BOOT_S = {"hard": 180, "warm": 120, "pull": 10}


def budget_s(value: t.Any) -> float | None:
    """Seconds of ssd_time_budget: 90min, 2h, 1.5d; None: no budget, or what preflight tells of."""
    match = BUDGET.fullmatch(value) if isinstance(value, str) else None
    return float(match[1]) * UNIT_S[match[2]] if match and float(match[1]) > 0 else None


def fill_bytes(test: PlannedTest, identity: Identity) -> int:
    """Return what the fill of a test writes, but for a pass that is read back."""
    return _passes_bytes(test.precondition.passes, test, identity) if test.precondition else 0


def read_back_bytes(test: PlannedTest, identity: Identity, bytes_per_s: float) -> int:
    """Return what a test writes and reads back, each as much, at most on a drive of this rate."""
    return _passes_bytes(_read_back_passes(test, identity, bytes_per_s), test, identity)


def heat_s(test: PlannedTest, identity: Identity, bytes_per_s: float) -> float:
    """Return how long a test does random I/O between its passes, at most on a drive of this rate."""
    return test.integrity.heat_s * (_read_back_passes(test, identity, bytes_per_s) - 1) if test.integrity else 0.0


def _read_back_passes(test: PlannedTest, identity: Identity, bytes_per_s: float) -> int:
    # Reading back is no slower than writing.
    pass_s = 2 * _passes_bytes(1, test, identity) / bytes_per_s
    return test.integrity.most_passes(pass_s) if test.integrity else 0


def _passes_bytes(passes: int, test: PlannedTest, identity: Identity) -> int:
    return passes * test.active_range_bytes(*identity.sizes())


def purge_share(method: str) -> float:
    """Return how long a purge takes as a share of the time to write the drive once."""
    if method == "none":
        return 0.0
    return 1.0 if method in methods.METHODS and methods.METHODS[method].slow else SHARE_OF_FILL


def span_s(
    test: PlannedTest, identity: Identity, bytes_per_s: float, share: float | None = None
) -> tuple[float, float]:
    """Shortest and longest time of a test on a drive, purge and fill included, if no round is disturbed. share:
    purge_share of the method, where it is known better.
    """
    share = purge_share(test.purge.method) if share is None else share
    size_bytes, _block = identity.sizes()
    purge_s = size_bytes / bytes_per_s * share
    if test.self_test:
        # An extended one reads the drive's media, at a pace of its own.
        is_short = test.self_test == self_test.SHORT
        return 0.0, purge_s + (self_test.SHORT_S if is_short else size_bytes / bytes_per_s)
    if test.power_cut:
        shortest, longest = power_cuts_s(test.power_cut)
        return shortest, purge_s + longest
    fill_s = (fill_bytes(test, identity) + 2 * read_back_bytes(test, identity, bytes_per_s)) / bytes_per_s
    fill_s += test.integrity.between_s(_read_back_passes(test, identity, bytes_per_s)) if test.integrity else 0
    shortest, longest = rounds_s(test, size_bytes / bytes_per_s) if test.cells else (0.0, 0.0)
    if test.scrub:
        # The last part of a drive may be short.
        longest += test.scrub.duration_s
    longest += test.in_service.patience_s if test.in_service else 0
    # A purge by command may be over at once.
    return (purge_s if share >= 1 else 0.0) + fill_s + shortest, purge_s + fill_s + trials_s(test) + longest


def power_cuts_s(asked: PlannedPowerCut) -> tuple[float, float]:
    """Return the shortest and longest time of the power cuts of a test, of a host that takes no longer than usual, or
    all that it may, to come back.
    """
    shortest_s = asked.min_write_s + min(USUAL_BOOT_S[asked.mode], asked.back_s)
    return asked.cycles * shortest_s, float(asked.cycles * (asked.max_write_s + asked.back_s))


def trials_s(test: PlannedTest) -> float:
    """Return the longest time that finding the threads of cells with threads: auto takes."""
    auto = {(cell.access, cell.block_size_bytes, cell.queue_depth) for cell in test.cells if cell.auto_threads}
    # Twice as many threads each time.
    trials = sum(depth.bit_length() for _access, _size, depth in auto)
    return trials * (thread_choice.TRIAL_S + CELL_OVERHEAD_S)


def repeats_s(test: PlannedTest, capacity_s: float) -> float:
    """Return how much longer a test may take at most as disturbed rounds are measured again."""
    return rounds_s(test, capacity_s, MOST_TIMES)[1] - rounds_s(test, capacity_s)[1] if test.cells else 0.0


def rounds_s(test: PlannedTest, capacity_s: float, times: int = 1) -> tuple[float, float]:
    """Shortest and longest time of the rounds; `capacity_s`: to write the user capacity once at the assumed rate;
    times: how often rounds.max may be measured.
    """
    rounds, steady = test.rounds, test.steady_state
    round_s = sum(cell_s(cell) + CELL_OVERHEAD_S for cell in test.cells)
    bounds = []
    if rounds.max:
        bounds.append(times * rounds.max * round_s)
    if rounds.time_limit_s:
        bounds.append(rounds.time_limit_s + round_s)
    by_bytes_s = rounds.capacity_multiple * capacity_s + round_s if rounds.capacity_multiple else None
    # The others count from the round by whose end as much is written.
    before_s = rounds.least_capacity_multiple * capacity_s + round_s if rounds.least_capacity_multiple else 0.0
    longest = before_s + min(bounds) if bounds else by_bytes_s or 0.0
    first_s = _first_steady_s(steady, test.after_steady_rounds, round_s, capacity_s) if steady else None
    chances = [longest, *([first_s] if first_s else []), *([by_bytes_s] if by_bytes_s else [])]
    return min(chances), longest


def _first_steady_s(steady: SteadyStateRule, after_rounds: int, round_s: float, capacity_s: float) -> float:
    """When a test can be over at the earliest: its windows begin once the drive can have left its fresh state."""
    before_s = max(steady.settle_s, steady.min_capacity_multiple * capacity_s)
    return before_s + (steady.least_rounds + after_rounds) * round_s


def within(
    tests: t.Sequence[PlannedTest],
    identities: t.Sequence[Identity],
    most_s: float,
    rates: t.Sequence[float],
    share: t.Callable[[PlannedTest, int], float | None] = lambda test, place: None,
) -> tuple[list[str], dict[str, float]]:
    """Return the tests of a plan that fit into a time for each drive: (names of those that do, {name of one left out:
    its longest time}). rates: what each drive is taken to write, in bytes/s. share: purge_share of the method that a
    test gets on the drive of that place, where it is known.

    The order of importance is that of the plan: a test is taken if at its longest, on the drive that takes longest, it
    fits into what those before it leave. One that neither purges nor fills goes on from the state that the test before
    it left: it is left out with that.
    """
    kept: list[str] = []
    left_out: dict[str, float] = {}
    used_s = 0.0
    before_is_there = True
    for test in tests:
        is_apart = test.self_test or test.in_service
        writes = test.precondition or test.integrity or test.power_cut
        prepares = test.purge.method != "none" or writes or is_apart
        follows = bool(kept or left_out) and not prepares
        lengths_s = [
            span_s(test, identity, rate, share(test, place))[1]
            for place, (identity, rate) in enumerate(zip(identities, rates))
        ]
        longest_s = max(lengths_s, default=0.0)
        is_taken = (before_is_there or not follows) and used_s + longest_s <= most_s
        # Such a test neither needs the state of a test before it nor changes it.
        before_is_there = before_is_there if is_apart else is_taken
        if is_taken:
            kept.append(test.name)
            used_s += longest_s
        else:
            left_out[test.name] = longest_s
    return kept, left_out


def window_s(test: PlannedTest) -> float:
    """Return how much time the window of a test spans, from the start of its first round to the end of its last; 0
    without one.
    """
    steady = test.steady_state
    rounds = (steady.window - 1) * steady.sample_every + 1 if steady else 0
    return rounds * sum(cell_s(cell) for cell in test.cells)


def time_for_writing_s(test: PlannedTest) -> float | None:
    """Return what a test's own limits leave for writing before its windows begin (below 0: not even these fit); None
    where nothing has to be written first, the limits count only from then on, or the test counts without a steady
    window.
    """
    steady, rounds = test.steady_state, test.rounds
    round_s = sum(cell_s(cell) for cell in test.cells)
    limits = [limit for limit in (rounds.time_limit_s, (rounds.max or 0) * round_s) if limit]
    if not steady or not steady.required or not steady.min_capacity_multiple or not limits:
        return None
    if (rounds.least_capacity_multiple or 0) >= steady.min_capacity_multiple:
        return None
    return min(limits) - steady.least_rounds * round_s


def least_multiple(test: PlannedTest) -> float:
    """Return how many times the user capacity has to be written before a window may begin."""
    return test.steady_state.min_capacity_multiple if test.steady_state else 0.0


def slowest_write(test: PlannedTest, size_bytes: int) -> float | None:
    """Return the mean bytes/s that a drive has to write for a steady window to fit into the test's own time; None where
    nothing has to be written first.
    """
    multiple, left_s = least_multiple(test), time_for_writing_s(test)
    if left_s is None:
        return None
    return multiple * size_bytes / left_s if left_s > 0 else float("inf")
