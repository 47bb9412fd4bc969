# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The latencies of a test's rounds, kept as histograms and merged over those of its window: a mean of percentiles hides
what happens rarely. Pure.
"""

from __future__ import annotations

import array
import typing as t
import zlib

from . import histogram
from .histogram import Bins

# {cell: {read, write: bins}}, of the directions that had I/O.
Cells = t.Mapping[str, t.Mapping[str, t.Mapping[int, int]]]


class Tails:
    """Histograms by round."""

    def __init__(self) -> None:
        # Packed, as a day of rounds would fill the memory of a small host otherwise.
        self._rounds: dict[int, dict[tuple[str, str], bytes]] = {}

    def add(self, number: int, cells: Cells) -> None:
        """A finished round, from its histograms."""
        self._rounds[number] = {
            (cell, name): _packed(bins) for cell, sides in cells.items() for name, bins in sides.items()
        }

    def merged(self, numbers: t.Iterable[int]) -> dict[str, dict[str, Bins]]:
        """Return the histograms of some rounds as one for each cell and direction."""
        found: dict[tuple[str, str], list[bytes]] = {}
        for number in numbers:
            for place, packed in self._rounds.get(number, {}).items():
                found.setdefault(place, []).append(packed)
        cells: dict[str, dict[str, Bins]] = {}
        for (cell, name), parts in found.items():
            cells.setdefault(cell, {})[name] = histogram.merged(_unpacked(packed) for packed in parts)
        return cells

    def records(self, numbers: t.Sequence[int]) -> list[dict[str, t.Any]]:
        """Return the fields of the journal's histogram records: of each cell and direction over these rounds."""
        return [
            {
                "cell": cell,
                "direction": name,
                "first_round": numbers[0],
                "last_round": numbers[-1],
                "ios": histogram.ios(bins),
                "bins": {str(value): count for value, count in bins.items()},
            }
            for cell, sides in self.merged(numbers).items()
            for name, bins in sides.items()
        ]


def _packed(bins: t.Mapping[int, int]) -> bytes:
    return zlib.compress(array.array("Q", [*bins.keys(), *bins.values()]).tobytes(), 1)


def _unpacked(packed: bytes) -> Bins:
    numbers = array.array("Q")
    numbers.frombytes(zlib.decompress(packed))
    half = len(numbers) // 2
    return dict(zip(numbers[:half], numbers[half:]))
