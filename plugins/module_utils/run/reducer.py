# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reduce the journal's events of one attempt at a test to its result: the host job decides with it whether another
round is due, and the controller reports what it gives for the collected journal. Pure.
"""

from __future__ import annotations

import typing as t
from dataclasses import replace
from types import MappingProxyType

from ..measure import (
    disturbances,
    fio_result,
    health_metrics,
    hidden_variation,
    journaled_health,
    validity_limits,
)
from ..measure.disturbed_rounds import DisturbedRounds
from ..measure.journaled_health import JournaledHealth, LinesOfHost
from ..measure.judged_rounds import JudgedRounds
from ..measure.rounds import FITTED_END, STEADY_ITSELF, Rounds, cells_in_order, is_maximum
from ..records import base
from ..records.attempt import AttemptResult, CellAverage, LoadOfCell, MeasuredCell, Outcome, Window
from ..records.events import KernelEvent
from ..records.in_service import ScrubDetails
from ..records.measurement import Cause, Chosen, IntegrityDetails, SelfTestDetails, TestEnd
from ..records.plan import PlannedTest, Validity
from ..records.power_cut import PowerCutCycle, PowerCutDetails
from .criteria import MEASURED, is_of_drive, power_cut_faults
from .folder import Event

# What stands for the end of a test that has none, as its job was killed.
CUT_SHORT = TestEnd("interrupted", ["interrupted: the host job ended before this test did"], [], [], None, None)
# Of an attempt that was cut short, whose journal is whole.
CUT_OUTCOMES = (*MEASURED, "interrupted")
# Twenty-four drives, each with a day of one-minute rounds and windows of an hour, need a quarter of it.
MOST_FIGURES = 50_000_000
# Percentiles of fewer rounds of a window are those of a moment.
LEAST_ROUNDS = 3
USUAL = Validity(False, {})
NO_LINES: LinesOfHost = MappingProxyType({})
# What figures of an impossible form raise in arithmetic.
_DAMAGED = (KeyError, TypeError, ValueError, IndexError, AttributeError, ArithmeticError)
# What leaves unknown whether a drive was throttled, or slowed down by itself (drive_environment.py).
UNSEEN_THROTTLING = {"throttled", "temperature", "world", "health", "samples", "elsewhere"}
# The events that a result is made of.
EVENTS = (
    *("measurement_started", "cell", "round", "histogram", "integrity", "self_test", "power_cut_cycle", "scrub"),
    "test_finished",
    *journaled_health.EVENTS,
)


class AttemptReducer:
    """The result of one attempt, event by event. validity: what the plan holds its cells to; lines: the kernel_events
    of its host's job, by which an attempt that is cut short is judged.
    """

    def __init__(
        self,
        test: PlannedTest,
        attempt: int = 1,
        validity: Validity = USUAL,
        lines: LinesOfHost = NO_LINES,
    ) -> None:
        self._test, self._attempt = test, attempt
        self._rounds = Rounds(test, 0)
        tracked = test.steady_state.tracked if test.steady_state else []
        # The cells of a whole round.
        self._due = [cell.id for cell in test.cells] + [item.cell for item in tracked]
        # Those that windows are made of; all of a test without a rule, whose rounds are whole ones.
        self._decides = {item.cell for item in tracked} | {cell.id for cell in test.cells if cell.lead or not tracked}
        limits = validity_limits.parse(validity.limits)
        # What waits for one drive of an array is not in the count of what the others work on.
        compared = [] if test.array else test.cells
        self._judged = JudgedRounds(compared, self._decides, limits, validity.strict)
        # Of the round that is under way, by cell; a stream's figures are those of a cell named <cell>.<stream>.
        self._cells: dict[str, dict[str, float]] = {}
        # Its cells and their seeds, in the order in which they ran.
        self._ran: list[tuple[str, int]] = []
        self._loads: dict[str, Chosen] = {}
        self._end: TestEnd | None = None
        self._ramp_s = {cell.id: cell.ramp_s or 0 for cell in test.cells}
        # Of all cells, disturbed ones too. None: unknown, or not of the drive alone.
        self._longest_io_s: float | None = None
        self._integrity: IntegrityDetails | None = None
        self._self_test: SelfTestDetails | None = None
        self._cuts: list[PowerCutCycle] = []
        self._scrub: ScrubDetails | None = None
        self._health, self._lines = JournaledHealth(), lines
        # By its cells.
        self.cells_bytes = 0
        # Why nothing that is measured after it can count; "" while nobody gave blocks of the drive back.
        self.discarded = ""

    def take(self, event: Event) -> None:
        """Add one event of this attempt, in the journal's order."""
        kind = event["event"]
        if kind == "measurement_started":
            self._rounds.resize(event["user_capacity_bytes"])
        elif kind == "cell":
            self._take_cell(event)
        elif kind == "round":
            self._take_round(event)
        elif kind == "histogram":
            bins = {int(value): count for value, count in event["bins"].items()}
            self._rounds.histograms.setdefault(event["cell"], {})[event["direction"]] = bins
        elif kind == "integrity":
            # Of all passes so far.
            self._integrity = base.parse(IntegrityDetails, event)
        elif kind == "self_test":
            self._self_test = base.parse(SelfTestDetails, event)
        elif kind == "power_cut_cycle":
            self._cuts.append(base.parse(PowerCutCycle, event))
        elif kind == "scrub":
            self._scrub = base.parse(ScrubDetails, event)
        elif kind == "test_finished":
            self._end = base.parse(TestEnd, event)
        # Those of an array name drives that the journal does not tell apart.
        elif kind in journaled_health.EVENTS and not self._test.array:
            self._health.take(base.parse(journaled_health.EVENTS[kind], event))

    def _take_cell(self, event: Event) -> None:
        cell = base.parse(MeasuredCell, event)
        self._cells[cell.cell] = fio_result.metrics(cell.read, cell.write, cell.trim, cell.sync)
        if cell.seen and cell.seen.slowest_second_pct is not None:
            self._cells[cell.cell][hidden_variation.SLOWEST_SECOND] = cell.seen.slowest_second_pct
        if cell.seen and not (self._test.array or self._test.filesystem):
            longest_s = health_metrics.longest_io_s(cell.seen, self._ramp_s.get(cell.cell, 0))
            self._longest_io_s = max((s for s in (self._longest_io_s, longest_s) if s is not None), default=None)
        self._ran.append((cell.cell, cell.seed))
        for each in cell.streams or ():
            self._cells[each.name] = fio_result.metrics(each.read, each.write, each.trim, each.sync)
        self.cells_bytes += cell.write.bytes if cell.write else 0
        self._judged.take_cell(cell)
        if cell.chosen:
            self._loads[cell.cell] = cell.chosen
        self.discarded = self.discarded or next(
            (one.message for one in cell.causes if one.cause == disturbances.DISCARDED), ""
        )

    def _take_round(self, event: Event) -> None:
        lacking = [name for name in self._due if name not in self._cells]
        if event["round"] != self._rounds.count + 1 or lacking:
            after = f" without {lacking[0]}" if lacking else ""
            raise ValueError(f"round {event['round']} follows round {self._rounds.count}{after}")
        planned = cells_in_order(self._test, dict(self._ran).__getitem__)
        if [cell.id for cell in planned] != [name for name, _seed in self._ran]:
            raise ValueError(f"round {event['round']} has its cells in another order than planned")
        number, causes = event["round"], [base.parse(Cause, item) for item in event.get("causes") or ()]
        judged = self._judged
        for other in judged.end_round(number, causes, self._rounds.steady_at or 0):
            self._rounds.judge_again(other, judged.is_disturbed(other), judged.left_out(other))
        is_disturbed, left_out = judged.is_disturbed(number), judged.left_out(number)
        # In the order of the plan, whatever that of the round: the first one's figures are the test's.
        place = {cell.id: position for position, cell in enumerate(self._test.cells)}
        names = sorted(self._cells, key=lambda name: place[name.partition(".")[0]])
        cells = {name: self._cells[name] for name in names}
        self._rounds.add(cells, self.cells_bytes, event["elapsed_s"], is_disturbed, left_out)
        self._cells, self._ran = {}, []

    @property
    def written_bytes(self) -> int:
        """By its cells, and to be read back."""
        return self.cells_bytes + (self._integrity.bytes_written if self._integrity else 0)

    @property
    def evaluations(self) -> int:
        """How many rounds were held to the rule of steady state."""
        return self._rounds.evaluations

    @property
    def count(self) -> int:
        """Rounds so far."""
        return self._rounds.count

    def is_complete(self) -> bool:
        """Return whether no further round is due."""
        return bool(self.discarded) or self._rounds.finished()

    def only_repeats(self) -> bool:
        """Return whether the rounds would be over by now if none had been disturbed."""
        return self._rounds.only_repeats()

    def time_left_s(self) -> float | None:
        """Return an upper bound of the rounds' time, None if nothing bounds it."""
        return self._rounds.time_left_s()

    def tracked(self) -> dict[tuple[str, str], float | None]:
        """Return the tracked variables of the last round: {(cell, metric): value}."""
        return self._rounds.tracked()

    def last_figures(self) -> tuple[str, dict[str, float]]:
        """Return the metric to show of the last round, and all metrics of its cell."""
        return self._rounds.last_figures()

    def span(self) -> list[int]:
        """Return the rounds whose latencies count (Rounds.span)."""
        return self._rounds.span()

    def latencies_left_out(self) -> dict[str, set[int]]:
        """Return rounds of the span whose latencies don't count, by cell and stream."""
        return self._judged.without_percentiles()

    def _without_percentiles(self) -> list[str]:
        """Return the cells and streams whose latencies count in too few rounds of the span, because of the host."""
        span = self._rounds.span() if self._rounds.count else []
        least = min(LEAST_ROUNDS, len(span))
        left_out = self.latencies_left_out().items()
        return [name for name, numbers in left_out if sum(number not in numbers for number in span) < least]

    def result(self, end: TestEnd | None = None) -> AttemptResult:
        """Return what the attempt comes to. end: what test_finished will report; None: the one that was taken."""
        end = end or self._end or replace(CUT_SHORT, health=self._health.change(self._lines))
        causes = self._judged.causes()
        outcome, reasons = self._outcome(end, causes)
        self._rounds.without_percentiles = self._without_percentiles()
        windows = self._rounds.steady_state() if self._rounds.count else []
        averages = self._rounds.averages()
        by_host = [cell.id for cell in self._test.cells if cell.per_cpu or cell.auto_threads]
        loads = [self._load(name) for name in by_host if name in self._loads]
        return AttemptResult(
            test=self._test.name,
            attempt=self._attempt,
            outcome=outcome,
            reasons=list(dict.fromkeys(reasons)),
            rounds=self._rounds.count,
            steady_state=windows,
            saturation=self._rounds.saturation(),
            written_bytes=self.written_bytes,
            validity=causes.disturbances(),
            metrics={
                **_metrics(windows, averages),
                **self._throttled(end, causes),
                **health_metrics.metrics(end.health, end.wear, self._longest_io_s),
            },
            cells=averages,
            conditions=end.conditions,
            vendor_settings=end.vendor_settings,
            wear=end.wear,
            loads=loads or None,
            health=end.health,
            integrity=self._integrity,
            self_test=self._self_test,
            power_cut=self._power_cut(),
            scrub=self._scrub,
        )

    def _power_cut(self) -> PowerCutDetails | None:
        asked = self._test.power_cut
        return PowerCutDetails(asked.mode, asked.cycles, self._cuts) if asked and self._cuts else None

    def _throttled(self, end: TestEnd, causes: DisturbedRounds) -> dict[str, float | None]:
        unknown = {item.cause for item in end.conditions if item.level == disturbances.UNKNOWN}
        rounds, is_known = self._rounds.count, unknown.isdisjoint(UNSEEN_THROTTLING)
        share = hidden_variation.throttled_pct(causes.count("throttled"), rounds, is_known)
        return {hidden_variation.THROTTLED: share} if rounds else {}

    def _load(self, name: str) -> LoadOfCell:
        found = self._loads[name]
        return LoadOfCell(name, found.threads, found.queue_depth, found.cpus or 0)

    def _is_read_back(self, passes: int) -> bool:
        """Return whether an integrity test came to a result: all of it, or blocks that are wrong."""
        found = self._integrity
        whole = found and found.passes >= passes and found.complete and found.bytes_read == found.bytes_written
        return bool(found and (whole or found.wrong_blocks))

    def _outcome(self, end: TestEnd, causes: DisturbedRounds) -> tuple[Outcome, list[str]]:
        reasons, disturbed = list(end.reasons), list(end.disturbed)
        tested = self._self_test.result if self._self_test else ""
        cuts = self._power_cut()
        wrong = bool(self._integrity and is_of_drive(self._integrity, end.ended))
        wrong = wrong or bool(cuts and power_cut_faults(cuts))
        unreadable = bool(self._scrub and self._scrub.unreadable_blocks)
        if end.ended == "interrupted" and (wrong or unreadable or tested == "failed"):
            # It stands, so that no second attempt erases what the drive is kept for.
            return "complete", reasons
        if end.ended:
            return end.ended, reasons + (disturbed if end.ended == "invalid" else [])
        if self.discarded:
            return "invalid", [causes.summary(self._rounds.count), *disturbed]
        if self._test.cells and not self._rounds.count:
            # Its fill was read back before.
            return ("complete", reasons) if wrong else ("invalid", ["no round was completed", *disturbed])
        if self._test.integrity and not self._is_read_back(self._test.integrity.passes):
            return "invalid", ["not all that was to be written was read back", *disturbed]
        asked = self._test.power_cut
        done = sum(cycle.cut for cycle in self._cuts)
        if asked and not wrong and done < asked.cycles:
            return "invalid", [f"only {done} of {asked.cycles} cuts were done", *disturbed]
        if self._test.self_test and tested not in ("passed", "failed"):
            return "invalid", ["its self-test came to no result", *disturbed]
        if self._test.scrub and not (unreadable or (self._scrub and self._scrub.complete)):
            return "invalid", ["not all that was to be read was read", *disturbed]
        outcome, reasons = self._rounds.outcome()
        if outcome in MEASURED:
            # No setting of a host makes a block wrong, or a self-test fail.
            own = self._test.integrity or self._test.self_test or self._test.power_cut or self._test.scrub
            bears = disturbed and (self._test.cells or not own)
            return ("invalid", disturbed) if bears else (outcome, reasons)
        told = causes.summary(self._rounds.count) if outcome == "invalid" else ""
        if causes.has_any(disturbances.OF_DRIVE):
            reasons = [text.replace(STEADY_ITSELF, "") for text in reasons]
        return outcome, ["; ".join([told, *reasons])] + disturbed if told else reasons + disturbed


