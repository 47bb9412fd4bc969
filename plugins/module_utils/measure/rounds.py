# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rounds of a test: the order of their cells, when they end, with which outcome, and the figures of their window.
Pure.
"""

from __future__ import annotations

import typing as t

from ..records.attempt import CellAverage, Outcome, Saturation, Steadiness, Window
from ..records.plan import PlannedTest, RoundLimits, Tracked
from ..records.planned_cell import AnyLoad, PlannedCell
from . import hidden_variation, histogram
from .histogram import Bins
from .windows import Metrics, Windows

# Follows the name of a tracked metric: where its window's fitted line ends.
FITTED_END = "_fitted_end"
# Limits count from the first round on.
AT_ONCE = (0, 0, 0.0)
# A test may have as many disturbed rounds as its limit of rounds allows undisturbed ones.
MOST_TIMES = 2
STEADY_ITSELF = "; the drive itself was steady"
# Starting fio, its result and the journal, for each cell.
CELL_OVERHEAD_S = 0.4


def cells_in_order(test: PlannedTest, seed_of: t.Callable[[str], int]) -> list[PlannedCell]:
    """Return the cells of a round in order: as planned or, of a test with a shuffled order, by the seeds that they have
    in this round. The journal has the seeds, so the order can be told and repeated.
    """
    return sorted(test.cells, key=lambda cell: seed_of(cell.id)) if test.cell_order else list(test.cells)


class Rounds:
    """Rounds as they come in, numbered from 1.

    size_bytes: the user capacity, whatever ActiveRange is in use.
    A round is steady when, for every tracked variable, the window (windows.py) of sampled rounds that ends there is.
    """

    def __init__(self, test: PlannedTest, size_bytes: int) -> None:
        self._limits = test.rounds
        self._steady = test.steady_state
        self._after = test.after_steady_rounds
        # Of a test without a rule: how many rounds at its end make its figures.
        self._last = test.last_rounds or 0
        self._leads = {cell.id for cell in test.cells if cell.lead}
        self._tracked = self._steady.tracked if self._steady else []
        self._windows = Windows(self._steady, size_bytes)
        self._round_s = sum(cell_s(cell) for cell in test.cells)
        self._latency_targets_us = test.latency_targets_us
        # Undisturbed rounds, all rounds and seconds from which the limits count; None: as much is not written yet.
        self._counted_from = None if test.rounds.least_capacity_multiple else AT_ONCE
        # By round, cells whose own figures are disturbed, and nothing else of the round.
        self._left_out: dict[int, t.Collection[str]] = {}
        # {cell: {side: bins}} of the rounds of the span, merged; known at the test's end.
        self.histograms: dict[str, dict[str, Bins]] = {}
        # Cells whose latencies count in too few rounds of the span; known at the test's end.
        self.without_percentiles: t.Collection[str] = ()

    def resize(self, size_bytes: int) -> None:
        """Take the user capacity anew: a purge may have changed it. Before the first round."""
        self._windows.size_bytes = size_bytes

    @property
    def count(self) -> int:
        """Rounds so far."""
        return self._windows.count

    @property
    def undisturbed(self) -> int:
        """Undisturbed rounds so far."""
        return len(self._windows.clean)

    @property
    def evaluations(self) -> int:
        """How many rounds were held to the rule."""
        return self._windows.evaluations

    @property
    def steady_at(self) -> int | None:
        """The round at which the rule was first met."""
        return self._windows.steady_at

    def add(
        self,
        cells: dict[str, Metrics],
        bytes_written: int,
        elapsed_s: float,
        disturbed: bool = False,
        left_out: t.Collection[str] = (),
    ) -> None:
        """A finished round: metrics of each cell; bytes written since the purge; seconds since the first round began;
        whether it can't be in a window; cells whose own figures it does not give.
        """
        self._windows.add(cells, bytes_written, elapsed_s, disturbed)
        least_bytes = (self._limits.least_capacity_multiple or 0) * self._windows.size_bytes
        if self._counted_from is None and bytes_written >= least_bytes:
            self._counted_from = self.undisturbed, self.count, elapsed_s
        if left_out:
            self._left_out[self.count] = left_out

    def judge_again(self, number: int, disturbed: bool, left_out: t.Collection[str]) -> None:
        """Judge an earlier round anew; as add."""
        self._windows.judge_again(number, disturbed)
        self._left_out[number] = left_out

    def tracked(self) -> dict[tuple[str, str], float | None]:
        """Return the tracked variables of the last round: {(cell, metric): value}."""
        cells = self._windows.cells[-1]
        return {(item.cell, item.metric): cells[item.cell].get(item.metric) for item in self._tracked}

    def last_figures(self) -> tuple[str, Metrics]:
        """Return the metric to show of the last round, the first tracked one, and all metrics of its cell."""
        cells, tracked = self._windows.cells[-1], self._tracked
        return (tracked[0].metric, cells[tracked[0].cell]) if tracked else ("iops", next(iter(cells.values())))

    def finished(self) -> bool:
        """Return whether no further round is due."""
        if self.steady_at is not None:
            return self.count >= self.steady_at + self._after
        return bool(self._limit_reached())

    def _limit_reached(self) -> str:
        limits = self._limits
        written, elapsed_s = self._windows.end
        multiple = limits.capacity_multiple
        if multiple and written >= multiple * self._windows.size_bytes:
            return f"{multiple:g} x the user capacity written"
        if self._counted_from is None:
            return ""
        undisturbed, count, began_s = self._counted_from
        if limits.max and self.undisturbed - undisturbed >= limits.max:
            return f"{limits.max} rounds"
        if limits.max and self.count - count >= MOST_TIMES * limits.max:
            return f"{self.count - count} rounds, {MOST_TIMES} x rounds.max"
        if limits.time_limit_s and elapsed_s - began_s >= limits.time_limit_s:
            return f"{limits.time_limit_s:g} s of rounds"
        return ""

    def only_repeats(self) -> bool:
        """Return whether rounds.max is reached, disturbed rounds included: what is due makes good for those."""
        if self._counted_from is None or not self._limits.max or self.steady_at is not None:
            return False
        return self.count - self._counted_from[1] >= self._limits.max

    def window_rounds(self) -> list[int]:
        """Return the rounds of the window: the steady one, of several that agree the last; else the last sampled ones;
        all rounds without a rule.
        """
        if not self._steady:
            return last_clean(self.count, self._windows.disturbed, self._last)
        return self._windows.last()[-1]

    def steady_state(self) -> list[Window]:
        """Return the rule's result for each tracked variable over the window."""
        numbers = self.window_rounds()
        return [self._windows.evaluate(item, numbers) for item in self._tracked]

    def outcome(self) -> tuple[Outcome, list[str]]:
        """(steady, not_steady, complete, or invalid where disturbed rounds left too few others; reasons, also of a
        complete one why it is not steady). Call it once no further round is due.
        """
        if self._is_too_disturbed():
            return "invalid", [self._too_disturbed_text()]
        if not self._steady:
            return "complete", []
        if self.steady_at is not None:
            return "steady", []
        reasons = [
            "the limit of {0} was reached".format(self._limit_reached() or f"{self.count} rounds"),
            *self._windows.too_early(),
        ]
        for item in self.steady_state():
            reasons += [f"{item.cell} {item.metric}: {reason}" for reason in item.reasons]
        if self._windows.confirm and all(item.steady for item in self.steady_state()):
            text = "the last window is steady, but {0} before it has to be steady too, within {1:g} % of its average"
            reasons.append(
                text.format(
                    "the one" if self._windows.confirm == 1 else f"each of the {self._windows.confirm}",
                    100 * self._steady.slope_limit,
                )
            )
        return "not_steady" if self._steady.required else "complete", reasons

    def _is_too_disturbed(self) -> bool:
        if self._steady:
            return self._windows.too_disturbed()
        return bool(self._windows.disturbed) and not self.window_rounds()

    def _too_disturbed_text(self) -> str:
        text = "too few others are left for a window" if self._steady else "no other is left that counts"
        return text + (STEADY_ITSELF if self._steady and self._windows.is_steady_throughout() else "")

    def saturation(self) -> Saturation | None:
        """As Windows.saturation."""
        return self._windows.saturation()

    def span(self) -> list[int]:
        """Return every round from the window's first to its last, also those between samples: tails are rare, and must
        not hide there. Disturbed ones don't count.
        """
        numbers = self.window_rounds()
        return (
            [number for number in range(numbers[0], numbers[-1] + 1) if number not in self._windows.disturbed]
            if numbers
            else []
        )

    def averages(self) -> list[CellAverage]:
        """Return each cell's metrics over the window: the mean, and of maxima the maximum; and whether the cell itself
        was steady there.

        Maxima cover the window's span with the disturbed rounds in it, disturbed ones elsewhere, and every round of a
        saturation test, whose curve is the result: what disturbs a round excuses no I/O that was stuck in it.
        Percentiles and shares are those of the span's histograms, merged. A round in which a cell alone was disturbed
        is in none of its figures; where it was so in all of them, it has a maximum and no other figure. So has a curve
        that ended before the drive can have left its fresh state.
        """
        numbers = self.window_rounds()
        rounds = [self._windows.cells[number - 1] for number in numbers]
        whole = self._windows.every > 1 or self._windows.least_bytes
        wide = range(1, self.count + 1) if whole else sorted({*self.span(), *self._windows.disturbed})
        seen = [self._windows.cells[number - 1] for number in wide]
        # What leads each round comes last: the first one's figures are the test's.
        names = sorted(rounds[0], key=lambda name: name in self._leads) if rounds else []
        return [self._average(name, numbers, [cells[name] for cells in seen]) for name in names]

    def _average(self, cell: str, numbers: list[int], seen: list[Metrics]) -> CellAverage:
        own = [number for number in numbers if cell not in self._left_out.get(number, ())]
        combined = _combine([self._windows.cells[number - 1][cell] for number in own], seen)
        figures = {**combined, **self._tail_metrics(cell, combined), **self._variation(cell)}
        if not own or self._is_fresh_curve():
            figures = {name: value if is_maximum(name) else None for name, value in figures.items()}
        return CellAverage(cell, figures, self._steadiness(cell, own))

    def _variation(self, cell: str) -> dict[str, float | None]:
        """Return what its averages hide, over the rounds of the span."""
        own = [number for number in self.span() if cell not in self._left_out.get(number, ())]
        windows = self._windows
        return hidden_variation.metrics(
            [hidden_variation.Round(one, windows.ends[one - 1][1], windows.cells[one - 1][cell]) for one in own]
        )

    def _is_fresh_curve(self) -> bool:
        return bool(self._steady and not self._steady.required and self._windows.too_early())

    def _tail_metrics(self, cell: str, combined: Metrics) -> dict[str, float | None]:
        """Return what the merged histograms of a cell tell: percentiles, and shares within the test's times."""
        if cell in self.without_percentiles:
            sides = [side for side in ("read", "write", "trim", "sync") if f"{side}_iops" in combined]
            return histogram.unknown_metrics(sides, self._latency_targets_us)
        return histogram.metrics(self.histograms.get(cell, {}), self._latency_targets_us)

    def _steadiness(self, cell: str, numbers: list[int]) -> Steadiness | None:
        """Return the rule for a cell's IOPS over the window; None without a rule."""
        if not self._steady:
            return None
        found = self._windows.evaluate(Tracked(cell, "iops"), numbers)
        return Steadiness(found.metric, found.steady, found.range_ratio, found.slope_ratio)

    def time_left_s(self) -> float | None:
        """Return an upper bound if the host stays as busy as it was: to the first limit that ends the test, or None
        when nothing bounds it.
        """
        if self.finished():
            return 0.0
        written, elapsed_s = self._windows.end
        if self.steady_at is not None:
            return (self.steady_at + self._after - self.count) * _slowest_s(self._round_s, self.count, elapsed_s)
        done = Done(self.undisturbed, written, elapsed_s, self._counted_from, self.count)
        return bound_s(self._limits, self._round_s, self._windows.size_bytes, done)


