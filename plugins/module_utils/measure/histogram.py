# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Latency histograms as fio counts them: read from its JSON, merged, and what percentiles and shares they give. Pure,
exact on counts.

fio (stat.c, stat.h: FIO_IO_U_PLAT_BITS 6, 29 groups) has 64 bins of one width for each power of two, and bins of 1 ns
up to 127 ns. `json+` tells a bin by the value in its middle. A histogram here is {that value in ns: how many I/Os}.
Those of a test's rounds are kept and merged over its window: a mean of percentiles hides what happens rarely.
"""

from __future__ import annotations

import array
import functools
import math
import re
import typing as t
import zlib
from fractions import Fraction
from types import MappingProxyType

from ..records.measurement import HistogramDetails, SideName

Bins = t.Dict[int, int]
BITS = 6
GROUPS = 29
MOST_BINS = GROUPS << BITS
# What lies beyond a percentile has to be more than chance: of fewer I/Os one stall more or less moves it anywhere.
LEAST_BEYOND = 10
# Those of the job template (roles/workload/templates/job.fio.j2).
PERCENTILES = ("50", "90", "95", "99", "99.9", "99.99", "99.999", "99.9999")
_METRIC = re.compile(r"(read|write|trim|sync)_p([0-9]{1,3}(?:_[0-9]{1,6})?)_latency_us")

# {cell: {read, write: bins}}, of the directions that had I/O.
Cells = t.Mapping[str, t.Mapping[str, t.Mapping[int, int]]]
# {cell: rounds}
LeftOut = t.Mapping[str, t.Collection[int]]


def bin_of(ns: int) -> int:
    """Return the number of the bin that a latency falls into; what is longer than all bins (17 s) falls into
    the last.
    """
    shift = max(0, ns.bit_length() - 1 - BITS)
    return min((shift << BITS) + (ns >> shift), MOST_BINS - 1)


def value_of(number: int) -> int:
    """Return the middle of a bin, by which fio tells it."""
    shift = _shift(number)
    return _lowest(number) + ((1 << shift) >> 1)


@functools.lru_cache(maxsize=MOST_BINS)
def highest_of(value: int) -> int:
    """Return the longest latency that falls into the bin told by `value`."""
    number = bin_of(value)
    return _lowest(number) + (1 << _shift(number)) - 1


def lowest_of(value: int) -> int:
    """Return the shortest latency that falls into the bin told by `value`."""
    return _lowest(bin_of(value))


def _shift(number: int) -> int:
    return max(0, (number >> BITS) - 1)


def _lowest(number: int) -> int:
    shift = _shift(number)
    return number if not shift else ((1 << BITS) + number % (1 << BITS)) << shift


def parse_bins(told: t.Mapping[str, int] | None) -> Bins:
    """Return the histogram of the `bins` of fio's json+, shortest first. Raises KeyError without one, ValueError for
    what is no bin or no count.
    """
    if told is None:
        raise KeyError("bins")
    found = {}
    for key, count in told.items():
        value = int(key)
        if value < 0 or value_of(bin_of(value)) != value:
            raise ValueError(f"{key} ns is not the middle of a bin")
        if isinstance(count, bool) or not isinstance(count, int) or count < 0:
            raise ValueError(f"{count!r} I/Os in the bin of {key} ns")
        if count:
            found[value] = count
    return dict(sorted(found.items()))


def merge(histograms: t.Iterable[t.Mapping[int, int]]) -> Bins:
    """One histogram of all: the sum of each bin, shortest first."""
    total: Bins = {}
    for bins in histograms:
        for value, count in bins.items():
            total[value] = total.get(value, 0) + count
    return dict(sorted(total.items()))


def ios(bins: t.Mapping[int, int]) -> int:
    """Return how many I/Os it counts."""
    return sum(bins.values())


def percentile_ns(bins: t.Mapping[int, int], percent: str) -> int | None:
    """Return a percentile as fio tells it: the first bin up to which at least that share of the I/Os lies. None for an
    empty histogram.
    """
    # Of whole I/Os, as a bin is asked in each of thousands of rounds: it compares ten times as fast as a fraction.
    wanted = math.ceil(Fraction(float(percent)) * ios(bins) / 100)
    total = 0
    for value, count in sorted(bins.items()):
        total += count
        if total >= wanted:
            return value
    return None


def needed_ios(percent: str) -> int:
    """Return how many I/Os it takes for LEAST_BEYOND beyond a percentile: 10,000 for 99.9, 10 million for 99.9999.
    Raises ValueError for 100 and more.
    """
    beyond = 100 - Fraction(percent)
    if beyond <= 0:
        raise ValueError(f"nothing lies beyond the percentile {percent}")
    return -(-LEAST_BEYOND * 100 // beyond)


def percentiles_us(bins: t.Mapping[int, int]) -> dict[str, float | None]:
    """{percentile: µs}; None for those with too few I/Os beyond them."""
    total = ios(bins)
    told = {percent: percentile_ns(bins, percent) if total >= needed_ios(percent) else None for percent in PERCENTILES}
    return {percent: None if value is None else value / 1000.0 for percent, value in told.items()}


def share_within_pct(bins: t.Mapping[int, int], limit_us: int) -> float:
    """Return how much of the I/O took at most so long, in %: of a bin that the limit cuts nothing counts, so that no
    I/O counts that took longer.
    """
    inside = sum(count for value, count in bins.items() if highest_of(value) <= limit_us * 1000)
    return 100.0 * inside / ios(bins)


def within_metric(limit_us: int) -> str:
    """Return the name of a share: within_1ms_pct, within_250us_pct."""
    return "within_{0}_pct".format(f"{limit_us}us" if limit_us % 1000 else f"{limit_us // 1000}ms")


def metrics(sides: t.Mapping[str, t.Mapping[int, int]], limits_us: t.Iterable[int] = ()) -> dict[str, float | None]:
    """Return what the histograms of one cell tell, by metric (docs/internals.md).

    sides: {read, write, trim, sync: bins}, those that had any. Trims and flushes are no part of what is told of both
      directions.
    """
    found: dict[str, float | None] = {}
    limits = list(limits_us)
    for name, bins in sides.items():
        found[name + "_ios"] = ios(bins)
        for percent, value in percentiles_us(bins).items():
            found["{0}_p{1}_latency_us".format(name, percent.replace(".", "_"))] = value
        found.update({f"{name}_{within_metric(limit)}": share_within_pct(bins, limit) for limit in limits})
    both = merge(bins for name, bins in sides.items() if name in ("read", "write"))
    if both:
        found.update({within_metric(limit): share_within_pct(both, limit) for limit in limits})
    return found


def unknown_metrics(sides: t.Collection[str], limits_us: t.Collection[int] = ()) -> dict[str, float | None]:
    """Return the metrics of a cell whose latencies don't count: as metrics has them, and no figure."""
    percents = [percent.replace(".", "_") for percent in PERCENTILES]
    found: dict[str, float | None] = {f"{side}_p{percent}_latency_us": None for side in sides for percent in percents}
    both = [""] if {"read", "write"} & set(sides) else []
    for limit in limits_us:
        found.update({f"{side}{within_metric(limit)}": None for side in [*(f"{name}_" for name in sides), *both]})
    return found


