# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a window's latency histogram can be that of its rounds: their cells tell count, mean, extremes, spread and
percentiles by themselves. One that was changed together with the percentiles made from it is found out. Pure.
"""

from __future__ import annotations

import typing as t

from ...module_utils.measure import histogram
from ...module_utils.measure.moments import Moments, of_all, pooled

# fio tells figures of a group of threads with less than its own precision.
SHARE = 0.01
EDGE_US = 0.001
NOT_TOLD = "its histogram was not compared with its rounds: they lack {0}"

Mapping = t.Mapping[str, t.Any]
Bins = t.Mapping[int, int]


class HistogramRounds(t.NamedTuple):
    """One direction of a cell over the rounds of a histogram. sides: its figures in each round that had I/O; astride:
    I/Os that fio may count in part, at the end of ramps.
    """

    sides: t.Sequence[Mapping]
    astride: int


def bins_of(kept: Mapping) -> Bins:
    """The bins of a journal's histogram record. Raises ValueError for what is no bin or no count, or no I/O at all."""
    bins = histogram.of(kept)
    if not bins or histogram.ios(bins) != kept["ios"]:
        raise ValueError(f"its bins count {histogram.ios(bins)} I/Os, but it reports {kept['ios']}")
    return bins


def contradictions(bins: Bins, rounds: HistogramRounds) -> list[str]:
    """Why these can't be the latencies of these rounds, as sentences; empty when they can."""
    counted, told = histogram.ios(bins), sum(side["ios"] for side in rounds.sides)
    if not rounds.sides or abs(counted - told) > rounds.astride:
        return [f"its histogram counts {counted} I/Os, but its rounds {told}"]
    found = _extremes(bins, rounds)
    group = pooled(
        Moments(side["ios"], side["mean_latency_us"] * 1000, side.get("stddev_latency_us", 0.0) * 1000)
        for side in rounds.sides
    )
    found += _between("mean latency", group.mean, histogram.mean_ns(bins))
    if not rounds.astride and not lacking(rounds):
        found += _between("standard deviation", of_all(group), histogram.deviation_ns(bins))
    return found + _percentiles(bins, rounds)


def lacking(rounds: HistogramRounds) -> str:
    """What the rounds of an older engine do not tell; "" when they tell all."""
    names = ("min_latency_us", "stddev_latency_us")
    some = [name for name in names if any(name not in side for side in rounds.sides)]
    return NOT_TOLD.format(", ".join(some)) if some else ""


def _extremes(bins: Bins, rounds: HistogramRounds) -> list[str]:
    """The shortest latency falls into the first bin, the longest into the last. In a ramp fio forgets them and the bins
    one after the other.
    """
    if rounds.astride:
        return []
    ends = [("longest", max(bins), max(side["max_latency_us"] for side in rounds.sides))]
    if not lacking(rounds):
        ends.append(("shortest", min(bins), min(side["min_latency_us"] for side in rounds.sides)))
    return [
        f"the {what} latency of its rounds is {told} µs, the histogram's bin of it {value / 1000.0} µs"
        for what, value, told in ends
        if _bin(told) != histogram.bin_of(value)
    ]


def _bin(us: float) -> int:
    """The bin of a latency that was whole nanoseconds."""
    return histogram.bin_of(round(us * 1000))


def _between(what: str, told: float, limits: tuple[float, float]) -> list[str]:
    low, high = limits
    if low * (1 - SHARE) - 1 <= told <= high * (1 + SHARE) + 1:
        return []
    return [f"the {what} of its rounds, {told / 1000:.6g} µs, can't be that of the histogram"]


def _percentiles(bins: Bins, rounds: HistogramRounds) -> list[str]:
    """A percentile of all lies between the lowest and the highest of the rounds'. Where a round has too few I/Os for
    it, the round's extremes bound it.
    """
    found = []
    for percent in histogram.PERCENTILES:
        least = histogram.needed_ios(percent)
        if any(_tells_otherwise(side, percent, least, rounds.astride) for side in rounds.sides):
            found.append(f"the percentile {percent} takes {least} I/Os, which contradicts its rounds")
        ends = [_ends(side, percent, bool(rounds.astride)) for side in rounds.sides]
        value = (histogram.percentile_ns(bins, percent) or 0) / 1000.0
        low, high = min(low for low, _high in ends), max(high for _low, high in ends)
        if not low - EDGE_US <= value <= high + EDGE_US:
            found.append(
                f"the percentile {percent} of its histogram, {value} µs, is not between its rounds' {low} and {high}"
            )
    return found


def _tells_otherwise(side: Mapping, percent: str, least: int, astride: int) -> bool:
    """A round tells a percentile where it has the I/Os for it, and only there."""
    is_told = side["percentiles_us"].get(percent) is not None
    return side["ios"] < least - astride if is_told else bool(side["ios"] >= least + astride)


def _ends(side: Mapping, percent: str, is_ramped: bool) -> tuple[float, float]:
    """Between what a round's percentile lies, by its bins' middles."""
    told = side["percentiles_us"].get(percent)
    if told is not None:
        return told, told
    if is_ramped:
        return 0.0, float("inf")
    return _middle_us(side.get("min_latency_us", 0.0)), _middle_us(side["max_latency_us"])


def _middle_us(us: float) -> float:
    return histogram.value_of(_bin(us)) / 1000.0