def last_clean(count: int, disturbed: t.Container[int], last: int) -> list[int]:
    """Return the rounds that make the figures of a test without a rule: the clean ones, or the last of them.

    last: how many. They are of the test's end: those before its last 2 x `last` rounds show another state of the drive,
    and do not stand for disturbed ones.
    """
    first = max(1, count - 2 * last + 1) if last else 1
    return [number for number in range(first, count + 1) if number not in disturbed][-last:]


def is_maximum(metric: str) -> bool:
    """Return whether a figure is the largest that was seen, and no mean."""
    return "max_latency" in metric


def cell_s(cell: AnyLoad) -> float:
    """Return how long a cell does I/O: what counts, and the ramp before it."""
    return cell.runtime_s + (cell.ramp_s or 0)


class Done(t.NamedTuple):
    """What is done of a test's rounds. undisturbed: how many are; counted_from: as in Rounds; rounds: all of them."""

    undisturbed: int = 0
    bytes_written: int = 0
    elapsed_s: float = 0.0
    counted_from: tuple[int, int, float] | None = AT_ONCE
    rounds: int = 0


def _slowest_s(round_s: float, count: int, elapsed_s: float) -> float:
    """Return what a round takes by its plan, or by those that were measured where that is longer."""
    return max(round_s, elapsed_s / count) if count else round_s


