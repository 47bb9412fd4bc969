# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run the rounds of one test: its cells in fio, each into the journal."""

from __future__ import annotations

import contextlib
import time
import typing as t
from dataclasses import replace

from ..measure import fio
from ..measure.disturbances import DISTURBS, IDLE_GAP
from ..measure.histogram import RoundHistograms
from ..measure.rounds import cell_s, cells_in_order
from ..records import base
from ..records.base import sparse_json
from ..records.measurement import Cause, CellDetails, Chosen
from ..records.plan import PlannedTest
from ..records.planned_cell import PlannedCell
from ..run.folder import NEWS_S
from ..run.reducer import AttemptReducer
from .drive_context import Attempt, DriveContext
from .operating_points import Loads
from .thread_trials import ThreadTrials

# A link trains anew within a second: one that is down for so many rounds stays down.
LINK_ROUNDS = 3
RESEAT = "seat the drive again, or try it in another slot"


class LinkDown(Exception):
    """The drive's link fell and stays down, so no further round can count."""


Histograms = t.Mapping[str, t.Mapping[str, t.Mapping[int, int]]]


class Measuring:
    """A test's rounds. reducer: gets each event that is noted; tails: get the latencies; causes_of_round: what
    disturbed the drive or its host since the last call; wait: wait for what that saw to end, and return the seconds,
    which are no time of the rounds.
    """

    def __init__(
        self,
        station: DriveContext,
        attempt: Attempt,
        reducer: AttemptReducer,
        tails: RoundHistograms,
        causes_of_round: t.Callable[[], list[Cause]],
        wait: t.Callable[[], float],
        clock: t.Callable[[], float] = time.monotonic,
    ) -> None:
        self._station = station
        self._attempt = attempt
        self._reducer = reducer
        self._tails = tails
        self._causes_of_round = causes_of_round
        self._wait = wait
        self._clock = clock
        # Before the cell that comes next.
        self._waited_s = 0.0
        # For how many rounds in a row.
        self._link_down = 0

    def run(self, test: PlannedTest, loads: Loads, trials: ThreadTrials | None = None) -> None:
        """Run rounds until none is due. loads: of the cells whose threads and depth were chosen before; trials: choose
        those of threads: auto, None: there are none.
        """
        if not test.cells:
            return
        self._station.guard("measure", phase="measure")
        if trials:
            test, found = trials.with_threads(test, self._attempt)
            loads = {**loads, **found}
        # Its purge may have formatted the drive to another capacity.
        size_bytes = self._station.target.identity.sizes()[0]
        self._station.note("measurement_started", user_capacity_bytes=size_bytes, **self._attempt._asdict())
        self._station.bench.begin_test()
        # What the fill brought disturbs no round.
        self._causes_of_round()
        with contextlib.closing(self._station.bench):
            self._run_rounds(test, loads)

    def _run_rounds(self, test: PlannedTest, loads: Loads) -> None:
        began = self._clock()
        # No budget is refused for rounds that might be measured again, so these end where it does.
        while not (self._reducer.is_complete() or (self._reducer.only_repeats() and self._station.is_budget_spent())):
            self._waited_s = self._wait()
            began += self._waited_s
            number = self._reducer.count + 1
            histograms = {}
            for cell in cells_in_order(test, lambda name: self._seed(number, name)):
                news_s = NEWS_S + 1.1 * cell_s(cell)
                left_s = self._reducer.time_left_s()
                shown = {"phase": "measure", "round": number, "cell": cell.id}
                self._station.show(**shown, time_left_s=left_s, news_within_s=news_s)
                found = self._cell(cell, number, self._station.active_bytes(test), loads.get(cell.id))
                # A stream's latencies are kept as those of a cell, <cell>.<stream>.
                histograms.update({name or cell.id: sides for name, sides in found.items()})
            self._tails.add(number, histograms)
            self._after_round(number, self._clock() - began)

    def _after_round(self, number: int, elapsed_s: float) -> None:
        self._station.look()
        causes = self._causes_of_round()
        fields = {**self._attempt._asdict(), **({"causes": base.to_json(causes)} if causes else {})}
        self._station.note("round", round=number, elapsed_s=round(elapsed_s, 3), **fields)
        fell = next((item for item in causes if item.cause == "link"), None)
        self._link_down = self._link_down + 1 if fell else 0
        if fell and self._link_down >= LINK_ROUNDS:
            raise LinkDown(f"{fell.message}, and stayed so for {LINK_ROUNDS} rounds; {RESEAT}")
        metric, figures = self._reducer.last_figures()
        latency = figures.get("mean_latency_us")
        shown = {"metric": metric, "value": figures.get(metric), "mean_latency_us": latency, "progress": None}
        self._station.show(last=shown)

    def _seed(self, number: int, cell: str) -> int:
        return self._station.seed(self._attempt, number, cell)

    def _cell(self, cell: PlannedCell, number: int, size_bytes: int, load: Chosen | None) -> Histograms:
        """Run one cell and note it; its latencies, "" being the cell's own name."""
        value = self._seed(number, cell.id)
        name = self._station.file(self._attempt, f"{number:04d}-{cell.id}")
        fields = {**self._attempt._asdict(), "round": number, "cell": cell.id, "seed": value}
        fields.update({"chosen": sparse_json(load)} if load else {})
        try:
            result = self._station.bench.cell(name, cell, size_bytes, value)
        except fio.FioError as error:
            self._station.note("cell_refused", message=str(error), **fields)
            raise type(error)(f"round {number}, cell {cell.id}: {error}") from None
        details, self._waited_s = _after_wait(result.details, self._waited_s), 0.0
        # A sick drive may take the host down before the round ends.
        self._station.kernel_log.note_new()
        self._station.note("cell", **fields, **sparse_json(details))
        # What disturbs a cell at all leaves its latencies out.
        return {} if any(item.level == DISTURBS for item in details.causes) else result.histograms


def _after_wait(details: CellDetails, waited_s: float) -> CellDetails:
    """Return a cell with our own wait as what an idle gap before it came from."""
    told = f"; for {waited_s:.0f} s of it the host job waited for a self-test of the drive"
    is_ours = waited_s >= 1
    causes = [
        replace(cause, message=cause.message + told) if is_ours and cause.cause == IDLE_GAP else cause
        for cause in details.causes
    ]
    return replace(details, causes=causes)
