# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rounds of a test: when they end, with which outcome, and the figures of their window. Pure."""

from __future__ import annotations

import typing as t

from .steady_state import evaluate
from .tails import Cells, Tails

Metrics = t.Dict[str, t.Any]
# Follows the name of a tracked metric: where its window's fitted line ends.
FITTED_END = "_fitted_end"


class Rounds:
    """Rounds as they come in, numbered from 1.

    test: a rendered test (docs/internals.md); size_bytes: the user capacity, whatever ActiveRange is in use.
    A round is steady when, for every tracked variable, the window of sampled rounds that ends there is. No window
    begins before
    `min_capacity_multiple` x the user capacity was written and `settle_s` have passed; with `confirm_windows` so many
    windows before
    it have to be steady too, each within slope_limit of the next one's average, so that a plateau before a fall is not
    taken for the end.
    """

    def __init__(self, test: t.Mapping[str, t.Any], size_bytes: int) -> None:
        self._limits = test["rounds"]
        self._steady = test.get("steady_state") or {}
        self._after = test.get("after_steady_rounds") or 0
        # Of a test without a rule: how many rounds at its end make its figures.
        self._last = test.get("last_rounds") or 0
        self._leads = {cell["id"] for cell in test["cells"] if cell.get("lead")}
        self._size_bytes = size_bytes
        self._round_s = sum(cell_s(cell) for cell in test["cells"])
        self._cells: list[dict[str, Metrics]] = []
        # Of each round, what was written since the purge and how long it took until the round ended.
        self._ends: list[tuple[int, float]] = []
        # Rounds with a cause that keeps them out of every window (causes.py).
        self._spoilt: set[int] = set()
        self._tails = Tails(test)
        self.steady_at: int | None = None

    def resize(self, size_bytes: int) -> None:
        """Take the user capacity anew: a purge may have changed it. Before the first round."""
        self._size_bytes = size_bytes

    @property
    def count(self) -> int:
        """Rounds so far."""
        return len(self._cells)

    def add(
        self,
        cells: dict[str, Metrics],
        bytes_written: int,
        elapsed_s: float,
        histograms: Cells | None = None,
        spoilt: bool = False,
    ) -> None:
        """A finished round: metrics and histograms of each cell; bytes written since the purge; seconds since the first
        round began; whether it can't be in a window.
        """
        self._cells.append(cells)
        self._tails.add(self.count, histograms or {})
        if spoilt:
            self._spoilt.add(self.count)
        self._ends.append((bytes_written, elapsed_s))
        if self.steady_at is None and self._steady and self.count % self._every == 0 and self._is_confirmed():
            self.steady_at = self.count

    @property
    def _every(self) -> int:
        return self._steady.get("sample_every") or 1

    @property
    def _confirm(self) -> int:
        return self._steady.get("confirm_windows") or 0

    @property
    def _least_bytes(self) -> float:
        return (self._steady.get("min_capacity_multiple") or 0) * self._size_bytes

    def _before(self, number: int) -> tuple[int, float]:
        """What was written, and the seconds that had passed, when a round began."""
        return self._ends[number - 2] if number > 1 else (0, 0.0)

    def _may_begin(self, number: int) -> bool:
        """Whether a window may begin with this round: the drive can have left its fresh state."""
        written, elapsed_s = self._before(number)
        return written >= self._least_bytes and elapsed_s >= (self._steady.get("settle_s") or 0)

    def _windows(self, end: int) -> list[list[int]]:
        """The rounds of the window that ends with a sampled round, and of those before it that have to agree, oldest
        first.
        """
        length = self._steady["window"] * self._every
        ends = range(end - self._confirm * length, end + 1, length)
        return [
            [number for number in range(last - length + self._every, last + 1, self._every) if number >= 1]
            for last in ends
        ]

    def _is_confirmed(self) -> bool:
        windows = self._windows(self.count)
        if not self._is_clean(windows):
            return False
        return all(
            self._agree([self._evaluate(item, numbers) for numbers in windows]) for item in self._steady["tracked"]
        )

    def _is_whole(self, windows: list[list[int]]) -> bool:
        """Whether these windows have all their rounds, and may begin."""
        return bool(windows[0]) and len(windows[0]) >= self._steady["window"] and self._may_begin(windows[0][0])

    def _is_clean(self, windows: list[list[int]]) -> bool:
        """Whether these windows are whole, may begin, and hold no spoilt round, those between two sampled ones
        included.
        """
        return self._is_whole(windows) and self._spoilt.isdisjoint(range(windows[0][0], windows[-1][-1] + 1))

    def _agree(self, found: t.Sequence[t.Mapping[str, t.Any]]) -> bool:
        """Whether windows that follow each other are all steady, and their averages at most slope_limit apart."""
        if not all(item["steady"] for item in found):
            return False
        pairs = zip(found, found[1:])
        return all(
            abs(one["average"] - other["average"]) <= self._steady["slope_limit"] * other["average"]
            for one, other in pairs
        )

    def tracked(self) -> list[dict[str, t.Any]]:
        """The tracked variables of the last round: cell, metric, value."""
        items = self._steady.get("tracked", [])
        return [dict(item, value=self._cells[-1][item["cell"]].get(item["metric"])) for item in items]

    def finished(self) -> bool:
        """Whether no further round is due."""
        if self.steady_at is not None:
            return self.count >= self.steady_at + self._after
        return bool(self._limit_reached())

    def _limit_reached(self) -> str:
        limits = self._limits
        written, elapsed_s = self._ends[-1] if self._ends else (0, 0.0)
        if limits.get("max") and self.count >= limits["max"]:
            return "{0} rounds".format(limits["max"])
        multiple = limits.get("capacity_multiple")
        if multiple and written >= multiple * self._size_bytes:
            return f"{multiple:g} x the user capacity written"
        if limits.get("time_limit_s") and elapsed_s >= limits["time_limit_s"]:
            return "{0:g} s of rounds".format(limits["time_limit_s"])
        return ""

    def window_rounds(self) -> list[int]:
        """The rounds of the window: the steady one, of several that agree the last; else the last sampled ones; all
        rounds without a rule.
        """
        if not self._steady:
            return last_clean(self.count, self._spoilt, self._last)
        return self._windows(self.steady_at or self.count // self._every * self._every)[-1]

    def steady_state(self) -> list[dict[str, t.Any]]:
        """The rule's result for each tracked variable over the window (fields: docs/internals.md, test_finished)."""
        numbers = self.window_rounds()
        return [self._evaluate(item, numbers) for item in self._steady.get("tracked", [])]

    def _evaluate(self, item: t.Mapping[str, str], numbers: list[int]) -> dict[str, t.Any]:
        rule = {key: self._steady[key] for key in ("window", "range_limit", "slope_limit")}
        values = [self._cells[number - 1][item["cell"]].get(item["metric"], 0.0) for number in numbers]
        result = evaluate(values, **rule)
        end = fitted_end(result)
        return dict(
            result, cell=item["cell"], metric=item["metric"], window_rounds=numbers, rounds=self.count, fitted_end=end
        )

    def outcome(self) -> tuple[str, list[str]]:
        """(steady, not_steady, complete, or invalid without a clean window; reasons). Call it once no further round is
        due.
        """
        if self._spoilt and not self._any_clean():
            text = "no window without a spoilt round within {0}: {1} of {2} rounds were spoilt"
            return "invalid", [text.format(self._limit_reached() or "the test", len(self._spoilt), self.count)]
        if not self._steady:
            return "complete", []
        if self.steady_at is not None:
            return "steady", []
        reasons = ["not steady after {0}".format(self._limit_reached() or f"{self.count} rounds"), *self._too_early()]
        for item in self.steady_state():
            reasons += ["{0} {1}: {2}".format(item["cell"], item["metric"], reason) for reason in item["reasons"]]
        if self._confirm and all(item["steady"] for item in self.steady_state()):
            text = "the last window is steady, but {0} before it has to be steady too, within {1:g} % of its average"
            reasons.append(
                text.format(
                    "the one" if self._confirm == 1 else f"each of the {self._confirm}",
                    100 * self._steady["slope_limit"],
                )
            )
        return "not_steady", reasons

    def _any_clean(self) -> bool:
        """Whether of the windows that could count, steady or not, one held no spoilt round; also where none could count
        yet.
        """
        if not self._steady:
            return bool(self.window_rounds())
        windows = [self._windows(end) for end in range(self._every, self.count + 1, self._every)]
        could_count = [some for some in windows if self._is_whole(some)]
        return not could_count or any(self._is_clean(some) for some in could_count)

    def _too_early(self) -> list[str]:
        """Why the windows so far could not count; nothing when they could."""
        first = self._windows(self.count // self._every * self._every)[0]
        if first and self._may_begin(first[0]):
            return []
        found = []
        written, elapsed_s = self._ends[-1] if self._ends else (0, 0.0)
        if self._least_bytes:
            text = (
                "no window may begin before {0:g} x the user capacity ({1:.0f} bytes) is written, as a fresh "
                "drive is faster; {2} bytes were in all"
            )
            found.append(text.format(self._steady["min_capacity_multiple"], self._least_bytes, written))
        if self._steady.get("settle_s"):
            found.append(
                "no window may begin before {0:g} s of rounds; {1:.0f} s passed in all".format(
                    self._steady["settle_s"], elapsed_s
                )
            )
        return found

    def saturation(self) -> dict[str, t.Any] | None:
        """What shows that the window began late enough, for the judge to check again (docs/internals.md); None where
        the test asks for nothing.
        """
        asked = {key: self._steady.get(key) or 0 for key in ("min_capacity_multiple", "confirm_windows", "settle_s")}
        if not any(asked.values()) or not self.count:
            return None
        windows = self._windows(self.steady_at or self.count // self._every * self._every)
        written, elapsed_s = self._before(windows[0][0]) if windows[0] else self._ends[-1]
        agreed = [[self._evaluate(item, numbers)["average"] for item in self._steady["tracked"]] for numbers in windows]
        return dict(
            asked,
            user_capacity_bytes=self._size_bytes,
            written_before_bytes=written,
            elapsed_before_s=round(elapsed_s, 3),
            averages=agreed,
        )

    def span(self) -> list[int]:
        """Every round from the window's first to its last, also those between samples: tails are rare, and must not
        hide there. Spoilt ones don't count.
        """
        numbers = self.window_rounds()
        return (
            [number for number in range(numbers[0], numbers[-1] + 1) if number not in self._spoilt] if numbers else []
        )

    def averages(self) -> list[dict[str, t.Any]]:
        """Each cell's metrics over the window: the mean, and of maxima the maximum; and whether the cell itself was
        steady there.

        Maxima cover the window's span, and every round of a saturation test, whose curve is the result; of a window
        that is spoilt throughout, the window. Percentiles and shares are those of the span's histograms, merged.
        """
        numbers = self.window_rounds()
        rounds = [self._cells[number - 1] for number in numbers]
        wide = range(1, self.count + 1) if self._every > 1 or self._least_bytes else self.span()
        seen = [self._cells[number - 1] for number in wide if number not in self._spoilt] or rounds
        merged = self._tails.merged(self.span())
        # What leads each round comes last: the first one's figures are the test's.
        names = sorted(rounds[0], key=lambda name: name in self._leads) if rounds else []
        combined = {
            name: _combine([cells[name] for cells in rounds], [cells[name] for cells in seen]) for name in names
        }
        return [
            dict(
                {"cell": name, "metrics": dict(combined[name], **self._tails.metrics(merged, name))},
                **self._steadiness(name, numbers),
            )
            for name in names
        ]

    def histograms(self) -> list[dict[str, t.Any]]:
        """The fields of the journal's histogram records, of each cell and direction over the window's span."""
        return self._tails.records(self.span())

    def _steadiness(self, cell: str, numbers: list[int]) -> dict[str, t.Any]:
        """The rule for a cell's IOPS over the window, tracked or not; nothing without a rule."""
        if not self._steady:
            return {}
        found = self._evaluate({"cell": cell, "metric": "iops"}, numbers)
        return {"steady": {key: found[key] for key in ("metric", "steady", "range_ratio", "slope_ratio")}}

    def time_left_s(self) -> float | None:
        """An upper bound: to the first limit that ends the test, or None when nothing bounds it."""
        if self.finished():
            return 0.0
        if self.steady_at is not None:
            return (self.steady_at + self._after - self.count) * self._round_s
        written, elapsed_s = self._ends[-1] if self._ends else (0, 0.0)
        return bound_s(self._limits, self._round_s, self._size_bytes, self.count, written, elapsed_s)


def last_clean(count: int, spoilt: t.Container[int], last: int) -> list[int]:
    """The rounds that make the figures of a test without a rule: the clean ones, or the last of them.

    last: how many. They are of the test's end: those before its last 2 x `last` rounds show another state of the drive,
    and do not stand for spoilt ones.
    """
    first = max(1, count - 2 * last + 1) if last else 1
    return [number for number in range(first, count + 1) if number not in spoilt][-last:]


def fitted_end(result: t.Mapping[str, t.Any]) -> float | None:
    """Where the fitted line of a window ends: nearer to what comes than the average, which a falling window lifts.

    result: of steady_state.evaluate. None without an average or a slope.
    """
    average: float | None = result["average"]
    slope: float | None = result["slope"]
    if average is None or slope is None:
        return None
    return average + slope * (len(result["window_values"]) - 1) / 2.0


def cell_s(cell: t.Mapping[str, t.Any]) -> float:
    """How long a cell does I/O: what counts, and the ramp before it."""
    seconds: float = cell["runtime_s"] + cell.get("ramp_s", 0)
    return seconds


def bound_s(
    limits: t.Mapping[str, t.Any],
    round_s: float,
    size_bytes: int,
    count: int = 0,
    bytes_written: int = 0,
    elapsed_s: float = 0.0,
) -> float | None:
    """Seconds until the first limit ends the rounds; None when no limit can be put into seconds yet."""
    bounds = []
    if limits.get("max"):
        bounds.append((limits["max"] - count) * round_s)
    if limits.get("time_limit_s"):
        bounds.append(limits["time_limit_s"] - elapsed_s)
    if limits.get("capacity_multiple") and bytes_written and elapsed_s:
        bounds.append((limits["capacity_multiple"] * size_bytes - bytes_written) * elapsed_s / bytes_written)
    return max(0.0, min(bounds)) if bounds else None


def _combine(samples: t.Sequence[Metrics], seen: t.Sequence[Metrics]) -> Metrics:
    """The mean of each metric over the samples, and of a maximum the largest that was seen in any round."""
    names = [name for name in samples[0] if all(name in sample for sample in samples)]
    return {
        name: max(sample[name] for sample in seen if name in sample)
        if "max_latency" in name
        else sum(sample[name] for sample in samples) / len(samples)
        for name in names
    }
