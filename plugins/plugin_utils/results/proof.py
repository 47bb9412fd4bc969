# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a host's journal proves of its figures: they are computed again from cells, rounds and histograms. Pure."""

from __future__ import annotations

import contextlib
import typing as t

from ...module_utils.measure import causes, fio, histogram, load, sampler, steady_state
from ...module_utils.measure.rounds import FITTED_END, fitted_end, last_clean
from ...module_utils.measure.seeds import seed
from ..common.values import number
from . import asked_cells, cell_laws, replay, tail_laws
from .recheck import same
from .sequence import Sequence

Mapping = t.Mapping[str, t.Any]
# What the record of a test and the end of its test in the journal both tell.
TOLD_TWICE = ("outcome", "rounds", "steady_state", "saturation", "validity", "metrics")
COUNTED = ("steady", "complete")
MOST_SAID, MOST_KEPT = 3, 100
OF_HISTOGRAM = ("first_round", "last_round", "ios", "bins")
# What figures that cannot be raise in arithmetic.
UNKNOWN_FORM = (KeyError, TypeError, ValueError, IndexError, AttributeError, ArithmeticError)
NOT_SEEN = "what spoils a cell was not looked for again: its journal lacks what was seen of one"
NOT_AGAIN = "its figures were not computed again: {0}"
NO_PLAN = "what spoils a cell was not looked for again: the host's plan was not collected"
# Between the end of a cell and that of its round the engine does next to nothing.
MORE_SHARE, MORE_S = 0.01, 2.0
# What the engine keeps of each cell, known or not: a cell that lost one of them would look clean.
EVIDENCE = ("between_bytes", "beside_bytes", "suspended_s", "longest_s")
NUMBERS = ("run_s", "queued", "mean_latency_s")


class Attempt(t.NamedTuple):
    """Which measurement a journal's records have to be of. run_id: of the folder; attempt: as that journal counts."""

    run_id: str
    drive: str
    test: str
    attempt: int


