# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the cells, rounds and histograms of one attempt tell, taken from its journal record by record. Pure."""

from __future__ import annotations

import typing as t

from ...module_utils.measure import causes, fio_result, load
from ...module_utils.measure.limits import Limits
from ..common import cellnames
from . import cell_laws
from .points import Points

Mapping = t.Mapping[str, t.Any]
OF_HISTOGRAM = ("first_round", "last_round", "ios", "bins")
# What figures that cannot be raise in arithmetic.
UNKNOWN_FORM = (KeyError, TypeError, ValueError, IndexError, AttributeError, ArithmeticError)
NOT_SEEN = "cells were not checked again: the journal lacks the evidence of one"
NO_PLAN = "cells were not checked again: the host's plan was not collected"
# What the engine keeps of each cell, known or not: a cell that lost one of them would look clean.
EVIDENCE = ("between_bytes", "beside_bytes", "suspended_s", "longest_s", "longest_gap_s", "waited_s")
NUMBERS = ("run_s", "queued", "mean_latency_s")


class Taken:
    """The records of one attempt. cells, limits, strict, points: as Proof.

    metrics: by (round, cell or stream). sides: its figures by side, and the I/Os that its ramp may have cut in two.
    written: bytes by round. lasted: seconds of a round's cells; None where they don't tell. rounds: {bytes_written,
    elapsed_s} by round. spoilt: by round, why. histograms: by cell and side. loads: of cells with per_cpu, by their
    names, {threads, queue_depth, cpus}. wrong, unproved: as Proof.
    """

    def __init__(
        self,
        cells: t.Mapping[str, Mapping],
        limits: Limits | None,
        strict: bool = False,
        points: Points | None = None,
    ) -> None:
        self._cells, self._limits, self._strict, self._points = cells, limits, strict, points
        self.metrics: dict[tuple[int, str], Mapping] = {}
        self.sides: dict[tuple[int, str], tuple[Mapping, int]] = {}
        self.written: dict[int, int] = {}
        self.lasted: dict[int, float | None] = {}
        self.rounds: dict[int, Mapping] = {}
        self.spoilt: dict[int, str] = {}
        self.histograms: dict[str, dict[str, Mapping]] = {}
        self.loads: dict[str, Mapping] = {}
        # As the first of these cells tells them: fio has the same CPUs in all cells of a test.
        self._cpus: int | None = None
        self.wrong: list[str] = []
        self.unproved: list[str] = []

    def forget(self) -> None:
        """Let go of what is large, once it is judged: a run has thousands of attempts."""
        self.metrics, self.sides, self.rounds, self.histograms = {}, {}, {}, {}

    def take_round(self, event: Mapping) -> None:
        before = self.rounds.get(event["round"] - 1)
        if event["round"] in self.rounds or (event["round"] > 1 and before is None):
            self.wrong.append(f"its journal has round {event['round']} twice or out of order")
        elif before and any(event[key] < before[key] for key in ("bytes_written", "elapsed_s")):
            self.wrong.append(f"round {event['round']} ended before the one before it, or with less written")
        self.rounds[event["round"]] = {key: event[key] for key in ("bytes_written", "elapsed_s")}

    def take_histogram(self, event: Mapping) -> None:
        kept = {key: event[key] for key in OF_HISTOGRAM}
        self.histograms.setdefault(event["cell"], {})[event["direction"]] = kept

    def take_cell(self, event: Mapping) -> None:
        place = event["round"], event["cell"]
        if place in self.metrics:
            self.wrong.append(f"its journal has cell {event['cell']} of round {event['round']} twice")
        cell = self._cells.get(event["cell"]) or {}
        # Each for itself: figures of an odd form must not hide what spoilt the cell.
        for take in (self._take_figures, self._take_written, self._take_causes):
            try:
                take(event, cell)
            except UNKNOWN_FORM:  # such as rates without an I/O
                self.lacks(NOT_SEEN)

    def _take_figures(self, event: Mapping, cell: Mapping) -> None:
        at = event["round"]
        self.wrong += cell_laws.empty(event)
        astride = load.asked_in_flight(cell) if cell.get("ramp_s") else 0
        self.metrics[at, event["cell"]] = fio_result.metrics_of(event)
        self.sides[at, event["cell"]] = _sides_of(event), astride
        for stream in event.get("streams") or []:
            if not stream["name"].startswith(event["cell"] + "."):
                self.wrong.append(f"round {at}, {event['cell']}: {stream['name']} is not one of its streams")
            else:
                self.metrics[at, stream["name"]] = fio_result.metrics_of(stream)
                self.sides[at, stream["name"]] = _sides_of(stream), astride
        self._told_twice(event)
        self._take_load(event)
        if event.get("chosen") and not _chooses(cell, event["cell"]):
            self.wrong.append(f"round {at}, {event['cell']}: its journal has another load than the test asks for")
        self.wrong += cell_laws.contradictions(event, {**cell, **(event.get("chosen") or {})})

    def _take_load(self, event: Mapping) -> None:
        """The load of a point, by its sweep, and of a cell whose threads follow the CPUs: as the rule has it, and by
        the same CPUs in all cells.
        """
        wrong = self._points.problem(event["cell"], event.get("chosen") or {}) if self._points else ""
        if wrong:
            self.wrong.append(f"round {event['round']}, {event['cell']}: {wrong}")
        if not cellnames.follows_cpus(event["cell"]):
            return
        told, most = event.get("chosen") or {}, cellnames.told(event["cell"])
        if self._cpus is None:
            self._cpus = int(told.get("cpus") or 0)
        right = self.loads.setdefault(event["cell"], load.by_cpus(most, self._cpus))
        if told != right:
            place = f"round {event['round']}, {event['cell']}"
            self.wrong.append(f"{place}: its journal has the load {told}; by its CPUs and its first cell it is {right}")

    def _take_written(self, event: Mapping, cell: Mapping) -> None:
        """What the cell wrote, and how long it took by its own records; None where they don't tell."""
        at, lasted = event["round"], cell_laws.lasted_s(event, cell)
        self.written[at] = self.written.get(at, 0) + ((event.get("write") or {}).get("bytes") or 0)
        before = self.lasted.get(at, 0.0)
        self.lasted[at] = None if lasted is None or before is None else before + lasted

    def _take_causes(self, event: Mapping, _cell: Mapping) -> None:
        levels = (causes.SPOILS, causes.UNKNOWN) if self._strict else (causes.SPOILS,)
        found = [item["message"] for item in event.get("causes") or [] if item["level"] in levels] + self._causes(event)
        if found:
            self.spoilt.setdefault(event["round"], f"round {event['round']}, {event['cell']}: {found[0]}")

    def lacks(self, text: str) -> None:
        """Note, once, what can't be computed again."""
        if text not in self.unproved:
            self.unproved.append(text)

    def _told_twice(self, event: Mapping) -> None:
        """What the streams of a cell did is what the cell did."""
        for side in fio_result.SIDES if event.get("streams") else ():
            parts = sum((stream.get(side) or {}).get("ios", 0) for stream in event["streams"])
            told = (event.get(side) or {}).get("ios", 0)
            if parts != told:
                place = f"round {event['round']}, {event['cell']}"
                self.wrong.append(f"{place}: its streams report {parts} I/Os of {side}, the cell {told}")

    def _causes(self, event: Mapping) -> list[str]:
        """What spoils a cell by the evidence that the host kept of it."""
        # A point's plan has the most that it may ask for, its journal what its sweep gave.
        cell, seen = {**(self._cells.get(event["cell"]) or {}), **(event.get("chosen") or {})}, event.get("seen") or {}
        if self._limits is None:
            return []
        if not cell.get("threads") or not cell.get("queue_depth"):
            self.lacks(NO_PLAN)
            return []
        # A record of an older form, or one that lost what speaks against it.
        if any(key not in seen for key in EVIDENCE) or any(seen.get(key) is None for key in NUMBERS):
            self.lacks(NOT_SEEN)
        try:
            found = causes.find(cell, seen, self._limits, self._strict)
        except UNKNOWN_FORM:
            self.lacks(NOT_SEEN)
            return []
        return [item.message for item in found if item.level == causes.SPOILS]


def _chooses(cell: Mapping, name: str) -> bool:
    """Whether the host chooses the load of a cell: by its CPUs, or of a point by its sweep. A name that tells the load
    is held to it, as the plan that calls a cell a point is the host's.
    """
    is_point = bool(cell.get("point")) or not cell
    return cellnames.follows_cpus(name) or (is_point and "threads" not in cellnames.told(name))


def _sides_of(told: Mapping) -> Mapping:
    """The figures alone: a host's journal has hundreds of thousands, with all that was seen of each."""
    return {side: told[side] for side in fio_result.SIDES if told.get(side)}