def _metrics(windows: t.Sequence[Window], averages: t.Sequence[CellAverage]) -> dict[str, float | None]:
    """Return the test's figures: those of the first tracked cell, or of the first one where it tracks none, and where
    the fitted lines of its windows end; of maxima the largest of all cells, so that no stall passes a criterion.
    """
    first = windows[0].cell if windows else None
    tracked = next((one.metrics for one in averages if first in (None, one.cell)), {})
    counts = [window for window in windows if tracked.get(window.metric) is not None]
    fitted = [window for window in counts if window.cell == first and window.fitted_end is not None]
    of_all = [(name, value) for one in averages for name, value in one.metrics.items() if is_maximum(name)]
    longest = dict(sorted(((name, value) for name, value in of_all if value is not None), key=lambda item: item[1]))
    return {**tracked, **{window.metric + FITTED_END: window.fitted_end for window in fitted}, **longest}


class TooMany(Exception):
    """A journal takes more figures to evaluate than an honest one."""


class Budget:
    """How many figures of windows the attempts of one journal may have evaluated together: a forged plan and journal
    would take days.
    """

    def __init__(self) -> None:
        self._left = MOST_FIGURES

    def spend(self, figures: int) -> None:
        """Take so many of them. Raises TooMany where none are left."""
        self._left -= figures
        if self._left < 0:
            raise TooMany(f"its host's journal has more than {MOST_FIGURES:,} figures to hold to rules of steady state")