class Proof:
    """One attempt at one test of one drive, event by event.

    cells: of its rendered test, by id. about: of the test in run.json. limits: of causes (ssd_validity_limits); None:
    nobody knows which, so causes are not looked for again. After test_finished: `wrong`, what contradicts what is told,
    and `unproved`, what could not be computed again, as sentences; `told`: what the journal says of TOLD_TWICE.
    sequence: of its records; None: by the cells alone.
    """

    def __init__(
        self,
        cells: t.Mapping[str, Mapping],
        about: Mapping,
        limits: causes.Limits | None,
        strict: bool = False,
        sequence: Sequence | None = None,
    ) -> None:
        self._cells, self._about, self._limits, self._strict = cells, about, limits, strict
        self._sequence = sequence or Sequence(cells)
        self._metrics: dict[tuple[int, str], Mapping] = {}
        # The figures of each side, and the I/Os that its ramp may have cut in two.
        self._sides: dict[tuple[int, str], tuple[Mapping, int]] = {}
        self._written: dict[int, int] = {}
        self._rounds: dict[int, Mapping] = {}
        self._spoilt: dict[int, str] = {}
        self._histograms: dict[str, dict[str, Mapping]] = {}
        self._lasted: dict[int, float | None] = {}
        self._first: dict[str, t.Any] = {}
        self._seen: dict[str, str] = {}
        self.wrong: list[str] = asked_cells.problems(cells, about)
        self.unproved: list[str] = []
        self.told: Mapping | None = None

    def take(self, event: Mapping) -> None:
        """Add a journal record of this attempt."""
        kind = event["event"]
        self._sequence.take(event)
        if kind == "sample":
            self._take_sample(event)
        if kind == "cell" and event.get("accepted"):
            self._take_cell(event)
        elif kind == "round":
            before = self._rounds.get(event["round"] - 1)
            if event["round"] in self._rounds or (event["round"] > 1 and before is None):
                self.wrong.append(f"its journal has round {event['round']} twice or out of order")
            elif before and any(event[key] < before[key] for key in ("bytes_written", "elapsed_s")):
                self.wrong.append(f"round {event['round']} ended before the one before it, or with less written")
            self._rounds[event["round"]] = {key: event[key] for key in ("bytes_written", "elapsed_s")}
        elif kind == "histogram":
            kept = {key: event[key] for key in OF_HISTOGRAM}
            self._histograms.setdefault(event["cell"], {})[event["direction"]] = kept
        elif kind == "test_finished":
            self.told = {key: event.get(key) for key in TOLD_TWICE}
            if event["outcome"] in COUNTED:
                self.wrong += self._sequence.wrong
                self.wrong += [f"by its samples {text}" for text in self._seen.values()]
                self._judged(event)
            self._metrics, self._sides, self._rounds, self._histograms = {}, {}, {}, {}
        del self.wrong[MOST_KEPT:]

    def _take_sample(self, event: Mapping) -> None:
        """What a look at the drive shows against the first one: a record's conditions may leave it out."""
        self._first = self._first or dict(event)
        with contextlib.suppress(*UNKNOWN_FORM):
            self._seen.update(sampler.spoilt(self._first, dict(event)))

    def _take_cell(self, event: Mapping) -> None:
        place = event["round"], event["cell"]
        if place in self._metrics:
            self.wrong.append(f"its journal has cell {event['cell']} of round {event['round']} twice")
        cell = self._cells.get(event["cell"]) or {}
        # Each for itself: figures of an odd form must not hide what spoilt the cell.
        for take in (self._take_figures, self._take_written, self._take_causes):
            try:
                take(event, cell)
            except UNKNOWN_FORM:  # such as rates without an I/O
                self._lacks(NOT_SEEN)

    def _take_figures(self, event: Mapping, cell: Mapping) -> None:
        at = event["round"]
        self.wrong += cell_laws.empty(event)
        astride = load.asked_in_flight(cell) if cell.get("ramp_s") else 0
        self._metrics[at, event["cell"]] = fio.metrics_of(event)
        self._sides[at, event["cell"]] = _sides_of(event), astride
        for stream in event.get("streams") or []:
            if not stream["name"].startswith(event["cell"] + "."):
                self.wrong.append(f"round {at}, {event['cell']}: {stream['name']} is no stream of it")
            else:
                self._metrics[at, stream["name"]] = fio.metrics_of(stream)
                self._sides[at, stream["name"]] = _sides_of(stream), astride
        self._told_twice(event)
        self.wrong += cell_laws.contradictions(event, {**cell, **(event.get("chosen") or {})})

    def _take_written(self, event: Mapping, cell: Mapping) -> None:
        """What the cell wrote, and how long it took by its own records; None where they don't tell."""
        at, lasted = event["round"], cell_laws.lasted_s(event, cell)
        self._written[at] = self._written.get(at, 0) + ((event.get("write") or {}).get("bytes") or 0)
        before = self._lasted.get(at, 0.0)
        self._lasted[at] = None if lasted is None or before is None else before + lasted

    def _take_causes(self, event: Mapping, _cell: Mapping) -> None:
        levels = (causes.SPOILS, causes.UNKNOWN) if self._strict else (causes.SPOILS,)
        found = [item["message"] for item in event.get("causes") or [] if item["level"] in levels] + self._causes(event)
        if found:
            self._spoilt.setdefault(event["round"], f"round {event['round']}, {event['cell']}: {found[0]}")

    def _lacks(self, text: str) -> None:
        if text not in self.unproved:
            self.unproved.append(text)

    def _told_twice(self, event: Mapping) -> None:
        """What the streams of a cell did is what the cell did."""
        for side in fio.SIDES if event.get("streams") else ():
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
            self._lacks(NO_PLAN)
            return []
        # A record of an older form, or one that lost what speaks against it.
        if any(key not in seen for key in EVIDENCE) or any(seen.get(key) is None for key in NUMBERS):
            self._lacks(NOT_SEEN)
        try:
            found = causes.find(cell, seen, self._limits, self._strict)
        except UNKNOWN_FORM:
            self._lacks(NOT_SEEN)
            return []
        return [item.message for item in found if item.level == causes.SPOILS]

    def _judged(self, event: Mapping) -> None:
        try:
            self._judge(event)
        except UNKNOWN_FORM as error:
            self.unproved.append(NOT_AGAIN.format(f"its journal has an unknown form ({type(error).__name__})"))

    def _judge(self, event: Mapping) -> None:
        if not self._rounds and not self._metrics:
            # All of it was taken away: as if it had not been collected.
            self.unproved.append(NOT_AGAIN.format("its journal lacks cells of the rounds that count"))
            return
        # A number of rounds that the journal does not have would be counted up to.
        whole = event["rounds"] == len(self._rounds)
        numbers = self._window(event) if whole else []
        known = all(n in self._rounds and n <= len(self._rounds) for n in numbers)
        if not whole:
            self.wrong.append(f"{event['rounds']} rounds are reported, its journal has {len(self._rounds)}")
        elif not known:
            self.wrong.append("its figures are of rounds that its journal does not have")
        numbers = numbers if known and numbers == sorted(numbers) else []
        span = [n for n in range(numbers[0], numbers[-1] + 1) if n not in self._spoilt] if numbers else []
        needed = {item["cell"] for item in (*event["cells"], *event["steady_state"])}
        if not numbers or not needed or any((n, cell) not in self._metrics for n in numbers for cell in needed):
            self.unproved.append(NOT_AGAIN.format("its journal lacks cells of the rounds that count"))
            return
        self._judge_window(event, numbers)
        wide = self._wide(span)
        for cell in event["cells"]:
            self._judge_cell(cell["cell"], cell["metrics"], numbers, span, wide)
            self._judge_steadiness(cell, numbers)
        self._judge_first(event)
        size_bytes = (event.get("saturation") or {}).get("user_capacity_bytes")
        said = replay.problem(self._played(), self._about, numbers, size_bytes)
        self.wrong += [said] if said else []

    def _played(self) -> list[replay.Played]:
        """The rounds, in order, with the figures of their cells."""
        cells: dict[int, dict[str, t.Any]] = {n: {} for n in self._rounds}
        for (n, cell), metrics in self._metrics.items():
            cells.get(n, {})[cell] = metrics
        return [
            replay.Played(cells[n], event["bytes_written"], event["elapsed_s"], n in self._spoilt)
            for n, event in self._rounds.items()
        ]

    def _wide(self, span: list[int]) -> list[int]:
        """The rounds that maxima cover: of a saturation test all that are clean, as its curve is the result."""
        rule = self._about.get("steady_state") or {}
        saturates = (rule.get("sample_every") or 1) > 1 or rule.get("min_capacity_multiple")
        return [n for n in self._rounds if n not in self._spoilt] if saturates else span

    def _judge_steadiness(self, told: Mapping, numbers: list[int]) -> None:
        """Whether a cell was steady itself, tracked or not."""
        rule, shown = self._about.get("steady_state") or {}, told.get("steady") or {}
        if not shown or any(rule.get(key) is None for key in ("window", "range_limit", "slope_limit")):
            return
        values = [self._metrics[n, told["cell"]].get(shown["metric"], 0.0) for n in numbers]
        again = steady_state.evaluate(values, rule["window"], rule["range_limit"], rule["slope_limit"])
        if bool(again["steady"]) != bool(shown["steady"]):
            word = "steady" if shown["steady"] else "not steady"
            self.wrong.append(f"{told['cell']} is reported as {word} itself, but its rounds give {values}")

    def _window(self, event: Mapping) -> list[int]:
        """The rounds that the figures stand on: those of the window, or all that are clean, or the last of them."""
        windows = [window["window_rounds"] for window in event["steady_state"] if window.get("window_rounds")]
        if windows:
            return list(windows[0])
        count = min(event["rounds"], len(self._rounds))  # a host may report two milliards
        return last_clean(count, self._spoilt, self._about.get("last_rounds") or 0)

    def _judge_window(self, event: Mapping, numbers: list[int]) -> None:
        """The values of the tracked variables, what was written before, and that nothing spoilt the rounds."""
        if any(window.get("window_rounds") != numbers for window in event["steady_state"]):
            self.wrong.append("its tracked variables have windows of different rounds")
        for window in event["steady_state"]:
            cell, metric = window["cell"], window["metric"]
            seen = [self._metrics.get((n, cell), {}).get(metric) for n in window.get("window_rounds") or []]
            values = window.get("window_values") or []
            if len(seen) != len(values) or not all(same(one or 0.0, other) for one, other in zip(seen, values)):
                self.wrong.append(f"the window of {cell} {metric} is reported as {values}, but its cells give {seen}")
        rule = self._about.get("steady_state") or {}
        length = (rule.get("window") or 0) * (rule.get("sample_every") or 1)
        first = max(1, numbers[0] - (rule.get("confirm_windows") or 0) * length)
        spoilt = [text for n, text in sorted(self._spoilt.items()) if first <= n <= numbers[-1]]
        if spoilt and event["steady_state"]:
            self.wrong.append(f"rounds that count are spoilt by what the host kept of them: {spoilt[0]}")
        if event.get("saturation"):
            self._judge_before(event["saturation"], first)

    def _judge_before(self, shown: Mapping, first: int) -> None:
        """What was written before the first window that counts."""
        before = self._rounds.get(first - 1, {"bytes_written": 0, "elapsed_s": 0.0})
        written = sum(self._written.get(n, 0) for n in range(1, first))
        most = min(before["bytes_written"], written)
        told, elapsed_s = shown["written_before_bytes"], shown["elapsed_before_s"]
        if told > most:
            self.wrong.append(f"{told} bytes are reported as written before round {first}, but its cells give {most}")
        if elapsed_s > before["elapsed_s"] + 0.001:
            given = before["elapsed_s"]
            self.wrong.append(f"round {first} is reported to begin after {elapsed_s} s, its rounds give {given}")
        lasted = [self._lasted.get(n) for n in range(1, first)]
        if None not in lasted and elapsed_s > (1 + MORE_SHARE) * sum(map(float, lasted)) + MORE_S:  # type: ignore[arg-type]
            given = round(sum(map(float, lasted)), 3)  # type: ignore[arg-type]
            self.wrong.append(f"round {first} is reported to begin after {elapsed_s} s, its cells took {given}")

    def _judge_cell(self, cell: str, told: Mapping, numbers: list[int], span: list[int], wide: list[int]) -> None:
        """A cell's metrics over the window: means of rounds, maxima that none is above, percentiles of histograms.

        wide: the rounds of its maxima.
        """
        rounds = [self._metrics[n, cell] for n in numbers]
        for name in rounds[0] if rounds else ():
            values = [metrics[name] for metrics in rounds if metrics.get(name) is not None]
            if name not in told or len(values) < len(rounds):
                continue
            if "max_latency" in name:
                highest = max([self._metrics.get((n, cell), {}).get(name) or 0.0 for n in wide], default=0.0)
                right = (number(told[name]) or 0.0) >= highest
            else:
                highest = sum(values) / len(values)
                right = same(told[name], highest)
            if not right:
                self._say(cell, name, told[name], highest)
        for name in told:
            if told[name] is not None and not histogram.is_of_histograms(name):
                if any(name not in metrics for metrics in rounds):
                    self._say(cell, name, told[name], None)
        self._judge_tails(cell, told, span)

    def _judge_tails(self, cell: str, told: Mapping, span: list[int]) -> None:
        kept = self._histograms.get(cell, {})
        asked = [name for name, value in told.items() if value is not None and histogram.is_of_histograms(name)]
        lacking = [name for name in asked if histogram.side_of(name) not in (*kept, "")]
        if lacking or (asked and not kept):
            # The engine keeps one for each of them, before the end of the test.
            names = ", ".join((lacking or asked)[:MOST_SAID])
            self.wrong.append(f"{cell}: {names} are reported, but its journal lacks the histogram of it")
            return
        if any((item["first_round"], item["last_round"]) != (span[0], span[-1]) for item in kept.values() if span):
            self.wrong.append(f"{cell}: its histograms are not of the rounds that count, {span[0]} to {span[-1]}")
            return
        try:
            bins = {side: tail_laws.bins_of(item) for side, item in kept.items()}
        except ValueError as error:
            self.wrong.append(f"{cell}: histogram: {error}")
            return
        again = histogram.metrics(bins, self._about.get("latency_targets_us") or [])
        for name in asked:
            if name in again and not same(told[name], again[name]):
                self._say(cell, name, told[name], again[name])
        for side, counts in bins.items():
            self._judge_histogram(cell, side, counts, span)

    def _judge_histogram(self, cell: str, side: str, bins: t.Mapping[int, int], span: list[int]) -> None:
        """A histogram of the rounds that count against what their cells tell by themselves."""
        seen = [self._sides[n, cell] for n in span if (n, cell) in self._sides]
        rounds = tail_laws.Rounds(
            [told[side] for told, _astride in seen if told.get(side)], sum(n for _told, n in seen)
        )
        self.wrong += [f"{cell}, {side}s: {text}" for text in tail_laws.contradictions(bins, rounds)]
        lacking = tail_laws.lacking(rounds)
        if lacking and lacking not in self.unproved:
            self.unproved.append(lacking)

    def _judge_first(self, event: Mapping) -> None:
        """The test's own metrics are those of the first tracked cell, and where the fitted lines of its windows end."""
        windows, cells = event["steady_state"], {item["cell"]: item["metrics"] for item in event["cells"]}
        first = windows[0]["cell"] if windows else next(iter(cells), "")
        ends = {(window["cell"], window["metric"]): _end(window["window_values"]) for window in windows}
        for window in windows:
            end = ends[window["cell"], window["metric"]]
            if "fitted_end" in window and not same(window["fitted_end"], end):
                self._say(window["cell"], window["metric"] + FITTED_END, window["fitted_end"], end)
        of_first = {metric + FITTED_END: end for (cell, metric), end in ends.items() if cell == first}
        again = dict(cells.get(first, {}), **of_first)
        for name, value in event["metrics"].items():
            if value is not None and not same(value, again.get(name)):
                self._say(first, name, value, again.get(name))

    def _say(self, cell: str, name: str, told: t.Any, again: t.Any) -> None:
        self.wrong.append(f"{cell}: {name} is reported as {told}, but the host's data give {again}")