def is_of_histogram(metric: str) -> bool:
    """Return whether a metric is a percentile or a share within a time."""
    return bool(_METRIC.fullmatch(metric)) or "within_" in metric


def too_few(metric: str, found: t.Mapping[str, float | None]) -> tuple[int, int] | None:
    """Of a percentile among a cell's metrics that too few I/Os lie beyond: how many there were and how many it takes.
    None for any other metric.
    """
    match = _METRIC.fullmatch(metric)
    total = found.get(match.group(1) + "_ios") if match and metric in found else None
    if match is None or total is None:
        return None
    percent = match.group(2).replace("_", ".")
    needed = needed_ios(percent) if float(percent) < 100 else 0
    return (int(total), needed) if total < needed else None


class RoundHistograms:
    """Histograms by round."""

    def __init__(self) -> None:
        # Packed, as a day of rounds would fill the memory of a small host otherwise.
        self._rounds: dict[int, dict[tuple[str, str], bytes]] = {}

    def add(self, number: int, cells: Cells) -> None:
        """A finished round, from its histograms."""
        self._rounds[number] = {
            (cell, name): _packed(bins) for cell, sides in cells.items() for name, bins in sides.items()
        }

    def merged(self, numbers: t.Iterable[int], without: LeftOut = MappingProxyType({})) -> dict[str, dict[str, Bins]]:
        """Return the histograms of some rounds as one for each cell and direction. without: rounds by cell that don't
        count.
        """
        found: dict[tuple[str, str], list[bytes]] = {}
        for number in numbers:
            for place, packed in self._rounds.get(number, {}).items():
                if number in without.get(place[0], ()):
                    continue
                found.setdefault(place, []).append(packed)
        cells: dict[str, dict[str, Bins]] = {}
        for (cell, name), parts in found.items():
            cells.setdefault(cell, {})[name] = merge(_unpacked(packed) for packed in parts)
        return cells

    def records(self, numbers: t.Sequence[int], without: LeftOut = MappingProxyType({})) -> list[HistogramDetails]:
        """Return the histogram of each cell and direction over these rounds. without: as merged has it."""
        return [
            HistogramDetails(
                cell=cell,
                direction=t.cast(SideName, name),
                first_round=numbers[0],
                last_round=numbers[-1],
                ios=ios(bins),
                bins={str(value): count for value, count in bins.items()},
            )
            for cell, sides in self.merged(numbers, without).items()
            for name, bins in sides.items()
        ]


def _packed(bins: t.Mapping[int, int]) -> bytes:
    return zlib.compress(array.array("Q", [*bins.keys(), *bins.values()]).tobytes(), 1)


def _unpacked(packed: bytes) -> Bins:
    numbers = array.array("Q")
    numbers.frombytes(zlib.decompress(packed))
    half = len(numbers) // 2
    return dict(zip(numbers[:half], numbers[half:]))
