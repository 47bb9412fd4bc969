# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What averages hide: rounds that alternate, a slow second inside a cell, a drift over hours, throttled rounds. Metrics
of a test, each with the limit above which it is a remark. Pure.
"""

from __future__ import annotations

import math
import typing as t

from ..records.plan import PlannedTest
from ..records.planned_cell import PlannedCell

ALTERNATION: t.Final = "alternation_pct"
SLOWEST_SECOND: t.Final = "slowest_second_pct"
DRIFT: t.Final = "hourly_drift_pct"
THROTTLED: t.Final = "throttled_pct"
# Those of a cell. THROTTLED is of the test.
OF_CELL = (ALTERNATION, SLOWEST_SECOND, DRIFT)


class Limit(t.NamedTuple):
    """Above most_pct a metric is a remark, in these words."""

    most_pct: float
    text: str


LIMITS = {
    # Noise of 2 % has half a difference of 1.1 % on average.
    ALTERNATION: Limit(5.0, "its rounds alternate by {0} above and below their trend"),
    SLOWEST_SECOND: Limit(50.0, "its slowest second was {0} below its mean, on average over the rounds"),
    # The tolerance of a rate, in an hour.
    DRIFT: Limit(2.0, "its rate changes by {0} an hour"),
    THROTTLED: Limit(0.0, "{0} of its rounds were throttled"),
}

# Noise alone has such a correlation in one of three tests of so few rounds: what is told then is its size.
LEAST_ROUNDS = 5
ALTERNATES_BELOW = -0.5
LEAST_DRIFT_S = 3600.0
# The limit of a drift lies at three standard errors and more, else the drift is unknown.
MOST_DRIFT_ERROR_PCT = LIMITS[DRIFT].most_pct / 3

# Of a cell's samples: how often, what counts as a second, and what is left out after its start and before its end.
STEP_S = 0.25
SECOND_S = 1.0
EDGE_S = 1.0
LEAST_CELL_S = 5.0
# With fewer in a second, one more or less is what differs.
LEAST_IOS_PER_S = 20.0
# Looks of a second at which an I/O was in flight; with fewer the drive had no work for a part of it.
BUSY_SHARE = 0.75

Figures = t.Mapping[str, float]


class Round(t.NamedTuple):
    """A cell's figures in an undisturbed round. elapsed_s: when it ended."""

    number: int
    elapsed_s: float
    figures: Figures


class CounterSample(t.NamedTuple):
    """The drive's own counts, read between two moments: bytes and I/Os done, I/Os in flight."""

    began_s: float
    ended_s: float
    bytes: int
    ios: int
    in_flight: int


def metrics(rounds: t.Sequence[Round]) -> dict[str, float | None]:
    """Return OF_CELL over the rounds that make a cell's figures; None: unknown."""
    seconds = [one.figures[SLOWEST_SECOND] for one in rounds if SLOWEST_SECOND in one.figures]
    rated = [one for one in rounds if "iops" in one.figures]
    return {
        ALTERNATION: alternation_pct({one.number: one.figures["iops"] for one in rated}),
        SLOWEST_SECOND: sum(seconds) / len(seconds) if seconds else None,
        DRIFT: hourly_drift_pct([(one.elapsed_s, one.figures["iops"]) for one in rated]),
    }


def alternation_pct(values: t.Mapping[int, float]) -> float | None:
    """Return half the mean difference of neighbours as % of the mean, if the rounds alternate; else 0. None: too few.

    They alternate where the lag-1 autocorrelation of what the trend leaves is below ALTERNATES_BELOW. values: by round;
    rounds that follow each other are neighbours.
    """
    pairs = [(number, number + 1) for number in values if number + 1 in values]
    mean = sum(values.values()) / max(1, len(values))
    if len(pairs) < LEAST_ROUNDS - 1 or mean <= 0:
        return None
    line = _fitted(list(values.items()))
    rest = {number: value - line.at(number) for number, value in values.items()}
    squares = sum(value**2 for value in rest.values())
    # What is left of equal values are errors of rounding.
    if math.sqrt(squares) < 1e-9 * mean:
        return 0.0
    if sum(rest[one] * rest[other] for one, other in pairs) / squares >= ALTERNATES_BELOW:
        return 0.0
    return 100 * sum(abs(rest[one] - rest[other]) for one, other in pairs) / len(pairs) / 2 / mean


