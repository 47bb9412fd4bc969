# Copyright: (c) 2026, The ssdlab.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The runs before one, as no more than what a judgement takes of them: a report/summary.json of 10,000 drives is a
hundred MiB and more once it is read, their figures are a tenth of that. Pure; pandas.
"""

from __future__ import annotations

import typing as t

from . import moved_drives
from .long_table import of_summary, with_distinct_serials
from .scipy_imports import numpy as np
from .scipy_imports import pandas

# What trends.by_drive groups by; the cell of a test's own figures is the tracked one, whatever its name.
TEXTS = ("serial", "model", "firmware", "conditions", "test", "metric")

Mapping = t.Mapping[str, t.Any]
Texts = dict[str, str]


class Night(t.NamedTuple):
    """A run before this one, without its figures. drives: [{host, drive, model, serial, verdict}]. measured: hosts
    with figures that count. low: hosts that were low.
    """

    run: str
    drives: t.Sequence[Mapping]
    measured: t.AbstractSet[str]
    low: t.AbstractSet[t.Any]


class Past(t.NamedTuple):
    """runs: their ids, newest first. last: the newest one; None where there is none. claims: of
    moved_drives.of_summary.
    """

    runs: t.Sequence[str]
    last: Night | None
    claims: t.Sequence[moved_drives.Claim]
    figures: FigureTable


class FigureTable:
    """Figures of runs, one after the other: texts as codes into lists that all runs share, so a row takes some twenty
    bytes.
    """

    def __init__(self) -> None:
        self._codes: dict[str, dict[str, int]] = {name: {} for name in TEXTS}
        self._pieces: dict[str, list[np.ndarray]] = {name: [] for name in (*TEXTS, "value")}
        self._ends = [0]

    def add(self, frame: pandas.DataFrame) -> None:
        """A run's long table (long_table.py), with serials as of long_table.with_distinct_serials; texts may be
        categories.
        """
        for name, known in self._codes.items():
            found, texts = pandas.factorize(frame[name])
            # Of a text that is missing the code is -1, the last of these: it is the one that is empty.
            # How a host's tool pads a name makes no other model.
            names = (" ".join(str(text).split()) if name in ("model", "firmware") else text for text in texts)
            codes = [known.setdefault(text, len(known)) for text in names]
            codes.append(known.setdefault("", len(known)))
            here = np.array(codes, dtype=np.min_scalar_type(-1 - max(len(known), 1)))
            self._pieces[name].append(here[found])
        self._pieces["value"].append(frame["value"].to_numpy(dtype=float))
        self._ends.append(self._ends[-1] + len(frame))

    def table(self) -> pandas.DataFrame:
        """Return all of them, in the order in which they came; TEXTS and value."""
        columns = {}
        for name in (*TEXTS, "value"):
            pieces = self._pieces[name]
            column = np.concatenate(pieces) if pieces else np.zeros(0, dtype=np.int8 if name in TEXTS else float)
            pieces[:] = [column]
            texts = self._codes.get(name)
            columns[name] = column if texts is None else pandas.Categorical.from_codes(column, list(texts))
        return pandas.DataFrame(columns, copy=False)

    def end(self, run: int) -> int:
        """Return the row in `table` behind those of the first `run` runs."""
        return self._ends[run]


def of_summaries(given: t.Iterable[Mapping]) -> Past:
    """given: report/summary.json of runs, newest first; each is let go before the next is asked for."""
    runs: list[str] = []
    last: Night | None = None
    claims: list[moved_drives.Claim] = []
    figures = FigureTable()
    texts: Texts = {}
    for summary in given:
        runs.append(summary["run"]["id"])
        last = last or _night(summary)
        claims += kept(moved_drives.of_summary(summary), texts)
        figures.add(with_distinct_serials(of_summary(summary)))
        del summary
    return Past(runs, last, claims, figures)


def kept(claims: t.Iterable[moved_drives.Claim], texts: Texts) -> list[moved_drives.Claim]:
    """Return the claims of a night, by the texts that earlier ones have already: most are alike from night to night."""
    return [_sharing(texts, claim) for claim in claims]


def _sharing(texts: Texts, claim: moved_drives.Claim) -> moved_drives.Claim:
    serial, host, label, run, started, until = (texts.setdefault(text, text) for text in claim[:6])
    return moved_drives.Claim(serial, host, label, run, started, until, claim.low)


def _night(summary: Mapping) -> Night:
    told = [
        {name: drive.get(name) for name in ("host", "drive", "model", "serial", "verdict")}
        for drive in summary["drives"]
    ]
    measured = {drive["host"] for drive in summary["drives"] if any(test["counts"] for test in drive["tests"])}
    low = {entry.get("host") for entry in (summary.get("fleet") or {}).get("low_hosts") or []}
    return Night(summary["run"]["id"], told, measured, low)
