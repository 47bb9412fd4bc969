# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rounds of a test: when they end, with which outcome, and the figures of their window. Pure."""

from __future__ import annotations

import typing as t

from .steady_state import evaluate

Metrics = t.Dict[str, float]


class Rounds:
    """Rounds as they come in, numbered from 1.

    test: a rendered test (docs/internals.md); size_bytes: the ActiveRange.
    A round is steady when, for every tracked variable, the window of sampled rounds that ends there is.
    """

    def __init__(self, test: t.Mapping[str, t.Any], size_bytes: int) -> None:
        self._limits = test["rounds"]
        self._steady = test.get("steady_state") or None
        self._after = test.get("after_steady_rounds") or 0
        self._size_bytes = size_bytes
        self._round_s = sum(cell_s(cell) for cell in test["cells"])
        self._cells: list[dict[str, Metrics]] = []
        self._bytes_written = 0
        self._elapsed_s = 0.0
        self.steady_at: int | None = None

    @property
    def count(self) -> int:
        """Rounds so far."""
        return len(self._cells)

    def add(self, cells: dict[str, Metrics], bytes_written: int, elapsed_s: float) -> None:
        """A finished round: metrics of each cell; bytes written since the purge; seconds since the first round began."""
        self._cells.append(cells)
        self._bytes_written, self._elapsed_s = bytes_written, elapsed_s
        if self.steady_at is None and self._steady and self.count % self._every == 0:
            if all(item["steady"] for item in self.steady_state()):
                self.steady_at = self.count

    @property
    def _every(self) -> int:
        return (self._steady or {}).get("sample_every") or 1

    def tracked(self) -> list[dict[str, t.Any]]:
        """The tracked variables of the last round: cell, metric, value."""
        items = (self._steady or {}).get("tracked", [])
        return [dict(item, value=self._cells[-1][item["cell"]].get(item["metric"])) for item in items]

    def finished(self) -> bool:
        """Whether no further round is due."""
        if self.steady_at is not None:
            return self.count >= self.steady_at + self._after
        return bool(self._limit_reached())

    def _limit_reached(self) -> str:
        limits = self._limits
        if limits.get("max") and self.count >= limits["max"]:
            return "{0} rounds".format(limits["max"])
        multiple = limits.get("capacity_multiple")
        if multiple and self._bytes_written >= multiple * self._size_bytes:
            return "{0:g} x the ActiveRange written".format(multiple)
        if limits.get("time_limit_s") and self._elapsed_s >= limits["time_limit_s"]:
            return "{0:g} s of rounds".format(limits["time_limit_s"])
        return ""

    def window_rounds(self) -> list[int]:
        """The rounds of the window: the first steady one, else the last sampled one; all rounds without a rule."""
        if not self._steady:
            return list(range(1, self.count + 1))
        end = self.steady_at or self.count // self._every * self._every
        first = end - (self._steady["window"] - 1) * self._every
        return [number for number in range(first, end + 1, self._every) if number >= 1]

    def steady_state(self) -> list[dict[str, t.Any]]:
        """The rule's result for each tracked variable over the window (fields: docs/internals.md, test_finished)."""
        if not self._steady:
            return []
        numbers = self.window_rounds()
        return [self._evaluate(item, numbers) for item in self._steady["tracked"]]

    def _evaluate(self, item: t.Mapping[str, str], numbers: list[int]) -> dict[str, t.Any]:
        rule = {key: self._steady[key] for key in ("window", "range_limit", "slope_limit")} if self._steady else {}
        values = [self._cells[number - 1][item["cell"]].get(item["metric"], 0.0) for number in numbers]
        result = evaluate(values, **rule)
        return dict(result, cell=item["cell"], metric=item["metric"], window_rounds=numbers, rounds=self.count)

    def outcome(self) -> tuple[str, list[str]]:
        """(steady, not_steady or complete; reasons). Call it once no further round is due."""
        if not self._steady:
            return "complete", []
        if self.steady_at is not None:
            return "steady", []
        reasons = ["not steady after {0}".format(self._limit_reached() or "{0} rounds".format(self.count))]
        for item in self.steady_state():
            reasons += ["{0} {1}: {2}".format(item["cell"], item["metric"], reason) for reason in item["reasons"]]
        return "not_steady", reasons

    def averages(self) -> list[dict[str, t.Any]]:
        """Each cell's metrics over the window: the mean, and of maxima the maximum."""
        rounds = [self._cells[number - 1] for number in self.window_rounds()]
        names = list(rounds[0]) if rounds else []
        return [{"cell": name, "metrics": _combine([cells[name] for cells in rounds])} for name in names]

    def time_left_s(self) -> float | None:
        """An upper bound: to the first limit that ends the test, or None when nothing bounds it."""
        if self.finished():
            return 0.0
        if self.steady_at is not None:
            return (self.steady_at + self._after - self.count) * self._round_s
        return bound_s(self._limits, self._round_s, self._size_bytes, self.count, self._bytes_written, self._elapsed_s)


def cell_s(cell: t.Mapping[str, t.Any]) -> float:
    """How long a cell does I/O: what counts, and the ramp before it."""
    return cell["runtime_s"] + cell.get("ramp_s", 0)


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


def _combine(samples: t.Sequence[Metrics]) -> Metrics:
    names = [name for name in samples[0] if all(name in sample for sample in samples)]
    return {
        name: max(sample[name] for sample in samples)
        if "max_latency" in name
        else sum(sample[name] for sample in samples) / len(samples)
        for name in names
    }
