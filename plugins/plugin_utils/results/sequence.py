# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether the records of one attempt at a test follow each other as the engine writes them: the cells of a round, the
round, and at last the end; each once, and each of this attempt. Pure.
"""

from __future__ import annotations

import typing as t

Mapping = t.Mapping[str, t.Any]
# What fio gets for a cell of a round.
Seed = t.Callable[[int, str], int]
# A journal that lacks one round would say so of each after it.
MOST = 20


class Sequence:
    """One attempt, event by event. cells: the ids of its test's; none: nobody knows them. seed: None: nobody knows.

    wrong: what shows that records were left out, added, put in another order or taken from elsewhere, as sentences.
    """

    def __init__(self, cells: t.Iterable[str] = (), seed: Seed | None = None) -> None:
        self._cells, self._seed = set(cells), seed
        self._open: set[str] = set()
        self._rounds, self._ended = 0, False
        self.wrong: list[str] = []

    def take(self, event: Mapping) -> None:
        """Add a journal record of this attempt."""
        kind = event["event"]
        if kind == "cell" and event.get("accepted"):
            self._cell(event)
        elif kind == "round":
            lacking = sorted(self._cells - self._open)
            self._say(lacking, f"its journal lacks {', '.join(lacking[:MOST])} of round {event['round']}")
            self._open, self._rounds = set(), event["round"]
        if kind in ("round", "test_finished"):
            self._say(self._ended, f"its journal has a {kind.replace('_', ' ')} record after the end of the test")
        self._ended = self._ended or kind == "test_finished"

    def _cell(self, event: Mapping) -> None:
        number, cell = event["round"], event["cell"]
        place = f"round {number}, {cell}"
        self._say(self._ended or number != self._rounds + 1, f"its journal has {place} after round {self._rounds}")
        self._say(self._cells and cell not in self._cells, f"its journal has {place}, which is not in its plan")
        if self._seed:
            other = event.get("seed") != self._seed(number, cell)
            self._say(other, f"its journal has {place} of another measurement: the seed is not that of this one")
        self._open.add(cell)

    def _say(self, holds: t.Any, text: str) -> None:
        if holds and len(self.wrong) < MOST:
            self.wrong.append(text)