def bound_s(limits: RoundLimits, round_s: float, size_bytes: int, done: Done = Done()) -> float | None:
    """Seconds until the first limit ends the rounds, if the others take as long and as many of them are disturbed as of
    those so far; None when no limit can be put into seconds yet.
    """
    round_s = _slowest_s(round_s, done.rounds, done.elapsed_s)
    bounds = []
    rate = done.bytes_written / done.elapsed_s if done.elapsed_s else 0.0
    if limits.capacity_multiple and rate:
        bounds.append((limits.capacity_multiple * size_bytes - done.bytes_written) / rate)
    undisturbed, count, began_s = done.counted_from or (done.undisturbed, done.rounds, done.elapsed_s)
    before_s = 0.0
    if done.counted_from is None and limits.least_capacity_multiple:
        if not rate:
            return None
        before_s = (limits.least_capacity_multiple * size_bytes - done.bytes_written) / rate
    if limits.max:
        # One more of each: a first round that was disturbed says little.
        again = (done.rounds + 1) / (done.undisturbed + 1) if done.rounds else 1.0
        left = (limits.max - (done.undisturbed - undisturbed)) * again
        bounds.append(before_s + min(left, MOST_TIMES * limits.max - max(0, done.rounds - count)) * round_s)
    if limits.time_limit_s:
        bounds.append(before_s + limits.time_limit_s - (done.elapsed_s - began_s))
    return max(0.0, min(bounds)) if bounds else None


def _combine(samples: t.Sequence[Metrics], seen: t.Sequence[Metrics]) -> Metrics:
    """Return the mean of each metric over the samples, and of a maximum the largest that was seen in any round."""
    names = [name for name in (samples or seen)[0] if all(name in sample for sample in samples)]
    return {
        name: max(sample[name] for sample in seen if name in sample)
        if is_maximum(name)
        else sum(sample[name] for sample in samples) / max(1, len(samples))
        for name in names
    }
