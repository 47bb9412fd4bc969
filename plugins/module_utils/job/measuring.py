# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rounds of one test: its cells in fio, what spoils them, and each into the journal."""

from __future__ import annotations

import contextlib
import time
import typing as t

from ..measure import causes, fio, fio_result
from ..measure.rounds import Rounds, cell_s
from ..measure.spoilt import Tally
from ..run.folder import NEWS_S
from .station import Station


class Discarded(Exception):
    """Somebody else gave blocks of the drive back: neither this test nor one that builds on it can count."""


class Measuring:
    """A test's rounds. names: of the test and its attempt; after_round: called before a round is journalled."""

    def __init__(
        self, station: Station, names: dict[str, t.Any], rounds: Rounds, tally: Tally, after_round: t.Callable[[], None]
    ) -> None:
        self._station = station
        self._names = names
        self._rounds = rounds
        self._tally = tally
        self._look_at_host = after_round
        self._discarded = ""

    def run(self, test: t.Mapping[str, t.Any]) -> None:
        """All rounds of the test. Raises Discarded once nothing that follows can count."""
        rounds = self._rounds
        if not test["cells"]:
            return
        self._station.guard("measure", phase="measure")
        # Its purge may have formatted the drive to another capacity.
        rounds.resize(self._station.target.identity["size_bytes"])
        self._station.bench.begin_test()
        with contextlib.closing(self._station.bench):
            self._run_rounds(test)

    def _run_rounds(self, test: t.Mapping[str, t.Any]) -> None:
        rounds = self._rounds
        began, written = time.monotonic(), 0
        while not rounds.finished():
            number = rounds.count + 1
            metrics, histograms = {}, {}
            for cell in test["cells"]:
                news_s = NEWS_S + 1.1 * cell_s(cell)
                left_s = rounds.time_left_s()
                self._station.show(round=number, cell=cell["id"], time_left_s=left_s, news_within_s=news_s)
                result = self._cell(cell, number, self._station.active_bytes(test))
                self._tally.add(number, cell["id"], result["causes"])
                found = [item.message for item in result["causes"] if item.cause == causes.DISCARDED]
                self._discarded = self._discarded or "".join(found[:1])
                metrics[cell["id"]] = fio_result.metrics_of(result)
                # A stream's figures are kept as those of a cell, <cell>.<stream>.
                metrics.update({stream["name"]: fio_result.metrics_of(stream) for stream in result.get("streams", ())})
                histograms.update({name or cell["id"]: sides for name, sides in result["histograms"].items()})
                written += (result["write"] or {}).get("bytes", 0)
            elapsed_s = time.monotonic() - began
            rounds.add(metrics, written, elapsed_s, histograms, self._tally.is_spoilt(number))
            self._after_round(metrics, written, elapsed_s)
            if self._discarded:
                raise Discarded(self._discarded)

    def _after_round(self, metrics: dict[str, t.Any], written: int, elapsed_s: float) -> None:
        rounds = self._rounds
        self._station.look()
        self._look_at_host()
        tracked = rounds.tracked()
        done = dict(
            self._names, round=rounds.count, tracked=tracked, bytes_written=written, elapsed_s=round(elapsed_s, 3)
        )
        self._station.note("round", **done)
        shown = tracked[0] if tracked else {"cell": list(metrics)[0], "metric": "iops"}
        figures = metrics[shown["cell"]]
        self._station.show(
            last={
                "metric": shown["metric"],
                "value": figures.get(shown["metric"]),
                "mean_latency_us": figures.get("mean_latency_us"),
                "progress": None,
            }
        )

    def _cell(self, cell: t.Mapping[str, t.Any], number: int, size_bytes: int) -> dict[str, t.Any]:
        names = self._names
        value = self._station.seed(names, number, cell["id"])
        name = self._station.file(names, "{0:04d}-{1}".format(number, cell["id"]))
        fields = dict(names, round=number, cell=cell["id"], seed=value)
        fields.update({"chosen": cell["chosen"]} if "chosen" in cell else {})
        try:
            result = self._station.bench.cell(name, cell, size_bytes, value)
        except fio.FioError as error:
            self._station.note("cell", accepted=False, reasons=[str(error)], **fields)
            raise type(error)("round {0}, cell {1}: {2}".format(number, cell["id"], error)) from None
        noted = {key: value for key, value in result.items() if key != "histograms"}
        found = [item._asdict() for item in result["causes"]]
        self._station.note("cell", accepted=True, reasons=[], **dict(fields, **dict(noted, causes=found)))
        return result
