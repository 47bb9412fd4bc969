# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The figures that a test's end reports, computed again from the cells, rounds and histograms before it. Pure."""

from __future__ import annotations

import typing as t

from ...module_utils.measure import histogram, steady_state
from ...module_utils.measure.rounds import FITTED_END, last_clean
from ...module_utils.measure.windows import fitted_end
from ..common.values import number
from . import replay, tail_laws
from .asked_cells import LEFT_OUT
from .points import FIGURES
from .recheck import same
from .taken import UNKNOWN_FORM, Taken

Mapping = t.Mapping[str, t.Any]
MOST_SAID = 3
NOT_AGAIN = "its figures were not computed again: {0}"
# Between the end of a cell and that of its round the engine does next to nothing.
MORE_SHARE, MORE_S = 0.01, 2.0


class Figures:
    """One attempt. taken: its records; gets what is wrong and what is unproved. about: of the test in run.json.

    averages: of each cell over the rounds that count, {points.FIGURES}.
    """

    def __init__(self, taken: Taken, about: Mapping) -> None:
        self._taken, self._about = taken, about
        self._wrong, self._unproved = taken.wrong, taken.unproved
        self.averages: dict[str, dict[str, float]] = {}

    def judge(self, event: Mapping) -> None:
        try:
            self._judge_all(event)
        except UNKNOWN_FORM as error:
            self._unproved.append(NOT_AGAIN.format(f"its journal has an unknown form ({type(error).__name__})"))

    def _judge_all(self, event: Mapping) -> None:
        if not self._taken.rounds and not self._taken.metrics:
            # All of it was taken away: as if it had not been collected.
            self._unproved.append(NOT_AGAIN.format("its journal lacks cells of the rounds that count"))
            return
        # A number of rounds that the journal does not have would be counted up to.
        whole = event["rounds"] == len(self._taken.rounds)
        numbers = self._window(event) if whole else []
        known = all(n in self._taken.rounds and n <= len(self._taken.rounds) for n in numbers)
        if not whole:
            self._wrong.append(f"{event['rounds']} rounds are reported, its journal has {len(self._taken.rounds)}")
        elif not known:
            self._wrong.append("its figures come from rounds that its journal does not have")
        numbers = numbers if known and numbers == sorted(numbers) else []
        span = [n for n in range(numbers[0], numbers[-1] + 1) if n not in self._taken.spoilt] if numbers else []
        needed = {item["cell"] for item in (*event["cells"], *event["steady_state"])}
        strange = sorted(needed - {cell for _n, cell in self._taken.metrics})
        if strange:
            self._wrong.append(f"its end reports {', '.join(strange[:MOST_SAID])}, which its journal does not have")
            return
        if whole and not event["steady_state"] and not numbers and self._taken.spoilt:
            first = next(text for _n, text in sorted(self._taken.spoilt.items()))
            self._wrong.append(f"all rounds that could count are spoilt by what the host kept of them: {first}")
            return
        if not numbers or not needed or any((n, cell) not in self._taken.metrics for n in numbers for cell in needed):
            self._unproved.append(NOT_AGAIN.format("its journal lacks cells of the rounds that count"))
            return
        self.averages = self._averages(numbers)
        self._judge_window(event, numbers)
        wide = self._wide(span)
        for cell in event["cells"]:
            self._judge_cell(cell["cell"], cell["metrics"], numbers, span, wide)
            self._judge_steadiness(cell, numbers)
        self._judge_first(event)
        size_bytes = (event.get("saturation") or {}).get("user_capacity_bytes")
        said = replay.problem(self._played(), self._about, numbers, size_bytes)
        self._wrong += [said] if said else []

    def _averages(self, numbers: list[int]) -> dict[str, dict[str, float]]:
        """Of the cells that all of these rounds have."""
        found: dict[str, dict[str, float]] = {}
        for cell in dict.fromkeys(cell for _n, cell in self._taken.metrics):
            rounds = [self._taken.metrics.get((n, cell), {}) for n in numbers]
            known = [name for name in FIGURES if all(metrics.get(name) is not None for metrics in rounds)]
            found[cell] = {name: sum(metrics[name] for metrics in rounds) / len(rounds) for name in known}
        return found

    def _played(self) -> list[replay.Played]:
        """The rounds, in order, with the figures of their cells."""
        cells: dict[int, dict[str, t.Any]] = {n: {} for n in self._taken.rounds}
        for (n, cell), metrics in self._taken.metrics.items():
            cells.get(n, {})[cell] = metrics
        return [
            replay.Played(cells[n], event["bytes_written"], event["elapsed_s"], n in self._taken.spoilt)
            for n, event in self._taken.rounds.items()
        ]

    def _wide(self, span: list[int]) -> list[int]:
        """The rounds that maxima cover: of a saturation test all that are clean, as its curve is the result."""
        rule = self._about.get("steady_state") or {}
        saturates = (rule.get("sample_every") or 1) > 1 or rule.get("min_capacity_multiple")
        return [n for n in self._taken.rounds if n not in self._taken.spoilt] if saturates else span

    def _judge_steadiness(self, told: Mapping, numbers: list[int]) -> None:
        """Whether a cell was steady itself, tracked or not."""
        rule, shown = self._about.get("steady_state") or {}, told.get("steady") or {}
        if not shown or any(rule.get(key) is None for key in ("window", "range_limit", "slope_limit")):
            return
        values = [self._taken.metrics[n, told["cell"]].get(shown["metric"], 0.0) for n in numbers]
        again = steady_state.by_rule(values, rule)
        if bool(again["steady"]) != bool(shown["steady"]):
            word = "steady" if shown["steady"] else "not steady"
            self._wrong.append(f"{told['cell']} is reported as {word} itself, but its rounds give {values}")

    def _window(self, event: Mapping) -> list[int]:
        """The rounds that the figures stand on: those of the window, or all that are clean, or the last of them."""
        windows = [window["window_rounds"] for window in event["steady_state"] if window.get("window_rounds")]
        if windows:
            return list(windows[0])
        count = min(event["rounds"], len(self._taken.rounds))  # a host may report two milliards
        return last_clean(count, self._taken.spoilt, self._about.get("last_rounds") or 0)

    def _judge_window(self, event: Mapping, numbers: list[int]) -> None:
        """The values of the tracked variables, what was written before, and that nothing spoilt the rounds."""
        if any(window.get("window_rounds") != numbers for window in event["steady_state"]):
            self._wrong.append("its tracked variables have windows of different rounds")
        for window in event["steady_state"]:
            cell, metric = window["cell"], window["metric"]
            seen = [self._taken.metrics.get((n, cell), {}).get(metric) for n in window.get("window_rounds") or []]
            values = window.get("window_values") or []
            if len(seen) != len(values) or not all(same(one or 0.0, other) for one, other in zip(seen, values)):
                self._wrong.append(f"the window of {cell} {metric} is reported as {values}, but its cells give {seen}")
        rule = self._about.get("steady_state") or {}
        length = (rule.get("window") or 0) * (rule.get("sample_every") or 1)
        first = max(1, numbers[0] - (rule.get("confirm_windows") or 0) * length)
        spoilt = [text for n, text in sorted(self._taken.spoilt.items()) if first <= n <= numbers[-1]]
        if spoilt and event["steady_state"]:
            self._wrong.append(f"rounds that count are spoilt by what the host kept of them: {spoilt[0]}")
        if event.get("saturation"):
            self._judge_before(event["saturation"], first)

    def _judge_before(self, shown: Mapping, first: int) -> None:
        """What was written before the first window that counts."""
        before = self._taken.rounds.get(first - 1, {"bytes_written": 0, "elapsed_s": 0.0})
        written = sum(self._taken.written.get(n, 0) for n in range(1, first))
        most = min(before["bytes_written"], written)
        told, elapsed_s = shown["written_before_bytes"], shown["elapsed_before_s"]
        if told > most:
            self._wrong.append(f"{told} bytes are reported as written before round {first}, but its cells give {most}")
        if elapsed_s > before["elapsed_s"] + 0.001:
            given = before["elapsed_s"]
            self._wrong.append(f"round {first} is reported to begin after {elapsed_s} s, its rounds give {given}")
        lasted = [self._taken.lasted.get(n) for n in range(1, first)]
        known = [seconds for seconds in lasted if seconds is not None]
        if len(known) == len(lasted) and elapsed_s > (1 + MORE_SHARE) * sum(known) + MORE_S:
            given = round(sum(known), 3)
            self._wrong.append(f"round {first} is reported to begin after {elapsed_s} s, its cells took {given}")

    def _judge_cell(self, cell: str, told: Mapping, numbers: list[int], span: list[int], wide: list[int]) -> None:
        """A cell's metrics over the window: means of rounds, maxima that none is above, percentiles of histograms.

        wide: the rounds of its maxima.
        """
        rounds = [self._taken.metrics[n, cell] for n in numbers]
        for name in rounds[0] if rounds else ():
            values = [metrics[name] for metrics in rounds if metrics.get(name) is not None]
            if name not in told or len(values) < len(rounds):
                continue
            if "max_latency" in name:
                highest = max([self._taken.metrics.get((n, cell), {}).get(name) or 0.0 for n in wide], default=0.0)
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
        kept = self._taken.histograms.get(cell, {})
        asked = [name for name, value in told.items() if value is not None and histogram.is_of_histograms(name)]
        lacking = [name for name in asked if histogram.side_of(name) not in (*kept, "")]
        if lacking or (asked and not kept):
            # The engine keeps one for each of them, before the end of the test.
            names = ", ".join((lacking or asked)[:MOST_SAID])
            self._wrong.append(f"{cell}: {names} are reported, but its journal lacks the histogram of it")
            return
        if any((item["first_round"], item["last_round"]) != (span[0], span[-1]) for item in kept.values() if span):
            self._wrong.append(f"{cell}: its histograms are not of the rounds that count, {span[0]} to {span[-1]}")
            return
        try:
            bins = {side: tail_laws.bins_of(item) for side, item in kept.items()}
        except ValueError as error:
            self._wrong.append(f"{cell}: histogram: {error}")
            return
        again = histogram.metrics(bins, self._about.get("latency_targets_us") or [])
        for name in asked:
            if not same(told[name], again.get(name)):
                self._say(cell, name, told[name], again.get(name))
        for side, counts in bins.items():
            self._judge_histogram(cell, side, counts, span)

    def _judge_histogram(self, cell: str, side: str, bins: t.Mapping[int, int], span: list[int]) -> None:
        """A histogram of the rounds that count against what their cells tell by themselves."""
        seen = [self._taken.sides[n, cell] for n in span if (n, cell) in self._taken.sides]
        rounds = tail_laws.HistogramRounds(
            [told[side] for told, _astride in seen if told.get(side)], sum(n for _told, n in seen)
        )
        self._wrong += [f"{cell}, {side}s: {text}" for text in tail_laws.contradictions(bins, rounds)]
        lacking = tail_laws.lacking(rounds)
        if lacking:
            self._taken.lacks(lacking)

    def _judge_first(self, event: Mapping) -> None:
        """The test's own metrics are those of the first tracked cell, and where the fitted lines of its windows end."""
        windows, cells = event["steady_state"], {item["cell"]: item["metrics"] for item in event["cells"]}
        first = windows[0]["cell"] if windows else next(iter(cells), "")
        self._judge_order(windows, first)
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

    def _judge_order(self, windows: t.Sequence[Mapping], first: str) -> None:
        """Which cell's figures are the test's is the controller's word: the first tracked, else the first that leads no
        round.
        """
        left_out = set(self._about.get(LEFT_OUT) or ())
        tracked = (self._about.get("steady_state") or {}).get("tracked") or ()
        asked = [(item["cell"], item["metric"]) for item in tracked if item["cell"] not in left_out]
        if asked and [(window["cell"], window["metric"]) for window in windows] != asked:
            self._wrong.append("its tracked variables are not those of the run, or in another order")
        skipped = left_out.union(self._about.get("leads") or ())
        own = [cell for cell in self._about.get("cells") or () if cell not in skipped]
        if not windows and own and "leads" in self._about and first != own[0]:
            self._wrong.append(f"its figures are those of {first}, not of {own[0]}")

    def _say(self, cell: str, name: str, told: t.Any, again: t.Any) -> None:
        self._wrong.append(f"{cell}: {name} is reported as {told}, but the host's data give {again}")


def _end(values: t.Sequence[float]) -> float | None:
    """Where the fitted line of a window ends."""
    return fitted_end(steady_state.evaluate(values, len(values)))
