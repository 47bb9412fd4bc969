# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The windows of a test's rounds by its steady state rule: where they lie, whether they may count, and what of their
figures the rule says. Pure.
"""

from __future__ import annotations

import bisect
import typing as t

from ..records.attempt import Saturation, Window
from ..records.plan import SteadyStateRule, Tracked
from .steady_state import Evaluation, by_rule

# By name (docs/internals.md).
Metrics = t.Dict[str, float]


class Windows:
    """steady: the rule of a test, None without one; size_bytes: the user capacity. Rounds count from 1.

    No window begins before `min_capacity_multiple` x the user capacity was written and `settle_s` have passed; with
    `confirm_windows` so many windows before it have to be steady too, each within slope_limit of the next one's
    average, so that a plateau before a fall is not taken for the end.

    A disturbed round is in no window: windows pass over it, as if it had not been measured.
    """

    def __init__(self, steady: SteadyStateRule | None, size_bytes: int) -> None:
        self._steady = steady
        # What asks for it is only called of a test that has one.
        self._rule = t.cast(SteadyStateRule, steady)
        self.size_bytes = size_bytes
        # The round at which the rule was first met.
        self.steady_at: int | None = None
        # How often it was looked whether it is.
        self.evaluations = 0
        # The metrics of each round's cells.
        self.cells: list[dict[str, Metrics]] = []
        # Of each round, what was written since the purge and how long it took until the round ended.
        self.ends: list[tuple[int, float]] = []
        # The numbers of rounds that windows are made of, and of those with a cause that keeps them out
        # (disturbances.py).
        self.clean: list[int] = []
        self.disturbed: set[int] = set()

    def add(self, cells: dict[str, Metrics], bytes_written: int, elapsed_s: float, disturbed: bool) -> None:
        """A finished round, as Rounds.add."""
        self.cells.append(cells)
        self.ends.append((bytes_written, elapsed_s))
        if disturbed:
            self.disturbed.add(self.count)
            return
        self.clean.append(self.count)
        sampled = self.steady_at is None and self._steady and len(self.clean) % self.every == 0
        if not sampled:
            return
        self.evaluations += 1
        if self._are_confirmed():
            self.steady_at = self.count

    def judge_again(self, number: int, disturbed: bool) -> None:
        """Take an earlier round out of windows, or back into them."""
        if disturbed and number not in self.disturbed:
            self.disturbed.add(number)
            self.clean.remove(number)
        elif not disturbed and number in self.disturbed:
            self.disturbed.remove(number)
            bisect.insort(self.clean, number)

    @property
    def count(self) -> int:
        """Rounds so far."""
        return len(self.cells)

    @property
    def every(self) -> int:
        return self._steady.sample_every if self._steady else 1

    @property
    def confirm(self) -> int:
        return self._steady.confirm_windows if self._steady else 0

    @property
    def least_bytes(self) -> float:
        return self._steady.min_capacity_multiple * self.size_bytes if self._steady else 0.0

    def _before(self, number: int) -> tuple[int, float]:
        """Return what was written, and the seconds that had passed, when a round began."""
        return self.ends[number - 2] if number > 1 else (0, 0.0)

    def _may_begin(self, number: int) -> bool:
        """Return whether a window may begin with this round: the drive can have left its fresh state."""
        written, elapsed_s = self._before(number)
        return written >= self.least_bytes and elapsed_s >= self._rule.settle_s

    @property
    def end(self) -> tuple[int, float]:
        """What was written, and the seconds that had passed, when the last round ended."""
        return self.ends[-1] if self.ends else (0, 0.0)

    def last(self) -> list[list[int]]:
        """Return the windows of the result: those that were confirmed; else the last sampled ones, of all rounds where
        every one was disturbed.
        """
        rounds = self.clean or range(1, self.count + 1)
        end = rounds.index(self.steady_at) + 1 if self.steady_at else len(rounds)
        return self._of(rounds, end // self.every * self.every)

    def _of(self, rounds: t.Sequence[int], end: int) -> list[list[int]]:
        """Return the window that ends with a sampled one of these rounds, the end-th, and those before it that have to
        agree, oldest first.
        """
        length = self._rule.window * self.every
        ends = range(end - self.confirm * length, end + 1, length)
        return [
            [rounds[place - 1] for place in range(last - length + self.every, last + 1, self.every) if place >= 1]
            for last in ends
        ]

    def _are_confirmed(self) -> bool:
        windows = self._of(self.clean, len(self.clean))
        if not self._may_count(windows):
            return False
        return all(self._agree([self.evaluate(item, numbers) for numbers in windows]) for item in self._rule.tracked)

    def _may_count(self, windows: list[list[int]]) -> bool:
        """Return whether these windows have all their rounds, and may begin."""
        return bool(windows[0]) and len(windows[0]) >= self._rule.window and self._may_begin(windows[0][0])

    def _agree(self, found: t.Sequence[Window]) -> bool:
        """Return whether windows that follow each other are all steady, and their averages at most
        slope_limit apart.
        """
        if not all(item.steady for item in found):
            return False
        averages = [item.average or 0.0 for item in found]
        pairs = zip(averages, averages[1:])
        return all(abs(one - other) <= self._rule.slope_limit * other for one, other in pairs)

    def evaluate(self, item: Tracked, numbers: list[int]) -> Window:
        """Return the rule's result for a variable over these rounds."""
        values = [self.cells[number - 1][item.cell].get(item.metric, 0.0) for number in numbers]
        result = by_rule(values, self._rule)
        return Window(
            cell=item.cell,
            metric=item.metric,
            steady=result.steady,
            rounds=self.count,
            window_rounds=numbers,
            window_values=result.window_values,
            average=result.average,
            range_ratio=result.range_ratio,
            slope=result.slope,
            slope_ratio=result.slope_ratio,
            reasons=result.reasons,
            fitted_end=fitted_end(result),
        )

    def too_disturbed(self) -> bool:
        """Return whether disturbed rounds alone left too few others: no window could count, steady or not, and one
        could if no round had been disturbed; of a curve, fewer samples than a window has.
        """
        if not self._rule.required:
            return len(self.clean) // self.every < min(self._rule.window, self.count // self.every)
        return not self._any_may_count(self.clean) and self._any_may_count(range(1, self.count + 1))

    def is_steady_throughout(self) -> bool:
        """Return whether the last window would be steady if disturbed rounds were in it too."""
        rounds = range(1, self.count + 1)
        windows = self._of(rounds, self.count // self.every * self.every)
        return all(self.evaluate(item, windows[-1]).steady for item in self._rule.tracked)

    def _any_may_count(self, rounds: t.Sequence[int]) -> bool:
        """Return whether a window of these rounds may count: the last one, if any."""
        end = len(rounds) // self.every * self.every
        return end > 0 and self._may_count(self._of(rounds, end))

    def too_early(self) -> list[str]:
        """Return why the windows so far could not count; nothing when they could."""
        first = self.last()[0]
        if first and self._may_begin(first[0]):
            return []
        found = []
        written, elapsed_s = self.end
        if self.least_bytes:
            text = (
                "no window may begin before {0:g} x the user capacity ({1:.0f} bytes) is written, as a fresh "
                "drive is faster; {2} bytes were written in all"
            )
            found.append(text.format(self._rule.min_capacity_multiple, self.least_bytes, written))
        if self._rule.settle_s:
            found.append(
                f"no window may begin before {self._rule.settle_s:g} s of rounds; they lasted {elapsed_s:.0f} s in all"
            )
        return found

    def saturation(self) -> Saturation | None:
        """Return what shows that the window began late enough, for the judge to check again; None where the test asks
        for nothing.
        """
        rule = self._steady
        if not rule or not self.count or not (rule.min_capacity_multiple or rule.confirm_windows or rule.settle_s):
            return None
        windows = self.last()
        written, elapsed_s = self._before(windows[0][0]) if windows[0] else self.ends[-1]
        agreed = [[self.evaluate(item, numbers).average for item in rule.tracked] for numbers in windows]
        return Saturation(
            min_capacity_multiple=rule.min_capacity_multiple,
            confirm_windows=rule.confirm_windows,
            settle_s=rule.settle_s,
            user_capacity_bytes=self.size_bytes,
            written_before_bytes=written,
            elapsed_before_s=round(elapsed_s, 3),
            averages=agreed,
        )


def fitted_end(result: Evaluation) -> float | None:
    """Return where the fitted line of a window ends: nearer to what comes than the average, which a falling window
    lifts. None without an average or a slope.
    """
    if result.average is None or result.slope is None:
        return None
    return result.average + result.slope * (len(result.window_values) - 1) / 2.0