class JournalAttempt:
    """The result of one attempt by a journal that may be damaged. test: in plan.json; None: the plan lacks it. budget:
    of the journal; None: no limit. validity: of the plan. lines: as AttemptReducer has them.
    """

    def __init__(
        self,
        test: PlannedTest | None,
        budget: Budget | None = None,
        attempt: int = 1,
        validity: Validity = USUAL,
        lines: LinesOfHost = NO_LINES,
    ) -> None:
        self._test, self._attempt = test, attempt
        self._budget = budget
        self._figures = 0
        self._reducer: AttemptReducer | None = None
        self._lacks = "" if test else "the run's plan.json lacks this test"
        # Once it has an end, all that stays of its rounds.
        self._result: AttemptResult | None = None
        self._last_tracked: dict[tuple[str, str], float | None] = {}
        if test:
            self._reducer = AttemptReducer(test, attempt, validity, lines)
            self._figures = _figures_of_round(test)

    @property
    def written_bytes(self) -> int:
        """What it wrote so far, but for its fill."""
        if self._result:
            return self._result.written_bytes
        return self._reducer.written_bytes if self._reducer else 0

    @property
    def cells_bytes(self) -> int:
        """What its cells wrote so far; 0 once it has an end."""
        return self._reducer.cells_bytes if self._reducer else 0

    def tracked(self) -> dict[tuple[str, str], float | None]:
        """Return AttemptReducer.tracked of the round that was taken last; {} where it can't be computed."""
        if self._result:
            return self._last_tracked
        return self._reducer.tracked() if self._reducer and not self._lacks and self._reducer.count else {}

    def take(self, event: Event) -> None:
        """Add an event, in the journal's order. What follows its end is none of the attempt's."""
        kind = event["event"]
        if self._lacks or self._result or not self._reducer or kind not in EVENTS:
            return
        try:
            before = self._reducer.evaluations
            self._reducer.take(event)
            if self._reducer.evaluations > before:
                self._spend()
            if kind == "test_finished":
                self._spend()
                self._last_tracked = self.tracked()
                self._result, self._reducer = self._reducer.result(), None
        except TooMany as error:
            self._lacks = str(error)
        except _DAMAGED as error:
            self._lacks = _damage(error)

    def _spend(self) -> None:
        if self._budget:
            self._budget.spend(self._figures)

    def result(self) -> AttemptResult:
        """Return AttemptReducer.result; invalid, without figures, where it can't be computed."""
        if self._result:
            return self._result
        if self._reducer and not self._lacks:
            try:
                return self._reducer.result()
            except _DAMAGED as error:
                self._lacks = _damage(error)
        return AttemptResult(
            test=self._test.name if self._test else "",
            attempt=self._attempt,
            outcome="invalid",
            reasons=[f"{self._lacks}, so its figures can't be computed; its raw results are kept"],
            rounds=0,
            steady_state=[],
            saturation=None,
            written_bytes=self.written_bytes,
            validity=[],
            metrics={},
            cells=[],
            conditions=[],
            vendor_settings=None,
            wear=None,
        )