def hourly_drift_pct(values: t.Sequence[tuple[float, float]]) -> float | None:
    """Return how much a rate rises or falls in an hour, by least squares, as % of the mean. None: over less than
    LEAST_DRIFT_S, or more uncertain than MOST_DRIFT_ERROR_PCT.

    values: (seconds, rate), in order.
    """
    mean = sum(value for _time_s, value in values) / max(1, len(values))
    if len(values) < LEAST_ROUNDS or mean <= 0 or values[-1][0] - values[0][0] < LEAST_DRIFT_S:
        return None
    line = _fitted([(time_s / 3600, value) for time_s, value in values])
    return None if 100 * line.error > MOST_DRIFT_ERROR_PCT * mean else 100 * abs(line.slope) / mean


class _Line(t.NamedTuple):
    """error: the standard error of its slope."""

    slope: float
    place: float
    mean: float
    error: float

    def at(self, place: float) -> float:
        return self.mean + self.slope * (place - self.place)


def _fitted(points: t.Sequence[tuple[float, float]]) -> _Line:
    """Fit a line by least squares; at least three points."""
    count = len(points)
    place, mean = (sum(point[axis] for point in points) / count for axis in (0, 1))
    spread = sum((x - place) ** 2 for x, _y in points)
    slope = sum((x - place) * (y - mean) for x, y in points) / spread
    rest = sum((y - mean - slope * (x - place)) ** 2 for x, y in points)
    return _Line(slope, place, mean, math.sqrt(rest / (count - 2) / spread))


def has_seconds(cell: PlannedCell) -> bool:
    """Return whether a cell's slowest second can be told: it is long enough, and never idle."""
    return cell.runtime_s >= LEAST_CELL_S and not cell.burst_s


def slowest_second_pct(samples: t.Sequence[CounterSample], ramp_s: float, runtime_s: float) -> float | None:
    """Return how far below the mean of a run its slowest second was, in %. None: unknown.

    Left out are the ramp, EDGE_S at both ends, and seconds in which the drive had no work, as the host was late then.
    A sample that comes late is no slow second: what was done is divided by the time from the end of one reading to the
    beginning of the other.
    """
    first = next((number for number, one in enumerate(samples) if one.bytes > samples[0].bytes), None)
    if first is None:
        return None
    begin_s = samples[first].ended_s + ramp_s + EDGE_S
    end_s = samples[first].began_s + ramp_s + runtime_s - EDGE_S
    inside = [one for one in samples if begin_s <= one.began_s and one.ended_s <= end_s]
    if len(inside) < 2:
        return None
    span_s = inside[-1].began_s - inside[0].ended_s
    mean = (inside[-1].bytes - inside[0].bytes) / span_s
    if mean <= 0 or (inside[-1].ios - inside[0].ios) / span_s < LEAST_IOS_PER_S:
        return None
    rates = [_rate(second) for second in _seconds(inside) if _has_work(second)]
    return max(0.0, 100 * (1 - min(rates) / mean)) if rates else None


def _seconds(samples: t.Sequence[CounterSample]) -> t.Iterator[t.Sequence[CounterSample]]:
    """Yield from each sample on those up to the one that is a second later, or the first after that."""
    last = 0
    for first, one in enumerate(samples):
        while last < len(samples) and samples[last].began_s - one.ended_s < SECOND_S - STEP_S / 2:
            last += 1
        if last == len(samples):
            return
        yield samples[first : last + 1]


def _rate(second: t.Sequence[CounterSample]) -> float:
    return (second[-1].bytes - second[0].bytes) / (second[-1].began_s - second[0].ended_s)


def _has_work(second: t.Sequence[CounterSample]) -> bool:
    return sum(one.in_flight > 0 for one in second) >= BUSY_SHARE * len(second)


def throttled_pct(throttled: int, rounds: int, is_known: bool) -> float | None:
    """Return how many of a test's rounds were throttled, in %. is_known: whether anybody counts that."""
    return 100 * throttled / rounds if rounds and (throttled or is_known) else None


def possible(test: PlannedTest, cell: PlannedCell) -> set[str]:
    """Return which of OF_CELL the rounds of a test can tell of a cell at most."""
    rule, round_s = test.steady_state, sum(each.runtime_s + (each.ramp_s or 0) for each in test.cells)
    rounds = rule.window * rule.sample_every if rule else test.last_rounds or test.rounds.max or math.inf
    found = {SLOWEST_SECOND: has_seconds(cell), ALTERNATION: rounds >= LEAST_ROUNDS}
    found[DRIFT] = rounds >= LEAST_ROUNDS and (rounds - 1) * round_s >= LEAST_DRIFT_S
    return {name for name, can in found.items() if can}
