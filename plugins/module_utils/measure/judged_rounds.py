# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rounds of a test as they are judged by now: what each cell's event says of itself, and what only its quiet rounds
show, by which earlier rounds are judged again. Pure.
"""

from __future__ import annotations

import copy
import typing as t
from dataclasses import replace

from ..records.attempt import MeasuredCell
from ..records.measurement import Cause
from ..records.planned_cell import PlannedCell
from . import quiet_runs
from .disturbances import DISTURBS
from .disturbed_rounds import DisturbedRounds
from .validity_limits import Limits


class JudgedRounds:
    """Causes as cells and rounds come in. cells: of the plan whose rounds are compared; decide: cells and streams that
    windows are made of.
    """

    def __init__(self, cells: t.Iterable[PlannedCell], decide: t.Container[str], limits: Limits, strict: bool) -> None:
        self._planned = {cell.id: cell for cell in cells}
        self._decide = decide
        self._limits, self._strict = limits, strict
        # What stands, whatever comes.
        self._disturbed = DisturbedRounds()
        # By round, the cells and streams whose own figures that leaves out.
        self._left_out: dict[int, set[str]] = {}
        # By cell, the rounds whose latencies the host did not keep: of cells with a cause that disturbs.
        self._not_kept: dict[str, set[int]] = {}
        self._compared: dict[str, quiet_runs.CellRounds] = {}
        # Of the round that is under way.
        self._pending: dict[str, tuple[PlannedCell, quiet_runs.Round]] = {}
        # Of each cell, its own name and those of its streams.
        self._names: dict[str, set[str]] = {}

    def take_cell(self, cell: MeasuredCell) -> None:
        """Take a cell of the round that is under way."""
        self._names[cell.cell] = {cell.cell, *(each.name for each in cell.streams or ())}
        if _disturbs(cell.causes):
            self._not_kept.setdefault(cell.cell, set()).add(cell.round)
        own = [item for item in cell.causes if not item.time_taken]
        taken = [item for item in cell.causes if item.time_taken]
        self._stands(cell.round, cell.cell, own)
        planned = self._planned.get(cell.cell)
        if planned and cell.chosen:
            planned = replace(planned, threads=cell.chosen.threads, queue_depth=cell.chosen.queue_depth)
        one = planned and cell.seen and quiet_runs.of_round(cell.round, planned, cell.seen, cell.causes, self._limits)
        if not one or not planned or _disturbs(own):
            self._stands(cell.round, cell.cell, taken)
            return
        self._pending[cell.cell] = planned, one

    def end_round(self, number: int, causes: t.Sequence[Cause], decided: int) -> list[int]:
        """Judge the round that ends, with its own causes, and earlier ones again; return those that are judged
        otherwise than before. decided: the last round of a window that stands.
        """
        self._disturbed.add(number, "", causes)
        pending, self._pending = self._pending, {}
        changed: set[int] = set()
        for name, (cell, one) in pending.items():
            if _disturbs(causes):
                self._stands(number, name, one.taken)
                continue
            rounds = self._compared.setdefault(name, quiet_runs.CellRounds(self._limits, self._strict))
            changed.update(rounds.take(cell, one, decided))
        return sorted(changed)

    def _stands(self, number: int, name: str, causes: t.Sequence[Cause]) -> None:
        decides = self._does_decide(name)
        self._disturbed.add(number, name, causes, decides)
        if not decides and _disturbs(causes):
            self._left_out.setdefault(number, set()).update(self._names[name])

    def _does_decide(self, name: str) -> bool:
        return any(each in self._decide for each in self._names[name])

    def is_disturbed(self, number: int) -> bool:
        """Return whether a round can't be in a window."""
        of_cells = (name for name, rounds in self._compared.items() if rounds.disturbs(number))
        return self._disturbed.has(number) or any(self._does_decide(name) for name in of_cells)

    def left_out(self, number: int) -> set[str]:
        """Return the cells and streams whose own figures a round does not give, and nothing else of it."""
        of_cells = [name for name, rounds in self._compared.items() if rounds.disturbs(number)]
        more = [self._names[name] for name in of_cells if not self._does_decide(name)]
        return self._left_out.get(number, set()).union(*more)

    def causes(self) -> DisturbedRounds:
        """Return the causes of all rounds."""
        found = copy.deepcopy(self._disturbed)
        for name, rounds in self._compared.items():
            for number, causes in rounds.found.items():
                found.add(number, name, causes, self._does_decide(name))
        for name, (_cell, one) in self._pending.items():
            found.add(one.number, name, one.taken, self._does_decide(name))
        return found

    def without_percentiles(self) -> dict[str, set[int]]:
        """Return the rounds whose latencies don't count, by cell and stream."""
        found: dict[str, set[int]] = {}
        for cell, names in self._names.items():
            compared = self._compared.get(cell)
            numbers = self._not_kept.get(cell, set()) | (compared.without_percentiles if compared else set())
            found.update({name: numbers for name in names if numbers})
        return found


def _disturbs(causes: t.Iterable[Cause]) -> bool:
    return any(item.level == DISTURBS for item in causes)