def begin(run: Mapping, host: str, spec: Mapping, of: Attempt) -> Proof:
    """For one attempt at a test of a run (run.json). spec: the test as the host had it; what it is held to is the
    controller's own.
    """
    entries = [entry for entry in run.get("asked") or [] if (entry["host"], entry["drive"]) == (host, of.drive)]
    asked: Mapping = entries[0] if entries else {}
    limits = asked.get("validity_limits")
    cells = {cell["id"]: cell for cell in spec.get("cells") or []}
    about = asked_cells.on_drive((run.get("tests") or {}).get(of.test) or {}, asked.get("preferred_write_bytes"), spec)
    set_here = {name: float(limit) for name, limit in (limits or {}).items() if name in causes.Limits._fields}
    known = None if limits is None else causes.Limits(**set_here)

    def seed_of(number: int, cell: str) -> int:
        return seed(of.run_id, of.drive, of.test, of.attempt, number, cell)

    return Proof(cells, about, known, run.get("unknown_causes") == "spoil", Sequence(cells, seed_of))


def of(record: Mapping, seen: Proof | None, others: bool = False) -> dict[str, list[str]]:
    """A record's `proof`, {wrong, unproved}: sentences. seen: of its attempt's journal; None where none
    was collected. others: whether the journal has other attempts at that test.
    """
    wrong = list(seen.wrong) if seen else []
    if seen is None and others and not record.get("again"):
        wrong = [f"its journal has other attempts, and none with the number {record.get('attempt')}"]
    if seen is None or seen.told is None:
        return {"wrong": wrong, "unproved": [NOT_AGAIN.format("its journal was not collected")]}
    other = [key for key in TOLD_TWICE if _text(record.get(key)) != _text(seen.told.get(key))]
    return {
        "wrong": [f"its journal has another {', '.join(other)}"] * bool(other) + wrong,
        "unproved": list(seen.unproved),
    }


def problem(record: Mapping, strict: bool = False) -> str:
    """Why a steady or complete record can't count by its journal; "" when it may, or where no journal was looked at.

    record: with its `proof`. strict: what could not be computed again does not count (ssd_unknown_causes).
    """
    said = (record.get("proof") or {}).get("wrong", []) + (lacking(record) if strict else [])
    return "; ".join(said[:MOST_SAID])


def lacking(record: Mapping) -> list[str]:
    """What could not be computed again of a record that counts, as sentences."""
    return (record.get("proof") or {}).get("unproved", []) if record.get("outcome") in COUNTED else []


def _sides_of(told: Mapping) -> Mapping:
    """The figures alone: a host's journal has hundreds of thousands, with all that was seen of each."""
    return {side: told[side] for side in fio.SIDES if told.get(side)}


def _end(values: t.Sequence[float]) -> float | None:
    """Where the fitted line of a window ends."""
    return fitted_end(steady_state.evaluate(values, len(values)))


def _text(value: t.Any) -> t.Any:
    """Values that JSON tells alike: what is missing and what is null or empty."""
    return value if value not in ({}, []) else None