def _damage(error: Exception) -> str:
    return f"its journal is damaged ({type(error).__name__}: {error})"


def _figures_of_round(test: PlannedTest) -> int:
    """Return how many figures its rule of steady state looks at after a round, at most."""
    rule = test.steady_state
    return len(rule.tracked) * rule.window * (1 + rule.confirm_windows) if rule else 0


class KernelLines:
    """The kernel_events of a host's newest job, from its journal, event by event."""

    def __init__(self) -> None:
        self.by_drive: dict[str, list[KernelEvent]] = {}
        self._count = 0

    def take(self, event: Event) -> None:
        """Add an event of the journal. What an attempt was given goes on with its own job alone."""
        if event["event"] == "job_started":
            self.by_drive, self._count = {}, 0
        elif event["event"] == "kernel_event" and self._count < journaled_health.MOST_OF_JOB:
            self._count += 1
            self.by_drive.setdefault(event["drive"], []).append(base.parse(KernelEvent, event))


def results_of_attempts(
    tests: t.Iterable[PlannedTest], drive: str, journal: t.Iterable[Event], validity: Validity = USUAL
) -> list[AttemptResult]:
    """Return the results of a drive's attempts in their order, those that were cut short too, unless their journal is
    damaged.

    tests, validity: of the drive's plan; journal: all events of its host in the run before the job that is under way.
    """
    planned, lines = {test.name: test for test in tests}, KernelLines()
    attempts: dict[tuple[str, int], JournalAttempt] = {}
    ended: set[tuple[str, int]] = set()
    for event in journal:
        lines.take(event)
        if event.get("drive") == drive and event["event"] in EVENTS and event["test"] in planned:
            place = event["test"], event["attempt"]
            if place not in attempts:
                test, number = place
                attempts[place] = JournalAttempt(planned[test], None, number, validity, lines.by_drive)
            attempts[place].take(event)
            ended |= {place} if event["event"] == "test_finished" else set()
    results = {place: attempt.result() for place, attempt in attempts.items()}
    return [result for place, result in results.items() if place in ended or result.outcome in CUT_OUTCOMES]
